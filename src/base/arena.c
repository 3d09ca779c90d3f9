/* SPDX-License-Identifier: Apache-2.0
 * arena.c: chunks double from 16 KiB to 4 MiB; a larger request gets a chunk of its own size. Each chunk is
 *     [arena_chunk header | used ... | free ...]     with 64-byte aligned start. */
#include "base/arena.h"

#include <string.h>

#include "base/checked.h"

struct arena_chunk {
    arena_chunk *older;
    size_t size, used; /* header included */
};

enum { ARENA_ALIGN = 64, ARENA_FIRST = 16 << 10, ARENA_MOST = 4 << 20 };

void arena_init(arena *a, const lath_allocator *alloc)
{
    a->alloc = alloc;
    a->chunks = NULL;
    a->total = 0;
}

static void release_chunks(arena *a, arena_chunk *c)
{
    while (c) {
        arena_chunk *older = c->older;
        a->total -= c->size;
        alloc_release(a->alloc, c, c->size);
        c = older;
    }
}

void arena_deinit(arena *a)
{
    release_chunks(a, a->chunks);
    a->chunks = NULL;
}

void arena_reset(arena *a)
{
    if (!a->chunks) return;
    arena_chunk *keep = a->chunks;
    for (arena_chunk *c = keep->older; c; c = c->older) {
        if (c->size > keep->size) keep = c;
    }
    if (keep != a->chunks) { /* unlink the largest, then free the rest */
        arena_chunk *c = a->chunks;
        while (c->older != keep) c = c->older;
        c->older = keep->older;
        keep->older = NULL;
        release_chunks(a, a->chunks);
    } else {
        release_chunks(a, keep->older);
        keep->older = NULL;
    }
    keep->used = sizeof(arena_chunk);
    a->chunks = keep;
}

void *arena_bytes(arena *a, size_t size, size_t align)
{
    arena_chunk *c = a->chunks;
    if (c) {
        size_t at = (c->used + align - 1) & ~(align - 1), end;
        if (size_add(at, size, &end) && end <= c->size) {
            c->used = end;
            return (char *)c + at;
        }
    }
    size_t want = c ? c->size * 2 : (size_t)ARENA_FIRST, need;
    if (want > ARENA_MOST) want = ARENA_MOST;
    if (!size_add(size, sizeof(arena_chunk) + ARENA_ALIGN, &need)) return NULL;
    if (want < need) want = need;
    c = alloc_bytes(a->alloc, want, ARENA_ALIGN);
    if (!c) return NULL;
    size_t at = (sizeof(arena_chunk) + align - 1) & ~(align - 1);
    *c = (arena_chunk){a->chunks, want, at + size};
    a->chunks = c;
    a->total += want;
    return (char *)c + at;
}

void *arena_zero(arena *a, size_t size)
{
    void *p = arena_bytes(a, size, 16);
    if (p && size) memset(p, 0, size);
    return p;
}

void *arena_array(arena *a, size_t count, size_t size)
{
    size_t n;
    return size_mul(count, size, &n) ? arena_zero(a, n) : NULL;
}

char *arena_strdup(arena *a, const char *s, size_t n)
{
    size_t total;
    char *p = size_add(n, 1, &total) ? arena_bytes(a, total, 1) : NULL;
    if (!p) return NULL;
    if (n) memcpy(p, s, n);
    p[n] = 0;
    return p;
}
