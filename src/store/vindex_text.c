/* SPDX-License-Identifier: Apache-2.0
 *
 * vindex_text.c: index.json of a vindex. What it says is checked here against itself: shapes against sizes, places against the sizes of files, none
 * over another, the same number of features in all files of a layer, everything there that the level promises.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "store/vindex_parts.h"

const char *const vindex_file_names[VINDEX_N_FILES] = {
#define VINDEX_FILE(name, file, level) file,
#include "store/vindex.def"
#undef VINDEX_FILE
};
const vindex_level vindex_file_levels[VINDEX_N_FILES] = {
#define VINDEX_FILE(name, file, level) level,
#include "store/vindex.def"
#undef VINDEX_FILE
};

static const char *const level_names[VINDEX_N_LEVELS] = {"browse", "attention", "inference", "all"};

const char *vindex_level_name(vindex_level level) { return level_names[level]; }

bool vindex_level_parse(const char *name, vindex_level *out)
{
    for (int i = 0; i < VINDEX_N_LEVELS; i++) {
        if (strcmp(level_names[i], name) != 0) continue;
        *out = (vindex_level)i;
        return true;
    }
    return false;
}

/* -------------------------------------------------------------------------------------------------------------- hashes */

void vindex_hex(hash128 h, char out[VINDEX_HEX + 1])
{
    snprintf(out, VINDEX_HEX + 1, "%016" PRIx64 "%016" PRIx64, h.hi, h.lo);
}

static bool unhex64(const char *s, uint64_t *out)
{
    *out = 0;
    for (int i = 0; i < 16; i++) {
        const char c = s[i];
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) return false;
        *out = *out << 4 | (uint64_t)digit;
    }
    return true;
}

bool vindex_unhex(const char *s, hash128 *out)
{
    return strlen(s) == VINDEX_HEX && unhex64(s, &out->hi) && unhex64(s + 16, &out->lo);
}

void vindex_put_seal(buf *b)
{
    char hex[VINDEX_HEX + 1];
    vindex_hex(hash_128(b->data, b->len, 0), hex);
    buf_printf(b, ",\"seal\":\"%s\"}\n", hex);
}

/* ------------------------------------------------------------------------------------------------------------- reading */

typedef struct reading {
    vindex *x;
    const json_value *root;
    const char *name;             /* of index.json */
    uint64_t end[VINDEX_N_FILES]; /* of what has been placed in a data file so far */
    lath_error *err;
} reading;

static lath_status bad(const reading *r, const json_value *at, const char *what)
{
    return err_set(r->err, LATH_ERR_FORMAT, "%s: line %u: %s", r->name, at ? at->line : 1, what);
}

static lath_status want_text(const reading *r, const json_value *obj, const char *key, const char **out)
{
    *out = NULL;
    TRY(json_get_str(obj, key, r->name, out, r->err));
    if (*out) return LATH_OK;
    return err_set(r->err, LATH_ERR_FORMAT, "%s: line %u: no \"%s\"", r->name, obj->line, key);
}

static lath_status want_int(const reading *r, const json_value *obj, const char *key, int64_t min, int64_t max,
                            int64_t *out)
{
    if (!json_present(json_get(obj, key)))
        return err_set(r->err, LATH_ERR_FORMAT, "%s: line %u: no \"%s\"", r->name, obj->line, key);
    return json_get_int(obj, key, r->name, min, max, out, r->err);
}

static lath_status want_items(const reading *r, const char *key, const json_value **out)
{
    *out = json_get(r->root, key);
    if (*out && (*out)->kind == JSON_ARRAY) return LATH_OK;
    return err_set(r->err, LATH_ERR_FORMAT, "%s: want an array \"%s\"", r->name, key);
}

static lath_status read_version(const reading *r)
{
    int64_t version;
    if (r->root->kind != JSON_OBJECT || !json_is_string(json_get(r->root, "format"), "lath-vindex"))
        return err_set(r->err, LATH_ERR_FORMAT, "%s: no index of lath (its \"format\" is not \"lath-vindex\")",
                       r->name);
    TRY(want_int(r, r->root, "version", 0, INT32_MAX, &version));
    if (version == VINDEX_VERSION) return LATH_OK;
    return err_set(r->err, LATH_ERR_UNSUPPORTED, "%s: an index of version %lld; this program reads version %d", r->name,
                   (long long)version, VINDEX_VERSION);
}

static lath_status check_seal(const reading *r, const char *text, size_t n)
{
    hash128 want, have;
    char hex[VINDEX_HEX + 1] = {0};
    const char *seal = text + (n >= VINDEX_SEAL ? n - VINDEX_SEAL : 0);
    if (n < VINDEX_SEAL || memcmp(seal, ",\"seal\":\"", 9) != 0 || memcmp(seal + 9 + VINDEX_HEX, "\"}\n", 3) != 0)
        return err_set(r->err, LATH_ERR_FORMAT, "%s: does not end with its checksum: cut or changed", r->name);
    memcpy(hex, seal + 9, VINDEX_HEX);
    have = hash_128(text, n - VINDEX_SEAL, 0);
    if (vindex_unhex(hex, &want) && have.lo == want.lo && have.hi == want.hi) return LATH_OK;
    return err_set(r->err, LATH_ERR_FORMAT, "%s: its bytes are not those of its checksum: damaged or changed", r->name);
}

static bool type_by_name(const char *name, dtype *out)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (strcmp(dtype_name((dtype)i), name) != 0) continue;
        *out = (dtype)i;
        return true;
    }
    return false;
}

static lath_status read_facts(const reading *r)
{
    vindex_facts *f = &r->x->facts;
    const char *level, *type, *names, *id;
    const json_value *source = json_get(r->root, "source");
    int64_t n;
    hash128 identity;
    TRY(want_text(r, r->root, "level", &level));
    if (!vindex_level_parse(level, &f->level)) return bad(r, json_get(r->root, "level"), "\"level\": not known");
    TRY(want_text(r, r->root, "dtype", &type));
    if (!type_by_name(type, &f->rows) || !dtype_is_weight(f->rows))
        return bad(r, json_get(r->root, "dtype"), "\"dtype\": no type of weights");
    TRY(want_text(r, r->root, "model_type", &f->model_type));
    TRY(want_text(r, r->root, "names", &names));
    f->gguf_names = strcmp(names, "gguf") == 0;
    if (!f->gguf_names && strcmp(names, "hf") != 0) return bad(r, json_get(r->root, "names"), "\"names\": not known");
    TRY(want_int(r, r->root, "stored", 0, UINT32_MAX, &n));
    f->stored = (uint32_t)n;
    TRY(want_int(r, r->root, "n_layers", 1, VINDEX_MAX_LAYERS, &n));
    f->n_layers = (int32_t)n;
    TRY(want_int(r, r->root, "vocab_size", 1, INT32_MAX, &n));
    f->vocab_size = (int32_t)n;
    TRY(want_int(r, r->root, "d_model", 1, INT32_MAX, &f->d_model));
    f->config = json_get(r->root, "config");
    if (!f->config || f->config->kind != JSON_OBJECT) return bad(r, f->config, "want an object \"config\"");
    if (!source || source->kind != JSON_OBJECT) return bad(r, source, "want an object \"source\"");
    TRY(want_text(r, source, "name", &f->source));
    TRY(want_text(r, source, "identity", &id));
    TRY(want_int(r, source, "ffn_tensors", 0, INT32_MAX, &n));
    f->ffn_tensors = (int32_t)n;
    TRY(want_int(r, source, "ffn_bytes", 0, INT64_MAX, &n));
    f->ffn_bytes = (uint64_t)n;
    if (!vindex_unhex(id, &identity)) return bad(r, source, "\"identity\": want 32 hexadecimal digits");
    f->identity[0] = identity.lo;
    f->identity[1] = identity.hi;
    return LATH_OK;
}

/* --------------------------------------------------------------------------------------------------------------- files */

static int32_t kind_of(const char *name)
{
    for (int32_t i = 0; i < VINDEX_N_FILES; i++)
        if (strcmp(vindex_file_names[i], name) == 0) return i;
    return -1;
}

/* The name of a file in the directory itself, that is none of index.json's. */
static bool is_plain(const char *name)
{
    return name[0] && name[0] != '.' && !strchr(name, '/') && !strchr(name, '\\') && strcmp(name, "index.json") != 0;
}

static lath_status read_files(const reading *r)
{
    vindex *x = r->x;
    const json_value *list;
    TRY(want_items(r, "files", &list));
    x->files = arena_array(&x->mem, list->u.items.count, sizeof(*x->files));
    if (!x->files) return err_nomem(r->err, list->u.items.count * sizeof(*x->files));
    for (int32_t i = 0; i < VINDEX_N_FILES; i++) x->at[i] = -1;
    for (const json_value *v = list->u.items.first; v; v = v->next) {
        vindex_listed *f = &x->files[x->n_files];
        const char *hex;
        int64_t bytes;
        if (v->kind != JSON_OBJECT) return bad(r, v, "\"files\": want objects");
        TRY(want_text(r, v, "name", &f->name));
        TRY(want_text(r, v, "xxh3", &hex));
        TRY(want_int(r, v, "bytes", 0, INT64_MAX, &bytes));
        if (!is_plain(f->name)) return bad(r, v, "the name of a file outside the index");
        for (int32_t i = 0; i < x->n_files; i++)
            if (strcmp(x->files[i].name, f->name) == 0) return bad(r, v, "a file is there twice");
        if (!vindex_unhex(hex, &f->hash)) return bad(r, v, "\"xxh3\": want 32 hexadecimal digits");
        f->bytes = (uint64_t)bytes;
        f->kind = kind_of(f->name);
        if (f->kind >= 0) x->at[f->kind] = x->n_files;
        x->n_files++;
    }
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------- tensors */

/* Shape, size and place of `v`, whose type is known, in a data file. */
static lath_status place_tensor(reading *r, const json_value *v, int32_t kind, tensor *t)
{
    const json_value *shape = json_get(v, "shape");
    int64_t offset, bytes, rows = 1, last = 1;
    size_t want;
    if (r->x->at[kind] < 0)
        return err_set(r->err, LATH_ERR_FORMAT, "%s: line %u: %s is not among its files", r->name, v->line,
                       vindex_file_names[kind]);
    if (!shape || shape->kind != JSON_ARRAY || shape->u.items.count > TENSOR_MAX_RANK)
        return bad(r, v, "\"shape\": want an array of 8 numbers at most");
    for (const json_value *d = shape->u.items.first; d; d = d->next) {
        if (d->kind != JSON_INT || d->u.integer < 1) return bad(r, d, "\"shape\": want whole numbers from 1 on");
        t->dim[t->rank++] = d->u.integer;
        last = d->u.integer;
        if (d->next && !dim_mul(rows, d->u.integer, &rows)) return bad(r, d, "\"shape\": it overflows");
    }
    if (!dim_mul(rows, last, &t->count) || !dtype_row_bytes(t->type, (uint64_t)last, &want) ||
        !size_mul(want, (size_t)rows, &want))
        return bad(r, v, "\"shape\": rows are no whole number of blocks, or it overflows");
    TRY(want_int(r, v, "offset", VINDEX_ALIGN, INT64_MAX, &offset));
    TRY(want_int(r, v, "bytes", 1, INT64_MAX, &bytes));
    if (offset % VINDEX_ALIGN != 0 || (uint64_t)offset < r->end[kind]) return bad(r, v, "it lies over another");
    if ((uint64_t)bytes != want) return bad(r, v, "its size is not that of its shape");
    const uint64_t size = r->x->files[r->x->at[kind]].bytes;
    if ((uint64_t)offset > size || (uint64_t)bytes > size - (uint64_t)offset)
        return bad(r, v, "it ends behind its file");
    r->end[kind] = (uint64_t)offset + (uint64_t)bytes;
    t->bytes = want;
    t->data = (const void *)(uintptr_t)offset;
    return LATH_OK;
}

/* One of "rows": a matrix of a layer. */
static lath_status read_row(reading *r, const json_value *v)
{
    vindex *x = r->x;
    const char *file;
    int64_t layer;
    if (v->kind != JSON_OBJECT) return bad(r, v, "\"rows\": want objects");
    TRY(want_text(r, v, "file", &file));
    TRY(want_int(r, v, "layer", 0, x->facts.n_layers - 1, &layer));
    const int32_t kind = kind_of(file);
    if (kind < 0 || kind >= VINDEX_TENSORS) return bad(r, v, "\"file\": none of rows");
    vindex_layer *l = &x->layers[layer];
    tensor *t = &l->rows[kind];
    if (t->rank) return bad(r, v, "a layer is there twice");
    t->name = vindex_file_names[kind];
    t->type = kind == VINDEX_TOKENS ? DTYPE_U32 : x->facts.rows;
    TRY(place_tensor(r, v, kind, t));
    const int wide = kind == VINDEX_OUT ? 0 : 1;
    const int64_t d = kind == VINDEX_TOKENS ? 2 * VINDEX_TOP : x->facts.d_model;
    if (t->rank != 2 || t->dim[wide] != d) return bad(r, v, "\"shape\": want a row of the model's width a feature");
    if (t->dim[1 - wide] > INT32_MAX) return bad(r, v, "\"shape\": too many features");
    if (l->features == 0) l->features = t->dim[1 - wide];
    int64_t experts = 0;
    TRY(json_get_int(v, "experts", r->name, 1, INT32_MAX, &experts, r->err));
    if (l->features == t->dim[1 - wide] && l->experts && l->experts != experts)
        return bad(r, v, "\"experts\": other files have another number");
    l->experts = (int32_t)experts;
    if (experts && l->features % experts != 0) return bad(r, v, "\"experts\": its features are no multiple");
    if (l->features != t->dim[1 - wide]) return bad(r, v, "\"shape\": other files have another number of features");
    return LATH_OK;
}

static lath_status read_rows(reading *r)
{
    vindex *x = r->x;
    const json_value *list;
    TRY(want_items(r, "rows", &list));
    /* A line may ask for more layers than the text has. */
    if ((size_t)x->facts.n_layers > list->u.items.count) return bad(r, list, "\"rows\": less than there are layers");
    x->layers = arena_array(&x->mem, (size_t)x->facts.n_layers, sizeof(*x->layers));
    if (!x->layers) return err_nomem(r->err, (size_t)x->facts.n_layers * sizeof(*x->layers));
    for (const json_value *v = list->u.items.first; v; v = v->next) TRY(read_row(r, v));
    for (int32_t l = 0; l < x->facts.n_layers; l++) {
        for (int32_t k = 0; k < VINDEX_TENSORS; k++) {
            if (x->layers[l].rows[k].rank || vindex_file_levels[k] > x->facts.level) continue;
            return err_set(r->err, LATH_ERR_FORMAT, "%s: layer %d: no rows in %s, which level \"%s\" has", r->name, l,
                           vindex_file_names[k], vindex_level_name(x->facts.level));
        }
    }
    return LATH_OK;
}

static lath_status read_tensors(reading *r)
{
    vindex *x = r->x;
    const json_value *list;
    TRY(want_items(r, "tensors", &list));
    x->tensors = arena_array(&x->mem, list->u.items.count, sizeof(*x->tensors));
    if (!x->tensors) return err_nomem(r->err, list->u.items.count * sizeof(*x->tensors));
    for (const json_value *v = list->u.items.first; v; v = v->next) {
        tensor *t = &x->tensors[x->n_tensors++];
        const char *type;
        if (v->kind != JSON_OBJECT) return bad(r, v, "\"tensors\": want objects");
        TRY(want_text(r, v, "name", &t->name));
        TRY(want_text(r, v, "dtype", &type));
        if (!type_by_name(type, &t->type)) return bad(r, v, "\"dtype\": not known");
        TRY(place_tensor(r, v, VINDEX_TENSORS, t));
    }
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------ interface */

lath_status vindex_read_text(vindex *x, const char *text, size_t n, bool sealed, lath_error *err)
{
    json_value *root;
    reading r = {.x = x, .name = x->name, .err = err};
    TRY(json_parse(&x->mem, x->name, text, n, NULL, &root, err));
    r.root = root;
    TRY(read_version(&r));
    if (sealed) TRY(check_seal(&r, text, n));
    x->hash = hash_128(text, n, 0);
    TRY(read_facts(&r));
    TRY(read_files(&r));
    TRY(read_rows(&r));
    return read_tensors(&r);
}
