/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors.c: opens one .safetensors file and checks all of its header before anybody sees a tensor.
 *
 *     0        8                8 + N                                    size
 *     | N, u64 | JSON, N bytes  | tensor | tensor | ... data, no gaps    |
 *
 * After a successful open every tensor lies inside the file, none overlaps another and together they are the whole data section. Nothing is
 * aligned: N is any number, so tensors may begin at odd addresses. The JSON tree is thrown away; names move to an arena of the reader.
 * Accepts what the reference reader (the `safetensors` package, 0.8) accepts, but: duplicate names, zero bytes in names, more than 8
 * dimensions and element types that tensor/dtype.def lacks are refused. Data is little-endian and so are the hosts that lath runs on.
 */
#include "store/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/json.h"

static const size_t PREFIX_BYTES = 8;
/* The limit of the reference reader. */
static const size_t HEADER_MAX = 100 * 1000 * 1000;
static const char METADATA_KEY[] = "__metadata__";

enum { NAME_SHOWN = 96, PATH_SHOWN = 96 };

struct safetensors {
    const lath_allocator *alloc;
    file_map file;
    arena memory; /* tensors and their names */
    map by_name;  /* name -> index in tensors */
    tensor *tensors;
    size_t count;
};

/* One entry of the header while it is being checked. begin and end count from the start of the data section. */
typedef struct entry {
    tensor t;
    uint64_t begin, end;
    size_t order; /* in the header: keeps tensors of zero bytes at one offset in a fixed order */
} entry;

/* What the steps of one open share. */
typedef struct reader {
    safetensors *st;
    const char *label;   /* the path as messages show it */
    const uint8_t *data; /* data section */
    uint64_t n_data;
    lath_error *err;
} reader;

/* ---------------------------------------------------------------------------------------------------------------- messages */

/* The end of a long path, so that the tensor behind it still fits the message. */
static void label_path(const char *path, char *out, size_t n_out)
{
    const size_t n = strlen(path);
    const char *tail = path;
    if (n > PATH_SHOWN) {
        tail += n - (PATH_SHOWN - 3);
        while (((unsigned char)*tail & 0xC0) == 0x80) tail++; /* not inside a character */
    }
    snprintf(out, n_out, "%s%s", tail == path ? "" : "...", tail);
}

/* A name as a message shows it: not long (err_set sees to control characters). */
static const char *shown(const char *name, size_t len, char out[NAME_SHOWN])
{
    const bool cut = len > NAME_SHOWN - 4;
    size_t n = cut ? NAME_SHOWN - 4 : len;
    while (cut && n > 0 && ((unsigned char)name[n] & 0xC0) == 0x80) n--; /* not inside a character */
    memcpy(out, name, n);
    memcpy(out + n, cut ? "..." : "", cut ? 4 : 1);
    return out;
}

static lath_status bad_tensor(const reader *r, const json_value *v, lath_status st, const char *why)
{
    char name[NAME_SHOWN];
    return err_set(r->err, st, "%s: tensor \"%s\": %s", r->label, shown(v->key, v->key_len, name), why);
}

/* ------------------------------------------------------------------------------------------------------ one entry of the header */

/* The member is there and of this kind. */
static bool has_kind(const json_value *m, json_kind kind) { return m && m->kind == kind; }

static lath_status read_dtype(const reader *r, const json_value *v, tensor *t)
{
    char got[NAME_SHOWN], text[NAME_SHOWN + 64];
    const json_value *m = json_get(v, "dtype");
    if (!has_kind(m, JSON_STRING)) return bad_tensor(r, v, LATH_ERR_FORMAT, "dtype: want a string");
    if (dtype_parse(m->u.string.data, m->u.string.len, &t->type)) return LATH_OK;
    snprintf(text, sizeof text, "unknown dtype \"%.32s\"", shown(m->u.string.data, m->u.string.len, got));
    return bad_tensor(r, v, LATH_ERR_UNSUPPORTED, text);
}

static lath_status read_shape(const reader *r, const json_value *v, tensor *t)
{
    const json_value *m = json_get(v, "shape");
    if (!has_kind(m, JSON_ARRAY)) return bad_tensor(r, v, LATH_ERR_FORMAT, "shape: want a list of numbers");
    if (m->u.items.count > TENSOR_MAX_RANK)
        return bad_tensor(r, v, LATH_ERR_UNSUPPORTED, "shape of more than 8 dimensions");
    t->count = 1;
    for (const json_value *d = m->u.items.first; d; d = d->next) {
        if (d->kind != JSON_INT || d->u.integer < 0)
            return bad_tensor(r, v, LATH_ERR_FORMAT, "shape: want whole numbers from 0 to 2^63 - 1");
        if (!dim_mul(t->count, d->u.integer, &t->count))
            return bad_tensor(r, v, LATH_ERR_FORMAT, "shape: too many elements");
        t->dim[t->rank++] = d->u.integer;
    }
    if (!dtype_row_bytes(t->type, (uint64_t)t->count, &t->bytes))
        return bad_tensor(r, v, LATH_ERR_FORMAT, "shape: too many bytes");
    return LATH_OK;
}

/* data_offsets, inside the data section and as long as dtype and shape say. */
static lath_status read_range(const reader *r, const json_value *v, entry *e)
{
    char shape[64], text[160];
    const json_value *m = json_get(v, "data_offsets");
    if (!has_kind(m, JSON_ARRAY)) return bad_tensor(r, v, LATH_ERR_FORMAT, "data_offsets: want [begin, end]");
    const json_value *first = m->u.items.first;
    if (m->u.items.count != 2 || first->kind != JSON_INT || first->next->kind != JSON_INT || first->u.integer < 0 ||
        first->next->u.integer < first->u.integer)
        return bad_tensor(r, v, LATH_ERR_FORMAT, "data_offsets: want [begin, end] with 0 <= begin <= end");
    e->begin = (uint64_t)first->u.integer;
    e->end = (uint64_t)first->next->u.integer;
    if (e->end - e->begin != e->t.bytes) {
        tensor_shape_text(e->t.dim, e->t.rank, shape, sizeof shape);
        snprintf(text, sizeof text, "data_offsets hold %llu bytes, %s %s needs %llu",
                 (unsigned long long)(e->end - e->begin), dtype_name(e->t.type), shape, (unsigned long long)e->t.bytes);
        return bad_tensor(r, v, LATH_ERR_FORMAT, text);
    }
    if (e->end > r->n_data) {
        snprintf(text, sizeof text, "ends at byte %llu of a data section of %llu bytes: the file is cut or damaged",
                 (unsigned long long)e->end, (unsigned long long)r->n_data);
        return bad_tensor(r, v, LATH_ERR_FORMAT, text);
    }
    return LATH_OK;
}

static lath_status read_entry(const reader *r, const json_value *v, entry *e)
{
    if (v->kind != JSON_OBJECT)
        return bad_tensor(r, v, LATH_ERR_FORMAT, "want an object with dtype, shape and data_offsets");
    if (memchr(v->key, 0, v->key_len)) return bad_tensor(r, v, LATH_ERR_FORMAT, "a zero byte in the name");
    TRY(read_dtype(r, v, &e->t));
    TRY(read_shape(r, v, &e->t));
    TRY(read_range(r, v, e));
    e->t.data = r->data + e->begin;
    e->t.name = arena_strdup(&r->st->memory, v->key, v->key_len);
    return e->t.name ? LATH_OK : err_nomem(r->err, v->key_len + 1);
}

/* {"format": "pt", ...}: strings only, nothing in it is used. */
static lath_status check_metadata(const reader *r, const json_value *v)
{
    if (v->kind == JSON_NULL) return LATH_OK;
    bool good = v->kind == JSON_OBJECT;
    for (const json_value *m = good ? v->u.items.first : NULL; m && good; m = m->next) good = m->kind == JSON_STRING;
    if (good) return LATH_OK;
    return err_set(r->err, LATH_ERR_FORMAT, "%s: %s: want an object of strings", r->label, METADATA_KEY);
}

static bool is_metadata(const json_value *v)
{
    return v->key_len == sizeof METADATA_KEY - 1 && memcmp(v->key, METADATA_KEY, v->key_len) == 0;
}

/* -------------------------------------------------------------------------------------------------------- the header as a whole */

static int by_offset(const void *pa, const void *pb)
{
    const entry *a = pa, *b = pb;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end) return a->end < b->end ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Sorted entries must follow each other without gap or overlap to the very end of the file. */
static lath_status check_cover(const reader *r, const entry *e, size_t n)
{
    uint64_t at = 0;
    char name[NAME_SHOWN];
    for (size_t i = 0; i < n; i++) {
        if (e[i].begin != at)
            return err_set(r->err, LATH_ERR_FORMAT,
                           "%s: tensor \"%s\": begins at byte %llu of the data, %s the one before it (%llu)", r->label,
                           shown(e[i].t.name, strlen(e[i].t.name), name), (unsigned long long)e[i].begin,
                           e[i].begin < at ? "inside" : "with a gap behind", (unsigned long long)at);
        at = e[i].end;
    }
    if (at == r->n_data) return LATH_OK;
    return err_set(r->err, LATH_ERR_FORMAT, "%s: %llu bytes of data, the tensors of the header are %llu", r->label,
                   (unsigned long long)r->n_data, (unsigned long long)at);
}

/* Tensors in offset order and the index by name. */
static lath_status keep_entries(const reader *r, const entry *e, size_t n)
{
    safetensors *st = r->st;
    st->tensors = arena_array(&st->memory, n, sizeof *st->tensors);
    if (!st->tensors) return err_nomem(r->err, n * sizeof *st->tensors);
    TRY(map_reserve(&st->by_name, n, r->err));
    for (size_t i = 0; i < n; i++) {
        const char *name = e[i].t.name;
        char text[NAME_SHOWN];
        bool existed = false;
        TRY(map_add(&st->by_name, name, strlen(name), i, &existed, r->err));
        if (existed)
            return err_set(r->err, LATH_ERR_FORMAT, "%s: tensor \"%s\" is there twice", r->label,
                           shown(name, strlen(name), text));
        st->tensors[i] = e[i].t;
    }
    st->count = n;
    return LATH_OK;
}

static lath_status read_entries(const reader *r, arena *scratch, const json_value *root)
{
    const size_t most = root->u.items.count;
    size_t n = 0;
    entry *entries = arena_array(scratch, most, sizeof *entries);
    if (!entries) return err_nomem(r->err, most * sizeof *entries);
    for (const json_value *v = root->u.items.first; v; v = v->next) {
        if (is_metadata(v)) {
            TRY(check_metadata(r, v));
            continue;
        }
        entries[n].order = n;
        TRY(read_entry(r, v, &entries[n]));
        n++;
    }
    qsort(entries, n, sizeof *entries, by_offset);
    TRY(check_cover(r, entries, n));
    return keep_entries(r, entries, n);
}

/* Length and place of the JSON text. */
static lath_status find_header(const safetensors *st, const char *label, size_t *n, lath_error *err)
{
    const file_map *f = &st->file;
    uint64_t length = 0;
    if (f->size < PREFIX_BYTES)
        return err_set(err, LATH_ERR_FORMAT, "%s: %zu bytes are too few for a safetensors file", label, f->size);
    for (size_t i = 0; i < PREFIX_BYTES; i++) length |= (uint64_t)f->data[i] << (8 * i);
    if (length > HEADER_MAX)
        return err_set(err, LATH_ERR_FORMAT,
                       "%s: header of %llu bytes, at most %zu are allowed: no safetensors file or damaged", label,
                       (unsigned long long)length, HEADER_MAX);
    if (length > f->size - PREFIX_BYTES)
        return err_set(err, LATH_ERR_FORMAT, "%s: header of %llu bytes in a file of %zu: the file is cut", label,
                       (unsigned long long)length, f->size);
    *n = (size_t)length;
    return LATH_OK;
}

/* The text is an object: checked here because a byte order mark, which json_parse would skip, is none of the format. */
static bool begins_object(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && memchr(" \t\r\n", text[i], 4)) i++;
    return i < n && text[i] == '{';
}

static lath_status read_header(safetensors *st, const char *label, lath_error *err)
{
    size_t n = 0;
    json_value *root = NULL;
    arena scratch; /* JSON tree and entries, gone when the tensors are known */
    lath_status status;
    TRY(find_header(st, label, &n, err));
    const char *text = (const char *)st->file.data + PREFIX_BYTES;
    const json_options options = {.max_bytes = n + 1};
    const reader r = {st, label, st->file.data + PREFIX_BYTES + n, st->file.size - PREFIX_BYTES - n, err};
    if (!begins_object(text, n)) return err_set(err, LATH_ERR_FORMAT, "%s: the header is no JSON object", label);
    arena_init(&scratch, st->alloc);
    status = json_parse(&scratch, label, text, n, &options, &root, err);
    if (status == LATH_OK) status = read_entries(&r, &scratch, root);
    arena_deinit(&scratch);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------------ interface */

lath_status safetensors_open(const lath_allocator *alloc, const char *path, file_mode mode, safetensors **out,
                             lath_error *err)
{
    char label[PATH_SHOWN + 4];
    lath_status status;
    safetensors *st = alloc_zero(alloc, sizeof *st);
    if (!st) return err_nomem(err, sizeof *st);
    st->alloc = alloc;
    arena_init(&st->memory, alloc);
    map_init(&st->by_name, alloc);
    label_path(path, label, sizeof label);
    status = file_map_open(&st->file, alloc, path, mode, err);
    if (status == LATH_OK) status = read_header(st, label, err);
    if (status != LATH_OK) {
        safetensors_close(st);
        return status;
    }
    *out = st;
    return LATH_OK;
}

void safetensors_close(safetensors *st)
{
    if (!st) return;
    map_deinit(&st->by_name);
    arena_deinit(&st->memory);
    file_map_close(&st->file);
    alloc_release(st->alloc, st, sizeof *st);
}

int32_t safetensors_count(const safetensors *st)
{
    return (int32_t)st->count; /* a header of 100 MB has no room for 2^31 entries */
}

const tensor *safetensors_at(const safetensors *st, int32_t i) { return &st->tensors[i]; }

const tensor *safetensors_find(const safetensors *st, const char *name)
{
    uint64_t i;
    return map_find(&st->by_name, name, strlen(name), &i) ? &st->tensors[i] : NULL;
}

const file_map *safetensors_file(const safetensors *st) { return &st->file; }

size_t safetensors_private_bytes(const safetensors *st)
{
    const size_t copy = st->file.mode == FILE_COPY ? st->file.size : 0;
    return sizeof *st + st->memory.total + st->by_name.n_slots * sizeof *st->by_name.slots + copy;
}
