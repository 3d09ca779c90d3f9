# SPDX-License-Identifier: Apache-2.0
# test_cache.sh: --cache: the same output with and without, what -v says, files that are refused and left alone.
. "$2/cli/lib.sh"
C=$T/cache
OTHER=$GOLDEN/cls_norm_bge
printf 'water\nthe green river\nwater\n\nold houses by the river\n' >"$T/texts"

embed() { run embed -m "$MODEL" -f "$T/texts" --cache "$C" "$@"; }
has_file() { check "$1 is there" [ -s "$1" ]; }
unchanged() { check "$1 is unchanged" cmp -s "$1" "$2"; }
alone() { check "nothing beside the cache" [ "$(ls "$T" | grep -c '^cache.')" -eq 0 ]; }

# the same bits, cold and warm, in every format
for format in jsonl json npy f32 text; do
    run embed -m "$MODEL" -f "$T/texts" --format $format; exit_is 0; cp "$T/out" "$T/plain"
    rm -f "$C"
    embed --format $format; exit_is 0; check "cold output" cmp -s "$T/plain" "$T/out"; err_empty
    embed --format $format; exit_is 0; check "warm output" cmp -s "$T/plain" "$T/out"; err_empty
done
has_file "$C"; alone

# what -v says
rm "$C"
embed -v; err_has 'cache .*/cache: 0 hits (0 in memory), 5 misses'
embed -v; err_has '5 hits (1 in memory), 0 misses'
embed -v -q; err_empty

# other settings of the same model share the file and never a vector
for o in "--dim 5" "--pooling cls" "--no-normalize" "--prompt-text old" "--max-len 4" "--isa ref"; do
    # shellcheck disable=SC2086
    run embed -m "$MODEL" -f "$T/texts" $o; exit_is 0; cp "$T/out" "$T/plain"
    # shellcheck disable=SC2086
    embed $o; exit_is 0; check "output with $o" cmp -s "$T/plain" "$T/out"
    # shellcheck disable=SC2086
    embed $o -v; check "output with $o, warm" cmp -s "$T/plain" "$T/out"; err_has ' 0 misses'
done

# similarity and search take it too; texts that embed has kept are hits (this model normalises)
rm "$C"; embed -q
run similarity -m "$MODEL" -f "$T/texts" --json; cp "$T/out" "$T/plain"
run similarity -m "$MODEL" -f "$T/texts" --json --cache "$C" -v; check "similarity" cmp -s "$T/plain" "$T/out"; err_has ' 0 misses'
run search -q -m "$MODEL" --corpus "$T/texts" --index "$T/i1" --query 'green water' --json; cp "$T/out" "$T/plain"
run search -v -m "$MODEL" --corpus "$T/texts" --index "$T/i2" --query 'green water' --json --cache "$C"
check "search" cmp -s "$T/plain" "$T/out"; err_has '5 hits (1 in memory), 0 misses'; err_has '0 hits (0 in memory), 1 misses'

# another model, foreign, cut, damaged: exit 3, one line with the file's name, not a byte of it changes
refused() { cp "$C" "$T/keep"; embed; fails_with 3 "$1"; unchanged "$C" "$T/keep"; alone; }
cp "$C" "$T/keep"
run embed -m "$OTHER" --cache "$C" water; fails_with 3 'cache: the embedding cache holds vectors of another model'; unchanged "$C" "$T/keep"; alone
cp "$C" "$T/good"
head -c 20000 "$T/good" >"$C"; refused 'cache: damaged embedding cache'
head -c 50 "$T/good" >"$C"; refused 'cache: damaged embedding cache: it is cut'
: >"$C"; refused 'cache: no embedding cache: the file is empty or cut'
printf 'my diary, which is longer than the header of a cache, in any case long enough to be taken for something that it is not\n' >"$C"; refused 'cache: no embedding cache'
cp "$T/i1" "$C"; refused 'cache: no embedding cache'
n=$(wc -c <"$T/good"); cp "$T/good" "$C"
dd if=/dev/zero of="$C" bs=1 seek=$((n - 700)) count=600 conv=notrunc 2>/dev/null; refused 'cache: damaged embedding cache'
rm "$C"; mkdir "$C"; embed; fails_with 3 'cache: no regular file'; rmdir "$C"
run embed -m "$MODEL" --cache "$T/none/cache" water; fails_with 7 'none/cache: cannot create'
run embed -m "$MODEL" --cache '' water; fails_with 2 'cache: '

# results never replace the cache
cp "$T/good" "$C"; embed -o "$C"; fails_with 2 'is the cache'; unchanged "$C" "$T/good"
rm "$C"; embed -o "$C"; fails_with 2 'is the cache'; check "no file appears" [ ! -e "$C" ]

# records: out of one cache, into another or into memory
cp "$T/good" "$C"; R=$T/records
embed; cp "$T/out" "$T/plain"
embed --cache-export "$R" -q; exit_is 0; has_file "$R"
rm "$C"; embed --cache-import "$R" -v; check "output" cmp -s "$T/plain" "$T/out"; err_has '5 hits (5 in memory), 0 misses'
embed -v; err_has '5 hits (1 in memory), 0 misses'
run embed -m "$MODEL" -f "$T/texts" --cache-import "$R" -v; check "output" cmp -s "$T/plain" "$T/out"; err_has 'in memory: 5 hits'
run embed -m "$OTHER" -f "$T/texts" --cache-import "$R"; fails_with 3 'records: the records are of another model'
run embed -m "$MODEL" -f "$T/texts" --cache-import "$R" --dim 3; fails_with 3 'records: the records are of other settings'
head -c 300 "$R" >"$T/cut"; embed --cache-import "$T/cut"; fails_with 3 'cut: cut: 300 bytes'
embed --cache-import "$C"; fails_with 3 'no file of embedding records'
cp "$C" "$T/keep"; embed --cache-export "$C"; fails_with 2 'is the cache'; unchanged "$C" "$T/keep"

# two processes at once
i=0; while [ $i -lt 60 ]; do echo "river $i"; i=$((i + 1)); done >"$T/many"
"$LATH" embed -q -m "$MODEL" -f "$T/many" --cache "$C" --format f32 >"$T/a" 2>"$T/ea" &
one=$!
"$LATH" embed -q -m "$MODEL" -f "$T/many" --cache "$C" --format f32 >"$T/b" 2>"$T/eb"
check "the second process" [ $? -eq 0 ]
wait $one
check "the first process" [ $? -eq 0 ]
run embed -m "$MODEL" -f "$T/many" --format f32
check "both wrote what is right" cmp -s "$T/out" "$T/a"; check "both wrote what is right" cmp -s "$T/out" "$T/b"
# two that end at one moment may each leave the log to the other: the next one finds all in it and takes it in
run embed -m "$MODEL" -f "$T/many" --cache "$C" -v --format f32; exit_is 0; err_has ', 0 misses'; check "what both kept" cmp -s "$T/out" "$T/a"; alone
finish
