# SPDX-License-Identifier: Apache-2.0
# test_embed.sh: the formats of `lath embed` and what its options do. Expected numbers are those of the reference implementation (golden/).
. "$2/cli/lib.sh"

# reference TEXT: the embedding that expected.json has for it, a number a line
reference() {
    sed -n "s/.*{\"text\": \"$1\", .*\"embedding\": \[\([^]]*\)\].*/\1/p" "$MODEL/expected.json" | tr -d ' ' | tr ',' '\n'
}
# near FILE FILE: as many numbers, each within 1e-4
near() {
    paste "$1" "$2" | awk '{ if (NF != 2) bad = 1; d = $1 - $2; if (d < -1e-4 || d > 1e-4) bad = 1 } END { exit bad || NR == 0 }'
}

reference 'water' >"$T/water"
check "the reference has 30 numbers" [ "$(wc -l <"$T/water")" -eq 30 ]
run embed -m "$MODEL" water --format text; exit_is 0; err_empty; out_lines 1
tr ' ' '\n' <"$T/out" >"$T/got"; check "text equals the reference" near "$T/got" "$T/water"

# jsonl is the default where no terminal is
run embed -m "$MODEL" water ""; exit_is 0; out_lines 2
cp "$T/out" "$T/jsonl"
out_has '^{"index":0,"embedding":\[[-0-9.e,]*\],"tokens":3,"truncated":false}$'
out_has '^{"index":1,"embedding":\[[-0-9.e,]*\],"tokens":2,"truncated":false}$'
sed -n '1s/.*"embedding":\[\([^]]*\)\].*/\1/p' "$T/out" | tr ',' '\n' >"$T/got"
check "jsonl equals the reference" near "$T/got" "$T/water"
run embed -m "$MODEL" water "" --jsonl; check "--jsonl" cmp -s "$T/jsonl" "$T/out"
run embed -m "$MODEL" water "" --format jsonl; check "--format jsonl" cmp -s "$T/jsonl" "$T/out"
run embed -m "$MODEL" water "" --json; cp "$T/out" "$T/json"
{ printf '['; sed -e '1s/$/,/' "$T/jsonl" | sed -e '2s/$/]/'; } >"$T/want"; check "json is an array of the lines" cmp -s "$T/want" "$T/json"
run embed -m "$MODEL" water "" --format json; check "--format json" cmp -s "$T/json" "$T/out"
run embed -m "$MODEL" --json; exit_is 0; out_is '[]\n'
run embed -m "$MODEL"; exit_is 0; out_empty; err_empty

# f32 and npy: the same bytes, to a pipe and to a file; the npy header by its specification
run embed -m "$MODEL" water "" --format f32; cp "$T/out" "$T/f32"; check "240 bytes" [ "$(wc -c <"$T/f32")" -eq 240 ]
od -An -tf4 -N120 -v "$T/f32" | tr -s ' ' '\n' | grep . >"$T/got"
check "f32 equals the reference" near "$T/got" "$T/water"
run embed -m "$MODEL" water "" --format npy -o "$T/x.npy"; exit_is 0; out_empty; err_empty
printf '\223NUMPY\001\000v\000{'"'descr': '<f4', 'fortran_order': False, 'shape': (2, 30), }" >"$T/want"
head -c "$(wc -c <"$T/want")" "$T/x.npy" >"$T/got"; check "npy header" cmp -s "$T/want" "$T/got"
check "npy header ends at 128 with a newline" [ "$(od -An -c -j127 -N1 "$T/x.npy" | tr -d ' ')" = '\n' ]
tail -c +129 "$T/x.npy" >"$T/got"; check "npy data" cmp -s "$T/f32" "$T/got"
run embed -m "$MODEL" water "" --format npy; check "npy to standard output" cmp -s "$T/x.npy" "$T/out"
run embed -m "$MODEL" --format npy; check "npy of nothing has shape (0, 30)" grep -q "(0, 30)" "$T/out"

# threads, batches and company change no bit
seq 1 300 | sed 's/$/ green river water runs/' >"$T/many"
run embed -m "$MODEL" -f "$T/many" --format f32 -t 1; cp "$T/out" "$T/want"
run embed -m "$MODEL" -f "$T/many" --format f32 -t 3; check "threads change nothing" cmp -s "$T/want" "$T/out"
run embed -m "$MODEL" -f "$T/many" --format f32 --batch-tokens 7
check "batches change nothing" cmp -s "$T/want" "$T/out"
"$LATH" embed -m "$MODEL" --format f32 <"$T/many" >"$T/out" 2>"$T/err"; rc=$?
check "standard input is the same" cmp -s "$T/want" "$T/out"

# what options do
run embed -m "$MODEL" water --dim 4 --format text; check "4 numbers" [ "$(wc -w <"$T/out")" -eq 4 ]
awk '{ s = 0; for (i = 1; i <= NF; i++) s += $i * $i; exit !(s > 0.9999 && s < 1.0001) }' "$T/out"
checks=$((checks + 1)); [ $? -eq 0 ] || fail "--dim is normalised again"
run embed -m "$MODEL" water --no-normalize --format text
check "--no-normalize leaves another length" awk '{ s = 0; for (i = 1; i <= NF; i++) s += $i * $i; exit !(s > 1.01 || s < 0.99) }' "$T/out"
run embed -m "$MODEL" water --format text --pooling cls; cp "$T/out" "$T/cls"
run embed -m "$MODEL" water --format text --pooling mean; tr ' ' '\n' <"$T/out" >"$T/got"
check "mean is this model's pooling" near "$T/got" "$T/water"
check "cls differs" [ "$(cat "$T/cls")" != "$(cat "$T/out")" ]

P=$GOLDEN/prompts_included
run embed -m "$P" --format text 'green river'; cp "$T/out" "$T/default"
run embed -m "$P" --format text --prompt query 'green river'
check "the default prompt is query" cmp -s "$T/default" "$T/out"
run embed -m "$P" --format text --prompt-text 'query: ' 'green river'
check "--prompt-text" cmp -s "$T/default" "$T/out"
run embed -m "$P" --format text --prompt-text '' 'query: green river'
check "--prompt-text of nothing" cmp -s "$T/default" "$T/out"
run embed -m "$P" --format text --prompt document 'green river'
check "another prompt differs" [ "$(cat "$T/default")" != "$(cat "$T/out")" ]

# texts over the window: cut and counted, or refused by line
long=$(printf 'water %.0s' $(seq 1 60))
printf 'short\n%s\nshort\n' "$long" >"$T/long"
run embed -m "$MODEL" -f "$T/long"; exit_is 0; out_has '"index":1,.*"tokens":40,"truncated":true}'
err_has '1 of 3 texts cut at 40 tokens'
run embed -m "$MODEL" -f "$T/long" -q; err_empty
run embed -m "$MODEL" -f "$T/long" --max-len 5; out_has '"tokens":5,"truncated":true'
run embed -m "$MODEL" -f "$T/long" --no-truncate; fails_with 5 'long: line 2: 62 tokens, the window is 40'
run embed -m "$MODEL" --no-truncate short "$long"; fails_with 5 'text 2: 62 tokens'
run embed -m "$MODEL" -v water; exit_is 0; err_has 'embedded 1 text, 3 tokens'
finish
