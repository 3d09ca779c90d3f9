/* SPDX-License-Identifier: Apache-2.0
 * walk.c: indexes behind lath_vindex.h, and as what a walk reads. */
#include "engine/walk.h"

#include <string.h>

/* -------------------------------------------------------------------------------------------------------------- source */

static void bind(weight *w, const vindex *x, vindex_file file, int32_t layer)
{
    const tensor *t = vindex_rows(x, file, layer);
    if (t) weight_init(w, t, vindex_map(x, file)->path, 0, t->dim[0], t->dim[1]);
}

static void ahead(void *ctx, int32_t layer) { vindex_ahead(ctx, layer); }

static lath_status check_sizes(const vindex *x, const arch_dims *d, lath_error *err)
{
    const vindex_facts *f = vindex_get_facts(x);
    const struct {
        const char *what;
        int64_t have, want;
    } sizes[] = {{"layers", f->n_layers, d->n_layers},
                 {"d_model", f->d_model, d->d_model},
                 {"vocab_size", f->vocab_size, d->vocab_size}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (sizes[i].have == sizes[i].want) continue;
        return err_set(err, LATH_ERR_FORMAT, "%s: %s: %lld, the model has %lld", vindex_name(x), sizes[i].what,
                       (long long)sizes[i].have, (long long)sizes[i].want);
    }
    return LATH_OK;
}

lath_status walk_source_make(const vindex *x, const arch_model *arch, ffn *own, arena *mem, ffn_walk_source *out,
                             lath_error *err)
{
    const vindex_facts *f = vindex_get_facts(x);
    ffn_parts p;
    TRY(check_sizes(x, &arch->dims, err));
    ffn_walk_layer *layers = arena_array(mem, (size_t)f->n_layers, sizeof(*layers));
    if (!layers) return err_nomem(err, (size_t)f->n_layers * sizeof(*layers));
    *out = (ffn_walk_source){.layers = layers,
                             .n_layers = f->n_layers,
                             .d_model = f->d_model,
                             .name = vindex_dir(x),
                             .ahead = ahead,
                             .ctx = (void *)x};
    for (int32_t i = 0; i < f->n_layers; i++) {
        ffn_walk_layer *l = &layers[i];
        if (!ffn_get_parts(own, i, &p))
            return err_set(err, LATH_ERR_UNSUPPORTED, "%s: layer %d of the model has experts: it cannot be walked",
                           vindex_dir(x), i);
        if (vindex_features(x, i) != p.d_ff)
            return err_set(err, LATH_ERR_FORMAT, "%s: layer %d: %lld features, the model has %lld", vindex_name(x), i,
                           (long long)vindex_features(x, i), (long long)p.d_ff);
        l->features = p.d_ff;
        bind(&l->gate, x, VINDEX_GATE, i);
        bind(&l->up, x, VINDEX_UP, i);
        bind(&l->down, x, VINDEX_DOWN, i);
        bind(&l->out, x, VINDEX_OUT, i);
        if (p.gate) l->gate_bias = p.gate->bias;
        l->up_bias = p.up->bias;
        l->down_bias = p.down->bias;
        out->fn = p.fn;
    }
    return LATH_OK;
}

lath_status walk_check_model(const vindex *x, const lath_model *m, lath_error *err)
{
    uint64_t id[2];
    const vindex *of = weights_vindex(m->sources[0]);
    if (of)
        memcpy(id, vindex_get_facts(of)->identity, sizeof(id));
    else
        TRY(lath_model_get_identity(m, id, err));
    if (memcmp(id, vindex_get_facts(x)->identity, sizeof(id)) == 0) return LATH_OK;
    return err_set(err, LATH_ERR_FORMAT, "%s: an index of another model (%s) than %s", vindex_dir(x),
                   vindex_get_facts(x)->source, m->path);
}

/* An index that a source owns. */
typedef struct owned {
    const lath_allocator *alloc;
    arena mem;
    vindex *x;
} owned;

static void owned_ahead(void *ctx, int32_t layer) { vindex_ahead(((owned *)ctx)->x, layer); }

static void owned_close(void *ctx)
{
    owned *o = ctx;
    vindex_close(o->x);
    arena_deinit(&o->mem);
    alloc_release(o->alloc, o, sizeof(*o));
}

lath_status walk_source_open(void *ctx, const char *dir, ffn_walk_source *out, lath_error *err)
{
    const lath_model *m = ctx;
    const lath_allocator *alloc = &m->rt->alloc;
    owned *o = alloc_zero(alloc, sizeof(*o));
    if (!o) return err_nomem(err, sizeof(*o));
    o->alloc = alloc;
    arena_init(&o->mem, alloc);
    lath_status st = vindex_open(alloc, dir, FILE_MAP, &o->x, err);
    if (st == LATH_OK) st = vindex_need(o->x, VINDEX_INFERENCE, "cannot be walked", err);
    if (st == LATH_OK) st = walk_check_model(o->x, m, err);
    if (st == LATH_OK) st = walk_source_make(o->x, &m->arch, walk_own(m), &o->mem, out, err);
    if (st != LATH_OK) {
        owned_close(o);
        return st;
    }
    out->ahead = owned_ahead;
    out->close = owned_close;
    out->ctx = o;
    return LATH_OK;
}

/* ----------------------------------------------------------------------------------------------------------- interface */

lath_status lath_vindex_open(lath_runtime *rt, const char *dir, lath_vindex **out, lath_error *err)
{
    err_clear(err);
    if (!rt || !dir || !out) return err_set(err, LATH_ERR_USAGE, "lath_vindex_open: an argument is missing");
    lath_vindex *v = alloc_zero(&rt->alloc, sizeof(*v));
    if (!v) return err_nomem(err, sizeof(*v));
    v->rt = rt;
    const lath_status st = vindex_open(&rt->alloc, dir, FILE_MAP, &v->x, err);
    if (st == LATH_OK)
        *out = v;
    else
        lath_vindex_close(v);
    return st;
}

void lath_vindex_close(lath_vindex *x)
{
    if (!x) return;
    vindex_close(x->x);
    alloc_release(&x->rt->alloc, x, sizeof(*x));
}

lath_status lath_vindex_get_info(const lath_vindex *x, lath_vindex_info *info, lath_error *err)
{
    static const vindex_file rows[] = {VINDEX_GATE, VINDEX_UP, VINDEX_DOWN};
    err_clear(err);
    if (!x || !info || info->struct_size != sizeof(*info))
        return err_set(err, LATH_ERR_USAGE, "lath_vindex_get_info: %s",
                       x && info ? "a struct of another version" : "an argument is missing");
    const vindex_facts *f = vindex_get_facts(x->x);
    *info = (lath_vindex_info){.struct_size = sizeof(*info),
                               .level = (lath_vindex_level)f->level,
                               .dtype = dtype_name(f->rows),
                               .model_type = f->model_type,
                               .source = f->source,
                               .n_layers = f->n_layers,
                               .vocab_size = f->vocab_size,
                               .d_model = f->d_model,
                               .bytes = vindex_bytes(x->x),
                               .ffn_bytes = f->ffn_bytes,
                               .ffn_tensors = f->ffn_tensors};
    for (int32_t i = 0; i < f->n_layers; i++) {
        info->features += (uint64_t)vindex_features(x->x, i);
        for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
            const tensor *t = vindex_rows(x->x, rows[k], i);
            if (t) info->row_bytes += t->bytes;
        }
    }
    return LATH_OK;
}

int64_t lath_vindex_features(const lath_vindex *x, int32_t layer)
{
    return layer >= 0 && layer < vindex_get_facts(x->x)->n_layers ? vindex_features(x->x, layer) : 0;
}

lath_status lath_vindex_get_tokens(const lath_vindex *x, int32_t layer, int64_t feature,
                                   lath_token_score out[LATH_FEATURE_TOKENS], int32_t *n, lath_error *err)
{
    _Static_assert((int)LATH_FEATURE_TOKENS == (int)VINDEX_TOP, "as many tokens as a file has");
    err_clear(err);
    if (!x || !out || !n) return err_set(err, LATH_ERR_USAGE, "lath_vindex_get_tokens: an argument is missing");
    if (feature < 0 || feature >= lath_vindex_features(x, layer))
        return err_set(err, LATH_ERR_USAGE, "layer %d, feature %lld: the index has %d layers, of %lld features", layer,
                       (long long)feature, vindex_get_facts(x->x)->n_layers,
                       (long long)lath_vindex_features(x, layer < 0 ? 0 : layer));
    const vindex_token *t = vindex_tokens(x->x, layer, feature);
    for (*n = 0; *n < VINDEX_TOP && t[*n].id >= 0 && t[*n].id < vindex_get_facts(x->x)->vocab_size; ++*n)
        out[*n] = (lath_token_score){t[*n].id, t[*n].product};
    return LATH_OK;
}

static lath_status check_tokens(const vindex *x, lath_error *err)
{
    const vindex_facts *f = vindex_get_facts(x);
    for (int32_t l = 0; l < f->n_layers; l++) {
        const vindex_token *t = vindex_tokens(x, l, 0);
        for (int64_t i = 0; i < vindex_features(x, l) * VINDEX_TOP; i++)
            if (t[i].id < -1 || t[i].id >= f->vocab_size)
                return err_set(err, LATH_ERR_FORMAT, "%s: layer %d: token %d of %d", vindex_dir(x), l, t[i].id,
                               f->vocab_size);
    }
    return LATH_OK;
}

lath_status lath_vindex_verify(const lath_vindex *x, lath_vindex_verify_fn fn, void *ctx, lath_error *err)
{
    err_clear(err);
    if (!x) return err_set(err, LATH_ERR_USAGE, "lath_vindex_verify: an argument is missing");
    TRY(vindex_verify(x->x, fn, ctx, err));
    TRY(check_tokens(x->x, err));
    if (vindex_get_facts(x->x)->level < VINDEX_INFERENCE) return LATH_OK;
    lath_model *m;
    TRY(lath_model_open(x->rt, vindex_dir(x->x), NULL, &m, err));
    lath_model_close(m);
    return LATH_OK;
}

lath_status lath_vindex_check_model(const lath_vindex *x, const lath_model *model, lath_error *err)
{
    err_clear(err);
    if (!x || !model) return err_set(err, LATH_ERR_USAGE, "lath_vindex_check_model: an argument is missing");
    return walk_check_model(x->x, model, err);
}
