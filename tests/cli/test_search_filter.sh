# SPDX-License-Identifier: Apache-2.0
# test_search_filter.sh: `lath search --filter`: values compared as JSON values, all conditions together, exact top k among what is left.
. "$2/cli/lib.sh"
J=$T/docs.jsonl
cat >"$J" <<'X'
{"id":"a","t":"the green river runs","lang":"en","year":2020,"draft":false,"price":1.5}
{"id":"b","t":"water","lang":"de","year":2021,"draft":true,"price":2}
 {"id":"c","t":"running water in the river","lang":"en","year":2020.0,"year2":1,"draft":null,"tags":["en","de"]}
{"id":"d","t":"green","lang":"\u0065n","year":"2020","note":"say \"hi\""}

{"id":"e","t":"green water","l\u0061ng":"en","year":-1e3,"x=y":"1=2","lang ":"en","big":9007199254740993}
{"id":"f","t":"a caf\u00e9","lang":"é","year":2e3}
X
# ids ARGS...: the ids of the results, in order
ids() {
    run search -q -m "$MODEL" --corpus "$J" --field t --query 'green water' --json "$@"
    exit_is 0
    got=$(grep -o '"id":"[a-z]*"' "$T/out" | cut -d'"' -f4 | tr -d '\n')
}
# gives SET ARGS...: exactly these records, in any order
gives() {
    want=$1
    shift
    ids "$@"
    check "$* gives $want, not $got" [ "$(echo "$got" | fold -w1 | sort | tr -d '\n')" = "$want" ]
}

gives acde --filter lang=en
gives b --filter lang=de
gives f --filter lang=é
gives ac --filter year=2020
gives ac --filter year=2.02e3
gives d --filter 'year="2020"'
gives e --filter year=-1000
gives a --filter draft=false
gives b --filter draft=true
gives c --filter draft=null
gives '' --filter 'draft="null"'
gives b --filter price=2.0
gives d --filter 'note=say "hi"'
gives '' --filter 'x=y!=3'
gives e --filter 'lang =en'
gives e --filter big=9007199254740993
gives '' --filter big=9007199254740992
gives '' --filter tags=en
gives '' --filter nosuch=1
gives c --filter year2=1
gives ac --filter lang=en --filter year=2020
gives de --filter lang=en --filter year!=2020
gives '' --filter lang=en --filter lang=de

# != holds for another value, another kind, and for none; the empty line has no record
gives bf --filter lang!=en
check "the empty line too" [ "$(grep -o '"record":null' "$T/out" | wc -l)" -eq 1 ]
gives abcdef --filter nosuch!=1
gives bcdef --filter draft!=false
gives abcdef --filter tags!=en

# the best k among those that match, with the scores of a search without filter
ids --top-k 7; cp "$T/out" "$T/all"
check "every text without a filter" [ "$(grep -o '"index":' "$T/all" | wc -l)" -eq 7 ]
ids --top-k 2 --filter lang!=de --filter id!=e
check "two of them" [ ${#got} -eq 2 ]
for part in $(grep -o '"index":[0-9]*,"score":[-0-9.e]*' "$T/out"); do check "$part is as without" grep -q "$part[,}]" "$T/all"; done
want=$(grep -o '"id":"[a-z]*"' "$T/all" | cut -d'"' -f4 | grep -v '[be]' | head -n 2 | tr -d '\n')
check "the best two" [ "$got" = "$want" ]

# forms
ids --filter id=c; out_has '"text":"running water in the river","record":{"id":"c","t":"running water in the river","lang":"en","year":2020.0,"year2":1,"draft":null,"tags":\["en","de"\]}}'
run search -q -m "$MODEL" --corpus "$J" --field t --query water --query green --filter id=b --jsonl; out_lines 2; out_has '"id":"b"'
run search -q -m "$MODEL" --corpus "$J" --field t --query water --filter id=b; out_is '  1  1.0000  [1]  water\n'
run search -m "$MODEL" --corpus "$J" --field t --query water --filter lang=en; err_has 'over 4 of 7 texts'
run search -q -m "$MODEL" --corpus "$J" --field t --query water --filter id=zz --json; out_is '{"results":[]}\n'

# bytes that are not UTF-8, with --lossy
printf '{"t":"water","k":"\377"}\n{"t":"green","k":"b"}\n' >"$T/bad.jsonl"
run search -q -m "$MODEL" --corpus "$T/bad.jsonl" --field t --query water --lossy --filter 'k=�' --json; exit_is 0
out_is '{"results":[{"index":0,"score":1,"text":"water","record":{"t":"water","k":"�"}}]}\n'

# refusals
s() { run search -q -m "$MODEL" --corpus "$J" --query water "$@"; }
s --field t --filter lang; fails_with 2 'filter: lang: want KEY=VALUE'
s --field t --filter =x; fails_with 2 'filter: =x: want KEY=VALUE'
s --field t --filter '!=x'; fails_with 2 'filter: !=x: want KEY'
s --field t --filter 'tags=["en"]'; fails_with 2 'filter: tags=.*want a string'
s --field t --filter "$(printf 'lang=\377')"; fails_with 5 'filter: lang=.*not valid UTF-8 at byte 6'
s --field t --filter "$(printf '\303=en')"; fails_with 5 'filter: .*not valid UTF-8 at byte 1'
s --filter lang=en; fails_with 2 'filter: the corpus has no records'
finish
