# SPDX-License-Identifier: Apache-2.0
# test_search.sh: `lath search`: results against the cosines of `lath similarity`, the life of the index file, refusals.
. "$2/cli/lib.sh"
C=$T/corpus.txt
I=$C.lath
printf 'the green river runs\nwater\n\nrunning water in the river\ngreen\n' >"$C"

search() { run search -m "$MODEL" --corpus "$C" "$@"; }

# the scores are the cosines of the same texts, best first
search --query 'green water' --json; exit_is 0; err_has 'indexed 5 texts'; check "the index is kept" [ -s "$I" ]
cp "$T/out" "$T/first"
check "5 results" [ "$(grep -o '"index":' "$T/out" | wc -l)" -eq 5 ]
grep -o '"index":[0-9]*,"score":[-0-9.e]*' "$T/out" | sed 's/"index":\([0-9]*\),"score":/\1 /' >"$T/got"
run similarity -m "$MODEL" --json 'green water' 'the green river runs' water '' 'running water in the river' green
sed 's/.*\[\[1,\([^]]*\)\].*/\1/' "$T/out" | tr ',' '\n' | awk '{ print NR - 1, $1 }' | sort -k2,2gr >"$T/want"
check "5 cosines" [ "$(wc -l <"$T/want")" -eq 5 ]
paste -d' ' "$T/got" "$T/want" >"$T/both"
check "order and scores are those of similarity" awk '{ d = $2 - $4; if ($1 != $3 || d < -1e-5 || d > 1e-5) bad = 1 } END { exit bad }' "$T/both"

# the index is used again, without a word, and with the same result
search --query 'green water' --json; exit_is 0; check "the same result" cmp -s "$T/first" "$T/out"
check "not made again" [ "$(grep -c indexed "$T/err")" -eq 0 ]
err_has '1 query over 5 texts'
search --query 'green water' --json -q; err_empty

# forms of the result
search -q --query water --top-k 1 --json; out_is '{"results":[{"index":1,"score":1,"text":"water"}]}\n'
search -q --query water --top-k 1; out_is '  1  1.0000  [1]  water\n'
search -q --query water --query green --top-k 1 --json
out_is '{"queries":[{"query":"water","results":[{"index":1,"score":1,"text":"water"}]},\n{"query":"green","results":[{"index":4,"score":1,"text":"green"}]}]}\n'
search -q --query water --query green --top-k 1 --jsonl
out_is '{"query":"water","results":[{"index":1,"score":1,"text":"water"}]}\n{"query":"green","results":[{"index":4,"score":1,"text":"green"}]}\n'
search -q --top-k 1 water green --jsonl; out_lines 2
feed 'water\ngreen\n' search -m "$MODEL" --corpus "$C" -q --top-k 1 --jsonl; out_lines 2
search -q --query water --top-k 1000 --jsonl
check "no more results than texts" [ "$(grep -o '"index":' "$T/out" | wc -l)" -eq 5 ]

# made again when the corpus, an option or the model changes; not when what changed decides nothing
printf 'water\n' >>"$C"
search --query water --top-k 2 --json; err_has 'brought up to date, because the corpus changed'
out_is '{"results":[{"index":1,"score":1,"text":"water"},{"index":5,"score":1,"text":"water"}]}\n'
search --query water --top-k 1 --pooling cls; err_has 'made again, because an option'
search --query water --top-k 1 --pooling cls -t 1 --batch-tokens 9
check "not made again" [ "$(grep -c 'made again' "$T/err")" -eq 0 ]
run search -m "$GOLDEN/cls_norm_bge" --corpus "$C" --query water; err_has 'made again, because the model changed'
search --query water --index "$T/other.lath"; err_has 'indexed'; check "--index keeps it there" [ -s "$T/other.lath" ]
run search -m "$GOLDEN/cls_norm_bge" --corpus "$C" --query water
check "the other index is untouched" [ "$(grep -c indexed "$T/err")" -eq 0 ]

# CRLF, byte order mark, JSONL: the text shown is the text embedded
printf '\357\273\277river\r\nwater\r\n' >"$T/crlf"
run search -q -m "$MODEL" --corpus "$T/crlf" --query river --top-k 1 --json
out_is '{"results":[{"index":0,"score":1,"text":"river"}]}\n'
printf '{"t":"riv\\u0065r"}\n{"t":"wa\\nter"}\n' >"$T/j"
run search -q -m "$MODEL" --corpus "$T/j" --field t --query river --top-k 1 --json
out_is '{"results":[{"index":0,"score":1,"text":"river","record":{"t":"riv\\u0065r"}}]}\n'
run search -q -m "$MODEL" --corpus "$T/j" --field t --query 'wa ter' --top-k 1; out_is '  1  1.0000  [1]  wa ter\n'
: >"$T/empty"; run search -q -m "$MODEL" --corpus "$T/empty" --query x --json; exit_is 0; out_is '{"results":[]}\n'

# prompts: what the model has for queries and for documents
P=$GOLDEN/prompts_included
printf 'query: river\nA passage to read: river\nriver\n' >"$T/p"
run search -q -m "$P" --corpus "$T/p" --corpus-prompt-text '' --query river --top-k 1
out_has '1.0000  .0.  query: river'
printf 'river\n' >"$T/p1"; run search -q -m "$P" --corpus "$T/p1" --prompt-text 'A passage to read: ' --query river
out_has '1.0000'
run search -q -m "$P" --corpus "$T/p1" --corpus-prompt nosuch --query river; fails_with 2 'nosuch'

# refusals
search --query ''; fails_with 5 'empty query'
search --query water --query '  '; fails_with 5 'text 2: empty query'
feed '' search -m "$MODEL" --corpus "$C"; fails_with 5 'no query'
search --query water --top-k 0; fails_with 2 'top-k'
run search -m "$MODEL" --corpus "$T/none" --query x; fails_with 3 'none'
run search -m "$MODEL" --corpus "$T" --query x; fails_with 3 'regular file'
printf 'fine\nbad \377\n' >"$T/bad"; run search -m "$MODEL" --corpus "$T/bad" --query x; fails_with 5 'bad: line 2'
check "no index appears" [ -z "$(ls "$T" | grep 'bad\.')" ]
run search -m "$MODEL" --corpus "$T/bad" --lossy --query x -q; exit_is 0

# an index that is damaged, cut or something else is an error and stays as it is
search -q --query water
head -c 300 "$I" >"$T/cut"; cp "$T/cut" "$I"; search --query water; fails_with 3 'corpus.txt.lath: cut.*delete it'
check "it is left alone" cmp -s "$T/cut" "$I"
search --query water --index "$I"; fails_with 3 'corpus.txt.lath: cut'
search --query water --index "$C"; fails_with 3 'corpus.txt: not a lath vector index'
check "the corpus is unharmed" grep -q river "$C"
rm "$I"; search -q --query water; exit_is 0
printf '\001' | dd of="$I" bs=1 seek=260 conv=notrunc 2>/dev/null; search --query water; fails_with 3 'damaged'
run search -m "$MODEL" --corpus "$C" --query x --index "$T/none/x"; fails_with 7 'none/x'

# results never replace what is searched
rm -f "$I"; search -q --query water
cp "$I" "$T/keep"; search --query water -o "$C"; fails_with 2 'is the corpus'; search --query water -o "$I"; fails_with 2 'is the index'
ln -s "$C" "$T/link"; search --query water -o "$T/link"; fails_with 2 'is the corpus'
check "index and corpus are as they were" cmp -s "$T/keep" "$I"
search --query water -o ''; fails_with 2 'output: want the name of a file'
run search -m "$MODEL" --corpus '' --query x; fails_with 2 'corpus: want'
finish
