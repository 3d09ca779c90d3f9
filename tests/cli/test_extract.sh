# SPDX-License-Identifier: Apache-2.0
# test_extract.sh: lath extract and what is done with its indexes: info, verify, walk, predict. What is in an index is compared in
# tests/golden/test_vindex_models.c; here: messages, exit codes, shapes, full disks, processes that are killed. LATH_KILLS: how often (8).
. "$2/cli/lib.sh"
M=$TESTS/golden/decoder/qwen3_bias_untied
X=$T/x

# an index, and what is said about it
run extract -m "$M" -o "$X" --dtype f16; exit_is 0; out_empty; err_has 'x: level inference, 2 layers, 54 features in F16'
check "the unfinished one is gone" [ ! -e "$X.part" ]
check "nothing of the work is left" [ ! -e "$X/progress.jsonl" ]
run extract -m "$M" -o "$X"; fails_with 2 'x: is there already'
run extract -m "$M" -o "$T/j" --json --level all --dtype f32; exit_is 0; err_empty
out_has '^{"index":".*/j","level":"all","dtype":"F32","layers":2,"features":54,"bytes":[0-9]*,"kept_bytes":0,"seconds":[0-9.e-]*}$'
mkdir "$T/empty"
run extract -m "$M" -o "$T/empty" -q --level browse; exit_is 0; err_empty

# it is a model
run predict -m "$M" --json "the cat"; cp "$T/out" "$T/dense"
# what is made of the model's own walk is closed before the model
for spec in dense cached 0=dense,1=highway 0=cached,1=dense; do run predict -q -m "$T/j" --ffn "$spec" "the cat"; exit_is 0; done
run predict -q -m "$T/j" --ffn sparse:2 "the cat"; fails_with 4 'layer 0 .*not in memory'
run predict -q -m "$T/j" --ffn 0=dense,1=sparse:2 "the cat"; fails_with 4 'layer 1 .*not in memory'
run predict -m "$T/j" --json "the cat"; exit_is 0; check "the same tokens" [ "$(grep -o '"token_id":[0-9]*' "$T/out")" = "$(grep -o '"token_id":[0-9]*' "$T/dense")" ]
run tokenize -m "$X" "the cat"; cp "$T/out" "$T/ids"; run tokenize -m "$M" "the cat"; check "the same ids" cmp -s "$T/out" "$T/ids"
run info -m "$X"; exit_is 0; out_has '^index  *level inference of qwen3_bias_untied'; out_has '^never read  *6 FFN tensors of the model, 11.7 kB'; out_has '^saved  *5.8 kB'; out_has 'qwen3'
run info -m "$X" --json; exit_is 0; out_has '"index":{"level":"inference","dtype":"F16",'; out_has '"never_read_tensors":6,"never_read_bytes":11664,"saved_bytes":5832}'
run info -m "$T/empty"; exit_is 0; out_has '^index  *level browse'
run info -m "$T/empty" --json; exit_is 0; out_has '"level":"browse"'
run generate -m "$T/empty" "the cat" -n 2; fails_with 4 'empty: an index of level "browse" runs no model: .*--level inference'

# of a GGUF file
run quantize -m "$TESTS/golden/decoder/llama_linear_biases" -o "$T/m.gguf" --type f32 -q; exit_is 0
run extract -m "$T/m.gguf" -o "$T/g" -q --level all; exit_is 0
run generate -m "$T/m.gguf" "the cat" -n 4; cp "$T/out" "$T/dense"
run generate -m "$T/g" "the cat" -n 4; exit_is 0; check "the same text" cmp -s "$T/out" "$T/dense"
run tokenize -m "$T/m.gguf" "the cat"; cp "$T/out" "$T/ids"; run tokenize -m "$T/g" "the cat"; check "the same ids of keys" cmp -s "$T/out" "$T/ids"
run info -m "$T/g"; exit_is 0; out_has '^index  *level all of m.gguf'
run walk -m "$T/m.gguf" --index "$T/g" "the cat"; exit_is 0

# walk
run walk -m "$M" --index "$X" "the cat" --layers 1 --top 3; exit_is 0; out_has '^layer 1$'; out_lacks '^layer 0$'; out_has '^next token'
run walk -m "$X" "the cat" --json; exit_is 0
out_has '^{"layers":\[{"layer":0,"features":\[{"feature":[0-9]*,"gate":[0-9.e-]*,"tokens":\['
out_has '^"predictions":\[{"token_id":[0-9]*,"token":.*"prob":.*"prompt_tokens":9,"ffn":\[{"layers":"0-1","path":"walk:all"}\]}$'
run walk -m "$X" "the cat" --json -k 4; exit_is 0; out_has '"path":"walk:top"'
run walk -m "$X" "the cat" -k 28; fails_with 2 '28'
run walk -m "$X" "the cat" -k 0; fails_with 2 '0'
run walk -m "$X" "the cat" --top 28; fails_with 2 'top 28: layer 0 has 27 features'
run walk -m "$X" "the cat" --layers 2; fails_with 2 'layers 0 to 1'
run walk -m "$X" "the cat" --layers 1-0; fails_with 2 'layers'
run walk -m "$X" "the cat" --layers x; fails_with 2 'want A, A- or A-B'
run walk -m "$T/m.gguf" "the cat"; fails_with 2 '--index: name the folder that lath extract has made'
run quantize -m "$X" -o "$T/x.gguf" --type q8_0; fails_with 4 'is an index of features'; [ ! -e "$T/x.gguf" ] || fail "a file was written"
run walk -m "$M" --index "$T/none" "the cat"; fails_with 3 'none: no such directory'
run walk -m "$M" --index "$T/empty" "the cat"; fails_with 4 'level "browse"'
run walk -m "$TESTS/golden/decoder/qwen3_yarn_tied" --index "$X" "the cat"; fails_with 3 'another model'

# verify
run verify "$X" "$T/empty"; exit_is 0; out_has 'x: ok: level inference, 54 features in 2 layers, F16'
run verify --json -m "$M" "$X"; exit_is 0; out_has '^{"ok":true,"files":\[{"file":".*/x","ok":true,"level":"inference","layers":2,"features":54,"type":"F16","bytes":[0-9]*}\]}$'
run verify -m "$TESTS/golden/decoder/qwen3_yarn_tied" "$X"; fails_with 3 'another model'
cp -R "$X" "$T/bad"; printf 'x' | dd of="$T/bad/down.bin" bs=1 seek=100 conv=notrunc 2>/dev/null
run verify "$T/bad"; fails_with 3 'down.bin: its bytes are not those of its checksum'
run verify --json "$T/bad" "$X"; exit_is 3; out_has '^{"ok":false,"files":\[{"file":".*bad","ok":false,"error":'
run verify "$T"; fails_with 3 'there is no index.json in it'

# wrong usage, models that have no such index
run extract -m "$M"; fails_with 2 '-o'
run extract -m "$M" -o -; fails_with 2 '-o'
run extract -m "$M" -o "$T/y" more; fails_with 2 'more'
run extract -m "$M" -o "$T/y" --dtype q6_k; fails_with 2 'q6_k'
run extract -m "$M" -o "$T/y" --level some; fails_with 2 'some'
run extract -m "$T/none" -o "$T/y"; fails_with 3 'none'
run extract -m "$MODEL" -o "$T/y"; fails_with 4 'no language model'
run extract -m "$X" -o "$T/y"; fails_with 4 'an index already'
run extract -m "$TESTS/golden/decoder/qwen3_moe" -o "$T/y"; fails_with 4 'layer 0 has experts: .*level browse only'
run extract -m "$TESTS/golden/decoder/qwen3_moe" -o "$T/moe" --level browse -q; exit_is 0; run verify "$T/moe"; exit_is 0; out_has 'level browse'
run extract -m "$M" -o "$T/y" --dtype q8_0; fails_with 4 'rows of 18 numbers are no whole number of Q8_0 blocks'
run extract -m "$M" -o "$T/none/y"; fails_with 7 'y.part'
check "nothing is left" [ ! -e "$T/y" ]; check "nor of the work" [ ! -e "$T/y.part" ]

# a full disk: found before the work, and nothing stays
(ulimit -f 8; "$LATH" extract -m "$M" -o "$T/full" --dtype f32 --level all) >"$T/out" 2>"$T/err"; rc=$?; shown='extract on a full disk'
fails_with 7 'no room for\|cannot make it as long'
check "no index" [ ! -e "$T/full" ]; check "nor a part of one" [ ! -e "$T/full.part" ]

# kill -9 at any time: what is there afterwards is whole, or not there; and a run that goes on has the same bytes
i=0
while [ "$i" -lt "${LATH_KILLS:-8}" ]; do
    rm -rf "$T/k" "$T/k.part"
    "$LATH" extract -m "$M" -o "$T/k" --dtype f16 -q &
    pid=$!
    sleep "0.0$((i * 7 % 10))$((i % 10))"
    kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null
    if [ -e "$T/k" ]; then run verify "$T/k"; exit_is 0; else
        run predict -m "$T/k" "the cat"; exit_is 3
        if [ -e "$T/k.part" ]; then run predict -m "$T/k.part" "the cat"; check "the part opens as no model, or is whole" [ "$rc" -ne 0 -o -e "$T/k.part/index.json" ]; fi
        run extract -m "$M" -o "$T/k" --dtype f16 -q --resume; exit_is 0
    fi
    rm -f "$T/k/progress.jsonl"
    check "the same bytes" diff -r "$X" "$T/k"
    i=$((i + 1))
done

finish
