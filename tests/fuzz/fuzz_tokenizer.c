/* SPDX-License-Identifier: Apache-2.0
 * fuzz_tokenizer.c: any bytes as tokenizer.json; where they load, a few texts (and the bytes themselves) are encoded,
 * as pairs and in parts, too, and decoded again, whole and as a stream. The same bytes become the arrays of a GGUF file where
 * they can, and a tokenizer again where that is one. */
#include "fuzz_tok.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void export_it(const char *json, size_t n)
{
    const log_sink silent = {0};
    tok_arrays a;
    arena mem;
    tok *t = NULL;
    arena_init(&mem, alloc_default());
    if (tok_arrays_parse(&mem, "fuzz", json, n, (int64_t)(n % 3) * 40, &silent, &a, NULL) == LATH_OK)
        (void)tok_open_arrays(alloc_default(), "fuzz", &a, &t, NULL);
    tok_close(t);
    arena_deinit(&mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const texts[] = {
        "The CATS unaffable! [MASK] [CLS]",
        " e\xCC\x81\xCC\xA3 \xE4\xB8\xAD\xED\x95\x9C \xC4\xB0 a\xF0\x9D\x85\xA5\xCC\x81 ",
        "",
        "a  bb\r\n\r\n don't 12345 \xE2\x96\x81<s>ab<0x41>\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB",
    };
    tok *t;
    export_it((const char *)data, size);
    if (tok_open_json(alloc_default(), "fuzz", (const char *)data, size, &t, NULL) != LATH_OK) return 0;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        fuzz_tok_use(t, texts[i], strlen(texts[i]), (int64_t)i * 4);
    fuzz_tok_use(t, (const char *)data, size < 4096 ? size : 4096, 0);
    tok_close(t);
    return 0;
}
