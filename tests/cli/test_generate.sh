# SPDX-License-Identifier: Apache-2.0
# test_generate.sh: `lath generate`: forms of the result, where it ends, chance from a seed, what is refused, what a signal or a reader that went away does.
. "$2/cli/lib.sh"
G=$TESTS/golden
CASES=$G/lm/cases.txt
QWEN=$G/rerank/qwen3_reranker_card # no beginning token
LLAMA=$G/decoder/llama2            # a beginning token; most of its rows have no token

# endless NAME: a copy of a model without end tokens
endless() {
    mkdir -p "$T/m/${1%/*}"; cp -r "$G/$1" "$T/m/$1"; chmod -R u+w "$T/m"
    sed 's/"eos_token_id": [0-9]*/"eos_token_id": null/' "$G/$1/config.json" >"$T/m/$1/config.json"
    sed 's/"eos_token"/"other_token"/' "$G/$1/tokenizer_config.json" >"$T/m/$1/tokenizer_config.json"
}
run generate -m "$QWEN" --json a; exit_is 0; out_has '"token_ids":\[219,29\],"finish_reason":"stop"'
endless rerank/qwen3_reranker_card; endless decoder/llama2
QWEN=$T/m/rerank/qwen3_reranker_card LLAMA=$T/m/decoder/llama2

text_of() { sed -n 's/^{"text":"\(.*\)","token_ids":.*/\1/p' "$T/out"; }
ids_of() { sed -n 's/.*"token_ids":\[\([0-9,]*\)\].*/\1/p' "$T/out"; }

# the first token is the most probable one of the reference; the others are what the model expects behind those before
TAB=$(printf '\t')
seen=0
while IFS="$TAB" read -r kind model prompt rank id rest; do
    [ "$kind $rank" = 'predict 0' ] || continue
    run generate -m "$T/m/$model" --precision exact --json -n 6 "$prompt"; exit_is 0; err_empty
    check "$model, $prompt: begins with $id" [ "$(ids_of | cut -d, -f1)" = "$id" ]
    check "6 tokens" [ "$(ids_of | tr ',' '\n' | wc -l)" -eq 6 ]
    out_has '"finish_reason":"length","usage":{"prompt_tokens":[0-9]*,"completion_tokens":6},"timings":{.*}}$'
    seen=$((seen + 1))
done <"$CASES"
check "6 prompts were gone on with" [ "$seen" -eq 6 ]
run generate -m "$QWEN" --precision exact --json -n 5 abc; all=$(ids_of)
prompt=$("$LATH" tokenize -m "$QWEN" abc | tr ' ' ',')
"$LATH" logits -m "$QWEN" --precision exact --ids "$prompt,${all%,*}" --all-positions -o "$T/l.npy"
od -An -v -tf4 -w1216 -j 128 "$T/l.npy" | awk '{ best = 1; for (i = 2; i <= NF; i++) if ($i > $best) best = i; print best - 1 }' | tail -n 5 | tr '\n' ',' >"$T/greedy"
check "greedy is the largest logit each time" [ "$(cat "$T/greedy")" = "$all," ]

# streamed text is the text of --json, and what --jsonl gives in pieces
run generate -m "$LLAMA" -n 60 --temp 1 --seed 3 'the boat'; exit_is 0; err_empty; cp "$T/out" "$T/plain"
run generate -m "$LLAMA" -n 60 --temp 1 --seed 3 --json 'the boat'; exit_is 0; text_of | tr -d '\n' >"$T/json"; ids_of >"$T/ids"
check "streamed is the same" cmp -s "$T/plain" "$T/json"
run generate -m "$LLAMA" -n 60 --temp 1 --seed 3 --jsonl 'the boat'; exit_is 0
check "a line a token, and the document" [ "$(wc -l <"$T/out")" -ge 61 ]
sed '$d' "$T/out" | sed -n 's/.*"token_id":\([0-9]*\),.*/\1/p' | tr '\n' ',' | sed 's/,$//' >"$T/x"; tr -d '\n' <"$T/ids" >"$T/y"; check "its ids" cmp -s "$T/x" "$T/y"
sed '$d' "$T/out" | sed 's/.*"text":"\(.*\)"}/\1/' | tr -d '\n' >"$T/x"; check "its text" cmp -s "$T/x" "$T/json"
run generate -m "$LLAMA" -n 60 --temp 1 --seed 3 -o "$T/file" 'the boat'; exit_is 0; out_empty; check "-o" cmp -s "$T/plain" "$T/file"
check "ids without a token add no text" [ "$(wc -c <"$T/plain")" -lt 50 ]
printf 'the boat' >"$T/p"
run generate -m "$LLAMA" -n 60 --temp 1 --seed 3 -f "$T/p"; check "-f" cmp -s "$T/plain" "$T/out"
feed 'the boat' generate -m "$LLAMA" -n 60 --temp 1 --seed 3; check "standard input" cmp -s "$T/plain" "$T/out"

# a seed gives one text on any number of threads, another seed another
for seed in 0 1 9223372036854775807; do
    run generate -m "$QWEN" -n 40 --temp 1 --top-p 0.95 --seed $seed --json a; exit_is 0; ids_of >"$T/want"
    for t in 1 2 3; do run generate -m "$QWEN" -n 40 --temp 1 --top-p 0.95 --seed $seed --json -t $t a; ids_of >"$T/got"; check "seed $seed, $t threads" cmp -s "$T/want" "$T/got"; done
    cat "$T/want" >>"$T/seeds"
done
check "three seeds, three texts" [ "$(sort -u "$T/seeds" | wc -l)" -eq 3 ]
run generate -m "$QWEN" -n 20 --json a; ids_of >"$T/want"
for o in '--temp 0' '--temp 0 --seed 5' '--temp 0.0 --top-p 0.3' '--temp 1 --top-k 1' '--temp 1 --top-p 1e-9' '--temp 5e-324' '--temp 1 --min-p 0.999999'; do
    run generate -m "$QWEN" -n 20 --json $o a; ids_of >"$T/got"; check "greedy: $o" cmp -s "$T/want" "$T/got"
done
run generate -m "$QWEN" -n 20 --repeat-penalty 1e2 --json a; check "no token twice" [ "$(ids_of | tr ',' '\n' | sort | uniq -d | wc -l)" -eq 0 ]

# where it ends
run generate -m "$QWEN" -n 0 a; exit_is 0; out_empty
run generate -m "$QWEN" -n 0 --json a; exit_is 0; out_has '^{"text":"","token_ids":\[\],"finish_reason":"length"'
run generate -m "$QWEN" --ctx 1 --json a; exit_is 0; check "one token fits" [ "$(ids_of | tr ',' '\n' | wc -l)" -eq 1 ]
run generate -m "$QWEN" --ctx 30 --json a; exit_is 0; check "30 tokens fit" [ "$(ids_of | tr ',' '\n' | wc -l)" -eq 30 ]; out_has '"finish_reason":"length"'
run generate -m "$QWEN" -n 2147483647 --ctx 20 --json a; exit_is 0; out_has '"completion_tokens":20}'
run generate -m "$QWEN" -n 600 --json a; exit_is 0; check "no more than the window" [ "$(ids_of | tr ',' '\n' | wc -l)" -le 512 ]
run generate -m "$QWEN" --ctx 5 abcdefgh; fails_with 5 'the prompt has [0-9]* tokens, the context 5'
run generate -m "$LLAMA" '' -n 3 --json; exit_is 0; out_has '"prompt_tokens":1,'
run generate -m "$QWEN" '' -n 3; fails_with 5 'the prompt is empty'

# the text never has a stop string, and is what came before its first appearance
whole=$(cat "$T/plain")
i=1
while [ $i -le $((${#whole} - 2)) ]; do
    for n in 1 2 3; do
        stop=$(printf '%s' "$whole" | cut -c$i-$((i + n - 1)))
        [ -n "$stop" ] || continue
        run generate -m "$LLAMA" -n 60 --temp 1 --seed 3 --stop "$stop" --json 'the boat'; exit_is 0
        check "stop at \"$stop\"" [ "$(text_of)" = "${whole%%"$stop"*}" ]
        out_has '"finish_reason":"stop"'
    done
    i=$((i + 3))
done
run generate -m "$LLAMA" -n 60 --temp 1 --seed 3 --stop 'never there' --stop 'nor this' 'the boat'; check "no stop string, the whole text" cmp -s "$T/plain" "$T/out"
run generate -m "$LLAMA" --stop '' -n 3 a; fails_with 2 'stop string 1 is empty'
run generate -m "$LLAMA" --stop x --stop '' -n 3 a; fails_with 2 'stop string 2 is empty'

# logprobs
run generate -m "$QWEN" -n 2 --logprobs 3 --json a; exit_is 0
out_has '"logprobs":\[{"logprob":-[0-9.]*,"top":\[{"token_id":[0-9]*,"logprob":-[0-9.]*},{[^]]*},{[^]]*}\]},{"logprob"'
cp "$T/out" "$T/lp"; run predict -m "$QWEN" --top 3 --json a
check "those of predict" [ "$(grep -o '"logprob":[-0-9.]*' "$T/out" | tr '\n' ' ')" = "$(grep -o '"top":\[[^]]*' "$T/lp" | head -n 1 | grep -o '"logprob":[-0-9.]*' | tr '\n' ' ')" ]
run generate -m "$QWEN" -n 2 --logprobs 305 --json a; fails_with 2 'logprobs: 305'

# values that are none
for v in nan NaN inf -inf -1 1e999 '' x 0x10 101 '1 ' 1,5; do run generate -m "$QWEN" -n 2 --temp "$v" a; fails_with 2 'temp'; done
for v in 0 -0 nan 1.0000001 -1 0x1p-1; do run generate -m "$QWEN" -n 2 --temp 1 --top-p "$v" a; fails_with 2 'top-p'; done
for v in 1 nan -0.1 2; do run generate -m "$QWEN" -n 2 --temp 1 --min-p "$v" a; fails_with 2 'min-p'; done
for v in 0 nan -1 101; do run generate -m "$QWEN" -n 2 --repeat-penalty "$v" a; fails_with 2 'repeat'; done
for o in presence-penalty frequency-penalty; do run generate -m "$QWEN" -n 2 --$o nan a; fails_with 2 "$o"; done
for v in -1 1.5 99999999999 x ''; do run generate -m "$QWEN" -n "$v" a; fails_with 2 'max-tokens'; done
for v in -1 18446744073709551616 x; do run generate -m "$QWEN" --seed "$v" a; fails_with 2 'seed'; done
for v in 0 -1 99999999999999; do run generate -m "$QWEN" --ctx "$v" a; fails_with 2 'ctx'; done
run generate -m "$QWEN" --ctx 513 a; fails_with 2 "the model's window is 512"
run generate -m "$QWEN" --top-k 0 a; fails_with 2 'top-k'
run generate -m "$QWEN" a b; fails_with 2 'one text'
run generate -m "$QWEN" -f "$T"; fails_with 3 'is a directory'
run generate -m "$QWEN" -f "$T/none"; fails_with 3 'none'
head -c 3000 "$LATH" >"$T/binary"
run generate -m "$QWEN" -n 2 -f "$T/binary"; fails_with 5 'not valid UTF-8'
run generate -m "$MODEL" -n 2 a; fails_with 4 'no language model'
run generate -m "$T/none" a; fails_with 3 'none'
run generate -m "$QWEN" -n 2 --device gpu a; fails_with 4 'gpu'
run generate -m "$QWEN" -n 2 --precision int8 a; fails_with 4 'precision'
run generate -m "$QWEN" -n 2 -v a; exit_is 0; err_has 'tokens/s'

# a reader that went away, a full disk
{ "$LATH" generate -m "$QWEN" -n 300 a 2>"$T/err"; echo $? >"$T/rc"; } | true
rc=$(cat "$T/rc"); shown='generate into a closed pipe'
check "closed pipe: done before, or 7" [ "$rc" -eq 7 ] || [ "$rc" -eq 0 ]
if [ -w /dev/full ]; then
    "$LATH" generate -m "$QWEN" -n 3 a >/dev/full 2>"$T/err"; rc=$?
    shown='generate to a full disk'; exit_is 7; err_has 'cannot write'
fi

# with a real model: a signal in the middle of a text and of a prompt; nothing half-written stays
GEMMA=$REAL/gemma-3-270m-q4_k_m.gguf
if [ -f "$GEMMA" ]; then
    run generate -m "$GEMMA" -n 32 --json --precision exact 'The capital of France is'; exit_is 0
    check "the text of the reference" [ "$(text_of)" = ' the capital of the country of France. It is the largest city in France and the second largest city in Europe. It is located in the middle of the country' ]
    stopped() { # WHAT SECONDS ARGS...
        what=$1 seconds=$2
        shift 2
        "$LATH" generate -m "$GEMMA" "$@" </dev/null >"$T/out" 2>"$T/err" &
        pid=$!
        sleep "$seconds"
        kill -TERM $pid; wait $pid; rc=$?
        shown=$what; exit_is 130; err_has 'interrupted'
        check "$what: no file" [ -z "$(ls "$T" | grep '^stopped')" ]
    }
    stopped 'a text' 2 -n 30000 --ctx 32000 --temp 1 'Once upon a time'
    stopped 'a text into a file' 2 -n 30000 --ctx 32000 --temp 1 -o "$T/stopped" 'Once upon a time'
    seq 1 5000 >"$T/long"
    stopped 'a prompt' 2 -n 1 -f "$T/long" --json
    check "nothing is printed of it" [ ! -s "$T/out" ]
elif [ "${LATH_TEST_STRICT:-}" = 1 ]; then
    shown="$GEMMA"; fail "the real model is missing"
fi
finish
