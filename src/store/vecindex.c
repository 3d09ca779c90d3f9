/* SPDX-License-Identifier: Apache-2.0
 *
 * vecindex.c: a vector index file, read in place (layout in vecindex.h and docs/formats/index.md). The reader trusts
 * nothing: every offset is recomputed from type, n and d with checked arithmetic and must agree with what the header
 * says, and no row or entry is handed out before its block was compared with its checksum. Blocks are compared once:
 * `seen` remembers it; two threads that meet at one block both compare it.
 */
#include <string.h>

#include "base/hash.h"
#include "store/vecindex_format.h"

enum { SEEN_VECTORS = 1, SEEN_ENTRIES = 2 };

static bool all_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i]) return false;
    }
    return true;
}

static lath_status check_header(const file_map *m, vecindex_header *h, lath_error *err)
{
    const char *path = m->path;
    const size_t n = m->size < sizeof(h->magic) ? m->size : sizeof(h->magic);
    if (n == 0 || memcmp(m->data, VECINDEX_MAGIC, n) != 0) {
        if (m->size >= VECINDEX_HEADER && all_zero(m->data, VECINDEX_HEADER))
            return err_set(err, LATH_ERR_FORMAT, "%s: a vector index that was never finished", path);
        return err_set(err, LATH_ERR_FORMAT, "%s: not a lath vector index (it does not begin with LATHVIX1)", path);
    }
    if (m->size < sizeof(*h))
        return err_set(err, LATH_ERR_FORMAT, "%s: cut: %zu bytes, a header has %zu", path, m->size, sizeof(*h));
    memcpy(h, m->data, sizeof(*h));
    if (hash_64(h, offsetof(vecindex_header, header_hash)) != h->header_hash)
        return err_set(err, LATH_ERR_FORMAT, "%s: damaged: the header does not match its checksum", path);
    if (h->version > 0 && h->version < VECINDEX_VERSION)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: version %u of the format, which has to be made again", path,
                       h->version);
    if (h->version != VECINDEX_VERSION)
        return err_set(err, LATH_ERR_FORMAT, "%s: version %u of the format, want %d", path, h->version,
                       VECINDEX_VERSION);
    if (h->type < VECINDEX_F32 || h->type > VECINDEX_I8)
        return err_set(err, LATH_ERR_FORMAT, "%s: vectors of type %u, want 1 (f32), 2 (f16) or 3 (int8)", path,
                       h->type);
    if (h->header_bytes != VECINDEX_HEADER || h->flags != 0 || !all_zero(h->reserved, sizeof(h->reserved)))
        return err_set(err, LATH_ERR_FORMAT, "%s: the header has fields that this version does not know", path);
    return LATH_OK;
}

static lath_status check_sizes(const file_map *m, const vecindex_header *h, lath_error *err)
{
    vecindex_header want = *h;
    if (!vecindex_lay_out(&want))
        return err_set(err, LATH_ERR_FORMAT, "%s: %llu vectors of %llu numbers", m->path, (unsigned long long)h->n,
                       (unsigned long long)h->d);
    if (memcmp(&want, h, sizeof(want)) != 0)
        return err_set(err, LATH_ERR_FORMAT,
                       "%s: offsets in the header do not follow from %llu vectors of %llu numbers", m->path,
                       (unsigned long long)h->n, (unsigned long long)h->d);
    if (m->size != h->file_bytes)
        return err_set(err, LATH_ERR_FORMAT, "%s: %s: %zu bytes, the header says %llu", m->path,
                       m->size < h->file_bytes ? "cut" : "bytes behind its end", m->size,
                       (unsigned long long)h->file_bytes);
    const size_t gap_at = (size_t)(h->vectors_offset + h->vectors_bytes);
    const hash128 sum = hash_128(m->data + h->checks_offset, (size_t)h->checks_bytes, 0);
    if (sum.lo != h->checks_hash[0] || sum.hi != h->checks_hash[1] ||
        !all_zero(m->data + gap_at, (size_t)h->entries_offset - gap_at))
        return err_set(err, LATH_ERR_FORMAT, "%s: damaged: the checksums do not match theirs", m->path);
    return LATH_OK;
}

lath_status vecindex_open(const lath_allocator *alloc, const char *path, file_mode mode, vecindex *out, lath_error *err)
{
    vecindex_header h;
    lath_status st;
    *out = (vecindex){.alloc = alloc};
    TRY(file_map_open(&out->file, alloc, path, mode, err));
    TRY_DONE(check_header(&out->file, &h, err));
    TRY_DONE(check_sizes(&out->file, &h, err));
    out->n = h.n;
    out->d = (int64_t)h.d;
    out->type = (vecindex_type)h.type;
    out->row_bytes = (size_t)h.row_bytes;
    out->block_rows = h.block_rows;
    out->n_blocks = vecindex_blocks(h.n, h.block_rows);
    out->vectors = out->file.data + h.vectors_offset;
    out->entries = (const vecindex_entry *)(const void *)(out->file.data + h.entries_offset);
    out->checks = (const vecindex_checks *)(const void *)(out->file.data + h.checks_offset);
    out->key.settings = h.settings;
    out->key.corpus_bytes = h.corpus_bytes;
    memcpy(out->key.model, h.model, sizeof(h.model));
    memcpy(out->key.corpus, h.corpus, sizeof(h.corpus));
    if (out->n_blocks > 0) {
        out->seen = alloc_zero(alloc, (size_t)out->n_blocks);
        if (!out->seen) {
            st = err_nomem(err, (size_t)out->n_blocks);
            goto done;
        }
    }
    return LATH_OK;
done:
    vecindex_close(out);
    return st;
}

void vecindex_close(vecindex *x)
{
    if (x->seen) alloc_release(x->alloc, (void *)x->seen, (size_t)x->n_blocks);
    file_map_close(&x->file);
    *x = (vecindex){0};
}

/* First row and number of rows of a block. */
static void block_range(const vecindex *x, uint64_t block, size_t *first, size_t *rows)
{
    const uint64_t at = block * x->block_rows;
    *first = (size_t)at;
    *rows = (size_t)(x->n - at < x->block_rows ? x->n - at : x->block_rows);
}

static lath_status damaged(const vecindex *x, const char *what, uint64_t block, lath_error *err)
{
    size_t first, rows;
    block_range(x, block, &first, &rows);
    return err_set(err, LATH_ERR_FORMAT, "%s: damaged: %s of rows %zu to %zu do not match their checksum", x->file.path,
                   what, first, first + rows - 1);
}

static lath_status compare_vectors(const vecindex *x, uint64_t block, lath_error *err)
{
    size_t first, rows;
    block_range(x, block, &first, &rows);
    if (hash_64(x->vectors + first * x->row_bytes, rows * x->row_bytes) != x->checks[block].vectors)
        return damaged(x, "the vectors", block, err);
    (void)atomic_fetch_or_explicit(&x->seen[block], SEEN_VECTORS, memory_order_relaxed);
    return LATH_OK;
}

static lath_status compare_entries(const vecindex *x, uint64_t block, lath_error *err)
{
    const uint64_t size = x->key.corpus_bytes;
    size_t first, rows;
    block_range(x, block, &first, &rows);
    if (hash_64(x->entries + first, rows * sizeof(*x->entries)) != x->checks[block].entries)
        return damaged(x, "the entries", block, err);
    for (size_t i = first; i < first + rows; i++) {
        if (x->entries[i].offset > size || x->entries[i].len > size - x->entries[i].offset)
            return err_set(err, LATH_ERR_FORMAT, "%s: text %zu lies outside the corpus", x->file.path, i);
    }
    (void)atomic_fetch_or_explicit(&x->seen[block], SEEN_ENTRIES, memory_order_relaxed);
    return LATH_OK;
}

static bool was_seen(const vecindex *x, uint64_t block, unsigned what)
{
    return (atomic_load_explicit(&x->seen[block], memory_order_relaxed) & what) != 0;
}

lath_status vecindex_check(const vecindex *x, uint64_t block, lath_error *err)
{
    return was_seen(x, block, SEEN_VECTORS) ? LATH_OK : compare_vectors(x, block, err);
}

lath_status vecindex_get_entry(const vecindex *x, uint64_t row, vecindex_entry *out, lath_error *err)
{
    const uint64_t block = row / x->block_rows;
    if (!was_seen(x, block, SEEN_ENTRIES)) TRY(compare_entries(x, block, err));
    *out = x->entries[row];
    return LATH_OK;
}

lath_status vecindex_verify(const vecindex *x, lath_error *err)
{
    vecindex_header h;
    TRY(check_header(&x->file, &h, err));
    TRY(check_sizes(&x->file, &h, err));
    for (uint64_t b = 0; b < x->n_blocks; b++) {
        TRY(compare_vectors(x, b, err));
        TRY(compare_entries(x, b, err));
    }
    return LATH_OK;
}
