/* SPDX-License-Identifier: Apache-2.0
 * fuzz_regex.c: the first line is a split pattern, the rest a text; where the pattern is accepted, its matches lie in the
 * text, in order. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tok/tok_regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void search(const tok_regex *r, const char *s, size_t n)
{
    tok_regex_find f;
    size_t last = 0;
    bool found = true;
    lath_status st = tok_regex_begin(&f, r, s, n, NULL);
    for (int k = 0; st == LATH_OK && found && k < 1000; k++) {
        st = tok_regex_next(&f, &found, NULL);
        if (st != LATH_OK || !found) break;
        if (f.b < last || f.e < f.b || f.e > n) abort();
        last = f.e;
    }
    tok_regex_end(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *s = (const char *)data, *line = size ? memchr(s, '\n', size) : NULL;
    size_t n = line ? (size_t)(line - s) : size;
    if (size == 0 || size > 4096 || utf8_first_invalid(s, size) < size) return 0;
    tok t = {.alloc = alloc_default()};
    tok_load l = {.t = &t, .name = "fuzz"};
    const tok_regex *r;
    arena_init(&t.mem, t.alloc);
    char *pattern = arena_strdup(&t.mem, s, n); /* as patterns are: with a 0 behind */
    if (!pattern) abort();
    if (tok_regex_load(&l, NULL, "pre_tokenizer", (tok_string){pattern, n}, &r) == LATH_OK && line)
        search(r, line + 1, size - n - 1);
    tok_regex_release(&t);
    arena_deinit(&t.mem);
    return 0;
}
