/* SPDX-License-Identifier: Apache-2.0
 *
 * vindex_write.h: makes a vindex (vindex.h) of pieces whose sizes are all known before the first is written:
 *
 *     create, add_..., begin, then of each piece that is not done yet: write ..., end; copy ...; finish
 *
 * Everything is written into DIR.part. DIR.part/progress.jsonl has a line of each piece that is whole, with its hash; who resumes takes a piece only if
 * its bytes still have it. finish() writes index.json, syncs and renames to DIR. What is stopped before that stays as DIR.part, which no reader opens.
 */
#ifndef LATH_STORE_VINDEX_WRITE_H
#define LATH_STORE_VINDEX_WRITE_H

#include "store/vindex.h"

typedef struct vindex_writer vindex_writer;

/* facts are copied. dir: must not be there, or be empty. LATH_ERR_USAGE: it is something else. */
lath_status vindex_writer_create(const lath_allocator *alloc, const char *dir, const vindex_facts *facts,
                                 vindex_writer **out, lath_error *err);
/* The next pieces: rows of a layer, of so many experts (0: it is one FFN); one tensor. Their numbers are 0, 1, ... */
lath_status vindex_add_rows(vindex_writer *w, vindex_file file, int32_t layer, int64_t features, int32_t experts,
                            lath_error *err);
lath_status vindex_add_tensor(vindex_writer *w, const tensor *t, lath_error *err);
/* Makes room for all. resume: goes on with the DIR.part of the same model and options, LATH_ERR_USAGE where it is of others; else begins anew.
 * LATH_ERR_IO: cannot be written, no room (then nothing is left), somebody else is at it. */
lath_status vindex_writer_begin(vindex_writer *w, bool resume, lath_error *err);
/* Bytes of all pieces, of those that are done. */
uint64_t vindex_writer_total(const vindex_writer *w);
uint64_t vindex_writer_done(const vindex_writer *w);

bool vindex_piece_done(const vindex_writer *w, int32_t number);
/* n bytes at `at` of the piece. */
lath_status vindex_piece_write(vindex_writer *w, int32_t number, uint64_t at, const void *p, size_t n, lath_error *err);
/* All of it has been written. */
lath_status vindex_piece_end(vindex_writer *w, int32_t number, lath_error *err);
/* One of the small files, whole. */
lath_status vindex_copy(vindex_writer *w, const char *name, const void *p, size_t n, lath_error *err);

/* *bytes: of all files. Frees the writer, also when it fails. */
lath_status vindex_writer_finish(vindex_writer *w, uint64_t *bytes, lath_error *err);
/* DIR.part stays. NULL is allowed. */
void vindex_writer_abort(vindex_writer *w);

#endif
