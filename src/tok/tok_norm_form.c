/* SPDX-License-Identifier: Apache-2.0
 * tok_norm_form.c: the normalizers NFC, NFKC and NFKD (UAX 15), with the origins that the reference gives: a character
 * of a decomposition after the first is new, and a composite takes the place of all that went into it.
 *
 * Most characters neither change nor change another. The text between two of them that do is copied; what may change,
 * with the character before it, is a region that is worked on by itself: no composition and no reordering crosses
 * into a character that never moves.
 */
#include "base/unicode_text.h"
#include "tok/tok_change.h"

typedef struct mark {
    uint32_t c;
    uint8_t ccc;
    int32_t change;
} mark;

typedef struct form {
    bool compat, compose;
    uint32_t moves; /* flag of uni_text_flags; 0: by decomposition and class (NFKD) */
} form;

typedef struct region {
    mark *v, *spare; /* [cap] decomposed characters */
    size_t n, cap;
} region;

static bool moves(const form *f, uint32_t c)
{
    if (f->moves) return uni_text_flags(c) & f->moves;
    if (uni_flags(c) & (UNI_NFD | UNI_CCC)) return true;
    uint32_t parts[UNI_NFKD_MAX];
    return uni_nfkd(c, parts) != 1 || parts[0] != c;
}

static lath_status push(tok_work *w, region *r, uint32_t c, int32_t change)
{
    if (r->n == r->cap) {
        size_t cap = r->cap ? r->cap * 2 : 64;
        mark *v = arena_bytes(w->scratch, cap * sizeof(*v), 16), *spare = arena_bytes(w->scratch, cap * sizeof(*v), 16);
        if (!v || !spare) return err_nomem(w->err, cap * sizeof(*v));
        if (r->n) memcpy(v, r->v, r->n * sizeof(*v));
        r->v = v;
        r->spare = spare;
        r->cap = cap;
    }
    r->v[r->n++] = (mark){c, (uint8_t)uni_ccc(c), change};
    return LATH_OK;
}

/* Puts v[b..e), none of them a starter, into canonical order: a stable sort by class, by counting when there are many. */
static void order(region *r, size_t b, size_t e)
{
    mark *v = r->v;
    if (e - b <= 32) {
        for (size_t i = b + 1; i < e; i++) {
            mark m = v[i];
            size_t k = i;
            for (; k > b && v[k - 1].ccc > m.ccc; k--) v[k] = v[k - 1];
            v[k] = m;
        }
        return;
    }
    size_t at[257] = {0};
    for (size_t i = b; i < e; i++) at[v[i].ccc + 1]++;
    for (size_t k = 0; k < 256; k++) at[k + 1] += at[k];
    for (size_t i = b; i < e; i++) r->spare[at[v[i].ccc]++] = v[i];
    memcpy(v + b, r->spare, (e - b) * sizeof(*v));
}

static lath_status decompose(const form *f, tok_work *w, const char *s, size_t n, region *r)
{
    r->n = 0;
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t parts[UNI_NFKD_MAX], c = uni_next(s + i, &len);
        size_t k = f->compat ? uni_nfkd(c, parts) : uni_nfd(c, parts);
        for (size_t p = 0; p < k; p++) TRY(push(w, r, parts[p], p > 0));
    }
    size_t b = 0;
    for (size_t i = 0; i <= r->n; i++) {
        if (i < r->n && r->v[i].ccc != 0) continue;
        if (i > b + 1) order(r, b, i);
        b = i + 1;
    }
    return LATH_OK;
}

/* Composes in place: what is put together with the last starter goes, if nothing of its class or a higher one, and no
 * starter, stands between. */
static void compose(region *r)
{
    mark *v = r->v;
    size_t n = 0, starter = SIZE_MAX;
    int last = -1; /* class of what is before, behind the starter; -1: nothing */
    for (size_t i = 0; i < r->n; i++) {
        mark m = v[i];
        if (starter == SIZE_MAX) {
            if (m.ccc == 0) starter = n;
            v[n++] = m;
            continue;
        }
        uint32_t c = last < m.ccc ? uni_compose(v[starter].c, m.c) : 0;
        if (c) {
            v[starter].c = c;
            v[starter].change += m.change - 1;
            continue;
        }
        if (m.ccc == 0) {
            starter = n;
            last = -1;
        } else {
            last = m.ccc;
        }
        v[n++] = m;
    }
    r->n = n;
}

static bool unchanged(const region *r, const char *s, size_t n)
{
    size_t i = 0, len;
    for (size_t k = 0; k < r->n; k++, i += len) {
        if (i == n || r->v[k].change != 0 || uni_next(s + i, &len) != r->v[k].c) return false;
    }
    return i == n;
}

static lath_status put_region(const form *f, tok_change *k, region *r, size_t n)
{
    const char *s = k->t->s + k->i;
    TRY(decompose(f, k->w, s, n, r));
    if (f->compose) compose(r);
    if (unchanged(r, s, n)) return tok_change_copy(k, n);
    for (size_t i = 0; i < r->n; i++) TRY(tok_change_put(k, r->v[i].c, r->v[i].change));
    return LATH_OK;
}

/* Where text that moves begins from i on, and where the character before it does; n: nowhere. */
static size_t next_moving(const form *f, const char *s, size_t n, size_t i, size_t *before)
{
    size_t len, last = i;
    for (; i < n; i += len) {
        while (i + 1 < n && (uint8_t)s[i] < 0x80 && (uint8_t)s[i + 1] < 0x80) i++; /* ASCII never moves */
        uint32_t c = uni_next(s + i, &len);
        if (moves(f, c)) break;
        last = i;
    }
    *before = last;
    return i;
}

static lath_status run(const tok_normalizer *norm, tok_work *w, tok_text *t)
{
    const form *f = norm->param;
    size_t before, i = next_moving(f, t->s, t->n, 0, &before), len;
    if (i == t->n) return LATH_OK;
    tok_change k;
    region r = {0};
    TRY(tok_change_begin(&k, w, t, t->n + t->n / 4));
    while (i < t->n) {
        TRY(tok_change_copy(&k, before - k.i));
        for (; i < t->n; i += len) {
            if (!moves(f, uni_next(t->s + i, &len))) break;
        }
        TRY(put_region(f, &k, &r, i - before));
        k.i = i;
        i = next_moving(f, t->s, t->n, i, &before);
    }
    TRY(tok_change_copy(&k, t->n - k.i));
    *t = tok_change_text(&k);
    return LATH_OK;
}

static const char *const type_only[] = {"type", NULL};

static lath_status load(tok_load *l, const json_value *v, bool compat, bool composes, uint32_t flag,
                        tok_normalizer *out)
{
    form *f = tok_load_array(l, 1, sizeof(*f));
    if (!f) return err_nomem(l->err, sizeof(*f));
    *f = (form){compat, composes, flag};
    *out = (tok_normalizer){.run = run, .param = f};
    return v ? tok_load_fields(l, v, "normalizer", type_only) : LATH_OK;
}

lath_status tok_norm_nfc(tok_load *l, const json_value *v, tok_normalizer *out)
{
    return load(l, v, false, true, UNI_MOVES_NFC, out);
}

lath_status tok_norm_nfkc(tok_load *l, const json_value *v, tok_normalizer *out)
{
    return load(l, v, true, true, UNI_MOVES_NFKC, out);
}

lath_status tok_norm_nfkd(tok_load *l, const json_value *v, tok_normalizer *out)
{
    return load(l, v, true, false, 0, out);
}
