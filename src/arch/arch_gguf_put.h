/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_gguf_put.h: the configuration of an open model as metadata of a GGUF file, by the tables that arch_gguf.c reads with; and the comparison of
 * two models, which says whether the metadata of a file that was written says the same as the directory that it came from. What such a file cannot
 * say comes out there: nothing is left out unseen.
 */
#ifndef LATH_ARCH_GGUF_PUT_H
#define LATH_ARCH_GGUF_PUT_H

#include "arch/arch_gguf.h"
#include "store/gguf_write.h"

enum { ARCH_GGUF_MAX_EXTRA = 2 };

/* A vector that a configuration becomes: factors of the rotary frequencies. */
typedef struct arch_gguf_extra {
    const char *name;
    const float *data; /* [n] */
    uint64_t n;
} arch_gguf_extra;

typedef struct arch_gguf_out {
    const char *architecture; /* general.architecture */
    uint32_t stored;          /* bits of arch_stored that the weights have to have */
    const char *note;         /* what only longer texts would show, or NULL */
    arch_gguf_extra extra[ARCH_GGUF_MAX_EXTRA];
    int32_t n_extra;
} arch_gguf_out;

/* Of a model whose config.json is `config`, called `name`: puts general.architecture and the keys behind it. Numbers are of `mem`.
 * LATH_ERR_UNSUPPORTED: no architecture of GGUF files is this one. */
lath_status arch_gguf_put(const arch_model *m, const json_value *config, const char *name, arena *mem, gguf_writer *w,
                          arch_gguf_out *out, lath_error *err);

/* `written` is what is read from the metadata that came of `m`. LATH_ERR_UNSUPPORTED names what differs. */
lath_status arch_gguf_compare(const arch_model *m, const arch_model *written, const char *name, lath_error *err);

#endif
