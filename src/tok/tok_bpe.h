/* SPDX-License-Identifier: Apache-2.0
 * tok_bpe.h: byte-pair encoding (Sennrich et al. 2016), inside: the model, its merge table, the cache of words.
 *
 * A symbol is an id of the vocabulary. The model begins with the symbols of a word's characters - or of its bytes, for
 * byte-level tokenizers - and merges the pair of neighbours of the lowest rank, the leftmost of equals, until no pair
 * is a merge.
 *
 *     tok_bpe_load.c   vocabulary and merges into tables
 *     tok_bpe_merge.c  merging the symbols of one word
 *     tok_bpe_cache.c  words that have been seen
 *     tok_bpe_seam.c   where no token can lie across
 *     tok_bpe.c        words to tokens
 */
#ifndef LATH_TOK_BPE_H
#define LATH_TOK_BPE_H

#include "tok/tok_patterns.h"

#define TOK_NO_RANK UINT32_MAX
enum { TOK_AFFIX_MOST = 64 /* bytes of prefix and suffix */ };
enum { TOK_BPE_UNK_MISSING = -2 /* named, but not in the vocabulary: an error where it is needed */ };

/* The merges: open hash tables in lines of eight entries, left symbol | right symbol | rank from the high bits down. A
 * line is filled from its beginning and flows over into the next one. The merges of low rank, which most look-ups that
 * find something find, have a small table of their own; before the large one stands a filter. */
typedef struct tok_merge_table {
    uint64_t *slots; /* [n_lines][8]; all ones: empty */
    size_t n_lines;  /* a power of two */
    int shift;       /* of the hash: the line */
} tok_merge_table;

typedef struct tok_merges {
    tok_merge_table hot, rest;
    uint64_t *filter;   /* [filter_mask + 1] words, a bit for each merge of `rest` */
    size_t filter_mask; /* of a word */
    unsigned sym_bits;  /* of a symbol; 64 - 2 * sym_bits are left for the rank */
    int32_t *products;  /* [n] by rank */
    size_t n;
    uint32_t *first; /* [256][256] ranks of the pairs of byte symbols; NULL: the model reads characters */
} tok_merges;

enum { TOK_HOT_MERGES = 8192 };
#define TOK_MERGE_HASH 0x9E3779B97F4A7C15u

static inline uint32_t tok_merge_table_find(const tok_merge_table *t, uint64_t key, uint64_t hash, unsigned rank_bits)
{
    size_t line = (size_t)(hash >> t->shift);
    for (;; line = (line + 1) & (t->n_lines - 1)) {
        const uint64_t *v = t->slots + line * 8;
        for (int k = 0; k < 8; k++) {
            if (v[k] >> rank_bits == key) return (uint32_t)(v[k] & (((uint64_t)1 << rank_bits) - 1));
            if (v[k] == UINT64_MAX) return TOK_NO_RANK;
        }
    }
}

/* Starts what tok_merge_rank will read. */
static inline void tok_merge_prefetch(const tok_merges *m, int32_t left, int32_t right)
{
    uint64_t hash = ((uint64_t)(uint32_t)left << m->sym_bits | (uint32_t)right) * TOK_MERGE_HASH;
    __builtin_prefetch(&m->filter[hash >> 20 & m->filter_mask]);
    __builtin_prefetch(m->hot.slots + (hash >> m->hot.shift) * 8);
    __builtin_prefetch(m->rest.slots + (hash >> m->rest.shift) * 8);
}

static inline uint32_t tok_merge_rank(const tok_merges *m, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << m->sym_bits | (uint32_t)right, hash = key * TOK_MERGE_HASH;
    unsigned rank_bits = 64 - 2 * m->sym_bits;
    bool maybe = m->filter[hash >> 20 & m->filter_mask] >> (hash >> 14 & 63) & 1;
    uint32_t rank = tok_merge_table_find(&m->hot, key, hash, rank_bits);
    return rank == TOK_NO_RANK && maybe ? tok_merge_table_find(&m->rest, key, hash, rank_bits) : rank;
}

/* Where a word may be cut because no token has these two characters side by side. Conservative: a bit that is set
 * wrongly costs time, not correctness. */
typedef struct tok_seams {
    uint8_t ascii[128][16]; /* bit (a, b): a token has the ASCII characters a b side by side */
    uint64_t *pairs;        /* [(mask + 1) / 64] by hash of two characters */
    uint64_t mask;
    uint64_t *behind,
        *before;    /* [65536 / 64] characters after, before which nothing is cut; others than those: never */
    uint64_t *odd;  /* [65536 / 64] characters for which more than `pairs` must be asked */
    uint8_t *bytes; /* [256][32] (last byte, first byte) that a token joins without either character whole */
} tok_seams;

typedef struct tok_bpe_cache tok_bpe_cache;

typedef struct tok_bpe {
    const lath_allocator *alloc;
    const tok_vocab *vocab;
    tok_merges merges;
    int32_t ascii[256];    /* symbols of ASCII characters, or of all bytes when `bytes` is set; -1: none */
    int32_t fallback[256]; /* ids of <0x00> .. <0xFF>; -1: none */
    int32_t unk;           /* -1: none; or TOK_BPE_UNK_MISSING */
    bool bytes;            /* reads bytes (byte-level) */
    bool fuse_unk, byte_fallback, ignore_merges;
    bool space_is_mark;         /* reads ' ' as U+2581 */
    tok_string prefix, suffix;  /* of characters that are not the first, that are the last */
    tok_seams *seams;           /* NULL: words are not cut */
    const tok_pattern *pattern; /* splits the text itself; NULL: words come from the splitter */
    tok_bpe_cache *cache;
} tok_bpe;

/* Parameters as files give them; s == NULL: there is none. */
typedef struct tok_bpe_options {
    tok_string unk, prefix, suffix;
    bool fuse_unk, byte_fallback, ignore_merges;
} tok_bpe_options;

/* One merge, in the order of rank, kept until the vocabulary is there (l->merges). */
lath_status tok_bpe_add_merge(tok_load *l, const char *a, size_t n_a, const char *b, size_t n_b, lath_error *err);
/* "a b"; *ok is false when it is not two words. */
lath_status tok_bpe_add_merge_line(tok_load *l, const char *s, size_t n, bool *ok, lath_error *err);
/* An entry of model.merges. */
lath_status tok_bpe_on_merge(tok_load *l, const json_value *item, lath_error *err);
/* After the vocabulary is built. at may be NULL. */
lath_status tok_bpe_init(tok_load *l, const json_value *at, const tok_bpe_options *o, tok_model *out);
/* When all components are loaded: lets the model do the work of splitter and normalizer where it can. */
lath_status tok_bpe_fuse(tok_load *l);

/* Merges n symbols (n >= 1) of lengths len in place; returns how many are left. Short words only. bytes: NULL, or the
 * bytes that the symbols stand for one by one. */
enum { TOK_BPE_SHORT = 64 };
size_t tok_bpe_merge_short(const tok_merges *m, const char *bytes, int32_t *sym, uint32_t *len, size_t n);
/* Working memory of long words, used again from one to the next; zero it before the first. */
typedef struct tok_merge_space {
    uint32_t *v;    /* [3 * cap] */
    uint64_t *heap; /* [2 * cap] */
    size_t cap;
} tok_merge_space;
/* Any number, n log n. Memory of scratch. */
lath_status tok_bpe_merge_long(const tok_merges *m, tok_merge_space *space, arena *scratch, int32_t *sym, uint32_t *len,
                               size_t *n, lath_error *err);

lath_status tok_bpe_run(const tok_model *model, tok_work *w, const tok_text *t);

/* m->seams stays NULL where the model allows no cuts. */
lath_status tok_seams_build(tok_load *l, tok_bpe *m);
/* The end of the unit that begins at b in the word [b, e): the next place to cut. */
size_t tok_seams_next(const tok_bpe *m, const char *s, size_t b, size_t e);

/* ------------------------------------------------------------------------------------------------------------- cache */

enum { TOK_CACHE_SMALL = 15, TOK_CACHE_LARGE = 39, TOK_CACHE_MOST = 6 };

/* What a word becomes: ids, and the bytes of each. */
typedef struct tok_cached {
    uint32_t n;
    int32_t id[TOK_CACHE_MOST];
    uint8_t len[TOK_CACHE_MOST];
} tok_cached;

typedef struct tok_cache_key {
    uint64_t w[5];
    uint64_t hash;
    size_t n_words; /* 2: a small word, 5: a large one */
} tok_cache_key;

lath_status tok_bpe_cache_create(const lath_allocator *alloc, tok_bpe_cache **out, lath_error *err);
void tok_bpe_cache_destroy(tok_bpe_cache *c);
size_t tok_bpe_cache_bytes(const tok_bpe_cache *c);
/* The key of s[0..n), n <= TOK_CACHE_LARGE. room: bytes that may be read at s. unit: a part of a word. */
void tok_bpe_cache_key(const char *s, size_t n, size_t room, bool unit, tok_cache_key *out);
/* Starts what tok_bpe_cache_find will read. */
void tok_bpe_cache_prefetch(const tok_bpe_cache *c, const tok_cache_key *key);
bool tok_bpe_cache_find(const tok_bpe_cache *c, const tok_cache_key *key, tok_cached *out);
/* Does nothing where it does not fit. Any number of threads. */
void tok_bpe_cache_put(tok_bpe_cache *c, const tok_cache_key *key, const int32_t *ids, const uint32_t *len, size_t n);

#endif
