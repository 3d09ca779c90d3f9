# SPDX-License-Identifier: Apache-2.0
# test_inside.sh: `lath trace`, `lath compare`, `lath sweep`, and --ffn, --ablate, --steer, --patch of predict, generate and trace: shapes of what is printed, what a file holds, edits
# that must change nothing and edits that must change something, what is refused. Numbers are compared with the reference in C (unit/engine/test_inspect.c).
. "$2/cli/lib.sh"
G=$TESTS/golden
M=$G/decoder/llama2 # 2 layers, no token of the prompt outside the vocabulary
P='the boat'

# npy FILE: the raw f32 numbers of standard input as an npy file [n]
npy() {
    cat >"$T/raw"
    n=$(($(wc -c <"$T/raw") / 4))
    dict="{'descr': '<f4', 'fortran_order': False, 'shape': ($n,), }"
    { printf '\223NUMPY\001\000\166\000'; printf '%-117s\n' "$dict"; cat "$T/raw"; } >"$1"
}
# vector TOKEN WAYPOINT: the residual stream in $T/t.trac, raw
u32() { od -An -tu4 -j "$1" -N 4 "$T/t.trac" | tr -d ' '; }
vector() { tail -c +$((64 + (($1 * (LAYERS + 1) + $2) * 3) * D * 4 + 1)) "$T/t.trac" | head -c $((D * 4)); }

# trace: JSON as it is promised
run trace -m "$M" --json "$P"; exit_is 0; err_empty
out_has '^{"tokens":\['
out_has '^"layers":\[{"layer":0,"attn_norm":[0-9.e+-]*,"ffn_norm":[0-9.e+-]*,"residual_norm":[0-9.e+-]*,"top":\[{"token_id":[0-9]*,"token":.*,"prob":[0-9.e-]*}'
out_has '"answer_rank":[0-9]*,"answer_prob":[0-9.e-]*'
check "5 likeliest tokens a layer" [ "$(sed -n '/"layers"/,$p' "$T/out" | grep -o '"prob":' | wc -l)" -eq 10 ]
cp "$T/out" "$T/plain"
# behind the last layer the lens is the model's own output
run predict -m "$M" --json "$P"; exit_is 0
best=$(sed -n 's/^{"predictions":\[{"token_id":\([0-9]*\),.*/\1/p' "$T/out")
check "the answer is what is likeliest" grep -q "\"answer\":{\"token_id\":$best," "$T/plain"
check "its rank behind the last layer is 1" grep -q '"layer":1,.*"answer_rank":1,' "$T/plain"
run trace -m "$M" --json --top 2 --heads --weights --answer boat "$P"; exit_is 0
out_has '"head_logits":\['
out_has '"weights":{"first":0,"heads":\[\['
out_has '"answer":{"token_id":'
run trace -m "$M" --json --positions all "$P"; exit_is 0
out_has '"positions":\[{"position":0,'
out_has '{"position":1,'

# the table
run trace -m "$M" "$P"; exit_is 0; err_empty
out_has '^layer attention  *FFN  *stream  *rank  *prob  *attention  *FFN  likeliest token$'
check "a line a layer" [ "$(grep -c '^ *[01]  *[0-9.]' "$T/out")" -eq 2 ]
run trace -m "$M" --heads --weights --top 3 "$P"; exit_is 0
out_has 'looks at, first token aside'
out_has '^  layer *[01] head *[0-9]* *[+-][0-9.]*$'
# an encoder has lengths alone
run trace -m "$MODEL" 'a text'; exit_is 0; out_has '^layer attention  *FFN  *stream$'
run trace -m "$MODEL" --answer x 'a text'; fails_with 4 'has no output head'

# a file
run trace -m "$M" --positions all --save "$T/t.trac" "$P"; exit_is 0
check "it begins with TRAC" [ "$(head -c 4 "$T/t.trac")" = TRAC ]
D=$(u32 8) LAYERS=$(u32 12) N=$(u32 16)
check "as long as its header says" [ "$(wc -c <"$T/t.trac")" -eq $((64 + N * (LAYERS + 1) * 3 * D * 4)) ]
run trace -m "$M" --save "$T/u.trac" "$P"; fails_with 2 '--positions all'
run trace -m "$M" --positions all --save "$T/u" -o "$T/u" "$P"; fails_with 2 'is both'; check "nothing is written" [ ! -e "$T/u" ]
run trace -m "$M" --positions all --save "$T/nowhere/t.trac" "$P"; exit_is 7; err_has nowhere

# edits: what was there put in its place changes nothing, what another text had does
run predict -m "$M" --json "$P"; cp "$T/out" "$T/want"
vector 1 1 | npy "$T/same.npy"
run predict -m "$M" --json --patch "0:1:$T/same.npy" "$P"; exit_is 0; check "the same stream, the same output" cmp -s "$T/want" "$T/out"
vector 0 1 | npy "$T/other.npy"
run predict -m "$M" --json --patch "0:1:$T/other.npy" "$P"; exit_is 0; check "another one, another" [ "$(cat "$T/want")" != "$(cat "$T/out")" ]
run predict -m "$M" --json --steer "0:$T/other.npy:0" "$P"; exit_is 0; check "0 times a vector is nothing" cmp -s "$T/want" "$T/out"
run predict -m "$M" --json --steer "0:$T/other.npy" --steer "0:$T/other.npy:-1" "$P"; exit_is 0
check "there and back again, nearly" [ "$(sed 's/.*"token_id":\([0-9]*\).*/\1/' "$T/want" | head -n 1)" = "$(sed 's/.*"token_id":\([0-9]*\).*/\1/' "$T/out" | head -n 1)" ]
run predict -m "$M" --json --steer "1:$T/other.npy:2.5" "$P"; exit_is 0; check "2.5 times it is something" [ "$(cat "$T/want")" != "$(cat "$T/out")" ]
run predict -m "$M" --json --ablate 1 "$P"; exit_is 0; cp "$T/out" "$T/ablated"; check "a layer less" [ "$(cat "$T/want")" != "$(cat "$T/out")" ]
run predict -m "$M" --json --ablate 1:0 "$P"; exit_is 0; check "a head less is neither" [ "$(cat "$T/out")" != "$(cat "$T/want")" ] && check "nor" [ "$(cat "$T/out")" != "$(cat "$T/ablated")" ]
run trace -m "$M" --json --ablate 1 "$P"; exit_is 0; out_has '"layer":1,"attn_norm":0[.0]*,"ffn_norm":0[.0]*,'
run generate -m "$M" -n 3 --json "$P"; exit_is 0; sed 's/,"usage.*//' "$T/out" >"$T/want"
run generate -m "$M" -n 3 --json --patch "0:1:$T/same.npy" "$P"; exit_is 0; sed 's/,"usage.*//' "$T/out" >"$T/have"; check "generate: the same text" cmp -s "$T/want" "$T/have"

# other FFNs, and which way they went
run predict -m "$M" --json "$P"; cp "$T/out" "$T/want"
run predict -m "$M" --json --ffn dense "$P"; exit_is 0
out_has '"ffn":\[{"layers":"0-1","path":"dense"'
sed 's/,"ffn":.*/}/' "$T/out" >"$T/have"; check "dense is the model" cmp -s "$T/want" "$T/have"
run predict -m "$M" --json --ffn 0=highway,1-=sparse:2 "$P"; exit_is 0
out_has '{"layers":"0-0","path":"highway"'
out_has '{"layers":"1-1","path":"sparse","ffn":"[^"]*","features_per_token":2[.0]*,'
run predict -m "$M" -v --ffn 0=gain:0.5,1=cached "$P"; exit_is 0; err_has 'FFN of layers 0-0: .* went gain'; err_has 'FFN of layers 1-1: .* went cached:miss'
run trace -m "$M" --json --ffn 0=gain:0.5,1=attention-only "$P"; exit_is 0; out_has '"layer":0,"attn_norm":null,"ffn_norm":null,'
run generate -m "$M" -n 2 --json --ffn sparse:2 "$P"; exit_is 0; out_has '"ffn":\[{"layers":"0-1","path":"sparse"'

# walks over an index
run extract -q -m "$M" -o "$T/x" --dtype f32; exit_is 0
run compare -m "$M" --index "$T/x" --precision exact --json "$P"; exit_is 0; err_empty
out_has '^{"dense":{"predictions":\[{"token_id":'
out_has '^"walk":{"predictions":\['
out_has '"path":"walk:all"'
out_has '^"match":true,"max_logit_diff":'
check "all features are the model" awk -v d="$(sed -n 's/.*"max_logit_diff":\([-0-9.e+]*\),.*/\1/p' "$T/out")" 'BEGIN { exit !(d != "" && d <= 1e-4) }'
run compare -m "$M" --index "$T/x" --features 2 "$P"; exit_is 0; out_has '^dense: '; out_has '^walk: '; out_has '^likeliest token: '
run compare -m "$M" --index "$T/x" --features 2 --json "$P"; out_has '"path":"walk:top".*"features_per_token":2[.0]*,'
run compare -m "$M" --index "$T/x" --features 100000 "$P"; fails_with 2 'k'
run compare -m "$M" "$P"; fails_with 2 '--index'
run compare -m "$M" --index "$T/nowhere" "$P"; fails_with 3 'nowhere'
printf '%s\n' '{"prompt":"the boat","answer":"and"}' '' '{"prompt":"a","answer":"boat"}' >"$T/p.jsonl"
run sweep -q -m "$M" --index "$T/x" -f "$T/p.jsonl" --precision exact --json; exit_is 0; err_empty
check "a boundary before each layer and behind the last" [ "$(grep -o '"boundary":[0-9]*,"correct":[0-9]*,"of":2,"mean_prob":[0-9.e-]*,"max_drift":[0-9.e-]*' "$T/out" | wc -l)" -eq 3 ]
check "nothing drifts" [ "$(grep -o '"same_top":2,' "$T/out" | wc -l)" -eq 3 ]
out_has '"boundary":2,.*"max_drift":0\.\{0,1\}0*,'
out_has '^"prompts":\[{"prompt":"the boat","answer":"and","token_id":'
run sweep -m "$M" --index "$T/x" -f "$T/p.jsonl"; exit_is 0; out_has '^boundary  correct  mean prob'
printf '{"prompt":"the boat"}\n' >"$T/q.jsonl"; run sweep -q -m "$M" --index "$T/x" -f "$T/q.jsonl"; fails_with 5 'q.jsonl: line 1: .*"prompt" and "answer"'
printf '{"prompt":"a","answer":""}\n' >"$T/q.jsonl"; run sweep -q -m "$M" --index "$T/x" -f "$T/q.jsonl"; fails_with 5 'q.jsonl: line 1: the answer is empty'
{ cat "$T/p.jsonl"; printf '{"prompt":"'; i=0; while [ $i -lt 600 ]; do printf 'a '; i=$((i + 1)); done; printf '","answer":"b"}\n'; } >"$T/q.jsonl"
run sweep -q -m "$M" --index "$T/x" -f "$T/q.jsonl"; fails_with 5 'q.jsonl: line 4: .* window has 512'
printf 'no json\n' >"$T/q.jsonl"; run sweep -q -m "$M" --index "$T/x" -f "$T/q.jsonl"; fails_with 5 'q.jsonl: line 1: want a JSON object'
: >"$T/q.jsonl"; run sweep -q -m "$M" --index "$T/x" -f "$T/q.jsonl"; fails_with 5 'no prompts'
run sweep -q -m "$M" --index "$T/x" 'the boat'; fails_with 2 'sweep'

# refused, by name
refused() { code=$1 what=$2; shift 2; run predict -q -m "$M" "$@" "$P"; fails_with "$code" "$what"; }
refused 2 'ablate 2: .*layer 2, the model has 0 to 1' --ablate 2
refused 2 'head 99' --ablate 0:99
refused 2 'wants L or L:HEAD' --ablate 0:
refused 2 'wants L or L:HEAD' --ablate zero
refused 2 'layer 7' --steer "7:$T/same.npy"
refused 2 'wants L:FILE' --steer "$T/same.npy"
refused 3 'nowhere.npy' --steer "0:$T/nowhere.npy:2"
refused 2 'wants L:POS:FILE' --patch "0:$T/same.npy"
refused 2 'positions count from 0' --patch "0:-1:$T/same.npy"
refused 2 'position 99' --patch "0:99:$T/same.npy"
vector 0 1 | head -c $((4 * D - 4)) | npy "$T/short.npy"; refused 5 "$((D - 1)) numbers" --steer "0:$T/short.npy"
{ vector 0 1 | head -c $((4 * D - 4)); printf '\000\000\300\177'; } | npy "$T/nan.npy"; refused 5 'nan.npy: number .* not finite' --steer "0:$T/nan.npy"
head -c 100 "$T/same.npy" >"$T/cut.npy"; refused 3 'cut.npy: is cut' --steer "0:$T/cut.npy"
printf 'no npy file' >"$T/no.npy"; refused 3 'no.npy: is no npy file' --steer "0:$T/no.npy"
sed 's/<f4/<i4/' "$T/same.npy" >"$T/int.npy"; refused 5 "its type is '<i4'" --steer "0:$T/int.npy"
# head DICTIONARY LENGTH: an npy file of nothing but its header
head_only() { printf '\223NUMPY\001\000'; printf "\\$(printf %o "$2")\\000"; printf '%s' "$1"; }
head_only "{'descr': aaaa" 14 >"$T/open.npy"; refused 5 "its type is aaaa; want" --steer "0:$T/open.npy"
sed "s/shape': (24,)/shape': (2 4)/" "$T/same.npy" >"$T/two.npy"; refused 5 'its shape is (2 4)' --steer "0:$T/two.npy"
{ printf '\377\377\177\177'; vector 0 1 | head -c $((4 * D - 4)); } | npy "$T/big.npy"; refused 5 'alpha times number 0 of the vector is too large' --steer "0:$T/big.npy:-100"
refused 2 'k of 0' --ffn sparse:0
refused 2 'not known' --ffn nothing
refused 2 'layer' --ffn 0=dense
refused 2 'layer' --ffn 0-7=dense
refused 3 'nowhere' --ffn "walk:$T/nowhere"
run predict -m "$MODEL" --ablate 0 "$P"; exit_is 4
finish
