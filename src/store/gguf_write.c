/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_write.c: writer of GGUF files (see gguf_write.h). Keys and the table of tensors are collected in two buffers, for their counts come first.
 */
#include "store/gguf_write.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/map.h"
#include "base/outfile.h"

enum { HEAD_MOST = 1 << 30 };

/* A tensor whose data is still to come. */
typedef struct pending {
    struct pending *next;
    size_t bytes;
} pending;

struct gguf_writer {
    const lath_allocator *alloc;
    outfile file;
    buf keys, tensors; /* as they will be in the file */
    arena memory;      /* names and what is pending */
    map names;
    pending *first, **last; /* in the order of the table */
    uint64_t n_keys, n_tensors;
    uint64_t offset;   /* of the next tensor in the data section */
    size_t texts_left; /* of the array of strings that is being put */
    size_t left;       /* bytes that are to come of the tensor before `first` */
    uint64_t written;  /* bytes of the file */
    uint64_t total;    /* that it will have */
};

/* Values are little-endian as on every machine that lath runs on (gguf.c reads them so, too). */
static void put_raw(buf *b, const void *p, size_t n) { buf_append(b, p, n); }
static void put_u32(buf *b, uint32_t v) { put_raw(b, &v, sizeof(v)); }
static void put_u64(buf *b, uint64_t v) { put_raw(b, &v, sizeof(v)); }

static void put_string(buf *b, const char *s, size_t n)
{
    put_u64(b, n);
    put_raw(b, s, n);
}

static size_t padding(uint64_t n) { return (size_t)((GGUF_ALIGNMENT - n % GGUF_ALIGNMENT) % GGUF_ALIGNMENT); }

lath_status gguf_writer_create(const lath_allocator *alloc, const char *path, gguf_writer **out, lath_error *err)
{
    gguf_writer *w = alloc_zero(alloc, sizeof(*w));
    if (!w) return err_nomem(err, sizeof(*w));
    w->alloc = alloc;
    buf_init(&w->keys, alloc, HEAD_MOST);
    buf_init(&w->tensors, alloc, HEAD_MOST);
    arena_init(&w->memory, alloc);
    map_init(&w->names, alloc);
    w->last = &w->first;
    outfile_sweep(path);
    const lath_status st = outfile_create(&w->file, alloc, path, err);
    if (st != LATH_OK)
        gguf_writer_abort(w);
    else
        *out = w;
    return st;
}

/* -------------------------------------------------------------------------------------------------------------- keys */

static void put_key(gguf_writer *w, const char *key, gguf_kind kind)
{
    assert(w->texts_left == 0);
    w->n_keys++;
    put_string(&w->keys, key, strlen(key));
    put_u32(&w->keys, (uint32_t)kind);
}

void gguf_put_u32(gguf_writer *w, const char *key, uint32_t v)
{
    put_key(w, key, GGUF_U32);
    put_u32(&w->keys, v);
}

void gguf_put_i32(gguf_writer *w, const char *key, int32_t v)
{
    put_key(w, key, GGUF_I32);
    put_raw(&w->keys, &v, sizeof(v));
}

void gguf_put_f32(gguf_writer *w, const char *key, float v)
{
    put_key(w, key, GGUF_F32);
    put_raw(&w->keys, &v, sizeof(v));
}

void gguf_put_bool(gguf_writer *w, const char *key, bool v)
{
    put_key(w, key, GGUF_BOOL);
    buf_char(&w->keys, v ? 1 : 0);
}

void gguf_put_text(gguf_writer *w, const char *key, const char *s, size_t n)
{
    put_key(w, key, GGUF_STRING);
    put_string(&w->keys, s, n);
}

static size_t kind_size(gguf_kind kind)
{
    switch (kind) {
    case GGUF_U8:
    case GGUF_I8:
    case GGUF_BOOL: return 1;
    case GGUF_U16:
    case GGUF_I16: return 2;
    case GGUF_U32:
    case GGUF_I32:
    case GGUF_F32: return 4;
    case GGUF_U64:
    case GGUF_I64:
    case GGUF_F64: return 8;
    default: return 0;
    }
}

void gguf_put_array(gguf_writer *w, const char *key, gguf_kind kind, const void *data, size_t count)
{
    assert(kind_size(kind) > 0);
    put_key(w, key, GGUF_ARRAY);
    put_u32(&w->keys, (uint32_t)kind);
    put_u64(&w->keys, count);
    put_raw(&w->keys, data, count * kind_size(kind));
}

void gguf_put_texts(gguf_writer *w, const char *key, size_t count)
{
    put_key(w, key, GGUF_ARRAY);
    put_u32(&w->keys, GGUF_STRING);
    put_u64(&w->keys, count);
    w->texts_left = count;
}

void gguf_put_next_text(gguf_writer *w, const char *s, size_t n)
{
    assert(w->texts_left > 0);
    w->texts_left--;
    put_string(&w->keys, s, n);
}

/* ----------------------------------------------------------------------------------------------------------- tensors */

lath_status gguf_add_tensor(gguf_writer *w, const char *name, dtype type, int32_t rank, const uint64_t *dim,
                            lath_error *err)
{
    const size_t len = strlen(name);
    bool existed = false;
    size_t bytes = 0;
    const int id = dtype_gguf_id(type);
    assert(rank >= 1 && rank <= GGUF_MAX_RANK && id >= 0);
    if (len >= GGUF_MAX_NAME || w->n_tensors >= GGUF_MAX_TENSORS)
        return err_set(err, LATH_ERR_LIMIT, "%s: tensor \"%.100s\": too many or too long a name", w->file.path, name);
    const char *own = arena_strdup(&w->memory, name, len);
    pending *p = arena_zero(&w->memory, sizeof(*p));
    if (!own || !p) return err_nomem(err, len + sizeof(*p));
    TRY(map_add(&w->names, own, len, w->n_tensors, &existed, err));
    if (existed) return err_set(err, LATH_ERR_FORMAT, "%s: tensor \"%s\" is there twice", w->file.path, name);
    if (dim[0] % dtype_block_numbers(type) != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: tensor \"%s\": rows of %llu numbers are no whole number of %s blocks",
                       w->file.path, name, (unsigned long long)dim[0], dtype_name(type));
    bool fits = dtype_row_bytes(type, dim[0], &bytes);
    for (int32_t i = 1; fits && i < rank; i++) fits = size_mul(bytes, dim[i], &bytes);
    if (!fits || bytes > SIZE_MAX / 4 || w->offset > UINT64_MAX / 4)
        return err_set(err, LATH_ERR_LIMIT, "%s: tensor \"%s\": its size overflows", w->file.path, name);
    put_string(&w->tensors, name, len);
    put_u32(&w->tensors, (uint32_t)rank);
    for (int32_t i = 0; i < rank; i++) put_u64(&w->tensors, dim[i]);
    put_u32(&w->tensors, (uint32_t)id);
    put_u64(&w->tensors, w->offset);
    p->bytes = bytes;
    *w->last = p;
    w->last = &p->next;
    w->n_tensors++;
    w->offset += bytes + padding(bytes);
    return LATH_OK;
}

/* -------------------------------------------------------------------------------------------------------------- file */

static lath_status write_out(gguf_writer *w, const void *p, size_t n, lath_error *err)
{
    w->written += n;
    return outfile_write(&w->file, p, n, err);
}

static lath_status pad(gguf_writer *w, lath_error *err)
{
    static const char zeros[GGUF_ALIGNMENT];
    return write_out(w, zeros, padding(w->written), err);
}

/* Moves on to the next tensor that has data. */
static void next_tensor(gguf_writer *w)
{
    for (; w->left == 0 && w->first; w->first = w->first->next) w->left = w->first->bytes;
}

lath_status gguf_writer_begin(gguf_writer *w, lath_error *err)
{
    struct {
        char magic[4];
        uint32_t version;
        uint64_t n_tensors, n_keys;
    } head = {"GGUF", 3, w->n_tensors, w->n_keys};
    _Static_assert(sizeof(head) == 24, "as in the file");
    assert(w->texts_left == 0);
    TRY(buf_status(&w->keys, err));
    TRY(buf_status(&w->tensors, err));
    TRY(write_out(w, &head, sizeof(head), err));
    TRY(write_out(w, w->keys.data, w->keys.len, err));
    TRY(write_out(w, w->tensors.data, w->tensors.len, err));
    TRY(pad(w, err));
    w->total = w->written + w->offset;
    TRY(outfile_reserve(&w->file, w->total, err));
    buf_deinit(&w->keys);
    buf_deinit(&w->tensors);
    next_tensor(w);
    return LATH_OK;
}

uint64_t gguf_writer_total(const gguf_writer *w) { return w->total; }

const char *gguf_writer_temp(const gguf_writer *w) { return w->file.direct ? NULL : w->file.temp; }

lath_status gguf_write(gguf_writer *w, const void *p, size_t n, lath_error *err)
{
    assert(n <= w->left);
    TRY(write_out(w, p, n, err));
    w->left -= n;
    if (w->left > 0) return LATH_OK;
    TRY(pad(w, err));
    next_tensor(w);
    return LATH_OK;
}

lath_status gguf_writer_finish(gguf_writer *w, uint64_t *bytes, lath_error *err)
{
    assert(w->left == 0 && !w->first && w->written == w->total);
    *bytes = w->written;
    const lath_status st = outfile_commit(&w->file, err);
    gguf_writer_abort(w);
    return st;
}

void gguf_writer_abort(gguf_writer *w)
{
    if (!w) return;
    outfile_abort(&w->file);
    buf_deinit(&w->keys);
    buf_deinit(&w->tensors);
    arena_deinit(&w->memory);
    map_deinit(&w->names);
    alloc_release(w->alloc, w, sizeof(*w));
}
