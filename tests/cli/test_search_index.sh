# SPDX-License-Identifier: Apache-2.0
# test_search_index.sh: the life of the index file of `lath search`: what is embedded again when the corpus changes (and that the result is the
# one of an index made anew, byte for byte), types, files that are left alone, processes that are killed or meet.
. "$2/cli/lib.sh"
C=$T/corpus.txt
I=$C.lath
search() { run search -m "$MODEL" --corpus "$C" --query 'green water' --json "$@"; }

# as_new WHAT N_EMBEDDED N_KEPT: after the corpus changed, so many texts are embedded and kept, and the file is as if made anew
as_new() {
    what=$1
    search; exit_is 0; err_has "indexed $2 text"
    if [ "$3" -gt 0 ]; then err_has "; $3 were there already"; else check "$what: nothing kept" [ "$(grep -c already "$T/err")" -eq 0 ]; fi
    run search -m "$MODEL" --corpus "$C" --query 'green water' --json -q --index "$T/new.lath"
    check "$what: the index is as if made anew" cmp -s "$I" "$T/new.lath"
    rm -f "$T/new.lath"
}

printf 'the green river runs\nwater\n\nrunning water in the river\ngreen\n' >"$C"; as_new 'new' 5 0
printf 'a lake\nwater\n' >>"$C"; as_new 'appended, one of them known' 1 6
printf 'the end' >>"$C"; as_new 'appended without a line end' 1 7
printf 'less' >>"$C"; as_new 'the last line grew' 1 7
printf '\n' >>"$C"; search; exit_is 0; err_has 'indexed 0 texts'
printf 'x\ny\nz\n' >>"$C"; sed -i '2s/.*/waters/' "$C"; as_new 'a line changed, lines appended' 4 7
sed -i '1d;4d' "$C"; as_new 'lines removed' 0 9
sed -i '1i first' "$C"; as_new 'a line in front' 1 9
sort -o "$C" "$C"; as_new 'another order' 0 10
: >"$C"; search; exit_is 0; out_is '{"results":[]}\n'
printf 'water\nriver\n' >"$C"; as_new 'from nothing' 2 0
printf '\357\273\277water\r\nriver\r' >"$C"; as_new 'CRLF and a mark' 1 1
printf '\n\r\nlake\r\n' >>"$C"; as_new 'a line end that came late' 3 1

# JSONL: only the field counts
J=$T/docs.jsonl
printf '{"t":"water","n":1}\n{"t":"green","n":2}\n' >"$J"
run search -m "$MODEL" --corpus "$J" --field t --query water --json; exit_is 0; err_has 'indexed 2 texts'
printf '{"n":3,"t":"wa\\u0074er"}\n{"t":"green","n":4}\n{"t":"river"}\n\n' >"$J"
run search -m "$MODEL" --corpus "$J" --field t --query water --top-k 1 --json; err_has 'indexed 2 texts'; err_has '2 were there already'
out_has '"record":{"n":3,"t":"wa.u0074er"}'
printf '{"t":"green","n":5\n' >>"$J"; cp "$J.lath" "$T/keep"
run search -m "$MODEL" --corpus "$J" --field t --query water -q; fails_with 3 'docs.jsonl: line 5'
check "not the corpus is to be deleted" [ "$(grep -c 'delete' "$T/err")" -eq 0 ]
check "an index that could not be brought up to date stays" cmp -s "$T/keep" "$J.lath"

# a corpus that is cut between the search and the reading of what was found: malformed, and named
printf 'water\ngreen\nriver\n' >"$T/cut"; mkfifo "$T/reader"; rm -f "$T/cut.lath"
shown='lath search, corpus cut'
"$LATH" search -m "$MODEL" --corpus "$T/cut" --query water --json -q -o "$T/reader" >"$T/out" 2>"$T/err" & pid=$!
tries=0; while [ ! -s "$T/cut.lath" ] && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
sleep 0.5; printf 'w\n' >"$T/cut"; cat "$T/reader" >/dev/null
wait $pid; rc=$?; fails_with 3 'cut: it shrank while it was searched$'

# types: the size, the same order, kept over changes, converted from f32 only
printf 'the green river runs\nwater\n\nrunning water in the river\ngreen\n' >"$C"; rm -f "$I"; search; cp "$T/out" "$T/f32"; big=$(wc -c <"$I")
for type in f16 int8; do
    search --index "$T/$type.lath" --index-type $type; exit_is 0; err_has 'indexed 5 texts'
    check "$type is smaller" [ "$(wc -c <"$T/$type.lath")" -lt "$big" ]
    sed 's/"score":[-0-9.e]*,//g' "$T/out" >"$T/got"; sed 's/"score":[-0-9.e]*,//g' "$T/f32" >"$T/want"
    check "$type gives the same order" cmp -s "$T/got" "$T/want"
    cp "$I" "$T/copy"; search --index-type $type; err_has 'made again, because --index-type'; err_has 'indexed 0 texts'
    check "converted as if made of texts" cmp -s "$I" "$T/$type.lath"
    search; check "the type of the file is kept" [ "$(grep -c indexed "$T/err")" -eq 0 ]
    search --index-type f32; err_has 'indexed 5 texts'
    check "f32 again" cmp -s "$I" "$T/copy"
done
search --index-type f64; fails_with 2 'index-type'

# what --index names is brought up to date, but never made another
search --index "$T/f16.lath" --index-type int8; fails_with 3 'f16.lath: an index of another type; delete it or name another file'
search --index "$T/f16.lath" --pooling cls; fails_with 3 'f16.lath: an index of other options'
run search -m "$GOLDEN/cls_norm_bge" --corpus "$C" --query water --index "$T/f16.lath"; fails_with 3 'f16.lath: an index of another model'
printf 'lake\n' >>"$C"; search --index "$T/f16.lath"; exit_is 0; err_has 'indexed 1 text,'; search; exit_is 0
cp "$MODEL/config.json" "$T/foreign"; cp "$T/foreign" "$T/keep"; search --index "$T/foreign"; fails_with 3 'foreign: not a lath vector index'
check "a foreign file is untouched" cmp -s "$T/foreign" "$T/keep"

# an index of the version before: made again where it is ours (its header with its checksum; the rest was never read)
if [ -f "$TESTS/golden/index/version1.lath" ]; then
    cp "$TESTS/golden/index/version1.lath" "$I"; search; exit_is 0; err_has 'made again, because it is of an older version'
    cp "$TESTS/golden/index/version1.lath" "$T/v1.lath"; search --index "$T/v1.lath"; fails_with 3 'v1.lath: an index of an older version of lath'
    check "it stays" cmp -s "$TESTS/golden/index/version1.lath" "$T/v1.lath"
else
    check "version1.lath is there" false
fi

# so is one that only had samples of its model's weights for a key
cp "$TESTS/golden/index/sampled_model.lath" "$I"; search; exit_is 0; err_has 'made again, because it is of an older version'; search; check "once" [ "$(grep -c again "$T/err")" -eq 0 ]
cp "$TESTS/golden/index/sampled_model.lath" "$T/v2.lath"; search --index "$T/v2.lath"; fails_with 3 'v2.lath: an index of an older version of lath'

# damage is found when it is met: in a vector by the search, in an entry by the result or the update
search -q; cp "$I" "$T/good"
damage() { cp "$T/good" "$I"; printf '\125' | dd of="$I" bs=1 seek="$1" conv=notrunc 2>/dev/null; cp "$I" "$T/bad"; }
size=$(wc -c <"$I")
damage 300; search; fails_with 3 'corpus.txt.lath: damaged: the vectors of rows 0 to 5.*delete it'
damage $((size - 100)); search; fails_with 3 'corpus.txt.lath: damaged: the entries of rows 0 to 5'
damage $((size - 3)); search; fails_with 3 'corpus.txt.lath: damaged: the checksums'
damage 300; printf 'pond\n' >>"$C"; search -q; fails_with 3 'damaged: the vectors'
check "it is left alone" cmp -s "$I" "$T/bad"
rm -f "$I"; search; exit_is 0

# kill -9 while it is made: no index, or the old one; the next run removes what was left and makes it
B=$T/big.txt
i=0; while [ $i -lt 3000 ]; do echo "line $i of a text that goes on for a while so that the work takes time, with the words $i and $((i * 7))"; i=$((i + 1)); done >"$B"
for wait in 0.05 0.1 0.2 0.4; do
    "$LATH" search -m "$MODEL" --corpus "$B" --query water -q -t 1 >/dev/null 2>&1 &
    pid=$!
    sleep $wait
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    if [ -f "$B.lath" ]; then
        run search -m "$MODEL" --corpus "$B" --query water -q; exit_is 0
        rm -f "$B.lath"
    fi
done
: >"$B.lath.4194999-0.tmp"
run search -m "$MODEL" --corpus "$B" --query water --json; exit_is 0; cp "$T/out" "$T/want"; cp "$B.lath" "$T/keep"
check "nothing is left of the killed" [ -z "$(ls "$T" | grep 'big.txt.lath.*tmp')" ]

# two at once: both right, one file
rm -f "$B.lath"
"$LATH" search -m "$MODEL" --corpus "$B" --query water --json -q -t 1 >"$T/one" 2>&1 & one=$!
"$LATH" search -m "$MODEL" --corpus "$B" --query water --json -q -t 1 >"$T/two" 2>&1 & two=$!
wait $one; check "the first of two" [ $? -eq 0 ]
wait $two; check "the second of two" [ $? -eq 0 ]
check "the first is right" cmp -s "$T/one" "$T/want"
check "the second is right" cmp -s "$T/two" "$T/want"
check "the file is right" cmp -s "$B.lath" "$T/keep"
check "nothing is left" [ -z "$(ls "$T" | grep 'tmp$')" ]
finish
