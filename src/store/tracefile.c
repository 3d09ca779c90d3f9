/* SPDX-License-Identifier: Apache-2.0
 *
 * tracefile.c: the files of tracefile.h, read. Everything that a header or an index says is checked when a file is
 * opened: after that a vector is an addition away.
 */
#include <string.h>

#include "base/checked.h"
#include "store/tracefile_layout.h"

const tracefile_layout tracefile_layouts[] = {
    [TRACEFILE_TRAC] = {"TRAC", "trace file", sizeof(trac_header), 0},
    [TRACEFILE_BNDX] = {"BNDX", "boundary file", sizeof(bndx_header), sizeof(bndx_entry)},
    [TRACEFILE_CTXT] = {"CTXT", "context file", sizeof(ctxt_header), sizeof(ctxt_entry)},
};

static size_t trac_vectors(const tracefile_shape *s)
{
    size_t n = 0;
    if (s->parts != TRACEFILE_PARTS && s->parts != TRACEFILE_PARTS_POST) return 0;
    if (s->n_layers == 0 || !size_mul((size_t)s->n_layers + 1, s->parts, &n)) return 0;
    return n;
}

static size_t ctxt_vectors(const tracefile_shape *s)
{
    if (s->tier < 1 || s->tier > 3 || s->n_critical > TRACEFILE_CRITICAL || s->n_layers == 0) return 0;
    for (uint32_t i = 0; i < TRACEFILE_CRITICAL; i++) {
        if (i < s->n_critical ? s->critical[i] >= s->n_layers : s->critical[i] != 0) return 0;
    }
    return 1 + (size_t)(s->tier - 1) * s->n_critical;
}

size_t tracefile_vectors(const tracefile_shape *s)
{
    if (s->d == 0) return 0;
    if (s->kind == TRACEFILE_TRAC) return trac_vectors(s);
    if (s->window == 0) return 0;
    return s->kind == TRACEFILE_BNDX ? 1 : ctxt_vectors(s);
}

bool tracefile_lay_out(tracefile_place *p)
{
    const tracefile_layout *l = &tracefile_layouts[p->shape.kind];
    size_t record, index, all, end;
    const size_t vectors = tracefile_vectors(&p->shape);
    if (vectors == 0 || !size_mul(vectors, p->shape.d, &record) || !size_mul(record, sizeof(float), &record))
        return false;
    if (!size_mul(p->shape.most, l->entry, &index) || !size_mul(record, p->n_records, &all)) return false;
    if (!size_add(index, l->header, &index) || !size_add(index, all, &end)) return false;
    p->record = record;
    p->data = index;
    p->end = end;
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- checking */

static bool all_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i]) return false;
    }
    return true;
}

/* The fields of a header; false: bytes that mean nothing are not 0. */
static bool take_header(const tracefile_header *h, tracefile_place *p)
{
    tracefile_shape *s = &p->shape;
    switch (s->kind) {
    case TRACEFILE_TRAC:
        s->d = h->trac.d;
        s->n_layers = h->trac.n_layers;
        s->parts = h->trac.version == 1 ? TRACEFILE_PARTS : h->trac.parts;
        p->n_records = p->n_tokens = h->trac.n_records;
        return all_zero(h->trac.zero, sizeof(h->trac.zero)) && (h->trac.version != 1 || h->trac.parts == 0);
    case TRACEFILE_BNDX:
        s->d = h->bndx.d;
        s->window = h->bndx.window;
        p->n_records = h->bndx.n_records;
        p->n_tokens = h->bndx.n_tokens;
        return all_zero(h->bndx.zero, sizeof(h->bndx.zero));
    default:
        s->d = h->ctxt.d;
        s->n_layers = h->ctxt.n_layers;
        s->window = h->ctxt.window;
        s->tier = h->ctxt.tier;
        s->n_critical = h->ctxt.n_critical;
        memcpy(s->critical, h->ctxt.critical, sizeof(s->critical));
        p->n_records = h->ctxt.n_records;
        p->n_tokens = h->ctxt.n_tokens;
        return all_zero(h->ctxt.zero, sizeof(h->ctxt.zero)) && all_zero(h->ctxt.pad, sizeof(h->ctxt.pad));
    }
}

static ctxt_entry get_entry(tracefile_kind kind, const uint8_t *index, size_t i)
{
    ctxt_entry e;
    if (kind == TRACEFILE_CTXT) {
        memcpy(&e, index + i * sizeof(e), sizeof(e));
    } else {
        bndx_entry b;
        memcpy(&b, index + i * sizeof(b), sizeof(b));
        e = (ctxt_entry){b.begin, b.n, b.offset, b.zero};
    }
    return e;
}

/* How many entries an index has room for is written nowhere: where the first record lies, or where an empty file ends, says it. */
static lath_status find_most(const char *path, const uint8_t *bytes, size_t size, tracefile_place *p, lath_error *err)
{
    const tracefile_layout *l = &tracefile_layouts[p->shape.kind];
    size_t used, data = size;
    if (!size_mul(p->n_records, l->entry, &used) || used > size - l->header)
        return err_set(err, LATH_ERR_FORMAT, "%s: is cut: an index of %u entries is not there", path,
                       (unsigned)p->n_records);
    if (p->n_records > 0) {
        const uint64_t at = get_entry(p->shape.kind, bytes + l->header, 0).offset;
        if (at < l->header + used || at > size)
            return err_set(err, LATH_ERR_FORMAT, "%s: record 0 cannot be at byte %llu", path, (unsigned long long)at);
        data = (size_t)at;
    }
    const size_t room = data - l->header;
    if (room % l->entry != 0 || room / l->entry > UINT32_MAX)
        return err_set(err, LATH_ERR_FORMAT, "%s: an index of %zu bytes has no whole entries", path, room);
    p->shape.most = (uint32_t)(room / l->entry);
    return LATH_OK;
}

static lath_status check_index(const char *path, const uint8_t *index, const tracefile_place *p, lath_error *err)
{
    uint64_t behind = 0, at = p->data;
    for (uint32_t i = 0; i < p->n_records; i++, at += p->record) {
        const ctxt_entry e = get_entry(p->shape.kind, index, i);
        if (e.offset != at || e.zero != 0)
            return err_set(err, LATH_ERR_FORMAT, "%s: entry %u of the index is damaged", path, (unsigned)i);
        if (e.n == 0 || e.n > p->shape.window || e.begin < behind || (uint64_t)e.begin + e.n > UINT32_MAX)
            return err_set(err, LATH_ERR_FORMAT,
                           "%s: window %u of %u tokens at token %u: windows of at most %u follow each other", path,
                           (unsigned)i, (unsigned)e.n, (unsigned)e.begin, (unsigned)p->shape.window);
        behind = (uint64_t)e.begin + e.n;
    }
    if (behind != p->n_tokens)
        return err_set(err, LATH_ERR_FORMAT, "%s: its windows end at token %llu, its header says %u", path,
                       (unsigned long long)behind, (unsigned)p->n_tokens);
    return LATH_OK;
}

lath_status tracefile_parse(const char *path, tracefile_kind kind, const uint8_t *bytes, size_t size,
                            tracefile_place *p, lath_error *err)
{
    const tracefile_layout *l = &tracefile_layouts[kind];
    tracefile_header h;
    uint32_t version;
    *p = (tracefile_place){.shape = {.kind = kind}};
    if (size < sizeof(h.magic) || memcmp(bytes, l->magic, sizeof(h.magic)) != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: is no %s: it does not begin with %s", path, l->what, l->magic);
    if (size < l->header)
        return err_set(err, LATH_ERR_FORMAT, "%s: is cut: %zu bytes, the header has %zu", path, size, l->header);
    memcpy(&h, bytes, l->header);
    memcpy(&version, bytes + sizeof(h.magic), sizeof(version));
    const uint32_t newest = kind == TRACEFILE_TRAC ? 2 : 1;
    if (version == 0 || version > newest)
        return err_set(err, LATH_ERR_FORMAT, "%s: is of version %u; this reads %s up to %u", path, (unsigned)version,
                       l->magic, (unsigned)newest);
    if (!take_header(&h, p))
        return err_set(err, LATH_ERR_FORMAT, "%s: the header has bytes that version %u does not know", path,
                       (unsigned)version);
    if (tracefile_vectors(&p->shape) == 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: there is no %s of what the header says", path, l->what);
    if (l->entry) TRY(find_most(path, bytes, size, p, err));
    if (!tracefile_lay_out(p) || p->end > size)
        return err_set(err, LATH_ERR_FORMAT, "%s: is cut: %zu bytes are too few for %u records of %s", path, size,
                       (unsigned)p->n_records, l->magic);
    return l->entry ? check_index(path, bytes + l->header, p, err) : LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------- reading */

lath_status tracefile_open(const lath_allocator *alloc, const char *path, tracefile_kind kind, tracefile *out,
                           lath_error *err)
{
    tracefile_place p;
    lath_status st;
    *out = (tracefile){0};
    TRY(file_map_open(&out->file, alloc, path, FILE_MAP, err));
    TRY_DONE(tracefile_parse(path, kind, out->file.data, out->file.size, &p, err));
    if (p.end != out->file.size) {
        st = err_set(err, LATH_ERR_FORMAT,
                     "%s: has %llu bytes behind its %u records: a writer was stopped (the next one cuts them off)",
                     path, (unsigned long long)(out->file.size - p.end), (unsigned)p.n_records);
        goto done;
    }
    out->shape = p.shape;
    out->vectors = tracefile_vectors(&p.shape);
    out->n_records = p.n_records;
    out->n_tokens = p.n_tokens;
    out->data = out->file.data + p.data;
    return LATH_OK;
done:
    tracefile_close(out);
    return st;
}

void tracefile_close(tracefile *f)
{
    file_map_close(&f->file);
    *f = (tracefile){0};
}

const float *tracefile_get(const tracefile *f, size_t i, size_t v)
{
    if (i >= f->n_records || v >= f->vectors) return NULL;
    return (const float *)(const void *)f->data + (i * f->vectors + v) * f->shape.d;
}

bool tracefile_window(const tracefile *f, size_t i, uint32_t *begin, uint32_t *end)
{
    const tracefile_layout *l = &tracefile_layouts[f->shape.kind];
    if (l->entry == 0 || i >= f->n_records) return false;
    const ctxt_entry e = get_entry(f->shape.kind, f->file.data + l->header, i);
    *begin = e.begin;
    *end = e.begin + e.n;
    return true;
}

int64_t tracefile_find(const tracefile *f, uint32_t token)
{
    uint32_t begin, end;
    size_t low = 0, high = f->n_records; /* the first window that ends behind the token */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (!tracefile_window(f, middle, &begin, &end)) return -1;
        if (end > token)
            high = middle;
        else
            low = middle + 1;
    }
    return tracefile_window(f, low, &begin, &end) && begin <= token ? (int64_t)low : -1;
}
