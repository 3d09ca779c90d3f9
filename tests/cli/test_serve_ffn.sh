# SPDX-License-Identifier: Apache-2.0
# test_serve_ffn.sh: `lath serve-ffn` from start to end, and what it refuses. What it answers is tested by tests/server.
. "$2/cli/lib.sh"
LM=$TESTS/golden/decoder/llama2

# wait_line FILE TEXT: until TEXT is in FILE, 10 seconds at most
wait_line() {
    tries=0
    until grep -q "$2" "$1" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || return 1
        sleep 0.1
    done
}

shown='lath serve-ffn --port 0'
"$LATH" serve-ffn -m "$LM" --layers 0-1 --port 0 >"$T/out" 2>"$T/said" &
pid=$!
check "says where it listens" wait_line "$T/said" '^layers 0-1 of .*llama2 at http://127.0.0.1:[1-9][0-9]*$'
port=$(sed -n 's/.*:\([0-9]*\)$/\1/p' "$T/said")
run serve-ffn -m "$LM" --port "$port"; fails_with 8 "cannot listen at 127.0.0.1:$port"
kill -TERM "$pid"
wait "$pid"
rc=$?
exit_is 0
check "prints nothing" [ ! -s "$T/out" ]

run serve-ffn; fails_with 2 'model'
run serve-ffn -m "$LM" extra; fails_with 2 'takes no arguments'
run serve-ffn -m "$LM" --port 65536; fails_with 2 '65536'
run serve-ffn -m "$LM" --port 0 --layers 1-0; fails_with 2 'the model has layers 0 to'
run serve-ffn -m "$LM" --port 0 --layers 0-99; fails_with 2 'the model has layers 0 to'
run serve-ffn -m "$LM" --port 0 --layers x; fails_with 2 'want A-B'
run serve-ffn -m "$LM" --port 0 --layers 1-; fails_with 2 'want A-B'
run serve-ffn -m "$LM" --port 0 --host nowhere; fails_with 2 'nowhere'
run serve-ffn -m "$T/none" --port 0; fails_with 3 'none'
finish
