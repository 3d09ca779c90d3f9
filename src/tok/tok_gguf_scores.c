/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_gguf_scores.c: the scores of pieces whose merges are known, for GGUF files.
 *
 * SentencePiece merges the pair of the best score, and its score is that of the piece it makes; files of merges list the pairs of the best piece
 * first, then those of the next. So pieces whose merges come one behind the other have falling scores; where merges of several pieces lie
 * between each other these had one score, which is the same thing only where no text can tell: pieces that are cut out of it before. Tokens that
 * no merge makes come last. The scores of added tokens are those of llama.cpp's converter.
 */
#include <stdlib.h>
#include <string.h>

#include "tok/tok_gguf.h"
#include "tok/tok_spm_proto.h"

/* Of the merges that make one token: how many there are, the first and the last. */
typedef struct made {
    uint32_t count, first, last, index; /* of the entry */
} made;

static lath_status count_made(const tok_gguf_bpe *b, made *v, lath_error *err)
{
    char text[512];
    for (size_t i = 0; i < b->n; i++) v[i] = (made){0, UINT32_MAX, 0, (uint32_t)i};
    for (size_t r = 0; r < b->n_merges; r++) {
        const tok_gguf_merge *m = &b->merges[r];
        const size_t n = m->left.n + m->right.n;
        uint64_t i;
        if (n > sizeof(text)) return err_set(err, LATH_ERR_LIMIT, "%s: merge %zu makes %zu bytes", b->name, r, n);
        memcpy(text, m->left.s, m->left.n);
        memcpy(text + m->left.n, m->right.s, m->right.n);
        if (!map_find(b->by_text, text, n, &i))
            return err_set(err, LATH_ERR_FORMAT, "%s: merge %zu makes \"%.*s\", which is no token", b->name, r, (int)n,
                           text);
        if (v[i].count++ == 0) v[i].first = (uint32_t)r;
        v[i].last = (uint32_t)r;
    }
    return LATH_OK;
}

/* Pieces merge wherever two of them make a third one: every such pair has to be a merge. */
static lath_status check_pairs(const tok_gguf_bpe *b, const made *v, const int32_t *types, lath_error *err)
{
    for (size_t i = 0; i < b->n; i++) {
        const tok_gguf_entry *e = &b->entries[i];
        uint32_t pairs = 0;
        if (types[e->id] != TOK_SPM_NORMAL) continue;
        for (size_t k = 1; k < e->text.n; k++) {
            if (((uint8_t)e->text.s[k] & 0xC0) == 0x80) continue;
            pairs +=
                map_find(b->by_text, e->text.s, k, NULL) && map_find(b->by_text, e->text.s + k, e->text.n - k, NULL);
        }
        if (pairs != v[i].count)
            return err_set(
                err, LATH_ERR_UNSUPPORTED,
                "%s: token \"%.80s\" has %u merges, but %u pairs of tokens make it: this is not the order of "
                "pieces that a GGUF file can say",
                b->name, e->text.s, v[i].count, pairs);
    }
    return LATH_OK;
}

static int earlier_first(const void *a, const void *b)
{
    const made *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

lath_status tok_gguf_scores(const tok_gguf_bpe *b, const int32_t *types, size_t n_ids, float *scores, lath_error *err)
{
    const size_t n = b->n;
    made *v = arena_array(b->mem, n, sizeof(*v));
    float rank = 0;
    if (!v) return err_nomem(err, n * sizeof(*v));
    TRY(count_made(b, v, err));
    TRY(check_pairs(b, v, types, err));
    qsort(v, n, sizeof(*v), earlier_first);
    uint32_t end = 0;
    for (size_t i = 0; i < n; i++) {
        const tok_gguf_entry *e = &b->entries[v[i].index];
        const bool shared = i > 0 && v[i].count > 0 && v[i].first < end;
        if (shared && types[e->id] == TOK_SPM_NORMAL)
            return err_set(err, LATH_ERR_UNSUPPORTED,
                           "%s: the merges of token \"%.80s\" lie between those of others: this is not the order of "
                           "pieces that a GGUF file can say",
                           b->name, e->text.s);
        if (v[i].count > 0 && v[i].last > end) end = v[i].last;
        if (types[e->id] == TOK_SPM_NORMAL) scores[e->id] = -rank++;
    }
    for (size_t i = 0; i < n_ids; i++) {
        if (types[i] == TOK_SPM_CONTROL || types[i] == TOK_SPM_USER_DEFINED) scores[i] = -1000;
        if (types[i] == TOK_SPM_UNUSED) scores[i] = -10000;
    }
    return LATH_OK;
}
