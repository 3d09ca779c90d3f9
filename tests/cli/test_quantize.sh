# SPDX-License-Identifier: Apache-2.0
# test_quantize.sh: lath quantize. What is in the files is compared in tests/golden/test_quantize.c; here: messages, exit codes, what is left behind.
. "$2/cli/lib.sh"
M=$TESTS/golden/quantize/llama_blocks
F=$T/out.gguf

nothing_left() { check "nothing is left of the file" [ -z "$(ls -A "$T/d")" ]; }
# copy: a model directory to damage
copy() { rm -rf "$T/m"; cp -R "$M" "$T/m"; chmod -R u+w "$T/m"; }
mkdir "$T/d"

# a file, and what is said about it
run quantize -m "$M" -o "$F" --type q8_0; exit_is 0; out_empty; err_has 'out.gguf: llama, 22 tensors'
check "the file is there" [ -s "$F" ]
run quantize -m "$M" -o "$F" --type q8_0 -q; exit_is 0; out_empty; err_empty
run quantize -m "$M" -o "$F" --type q8_0 --json; exit_is 0; err_empty
out_has '^{"file":".*out.gguf","architecture":"llama","bytes":[0-9]*,"source_bytes":[0-9]*,"tensors":22,"other_types":0,"seconds":[0-9.e-]*}$'
check "bytes are those of the file" grep -q "\"bytes\":$(wc -c <"$F")," "$T/out"
run info -m "$F"; exit_is 0; out_has 'llama'
run quantize -m "$M" -o "$F" --type q4_k; exit_is 0; err_has '16 matrices'
run quantize -m "$M" -o "$F" --type q4_k -v; exit_is 0; err_has 'blk.0.attn_q.weight: Q5_0 instead of Q4_K: rows of 64'
run quantize -m "$M" -o "$F" --type q6_k -v; exit_is 0; err_has 'blk.1.ffn_down.weight: Q8_0 instead of Q6_K: rows of 32'
run quantize -m "$M" -o "$F" --type f16 --name 'A model'; exit_is 0
check "its name is in it" grep -q -a 'general.name.*A model' "$F"
cp "$F" "$T/file.gguf"
run quantize -m "$M" -o - --type f16 --name 'A model' -q; exit_is 0; check "a pipe has the same bytes" cmp -s "$T/out" "$T/file.gguf"

# wrong usage
run quantize -m "$M" --type q8_0; fails_with 2 '-o'
run quantize -m "$M" -o "$F"; fails_with 2 '--type'
run quantize -m "$M" -o "$F" --type q3; fails_with 2 'q3'
run quantize -m "$M" -o "$F" --type f16 more; fails_with 2 'more'
run quantize -o "$F" --type f16; fails_with 2 'model'

# models that there are not, or that cannot be written
run quantize -m "$T/none" -o "$T/d/x.gguf" --type f16; fails_with 3 'none'
run quantize -m "$T/file.gguf" -o "$T/d/x.gguf" --type f16; fails_with 4 'file.gguf'
run quantize -m "$MODEL" -o "$T/d/x.gguf" --type f16; fails_with 4 'model_type "bert"'
run quantize -m "$TESTS/golden/decoder/qwen2_second_layer_slides" -o "$T/d/x.gguf" --type f16; fails_with 4 'config.json: which layers slide'
run quantize -m "$TESTS/golden/gemma3_text/embedding_old" -o "$T/d/x.gguf" --type f16; fails_with 4 'Dense'
# other FROM TO: the model of golden/qwen3 with its tokenizer changed
other() {
    rm -rf "$T/m"; cp -R "$TESTS/golden/qwen3/embedding_old" "$T/m"; chmod -R u+w "$T/m"
    sed "s/$1/$2/" "$TESTS/golden/qwen3/embedding_old/tokenizer.json" >"$T/m/tokenizer.json"
}
other '"NFC"' '"NFKC"'; run quantize -m "$T/m" -o "$T/d/x.gguf" --type f16; fails_with 4 'tokenizer.json: line [0-9]*: normalizer "NFKC"'
other 'p{N}|' 'p{N}{1,2}|'; run quantize -m "$T/m" -o "$T/d/x.gguf" --type f16; fails_with 4 'no name is known for the split pattern'
# patch BYTES: the first number of the weights, which is of a matrix
patch() {
    copy; at=$((8 + $(od -An -t u8 -N 8 "$M/model.safetensors")))
    printf "$1" | dd of="$T/m/model.safetensors" bs=1 seek="$at" conv=notrunc 2>/dev/null
}
patch '\300\177'; run quantize -m "$T/m" -o "$T/d/x.gguf" --type q8_0; fails_with 3 'model.safetensors: tensor ".*": a number is not finite'
patch '\200\111'; run quantize -m "$T/m" -o "$T/d/x.gguf" --type f16; fails_with 3 'too large for F16'
run quantize -m "$T/m" -o "$T/d/x.gguf" --type bf16; exit_is 0; rm -f "$T/d/x.gguf"
nothing_left

# where nothing can be written
run quantize -m "$M" -o "$T/d/no/x.gguf" --type f16; fails_with 7 'no/x.gguf'
run quantize -m "$M" -o "$T/d" --type f16; fails_with 7 'd: is a directory'
[ ! -w /dev/full ] || { run quantize -m "$M" -o /dev/full --type f16; fails_with 7 '/dev/full'; }
# a limit of file sizes that the header passes and the data does not: what was there stays
echo old >"$T/d/x.gguf"
shown="ulimit -f; lath quantize"; (ulimit -f 64; "$LATH" quantize -m "$M" -o "$T/d/x.gguf" --type f32) >"$T/out" 2>"$T/err"; rc=$?
fails_with 7 'x.gguf'
check "the old file stays" [ "$(cat "$T/d/x.gguf")" = old ]; rm "$T/d/x.gguf"
nothing_left
finish
