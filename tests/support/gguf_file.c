/* SPDX-License-Identifier: Apache-2.0
 * gguf_file.c: see gguf_file.h. Written from the description of the format (docs of ggml, gguf.md), not from the reader. */
#include "support/gguf_file.h"

#include "support/test.h"
#include "support/tmpdir.h"
#include "tensor/dtype.h"

enum { ALIGN = 32 };

static void put(buf *b, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) buf_char(b, (char)(v >> (8 * i)));
}

static void put_text(buf *b, const char *s)
{
    put(b, strlen(s), 8);
    buf_str(b, s);
}

static size_t bytes_of(gguf_kind kind)
{
    switch (kind) {
    case GGUF_U8:
    case GGUF_I8:
    case GGUF_BOOL: return 1;
    case GGUF_U16:
    case GGUF_I16: return 2;
    case GGUF_U64:
    case GGUF_I64:
    case GGUF_F64: return 8;
    default: return 4;
    }
}

void gguf_make(gguf_file_maker *f)
{
    *f = (gguf_file_maker){0};
    buf_init(&f->keys, alloc_default(), SIZE_MAX / 2);
    buf_init(&f->tensors, alloc_default(), SIZE_MAX / 2);
    buf_init(&f->data, alloc_default(), SIZE_MAX / 2);
}

static void begin(gguf_file_maker *f, const char *key, gguf_kind kind)
{
    put_text(&f->keys, key);
    put(&f->keys, kind, 4);
    f->n_keys++;
}

void gguf_make_int(gguf_file_maker *f, const char *key, gguf_kind kind, int64_t value)
{
    begin(f, key, kind);
    put(&f->keys, (uint64_t)value, bytes_of(kind));
}

void gguf_make_u32(gguf_file_maker *f, const char *key, uint32_t value) { gguf_make_int(f, key, GGUF_U32, value); }

void gguf_make_f32(gguf_file_maker *f, const char *key, float value)
{
    begin(f, key, GGUF_F32);
    buf_append(&f->keys, &value, 4);
}

void gguf_make_text(gguf_file_maker *f, const char *key, const char *value)
{
    begin(f, key, GGUF_STRING);
    put_text(&f->keys, value);
}

static void begin_array(gguf_file_maker *f, const char *key, gguf_kind kind, size_t n)
{
    begin(f, key, GGUF_ARRAY);
    put(&f->keys, kind, 4);
    put(&f->keys, n, 8);
}

void gguf_make_ints(gguf_file_maker *f, const char *key, gguf_kind kind, const int64_t *values, size_t n)
{
    begin_array(f, key, kind, n);
    for (size_t i = 0; i < n; i++) put(&f->keys, (uint64_t)values[i], bytes_of(kind));
}

void gguf_make_texts(gguf_file_maker *f, const char *key, const char *const *values, size_t n)
{
    begin_array(f, key, GGUF_STRING, n);
    for (size_t i = 0; i < n; i++) put_text(&f->keys, values[i]);
}

void gguf_make_f32s(gguf_file_maker *f, const char *key, const float *values, size_t n)
{
    begin_array(f, key, GGUF_F32, n);
    buf_append(&f->keys, values, 4 * n);
}

static void pad(buf *b)
{
    while (b->len % ALIGN) buf_char(b, 0);
}

void gguf_make_tensor(gguf_file_maker *f, const char *name, uint32_t gguf_type, uint64_t rows, uint64_t cols,
                      const void *data)
{
    dtype t;
    size_t row = 0;
    pad(&f->data);
    put_text(&f->tensors, name);
    put(&f->tensors, rows ? 2 : 1, 4);
    put(&f->tensors, cols, 8);
    if (rows) put(&f->tensors, rows, 8);
    put(&f->tensors, gguf_type, 4);
    put(&f->tensors, f->data.len, 8);
    if (dtype_of_gguf(gguf_type, &t) && dtype_row_bytes(t, cols, &row)) {
        const size_t n = row * (size_t)(rows ? rows : 1);
        if (data) buf_append(&f->data, data, n);
        for (size_t i = 0; !data && i < n; i++) buf_char(&f->data, 0);
    }
    f->n_tensors++;
}

uint8_t *gguf_make_bytes(gguf_file_maker *f, size_t *n)
{
    buf all;
    buf_init(&all, alloc_default(), SIZE_MAX / 2);
    buf_str(&all, "GGUF");
    put(&all, 3, 4);
    put(&all, f->n_tensors, 8);
    put(&all, f->n_keys, 8);
    if (f->keys.len) buf_append(&all, f->keys.data, f->keys.len);
    if (f->tensors.len) buf_append(&all, f->tensors.data, f->tensors.len);
    pad(&all);
    if (f->data.len) buf_append(&all, f->data.data, f->data.len);
    uint8_t *out = malloc(all.len);
    assert_true(out && !all.failed && !f->keys.failed && !f->tensors.failed && !f->data.failed);
    memcpy(out, all.data, all.len);
    *n = all.len;
    buf_deinit(&all);
    buf_deinit(&f->keys);
    buf_deinit(&f->tensors);
    buf_deinit(&f->data);
    return out;
}

void gguf_make_write(gguf_file_maker *f, const char *dir, const char *name)
{
    size_t n;
    uint8_t *bytes = gguf_make_bytes(f, &n);
    tmp_write_bytes(dir, name, bytes, n);
    free(bytes);
}
