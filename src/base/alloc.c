/* SPDX-License-Identifier: Apache-2.0
 * alloc.c: the default allocator and checked calls through an allocator. */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"

static void *default_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    if (align <= _Alignof(max_align_t)) return malloc(size);
    void *p = NULL;
    return posix_memalign(&p, align, size) == 0 ? p : NULL;
}

static void *default_resize(void *ctx, void *p, size_t old_size, size_t size, size_t align)
{
    if (align <= _Alignof(max_align_t)) return realloc(p, size);
    void *q = default_alloc(ctx, size, align);
    if (!q) return NULL;
    memcpy(q, p, old_size < size ? old_size : size);
    free(p);
    return q;
}

static void default_release(void *ctx, void *p, size_t size)
{
    (void)ctx;
    (void)size;
    free(p);
}

const lath_allocator *alloc_default(void)
{
    static const lath_allocator a = {NULL, default_alloc, default_resize, default_release};
    return &a;
}

void *alloc_bytes(const lath_allocator *a, size_t size, size_t align)
{
    return size ? a->alloc(a->ctx, size, align) : NULL;
}

void *alloc_zero(const lath_allocator *a, size_t size)
{
    void *p = alloc_bytes(a, size, _Alignof(max_align_t));
    if (p) memset(p, 0, size);
    return p;
}

void *alloc_array(const lath_allocator *a, size_t count, size_t size)
{
    size_t n;
    return size_mul(count, size, &n) ? alloc_zero(a, n) : NULL;
}

/* | head: what the allocator gave, just before the table | table, aligned to a large page | slack, never touched | */
enum { TABLE_HUGE = 2 << 20, TABLE_HEAD = 64 };

static bool table_size(size_t size, size_t *whole)
{
    return size_add(size, size < TABLE_HUGE ? TABLE_HEAD : TABLE_HUGE + TABLE_HEAD, whole);
}

void *alloc_table(const lath_allocator *a, size_t size)
{
    size_t whole, align = size < TABLE_HUGE ? TABLE_HEAD : TABLE_HUGE;
    char *block = size && table_size(size, &whole) ? alloc_bytes(a, whole, TABLE_HEAD) : NULL;
    if (!block) return NULL;
    char *p = block + TABLE_HEAD;
    p += (size_t)(-(uintptr_t)p & (align - 1));
    memcpy(p - sizeof(block), &block, sizeof(block));
#if defined(MADV_HUGEPAGE)
    if (size >= TABLE_HUGE) madvise(p, size & ~(size_t)(TABLE_HUGE - 1), MADV_HUGEPAGE);
#endif
    return p;
}

void alloc_table_release(const lath_allocator *a, void *p, size_t size)
{
    char *block;
    size_t whole = 0;
    if (!p) return;
    memcpy(&block, (char *)p - sizeof(block), sizeof(block));
    if (table_size(size, &whole)) alloc_release(a, block, whole);
}

void *alloc_resize(const lath_allocator *a, void *p, size_t old_size, size_t size, size_t align)
{
    if (!p) return alloc_bytes(a, size, align);
    return size ? a->resize(a->ctx, p, old_size, size, align) : NULL;
}

void alloc_release(const lath_allocator *a, void *p, size_t size)
{
    if (p) a->release(a->ctx, p, size);
}
