/* SPDX-License-Identifier: Apache-2.0
 * fuzz_encode.c: the first byte names one of the tokenizers of the golden tests, all models and components among them,
 * the second a limit; the rest is text. What is encoded a second time, from the words the tokenizer remembers, is the
 * same. Bytes that are not UTF-8 are refused. */
#include "fuzz_tok.h"

#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "tok/tok_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TOKENIZERS_MOST = 256 };

static struct {
    tok *v[TOKENIZERS_MOST];
    size_t n;
} all;

/* The lines of the file that have a tokenizer. */
static void open_all(const char *path)
{
    buf text;
    arena tree;
    json_options opts = {.max_bytes = 1 << 26};
    buf_init(&text, alloc_default(), 1 << 26);
    arena_init(&tree, alloc_default());
    if (file_read(&text, path, 1 << 26, NULL) != LATH_OK) abort();
    for (const char *s = text.data, *stop = s + text.len, *end; s < stop; s = end + 1) {
        json_value *line;
        end = memchr(s, '\n', (size_t)(stop - s));
        if (!end) end = stop;
        if (json_parse(&tree, path, s, (size_t)(end - s), &opts, &line, NULL) != LATH_OK) abort();
        const json_value *file = json_get(line, "tokenizer");
        if (file && all.n < TOKENIZERS_MOST &&
            tok_open_json(alloc_default(), path, file->u.string.data, file->u.string.len, &all.v[all.n++], NULL) !=
                LATH_OK)
            abort();
        arena_reset(&tree);
    }
    arena_deinit(&tree);
    buf_deinit(&text);
}

static bool same(const tok_encoding *a, const tok_encoding *b)
{
    return a->n == b->n && (a->n == 0 || (memcmp(a->ids, b->ids, a->n * sizeof(*a->ids)) == 0 &&
                                          memcmp(a->offsets, b->offsets, 2 * a->n * sizeof(*a->offsets)) == 0));
}

static void encode_twice(const tok *t, const char *s, size_t n)
{
    tok_encode_options o = {false, true, 0};
    tok_encoding a = {0}, b = {0};
    arena scratch;
    arena_init(&scratch, alloc_default());
    lath_status first = tok_encode(t, &scratch, s, n, &o, &a, NULL);
    lath_status second = tok_encode(t, &scratch, s, n, &o, &b, NULL);
    if (first != second || (first == LATH_OK && !same(&a, &b))) abort();
    if (first == LATH_OK && utf8_first_invalid(s, n) < n) abort();
    tok_encoding_release(t, &a);
    tok_encoding_release(t, &b);
    arena_deinit(&scratch);
}

/* In a range that is plain no token is special, but for the one that stands for what is unknown; without ranges nothing is different. */
static void encode_guarded(const tok *t, const char *s, size_t n, tok_range plain)
{
    tok_encode_options o = {false, true, 0};
    tok_encoding a = {0}, b = {0};
    arena scratch;
    arena_init(&scratch, alloc_default());
    if (tok_encode(t, &scratch, s, n, &o, &a, NULL) != LATH_OK) abort();
    if (tok_encode_guarded(t, &scratch, s, n, NULL, 0, &b, NULL) != LATH_OK || !same(&a, &b)) abort();
    if (tok_encode_guarded(t, &scratch, s, n, &plain, 1, &b, NULL) != LATH_OK) abort();
    for (size_t i = 0; i < b.n; i++) {
        const size_t begin = b.offsets[2 * i], end = b.offsets[2 * i + 1];
        if (begin < end && begin >= plain.begin && end <= plain.end && b.ids[i] != t->unk &&
            tok_is_special(t, b.ids[i]))
            abort();
    }
    tok_encoding_release(t, &a);
    tok_encoding_release(t, &b);
    arena_deinit(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (all.n == 0) {
        open_all(LATH_TEST_DATA_DIR "/unit/tok/bpe.jsonl");
        open_all(LATH_TEST_DATA_DIR "/unit/tok/pipelines.jsonl");
    }
    if (size < 2) return 0;
    const tok *t = all.v[data[0] % all.n];
    const char *s = (const char *)data + 2;
    size_t n = size - 2;
    encode_twice(t, s, n);
    size_t valid = utf8_first_invalid(s, n);
    if (valid < n) encode_twice(t, s, valid);
    if (valid > n) valid = n;
    const size_t from = valid ? data[1] % valid : 0, to = from + (valid - from) / (1 + data[0] % 3);
    encode_guarded(t, s, valid, (tok_range){from, to});
    if (to > from) encode_guarded(t, s, valid, (tok_range){0, valid});
    fuzz_tok_use(t, s, valid < n ? valid : n, data[1] % 32);
    return 0;
}
