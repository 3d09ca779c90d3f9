/* SPDX-License-Identifier: Apache-2.0
 *
 * vecindex.c: the vector index file, written and read (layout in vecindex.h and docs/formats/index.md). The writer
 * streams rows to a temporary file and keeps only the spans in memory; its header is written last, over zeros, so that
 * a file without a valid header was never finished. The reader trusts nothing: every offset is recomputed from n and d
 * with checked arithmetic and must agree with what the header says.
 */
#include "store/vecindex.h"

#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/outfile.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the vector index is read in place and is little-endian"
#endif

static const char MAGIC[8] = {'L', 'A', 'T', 'H', 'V', 'I', 'X', '1'};
/* Ceiling of the spans held while writing: 2^36 rows of 16 bytes; a guard against runaway counts, not a limit that
 * disks reach. */
static const size_t SPANS_CEILING = (size_t)1 << 40;

typedef struct vecindex_header {
    char magic[8];
    uint32_t version;      /* 1 */
    uint32_t header_bytes; /* 256 */
    uint32_t type;         /* VECINDEX_F32 */
    uint32_t flags;        /* 0 */
    uint64_t n, d;
    uint64_t model[2];
    uint64_t settings;
    uint64_t corpus[2];
    uint64_t corpus_bytes;
    uint64_t vectors_offset, vectors_bytes;
    uint64_t spans_offset, spans_bytes;
    uint64_t file_bytes;
    uint64_t data_hash[2]; /* XXH3-128 of [header_bytes, file_bytes), low word first */
    uint8_t reserved[104]; /* 0 */
    uint64_t header_hash;  /* XXH3-64 of the 248 bytes before */
} vecindex_header;

_Static_assert(sizeof(vecindex_header) == VECINDEX_HEADER, "the header is 256 bytes on disk");
_Static_assert(offsetof(vecindex_header, n) == 24, "n at 24");
_Static_assert(offsetof(vecindex_header, corpus_bytes) == 80, "corpus_bytes at 80");
_Static_assert(offsetof(vecindex_header, file_bytes) == 120, "file_bytes at 120");
_Static_assert(offsetof(vecindex_header, header_hash) == 248, "header_hash is last");
_Static_assert(sizeof(vecindex_span) == 16 && offsetof(vecindex_span, len) == 8,
               "a span is {u64 offset, u64 len} on disk");

/* ------------------------------------------------------------------------------------------------------------ sizes */

/* Fills offsets and sizes of h from n and d; false when they overflow. */
static bool lay_out(vecindex_header *h)
{
    size_t vectors, spans, end, at;
    if (h->d > SIZE_MAX / sizeof(float) || h->n > SIZE_MAX) return false;
    if (!size_mul((size_t)h->d * sizeof(float), (size_t)h->n, &vectors)) return false;
    if (!size_mul(sizeof(vecindex_span), (size_t)h->n, &spans)) return false;
    if (!size_add(vectors, VECINDEX_HEADER + VECINDEX_ALIGN - 1, &at)) return false;
    at -= at % VECINDEX_ALIGN;
    if (!size_add(at, spans, &end)) return false;
    h->vectors_offset = VECINDEX_HEADER;
    h->vectors_bytes = vectors;
    h->spans_offset = at;
    h->spans_bytes = spans;
    h->file_bytes = end;
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- writer */

struct vecindex_writer {
    const lath_allocator *alloc;
    outfile file;
    vecindex_header head;
    buf spans; /* of vecindex_span */
};

static const char zeros[VECINDEX_HEADER];

lath_status vecindex_create(const lath_allocator *alloc, const char *path, const vecindex_key *key, int64_t d,
                            vecindex_writer **out, lath_error *err)
{
    lath_status st;
    vecindex_writer *w;
    if (d < 1) return err_set(err, LATH_ERR_USAGE, "%s: vectors of %lld numbers, want at least 1", path, (long long)d);
    w = alloc_zero(alloc, sizeof(*w));
    if (!w) return err_nomem(err, sizeof(*w));
    w->alloc = alloc;
    w->file.fd = -1;
    buf_init(&w->spans, alloc, SPANS_CEILING);
    memcpy(w->head.magic, MAGIC, sizeof(MAGIC));
    w->head.version = 1;
    w->head.header_bytes = VECINDEX_HEADER;
    w->head.type = VECINDEX_F32;
    w->head.d = (uint64_t)d;
    w->head.settings = key->settings;
    w->head.corpus_bytes = key->corpus_bytes;
    memcpy(w->head.model, key->model, sizeof(w->head.model));
    memcpy(w->head.corpus, key->corpus, sizeof(w->head.corpus));
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

lath_status vecindex_add(vecindex_writer *w, const float *vectors, const vecindex_span *spans, size_t n,
                         lath_error *err)
{
    const uint64_t size = w->head.corpus_bytes;
    if (n == 0) return LATH_OK;
    for (size_t i = 0; i < n; i++) {
        if (spans[i].offset > size || spans[i].len > size - spans[i].offset)
            return err_item(
                err, LATH_ERR_USAGE, (int64_t)i, "bytes %llu+%llu of a text are not inside the corpus of %llu",
                (unsigned long long)spans[i].offset, (unsigned long long)spans[i].len, (unsigned long long)size);
    }
    buf_append(&w->spans, spans, n * sizeof(*spans));
    TRY(buf_status(&w->spans, err));
    TRY(outfile_write(&w->file, vectors, n * (size_t)w->head.d * sizeof(float), err));
    w->head.n += n;
    return LATH_OK;
}

const char *vecindex_temp_path(const vecindex_writer *w) { return w->file.temp; }

static void writer_release(vecindex_writer *w)
{
    buf_deinit(&w->spans);
    alloc_release(w->alloc, w, sizeof(*w));
}

/* Reads back what was written, so that the checksum covers what the file system has. */
static lath_status hash_data(vecindex_writer *w, lath_error *err)
{
    file_map m;
    TRY(file_map_open(&m, w->alloc, w->file.temp, FILE_MAP, err));
    if (m.size != w->head.file_bytes) {
        file_map_close(&m);
        return err_set(err, LATH_ERR_IO, "%s: changed while it was written", w->file.temp);
    }
    const hash128 h = hash_128(m.data + VECINDEX_HEADER, m.size - VECINDEX_HEADER, 0);
    file_map_close(&m);
    w->head.data_hash[0] = h.lo;
    w->head.data_hash[1] = h.hi;
    return LATH_OK;
}

lath_status vecindex_commit(vecindex_writer *w, lath_error *err)
{
    vecindex_header *h = &w->head;
    lath_status st;
    if (!lay_out(h)) {
        st = err_set(err, LATH_ERR_LIMIT, "%s: too many vectors", w->file.path);
        goto done;
    }
    TRY_DONE(outfile_write(&w->file, zeros, (size_t)(h->spans_offset - h->vectors_offset - h->vectors_bytes), err));
    TRY_DONE(outfile_write(&w->file, w->spans.data, w->spans.len, err));
    TRY_DONE(hash_data(w, err));
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
    writer_release(w);
}

/* ----------------------------------------------------------------------------------------------------------- reader */

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
    const size_t n = m->size < sizeof(MAGIC) ? m->size : sizeof(MAGIC);
    if (n == 0 || memcmp(m->data, MAGIC, n) != 0) {
        if (m->size >= VECINDEX_HEADER && all_zero(m->data, VECINDEX_HEADER))
            return err_set(err, LATH_ERR_FORMAT, "%s: a vector index that was never finished", path);
        return err_set(err, LATH_ERR_FORMAT, "%s: not a lath vector index (it does not begin with LATHVIX1)", path);
    }
    if (m->size < sizeof(*h))
        return err_set(err, LATH_ERR_FORMAT, "%s: cut: %zu bytes, a header has %zu", path, m->size, sizeof(*h));
    memcpy(h, m->data, sizeof(*h));
    if (hash_64(h, offsetof(vecindex_header, header_hash)) != h->header_hash)
        return err_set(err, LATH_ERR_FORMAT, "%s: damaged: the header does not match its checksum", path);
    if (h->version != 1) return err_set(err, LATH_ERR_FORMAT, "%s: version %u of the format, want 1", path, h->version);
    if (h->type != VECINDEX_F32)
        return err_set(err, LATH_ERR_FORMAT, "%s: vectors of type %u, want 1 (f32)", path, h->type);
    if (h->header_bytes != VECINDEX_HEADER || h->flags != 0 || !all_zero(h->reserved, sizeof(h->reserved)))
        return err_set(err, LATH_ERR_FORMAT, "%s: the header has fields that this version does not know", path);
    return LATH_OK;
}

static lath_status check_sizes(const file_map *m, const vecindex_header *h, lath_error *err)
{
    vecindex_header want = *h;
    if (h->d < 1 || h->d > INT32_MAX || !lay_out(&want))
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
    return LATH_OK;
}

static lath_status check_data(const file_map *m, const vecindex_header *h, lath_error *err)
{
    const vecindex_span *spans = (const vecindex_span *)(const void *)(m->data + h->spans_offset);
    const hash128 sum = hash_128(m->data + VECINDEX_HEADER, m->size - VECINDEX_HEADER, 0);
    if (sum.lo != h->data_hash[0] || sum.hi != h->data_hash[1])
        return err_set(err, LATH_ERR_FORMAT, "%s: damaged: the data does not match its checksum", m->path);
    for (uint64_t i = 0; i < h->n; i++) {
        if (spans[i].offset > h->corpus_bytes || spans[i].len > h->corpus_bytes - spans[i].offset)
            return err_set(err, LATH_ERR_FORMAT, "%s: text %llu lies outside the corpus", m->path,
                           (unsigned long long)i);
    }
    return LATH_OK;
}

lath_status vecindex_open(const lath_allocator *alloc, const char *path, file_mode mode, vecindex *out, lath_error *err)
{
    vecindex_header h;
    lath_status st;
    *out = (vecindex){0};
    TRY(file_map_open(&out->file, alloc, path, mode, err));
    TRY_DONE(check_header(&out->file, &h, err));
    TRY_DONE(check_sizes(&out->file, &h, err));
    TRY_DONE(check_data(&out->file, &h, err));
    out->n = h.n;
    out->d = (int64_t)h.d;
    out->rows = (const float *)(const void *)(out->file.data + h.vectors_offset);
    out->spans = (const vecindex_span *)(const void *)(out->file.data + h.spans_offset);
    out->key.settings = h.settings;
    out->key.corpus_bytes = h.corpus_bytes;
    memcpy(out->key.model, h.model, sizeof(h.model));
    memcpy(out->key.corpus, h.corpus, sizeof(h.corpus));
    return LATH_OK;
done:
    vecindex_close(out);
    return st;
}

void vecindex_close(vecindex *x)
{
    file_map_close(&x->file);
    *x = (vecindex){0};
}
