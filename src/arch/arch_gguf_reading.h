/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_gguf_reading.h: one reading of metadata, for the files that have the architectures' own keys: keys are asked for by what stands behind
 * "ARCHITECTURE.", fields of the tree are appended. A key of the wrong type is an error that names it and the file.
 */
#ifndef LATH_ARCH_GGUF_READING_H
#define LATH_ARCH_GGUF_READING_H

#include "arch/arch_gguf_table.h"

typedef struct arch_gguf_reading {
    weights *w;
    const gguf *g;
    const char *path;
    const arch_gguf_table *t;
    arena *mem;
    json_value *config;
    json_value lost; /* what is written when there is no memory */
    bool no_memory;
    /* What is needed beside the tree. 0: not said. */
    int64_t n_layers, n_heads, d_model, head_dim;
    const char *model_type;
    uint32_t stored; /* bits of arch_stored: the table's at first */
    lath_error *err;
} arch_gguf_reading;

/* NULL: the file has no such key. */
const gguf_value *arch_key_get(const arch_gguf_reading *r, const char *key);
/* Fills the error with the key's name and `what` behind it; returns `st`. */
lath_status arch_key_bad(const arch_gguf_reading *r, lath_status st, const char *key, const char *what);
/* NULL: the file has no such tensor. */
const tensor *arch_key_tensor(const arch_gguf_reading *r, const char *name);
/* Whole numbers from 0 to 2147483647, numbers that are finite; *out stays where the key is absent. */
lath_status arch_key_size(const arch_gguf_reading *r, const char *key, int64_t *out);
lath_status arch_key_real(const arch_gguf_reading *r, const char *key, double *out);

/* Fields of an object of the tree, or elements of an array (`field` NULL). Without memory they are lost, which arch_gguf_read says at the end. */
json_value *arch_field_put(arch_gguf_reading *r, json_value *into, const char *field, json_kind kind);
void arch_field_int(arch_gguf_reading *r, json_value *into, const char *field, int64_t v);
void arch_field_real(arch_gguf_reading *r, json_value *into, const char *field, double v);
void arch_field_flag(arch_gguf_reading *r, const char *field, bool v); /* of the root */
void arch_field_text(arch_gguf_reading *r, json_value *into, const char *field, const char *text);

/* arch_gguf_hybrid.c: keys of qwen35, qwen35moe and qwen3next. */
enum { ARCH_GGUF_N_DENSE = 10, ARCH_GGUF_N_HYBRID = 15 };
extern const arch_gguf_row arch_gguf_hybrid[ARCH_GGUF_N_HYBRID]; /* the first ARCH_GGUF_N_DENSE: without experts */
lath_status arch_gguf_finish_qwen35(arch_gguf_reading *r);
lath_status arch_gguf_finish_qwen3next(arch_gguf_reading *r);

#endif
