# SPDX-License-Identifier: Apache-2.0
# test_texts.sh: reading texts: line ends, byte order marks, empty lines, UTF-8, JSONL, several files. Seen through `lath tokenize`, whose ids tell
# exactly which text was read.
. "$2/cli/lib.sh"

ids() { run tokenize -m "$MODEL" "$@"; }
# same TEXT...: the last output is what these texts give as arguments
same() {
    cp "$T/out" "$T/got"
    code=$rc
    run tokenize -m "$MODEL" -- "$@"
    cp "$T/out" "$T/want"
    rc=$code
    exit_is 0
    check "texts are the $# given" cmp -s "$T/want" "$T/got"
}

run tokenize -m "$MODEL" water ''; out_is '2 179 3\n2 3\n'

feed 'river\nwater\n' tokenize -m "$MODEL"; same river water
feed 'river\nwater' tokenize -m "$MODEL"; same river water
feed 'river\r\nwater\r\n' tokenize -m "$MODEL" --offsets; cp "$T/out" "$T/got"
run tokenize -m "$MODEL" --offsets river water; check "CRLF" cmp -s "$T/got" "$T/out"
feed '\n' tokenize -m "$MODEL"; same ''
feed '\n\n' tokenize -m "$MODEL"; same '' ''
feed '\r\n\nwater\n\n' tokenize -m "$MODEL"; same '' '' water ''
feed '' tokenize -m "$MODEL"; exit_is 0; out_empty
feed '\357\273\277river\nwater\n' tokenize -m "$MODEL" --offsets; cp "$T/out" "$T/got"
run tokenize -m "$MODEL" --offsets river water; check "byte order mark" cmp -s "$T/got" "$T/out"
feed '\357\273\277' tokenize -m "$MODEL"; exit_is 0; out_empty
feed '# river\n   \n' tokenize -m "$MODEL"; same '# river' '   '
feed 'river\\nwater\n' tokenize -m "$MODEL"; same 'river\nwater'
feed 'river\n' tokenize -m "$MODEL" -f -; same river

printf 'river\nwater' >"$T/one"; printf '\357\273\277green\n' >"$T/two"
ids -f "$T/one" -f "$T/two"; same river water green
ids -f "$T/one" --jsonl; out_has '^{"index":0,"ids":\['
out_has '^{"index":1,"ids":\[2,179,3\],"tokens":\["\[CLS\]","water","\[SEP\]"\],"offsets":\[\[0,0\],\[0,5\],\[0,0\]\]}$'
mkdir "$T/a folder"; printf 'water\n' >"$T/a folder/it's ž.txt"
ids -f "$T/a folder/it's ž.txt"; same water
mkfifo "$T/pipe"; { printf 'river\n'; sleep 0.2; printf 'wat'; sleep 0.2; printf 'er\n'; } >"$T/pipe" & ids -f "$T/pipe"; same river water
{ printf '\357'; sleep 0.2; printf '\273\277river\n'; } >"$T/pipe" & ids -f "$T/pipe"; same river

ids -f "$T/none"; fails_with 3 'none: No such file'
ids -f "$T"; fails_with 3 'is a directory'

# UTF-8
feed 'fine\nbad \377 byte\n' tokenize -m "$MODEL"; exit_is 5
err_has '^lath: standard input: line 2: not valid UTF-8 at byte 5'
feed 'fine\nbad \355\240\275\n' tokenize -m "$MODEL" -f -; exit_is 5; err_has 'line 2'
printf 'a\nb\nc\300\200\n' >"$T/bad"; ids -f "$T/one" -f "$T/bad"; exit_is 5; err_has 'bad: line 3'
run tokenize -m "$MODEL" river "$(printf 'x\377')"; fails_with 5 'text 2: not valid UTF-8'
feed 'x \377 y\n' tokenize -m "$MODEL" --lossy; cp "$T/out" "$T/got"
run tokenize -m "$MODEL" "$(printf 'x \357\277\275 y')"; check "--lossy" cmp -s "$T/got" "$T/out"

# JSONL
feed '{"text": "river"}\n{"id": 7, "text": "water", "more": [1, {"text": "no"}]}\n' tokenize -m "$MODEL" --field text
same river water
feed '\357\273\277{"t": "river"}\r\n\r\n{"t": ""}' tokenize -m "$MODEL" --field t; same river '' ''
feed '{"t": "a\\nb \\u00e9 \\ud83c\\udf78"}\n' tokenize -m "$MODEL" --field t
same "$(printf 'a\nb \303\251 \360\237\215\270')"
feed '{"t": "fine"}\n{"t": "half \\ud83d"}\n' tokenize -m "$MODEL" --field t; exit_is 5
err_has 'line 2: .ud83d at byte 13 is half a surrogate pair'
feed '{"t": "\\ude00 x"}\n' tokenize -m "$MODEL" --field t; fails_with 5 'line 1'
feed '{"t": "x \\ud83d y \\ude00"}\n' tokenize -m "$MODEL" --field t --lossy
same "$(printf 'x \357\277\275 y \357\277\275')"
feed '{"t": "\\\\ud83d"}\n' tokenize -m "$MODEL" --field t; same '\ud83d'
feed '{"t": "fine"}\n{"u": "x"}\n' tokenize -m "$MODEL" --field t; exit_is 5; err_has 'line 2: no field "t"'
feed '{"t": 7}\n' tokenize -m "$MODEL" --field t; fails_with 5 'line 1: field "t": want a string'
feed '{"t": "x"\n' tokenize -m "$MODEL" --field t; fails_with 3 'line 1'
feed '{"t": "x"}\n["t"]\n' tokenize -m "$MODEL" --field t; exit_is 3; err_has 'line 2: want a JSON object'
run tokenize -m "$MODEL" --field t '{"t": "x"}'; same '{"t": "x"}'

# a file of many lines is read in pieces; the number of a bad line far behind is right
awk 'BEGIN { for (i = 1; i <= 20000; i++) print "green river water " i % 7; printf "bad \377\n" }' >"$T/many"
ids -f "$T/many" -o "$T/many.ids"; exit_is 5; err_has 'many: line 20001'; check "no file appears" [ ! -e "$T/many.ids" ]
head -n 20000 "$T/many" >"$T/good"; ids -f "$T/good"; exit_is 0; out_lines 20000
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "water "; print "" }' >"$T/wide"
ids -f "$T/wide"; exit_is 0; check "one wide line is one text" [ "$(wc -w <"$T/out")" -eq 100002 ]
finish
