/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_gguf.h: the configuration of a model in a GGUF file. Its metadata says the same as config.json, under names of its own ("llama.block_count"); a
 * table for each architecture translates them into the tree that the family's parse() reads, so that a family has one parse() for both. What the
 * files have in another form than Hugging Face's is told by bits of `stored`.
 *
 * Refused, naming key and file: an architecture or a key that lath does not know, a value of the wrong type, layers of different sizes, conventions
 * that no family here has.
 */
#ifndef LATH_ARCH_GGUF_H
#define LATH_ARCH_GGUF_H

#include "arch/arch.h"

typedef struct arch_gguf_table arch_gguf_table;

/* general.architecture's pooling_type. */
typedef enum arch_gguf_pooling {
    GGUF_POOL_UNSAID = -1,
    GGUF_POOL_NONE,
    GGUF_POOL_MEAN,
    GGUF_POOL_CLS,
    GGUF_POOL_LAST
} arch_gguf_pooling;

typedef struct arch_gguf {
    const json_value *config; /* as of config.json */
    const char *model_type;   /* that arch_find knows, or would */
    uint32_t stored;          /* bits of arch_stored */
    arch_gguf_pooling pooling;
    const arch_gguf_table *table;
} arch_gguf;

/* Of a source that has a GGUF file. The tree is in `mem`, its strings may be the file's. */
lath_status arch_gguf_read(weights *w, arena *mem, arch_gguf *out, lath_error *err);
/* Puts the key of the file behind a message that names fields of the tree. */
void arch_gguf_explain(const arch_gguf *g, lath_error *err);

#endif
