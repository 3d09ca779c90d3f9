/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf.c: opens one GGUF file and checks all that comes before the data (gguf.h).
 *
 * One cursor walks the file; each read says what it needs and fails when the file ends before. The time is linear in the
 * bytes read: an element of anything takes at least one byte, so a count that the rest of the file cannot hold is refused
 * before the walk. Names are copied (terminated) to an arena, values stay in the file.
 */
#include "store/gguf.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/map.h"

struct gguf {
    const lath_allocator *alloc;
    arena memory;
    file_map file;
    uint32_t version;
    size_t alignment, header, keys_end;
    gguf_value *keys;
    gguf_tensor *tensors;
    size_t n_keys, n_tensors;
    map by_key, by_name;
};

/* Where the walk is and what it is about, for messages. */
typedef struct reader {
    gguf *g;
    const char *path;
    const uint8_t *at, *end;
    const char *kind, *name; /* "key" or "tensor" and its name; NULL before the first */
    lath_error *err;
} reader;

static const uint8_t kind_bytes[GGUF_KIND_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8}; /* at least */

static uint64_t little(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static lath_status bad(const reader *r, const char *what)
{
    if (!r->name) return err_set(r->err, LATH_ERR_FORMAT, "%s: %s", r->path, what);
    return err_set(r->err, LATH_ERR_FORMAT, "%s: %s \"%.200s\": %s", r->path, r->kind, r->name, what);
}

static lath_status take(reader *r, size_t n, uint64_t *out)
{
    if ((size_t)(r->end - r->at) < n) return bad(r, "the file ends here: it is cut");
    *out = little(r->at, n);
    r->at += n;
    return LATH_OK;
}

static lath_status take_text(reader *r, size_t max, const char **text, size_t *len)
{
    uint64_t n = 0;
    TRY(take(r, 8, &n));
    if (n > max) return bad(r, "a string over the limit: damaged");
    if (n > (size_t)(r->end - r->at)) return bad(r, "a string ends behind the file: it is cut");
    *text = (const char *)r->at;
    *len = (size_t)n;
    r->at += n;
    return LATH_OK;
}

/* A key or the name of a tensor: [1, GGUF_MAX_NAME] bytes without zeros, copied. */
static lath_status take_name(reader *r, const char *kind, const char **out)
{
    const char *text = NULL;
    size_t n = 0;
    TRY(take_text(r, GGUF_MAX_NAME, &text, &n));
    if (n == 0 || memchr(text, 0, n)) return bad(r, "behind it comes an empty name or one with a zero byte");
    *out = arena_strdup(&r->g->memory, text, n);
    if (!*out) return err_nomem(r->err, n);
    r->kind = kind;
    r->name = *out;
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------ values */

static double number_of(gguf_kind kind, uint64_t bits)
{
    if (kind == GGUF_F64) {
        double d;
        memcpy(&d, &bits, sizeof(d));
        return d;
    }
    const uint32_t half = (uint32_t)bits;
    float f;
    memcpy(&f, &half, sizeof(f));
    return (double)f;
}

static int64_t sign_extend(uint64_t bits, size_t bytes)
{
    const unsigned shift = (unsigned)(64 - 8 * bytes);
    return (int64_t)(bits << shift) >> shift;
}

static void set_scalar(gguf_value *v, uint64_t bits)
{
    switch (v->kind) {
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64: v->as.i = sign_extend(bits, kind_bytes[v->kind]); break;
    case GGUF_F32:
    case GGUF_F64: v->as.f = number_of(v->kind, bits); break;
    default: v->as.u = bits; break;
    }
}

static lath_status take_kind(reader *r, gguf_kind *out)
{
    uint64_t kind = 0;
    TRY(take(r, 4, &kind));
    if (kind >= GGUF_KIND_COUNT) return bad(r, "a value of unknown type");
    *out = (gguf_kind)kind;
    return LATH_OK;
}

static lath_status take_value(reader *r, gguf_value *v, int depth);

static lath_status check_items(reader *r, const gguf_value *array, int depth)
{
    const gguf_kind kind = array->as.array.kind;
    const uint64_t n = array->as.array.count;
    if (n > (size_t)(r->end - r->at) / kind_bytes[kind]) return bad(r, "an array ends behind the file: it is cut");
    if (kind != GGUF_STRING && kind != GGUF_ARRAY && kind != GGUF_BOOL) {
        r->at += n * kind_bytes[kind];
        return LATH_OK;
    }
    for (uint64_t i = 0; i < n; i++) {
        gguf_value item = {.kind = kind};
        TRY(take_value(r, &item, depth));
    }
    return LATH_OK;
}

/* The value of v->kind at the cursor. depth: of arrays around it. */
static lath_status take_value(reader *r, gguf_value *v, int depth)
{
    uint64_t bits = 0;
    if (v->kind == GGUF_STRING) return take_text(r, GGUF_MAX_STRING, &v->as.text.data, &v->as.text.len);
    if (v->kind == GGUF_ARRAY) {
        if (depth >= GGUF_MAX_DEPTH) return bad(r, "arrays are nested too deep");
        TRY(take_kind(r, &v->as.array.kind));
        TRY(take(r, 8, &v->as.array.count));
        v->as.array.data = r->at;
        return check_items(r, v, depth + 1);
    }
    TRY(take(r, kind_bytes[v->kind], &bits));
    if (v->kind == GGUF_BOOL && bits > 1) return bad(r, "a bool that is neither 0 nor 1");
    set_scalar(v, bits);
    return LATH_OK;
}

gguf_value gguf_next(const gguf_value *array, const uint8_t **at)
{
    gguf_value v = {.kind = array->as.array.kind};
    /* The walk of gguf_open has found the array sound: nothing here can fail or pass the file's end. */
    if (v.kind == GGUF_STRING) {
        v.as.text.len = (size_t)little(*at, 8);
        v.as.text.data = (const char *)*at + 8;
        *at += 8 + v.as.text.len;
    } else if (v.kind == GGUF_ARRAY) {
        v.as.array.kind = (gguf_kind)little(*at, 4);
        v.as.array.count = little(*at + 4, 8);
        v.as.array.data = *at += 12;
        for (uint64_t i = 0; i < v.as.array.count; i++) (void)gguf_next(&v, at);
    } else {
        set_scalar(&v, little(*at, kind_bytes[v.kind]));
        *at += kind_bytes[v.kind];
    }
    return v;
}

static lath_status read_keys(reader *r)
{
    gguf *g = r->g;
    g->keys = arena_array(&g->memory, g->n_keys, sizeof(*g->keys));
    if (!g->keys) return err_nomem(r->err, g->n_keys * sizeof(*g->keys));
    TRY(map_reserve(&g->by_key, g->n_keys, r->err));
    for (size_t i = 0; i < g->n_keys; i++) {
        gguf_value *v = &g->keys[i];
        bool existed = false;
        TRY(take_name(r, "key", &v->key));
        TRY(map_add(&g->by_key, v->key, strlen(v->key), i, &existed, r->err));
        if (existed) return bad(r, "is there twice");
        TRY(take_kind(r, &v->kind));
        TRY(take_value(r, v, 0));
    }
    return LATH_OK;
}

static lath_status find_alignment(reader *r)
{
    const gguf_value *v = gguf_get(r->g, "general.alignment");
    r->g->alignment = 32;
    if (!v) return LATH_OK;
    r->kind = "key";
    r->name = v->key;
    if (v->kind != GGUF_U32) return bad(r, "want an unsigned integer of 32 bits");
    if (v->as.u == 0 || (v->as.u & (v->as.u - 1)) != 0 || v->as.u > 1 << 20)
        return bad(r, "want a power of two, at most 1048576");
    r->g->alignment = (size_t)v->as.u;
    return LATH_OK;
}

/* ----------------------------------------------------------------------------------------------------------- tensors */

static lath_status take_shape(reader *r, gguf_tensor *t)
{
    uint64_t rank = 0, rows = 1;
    TRY(take(r, 4, &rank));
    if (rank > GGUF_MAX_RANK) return bad(r, "more than 4 dimensions");
    t->rank = (int32_t)rank;
    for (int i = 0; i < GGUF_MAX_RANK; i++) {
        t->dim[i] = 1;
        if (i < t->rank) TRY(take(r, 8, &t->dim[i]));
        if (t->dim[i] > INT64_MAX) return bad(r, "a dimension is out of range");
        if (i > 0 && __builtin_mul_overflow(rows, t->dim[i], &rows)) return bad(r, "the shape overflows");
    }
    uint64_t id = 0;
    TRY(take(r, 4, &id));
    if (!dtype_of_gguf((uint32_t)id, &t->type))
        return err_set(r->err, LATH_ERR_UNSUPPORTED, "%s: tensor \"%.200s\": element type %llu is not supported",
                       r->path, t->name, (unsigned long long)id);
    if (t->dim[0] % dtype_block_numbers(t->type) != 0)
        return err_set(r->err, LATH_ERR_FORMAT,
                       "%s: tensor \"%.200s\": rows of %llu numbers are no whole number of %s blocks (%zu)", r->path,
                       t->name, (unsigned long long)t->dim[0], dtype_name(t->type), dtype_block_numbers(t->type));
    if (!dtype_row_bytes(t->type, t->dim[0], &t->bytes) || !size_mul(t->bytes, rows, &t->bytes))
        return bad(r, "the shape overflows");
    return LATH_OK;
}

/* A tensor and where it begins in the data section. */
typedef struct place {
    uint64_t begin, end;
    gguf_tensor *t;
} place;

static int by_begin(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static lath_status read_tensors(reader *r, place *places)
{
    gguf *g = r->g;
    g->tensors = arena_array(&g->memory, g->n_tensors, sizeof(*g->tensors));
    if (!g->tensors) return err_nomem(r->err, g->n_tensors * sizeof(*g->tensors));
    TRY(map_reserve(&g->by_name, g->n_tensors, r->err));
    for (size_t i = 0; i < g->n_tensors; i++) {
        gguf_tensor *t = &g->tensors[i];
        bool existed = false;
        TRY(take_name(r, "tensor", &t->name));
        TRY(map_add(&g->by_name, t->name, strlen(t->name), i, &existed, r->err));
        if (existed) return bad(r, "is there twice");
        TRY(take_shape(r, t));
        TRY(take(r, 8, &places[i].begin));
        if (places[i].begin % g->alignment != 0) return bad(r, "its offset is not aligned");
        if (__builtin_add_overflow(places[i].begin, t->bytes, &places[i].end)) return bad(r, "its offset overflows");
        places[i].t = t;
    }
    return LATH_OK;
}

/* The data section begins at the next multiple of the alignment behind the cursor; tensors in it, none over another. */
static lath_status place_tensors(reader *r, place *places)
{
    const gguf *g = r->g;
    const size_t before = r->g->header = (size_t)(r->at - g->file.data);
    const size_t data = (before + g->alignment - 1) / g->alignment * g->alignment;
    const uint64_t n_data = data < g->file.size ? g->file.size - data : 0;
    uint64_t end = 0;
    qsort(places, g->n_tensors, sizeof(*places), by_begin);
    for (size_t i = 0; i < g->n_tensors; i++) {
        const place *p = &places[i];
        r->kind = "tensor";
        r->name = p->t->name;
        if (p->end > n_data) return bad(r, "ends behind the file: it is cut");
        if (p->begin < end) return bad(r, "lies over another tensor");
        end = p->end;
        p->t->data = p->t->bytes ? g->file.data + data + p->begin : g->file.data;
    }
    return LATH_OK;
}

/* --------------------------------------------------------------------------------------------------------- interface */

static lath_status read_counts(reader *r)
{
    gguf *g = r->g;
    uint64_t magic = 0, version = 0, n_tensors = 0, n_keys = 0;
    TRY(take(r, 4, &magic));
    TRY(take(r, 4, &version));
    if (magic != 0x46554747u) return bad(r, "no GGUF file (it does not begin with GGUF)");
    if (version != 0 && (version & 0xffff) == 0)
        return err_set(r->err, LATH_ERR_UNSUPPORTED, "%s: big-endian GGUF files are not supported", r->path);
    if (version != 2 && version != 3)
        return err_set(r->err, LATH_ERR_UNSUPPORTED, "%s: GGUF version %llu is not supported (2 and 3 are)", r->path,
                       (unsigned long long)version);
    TRY(take(r, 8, &n_tensors));
    TRY(take(r, 8, &n_keys));
    if (n_tensors > GGUF_MAX_TENSORS || n_tensors > g->file.size / 24) return bad(r, "too many tensors: damaged");
    if (n_keys > GGUF_MAX_KEYS || n_keys > g->file.size / 13) return bad(r, "too many keys: damaged");
    g->version = (uint32_t)version;
    g->n_tensors = (size_t)n_tensors;
    g->n_keys = (size_t)n_keys;
    return LATH_OK;
}

static lath_status read_all(gguf *g, const char *path, lath_error *err)
{
    if (g->file.size < 24) return err_set(err, LATH_ERR_FORMAT, "%s: too short for a GGUF file", path);
    reader r = {g, path, g->file.data, g->file.data + g->file.size, NULL, NULL, err};
    arena scratch;
    arena_init(&scratch, g->alloc);
    lath_status st;
    TRY_DONE(read_counts(&r));
    TRY_DONE(read_keys(&r));
    g->keys_end = (size_t)(r.at - g->file.data);
    TRY_DONE(find_alignment(&r));
    place *places = arena_array(&scratch, g->n_tensors, sizeof(*places));
    if (!places) {
        st = err_nomem(err, g->n_tensors * sizeof(*places));
        goto done;
    }
    TRY_DONE(read_tensors(&r, places));
    TRY_DONE(place_tensors(&r, places));
done:
    arena_deinit(&scratch);
    return st;
}

lath_status gguf_open(const lath_allocator *alloc, const char *path, file_mode mode, gguf **out, lath_error *err)
{
    gguf *g = alloc_zero(alloc, sizeof(*g));
    if (!g) return err_nomem(err, sizeof(*g));
    g->alloc = alloc;
    arena_init(&g->memory, alloc);
    map_init(&g->by_key, alloc);
    map_init(&g->by_name, alloc);
    lath_status st = file_map_open(&g->file, alloc, path, mode, err);
    if (st == LATH_OK) st = read_all(g, path, err);
    if (st != LATH_OK)
        gguf_close(g);
    else
        *out = g;
    return st;
}

void gguf_close(gguf *g)
{
    if (!g) return;
    map_deinit(&g->by_key);
    map_deinit(&g->by_name);
    arena_deinit(&g->memory);
    file_map_close(&g->file);
    alloc_release(g->alloc, g, sizeof(*g));
}

const file_map *gguf_file(const gguf *g) { return &g->file; }

uint32_t gguf_version(const gguf *g) { return g->version; }

size_t gguf_alignment(const gguf *g) { return g->alignment; }

size_t gguf_n_keys(const gguf *g) { return g->n_keys; }

const gguf_value *gguf_key_at(const gguf *g, size_t i) { return &g->keys[i]; }

const gguf_value *gguf_get(const gguf *g, const char *key)
{
    uint64_t i;
    return map_find(&g->by_key, key, strlen(key), &i) ? &g->keys[i] : NULL;
}

bool gguf_whole(const gguf_value *v, int64_t most, int64_t *out)
{
    switch (v->kind) {
    case GGUF_U8:
    case GGUF_U16:
    case GGUF_U32:
    case GGUF_U64:
    case GGUF_BOOL:
        if (v->as.u > (uint64_t)most) return false;
        *out = (int64_t)v->as.u;
        return true;
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64:
        if (v->as.i < 0 || v->as.i > most) return false;
        *out = v->as.i;
        return true;
    default: return false;
    }
}

size_t gguf_n_tensors(const gguf *g) { return g->n_tensors; }

const gguf_tensor *gguf_tensor_at(const gguf *g, size_t i) { return &g->tensors[i]; }

const gguf_tensor *gguf_find(const gguf *g, const char *name)
{
    uint64_t i;
    return map_find(&g->by_name, name, strlen(name), &i) ? &g->tensors[i] : NULL;
}

size_t gguf_keys_bytes(const gguf *g) { return g->keys_end; }
size_t gguf_header_bytes(const gguf *g) { return g->header; }

size_t gguf_private_bytes(const gguf *g)
{
    return sizeof(*g) + g->memory.total + (g->by_key.n_slots + g->by_name.n_slots) * sizeof(map_slot);
}

bool gguf_is_name(const char *path)
{
    const size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".gguf") == 0;
}
