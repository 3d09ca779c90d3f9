/* SPDX-License-Identifier: Apache-2.0
 * fuzz_tokenizer.c: any bytes as tokenizer.json; where they load, a few texts (and the bytes themselves) are encoded
 * and decoded again. */
#include <stdlib.h>
#include <string.h>

#include "tok/tok.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const tok *t, const char *text, size_t n, int64_t most)
{
    arena scratch;
    tok_encoding e = {0};
    buf out;
    tok_encode_options o = {true, (n & 1) == 0, most};
    arena_init(&scratch, alloc_default());
    buf_init(&out, alloc_default(), 1 << 26);
    if (tok_encode(t, &scratch, text, n, &o, &e, NULL) == LATH_OK) {
        for (size_t i = 0; i < e.n; i++) {
            if (e.offsets[2 * i] > e.offsets[2 * i + 1] || e.offsets[2 * i + 1] > n || !tok_token(t, e.ids[i], NULL))
                abort();
        }
        if (tok_decode(t, e.ids, e.n, n & 2, &out, NULL) != LATH_OK) abort();
    }
    buf_deinit(&out);
    tok_encoding_release(t, &e);
    arena_deinit(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const texts[] = {
        "The CATS unaffable! [MASK] [CLS]",
        " e\xCC\x81\xCC\xA3 \xE4\xB8\xAD\xED\x95\x9C \xC4\xB0 a\xF0\x9D\x85\xA5\xCC\x81 ", ""};
    tok *t;
    if (tok_open_json(alloc_default(), "fuzz", (const char *)data, size, &t, NULL) != LATH_OK) return 0;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) use(t, texts[i], strlen(texts[i]), (int64_t)i * 4);
    use(t, (const char *)data, size < 4096 ? size : 4096, 0);
    tok_close(t);
    return 0;
}
