/* SPDX-License-Identifier: Apache-2.0
 *
 * inspect_store.c: the files of lath_inspect.h, over store/tracefile. A trace goes into one token by token.
 */
#include <string.h>

#include "base/file.h"
#include "engine/inspect.h"
#include "store/tracefile.h"

enum { MOST_RECORDS = 10000 };

struct lath_store {
    const lath_runtime *rt;
    tracefile file;
};

struct lath_store_writer {
    const lath_runtime *rt;
    tracefile_writer *w;
};

/* The kinds of both headers are the same numbers. */
_Static_assert((int)LATH_STORE_TRACE == (int)TRACEFILE_TRAC && (int)LATH_STORE_BOUNDARY == (int)TRACEFILE_BNDX &&
                   (int)LATH_STORE_CONTEXT == (int)TRACEFILE_CTXT,
               "kinds of files");

/* ---------------------------------------------------------------------------------------------------------- of a trace */

/* A point of the trace, or NULL where the layer has not passed it.. */
static const float *row_of(const lath_trace *t, lath_point point, int32_t layer, int32_t position)
{
    const float *row;
    size_t d;
    return lath_trace_get(t, point, layer, position, &row, &d, NULL) == LATH_OK ? row : NULL;
}

static void subtract(float *out, const float *sum, const float *a, const float *b, size_t d)
{
    for (size_t i = 0; i < d; i++) out[i] = sum[i] - ((a ? a[i] : 0) + (b ? b[i] : 0));
}

static void copy_or_zero(float *out, const float *from, size_t d)
{
    if (from)
        memcpy(out, from, d * sizeof(*out));
    else
        memset(out, 0, d * sizeof(*out));
}

/* One waypoint: [parts, d]. x: the stream before the layer, behind: behind it. */
static void put_waypoint(const lath_trace *t, const lath_trace_info *info, int32_t layer, int32_t position,
                         const float *x, const float *behind, float *out)
{
    const size_t d = (size_t)info->d_model;
    const float *attn = row_of(t, LATH_POINT_ATTN_OUT, layer, position);
    const float *fed = row_of(t, LATH_POINT_FFN_OUT, layer, position);
    const float *middle = row_of(t, LATH_POINT_MIDDLE, layer, position);
    memcpy(out, behind, d * sizeof(*out));
    copy_or_zero(out + d, attn, d);
    if (!info->post_norm) {
        copy_or_zero(out + 2 * d, fed, d);
        if (!attn && !fed) subtract(out + 2 * d, behind, x, NULL, d); /* a gain */
        return;
    }
    copy_or_zero(out + 3 * d, fed, d);
    if (!middle) middle = x; /* nothing of attention has run */
    subtract(out + 2 * d, middle, x, attn, d);
    subtract(out + 4 * d, behind, middle, fed, d);
}

static lath_status put_token(const lath_trace *t, const lath_trace_info *info, const tracefile_shape *s,
                             int32_t position, float *record, lath_error *err)
{
    const float *x, *behind;
    size_t d;
    memset(record, 0, (size_t)s->parts * s->d * sizeof(*record));
    TRY(lath_trace_get(t, LATH_POINT_RESIDUAL, -1, position, &x, &d, err));
    memcpy(record, x, d * sizeof(*record));
    for (int32_t l = 0; l < info->n_layers; l++, x = behind) {
        record += (size_t)s->parts * s->d;
        TRY(lath_trace_get(t, LATH_POINT_RESIDUAL, l, position, &behind, &d, err));
        put_waypoint(t, info, l, position, x, behind, record);
    }
    return LATH_OK;
}

static lath_status check_whole(const lath_trace *t, const lath_trace_info *info, lath_error *err)
{
    if (info->n_positions != info->n_tokens)
        return err_set(err, LATH_ERR_USAGE, "lath_trace_save: %zu of %zu positions are there; a file has all of them",
                       info->n_positions, info->n_tokens);
    if (info->first_layer != 0 || info->end_layer != info->n_layers)
        return err_set(err, LATH_ERR_USAGE, "lath_trace_save: layers %d to %d ran; a file has all %d",
                       (int)info->first_layer, (int)info->end_layer - 1, (int)info->n_layers);
    if (t->n_kept != info->n_layers)
        return err_set(err, LATH_ERR_USAGE, "lath_trace_save: %d of %d layers are kept; a file has all of them",
                       (int)t->n_kept, (int)info->n_layers);
    return LATH_OK;
}

lath_status lath_trace_save(const lath_trace *trace, const char *path, lath_error *err)
{
    const lath_allocator *alloc = alloc_default();
    lath_trace_info info = {.struct_size = sizeof(info)};
    tracefile_shape shape = {.kind = TRACEFILE_TRAC};
    tracefile_writer *w = NULL;
    float *record = NULL;
    lath_status st;
    err_clear(err);
    if (!trace || !path) return err_set(err, LATH_ERR_USAGE, "lath_trace_save: an argument is missing");
    TRY(lath_trace_get_info(trace, &info, err));
    TRY(check_whole(trace, &info, err));
    shape.d = (uint32_t)info.d_model;
    shape.n_layers = (uint32_t)info.n_layers;
    shape.parts = info.post_norm ? TRACEFILE_PARTS_POST : TRACEFILE_PARTS;
    const size_t numbers = tracefile_vectors(&shape) * shape.d;
    record = alloc_array(alloc, numbers, sizeof(*record));
    if (!record) return err_nomem(err, numbers * sizeof(*record));
    TRY_DONE(tracefile_create(alloc, path, &shape, &w, err));
    for (size_t i = 0; i < info.n_tokens; i++) {
        TRY_DONE(put_token(trace, &info, &shape, (int32_t)i, record, err));
        TRY_DONE(tracefile_add(w, 0, 0, record, err));
    }
    st = tracefile_commit(w, err);
    w = NULL;
done:
    tracefile_abort(w);
    alloc_release(alloc, record, numbers * sizeof(*record));
    return st;
}

/* -------------------------------------------------------------------------------------------------------------- reading */

lath_status lath_store_open(lath_runtime *rt, const char *path, lath_store_kind kind, lath_store **out, lath_error *err)
{
    err_clear(err);
    if (!rt || !path || !out) return err_set(err, LATH_ERR_USAGE, "lath_store_open: an argument is missing");
    if ((int)kind < 0 || kind > LATH_STORE_CONTEXT)
        return err_set(err, LATH_ERR_USAGE, "lath_store_open: there are no files of kind %d", (int)kind);
    lath_store *s = alloc_zero(&rt->alloc, sizeof(*s));
    if (!s) return err_nomem(err, sizeof(*s));
    s->rt = rt;
    const lath_status st = tracefile_open(&rt->alloc, path, (tracefile_kind)kind, &s->file, err);
    if (st != LATH_OK) {
        alloc_release(&rt->alloc, s, sizeof(*s));
        return st;
    }
    *out = s;
    return LATH_OK;
}

void lath_store_close(lath_store *store)
{
    if (!store) return;
    tracefile_close(&store->file);
    alloc_release(&store->rt->alloc, store, sizeof(*store));
}

lath_status lath_store_get_info(const lath_store *store, lath_store_info *info, lath_error *err)
{
    err_clear(err);
    if (!store || !info) return err_set(err, LATH_ERR_USAGE, "lath_store_get_info: an argument is missing");
    if (info->struct_size != sizeof(*info))
        return err_set(err, LATH_ERR_USAGE, "lath_store_get_info: a struct of another version");
    const tracefile *f = &store->file;
    const tracefile_shape *s = &f->shape;
    *info = (lath_store_info){.struct_size = sizeof(*info),
                              .kind = (lath_store_kind)s->kind,
                              .d_model = s->d,
                              .n_layers = (int32_t)s->n_layers,
                              .post_norm = s->parts == TRACEFILE_PARTS_POST,
                              .window = (int32_t)s->window,
                              .tier = (int32_t)s->tier,
                              .n_critical = (int32_t)s->n_critical,
                              .most = s->most,
                              .n_records = f->n_records,
                              .n_vectors = f->vectors,
                              .n_tokens = f->n_tokens};
    memcpy(info->critical, s->critical, sizeof(info->critical));
    return LATH_OK;
}

const float *lath_store_get(const lath_store *store, size_t i, size_t v)
{
    return store ? tracefile_get(&store->file, i, v) : NULL;
}

lath_status lath_store_window(const lath_store *store, size_t i, uint32_t *begin, uint32_t *end, lath_error *err)
{
    err_clear(err);
    if (!store || !begin || !end) return err_set(err, LATH_ERR_USAGE, "lath_store_window: an argument is missing");
    if (tracefile_window(&store->file, i, begin, end)) return LATH_OK;
    return err_set(err, LATH_ERR_USAGE, "lath_store_window: %s has no window %zu", store->file.file.path, i);
}

int64_t lath_store_find(const lath_store *store, uint32_t token)
{
    return store ? tracefile_find(&store->file, token) : -1;
}

/* -------------------------------------------------------------------------------------------------------------- writing */

/* The shape of a new file; false: numbers of it are out of range. */
static bool shape_of(const lath_store_info *what, tracefile_shape *s)
{
    *s = (tracefile_shape){.kind = (tracefile_kind)what->kind};
    if ((int)what->kind < 0 || what->kind > LATH_STORE_CONTEXT) return false;
    if (what->d_model < 1 || what->d_model > UINT32_MAX || what->n_layers < 0 || what->window < 0) return false;
    if (what->n_critical < 0 || what->n_critical > TRACEFILE_CRITICAL) return false;
    s->d = (uint32_t)what->d_model;
    if (what->kind == LATH_STORE_TRACE) {
        s->n_layers = (uint32_t)what->n_layers;
        s->parts = what->post_norm ? TRACEFILE_PARTS_POST : TRACEFILE_PARTS;
    } else {
        s->window = (uint32_t)what->window;
        s->most = what->most ? what->most : MOST_RECORDS;
    }
    if (what->kind == LATH_STORE_CONTEXT) {
        s->n_layers = (uint32_t)what->n_layers;
        s->tier = (uint32_t)what->tier;
        s->n_critical = (uint32_t)what->n_critical;
        memcpy(s->critical, what->critical, s->n_critical);
    }
    return tracefile_vectors(s) > 0;
}

lath_status lath_store_writer_open(lath_runtime *rt, const char *path, const lath_store_info *what,
                                   lath_store_writer **out, lath_error *err)
{
    tracefile_shape shape;
    lath_status st;
    err_clear(err);
    if (!rt || !path || !what || !out)
        return err_set(err, LATH_ERR_USAGE, "lath_store_writer_open: an argument is missing");
    if (what->struct_size != sizeof(*what))
        return err_set(err, LATH_ERR_USAGE, "lath_store_writer_open: a struct of another version");
    if (!shape_of(what, &shape)) return err_set(err, LATH_ERR_USAGE, "%s: there is no file of what is asked for", path);
    lath_store_writer *w = alloc_zero(&rt->alloc, sizeof(*w));
    if (!w) return err_nomem(err, sizeof(*w));
    w->rt = rt;
    if (!file_exists(path)) {
        TRY_DONE(tracefile_create(&rt->alloc, path, &shape, &w->w, err));
        st = tracefile_commit(w->w, err);
        w->w = NULL;
        if (st != LATH_OK) goto done;
    }
    TRY_DONE(tracefile_continue(&rt->alloc, path, shape.kind, &shape, &w->w, err));
    *out = w;
    return LATH_OK;
done:
    alloc_release(&rt->alloc, w, sizeof(*w));
    return st;
}

lath_status lath_store_add(lath_store_writer *writer, uint32_t begin, uint32_t n, const float *record, lath_error *err)
{
    err_clear(err);
    if (!writer || !record) return err_set(err, LATH_ERR_USAGE, "lath_store_add: an argument is missing");
    return tracefile_add(writer->w, begin, n, record, err);
}

void lath_store_writer_close(lath_store_writer *writer)
{
    if (!writer) return;
    tracefile_abort(writer->w); /* what was added is there */
    alloc_release(&writer->rt->alloc, writer, sizeof(*writer));
}
