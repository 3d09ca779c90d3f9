/* SPDX-License-Identifier: Apache-2.0
 * batch.c: packing token sequences one behind the other. One block holds the arrays of a batch:
 *     | ids | type_ids | pos | begin | end | each n_tok rounded up to 16 | start [n_seq + 1] | */
#include <string.h>

#include "base/checked.h"
#include "engine/engine.h"

void packer_init(packer *p, const lath_allocator *alloc, const arch_dims *dims)
{
    *p = (packer){.alloc = alloc, .pos0 = dims->pos0, .pad_id = dims->pad_id, .typed = dims->n_types > 1};
}

void packer_deinit(packer *p)
{
    alloc_release(p->alloc, p->memory, p->memory_bytes);
    p->memory = NULL;
}

void packer_clear(packer *p)
{
    p->b.n_tok = 0;
    p->b.n_seq = 0;
}

/* Half as much again, so that a batch which fills up text by text is copied a few times only. */
static int64_t capacity(int64_t have, int64_t want)
{
    return want <= have ? have : have + have / 2 > want ? have + have / 2 : want;
}

static void place(batch *b, int32_t *memory, int64_t cap)
{
    int32_t **arrays[] = {&b->ids, &b->type_ids, &b->pos, &b->begin, &b->end};
    for (int i = 0; i < 5; i++) *arrays[i] = memory + i * cap;
    b->start = memory + 5 * cap;
}

static void copy(const batch *from, batch *to)
{
    if (from->n_seq == 0) return;
    const int32_t *const src[] = {from->ids, from->type_ids, from->pos, from->begin, from->end};
    int32_t *const dst[] = {to->ids, to->type_ids, to->pos, to->begin, to->end};
    for (int i = 0; i < 5; i++) memcpy(dst[i], src[i], (size_t)from->n_tok * sizeof(int32_t));
    memcpy(to->start, from->start, ((size_t)from->n_seq + 1) * sizeof(int32_t));
}

lath_status packer_grow(packer *p, int64_t n_tok, int64_t n_seq, lath_error *err)
{
    if (n_tok <= p->cap_tok && n_seq <= p->cap_seq) return LATH_OK;
    int64_t cap = (capacity(p->cap_tok, n_tok) + KERN_LANES - 1) / KERN_LANES * KERN_LANES,
            seq = capacity(p->cap_seq ? p->cap_seq : 16, n_seq);
    size_t floats, bytes;
    if (cap > INT32_MAX || seq > INT32_MAX || !size_mul((size_t)cap, 5, &floats) ||
        !size_add(floats, (size_t)seq + 1, &floats) || !size_mul(floats, sizeof(int32_t), &bytes))
        return err_set(err, LATH_ERR_LIMIT, "a batch of %lld tokens", (long long)n_tok);
    batch b = p->b;
    int32_t *memory = alloc_zero(p->alloc, bytes);
    if (!memory) return err_nomem(err, bytes);
    place(&b, memory, cap);
    copy(&p->b, &b);
    packer_deinit(p);
    p->b = b;
    p->memory = memory;
    p->memory_bytes = bytes;
    p->cap_tok = cap;
    p->cap_seq = seq;
    return LATH_OK;
}

void packer_add(packer *p, const int32_t *ids, const int32_t *type_ids, int64_t n)
{
    batch *b = &p->b;
    int64_t at = b->n_tok;
    int32_t pos = p->pos0;
    memcpy(b->ids + at, ids, (size_t)n * sizeof(*ids));
    if (p->typed && type_ids)
        memcpy(b->type_ids + at, type_ids, (size_t)n * sizeof(*type_ids));
    else
        memset(b->type_ids + at, 0, (size_t)n * sizeof(*type_ids));
    for (int64_t i = 0; i < n; i++) {
        b->pos[at + i] = ids[i] == p->pad_id ? p->pos0 - 1 : pos++;
        b->begin[at + i] = (int32_t)at;
        b->end[at + i] = (int32_t)(at + n);
    }
    b->n_tok += n;
    b->start[++b->n_seq] = (int32_t)b->n_tok;
}
