# SPDX-License-Identifier: Apache-2.0
# test_gguf.sh: the tokenizer of a GGUF file. Expected ids are those of the reference implementation for the same tokenizer (golden/qwen3).
. "$2/cli/lib.sh"
G=$TESTS/golden/gguf/qwen2.gguf
E=$TESTS/golden/qwen3/embedding_old/expected.json

# reference TEXT: the ids of expected.json, blanks between
reference() { sed -n "s/.*{\"text\": \"$1\", \"ids\": \[\([0-9, ]*\)\].*/\1/p" "$E" | head -n 1 | tr -d ','; }
n=0
for text in 'The green river runs.' 'water' 'Small houses by the old river, 12 miles.'; do
    want=$(reference "$text"); [ -n "$want" ] || continue
    n=$((n + 1))
    run tokenize -m "$G" "$text"; exit_is 0; err_empty
    check "ids of \"$text\"" [ "$(cat "$T/out")" = "$want" ]
    run tokenize -m "$G" --decode -f "$T/out"
done
check "texts were compared" [ "$n" -ge 2 ]
run tokenize -m "$G" --no-special water; check "without the end token" [ "$(cat "$T/out") 299" = "$(reference water)" ]

# what cannot be used
head -c 3000 "$G" >"$T/cut.gguf"; run tokenize -m "$T/cut.gguf" x; fails_with 3 'cut.gguf'
printf 'GGUF' >"$T/short.gguf"; run tokenize -m "$T/short.gguf" x; fails_with 3 'short.gguf'
: >"$T/empty.gguf"; run tokenize -m "$T/empty.gguf" x; fails_with 3 'empty.gguf'
run tokenize -m "$TESTS/fuzz/corpus/fuzz_gguf/kinds.gguf" x; fails_with 3 'no tokenizer in it'
run tokenize -m "$T/none.gguf" x; fails_with 3 'none.gguf'
run embed -m "$G" x; fails_with 3 'is not there'
finish
