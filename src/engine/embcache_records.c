/* SPDX-License-Identifier: Apache-2.0
 *
 * embcache_records.c: a space of the cache to a file of records and back. A record that carries only a hash of its
 * tokens could be another text's, so files without the ids are not taken; nor are those of another model or of other
 * settings. Nothing is taken before the whole file has been checked.
 */
#include <stdio.h>
#include <string.h>

#include "engine/embcache.h"
#include "store/embrecords.h"

enum { ITEMS_AT_ONCE = 512 }; /* in one transaction */

typedef struct export_job {
    embrecords_writer *w;
    uint64_t n;
} export_job;

static lath_status write_record(void *ctx, const embcache_item *item, lath_error *err)
{
    export_job *job = ctx;
    const embrecord r = {item->ids, (uint32_t)item->n, (uint32_t)item->skip, item->vector};
    job->n++;
    return embrecords_add(job->w, &r, err);
}

lath_status embcache_export(embcache_space *s, const char *path, uint64_t *n, lath_error *err)
{
    export_job job = {0};
    const lath_allocator *alloc = embcache_allocator(s);
    TRY(embrecords_create(alloc, path, s->model, s->settings, (uint32_t)s->dim, &job.w, err));
    lath_status st = embcache_each(s, write_record, &job, err);
    if (st == LATH_OK)
        st = embrecords_commit(job.w, err);
    else
        embrecords_abort(job.w);
    if (st == LATH_OK && n) *n = job.n;
    return st;
}

static lath_status check_origin(const embcache_space *s, const embrecords *r, lath_error *err)
{
    if (memcmp(r->model, s->model, sizeof(r->model)) != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: the records are of another model", r->file.path);
    if (r->settings_len != strlen(s->settings) || memcmp(r->settings, s->settings, r->settings_len) != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: the records are of other settings (%.*s; want %s)", r->file.path,
                       (int)(r->settings_len < 100 ? r->settings_len : 100), r->settings, s->settings);
    if (r->dim != s->dim)
        return err_set(err, LATH_ERR_FORMAT, "%s: vectors of %u numbers, want %lld", r->file.path, r->dim,
                       (long long)s->dim);
    return LATH_OK;
}

lath_status embcache_import(embcache_space *s, const char *path, uint64_t *n, lath_error *err)
{
    embrecords r;
    embrecord one;
    embcache_item items[ITEMS_AT_ONCE];
    size_t held = 0;
    lath_status st;
    TRY(embrecords_open(embcache_allocator(s), path, &r, err));
    TRY_DONE(check_origin(s, &r, err));
    while (embrecords_next(&r, &one)) {
        items[held++] = (embcache_item){one.ids, one.n, one.skip, one.vector};
        if (held < ITEMS_AT_ONCE && r.at < r.count) continue;
        TRY_DONE(embcache_add(s, items, held, err));
        held = 0;
    }
    if (n) *n = r.count;
done:
    embrecords_close(&r);
    return st;
}
