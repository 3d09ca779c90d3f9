/* SPDX-License-Identifier: Apache-2.0
 * tok_darray.h: a double-array trie over byte strings (Aoe 1989; units combined by XOR as in darts-clone, so that all
 * children of a node lie in one block of 256 units). A step is one load and one compare; what a string's end is worth
 * lies in the same eight bytes.
 *
 *     unit = link: base << 8 | label          score: f32, NaN: no string ends here
 *     child of node by byte = base(node) ^ byte, when its label is that byte; node 0 is the root
 *
 * No label is 0xFF, which UTF-8 never has: it marks free units. Base 0 is that of nodes without children. */
#ifndef LATH_TOK_DARRAY_H
#define LATH_TOK_DARRAY_H

#include <stdbool.h>

#include "base/alloc.h"

typedef struct tok_darray_unit {
    uint32_t link;
    float score;
} tok_darray_unit;

typedef struct tok_darray {
    const lath_allocator *alloc;
    tok_darray_unit *units; /* [n_units], a multiple of 256 */
    int32_t *values;        /* [n_units]; -1 where no string ends */
    size_t n_units, cap_units, cap_values;
} tok_darray;

typedef struct tok_darray_key {
    const char *s;
    uint32_t len;
    int32_t value;
    float score; /* no NaN */
} tok_darray_key;

/* Builds from n keys (sorted in place, of no use afterwards); of equal keys the one with the highest value counts, empty ones do not. The
 * bytes of keys are never 0xFF. */
lath_status tok_darray_build(tok_darray *d, const lath_allocator *alloc, tok_darray_key *keys, size_t n,
                             lath_error *err);
void tok_darray_deinit(tok_darray *d);

/* The child of node; 0 when there is none. */
static inline uint32_t tok_darray_step(const tok_darray_unit *units, uint32_t node, uint8_t byte)
{
    uint32_t next = units[node].link >> 8 ^ byte;
    return (uint8_t)units[next].link == byte ? next : 0;
}

/* The node of s[0..n); 0 when there is none (and for n == 0). */
static inline uint32_t tok_darray_walk(const tok_darray *d, const char *s, size_t n)
{
    uint32_t node = 0;
    for (size_t i = 0; i < n; i++) {
        node = tok_darray_step(d->units, node, (uint8_t)s[i]);
        if (node == 0) return 0;
    }
    return node;
}

#endif
