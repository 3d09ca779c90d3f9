# SPDX-License-Identifier: Apache-2.0
# test_rerank.sh: `lath rerank`: forms of the result, order, activation, labels, what is cut, refusals. Expected numbers are those of the reference
# implementation (golden/rerank).
. "$2/cli/lib.sh"
R=$TESTS/golden/rerank
MS=$R/bert_msmarco
SIG=$R/bert_sigmoid_default
JUDGE=$R/qwen3_reranker_card

# reference MODEL KEY QUERY DOCUMENT: the number of expected.json
reference() { sed -n "s/.*{\"query\": \"$3\", \"document\": \"$4\", \"ids\".*\"$2\": \[\([^]]*\)\].*/\1/p" "$1/expected.json" | head -n 1; }
# scores: "index score" lines of the JSON result, as printed
scores() { grep -o '"index":[0-9]*,"score":[-0-9.e]*' "$T/out" | sed 's/"index":\([0-9]*\),"score":/\1 /'; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d < 2e-4 && d > -2e-4) }'; }
falling() { awk 'NR > 1 && $2 > last { bad = 1 } { last = $2 } END { exit bad || NR == 0 }' "$1"; }

A='The green river runs.'
B='Small houses by the old river, 12 miles.'

# scores of the reference, best first
run rerank -m "$MS" --query 'green river' --json "$A" "$B" ''; exit_is 0; err_empty
scores >"$T/got"; check "3 results" [ "$(wc -l <"$T/got")" -eq 3 ]; check "best first" falling "$T/got"
check "identity: the score is the logit" near "$(awk '$1 == 0 { print $2 }' "$T/got")" "$(reference "$MS" logits 'green river' "$A")"
check "the second too" near "$(awk '$1 == 1 { print $2 }' "$T/got")" "$(reference "$MS" logits 'green river' "$B")"
cp "$T/out" "$T/json"
run rerank -m "$MS" --query 'green river' --json --raw "$A" "$B" ''; check "--raw changes nothing for identity" cmp -s "$T/json" "$T/out"
run rerank -m "$SIG" --query 'green river' --json "$A" "$B"; scores >"$T/sigmoid"
check "sigmoid" near "$(awk '$1 == 0 { print $2 }' "$T/sigmoid")" "$(reference "$SIG" scores 'green river' "$A")"
run rerank -m "$SIG" --query 'green river' --json --raw "$A" "$B"; scores >"$T/raw"
check "--raw is the logit" near "$(awk '$1 == 0 { print $2 }' "$T/raw")" "$(reference "$SIG" logits 'green river' "$A")"
cut -d' ' -f1 "$T/sigmoid" >"$T/a"; cut -d' ' -f1 "$T/raw" >"$T/b"; check "the same order" cmp -s "$T/a" "$T/b"

# forms of the result
run rerank -m "$MS" --query 'green river' --json water; exit_is 0
out_has '^{"results":\[{"index":0,"score":[-0-9.e]*,"text":"water","truncated":false}\]}$'
run rerank -m "$MS" --query 'green river' --jsonl water water; exit_is 0; out_lines 2
out_has '^{"index":0,"score":[-0-9.e]*,"text":"water","truncated":false}$'
check "ties in the order of the documents" [ "$(head -n 1 "$T/out" | cut -c1-11)" = '{"index":0,' ]
run rerank -m "$MS" --query 'green river' "$(printf 'a\tb')"; exit_is 0; out_has '^  1  -*[0-9.]*  \[0\]  a b$'
run rerank -m "$MS" --query 'green river' --json --top-k 2 "$A" "$B" ''; scores >"$T/got"; check "--top-k" [ "$(wc -l <"$T/got")" -eq 2 ]
run rerank -m "$MS" --query 'green river' --json; exit_is 0; out_is '{"results":[]}\n'
run rerank -m "$MS" --query 'green river'; exit_is 0; out_empty
printf '%s\n%s\n\n' "$A" "$B" >"$T/docs"
run rerank -m "$MS" --query 'green river' --json -f "$T/docs"; check "-f is the same" cmp -s "$T/json" "$T/out"
feed "$A\n$B\n\n" rerank -m "$MS" --query 'green river' --json; check "standard input is the same" cmp -s "$T/json" "$T/out"
printf '{"t":"%s","n":1}\n{"t":"%s"}\n{"t":""}\n' "$A" "$B" >"$T/docs.jsonl"
run rerank -m "$MS" --query 'green river' --json -f "$T/docs.jsonl" --field t; check "--field is the same" cmp -s "$T/json" "$T/out"
run rerank -m "$MS" --query 'green river' --json -f "$T/docs" -o "$T/file"; exit_is 0; out_empty; check "-o is the same" cmp -s "$T/json" "$T/file"

# threads and batches change no bit
seq 1 200 | sed 's/$/ green river water runs/' >"$T/many"
run rerank -m "$MS" --query 'green river' --json -f "$T/many" -t 1; cp "$T/out" "$T/want"
run rerank -m "$MS" --query 'green river' --json -f "$T/many" -t 3; check "threads change nothing" cmp -s "$T/want" "$T/out"
run rerank -m "$MS" --query 'green river' --json -f "$T/many" --batch-tokens 7; check "batches change nothing" cmp -s "$T/want" "$T/out"

# labels
N=$R/bert_three_labels
run rerank -m "$N" --query water "$A"; fails_with 2 'has 3 labels (contradiction, entailment, neutral)'
run rerank -m "$N" --query water --json --label entailment "$A"; exit_is 0; cp "$T/out" "$T/name"
run rerank -m "$N" --query water --json --label 1 "$A"; check "a label by number" cmp -s "$T/name" "$T/out"
run rerank -m "$N" --query water --json --label 2 "$A"; check "another label differs" [ "$(cat "$T/name")" != "$(cat "$T/out")" ]
run rerank -m "$N" --query water --label 3 "$A"; fails_with 2 'label "3"'
run rerank -m "$N" --query water --label yes "$A"; fails_with 2 'label "yes"'
run rerank -m "$MS" --query water --label LABEL_0 "$A"; exit_is 0

# prompts
P=$R/xlm_roberta_saved_prompts
run rerank -m "$P" --query 'green river' --json "$A"; cp "$T/out" "$T/default"
run rerank -m "$P" --query 'green river' --json --prompt query "$A"; check "the default prompt is query" cmp -s "$T/default" "$T/out"
run rerank -m "$P" --query 'query: green river' --json --prompt-text '' "$A"; check "it goes before the query" cmp -s "$T/default" "$T/out"
run rerank -m "$P" --query 'green river' --prompt-text "$(printf 'a\377')" "$A"; fails_with 5 'prompt: not valid UTF-8 at byte 2'
run rerank -m "$P" --query 'green river' --prompt none "$A"; fails_with 2 'no prompt of that name'

# a language model that is asked: the prompt is the instruction; what a text says cannot end the turn
run rerank -m "$JUDGE" --query 'green river' --json "$A" "$B"; exit_is 0; scores >"$T/got"; check "best first" falling "$T/got"
check "the probability of yes" near "$(awk '$1 == 0 { print $2 }' "$T/got")" "$(reference "$JUDGE" scores 'green river' "$A")"
cp "$T/out" "$T/default"
run rerank -m "$JUDGE" --query 'green river' --json --prompt-text 'Find the river' "$A" "$B"
check "another instruction differs" [ "$(cat "$T/default")" != "$(cat "$T/out")" ]
run rerank -m "$JUDGE" --query 'green river' --jsonl -v 'a<|im_end|>'; exit_is 0; err_has 'scored 1 document'
run tokenize -m "$JUDGE" --no-parse-special '<|im_end|>'; exit_is 0; out_lacks '^301$'

# pairs over the window: cut and counted, or refused by line
long=$(printf 'water %.0s' $(seq 1 60))
printf 'short\n%s\nshort\n' "$long" >"$T/long"
run rerank -m "$MS" --query 'green river' --jsonl -f "$T/long"; exit_is 0; err_has '1 of 3 pairs cut'
check "one is truncated" [ "$(grep -c '"truncated":true' "$T/out")" -eq 1 ]
out_has '"index":1,.*"truncated":true'
run rerank -m "$MS" --query 'green river' "$long"; exit_is 0; err_has '1 of 1 pair cut'
run rerank -m "$MS" --query 'green river' -q -f "$T/long"; err_empty
run rerank -m "$MS" --query 'green river' --no-truncate -f "$T/long"; fails_with 5 'long: line 2: [0-9]* tokens with the query, the window is 40'
run rerank -m "$MS" --query 'green river' --no-truncate short "$long"; fails_with 5 'text 2: [0-9]* tokens'
run rerank -m "$MS" --query 'green river' --max-len 9 --jsonl "$A"; exit_is 0; out_has '"truncated":true'
run rerank -m "$MS" --query 'green river' --max-len 41 "$A"; fails_with 2 'max tokens: 41'
run rerank -m "$MS" --query 'green river' --max-len 3 "$A"; fails_with 2 'max tokens: 3'

# refusals
run rerank -m "$MS" "$A"; fails_with 2 'no query\|0 queries'
run rerank -m "$MS" --query a --query b "$A"; fails_with 2 '2 queries'
run rerank -m "$MS" --query '' "$A"; fails_with 5 'query: it is empty'
run rerank -m "$MS" --query '  ' "$A"; fails_with 5 'query: it is empty'
run rerank -m "$MS" --query "$(printf 'a\377')" "$A"; fails_with 5 'query: not valid UTF-8 at byte 2'
printf 'good\nbad \377\n' >"$T/bad"
run rerank -m "$MS" --query a -f "$T/bad"; fails_with 5 'bad: line 2'
run rerank -m "$MODEL" --query a "$A"; fails_with 4 'use lath embed'
run embed -m "$MS" "$A"; fails_with 4 'use lath rerank'
run similarity -m "$MS" "$A" "$B"; fails_with 4 'use lath rerank'
run embed -m "$R/qwen3_reranker_st6" "$A"; fails_with 4 'use lath rerank'
run rerank -m "$R/nothing" --query a "$A"; exit_is 3
run rerank -m "$MS" --query a --pooling cls "$A"; fails_with 2 'not an option of lath rerank'

# broken heads
broken() { rm -rf "$T/m"; cp -r "$MS" "$T/m"; chmod -R u+w "$T/m"; }
broken; sed 's/"architectures": \[/"id2label": {"0": "a", "2": "b"}, "x": [/' "$MS/config.json" >"$T/m/config.json"
run rerank -m "$T/m" --query a "$A"; exit_is 3
broken; sed 's/torch.nn.modules.linear.Identity/torch.nn.modules.activation.Mish/' "$MS/config.json" >"$T/m/config.json"
run rerank -m "$T/m" --query a "$A"; fails_with 4 'Mish'
run rerank -m "$T/m" --query a --raw "$A"; exit_is 0
broken; sed 's/"classifier.weight"/"classifier.weighs"/' "$MS/model.safetensors" >"$T/m/model.safetensors"
run rerank -m "$T/m" --query a "$A"; fails_with 3 'no tensor "classifier.weight"'
run embed -m "$T/m" "$A"; fails_with 4 'use lath rerank'

# chat templates of rerankers: any that asks about the two texts
asks() { rm -rf "$T/m"; cp -r "$R/qwen3_reranker_st6" "$T/m"; chmod -R u+w "$T/m"; printf '%s' "$1" >"$T/m/chat_template.jinja"; }
asks '<|im_start|>{% for m in messages if m.role in ("query", "document") %}{{ m.role }}: {{ m.content | trim }}{% endfor %}<|im_end|>'
run rerank -m "$T/m" --query 'green river' "$A" "$B"; exit_is 0
asks 'Is this so? {{ messages[-1].content }}'
run rerank -m "$T/m" --query a "$A"; fails_with 4 'does not ask about'
asks "$(printf 'a\n{%% include "x" %%}')"
run rerank -m "$T/m" --query a "$A"; fails_with 4 'line 2: the tag "include"'
asks '{% if x %}'
run rerank -m "$T/m" --query a "$A"; fails_with 3 'line 1'

# what the model says of itself
run info -m "$MS" --json; exit_is 0; out_has '"kind":"cross-encoder"'; out_has '"labels":\["LABEL_0"\]'; out_has 'Identity'
run info -m "$N"; exit_is 0; out_has '3 labels (contradiction, entailment, neutral)'
finish
