/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_verify.c: `lath verify`: the vector index files of `lath search` and the directories of `lath extract` against their checksums and,
 * with -m, against the model. All files are checked; each that is at fault gets its line on stderr, the last one through the exit status.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "lath/lath_vindex.h"
#include "output.h"
#include "setup.h"
#include "signals.h"

static const char *type_name(lath_index_type type)
{
    switch (type) {
    case LATH_INDEX_F32: return "f32";
    case LATH_INDEX_F16: return "f16";
    case LATH_INDEX_INT8: return "int8";
    }
    return "?";
}

static lath_status check_model(const setup *s, const char *path, const lath_index_info *info, lath_error *err)
{
    uint64_t id[2];
    if (!s->model) return LATH_OK;
    TRY(lath_model_get_identity(s->model, id, err));
    if (memcmp(id, info->key.model, sizeof(id)) == 0) return LATH_OK;
    return err_set(err, LATH_ERR_FORMAT, "%s: an index of another model than %s", path, buf_cstr((buf *)&s->path));
}

static lath_status check_index(const setup *s, const char *path, lath_index_info *info, lath_error *err)
{
    lath_index *x = NULL;
    TRY(lath_index_open(s->rt, path, LATH_LOAD_MAP, &x, err));
    signals_watch_index(x);
    lath_status st = lath_index_get_info(x, info, err);
    if (st == LATH_OK) st = lath_index_verify(x, err);
    if (st == LATH_OK) st = check_model(s, path, info, err);
    signals_watch_index(NULL);
    lath_index_close(x);
    return st;
}

/* What was found out about one: either an index of vectors or one of features. */
typedef struct found {
    lath_index_info vectors;
    lath_vindex_info features;
    bool is_dir;
    lath_vindex *x; /* the strings of `features` are its */
} found;

static lath_status check_features(const setup *s, const char *path, found *f, lath_error *err)
{
    TRY(lath_vindex_open(s->rt, path, &f->x, err));
    TRY(lath_vindex_get_info(f->x, &f->features, err));
    TRY(lath_vindex_verify(f->x, NULL, NULL, err));
    return s->model ? lath_vindex_check_model(f->x, s->model, err) : LATH_OK;
}

static lath_status check_file(const setup *s, const char *path, found *f, lath_error *err)
{
    *f = (found){.vectors = {.struct_size = sizeof(f->vectors)}, .features = LATH_VINDEX_INFO_INIT};
    f->is_dir = file_is_dir(path);
    return f->is_dir ? check_features(s, path, f, err) : check_index(s, path, &f->vectors, err);
}

static const char *level_name(const found *f)
{
    static const char *const names[] = {"browse", "attention", "inference", "all"};
    return names[f->features.level];
}

static void put_json(buf *b, const char *path, lath_status st, const found *f, const lath_error *err)
{
    buf_str(b, "{\"file\":");
    json_put_string(b, path, strlen(path));
    if (st == LATH_OK && f->is_dir) {
        buf_printf(b, ",\"ok\":true,\"level\":\"%s\",\"layers\":%d,\"features\":%llu,\"type\":\"%s\",\"bytes\":%llu}",
                   level_name(f), (int)f->features.n_layers, (unsigned long long)f->features.features,
                   f->features.dtype, (unsigned long long)f->features.bytes);
        return;
    }
    if (st == LATH_OK) {
        buf_printf(b, ",\"ok\":true,\"rows\":%llu,\"dim\":%lld,\"type\":\"%s\",\"bytes\":%llu}",
                   (unsigned long long)f->vectors.n, (long long)f->vectors.d, type_name(f->vectors.type),
                   (unsigned long long)f->vectors.file_bytes);
        return;
    }
    buf_str(b, ",\"ok\":false,\"error\":");
    json_put_string(b, err->msg, strlen(err->msg));
    buf_char(b, '}');
}

static void put_line(buf *b, const char *path, const found *f)
{
    if (f->is_dir)
        buf_printf(b, "%s: ok: level %s, %llu features in %d layers, %s\n", path, level_name(f),
                   (unsigned long long)f->features.features, (int)f->features.n_layers, f->features.dtype);
    else
        buf_printf(b, "%s: ok: %llu row%s of %lld numbers, %s\n", path, (unsigned long long)f->vectors.n,
                   f->vectors.n == 1 ? "" : "s", (long long)f->vectors.d, type_name(f->vectors.type));
}

/* What is printed into b. *worst, *fault: of the last file that is not as it should be. */
static lath_status check_all(const setup *s, const options *o, buf *b, lath_status *worst, lath_error *fault,
                             lath_error *err)
{
    *worst = LATH_OK;
    for (size_t i = 0; i < o->args.n; i++) {
        const char *path = o->args.items[i];
        found f;
        lath_error e;
        TRY(signals_check(err));
        const lath_status st = check_file(s, path, &f, &e);
        if (o->json && i > 0) buf_char(b, ',');
        if (o->json || o->jsonl)
            put_json(b, path, st, &f, &e);
        else if (st == LATH_OK)
            put_line(b, path, &f);
        if (o->jsonl) buf_char(b, '\n');
        lath_vindex_close(f.x);
        if (st == LATH_OK) continue;
        if (*worst != LATH_OK) fprintf(stderr, "lath: %s\n", fault->msg);
        *worst = st;
        *fault = e;
    }
    return LATH_OK;
}

lath_status cmd_verify(options *o, lath_error *err)
{
    setup s = {0};
    output out = {0};
    buf b;
    lath_status st, worst;
    lath_error fault;
    if (o->args.n == 0) return err_set(err, LATH_ERR_USAGE, "verify: no file given");
    buf_init(&b, alloc_default(), SIZE_MAX / 2);
    TRY_DONE(setup_maybe_model(&s, o, err));
    TRY_DONE(output_open(&out, o->output, err));
    TRY_DONE(check_all(&s, o, &b, &worst, &fault, err));
    TRY_DONE(buf_status(&b, err));
    if (o->json) buf_printf(&out.b, "{\"ok\":%s,\"files\":[", worst == LATH_OK ? "true" : "false");
    if (b.len) buf_append(&out.b, b.data, b.len);
    if (o->json) buf_str(&out.b, "]}\n");
    TRY_DONE(output_close(&out, err));
    st = worst;
    if (st != LATH_OK) *err = fault;
done:
    output_abort(&out);
    buf_deinit(&b);
    setup_close(&s);
    return st;
}
