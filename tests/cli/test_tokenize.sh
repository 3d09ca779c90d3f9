# SPDX-License-Identifier: Apache-2.0
# test_tokenize.sh: `lath tokenize` both ways. Ids are those of the reference (golden/).
. "$2/cli/lib.sh"

run tokenize -m "$MODEL" 'The green river runs.'; exit_is 0; err_empty; out_is '2 157 182 181 194 49 77 3\n'
run tokenize -m "$MODEL" water --ids; out_is '2 179 3\n'
run tokenize -m "$MODEL" water --no-special; out_is '179\n'
run tokenize -m "$MODEL" water --tokens; out_is '[CLS] water [SEP]\n'
run tokenize -m "$MODEL" water '' --offsets; out_is '0-0 0-5 0-0\n0-0 0-0\n'
run tokenize -m "$MODEL" water '' --ids --tokens --offsets
out_is '2\t[CLS]\t0-0\n179\twater\t0-5\n3\t[SEP]\t0-0\n\n2\t[CLS]\t0-0\n3\t[SEP]\t0-0\n\n'
run tokenize -m "$MODEL" water --jsonl
out_is '{"index":0,"ids":[2,179,3],"tokens":["[CLS]","water","[SEP]"],"offsets":[[0,0],[0,5],[0,0]]}\n'
run tokenize -m "$MODEL" water '' --json
out_is '[{"index":0,"ids":[2,179,3],"tokens":["[CLS]","water","[SEP]"],"offsets":[[0,0],[0,5],[0,0]]},\n{"index":1,"ids":[2,3],"tokens":["[CLS]","[SEP]"],"offsets":[[0,0],[0,0]]}]\n'
run tokenize -m "$MODEL" --json; out_is '[]\n'
run tokenize -m "$MODEL" water -o "$T/ids"; out_empty; check "-o" [ "$(cat "$T/ids")" = '2 179 3' ]

# no truncation: a tokenizer has no window
long=$(printf 'water %.0s' $(seq 1 60))
run tokenize -m "$MODEL" "$long"; check "62 ids" [ "$(wc -w <"$T/out")" -eq 62 ]

# ... unless it is asked for one
run tokenize -m "$MODEL" "$long" --max-len 5; out_is '2 179 179 179 3\n'
run tokenize -m "$MODEL" water --max-len 1; fails_with 2 'limit of 1'

# special tokens that the text spells
run tokenize -m "$MODEL" 'water [SEP]'; out_is '2 179 3 3\n'
run tokenize -m "$MODEL" 'water [SEP]' --no-parse-special; out_lacks ' 3 3'

# pairs
run tokenize -m "$MODEL" water --pair 'the river'; out_is '2 179 3 157 181 3\n'
run tokenize -m "$MODEL" water --pair 'the river' --max-len 5; out_is '2 179 3 157 3\n'
run tokenize -m "$MODEL" water --pair 'the' --jsonl
out_is '{"index":0,"ids":[2,179,3,157,3],"tokens":["[CLS]","water","[SEP]","the","[SEP]"],"offsets":[[0,0],[0,5],[0,0],[0,3],[0,0]],"type_ids":[0,0,0,1,1]}\n'
run tokenize -m "$MODEL" water --pair ''; out_is '2 179 3 3\n'
run tokenize -m "$MODEL" '2 3' --decode --pair x; fails_with 2 'decode'

# a folder with nothing but a tokenizer
mkdir "$T/tok"; cp "$MODEL/tokenizer.json" "$T/tok/"
run tokenize -m "$T/tok" water; out_is '2 179 3\n'
mkdir "$T/nothing"; run tokenize -m "$T/nothing" water; fails_with 3 'nothing'

# back
feed '2 179 3\n\n179 179\n' tokenize -m "$MODEL" --decode; exit_is 0; out_is 'water\n\nwater water\n'
run tokenize -m "$MODEL" --decode '2 179 3'; out_is 'water\n'
run tokenize -m "$MODEL" --decode --keep-special '2 179 3'; out_is '[CLS] water [SEP]\n'
run tokenize -m "$MODEL" --decode '2,179, 3'; out_is 'water\n'
run tokenize -m "$MODEL" --decode --jsonl '2 179 3'; out_is '{"index":0,"text":"water"}\n'
run tokenize -m "$MODEL" --jsonl water river; cp "$T/out" "$T/rows"
run tokenize -m "$MODEL" --decode -f "$T/rows"; out_is 'water\nriver\n'
feed '2 3\n2 x\n' tokenize -m "$MODEL" --decode; exit_is 5; err_has 'line 2: byte 3: want token ids'
feed '2 3\n2 200\n' tokenize -m "$MODEL" --decode; exit_is 5; err_has 'line 2: id 200'
run tokenize -m "$MODEL" --decode '2 -1'; fails_with 5 'text 1'
run tokenize -m "$MODEL" --decode '99999999999999999999'; fails_with 5 'text 1'
run tokenize -m "$MODEL" --decode '{"ids":["2"]}'; fails_with 5 'ids'
run tokenize -m "$MODEL" --decode --tokens '2'; fails_with 2 'decode'
finish
