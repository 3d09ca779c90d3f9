# SPDX-License-Identifier: Apache-2.0
# test_verify.sh: `lath verify`: sound index files of every type, damage of every part, another model's, what is no index.
. "$2/cli/lib.sh"
C=$T/corpus.txt
printf 'the green river runs\nwater\n\nrunning water in the river\ngreen\n' >"$C"
for t in f32 f16 int8; do
    run search -m "$MODEL" --corpus "$C" --query water -q --index "$T/$t.lath" --index-type $t; exit_is 0
    run verify "$T/$t.lath"; exit_is 0; err_empty; out_is "$T/$t.lath: ok: 5 rows of 30 numbers, $t\n"
done
run verify "$T/f32.lath" "$T/f16.lath" "$T/int8.lath"; exit_is 0; out_lines 3
bytes=$(wc -c <"$T/f16.lath")
run verify --json "$T/f16.lath"; exit_is 0; err_empty
out_is '{"ok":true,"files":[{"file":"'"$T"'/f16.lath","ok":true,"rows":5,"dim":30,"type":"f16","bytes":'"$bytes"'}]}\n'
run verify -m "$MODEL" "$T/f16.lath" "$T/int8.lath"; exit_is 0; err_empty; out_lines 2
run verify -m "$GOLDEN/cls_norm_bge" "$T/f16.lath"; fails_with 3 'f16.lath: an index of another model than .*cls_norm_bge'
: >"$T/none"; run search -m "$MODEL" --corpus "$T/none" --query water -q; run verify "$T/none.lath"; exit_is 0; out_is "$T/none.lath: ok: 0 rows of 30 numbers, f32\n"

# a bit of every part: header, vectors, the gap, entries, checks; the file cut anywhere
size=$(wc -c <"$T/f32.lath")
for at in 0 9 24 40 70 200 250 256 300 855 856 900 1000 $((size - 1)); do
    cp "$T/f32.lath" "$T/bad.lath"
    byte=$(dd if="$T/bad.lath" bs=1 skip=$at count=1 2>/dev/null | od -An -tu1 | tr -d ' ')
    printf "\\$(printf %03o $((byte ^ 4)))" | dd of="$T/bad.lath" bs=1 seek=$at conv=notrunc 2>/dev/null
    run verify "$T/bad.lath"; fails_with 3 'bad.lath: '
done
for n in 0 7 255 256 700 $((size - 1)); do
    head -c $n "$T/f32.lath" >"$T/cut.lath"; run verify "$T/cut.lath"; fails_with 3 'cut.lath: '
done
run verify --json "$T/bad.lath"; exit_is 3; out_has '^{"ok":false,"files":\[{"file":"[^"]*bad.lath","ok":false,"error":"[^"]*bad.lath: .*"}\]}$'
err_has '^lath: .*bad.lath: '; check "one line" [ "$(wc -l <"$T/err")" -eq 1 ]

# every file is looked at; each at fault has its line
run verify --jsonl "$T/bad.lath" "$T/f16.lath" "$T/cut.lath"; exit_is 3; out_lines 3
check "two errors" [ "$(grep -c '^lath: .*lath: ' "$T/err")" -eq 2 ]
check "one is whole" [ "$(grep -c '"ok":true' "$T/out")" -eq 1 ]
run verify "$T/bad.lath" "$T/f16.lath"; exit_is 3; out_lines 1

run verify; fails_with 2 'no file'
run verify "$T/nosuch.lath"; fails_with 3 'nosuch.lath'
run verify "$C"; fails_with 3 'corpus.txt: not a lath vector index'
run verify "$T"; fails_with 3 'no index.json in it'
run verify -m "$T/nosuch" "$T/f16.lath"; fails_with 3 'nosuch'
if [ -f "$TESTS/golden/index/version1.lath" ]; then run verify "$TESTS/golden/index/version1.lath"; fails_with 4 'version1.lath'; fi
finish
