/* SPDX-License-Identifier: Apache-2.0
 *
 * vecindex_write.c: a vector index file, written (layout in vecindex.h and docs/formats/index.md). Rows are encoded
 * into a block, which goes to a temporary file with its checksum taken when it is full; entries stay in memory until
 * the end. The header is written last, over zeros, so that a file without a valid header was never finished.
 */
#include <string.h>

#include "base/hash.h"
#include "base/outfile.h"
#include "store/vecindex_format.h"

/* Ceiling of the entries held while writing: 2^35 rows; a guard against runaway counts, not a limit that disks reach. */
static const size_t ENTRIES_CEILING = (size_t)1 << 40;

struct vecindex_writer {
    const lath_allocator *alloc;
    outfile file;
    vecindex_header head;
    buf entries; /* of vecindex_entry */
    buf checks;  /* of vecindex_checks; entries' sums are filled in at the end */
    uint8_t *block;
    size_t block_bytes, filled;
    float *numbers; /* [d], when rows come from another type */
};

static const char zeros[VECINDEX_HEADER];

lath_status vecindex_create(const lath_allocator *alloc, const char *path, const vecindex_key *key, vecindex_type type,
                            int64_t d, vecindex_writer **out, lath_error *err)
{
    lath_status st;
    vecindex_writer *w;
    if (vecindex_row_bytes(type, d) == 0)
        return err_set(err, LATH_ERR_USAGE, "%s: vectors of %lld numbers of type %s", path, (long long)d,
                       vecindex_type_name(type));
    w = alloc_zero(alloc, sizeof(*w));
    if (!w) return err_nomem(err, sizeof(*w));
    w->alloc = alloc;
    w->file.fd = -1;
    buf_init(&w->entries, alloc, ENTRIES_CEILING);
    buf_init(&w->checks, alloc, ENTRIES_CEILING);
    memcpy(w->head.magic, VECINDEX_MAGIC, sizeof(w->head.magic));
    w->head.version = VECINDEX_VERSION;
    w->head.header_bytes = VECINDEX_HEADER;
    w->head.type = type;
    w->head.d = (uint64_t)d;
    w->head.settings = key->settings;
    w->head.corpus_bytes = key->corpus_bytes;
    memcpy(w->head.model, key->model, sizeof(w->head.model));
    memcpy(w->head.corpus, key->corpus, sizeof(w->head.corpus));
    (void)vecindex_lay_out(&w->head); /* of no rows: sizes of a row and a block */
    const size_t block_bytes = (size_t)(w->head.block_rows * w->head.row_bytes);
    w->block = alloc_bytes(alloc, block_bytes, 64);
    if (!w->block) {
        st = err_nomem(err, block_bytes);
        goto done;
    }
    w->block_bytes = block_bytes;
    w->numbers = alloc_array(alloc, (size_t)d, sizeof(*w->numbers));
    if (!w->numbers) {
        st = err_nomem(err, (size_t)d * sizeof(*w->numbers));
        goto done;
    }
    outfile_sweep(path);
    TRY_DONE(outfile_create(&w->file, alloc, path, err));
    if (w->file.direct) {
        st = err_set(err, LATH_ERR_IO, "%s: an index cannot be a pipe or a device", path);
        goto done;
    }
    TRY_DONE(outfile_write(&w->file, zeros, VECINDEX_HEADER, err));
    *out = w;
    return LATH_OK;
done:
    vecindex_abort(w);
    return st;
}

static lath_status flush_block(vecindex_writer *w, lath_error *err)
{
    const vecindex_checks sums = {hash_64(w->block, w->filled), 0};
    if (w->filled == 0) return LATH_OK;
    buf_append(&w->checks, &sums, sizeof(sums));
    TRY(buf_status(&w->checks, err));
    TRY(outfile_write(&w->file, w->block, w->filled, err));
    w->filled = 0;
    return LATH_OK;
}

/* Room for one row in the block. */
static lath_status next_row(vecindex_writer *w, void **row, lath_error *err)
{
    if (w->filled == w->block_bytes) TRY(flush_block(w, err));
    *row = w->block + w->filled;
    w->filled += (size_t)w->head.row_bytes;
    return LATH_OK;
}

static lath_status add_entries(vecindex_writer *w, const vecindex_entry *entries, size_t n, lath_error *err)
{
    const uint64_t size = w->head.corpus_bytes;
    for (size_t i = 0; i < n; i++) {
        if (entries[i].offset > size || entries[i].len > size - entries[i].offset)
            return err_item(
                err, LATH_ERR_USAGE, (int64_t)i, "bytes %llu+%llu of a text are not inside the corpus of %llu",
                (unsigned long long)entries[i].offset, (unsigned long long)entries[i].len, (unsigned long long)size);
    }
    buf_append(&w->entries, entries, n * sizeof(*entries));
    TRY(buf_status(&w->entries, err));
    w->head.n += n;
    return LATH_OK;
}

static lath_status add_row(vecindex_writer *w, const float *v, size_t i, lath_error *err)
{
    void *row;
    TRY(next_row(w, &row, err));
    if (vecindex_encode((vecindex_type)w->head.type, (int64_t)w->head.d, v, row)) return LATH_OK;
    return err_item(err, LATH_ERR_INPUT, (int64_t)i, "a number of a vector is not finite or too large for %s",
                    vecindex_type_name((vecindex_type)w->head.type));
}

lath_status vecindex_add(vecindex_writer *w, const float *vectors, const vecindex_entry *entries, size_t n,
                         lath_error *err)
{
    if (n == 0) return LATH_OK;
    TRY(add_entries(w, entries, n, err));
    for (size_t i = 0; i < n; i++) TRY(add_row(w, vectors + i * (size_t)w->head.d, i, err));
    return LATH_OK;
}

lath_status vecindex_copy(vecindex_writer *w, const vecindex *from, uint64_t row, const vecindex_entry *entries,
                          size_t n, lath_error *err)
{
    const bool same = from->type == (vecindex_type)w->head.type;
    if ((uint64_t)from->d != w->head.d || (!same && from->type != VECINDEX_F32) || row > from->n || n > from->n - row)
        return err_set(err, LATH_ERR_USAGE, "%s: rows of %s do not go into %s", from->file.path,
                       vecindex_type_name(from->type), w->file.path);
    if (n == 0) return LATH_OK;
    TRY(add_entries(w, entries, n, err));
    for (size_t i = 0; i < n; i++, row++) {
        const uint8_t *source = from->vectors + row * from->row_bytes;
        void *target;
        TRY(vecindex_check(from, row / from->block_rows, err));
        if (same) {
            TRY(next_row(w, &target, err));
            memcpy(target, source, from->row_bytes);
        } else {
            vecindex_decode(from->type, from->d, source, w->numbers);
            TRY(add_row(w, w->numbers, i, err));
        }
    }
    return LATH_OK;
}

const char *vecindex_temp_path(const vecindex_writer *w) { return w->file.temp; }

/* The checksums of entries, block by block, and of all checks. */
static void sum_up(vecindex_writer *w)
{
    vecindex_header *h = &w->head;
    vecindex_checks *checks = (vecindex_checks *)(void *)w->checks.data;
    const vecindex_entry *entries = (const vecindex_entry *)(const void *)w->entries.data;
    for (uint64_t at = 0, b = 0; at < h->n; at += h->block_rows, b++) {
        const uint64_t rows = h->n - at < h->block_rows ? h->n - at : h->block_rows;
        checks[b].entries = hash_64(entries + at, (size_t)rows * sizeof(*entries));
    }
    const hash128 sum = hash_128(checks ? (const void *)checks : "", w->checks.len, 0);
    h->checks_hash[0] = sum.lo;
    h->checks_hash[1] = sum.hi;
}

lath_status vecindex_commit(vecindex_writer *w, lath_error *err)
{
    vecindex_header *h = &w->head;
    lath_status st;
    if (!vecindex_lay_out(h)) {
        st = err_set(err, LATH_ERR_LIMIT, "%s: too many vectors", w->file.path);
        goto done;
    }
    TRY_DONE(flush_block(w, err));
    TRY_DONE(outfile_write(&w->file, zeros, (size_t)(h->entries_offset - h->vectors_offset - h->vectors_bytes), err));
    sum_up(w);
    TRY_DONE(outfile_write(&w->file, w->entries.data, w->entries.len, err));
    TRY_DONE(outfile_write(&w->file, w->checks.data, w->checks.len, err));
    h->header_hash = hash_64(h, offsetof(vecindex_header, header_hash));
    TRY_DONE(outfile_write_at(&w->file, 0, h, sizeof(*h), err));
    st = outfile_commit(&w->file, err);
done:
    vecindex_abort(w);
    return st;
}

void vecindex_abort(vecindex_writer *w)
{
    if (!w) return;
    outfile_abort(&w->file);
    buf_deinit(&w->entries);
    buf_deinit(&w->checks);
    alloc_release(w->alloc, w->block, w->block_bytes);
    alloc_release(w->alloc, w->numbers, (size_t)w->head.d * sizeof(*w->numbers));
    alloc_release(w->alloc, w, sizeof(*w));
}
