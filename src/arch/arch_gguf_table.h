/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_gguf_table.h: the tables that say what metadata of GGUF files is in a config.json, for both directions: arch_gguf.c reads by them, arch_gguf_put.c
 * writes.
 */
#ifndef LATH_ARCH_GGUF_TABLE_H
#define LATH_ARCH_GGUF_TABLE_H

#include "arch/arch_gguf.h"

typedef enum arch_gguf_kind {
    KEY_SIZE,     /* a whole number */
    KEY_EACH,     /* a whole number, or one for each layer: they have to be equal */
    KEY_REAL,     /* a number */
    KEY_FLAG,     /* a bool */
    KEY_ZERO,     /* only 0, or false, is supported */
    KEY_ONE,      /* only 1, or true, is supported */
    KEY_READ,     /* by functions of its own */
    KEY_NO_MATTER /* says nothing that counts here */
} arch_gguf_kind;

/* A key behind "ARCHITECTURE.", and the field of config.json that says the same. */
typedef struct arch_gguf_row {
    const char *key;
    arch_gguf_kind kind;
    const char *field;
    bool required;
} arch_gguf_row;

struct arch_gguf_reading;

struct arch_gguf_table {
    const char *name;       /* general.architecture */
    const char *model_type; /* of config.json */
    const char *class_name; /* of "architectures" */
    const char *activation;
    uint32_t stored;
    const arch_gguf_row *rows; /* of its own, beside common_rows */
    size_t n_rows;
    lath_status (*finish)(struct arch_gguf_reading *r); /* what is not one key for one field; NULL: nothing */
};

extern const arch_gguf_row arch_gguf_common[];
extern const size_t arch_gguf_n_common;
extern const arch_gguf_table arch_gguf_tables[];
extern const size_t arch_gguf_n_tables;

#endif
