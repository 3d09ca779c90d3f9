/* SPDX-License-Identifier: Apache-2.0
 * tok_charsmap.c: reading and searching the character map (tok_charsmap.h; units as in darts-clone: bit 31 a value, bits
 * 10..30 offset, bit 9 its shift by 8, bit 8 a value follows, bits 0..7 label). */
#include "tok/tok_charsmap.h"

#include "base/utf8.h"

static uint32_t read_u32(const char *p)
{
    const uint8_t *b = (const uint8_t *)p;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint32_t offset_of(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }

const char *tok_charsmap_find(const tok_charsmap *m, const char *s, size_t n, bool longest, size_t *used, size_t *len)
{
    uint64_t at = offset_of(m->units[0]);
    const char *found = NULL;
    for (size_t i = 0; i < n && s[i]; i++) {
        uint8_t c = (uint8_t)s[i];
        at ^= c;
        if (at >= m->n_units) break;
        uint32_t unit = m->units[at];
        if ((unit & 0x800000FF) != c) break;
        at ^= offset_of(unit);
        if (!(unit & 0x100) || at >= m->n_units) continue;
        size_t place = m->units[at] & 0x7FFFFFFF;
        if (place > m->n_text || ((uint8_t)m->text[place] & 0xC0) == 0x80) continue;
        found = m->text + place;
        *used = i + 1;
        *len = strlen(found);
        if (!longest) break;
    }
    return found;
}

lath_status tok_charsmap_load(tok_load *l, const json_value *at, const char *bytes, size_t n, tok_charsmap **out)
{
    if (n < 4) return TOK_FAIL(l, at, LATH_ERR_FORMAT, "character map of %zu bytes is cut", n);
    size_t size = read_u32(bytes), n_units = size / 4;
    if (n_units == 0 || size > n - 4)
        return TOK_FAIL(l, at, LATH_ERR_FORMAT, "character map: a trie of %zu bytes in %zu", size, n);
    const char *text = bytes + 4 + n_units * 4;
    size_t n_text = n - 4 - n_units * 4, bad = utf8_first_invalid(text, n_text);
    if (bad < n_text) return TOK_FAIL(l, at, LATH_ERR_FORMAT, "character map: replacement %zu is not UTF-8", bad);
    tok_charsmap *m = tok_load_array(l, 1, sizeof(*m));
    uint32_t *units = arena_bytes(&l->t->mem, n_units * sizeof(*units), 16);
    m = units ? m : NULL;
    char *copy = m ? arena_strdup(&l->t->mem, text, n_text) : NULL;
    if (!copy) return err_nomem(l->err, n);
    for (size_t i = 0; i < n_units; i++) units[i] = read_u32(bytes + 4 + i * 4);
    m->units = units;
    m->n_units = n_units;
    m->text = copy;
    m->n_text = n_text;
    for (uint32_t c = 0; c < 0x10000; c++) {
        char s[4];
        size_t used, len;
        if (c >= 0xD800 && c < 0xE000) continue;
        if (tok_charsmap_find(m, s, utf8_encode(c, s), false, &used, &len)) m->bmp[c >> 6] |= (uint64_t)1 << (c & 63);
    }
    *out = m;
    return LATH_OK;
}
