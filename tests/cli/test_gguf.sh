# SPDX-License-Identifier: Apache-2.0
# test_gguf.sh: the tokenizer of a GGUF file. Expected ids are those of the reference implementation for the same tokenizer (golden/qwen3).
. "$2/cli/lib.sh"
G=$TESTS/golden/gguf/qwen2.gguf
E=$TESTS/golden/qwen3/embedding_old/expected.json

# reference TEXT: the ids of expected.json, blanks between
reference() { sed -n "s/.*{\"text\": \"$1\", \"ids\": \[\([0-9, ]*\)\].*/\1/p" "$E" | head -n 1 | tr -d ','; }
n=0
for text in 'The green river runs.' 'water' 'Small houses by the old river, 12 miles.'; do
    want=$(reference "$text"); [ -n "$want" ] || continue
    n=$((n + 1))
    run tokenize -m "$G" "$text"; exit_is 0; err_empty
    check "ids of \"$text\"" [ "$(cat "$T/out")" = "$want" ]
    run tokenize -m "$G" --decode -f "$T/out"
done
check "texts were compared" [ "$n" -ge 2 ]
run tokenize -m "$G" --no-special water; check "without the end token" [ "$(cat "$T/out") 299" = "$(reference water)" ]

# what cannot be used
head -c 3000 "$G" >"$T/cut.gguf"; run tokenize -m "$T/cut.gguf" x; fails_with 3 'cut.gguf'
printf 'GGUF' >"$T/short.gguf"; run tokenize -m "$T/short.gguf" x; fails_with 3 'short.gguf'
: >"$T/empty.gguf"; run tokenize -m "$T/empty.gguf" x; fails_with 3 'empty.gguf'
run tokenize -m "$TESTS/fuzz/corpus/fuzz_gguf/kinds.gguf" x; fails_with 3 'no tokenizer in it'
run tokenize -m "$T/none.gguf" x; fails_with 3 'none.gguf'
run embed -m "$G" x; fails_with 3 'is not there'

# a model with delta nets: the block that predicts further tokens is not read, and that is said
run info -m "$TESTS/golden/gguf/qwen3_5_moe_with_images/model.gguf"; exit_is 0; err_empty
out_has '^architecture  *qwen3_5_moe_text$'; out_has '77 tensors (20 unused)'; out_has '^not used  *20 of the MTP head$'

# whole models: as any other
L=$TESTS/golden/gguf/llama3_scaling_tied/model.gguf
B=$TESTS/golden/gguf_embed/bert/mean_norm_gelu/model.gguf
run info -m "$L"; exit_is 0; err_empty; out_has '^architecture  *llama$'; out_has '^kind  *language model (LlamaForCausalLM)$'; out_has '(0 unused)'
run info -m "$L" --json --tensors; exit_is 0
for m in '"architecture":"llama"' '"layers":2' '"weights_dtype":"F32"' '"dtypes":{"F32":{"tensors":' '"name":"rope_freqs.weight"'; do out_has "$m"; done
run info -m "$TESTS/golden/gguf/types_of_256/model.gguf"; exit_is 0
for t in Q2_K Q3_K Q4_K Q5_K Q6_K Q8_0 IQ4_XS F32; do out_has "$t  *[0-9][0-9]* tensors, "; done
run embed -q -m "$GOLDEN/mean_norm_gelu" 'The green river runs.' water; cp "$T/out" "$T/want"
run embed -q -m "$B" 'The green river runs.' water; exit_is 0; err_empty
check "the same vectors as from the directory" cmp -s "$T/want" "$T/out"
run generate -m "$L" -n 3 --temp 0 ab; exit_is 0
mkdir "$T/models"; cp "$B" "$T/models/one.gguf"
LATH_MODELS=$T/models; export LATH_MODELS
run embed -q -m one 'The green river runs.' water; check "by its name" cmp -s "$T/want" "$T/out"
run embed -q -m org/one.gguf 'The green river runs.' water; check "by its file name" cmp -s "$T/want" "$T/out"
unset LATH_MODELS
mkdir "$T/folder"; cp "$B" "$T/folder/q8.gguf"; cp "$B" "$T/folder/mmproj-f16.gguf"; : >"$T/folder/x-00002-of-00002.gguf"
run embed -q -m "$T/folder" 'The green river runs.' water; check "the one in a folder" cmp -s "$T/want" "$T/out"
cp "$B" "$T/folder/x-00001-of-00002.gguf"; run embed -m "$T/folder" x; fails_with 3 'folder: 2 GGUF models are in it; name one of the files'

# refused
head -c 20000 "$L" >"$T/cut.gguf"; run info -m "$T/cut.gguf"; fails_with 3 'cut.gguf'
cp "$B" "$T/p-00001-of-00002.gguf"; run info -m "$T/p-00002-of-00002.gguf"; fails_with 3 'p-00002-of-00002.gguf'
sed 's/llama.block_count/llama.block_coumt/' "$L" >"$T/key.gguf"; run info -m "$T/key.gguf"; fails_with 4 'llama.block_coumt'
sed 's/general.architecture/general.architectune/' "$L" >"$T/arch.gguf"; run info -m "$T/arch.gguf"; fails_with 3 'general.architecture'
sed 's/blk.1.ffn_up.weight/blk.1.ffn_op.weight/' "$L" >"$T/lack.gguf"; run embed -m "$T/lack.gguf" x; fails_with 3 'no tensor "blk.1.ffn_up.weight"'
finish
