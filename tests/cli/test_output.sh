# SPDX-License-Identifier: Apache-2.0
# test_output.sh: results whole or not at all: files appear at the end and under their own rights, full disks, closed pipes, signals, weights that
# shrink while they are used.
. "$2/cli/lib.sh"
D=$T/out.d
mkdir "$D"
only() { check "nothing but $1 is there" [ "$(ls -A "$D" | tr '\n' ' ')" = "$1 " ]; }
empty() { check "nothing is left behind" [ -z "$(ls -A "$D")" ]; }

run embed -m "$MODEL" water; cp "$T/out" "$T/want"
run embed -m "$MODEL" water -o "$D/x"; exit_is 0; out_empty; check "-o has the result" cmp -s "$T/want" "$D/x"; only x
run embed -m "$MODEL" water -o -; check "-o - is standard output" cmp -s "$T/want" "$T/out"
printf 'old' >"$D/x"; chmod 640 "$D/x"
run embed -m "$MODEL" -o "$D/x" "$(printf 'bad \377')"; exit_is 5
check "the old file is untouched" [ "$(cat "$D/x")" = old ]; only x
run embed -m "$MODEL" -o "$D/x" water; exit_is 0; check "the old file is replaced" cmp -s "$T/want" "$D/x"
check "its rights are kept" [ "$(ls -l "$D/x" | cut -c1-10)" = '-rw-r-----' ]
ln -s x "$D/link"; printf 'old' >"$D/x"
run embed -m "$MODEL" -o "$D/link" water; exit_is 0; check "a link stays a link" [ -L "$D/link" ]
check "and its file is replaced" cmp -s "$T/want" "$D/x"
rm -f "$D/link" "$D/x"
run embed -m "$MODEL" water -o "$D/none/x"; fails_with 7 'none/x'
run embed -m "$MODEL" water -o "$D"; fails_with 7 'is a directory'; empty

# devices and pipes are written as they are
run embed -m "$MODEL" water -o /dev/null; exit_is 0; check "/dev/null stays a device" [ -c /dev/null ]
mkfifo "$T/pipe"; cat "$T/pipe" >"$T/got" & run embed -m "$MODEL" water -o "$T/pipe"; wait; exit_is 0; check "a pipe takes it" cmp -s "$T/want" "$T/got"
run embed -m "$MODEL" water --format npy; cp "$T/out" "$T/npy"
cat "$T/pipe" >"$T/got" & run embed -m "$MODEL" water --format npy -o "$T/pipe"; wait; check "npy too" cmp -s "$T/npy" "$T/got"
if [ -c /dev/full ]; then
    shown='lath embed >/dev/full'
    "$LATH" embed -m "$MODEL" water >/dev/full 2>"$T/err"; rc=$?; : >"$T/out"
    fails_with 7 'standard output: .*No space'
    "$LATH" help >/dev/full 2>"$T/err"; rc=$?; fails_with 7 'standard output'
    "$LATH" --version >/dev/full 2>"$T/err"; rc=$?; fails_with 7 'standard output'
    run embed -m "$MODEL" water -o /dev/full; fails_with 7 '/dev/full'
    check "/dev/full stays a device" [ -c /dev/full ]
fi

# a file that cannot grow, as on a full disk: nothing half-written stays, the old file is untouched
seq 1 2000 >"$T/many"; printf 'old' >"$D/x"
shown='ulimit -f; lath embed -o'
(ulimit -f 64; "$LATH" embed -m "$MODEL" -f "$T/many" -o "$D/x" >"$T/out" 2>"$T/err"); rc=$?; fails_with 7 'out.d/x'; only x; check "the old file is untouched" [ "$(cat "$D/x")" = old ]
rm "$D/x"
shown='ulimit -f; lath search'
cp "$T/many" "$D/c"; (ulimit -f 64; "$LATH" search -m "$MODEL" --corpus "$D/c" --query x >"$T/out" 2>"$T/err"); rc=$?
fails_with 7 'c.lath'; only c
rm "$D/c"

# a closed pipe and a closed descriptor are errors, not silence
shown='lath embed | true'
{ sleep 0.3; "$LATH" embed -m "$MODEL" water 2>"$T/err"; echo $? >"$T/rc"; } | true
sleep 0.1; while [ ! -s "$T/rc" ]; do sleep 0.1; done; rc=$(cat "$T/rc"); fails_with 7 'standard output: .*[Pp]ipe'
shown='lath embed >&-'
"$LATH" embed -m "$MODEL" water >&- 2>"$T/err"; rc=$?; fails_with 7 'standard output'
shown='lath embed -o >&-'
"$LATH" embed -m "$MODEL" water -o "$D/x" >&- 2>"$T/err"; rc=$?; exit_is 0
check "-o needs no standard output" cmp -s "$T/want" "$D/x"; rm -f "$D/x"
shown='lath embed <&-'
"$LATH" embed -m "$MODEL" <&- >"$T/out" 2>"$T/err"; rc=$?; fails_with 7 'standard input'

# a signal: 130, nothing left. (SIGTERM: a shell starts background programs with SIGINT ignored, and that is respected.)
shown='lath embed, terminated'
{ printf 'water\n'; exec sleep 30; } >"$T/pipe" & feeder=$!
"$LATH" embed -m "$MODEL" -f "$T/pipe" -o "$D/x" >"$T/out" 2>"$T/err" & pid=$!
tries=0; while [ -z "$(ls -A "$D")" ] && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
check "a temporary file is there" [ -n "$(ls -A "$D")" ]
kill -TERM $pid; wait $pid; rc=$?; fails_with 130 'interrupted'; empty
kill $feeder 2>/dev/null; wait $feeder 2>/dev/null

# the texts of all chunks are counted, not those of the last
shown='lath embed of many texts, terminated'
awk 'BEGIN { for (i = 0; i < 100000; i++) print "the green river runs and water runs", i, "the green river" }' >"$T/many"
: >"$T/lines"
"$LATH" embed -m "$MODEL" --isa ref -t 1 -f "$T/many" >>"$T/lines" 2>"$T/err" & pid=$!
tries=0; while [ "$(wc -c <"$T/lines")" -lt 900000 ] && [ $tries -lt 600 ]; do sleep 0.1; tries=$((tries + 1)); done
kill -TERM $pid; wait $pid; rc=$?; : >"$T/out"; fails_with 130 'embed: interrupted after [0-9]* texts$'
check "at least those that were written" [ "$(sed 's/.*after \([0-9]*\) texts$/\1/' "$T/err")" -ge "$(wc -l <"$T/lines")" ]
rm -f "$T/lines" "$T/many"

# a batch of thousands of texts is not waited for
awk 'BEGIN { for (i = 0; i < 4096; i++) print "the green river runs and water runs the green river runs and water runs the green river runs and water", i }' >"$T/many"
for command in "search -m $MODEL --corpus $T/many --index $D/y --query water" \
    "rerank -m $TESTS/golden/rerank/bert_msmarco --query water -f $T/many -o $D/z"; do
    shown="lath $command, terminated in its batch"
    "$LATH" $command --isa ref -t 1 --batch-tokens 1000000 >"$T/out" 2>"$T/err" & pid=$!
    # on a busy machine it takes a while to come that far
    tries=0; while ! grep -q model.safetensors "/proc/$pid/maps" 2>/dev/null && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
    sleep 0.3
    kill -TERM $pid; wait $pid; rc=$?; fails_with 130 'interrupted\( after 0 [a-z]*\| after 0 of 4096 [a-z]*\)\{0,1\}$'; empty
done
rm -f "$T/many"

# weights cut while they are mapped: exit 3, the file named
if [ -d /proc/self ]; then
    shown='lath embed, weights cut'
    cp -r "$MODEL" "$T/model"
    { exec sleep 30; } >"$T/pipe" & feeder=$!
    "$LATH" embed -m "$T/model" <"$T/pipe" -o "$D/x" >"$T/out" 2>"$T/err" & pid=$!
    exec 3>"$T/pipe"
    tries=0; while ! grep -q model.safetensors "/proc/$pid/maps" 2>/dev/null && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
    sleep 0.3
    : >"$T/model/model.safetensors"
    echo water >&3
    exec 3>&-
    kill $feeder 2>/dev/null; wait $feeder 2>/dev/null
    wait $pid; rc=$?; fails_with 3 'model.safetensors: '; empty
fi
finish
