/* SPDX-License-Identifier: Apache-2.0
 *
 * embrecords.c: the record file, written and read (layout in embrecords.h and docs/formats/embcache.md). The header is
 * written last, over zeros, so that a file with a valid header is complete. The reader walks the whole file once when
 * it opens it and trusts nothing: after that, walking it again cannot fail.
 */
#include "store/embrecords.h"

#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/outfile.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "records are read in place and are little-endian"
#endif

static const char MAGIC[8] = {'L', 'A', 'T', 'H', 'E', 'M', 'B', '1'};
/* Of the keys held while writing; a guard against runaway counts, not a limit that disks reach. */
static const size_t KEYS_CEILING = (size_t)1 << 40;

enum { HEADER_BYTES = 128, RECORD_HEAD = 12, KEY_HEAD = 8, SETTINGS_MOST = 4096 };

typedef struct embrecords_header {
    char magic[8];
    uint32_t version;      /* 1 */
    uint32_t header_bytes; /* 128 */
    uint32_t dim;
    uint32_t settings_bytes;
    uint64_t count;
    uint64_t model[2];
    uint64_t records_bytes; /* count * (12 + 4 dim) */
    uint64_t keys_bytes;
    uint64_t file_bytes;
    uint64_t data_hash[2]; /* XXH3-128 of [header_bytes, file_bytes), low word first */
    uint8_t reserved[32];  /* 0 */
    uint64_t header_hash;  /* XXH3-64 of the 120 bytes before */
} embrecords_header;

_Static_assert(sizeof(embrecords_header) == HEADER_BYTES, "the header is 128 bytes on disk");
_Static_assert(offsetof(embrecords_header, count) == 24, "count at 24");
_Static_assert(offsetof(embrecords_header, data_hash) == 72, "data_hash at 72");
_Static_assert(offsetof(embrecords_header, header_hash) == 120, "header_hash is last");

uint64_t embrecords_hash(const int32_t *ids, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    const uint8_t *p = (const uint8_t *)ids;
    for (size_t i = 0; i < n * sizeof(*ids); i++) h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

/* Fills the sizes of h from count, dim, keys_bytes and settings_bytes; false when they overflow. */
static bool lay_out(embrecords_header *h)
{
    size_t record, records, end;
    if (h->count > SIZE_MAX || h->keys_bytes > SIZE_MAX) return false;
    if (!size_mul(h->dim, sizeof(float), &record) || !size_add(record, RECORD_HEAD, &record)) return false;
    if (!size_mul(record, (size_t)h->count, &records)) return false;
    if (!size_add(records, (size_t)h->keys_bytes, &end)) return false;
    if (!size_add(end, (size_t)h->settings_bytes + HEADER_BYTES, &end)) return false;
    h->records_bytes = records;
    h->file_bytes = end;
    return true;
}

/* ------------------------------------------------------------------------------------------------------------- writer */

struct embrecords_writer {
    const lath_allocator *alloc;
    outfile file;
    embrecords_header head;
    buf keys, settings;
};

lath_status embrecords_create(const lath_allocator *alloc, const char *path, const uint64_t model[2],
                              const char *settings, uint32_t dim, embrecords_writer **out, lath_error *err)
{
    static const char zeros[HEADER_BYTES];
    lath_status st;
    embrecords_writer *w = alloc_zero(alloc, sizeof(*w));
    if (!w) return err_nomem(err, sizeof(*w));
    w->alloc = alloc;
    w->file.fd = -1;
    buf_init(&w->keys, alloc, KEYS_CEILING);
    buf_init(&w->settings, alloc, SETTINGS_MOST);
    memcpy(w->head.magic, MAGIC, sizeof(MAGIC));
    memcpy(w->head.model, model, sizeof(w->head.model));
    w->head.version = 1;
    w->head.header_bytes = HEADER_BYTES;
    w->head.dim = dim;
    buf_str(&w->settings, settings);
    TRY_DONE(buf_status(&w->settings, err));
    w->head.settings_bytes = (uint32_t)w->settings.len;
    TRY_DONE(outfile_create(&w->file, alloc, path, err));
    if (w->file.direct) {
        st = err_set(err, LATH_ERR_IO, "%s: records cannot go to a pipe or a device", path);
        goto done;
    }
    TRY_DONE(outfile_write(&w->file, zeros, HEADER_BYTES, err));
    *out = w;
    return LATH_OK;
done:
    embrecords_abort(w);
    return st;
}

lath_status embrecords_add(embrecords_writer *w, const embrecord *r, lath_error *err)
{
    const uint64_t hash = embrecords_hash(r->ids, r->n);
    const uint32_t key[2] = {r->skip, r->n};
    uint8_t head[RECORD_HEAD];
    memcpy(head, &hash, sizeof(hash));
    memcpy(head + sizeof(hash), &w->head.dim, sizeof(w->head.dim));
    buf_append(&w->keys, key, sizeof(key));
    buf_append(&w->keys, r->ids, r->n * sizeof(*r->ids));
    TRY(buf_status(&w->keys, err));
    TRY(outfile_write(&w->file, head, sizeof(head), err));
    TRY(outfile_write(&w->file, r->vector, w->head.dim * sizeof(*r->vector), err));
    w->head.count++;
    return LATH_OK;
}

/* Reads back what was written, so that the checksum covers what the file system has. */
static lath_status hash_data(embrecords_writer *w, lath_error *err)
{
    file_map m;
    TRY(file_map_open(&m, w->alloc, w->file.temp, FILE_MAP, err));
    const bool whole = m.size == w->head.file_bytes;
    const hash128 h = whole ? hash_128(m.data + HEADER_BYTES, m.size - HEADER_BYTES, 0) : (hash128){0, 0};
    file_map_close(&m);
    w->head.data_hash[0] = h.lo;
    w->head.data_hash[1] = h.hi;
    return whole ? LATH_OK : err_set(err, LATH_ERR_IO, "%s: changed while it was written", w->file.temp);
}

lath_status embrecords_commit(embrecords_writer *w, lath_error *err)
{
    embrecords_header *h = &w->head;
    lath_status st;
    h->keys_bytes = w->keys.len;
    if (!lay_out(h)) {
        st = err_set(err, LATH_ERR_LIMIT, "%s: too many records", w->file.path);
        goto done;
    }
    TRY_DONE(outfile_write(&w->file, w->keys.data, w->keys.len, err));
    TRY_DONE(outfile_write(&w->file, w->settings.data, w->settings.len, err));
    TRY_DONE(hash_data(w, err));
    h->header_hash = hash_64(h, offsetof(embrecords_header, header_hash));
    TRY_DONE(outfile_write_at(&w->file, 0, h, sizeof(*h), err));
    st = outfile_commit(&w->file, err);
done:
    embrecords_abort(w);
    return st;
}

void embrecords_abort(embrecords_writer *w)
{
    if (!w) return;
    outfile_abort(&w->file);
    buf_deinit(&w->keys);
    buf_deinit(&w->settings);
    alloc_release(w->alloc, w, sizeof(*w));
}

/* ------------------------------------------------------------------------------------------------------------- reader */

static lath_status check_header(const file_map *m, embrecords_header *h, lath_error *err)
{
    static const uint8_t zeros[sizeof(h->reserved)];
    const char *path = m->path;
    if (m->size < sizeof(MAGIC) || memcmp(m->data, MAGIC, sizeof(MAGIC)) != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: no file of embedding records (it does not begin with LATHEMB1)",
                       path);
    if (m->size < sizeof(*h))
        return err_set(err, LATH_ERR_FORMAT, "%s: cut: %zu bytes, a header has %zu", path, m->size, sizeof(*h));
    memcpy(h, m->data, sizeof(*h));
    if (hash_64(h, offsetof(embrecords_header, header_hash)) != h->header_hash)
        return err_set(err, LATH_ERR_FORMAT, "%s: damaged: the header does not match its checksum", path);
    if (h->version != 1) return err_set(err, LATH_ERR_FORMAT, "%s: version %u of the format, want 1", path, h->version);
    if (h->header_bytes != HEADER_BYTES || memcmp(h->reserved, zeros, sizeof(zeros)) != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: the header has fields that this version does not know", path);
    embrecords_header want = *h;
    if (h->dim < 1 || h->dim > INT32_MAX || h->settings_bytes > SETTINGS_MOST || !lay_out(&want) ||
        memcmp(&want, h, sizeof(want)) != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: sizes in the header do not follow from %llu records of %u numbers",
                       path, (unsigned long long)h->count, h->dim);
    if (m->size != h->file_bytes)
        return err_set(err, LATH_ERR_FORMAT, "%s: %s: %zu bytes, the header says %llu", path,
                       m->size < h->file_bytes ? "cut" : "bytes behind its end", m->size,
                       (unsigned long long)h->file_bytes);
    return LATH_OK;
}

static bool all_finite(const uint8_t *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, p + i * sizeof(bits), sizeof(bits));
        if ((bits & 0x7F800000u) == 0x7F800000u) return false;
    }
    return true;
}

/* Walks all records and keys. */
static lath_status check_records(const embrecords *r, const embrecords_header *h, lath_error *err)
{
    const uint8_t *record = r->record, *key = r->key, *end = key + h->keys_bytes;
    for (uint64_t i = 0; i < h->count; i++) {
        uint64_t hash;
        uint32_t dim, head[2];
        if ((size_t)(end - key) < KEY_HEAD) break;
        memcpy(head, key, sizeof(head));
        key += KEY_HEAD;
        if (head[1] < 1 || head[1] > (size_t)(end - key) / sizeof(int32_t)) break;
        memcpy(&hash, record, sizeof(hash));
        memcpy(&dim, record + sizeof(hash), sizeof(dim));
        if (dim != h->dim)
            return err_set(err, LATH_ERR_FORMAT, "%s: record %llu has %u numbers, want %u", r->file.path,
                           (unsigned long long)i, dim, h->dim);
        if (hash != embrecords_hash((const int32_t *)(const void *)key, head[1]))
            return err_set(err, LATH_ERR_FORMAT, "%s: record %llu is not of its token ids", r->file.path,
                           (unsigned long long)i);
        if (!all_finite(record + RECORD_HEAD, dim))
            return err_set(err, LATH_ERR_FORMAT, "%s: record %llu is not finite", r->file.path, (unsigned long long)i);
        key += head[1] * sizeof(int32_t);
        record += RECORD_HEAD + (size_t)dim * sizeof(float);
        if (i + 1 == h->count && key == end) return LATH_OK;
    }
    if (h->count == 0 && key == end) return LATH_OK;
    return err_set(err, LATH_ERR_FORMAT, "%s: the token ids do not fit the records", r->file.path);
}

lath_status embrecords_open(const lath_allocator *alloc, const char *path, embrecords *out, lath_error *err)
{
    embrecords_header h;
    lath_status st;
    *out = (embrecords){0};
    TRY(file_map_open(&out->file, alloc, path, FILE_COPY, err));
    TRY_DONE(check_header(&out->file, &h, err));
    const uint8_t *data = out->file.data;
    const hash128 sum = hash_128(data + HEADER_BYTES, out->file.size - HEADER_BYTES, 0);
    if (sum.lo != h.data_hash[0] || sum.hi != h.data_hash[1]) {
        st = err_set(err, LATH_ERR_FORMAT, "%s: damaged: the data does not match its checksum", path);
        goto done;
    }
    out->record = data + HEADER_BYTES;
    out->key = out->record + h.records_bytes;
    out->settings = (const char *)(out->key + h.keys_bytes);
    out->settings_len = h.settings_bytes;
    out->dim = h.dim;
    out->count = h.count;
    memcpy(out->model, h.model, sizeof(out->model));
    TRY_DONE(check_records(out, &h, err));
    return LATH_OK;
done:
    embrecords_close(out);
    return st;
}

bool embrecords_next(embrecords *r, embrecord *out)
{
    if (r->at == r->count) return false;
    uint32_t head[2];
    memcpy(head, r->key, sizeof(head));
    *out = (embrecord){(const int32_t *)(const void *)(r->key + KEY_HEAD), head[1], head[0],
                       (const float *)(const void *)(r->record + RECORD_HEAD)};
    r->key += KEY_HEAD + head[1] * sizeof(int32_t);
    r->record += RECORD_HEAD + (size_t)r->dim * sizeof(float);
    r->at++;
    return true;
}

void embrecords_close(embrecords *r)
{
    file_map_close(&r->file);
    *r = (embrecords){0};
}
