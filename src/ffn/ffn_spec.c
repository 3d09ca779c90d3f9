/* SPDX-License-Identifier: Apache-2.0
 * ffn_spec.c: see ffn_spec.h. Routes are opened from left to right into a table of layers. */
#include "ffn/ffn_spec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "ffn/ffn_backends.h"
#include "ffn/ffn_remote.h"

static const size_t CACHE_BYTES = (size_t)64 << 20;

/* An item with the layers that it is for. Texts are pieces of the SPEC with "\," as ",". */
typedef struct route {
    int32_t first, last;
    char *item;   /* "walk:DIR" */
    char *option; /* "k=512", or NULL */
    bool numbered;
} route;

typedef struct spec {
    const ffn_env *env;
    char *text; /* a copy that pieces are cut from */
    size_t bytes;
    ffn **by_layer; /* [n_layers] */
    float *gains;   /* [n_layers] */
    bool any_gain, any_ffn;
} spec;

/* -------------------------------------------------------------------------------------------------------------- pieces */

/* Cuts off the text up to the next comma, which goes; *rest: behind it, or NULL. */
static char *cut_piece(char *text, char **rest)
{
    char *to = text;
    for (const char *from = text;; from++) {
        if (from[0] == '\\' && from[1] == ',')
            from++;
        else if (*from == ',' || *from == 0) {
            *rest = *from ? (char *)from + 1 : NULL;
            *to = 0;
            return text;
        }
        *to++ = *from;
    }
}

static bool starts_with_digit(const char *s) { return *s >= '0' && *s <= '9'; }

/* A whole number from 0 on; *end: what is behind. */
static bool parse_number(const char *s, int64_t *out, const char **end)
{
    char *stop;
    if (!starts_with_digit(s)) return false;
    errno = 0;
    const long long v = strtoll(s, &stop, 10);
    *out = v;
    *end = stop;
    return errno == 0;
}

static lath_status parse_layers(const spec *sp, char *piece, route *r, lath_error *err)
{
    const int32_t n = sp->env->n_layers;
    const char *at = piece;
    int64_t first = 0, last = 0;
    char *equals = strchr(piece, '=');
    bool good = equals && parse_number(piece, &first, &at);
    last = first;
    if (good && *at == '-') {
        at++;
        last = n - 1;
        if (at != equals) good = parse_number(at, &last, &at);
    }
    if (!good || at != equals)
        return err_set(err, LATH_ERR_USAGE,
                       "ffn: \"%s\": want LAYER=, FIRST-LAST= or FIRST-= and what these layers have", piece);
    if (first >= n || last >= n)
        return err_set(err, LATH_ERR_USAGE, "ffn: \"%s\": the model has layers 0 to %d", piece, n - 1);
    if (first > last) return err_set(err, LATH_ERR_USAGE, "ffn: \"%s\": the first layer is behind the last", piece);
    r->first = (int32_t)first;
    r->last = (int32_t)last;
    r->item = equals + 1;
    return LATH_OK;
}

/* The next route of *text; a piece that begins with no digit is an option of it. */
static lath_status next_route(const spec *sp, char **text, route *r, lath_error *err)
{
    char *piece = *text, *rest;
    *r = (route){.first = 0, .last = sp->env->n_layers - 1, .numbered = starts_with_digit(piece)};
    piece = cut_piece(piece, &rest);
    r->item = piece;
    if (r->numbered) TRY(parse_layers(sp, piece, r, err));
    if (rest && !starts_with_digit(rest)) {
        r->option = cut_piece(rest, &rest);
        if (rest && !starts_with_digit(rest)) {
            char *behind, *second = cut_piece(rest, &behind);
            return err_set(err, LATH_ERR_USAGE,
                           "ffn: \"%s\": no item has a second option (a comma in a path is \"\\,\")", second);
        }
    }
    *text = rest;
    return LATH_OK;
}

/* --------------------------------------------------------------------------------------------------------------- items */

/* What is behind "NAME:"; NULL: the item is another. */
static const char *argument(const char *item, const char *name)
{
    const size_t n = strlen(name);
    return strncmp(item, name, n) == 0 && item[n] == ':' ? item + n + 1 : NULL;
}

static lath_status parse_k(const char *text, const char *item, int64_t *k, lath_error *err)
{
    const char *end;
    if (!parse_number(text, k, &end) || *end)
        return err_set(err, LATH_ERR_USAGE, "ffn: \"%s\": \"%s\" is no number of features", item, text);
    if (*k == 0) return err_set(err, LATH_ERR_USAGE, "ffn: \"%s\": k of 0: at least one feature", item);
    return LATH_OK;
}

static lath_status open_walk(const spec *sp, const route *r, const char *dir, ffn **out, lath_error *err)
{
    const ffn_env *env = sp->env;
    int64_t k = 0;
    ffn_walk_source source;
    if (!*dir) return err_set(err, LATH_ERR_USAGE, "ffn: \"%s\": want the directory of an index", r->item);
    if (r->option && strncmp(r->option, "k=", 2) != 0)
        return err_set(err, LATH_ERR_USAGE, "ffn: \"%s\": option \"%s\" is not known, only k=K", r->item, r->option);
    if (r->option) TRY(parse_k(r->option + 2, r->item, &k, err));
    if (!env->open_index)
        return err_set(err, LATH_ERR_UNSUPPORTED, "ffn: \"%s\": no index can be opened here", r->item);
    TRY(env->open_index(env->index_ctx, dir, &source, err));
    if (source.n_layers != env->n_layers || source.d_model != env->d_model) {
        const lath_status st =
            err_set(err, LATH_ERR_FORMAT, "%s: an index of %d layers of %lld numbers, the model has %d of %lld", dir,
                    source.n_layers, (long long)source.d_model, env->n_layers, (long long)env->d_model);
        if (source.close) source.close(source.ctx);
        return st;
    }
    return ffn_walk_open(&source, k, r->first, r->last, env->model, env->alloc, out, err);
}

static lath_status open_sparse(const spec *sp, const route *r, const char *text, ffn **out, lath_error *err)
{
    int64_t k = 0;
    TRY(parse_k(text, r->item, &k, err));
    return ffn_sparse_open(sp->env->model, k, r->first, r->last, sp->env->alloc, out, err);
}

static lath_status open_remote(const spec *sp, const route *r, const char *url, ffn **out, lath_error *err)
{
    const ffn_env *env = sp->env;
    const ffn_remote_of of = {env->n_layers, r->first, r->last, env->d_model};
    ffn_wire wire = FFN_WIRE_F32;
    if (r->option && (strncmp(r->option, "wire=", 5) != 0 || !ffn_wire_named(r->option + 5, &wire)))
        return err_set(err, LATH_ERR_USAGE, "ffn: \"%s\": option \"%s\" is not known, only wire=f32, f16 or json",
                       r->item, r->option);
    if (!env->open_remote) return ffn_remote_open(url, wire, &of, NULL, env->alloc, out, err);
    return env->open_remote(env->remote_ctx, url, wire, &of, out, err);
}

static lath_status open_item(const spec *sp, const route *r, ffn **out, lath_error *err);

static lath_status open_cached(const spec *sp, const route *r, const char *inner, ffn **out, lath_error *err)
{
    const ffn_env *env = sp->env;
    route of = *r;
    ffn *made = env->model;
    of.item = (char *)inner;
    /* One of another has nothing to add, and a long row of them takes a long row of memories. */
    if (inner && (strcmp(inner, "cached") == 0 || argument(inner, "cached")))
        return err_set(err, LATH_ERR_USAGE, "ffn: \"%.80s\": a cache of a cache", r->item);
    if (inner && argument(inner, "gain"))
        return err_set(err, LATH_ERR_USAGE, "ffn: \"%s\": a gain is no FFN that can be cached", r->item);
    if (inner) TRY(open_item(sp, &of, &made, err));
    return ffn_cached_open(made, env->d_model, env->cache_bytes ? env->cache_bytes : CACHE_BYTES, env->alloc, out, err);
}

static lath_status open_item(const spec *sp, const route *r, ffn **out, lath_error *err)
{
    const ffn_env *env = sp->env;
    const char *arg;
    const char *of = argument(r->item, "cached") ? argument(r->item, "cached") : r->item;
    if (r->option && !argument(of, "walk") && !argument(of, "remote"))
        return err_set(err, LATH_ERR_USAGE, "ffn: \"%s\" has no option \"%s\"", r->item, r->option);
    if (strcmp(r->item, "dense") == 0) {
        *out = env->model;
        return LATH_OK;
    }
    if (strcmp(r->item, "highway") == 0) return ffn_highway_open(false, env->alloc, out, err);
    if (strcmp(r->item, "attention-only") == 0) return ffn_highway_open(true, env->alloc, out, err);
    if (strcmp(r->item, "cached") == 0) return open_cached(sp, r, NULL, out, err);
    if ((arg = argument(r->item, "cached"))) return open_cached(sp, r, arg, out, err);
    if ((arg = argument(r->item, "sparse"))) return open_sparse(sp, r, arg, out, err);
    if ((arg = argument(r->item, "walk"))) return open_walk(sp, r, arg, out, err);
    if ((arg = argument(r->item, "remote"))) return open_remote(sp, r, arg, out, err);
    if (strcmp(r->item, "sparse") == 0 || strcmp(r->item, "walk") == 0 || strcmp(r->item, "remote") == 0)
        return err_set(err, LATH_ERR_USAGE, "ffn: \"%s\" alone: want sparse:K, walk:DIR[,k=K] or remote:URL", r->item);
    return err_set(
        err, LATH_ERR_USAGE,
        "ffn: \"%s\" is not known: dense, sparse:K, walk:DIR[,k=K], cached, highway, attention-only, gain:G or "
        "remote:URL",
        r->item);
}

/* A number as JSON has it. */
static lath_status parse_gain(const spec *sp, const route *r, const char *text, float *out, lath_error *err)
{
    arena mem;
    json_value *v = NULL;
    lath_error why;
    arena_init(&mem, sp->env->alloc);
    const lath_status st = json_parse(&mem, "gain", text, strlen(text), NULL, &v, &why);
    *out = 0;
    if (st == LATH_OK && v->kind == JSON_INT) *out = (float)v->u.integer;
    if (st == LATH_OK && v->kind == JSON_REAL) *out = (float)v->u.real;
    arena_deinit(&mem);
    if (st == LATH_ERR_NOMEM) return err_nomem(err, strlen(text));
    if (!r->option && isfinite(*out) && *out != 0) return LATH_OK;
    return err_set(err, LATH_ERR_USAGE, "ffn: \"%s\": want a number other than 0", r->item);
}

/* -------------------------------------------------------------------------------------------------------------- routes */

/* Layers of the route that another one has already. */
static lath_status check_free(const spec *sp, const route *r, lath_error *err)
{
    for (int32_t i = r->first; i <= r->last; i++)
        if (sp->by_layer[i]) return err_set(err, LATH_ERR_USAGE, "ffn: layer %d has two routes", i);
    return LATH_OK;
}

static lath_status add_route(spec *sp, const route *r, lath_error *err)
{
    const char *gain = argument(r->item, "gain");
    float by = 0;
    ffn *made = sp->env->model; /* of a gain: nobody asks */
    TRY(check_free(sp, r, err));
    if (gain)
        TRY(parse_gain(sp, r, gain, &by, err));
    else
        TRY(open_item(sp, r, &made, err));
    for (int32_t i = r->first; i <= r->last; i++) {
        sp->by_layer[i] = made;
        sp->gains[i] = by;
    }
    sp->any_gain = sp->any_gain || gain;
    sp->any_ffn = sp->any_ffn || made != sp->env->model;
    return LATH_OK;
}

static lath_status add_routes(spec *sp, lath_error *err)
{
    char *text = sp->text;
    bool numbered = starts_with_digit(text);
    route r;
    for (bool first = true; text; first = false) {
        TRY(next_route(sp, &text, &r, err));
        if (!first && !numbered)
            return err_set(err, LATH_ERR_USAGE, "ffn: a route behind an item that is for all layers");
        TRY(add_route(sp, &r, err));
    }
    for (int32_t i = 0; i < sp->env->n_layers; i++)
        if (!sp->by_layer[i]) return err_set(err, LATH_ERR_USAGE, "ffn: layer %d has no route", i);
    return LATH_OK;
}

static void close_layers(const spec *sp)
{
    for (int32_t i = 0; i < sp->env->n_layers; i++)
        if (sp->by_layer[i] && (i == 0 || sp->by_layer[i] != sp->by_layer[i - 1])) ffn_close(sp->by_layer[i]);
}

/* One for all layers stands for itself. */
static lath_status join_routes(spec *sp, ffn_choice *out, lath_error *err)
{
    bool same = true;
    for (int32_t i = 1; i < sp->env->n_layers; i++) same = same && sp->by_layer[i] == sp->by_layer[0];
    if (!sp->any_ffn) return LATH_OK;
    if (!same) return ffn_router_open(sp->by_layer, sp->env->n_layers, sp->env->alloc, &out->ffn, err);
    out->ffn = sp->by_layer[0];
    return LATH_OK;
}

lath_status ffn_spec_open(const ffn_env *env, const char *text, ffn_choice *out, lath_error *err)
{
    const lath_allocator *alloc = env->alloc;
    const size_t n = (size_t)env->n_layers;
    spec sp = {.env = env, .bytes = strlen(text) + 1};
    lath_status st = LATH_OK;
    *out = (ffn_choice){.n_layers = env->n_layers, .alloc = alloc};
    sp.text = alloc_bytes(alloc, sp.bytes, 1);
    sp.by_layer = alloc_array(alloc, n, sizeof(*sp.by_layer));
    sp.gains = alloc_array(alloc, n, sizeof(*sp.gains));
    if (!sp.text || !sp.by_layer || !sp.gains) {
        st = err_nomem(err, sp.bytes);
        goto done;
    }
    memcpy(sp.text, text, sp.bytes);
    st = add_routes(&sp, err);
    if (st != LATH_OK)
        close_layers(&sp);
    else
        st = join_routes(&sp, out, err);
    if (st == LATH_OK && sp.any_gain) {
        out->gains = sp.gains;
        sp.gains = NULL;
    }
done:
    alloc_release(alloc, sp.text, sp.bytes);
    alloc_release(alloc, sp.by_layer, n * sizeof(*sp.by_layer));
    alloc_release(alloc, sp.gains, n * sizeof(*sp.gains));
    return st;
}

void ffn_choice_close(ffn_choice *c)
{
    ffn_close(c->ffn);
    if (c->gains) alloc_release(c->alloc, c->gains, (size_t)c->n_layers * sizeof(*c->gains));
    *c = (ffn_choice){0};
}

void ffn_choice_describe(const ffn_choice *c, const ffn_env *env, int32_t layer, buf *out)
{
    if (c->gains && c->gains[layer] != 0)
        buf_printf(out, "gain %g", (double)c->gains[layer]);
    else
        ffn_describe(c->ffn ? c->ffn : env->model, layer, out);
}
