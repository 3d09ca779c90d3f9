# SPDX-License-Identifier: Apache-2.0
# test_usage.sh: version, help of the program and of every command, options that are wrong, --config. Commands and options are read out of the
# tables of the program, so that a new one is checked without a change here.
. "$2/cli/lib.sh"
CLI=$TESTS/../cli

run --version; exit_is 0; out_is 'lath 0.1.0\n'; err_empty
run; fails_with 2 'usage'
run help; exit_is 0; err_empty
cp "$T/out" "$T/help"
run --help; exit_is 0; check "--help is help" cmp -s "$T/out" "$T/help"
run -h; exit_is 0; check "-h is help" cmp -s "$T/out" "$T/help"

commands=$(sed -n -e 's/^COMMAND(\([a-z]*\),.*/\1/p' -e 's/^COMMAND_AS([a-z_]*, "\([a-z-]*\)",.*/\1/p' "$CLI/cmds.def")
check "cmds.def lists commands" [ -n "$commands" ]
for c in $commands; do
    run help; out_has "^  $c "
    run help "$c"; exit_is 0; out_has "^Usage: lath $c"; out_has '^Examples:'; out_has "^  lath $c"
    cp "$T/out" "$T/help"
    run "$c" --help; exit_is 0; check "$c --help is help $c" cmp -s "$T/out" "$T/help"
    run "$c" -h; exit_is 0; check "$c -h is help $c" cmp -s "$T/out" "$T/help"
    groups=$(sed -n -e "s/^COMMAND($c, \([A-Z_| ]*\),.*/\1/p" -e "s/^COMMAND_AS([a-z_]*, \"$c\", \([A-Z_| ]*\),.*/\1/p" "$CLI/cmds.def" | tr -d '|')
    for g in $groups; do
        for o in $(sed -n "s/^OPTION([A-Z_ |]*$g[A-Z_ |]*, [^,]*, \"\([a-z-]*\)\".*/\1/p" "$CLI/options.def"); do
            check "help of $c has --$o" grep -q -e "--$o " "$T/help"
        done
    done
    run "$c" --no-such-option; fails_with 2 'no-such-option'
    run "$c" -Z; fails_with 2 '-Z'
done

run nonsense; fails_with 2 'nonsense'
run embd; fails_with 2 'did you mean embed'
run help nonsense; fails_with 2 'nonsense'
run embed --poolin cls -m "$MODEL" x; fails_with 2 'did you mean --pooling'
run embed x; fails_with 2 'model'
run embed -m "$MODEL" --pooling worst x; fails_with 2 'worst'
run embed -m "$MODEL" --format xml x; fails_with 2 'xml'
run embed -m "$MODEL" -t 257 x; fails_with 2 '257'
run embed -m "$MODEL" -t -1 x; fails_with 2 'threads'
run embed -m "$MODEL" -t two x; fails_with 2 'two'
run embed -m "$MODEL" --dim 0 x; fails_with 2 'dim'
run embed -m "$MODEL" --dim 99999999999999999999 x; fails_with 2 'dim'
run embed -m "$MODEL" --dim 100000 x; fails_with 2 'dim'
run embed -m "$MODEL" --max-len 100000 x; fails_with 2 'window'
run embed -m "$MODEL" --prompt nosuch x; fails_with 2 'nosuch'
run embed -m "$MODEL" --model; fails_with 2 'model'
run embed -m; fails_with 2 '-m'
run embed -m "$MODEL" --lossy=yes x; fails_with 2 'lossy'
run embed -m "$MODEL" --top-k 3 x; fails_with 2 'top-k'
run embed -m "$MODEL" --json --jsonl x; fails_with 2 'jsonl'
run embed -m "$MODEL" --json --format npy x; fails_with 2 'format'
run embed -m "$MODEL" --prompt a --prompt-text b x; fails_with 2 'prompt'
run embed -m "$MODEL" -f a.txt x; fails_with 2 'arguments'
run embed -m "$MODEL" --device gpu x; fails_with 4 'gpu'
run embed -m "$MODEL" --isa neon x
case $(uname -m) in
x86_64) fails_with 4 'neon' ;;
esac
run embed -m "$MODEL" --precision int8 x; fails_with 4 'precision'
run embed -m "$MODEL" --precision bf16 x; fails_with 4 'precision'
LATH_NO_GPU=1 "$LATH" embed -q -m "$MODEL" x >"$T/out" 2>"$T/err" </dev/null; rc=$?; exit_is 0
run similarity -m "$MODEL" x; fails_with 2 'at least 2'
run search -m "$MODEL" --query x; fails_with 2 'corpus'
run info -m "$MODEL" x; fails_with 2 'arguments'

# options may come in any order, in one word, in clusters, and end at --
run embed -q -m "$MODEL" x y; cp "$T/out" "$T/want"
run embed x -qm "$MODEL" y; check "order and clusters" cmp -s "$T/want" "$T/out"
run embed "--model=$MODEL" --quiet -- x y; check "--name=value" cmp -s "$T/want" "$T/out"
run embed "-m$MODEL" -q x -- y; check "-mVALUE" cmp -s "$T/want" "$T/out"
run embed -m "$MODEL" -q -- -x --json; exit_is 0; out_lines 2
run embed -m "$MODEL" -q -; exit_is 0; out_lines 1

# --config: long option names; the command line wins; options of other commands are passed over
printf '{"model": "%s", "quiet": true, "format": "text", "dim": 4, "top-k": 3, "threads": null, "no-normalize": false}' "$MODEL" >"$T/c.json"
run embed --config "$T/c.json" x; exit_is 0; out_lines 1
check "4 numbers" [ "$(wc -w <"$T/out")" -eq 4 ]
run embed --config "$T/c.json" --dim 5 x; check "5 numbers" [ "$(wc -w <"$T/out")" -eq 5 ]
run embed --config "$T/c.json" --json x; exit_is 0; out_has '^\[{"index":0'
printf '{"file": ["%s/a", "%s/b"]}' "$T" "$T" >"$T/files.json"
printf 'x\n' >"$T/a"; printf 'y\n' >"$T/b"
run embed --config "$T/files.json" -q -m "$MODEL"; check "files of the config" cmp -s "$T/want" "$T/out"
run embed --config "$T/files.json" -f "$T/b" -q -m "$MODEL"; out_lines 1
run embed --config "$T/none.json" x; fails_with 3 'none.json'
printf '{"model": }' >"$T/bad.json"; run embed --config "$T/bad.json" x; fails_with 3 'bad.json: line 1'
printf '["model"]' >"$T/bad.json"; run embed --config "$T/bad.json" x; fails_with 3 'bad.json'
printf '{\n"modle": "x"}' >"$T/bad.json"; run embed --config "$T/bad.json" x; fails_with 2 'line 2: "modle"'
printf '{"dim": "many"}' >"$T/bad.json"; run embed --config "$T/bad.json" x; fails_with 2 'many'
printf '{"quiet": 1}' >"$T/bad.json"; run embed --config "$T/bad.json" x; fails_with 2 'quiet'
finish
