# SPDX-License-Identifier: Apache-2.0
# test_grammar.sh: generate --json-schema and --grammar on a tiny random model: whatever the seed, the text is as it must be; files that are wrong.
. "$2/cli/lib.sh"
LM=$TESTS/golden/qwen3/plain_causal_lm

cat >"$T/schema.json" <<'END'
{"type": "object",
 "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 120}, "kind": {"enum": ["cat", "dog"]},
                "tags": {"type": "array", "items": {"enum": ["x", "y"]}, "minItems": 1, "maxItems": 2}},
 "required": ["age", "kind", "tags"]}
END
for seed in 1 2 3 4; do
    run generate -m "$LM" "x" --json-schema "$T/schema.json" --temp 2 --seed $seed -n 1000; exit_is 0; err_empty
    tr -d ' \n\t' <"$T/out" >"$T/flat"
    check "seed $seed: $(cat "$T/flat")" grep -E -x -q '\{"age":([0-9]|[1-9][0-9]|1[01][0-9]|120),"kind":"(cat|dog)","tags":\["[xy]"(,"[xy]")?\]\}' "$T/flat"
done
run generate -m "$LM" "x" --json-schema "$T/schema.json" -n 1000 --json; exit_is 0; out_has '"finish_reason":"stop"'
run generate -m "$LM" "x" --json-schema "$T/schema.json" -n 3 --json; exit_is 0; out_has '"finish_reason":"length"'

printf 'root ::= "yes" | "no" (", " [a-c]{2})?\n' >"$T/g"
for seed in 1 2 3 4; do
    run generate -m "$LM" "x" --grammar "$T/g" --temp 3 --seed $seed; exit_is 0
    check "seed $seed: $(cat "$T/out")" grep -E -x -q 'yes|no(, [a-c][a-c])?' "$T/out"
done
# A text that can only be over ends without an end token.
printf 'root ::= "ab"' >"$T/g"
run generate -m "$LM" "x" --grammar "$T/g" --json; exit_is 0; out_has '"text":"ab"'; out_has '"finish_reason":"stop"'
printf 'root ::= ""' >"$T/g"
run generate -m "$LM" "x" --grammar "$T/g" --json; exit_is 0; out_has '"text":"","token_ids":\[\]'; out_has '"finish_reason":"stop"'

run generate -m "$LM" "x" --grammar "$T/g" --json-schema "$T/schema.json"; fails_with 2 'not together'
run generate -m "$LM" "x" --grammar "$T/none"; fails_with 3 'none'
printf 'root ::= "a\n' >"$T/g"
run generate -m "$LM" "x" --grammar "$T/g"; fails_with 5 'g: line 1: a literal is not closed'
printf '{"type": "object",\n "not": {}}' >"$T/s"
run generate -m "$LM" "x" --json-schema "$T/s"; fails_with 4 's: line 2: #: "not" cannot be enforced'
printf '{"type": "object"' >"$T/s"
run generate -m "$LM" "x" --json-schema "$T/s"; fails_with 5 's: line 1'
finish
