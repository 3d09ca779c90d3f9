# SPDX-License-Identifier: Apache-2.0
# test_bench.sh: `lath bench`: its rows and their arithmetic (how fast anything is, is not tested), what is refused.
. "$2/cli/lib.sh"
G=$TESTS/golden
LLAMA=$G/decoder/llama2
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a / b - 1; exit !(a > 0 && b > 0 && d < 1e-6 && d > -1e-6) }'; }
# of ROW KEY: a number of that row
of() { sed -n "s/.*\"name\":\"$1\".*\"$2\":\([-0-9.e+]*\).*/\1/p" "$T/out"; }

run bench -m "$LLAMA" --rounds 2 --json; exit_is 0; err_empty
check "rows" [ "$(grep -o '"name":"[a-z]*"' "$T/out" | tr '\n' ' ')" = '"name":"prefill" "name":"decode" ' ]
out_has '^{"results":\[{"name":"prefill","tokens":512,'; out_has '"rounds":2}\],"isa":"[a-z0-9]*","threads":[0-9]*}$'
# 8496 weights of two layers, 2424 of the head, two layers of 4 heads of 6 features, 512 tokens that see 131328
check "flops of a prompt" near "$(awk -v r="$(of prefill gflops)" -v t="$(of prefill tokens_per_second)" 'BEGIN { printf "%.3f", r / t * 512 * 1e9 }')" \
    $((2 * 512 * 8496 + 2 * 2424 + 4 * 24 * 2 * 131328))
# f32 weights of the layers and of the head; keys and values (2 x 24 x 4 bytes a layer) of 2 to 129 tokens
check "bytes of a step" [ "$(of decode bytes_per_token)" -eq $(((8496 + 2424) * 4 + 192 * 2 * (129 * 130 / 2 - 1) / 128)) ]
check "GB/s" near "$(of decode gb_per_second)" "$(awk -v t="$(of decode tokens_per_second)" -v b="$(of decode bytes_per_token)" 'BEGIN { printf "%.12f", t * b / 1e9 }')"
for k in share peak_gflops; do check "prefill has $k" awk -v v="$(of prefill $k)" 'BEGIN { exit !(v > 0) }'; done
for k in share read_gb_per_second; do check "decode has $k" awk -v v="$(of decode $k)" 'BEGIN { exit !(v > 0) }'; done

# of 7 experts a token goes through 3: bf16 weights of attention, router and 3 experts in two layers, head, keys and values of 48 bytes a layer
run bench -m "$G/decoder/qwen3_moe" --rounds 1 --prefill 0 --json; exit_is 0
check "experts that are not asked are not read" [ "$(of decode bytes_per_token)" -eq $((2 * (2880 + 280 + 3 * 1320) + 4040 + 48 * 2 * (129 * 130 / 2 - 1) / 128)) ]

run bench -m "$LLAMA" --rounds 1 --prefill 7 --decode 0; exit_is 0; err_empty; out_lines 1
out_has '^prefill  *7 tokens  *[0-9.]* tokens/s  *[0-9]* Gflop/s, [0-9]* % of [0-9]* Gflop/s peak$'
run bench -m "$G/decoder/mistral_window" --rounds 1 --prefill 0 --decode 20; exit_is 0; out_lines 1
out_has '^decode  *20 tokens  *[0-9.]* tokens/s  *[0-9.]* GB/s ([0-9.]* MB a token), [0-9]* % of [0-9.]* GB/s read bandwidth$'
run bench -m "$MODEL" --rounds 1 --json; exit_is 0; err_empty; out_has '^{"results":\[{"name":"embed","tokens":640,'
run bench -m "$MODEL" --rounds 1 -o "$T/o" -t 1 --isa ref; exit_is 0; out_empty; check "-o" grep -q '^embed  *640 tokens ' "$T/o"
run bench -m "$LLAMA" --rounds 1 --prefill 3 --decode 3 --precision exact --device cpu -q; exit_is 0; err_empty

run bench -m "$LLAMA" text; fails_with 2 'takes no arguments'
run bench -m "$LLAMA" --prefill 513; fails_with 2 "prefill: 513, the model's window is 512"
run bench -m "$LLAMA" --decode 512; fails_with 2 "decode: 512, the model's window is 512"
run bench -m "$LLAMA" --prefill 0 --decode 0; fails_with 2 'nothing to measure'
run bench -m "$LLAMA" --rounds 0; fails_with 2 'rounds'
run bench -m "$LLAMA" --prefill -1; fails_with 2 'prefill'
run bench -m "$MODEL" --prefill 5; fails_with 4 'no language model'
run bench -m "$G/rerank/bert_msmarco"; fails_with 4 'no language model'
run bench -m "$T/none"; fails_with 3 'none'
run bench; fails_with 2 'model'
run bench -m "$LLAMA" --device gpu; fails_with 4 'gpu'
finish
