/* SPDX-License-Identifier: Apache-2.0
 *
 * tracefile_write.c: the files of tracefile.h, written. A record first, then its entry of the index, then the header that counts it:
 * whoever stops in between has added nothing but a tail. A file that goes on in place is brought to the disk before and
 * after its header; a new one gets its name when it is whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/outfile.h"
#include "store/tracefile_layout.h"

struct tracefile_writer {
    const lath_allocator *alloc;
    outfile file; /* of a new file; else fd -1 */
    int fd;
    bool in_place;
    tracefile_place at;
    buf path;
};

static const char *name_of(tracefile_writer *w) { return buf_cstr(&w->path); }

void tracefile_put_header(const tracefile_place *p, tracefile_header *h)
{
    const tracefile_shape *s = &p->shape;
    memset(h, 0, sizeof(*h));
    memcpy(h->magic, tracefile_layouts[s->kind].magic, sizeof(h->magic));
    if (s->kind == TRACEFILE_TRAC) {
        h->trac.version = s->parts == TRACEFILE_PARTS ? 1 : 2;
        h->trac.d = s->d;
        h->trac.n_layers = s->n_layers;
        h->trac.n_records = p->n_records;
        h->trac.parts = s->parts == TRACEFILE_PARTS ? 0 : s->parts;
    } else if (s->kind == TRACEFILE_BNDX) {
        h->bndx.version = 1;
        h->bndx.d = s->d;
        h->bndx.window = s->window;
        h->bndx.n_records = p->n_records;
        h->bndx.n_tokens = p->n_tokens;
    } else {
        h->ctxt.version = 1;
        h->ctxt.d = s->d;
        h->ctxt.n_layers = s->n_layers;
        h->ctxt.window = s->window;
        h->ctxt.tier = (uint8_t)s->tier;
        h->ctxt.n_critical = (uint8_t)s->n_critical;
        memcpy(h->ctxt.critical, s->critical, s->n_critical);
        h->ctxt.n_records = p->n_records;
        h->ctxt.n_tokens = p->n_tokens;
    }
}

static lath_status write_at(tracefile_writer *w, uint64_t offset, const void *p, size_t n, lath_error *err)
{
    const char *from = p;
    while (n > 0) {
        const ssize_t done = pwrite(w->fd, from, n, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return err_os(err, LATH_ERR_IO, done < 0 ? errno : ENOSPC, "%s: cannot write", name_of(w));
        from += done;
        offset += (uint64_t)done;
        n -= (size_t)done;
    }
    return LATH_OK;
}

static lath_status write_header(tracefile_writer *w, const tracefile_place *p, lath_error *err)
{
    tracefile_header h;
    tracefile_put_header(p, &h);
    return write_at(w, 0, &h, tracefile_layouts[p->shape.kind].header, err);
}

static lath_status to_disk(tracefile_writer *w, lath_error *err)
{
    if (!w->in_place || fdatasync(w->fd) == 0) return LATH_OK;
    return err_os(err, LATH_ERR_IO, errno, "%s: cannot write", name_of(w));
}

static lath_status make(const lath_allocator *alloc, const char *path, tracefile_writer **out, lath_error *err)
{
    tracefile_writer *w = alloc_zero(alloc, sizeof(*w));
    if (!w) return err_nomem(err, sizeof(*w));
    w->alloc = alloc;
    w->fd = w->file.fd = -1;
    buf_init(&w->path, alloc, SIZE_MAX / 2);
    buf_str(&w->path, path);
    (void)buf_cstr(&w->path);
    *out = w;
    return buf_status(&w->path, err);
}

lath_status tracefile_create(const lath_allocator *alloc, const char *path, const tracefile_shape *shape,
                             tracefile_writer **out, lath_error *err)
{
    tracefile_writer *w = NULL;
    lath_status st;
    tracefile_place p = {.shape = *shape};
    if (shape->kind == TRACEFILE_TRAC) p.shape.most = 0;
    if (!tracefile_lay_out(&p))
        return err_set(err, LATH_ERR_USAGE, "%s: there is no %s of this shape", path,
                       tracefile_layouts[shape->kind].what);
    TRY_DONE(make(alloc, path, &w, err));
    w->at = p;
    outfile_sweep(path);
    TRY_DONE(outfile_create(&w->file, alloc, path, err));
    if (w->file.direct) {
        st = err_set(err, LATH_ERR_IO, "%s: a %s cannot be a pipe or a device", path,
                     tracefile_layouts[shape->kind].what);
        goto done;
    }
    w->fd = w->file.fd;
    TRY_DONE(write_header(w, &p, err));
    if (ftruncate(w->fd, (off_t)p.end) != 0) { /* an index of zeros */
        st = err_os(err, LATH_ERR_IO, errno, "%s: cannot write", path);
        goto done;
    }
    *out = w;
    return LATH_OK;
done:
    tracefile_abort(w);
    return st;
}

static lath_status same_shape(const char *path, const tracefile_shape *is, const tracefile_shape *want, lath_error *err)
{
    tracefile_shape a = *is, b = *want;
    a.most = b.most = 0;
    const bool critical = memcmp(a.critical, b.critical, sizeof(a.critical)) == 0;
    if (a.d == b.d && a.n_layers == b.n_layers && a.parts == b.parts && a.window == b.window && a.tier == b.tier &&
        a.n_critical == b.n_critical && critical)
        return LATH_OK;
    return err_set(err, LATH_ERR_USAGE,
                   "%s: has vectors of %u numbers, %u layers, windows of %u tokens, tier %u; wanted %u, %u, %u, %u%s",
                   path, (unsigned)a.d, (unsigned)a.n_layers, (unsigned)a.window, (unsigned)a.tier, (unsigned)b.d,
                   (unsigned)b.n_layers, (unsigned)b.window, (unsigned)b.tier,
                   critical ? "" : ", and other critical layers");
}

/* What is there, checked; a tail is cut off. */
static lath_status take_over(tracefile_writer *w, tracefile_kind kind, const tracefile_shape *want, lath_error *err)
{
    const char *path = name_of(w);
    file_map m;
    TRY(file_map_open(&m, w->alloc, path, FILE_MAP, err));
    lath_status st = tracefile_parse(path, kind, m.data, m.size, &w->at, err);
    const size_t size = m.size;
    file_map_close(&m);
    if (st == LATH_OK && want) st = same_shape(path, &w->at.shape, want, err);
    if (st == LATH_OK && size > w->at.end && ftruncate(w->fd, (off_t)w->at.end) != 0)
        st = err_os(err, LATH_ERR_IO, errno, "%s: cannot cut off its tail", path);
    return st;
}

lath_status tracefile_continue(const lath_allocator *alloc, const char *path, tracefile_kind kind,
                               const tracefile_shape *want, tracefile_writer **out, lath_error *err)
{
    tracefile_writer *w = NULL;
    lath_status st;
    TRY_DONE(make(alloc, path, &w, err));
    w->in_place = true;
    w->fd = open(path, O_RDWR | O_CLOEXEC);
    if (w->fd < 0) {
        st = err_os(err, errno == ENOENT ? LATH_ERR_NOT_FOUND : LATH_ERR_IO, errno, "%s: cannot open to write", path);
        goto done;
    }
    if (flock(w->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        st = err_set(err, LATH_ERR_IO, "%s: another process writes to it", path);
        goto done;
    }
    TRY_DONE(take_over(w, kind, want, err));
    *out = w;
    return LATH_OK;
done:
    tracefile_abort(w);
    return st;
}

const tracefile_shape *tracefile_writer_shape(const tracefile_writer *w) { return &w->at.shape; }

static lath_status check_window(tracefile_writer *w, uint32_t begin, uint32_t n, lath_error *err)
{
    const tracefile_place *p = &w->at;
    if (n == 0 || n > p->shape.window || begin < p->n_tokens || n > UINT32_MAX - begin)
        return err_set(err, LATH_ERR_USAGE,
                       "%s: %u tokens at token %u: windows have 1 to %u tokens and follow each other; %u are there",
                       name_of(w), (unsigned)n, (unsigned)begin, (unsigned)p->shape.window, (unsigned)p->n_tokens);
    if (p->n_records == p->shape.most)
        return err_set(err, LATH_ERR_LIMIT, "%s: its index is full: %u records", name_of(w), (unsigned)p->n_records);
    if (p->shape.kind == TRACEFILE_BNDX && p->end > UINT32_MAX)
        return err_set(err, LATH_ERR_LIMIT, "%s: a boundary file has records below 4 GiB only", name_of(w));
    return LATH_OK;
}

static lath_status write_entry(tracefile_writer *w, uint32_t begin, uint32_t n, lath_error *err)
{
    const tracefile_place *p = &w->at;
    const tracefile_layout *l = &tracefile_layouts[p->shape.kind];
    const uint64_t at = l->header + (uint64_t)p->n_records * l->entry;
    if (p->shape.kind == TRACEFILE_CTXT) {
        const ctxt_entry e = {begin, n, p->end, 0};
        return write_at(w, at, &e, sizeof(e), err);
    }
    const bndx_entry e = {begin, n, (uint32_t)p->end, 0};
    return write_at(w, at, &e, sizeof(e), err);
}

static lath_status add(tracefile_writer *w, uint32_t begin, uint32_t n, const float *record, lath_error *err)
{
    tracefile_place next = w->at;
    const bool windows = tracefile_layouts[next.shape.kind].entry != 0;
    next.n_records++;
    next.n_tokens = windows ? begin + n : next.n_records;
    if (next.n_records == 0 || !tracefile_lay_out(&next))
        return err_set(err, LATH_ERR_LIMIT, "%s: is full", name_of(w));
    TRY(write_at(w, w->at.end, record, next.record, err));
    if (windows) TRY(write_entry(w, begin, n, err));
    TRY(to_disk(w, err));
    TRY(write_header(w, &next, err));
    TRY(to_disk(w, err));
    w->at = next;
    return LATH_OK;
}

lath_status tracefile_add(tracefile_writer *w, uint32_t begin, uint32_t n, const float *record, lath_error *err)
{
    const size_t numbers = w->at.record / sizeof(*record);
    for (size_t i = 0; i < numbers; i++) {
        if (!isfinite(record[i]))
            return err_set(err, LATH_ERR_INPUT, "%s: number %zu of record %u is not finite", name_of(w), i,
                           (unsigned)w->at.n_records);
    }
    if (tracefile_layouts[w->at.shape.kind].entry) TRY(check_window(w, begin, n, err));
    const lath_status st = add(w, begin, n, record, err);
    if (st != LATH_OK) { /* as it was; where even that fails, the next writer does it */
        (void)write_header(w, &w->at, NULL);
        if (ftruncate(w->fd, (off_t)w->at.end) != 0) return st;
    }
    return st;
}

lath_status tracefile_commit(tracefile_writer *w, lath_error *err)
{
    const lath_status st = w->in_place ? LATH_OK : outfile_commit(&w->file, err);
    tracefile_abort(w);
    return st;
}

void tracefile_abort(tracefile_writer *w)
{
    if (!w) return;
    if (w->in_place && w->fd >= 0) close(w->fd);
    outfile_abort(&w->file);
    buf_deinit(&w->path);
    alloc_release(w->alloc, w, sizeof(*w));
}
