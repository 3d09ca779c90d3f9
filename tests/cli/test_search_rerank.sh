# SPDX-License-Identifier: Apache-2.0
# test_search_rerank.sh: `lath search --rerank-model`: the order is what `lath rerank` gives for the candidates, whatever the vectors say.
. "$2/cli/lib.sh"
M=$TESTS/golden/bert/mean_norm_gelu
R=$TESTS/golden/rerank/bert_msmarco
results() { grep -o '"index":[0-9]*,"score":[-0-9.e]*' "$T/out"; }

printf 'The green river runs.\nSmall houses by the old river.\nwater\nA young woman\nlong letter of fire\nnight and day\n' >"$T/corpus.txt"

# all texts are candidates: the same as reranking the file
run rerank -m "$R" --query 'green river' --json -f "$T/corpus.txt"; exit_is 0; results >"$T/expected"
run search -m "$M" --corpus "$T/corpus.txt" --query 'green river' --rerank-model "$R" --json -k 6; exit_is 0; results >"$T/got"
check "the reranker's order and scores" cmp -s "$T/expected" "$T/got"
err_has 'reranked 6 texts'
run search -m "$M" --corpus "$T/corpus.txt" --query 'green river' --rerank-model "$R" --json -k 2; exit_is 0; results >"$T/got"
head -n 2 "$T/expected" >"$T/two"; check "the first two" cmp -s "$T/two" "$T/got"

# of the best 3 by cosine only
run search -m "$M" --corpus "$T/corpus.txt" --query 'green river' --json -k 3; results | sed 's/,.*//' | sort >"$T/cosine"
run search -m "$M" --corpus "$T/corpus.txt" --query 'green river' --rerank-model "$R" --rerank-top 3 --json -k 3; exit_is 0
results >"$T/got"; sed 's/,.*//' "$T/got" | sort >"$T/a"; check "the candidates are the best by cosine" cmp -s "$T/cosine" "$T/a"
while read -r line; do grep -qF "$line" "$T/expected" || echo "$line"; done <"$T/got" >"$T/odd"; check "their scores" [ ! -s "$T/odd" ]

# several queries; fewer texts than wanted
run search -m "$M" --corpus "$T/corpus.txt" --query 'green river' --query 'water' --rerank-model "$R" --jsonl -k 6; exit_is 0; out_lines 2
head -n 1 "$T/out" | grep -o '"index":[0-9]*,"score":[-0-9.e]*' >"$T/got"; check "the first query's" cmp -s "$T/expected" "$T/got"

# refusals
run search -m "$M" --corpus "$T/corpus.txt" --query x --rerank-model "$M"; fails_with 4 'use lath embed'
run search -m "$M" --corpus "$T/corpus.txt" --query x --rerank-model "$T/nothing"; fails_with 3 'nothing'
run search -m "$M" --corpus "$T/corpus.txt" --query x --rerank-top 5; fails_with 2 'rerank-top'
finish
