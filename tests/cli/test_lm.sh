# SPDX-License-Identifier: Apache-2.0
# test_lm.sh: `lath predict`, `lath logits`, `lath perplexity`: numbers against the reference implementation (golden/lm/cases.txt), where a PROMPT comes
# from, what every option does, what is refused.
. "$2/cli/lib.sh"
G=$TESTS/golden
CASES=$G/lm/cases.txt
TEXT=$G/lm/text.txt
QWEN=$G/rerank/qwen3_reranker_card # no beginning token, 304 rows
LLAMA=$G/decoder/llama2            # a beginning token, 101 rows, 39 of them in the vocabulary
TAB=$(printf '\t')

# near A B TOLERANCE
near() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d <= t && d >= -t) }'; }
# key NAME: the number of a JSON member in the output
key() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p" "$T/out" | head -n 1; }
# floats FILE FIRST N: numbers of an npy file
floats() { od -An -v -tf4 -j $((128 + 4 * $2)) -N $((4 * $3)) "$1" | tr -s ' \n' '\n\n' | sed '/^$/d'; }
npy_shape() { head -c 128 "$1" | tail -c 118 | sed -n "s/.*'shape': (\([^)]*\)).*/\1/p"; }
npy_bytes() { check "$1 has $2 bytes" [ "$(wc -c <"$1")" -eq "$2" ]; }

# the next tokens of the reference
seen=0
while IFS="$TAB" read -r kind model prompt rank id logprob text; do
    [ "$kind" = predict ] || continue
    if [ "$rank" = 0 ]; then run predict -m "$G/$model" --precision exact --json "$prompt"; exit_is 0; err_empty; fi
    grep -o '{"token_id":[^}]*}' "$T/out" | sed -n "$((rank + 1))p" >"$T/one"
    check "$model, $prompt: token $rank is $id" grep -q "{\"token_id\":$id," "$T/one"
    check "its text is $text" grep -qF "\"token\":$text," "$T/one"
    check "its logprob is $logprob" near "$(sed 's/.*"logprob":\([-0-9.e]*\)}/\1/' "$T/one")" "$logprob" 1e-5
    check "prob is exp of it" near "$(sed 's/.*"prob":\([-0-9.e]*\),.*/\1/' "$T/one")" "$(awk -v l="$logprob" 'BEGIN { print exp(l) }')" 1e-5
    seen=$((seen + 1))
done <"$CASES"
check "30 tokens were compared" [ "$seen" -eq 30 ]

# logits of the reference
seen=0 last=
while IFS="$TAB" read -r kind model prompt position n id value; do
    [ "$kind" = logit ] || continue
    vocab=304
    [ "$model" = decoder/llama2 ] && vocab=101
    if [ "$last" != "$model $prompt" ]; then
        run logits -m "$G/$model" --precision exact --all-positions -o "$T/all.npy" --json "$prompt"; exit_is 0
        out_is "{\"shape\":[$n,$vocab],\"file\":\"$T/all.npy\"}\n"
        check "shape" [ "$(npy_shape "$T/all.npy")" = "$n, $vocab" ]
        npy_bytes "$T/all.npy" $((128 + 4 * n * vocab))
        last="$model $prompt"
    fi
    check "$model, $prompt: logit $position, $id" near "$(floats "$T/all.npy" $((position * vocab + id)) 1)" "$value" 1e-4
    seen=$((seen + 1))
done <"$CASES"
check "logits were compared" [ "$seen" -gt 60 ]

# perplexity of the reference, under every way to cut the text
seen=0
while IFS="$TAB" read -r kind model ctx stride tokens windows nll; do
    [ "$kind" = perplexity ] || continue
    s="--stride $stride"
    [ "$stride" = 0 ] && s=
    run perplexity -q -m "$G/$model" -f "$TEXT" --ctx "$ctx" $s --precision exact --json; exit_is 0; err_empty
    out_has "^{\"perplexity\":[0-9.]*,\"tokens\":$tokens,\"nll\":[0-9.]*,\"windows\":$windows}\$"
    check "$model, $ctx, $stride: nll" near "$(key nll)" "$nll" 2e-5
    check "perplexity is exp of it" near "$(key perplexity)" "$(awk -v n="$(key nll)" 'BEGIN { printf "%.9f", exp(n) }')" 1e-6
    seen=$((seen + 1))
done <"$CASES"
check "22 perplexities were compared" [ "$seen" -eq 22 ]

# a PROMPT: argument, file, standard input; whole, but for a byte order mark
run predict -m "$LLAMA" --json 'the boat'; exit_is 0; cp "$T/out" "$T/want"
printf 'the boat' >"$T/p"; run predict -m "$LLAMA" --json -f "$T/p"; check "-f is the same" cmp -s "$T/want" "$T/out"
feed 'the boat' predict -m "$LLAMA" --json; check "standard input is the same" cmp -s "$T/want" "$T/out"
feed 'the boat' predict -m "$LLAMA" --json -f -; check "-f - is the same" cmp -s "$T/want" "$T/out"
feed '\357\273\277the boat' predict -m "$LLAMA" --json; check "a byte order mark is skipped" cmp -s "$T/want" "$T/out"
feed 'the boat\n' predict -m "$LLAMA" --json; check "a last newline is text" [ "$(cat "$T/want")" != "$(cat "$T/out")" ]
run predict -m "$QWEN" --json "$(printf 'the\nboat\r\n.')"; cp "$T/out" "$T/want"
feed 'the\nboat\r\n.' predict -m "$QWEN" --json; check "lines are one text" cmp -s "$T/want" "$T/out"
head -c 700000 /dev/zero | tr '\0' 'a' >"$T/long"
run predict -m "$QWEN" -f "$T/long"; fails_with 5 "tokens, the model's window 512"
run predict -m "$QWEN" a b; fails_with 2 'one text'
run predict -m "$QWEN" -f "$T/p" -f "$T/p"; fails_with 2 'one text'
run predict -m "$QWEN" -f "$T/p" a; fails_with 2 'arguments'
run predict -m "$QWEN" -f "$T"; fails_with 3 'is a directory'
run predict -m "$QWEN" -f "$T/nothing"; fails_with 3 'nothing'
feed 'good\nb\377d\n' predict -m "$QWEN"; fails_with 5 'standard input: line 2: not valid UTF-8 at byte 2'
run predict -m "$QWEN" "$(printf 'b\377d')"; fails_with 5 'argument: line 1: not valid UTF-8 at byte 2'
feed 'b\357\277\275d' predict -m "$QWEN" --json; cp "$T/out" "$T/want"
feed 'b\377d' predict -m "$QWEN" --json --lossy; exit_is 0; check "--lossy" cmp -s "$T/want" "$T/out"
feed 'a\000b' predict -m "$QWEN" --json; exit_is 0; out_has '"prompt_tokens":3}'

# an empty one is the beginning token, where there is one
run predict -m "$LLAMA" --json ''; exit_is 0; out_has '"prompt_tokens":1}'
run logits -m "$LLAMA" '' -o "$T/bos.npy"; run logits -m "$LLAMA" --ids 1 -o "$T/one.npy"; check "it is that token" cmp -s "$T/bos.npy" "$T/one.npy"
run predict -m "$QWEN" ''; fails_with 5 'the prompt is empty'
feed '' logits -m "$QWEN" -o "$T/x.npy"; fails_with 5 'the prompt is empty'; check "no file" [ ! -e "$T/x.npy" ]

# --top, --all-positions
run predict -m "$QWEN" --top 1 --json 'a'; exit_is 0; check "one token" [ "$(grep -o token_id "$T/out" | wc -l)" -eq 1 ]
run predict -m "$QWEN" --top 304 --json 'a'; exit_is 0; check "all tokens" [ "$(grep -o '"token_id":[0-9]*' "$T/out" | sort -u | wc -l)" -eq 304 ]
check "their probabilities come to 1" near "$(grep -o '"prob":[-0-9.e]*' "$T/out" | awk -F: '{ s += $2 } END { print s }')" 1 1e-5
grep -o '"logprob":[-0-9.e]*' "$T/out" | cut -d: -f2 >"$T/sorted"; sort -g -r "$T/sorted" >"$T/want"; check "best first" cmp -s "$T/sorted" "$T/want"
run predict -m "$QWEN" --top 305 'a'; fails_with 2 'the vocabulary has 304'
run predict -m "$QWEN" --top 0 'a'; fails_with 2 'top'
run predict -m "$QWEN" --json 'the boat'; cp "$T/out" "$T/want"
run predict -m "$QWEN" --json --all-positions 'the boat'; exit_is 0
check "it ends as without" [ "$(tail -n 1 "$T/out" | sed 's/.*\],"predictions"/{"predictions"/')" = "$(cat "$T/want")" ]
check "a position a token" [ "$(grep -c '"position":' "$T/out")" -eq "$(sed 's/.*"prompt_tokens":\([0-9]*\)}/\1/' "$T/want")" ]
run predict -m "$QWEN" 'the boat'; exit_is 0; out_lines 5; out_has '^  1  0\.[0-9]*  *242  "'
run predict -m "$QWEN" --all-positions --top 2 'aa'; exit_is 0; out_lines 7; out_has '^behind token 1, 97 "a"$'
run predict -m "$LLAMA" --top 101 --json 'a'; exit_is 0; out_has '"token_id":100,"token":null'

# logits: to a file, to a pipe, of ids
run logits -m "$QWEN" 'the boat' -o "$T/a.npy"; exit_is 0; out_empty; err_empty; npy_bytes "$T/a.npy" $((128 + 4 * 304))
check "one row" [ "$(npy_shape "$T/a.npy")" = '1, 304' ]
"$LATH" logits -m "$QWEN" 'the boat' | cat >"$T/b.npy"; check "a pipe gets the same bytes" cmp -s "$T/a.npy" "$T/b.npy"
ids=$("$LATH" tokenize -m "$QWEN" 'the boat' | tr ' ' ',')
run logits -m "$QWEN" --ids "$ids" -o "$T/b.npy"; exit_is 0; check "ids give the same" cmp -s "$T/a.npy" "$T/b.npy"
run logits -m "$QWEN" --ids " $(echo "$ids" | sed 's/,/ , /g') " -o "$T/b.npy"; check "blanks do not matter" cmp -s "$T/a.npy" "$T/b.npy"
run logits -m "$QWEN" --all-positions 'the boat' -o "$T/all.npy"
floats "$T/all.npy" 0 99999 | tail -n 304 >"$T/x"; floats "$T/a.npy" 0 304 >"$T/y"; check "the last row is the last row" cmp -s "$T/x" "$T/y"
for bad in 304 2147483647 2147483648 99999999999999999999 -1; do
    run logits -m "$QWEN" --ids "1,$bad" -o "$T/no.npy"; fails_with 5 'ids: '
done
for bad in '' , 1,,2 1, a 1,a 1.5 0x1; do
    run logits -m "$QWEN" --ids "$bad" -o "$T/no.npy"; fails_with 2 'want whole numbers'
done
run logits -m "$QWEN" --ids 1 text -o "$T/no.npy"; fails_with 2 'instead of a PROMPT'
run logits -m "$QWEN" --json a; fails_with 2 'name a file with -o'
run logits -m "$QWEN" --json -o - a; fails_with 2 'name a file with -o'
run logits -m "$QWEN" a -o "$T/none/x.npy"; fails_with 7 'none'
check "nothing was left" [ -z "$(find "$T" -name '*no.npy*')" ]
if [ -w /dev/full ]; then
    "$LATH" logits -m "$QWEN" a >/dev/full 2>"$T/err"; rc=$?
    shown='logits to a full disk'; exit_is 7
fi

# --ctx
run predict -m "$QWEN" --ctx 8 'the boat'; exit_is 0
n=$("$LATH" tokenize -m "$QWEN" 'the boat' | wc -w)
run predict -m "$QWEN" --ctx "$n" 'the boat'; exit_is 0
run predict -m "$QWEN" --ctx $((n - 1)) 'the boat'; fails_with 5 "the prompt has $n tokens, --ctx is $((n - 1))"
run logits -m "$QWEN" --ctx $((n - 1)) 'the boat' -o "$T/no.npy"; fails_with 5 'tokens'
run predict -m "$QWEN" --ctx 513 a; fails_with 2 "the model's window is 512"
run predict -m "$QWEN" --ctx 99999999999 a; fails_with 2 'ctx'
run predict -m "$QWEN" --ctx 0 a; fails_with 2 'ctx'
run logits -m "$QWEN" --ids "$(seq -s, 1 300),$(seq -s, 1 213)" -o "$T/no.npy"; fails_with 5 "513 tokens, the model's window 512"

# perplexity: text, options, what is refused
run perplexity -m "$LLAMA" -f "$TEXT"; exit_is 0; err_empty; out_has '^perplexity [0-9.]* +- [0-9.]*  (278 tokens in 1 window, nll 7.7030[0-9]*)$'
run perplexity -m "$LLAMA" -f "$TEXT" --ctx 100; exit_is 0; err_has 'the last 79 of 279 tokens make no whole chunk of 100'
run perplexity -q -m "$LLAMA" -f "$TEXT" --ctx 100; exit_is 0; err_empty
run perplexity -m "$LLAMA" -f "$TEXT" --ctx 100 --stride 50; exit_is 0; err_empty; cp "$T/out" "$T/want"
INPUT=$TEXT; run perplexity -m "$LLAMA" --ctx 100 --stride 50; unset INPUT; check "standard input is the same" cmp -s "$T/want" "$T/out"
run perplexity -m "$LLAMA" -f "$TEXT" --ctx 100 --stride 50 -o "$T/o"; out_empty; check "-o is the same" cmp -s "$T/want" "$T/o"
run perplexity -m "$LLAMA" "$TEXT"; fails_with 2 'perplexity is of a file'
feed '' perplexity -m "$LLAMA"; fails_with 5 'the text has 1 token'
feed 'a' perplexity -m "$QWEN"; fails_with 5 'the text has 1 token'
feed '' perplexity -m "$QWEN"; fails_with 5 'is empty'
run perplexity -m "$LLAMA" -f "$TEXT" --ctx 1; fails_with 2 'want 2 to 512'
run perplexity -m "$LLAMA" -f "$TEXT" --ctx 513; fails_with 2 'want 2 to 512'
run perplexity -m "$LLAMA" -f "$TEXT" --ctx 32 --stride 33; fails_with 2 'stride: 33, want 1 to 32'
run perplexity -m "$LLAMA" -f "$TEXT" --stride 0; fails_with 2 'stride'
run perplexity -m "$LLAMA" -f "$T"; fails_with 3 'is a directory'
feed 'a\377' perplexity -m "$LLAMA"; fails_with 5 'line 1: not valid UTF-8'

# options of every command; threads change no bit
for c in predict logits perplexity; do
    case $c in
    predict) a="--all-positions --json" ;;
    logits) a="--all-positions" ;;
    perplexity) a="--ctx 64 --stride 32 --json" ;;
    esac
    run $c -m "$LLAMA" -f "$TEXT" $a -t 1; exit_is 0; cp "$T/out" "$T/want"
    for t in 2 3; do run $c -m "$LLAMA" -f "$TEXT" $a -t $t; check "$c: $t threads change nothing" cmp -s "$T/want" "$T/out"; done
    run $c -m "$LLAMA" -f "$TEXT" $a --isa ref --device cpu; exit_is 0
    run $c -m "$LLAMA" -f "$TEXT" $a --precision exact; exit_is 0; check "$c: exact is auto for float weights" cmp -s "$T/want" "$T/out"
    run $c -m "$LLAMA" -f "$TEXT" $a -v -t 1; exit_is 0; err_has 'tokens/s'; check "$c: -v changes nothing" cmp -s "$T/want" "$T/out"
    run $c -m "$LLAMA" -f "$TEXT" $a --precision int8; fails_with 4 'precision'
    run $c -m "$LLAMA" -f "$TEXT" $a --device gpu; fails_with 4 'gpu'
    run $c -m "$MODEL" -f "$TEXT" $a; fails_with 4 'no language model\|is no'
    run $c -m "$T/nothing" -f "$TEXT" $a; fails_with 3 'nothing'
    run $c -f "$TEXT" $a; fails_with 2 'model'
    run $c -m "$LLAMA" -f "$TEXT" $a --field x; fails_with 2 'not an option'
done
# info of a language model
run info -m "$LLAMA"; exit_is 0; err_empty
out_has '^attention  *4 heads of keys and values, 6 features$'; out_has '^output head  *a matrix of its own, 9.7 kB$'
out_has '^context  *512 of 512 tokens: '; out_has '^a token  *384 B of keys and values$'; out_has '^conversation  *no chat template; a text ends at 2 "</s>"$'
run info -m "$LLAMA" --ctx 100 --json; exit_is 0
out_has '"kv_heads":4,"head_dim":6,"output_head":{"tied":false,"bytes":9696},"session":{"ctx":100,"most":512,"kv_bytes":43008,'
out_has '"token_bytes":384,"far_token_bytes":384,"window_layers":0,"sliding_window":0},"chat_template":false,"end_ids":\[2\],"products":"f32"'
out_has '"dtypes":{"F32":{"tensors":21,'
run info -m "$G/decoder/mistral_window" --json --kv f32; exit_is 0; out_has '"token_bytes":128,"far_token_bytes":0,'
run info -m "$G/decoder/mistral_window" --json; exit_is 0; out_has '"token_bytes":64,"far_token_bytes":0,"window_layers":2,"sliding_window":9}'
run info -m "$G/decoder/mistral_window"; exit_is 0; out_has 'beyond the sliding window 0 B$'; out_has '; 2 layers see 9 tokens$'
run info -m "$G/decoder/llama3_scaling_tied"; exit_is 0; out_has '^output head  *the embeddings (tied)'
run info -m "$G/decoder/qwen3_5_with_images"; exit_is 0; err_empty
out_has '^state  *3.1 kB in 2 layers, 28.2 kB for 8 snapshots$'; out_has '^not used  *21 of the vision tower, 15 of the MTP head$'
run info -m "$G/decoder/qwen3_5_with_images" --json; exit_is 0; out_has '"recurrent_layers":2,"recurrent_bytes":3072,"snapshots":8,"snapshot_bytes":28160'
out_has '"unused_tensors":36,"unused":{"vision tower":21,"MTP head":15}'
run info -m "$G/decoder/qwen3_moe"; exit_is 0; out_has '^experts  *7 a layer, width 11, a token goes through 3$'
run info -m "$G/decoder/qwen3_moe" --json; exit_is 0; out_has '"experts":7,"experts_per_token":3,"d_expert":11,'
run info -m "$LLAMA" --ctx 513; fails_with 2 'ctx: 513'
run info -m "$MODEL" --ctx 5; fails_with 4 'no language model'
run info -m "$MODEL" --json; exit_is 0; out_lacks 'session'

# the real model: next tokens of the reference (golden/real), perplexity of llama.cpp (tools/ref/llamacpp_perplexity.py)
GEMMA=$REAL/gemma-3-270m-q4_k_m.gguf
if [ -f "$GEMMA" ]; then
    run predict -m "$GEMMA" --precision exact --json 'The capital of France is'; exit_is 0
    check "ids" [ "$(grep -o '"token_id":[0-9]*' "$T/out" | cut -d: -f2 | tr '\n' ' ')" = '506 496 9079 886 3224 ' ]
    check "texts" [ "$(grep -o '"token":"[^"]*"' "$T/out" | cut -d'"' -f4 | tr '\n' '|')" = ' the| a| Paris| one| known|' ]
    check "probabilities" [ "$(grep -o '"prob":[0-9.]*' "$T/out" | awk -F: '{ printf "%.4f ", $2 }')" = '0.1913 0.1110 0.0840 0.0719 0.0517 ' ]
    head -c 6000 "$TESTS/../examples/data/passages.txt" >"$T/passages"
    # floats beside its f32 weights, 8-bit activations beside its own on the file as it is
    for p in 'exact 24.592255' 'auto 24.9093'; do
        run perplexity -q -m "$GEMMA" -f "$T/passages" --ctx 512 --precision "${p% *}" --json; exit_is 0; out_has '"tokens":510,.*"windows":2}$'
        check "within 0.5 % of llama.cpp's" near "$(key perplexity)" "${p#* }" 0.122
    done
elif [ "${LATH_TEST_STRICT:-}" = 1 ]; then
    shown="$GEMMA"; fail "the real model is missing"
fi

"$LATH" predict -m "$LLAMA" --all-positions -f "$TEXT" --json 2>"$T/err" | head -c 10 >/dev/null
check "a closed pipe is no crash" [ -z "$(grep -v 'cannot write' "$T/err")" ]
finish
