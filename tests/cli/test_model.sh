# SPDX-License-Identifier: Apache-2.0
# test_model.sh: where models are looked for, what is refused, `lath info`, `lath similarity`.
. "$2/cli/lib.sh"
run embed -q -m "$MODEL" water; cp "$T/out" "$T/want"
found() { exit_is 0; check "the model is found" cmp -s "$T/want" "$T/out"; }

# a path
mkdir -p "$T/Users/Željko and co"; ln -s "$MODEL" "$T/Users/Željko and co/it's a model"
run embed -q -m "$T/Users/Željko and co/it's a model" water; found
run embed -q -m "$MODEL/" water; found

# LATH_MODELS
mkdir -p "$T/models/org"; ln -s "$MODEL" "$T/models/org/one"; ln -s "$MODEL" "$T/models/two"
LATH_MODELS=$T/models; export LATH_MODELS
run embed -q -m org/one water; found
run embed -q -m two water; found
run embed -q -m any/two water; found
run embed -q -m org/none water; fails_with 3 'org/none: no such model'; err_has "$T/models"
unset LATH_MODELS
run embed -q -m org/one water; fails_with 3 'LATH_MODELS (not set)'

# the Hugging Face cache
hub=$T/hf/hub/models--org--three
mkdir -p "$hub/snapshots" "$hub/refs"
ln -s "$MODEL" "$hub/snapshots/0123abcd"; ln -s "$GOLDEN/cls_norm_bge" "$hub/snapshots/ffff0000"
printf '0123abcd' >"$hub/refs/main"
HF_HOME=$T/hf; export HF_HOME; run embed -q -m org/three water; found; unset HF_HOME
HF_HUB_CACHE=$T/hf/hub; export HF_HUB_CACHE; run embed -q -m org/three water; found
printf '0123abcd\n' >"$hub/refs/main"; run embed -q -m org/three water; found
rm "$hub/refs/main" "$hub/snapshots/ffff0000"; run embed -q -m org/three water; found
unset HF_HUB_CACHE
mkdir -p "$T/.cache/huggingface"; ln -s "$T/hf/hub" "$T/.cache/huggingface/hub"; run embed -q -m org/three water; found
XDG_CACHE_HOME=$T/.cache; export XDG_CACHE_HOME; run embed -q -m org/three water; found; unset XDG_CACHE_HOME

# refusals
run embed -m "$T/none" water; fails_with 3 'none: no such model'
run embed -m ../none/x water; fails_with 3 'no such model'
run embed -m '' water; fails_with 2 'model'
mkdir "$T/empty"; run embed -m "$T/empty" water; fails_with 3 'empty'
cp -r "$MODEL" "$T/cut"; chmod -R u+w "$T/cut"; head -c 1000 "$MODEL/model.safetensors" >"$T/cut/model.safetensors"
run embed -m "$T/cut" water; fails_with 3 'model.safetensors'
rm "$T/cut/model.safetensors"; run embed -m "$T/cut" water; fails_with 3 'model.safetensors'
cp -r "$MODEL" "$T/other"; chmod -R u+w "$T/other"
sed 's/"model_type": "bert"/"model_type": "mamba"/' "$MODEL/config.json" >"$T/other/config.json"
run embed -m "$T/other" water; fails_with 4 'mamba'
sed 's/"absolute"/"relative_key"/' "$MODEL/config.json" >"$T/other/config.json"
run embed -m "$T/other" water; fails_with 4 'relative_key'
sed 's/"hidden_size": 30/"hidden_size": 30,/; s/,,/,/' "$MODEL/config.json" | sed '$d' >"$T/other/config.json"
run embed -m "$T/other" water; fails_with 3 'config.json'

# info
run info -m "$MODEL"; exit_is 0; err_empty; out_has '^architecture  *bert$'; out_has '^window  *40 tokens$'
out_has '30 numbers, pooling mean, length 1'
run info -m "$MODEL" --json -t 2; exit_is 0; out_lines 1
for m in '"architecture":"bert"' '"layers":2' '"heads":3' '"d_model":30' '"d_ff":37' '"vocab_size":200' '"max_tokens":40' '"d_embedding":30' '"pooling":"mean"' \
    '"normalized":true' '"weights_dtype":"F32"' '"threads":2' '"prompts":{}' '"default_prompt":null'; do out_has "$m"; done
out_has "\"file_bytes\":$(wc -c <"$MODEL/model.safetensors"),"
run info -m "$GOLDEN/prompts_included" --json
out_has '"prompts":{"query":"query: ","document":"A passage to read: ","glued":"un"},"default_prompt":"query"'
run info -m "$MODEL" --isa ref --json; out_has '"isa":"ref"'
run info -m "$MODEL" --tensors; out_has 'embeddings.word_embeddings.weight \[200, 30\]'
run info -m "$MODEL" --tensors --json
out_has '{"name":"[a-z.]*embeddings.word_embeddings.weight","dtype":"F32","shape":\[200,30\],"bytes":24000,"used":true}'

# shards
run info -m "$GOLDEN/sharded"; exit_is 0; err_empty; out_has '59 tensors (6 unused)'
run info -m "$GOLDEN/sharded" --json; exit_is 0; out_has '"tensors":59,"unused_tensors":6,'
out_has "\"file_bytes\":$(cat "$GOLDEN"/sharded/model-*.safetensors | wc -c),"
run info -m "$GOLDEN/sharded" --tensors --json; exit_is 0
out_has '{"name":"cls.predictions.bias","dtype":"F32","shape":\[200\],"bytes":800,"used":false}'
cp -r "$GOLDEN/sharded" "$T/sharded"; chmod -R u+w "$T/sharded"; rm "$T/sharded/model-00003-of-00005.safetensors"
run embed -m "$T/sharded" water; fails_with 3 'model-00003-of-00005.safetensors: no such file'
sed 's/"model-00003/"..\/model-00003/' "$GOLDEN/sharded/model.safetensors.index.json" >"$T/sharded/model.safetensors.index.json"
run embed -m "$T/sharded" water; fails_with 3 'outside'
run info -m "$GOLDEN/f8_e4m3" --json; exit_is 0; out_has '"weights_dtype":"F8_E4M3"'

# inference_config.json
cp -r "$MODEL" "$T/inference"; chmod -R u+w "$T/inference"
run info -m "$MODEL"; out_lacks '^inference '
run info -m "$MODEL" --json; out_has '"inference_config":{"eos_token_id":null,"rope_table_max_seq_len":null,"gpu_max_seq_len":2048}'
echo '{"eos_token_id": 3, "rope_table_max_seq_len": 24, "gpu_max_seq_len": 512}' >"$T/inference/inference_config.json"
run info -m "$T/inference" --json; out_has '"max_tokens":24,'
out_has '"inference_config":{"eos_token_id":3,"rope_table_max_seq_len":24,"gpu_max_seq_len":512}'
run info -m "$T/inference"; out_has '^window  *24 tokens$'; out_has '^inference  *end token 3, rope table 24 tokens, on a GPU up to 512 tokens$'
echo '{"eos_token_id": "3"}' >"$T/inference/inference_config.json"
run info -m "$T/inference"; fails_with 3 'inference_config.json: line 1: "eos_token_id": want an integer'

# similarity
run similarity -m "$MODEL" water water river --json; exit_is 0
out_has '^{"similarity":\[\[1,1,[-0-9.]*\],\[1,1,[-0-9.]*\],\[[-0-9.]*,[-0-9.]*,1\]\]}$'
run similarity -m "$MODEL" water river; exit_is 0; out_lines 3; out_has '1.0000'
feed 'water\nriver\n' similarity -m "$MODEL" --json; out_has '^{"similarity":\[\[1,'
run similarity -m "$MODEL" water "$(printf 'water %.0s' $(seq 1 60))" --no-truncate; fails_with 5 'text 2'
run similarity -m "$GOLDEN/last_silu" water water --json; exit_is 0; out_is '{"similarity":[[1,1],[1,1]]}\n'

# models whose files say nothing about embeddings: what is taken instead is said, once, when all went well
NO='says nothing about embeddings'
for plain in qwen3/plain_causal_lm rerank/qwen3_reranker_card qwen2/plain_bidirectional; do
    P=$TESTS/golden/$plain; took='the last token.s state is taken, as sentence-transformers does'
    if [ $plain = qwen2/plain_bidirectional ]; then took='the mean of the tokens. states is taken, as sentence-transformers does'; fi
    run embed -m "$P" water; exit_is 0; err_has "^lath: note: $P: a language model, Qwen[23]ForCausalLM, $NO: $took (--pooling chooses)$"
    run similarity -m "$P" water river; exit_is 0; err_has "$NO: $took"
    printf 'water\nriver\n' >"$T/corpus"; rm -f "$T/corpus.lath"
    run search -m "$P" --corpus "$T/corpus" --query water; exit_is 0; check "once" [ "$(grep -c "$NO" "$T/err")" -eq 1 ]
    run embed -m "$P" water -q; err_empty
    run embed -m "$P" water --pooling mean; err_empty
done
run info -m "$TESTS/golden/qwen3/plain_causal_lm" --json; out_has '"pooling":"last"'
run embed -m "$TESTS/golden/qwen3/plain_causal_lm" --no-truncate "$(printf 'water %.0s' $(seq 1 60))"; fails_with 5 'window'
for plain in none empty; do # an encoder alone
    rm -rf "$T/bare"; cp -r "$MODEL" "$T/bare"; chmod -R u+w "$T/bare"; rm -rf "$T/bare/modules.json"
    [ $plain = none ] || sed 's/"BertModel"/"BertForMaskedLM"/' "$MODEL/config.json" >"$T/bare/config.json"
    run embed -m "$T/bare" water; exit_is 0; err_has "bare: Bert[A-Za-z]*, $NO: the mean of the tokens. states is taken"
    run embed -m "$T/bare" water -q; err_empty
done
run embed -m "$MODEL" water; err_empty
run rerank -m "$TESTS/golden/rerank/qwen3_reranker_card" --query water river; exit_is 0; err_empty

# adapters that nobody merged
rm -rf "$T/adapted"; cp -r "$MODEL" "$T/adapted"; chmod -R u+w "$T/adapted"; echo '{"peft_type": "LORA"}' >"$T/adapted/adapter_config.json"
run embed -m "$T/adapted" water; fails_with 4 'adapter_config.json: adapters are not supported (merge them into the weights)'

# a link that leads nowhere is no absent file: an incomplete cache must not change vectors silently
for f in modules.json sentence_bert_config.json config_sentence_transformers.json tokenizer.json; do
    rm -rf "$T/dangling"; cp -r "$MODEL" "$T/dangling"; rm -f "$T/dangling/$f"; ln -s missing "$T/dangling/$f"
    run embed -q -m "$T/dangling" water; fails_with 3 "$f"
done
finish
