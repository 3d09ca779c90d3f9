/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_write.h: writer of one GGUF file, version 3, little-endian (layout: gguf.h). Keys first, then the table of tensors, then their data in the
 * order of the table, in pieces of any size: nothing of it is kept. The file gets its name when it is whole (base/outfile.h); until then, and after
 * an error, there is none.
 */
#ifndef LATH_STORE_GGUF_WRITE_H
#define LATH_STORE_GGUF_WRITE_H

#include "store/gguf.h"

enum { GGUF_ALIGNMENT = 32 };

typedef struct gguf_writer gguf_writer;

/* LATH_ERR_IO when the path cannot be written. */
lath_status gguf_writer_create(const lath_allocator *alloc, const char *path, gguf_writer **out, lath_error *err);

/* Keys. They fail quietly: gguf_writer_begin says so. A key is put once. */
void gguf_put_u32(gguf_writer *w, const char *key, uint32_t v);
void gguf_put_i32(gguf_writer *w, const char *key, int32_t v);
void gguf_put_f32(gguf_writer *w, const char *key, float v);
void gguf_put_bool(gguf_writer *w, const char *key, bool v);
void gguf_put_text(gguf_writer *w, const char *key, const char *s, size_t n); /* valid UTF-8 */
/* Elements of a kind of fixed size, as they lie in memory. */
void gguf_put_array(gguf_writer *w, const char *key, gguf_kind kind, const void *data, size_t count);
/* An array of `count` strings, which follow one by one. */
void gguf_put_texts(gguf_writer *w, const char *key, size_t count);
void gguf_put_next_text(gguf_writer *w, const char *s, size_t n);

/* The next tensor: dim[0] is the row length. LATH_ERR_LIMIT: the name is too long or the sizes overflow; LATH_ERR_FORMAT: the rows are no whole
 * number of blocks, or there is one of this name. */
lath_status gguf_add_tensor(gguf_writer *w, const char *name, dtype type, int32_t rank, const uint64_t *dim,
                            lath_error *err);
/* Writes everything before the data and makes sure of the room for the rest. */
lath_status gguf_writer_begin(gguf_writer *w, lath_error *err);
/* Bytes of the whole file. */
uint64_t gguf_writer_total(const gguf_writer *w);
/* Where the file lies until it is finished: it can be read, and its data that is not written yet is zeros. NULL: it cannot (a pipe). */
const char *gguf_writer_temp(const gguf_writer *w);
/* The next n bytes of the tensors' data; gaps between tensors are filled here. No piece is of two tensors. */
lath_status gguf_write(gguf_writer *w, const void *p, size_t n, lath_error *err);
/* All data was written: gives the file its name. Releases w whatever the result. */
lath_status gguf_writer_finish(gguf_writer *w, uint64_t *bytes, lath_error *err);
void gguf_writer_abort(gguf_writer *w); /* NULL is allowed */

#endif
