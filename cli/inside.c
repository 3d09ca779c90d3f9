/* SPDX-License-Identifier: Apache-2.0
 *
 * inside.c: see inside.h. Each option is cut at its colons here; whether there is such a layer, head or position is the library's to say.
 *
 *     --ablate L[:HEAD]    --steer L:FILE[:ALPHA]    --patch L:POS:FILE
 *
 * A file's name may have colons: --steer takes what is behind the last one for ALPHA where it is a number and something is left of the name.
 */
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "npy_in.h"

/* A whole number that ends at `end` or at the text's end. */
static bool take_int(const char **at, char end, int32_t *out)
{
    const char *p = *at;
    int64_t v = 0;
    const bool minus = *p == '-';
    if (minus) p++;
    if (*p < '0' || *p > '9') return false;
    for (; *p >= '0' && *p <= '9'; p++) v = v > INT32_MAX ? v : v * 10 + (*p - '0');
    if ((*p != end && *p != 0) || v > INT32_MAX) return false;
    *out = (int32_t)(minus ? -v : v);
    *at = *p ? p + 1 : p;
    return true;
}

static lath_status ablate(inside *x, const char *s, lath_error *err)
{
    const char *at = s;
    int32_t layer, head;
    if (!take_int(&at, ':', &layer) || (*at == 0 && at[-1] == ':'))
        return err_set(err, LATH_ERR_USAGE, "wants L or L:HEAD, two whole numbers");
    if (*at == 0) return lath_hooks_ablate_layer(x->hooks, layer, err);
    if (!take_int(&at, 0, &head)) return err_set(err, LATH_ERR_USAGE, "wants L or L:HEAD, two whole numbers");
    return lath_hooks_ablate_head(x->hooks, layer, head, err);
}

/* The number behind the last colon of s, whose place is *colon; false: there is none. */
static bool find_alpha(const char *s, const char **colon, float *alpha)
{
    char *end;
    *colon = strrchr(s, ':');
    if (!*colon || *colon == s || (*colon)[1] == 0) return false;
    if ((*colon)[1 + strspn(*colon + 1, "+-.0123456789eE")] != 0) return false; /* no hexadecimal, no names */
    *alpha = strtof(*colon + 1, &end);
    return *end == 0;
}

static lath_status steer(inside *x, const char *s, lath_error *err)
{
    const char *at = s, *colon;
    int32_t layer;
    float alpha = 1, *vector = NULL;
    size_t d = 0;
    buf path;
    if (!take_int(&at, ':', &layer) || *at == 0)
        return err_set(err, LATH_ERR_USAGE, "wants L:FILE.npy or L:FILE.npy:ALPHA");
    const bool given = find_alpha(at, &colon, &alpha);
    buf_init(&path, alloc_default(), SIZE_MAX / 2);
    buf_append(&path, at, given ? (size_t)(colon - at) : strlen(at));
    (void)buf_cstr(&path);
    lath_status st = buf_status(&path, err);
    if (st == LATH_OK) st = npy_read(buf_cstr(&path), &vector, &d, err);
    if (st == LATH_OK) {
        st = lath_hooks_steer(x->hooks, layer, LATH_POSITION_LAST, vector, d, alpha, err);
        alloc_release(alloc_default(), vector, d * sizeof(*vector));
    }
    buf_deinit(&path);
    return st;
}

static lath_status patch(inside *x, const char *s, lath_error *err)
{
    const char *at = s;
    int32_t layer, position;
    float *vector = NULL;
    size_t d = 0;
    if (!take_int(&at, ':', &layer) || !take_int(&at, ':', &position) || *at == 0)
        return err_set(err, LATH_ERR_USAGE, "wants L:POS:FILE.npy");
    if (position < 0) return err_set(err, LATH_ERR_USAGE, "position %d: positions count from 0", (int)position);
    TRY(npy_read(at, &vector, &d, err));
    const lath_status st = lath_hooks_patch(x->hooks, layer, position, vector, d, err);
    alloc_release(alloc_default(), vector, d * sizeof(*vector));
    return st;
}

typedef lath_status (*edit_fn)(inside *x, const char *s, lath_error *err);

static lath_status add_edits(inside *x, const char *option, const string_list *l, edit_fn edit, lath_error *err)
{
    for (size_t i = 0; i < l->n; i++) {
        const lath_status st = edit(x, l->items[i], err);
        if (st != LATH_OK) return err_wrap(err, st, "--%s %.60s", option, l->items[i]);
    }
    return LATH_OK;
}

lath_status inside_open(inside *x, const lath_model *model, const options *o, lath_error *err)
{
    lath_model_info info = {.struct_size = sizeof(info)};
    *x = (inside){.o = o};
    TRY(lath_model_get_info(model, &info, err));
    x->n_layers = info.n_layers;
    if (o->ffn) TRY(lath_ffn_open(model, o->ffn, &x->ffn, err));
    if (o->ablate.n + o->steer.n + o->patch.n == 0) return LATH_OK;
    TRY(lath_hooks_create(model, &x->hooks, err));
    TRY(add_edits(x, "ablate", &o->ablate, ablate, err));
    TRY(add_edits(x, "steer", &o->steer, steer, err));
    return add_edits(x, "patch", &o->patch, patch, err);
}

lath_status inside_attach(const inside *x, lath_session *s, lath_error *err)
{
    if (x->ffn) TRY(lath_session_set_ffn(s, x->ffn, err));
    lath_status st = x->hooks ? lath_session_set_hooks(s, x->hooks, err) : LATH_OK;
    /* Only a patch has a position of its own. */
    return st == LATH_ERR_USAGE ? err_wrap(err, st, "--patch") : st;
}

lath_status inside_check(const inside *x, lath_error *err)
{
    return x->hooks ? lath_hooks_check(x->hooks, err) : LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------- which way it went */

/* Layers that went the same way, [first, *end), and what they did together. */
static lath_status next_range(const lath_ffn *ffn, int32_t n_layers, int32_t first, int32_t *end, lath_ffn_layer *sum,
                              lath_error *err)
{
    *sum = (lath_ffn_layer){.struct_size = sizeof(*sum)};
    TRY(lath_ffn_get_layer(ffn, first, sum, err));
    for (*end = first + 1; *end < n_layers; ++*end) {
        lath_ffn_layer l = {.struct_size = sizeof(l)};
        TRY(lath_ffn_get_layer(ffn, *end, &l, err));
        const char *a = l.path ? l.path : "", *b = sum->path ? sum->path : "";
        if (strcmp(a, b) != 0 || strcmp(l.description, sum->description) != 0) break;
        sum->tokens += l.tokens;
        sum->features += l.features;
        sum->seconds += l.seconds;
    }
    return LATH_OK;
}

static double per_token(const lath_ffn_layer *l) { return l->tokens ? (double)l->features / (double)l->tokens : 0; }

lath_status inside_note(const inside *x, lath_error *err)
{
    lath_ffn_layer l;
    int32_t end = 0;
    if (!x->ffn || x->o->quiet || x->o->verbose == 0) return LATH_OK;
    for (int32_t first = 0; first < x->n_layers; first = end) {
        TRY(next_range(x->ffn, x->n_layers, first, &end, &l, err));
        fprintf(stderr, "lath: FFN of layers %d-%d: %s; went %s, ", (int)first, (int)end - 1, l.description,
                l.path ? l.path : "nowhere");
        /* Features are not counted where another process or a function computes, and there are none where nothing does. */
        if (l.features) fprintf(stderr, "%.0f features a token, ", per_token(&l));
        fprintf(stderr, "%.3f s\n", l.seconds);
    }
    return LATH_OK;
}

lath_status inside_put_paths(const lath_ffn *ffn, int32_t n_layers, buf *b, lath_error *err)
{
    lath_ffn_layer l;
    int32_t end = 0;
    buf_char(b, '[');
    for (int32_t first = 0; first < n_layers; first = end) {
        TRY(next_range(ffn, n_layers, first, &end, &l, err));
        buf_printf(b, "%s{\"layers\":\"%d-%d\",\"path\":", first ? "," : "", (int)first, (int)end - 1);
        if (l.path)
            json_put_string(b, l.path, strlen(l.path));
        else
            buf_str(b, "null");
        buf_str(b, ",\"ffn\":");
        json_put_string(b, l.description, strlen(l.description));
        buf_str(b, ",\"features_per_token\":");
        json_put_f64(b, per_token(&l));
        buf_str(b, ",\"seconds\":");
        json_put_f64(b, l.seconds);
        buf_char(b, '}');
    }
    buf_char(b, ']');
    return LATH_OK;
}

lath_status inside_put(const inside *x, buf *b, lath_error *err)
{
    if (!x->ffn) return LATH_OK;
    buf_str(b, ",\"ffn\":");
    return inside_put_paths(x->ffn, x->n_layers, b, err);
}

void inside_close(inside *x)
{
    lath_hooks_destroy(x->hooks);
    lath_ffn_close(x->ffn);
    *x = (inside){0};
}
