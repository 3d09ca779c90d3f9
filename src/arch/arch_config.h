/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_config.h: what the configurations of many families have in common: sizes, activation, eps, kinds of layers. `name` leads messages.
 */
#ifndef LATH_ARCH_CONFIG_H
#define LATH_ARCH_CONFIG_H

#include "arch/arch.h"

/* Where a family's fields have names of their own. */
typedef struct arch_size_keys {
    const char *d_model, *layers, *heads, *d_ff;
} arch_size_keys;
extern const arch_size_keys
    arch_usual_keys; /* hidden_size, num_hidden_layers, num_attention_heads, intermediate_size */

/* A size that has to be there. Ceilings keep absurd numbers out of the arithmetic. */
lath_status arch_want_size(const json_value *config, const char *key, const char *name, int64_t most, int64_t *out,
                           lath_error *err);
/* vocab_size, max_position_embeddings (most_positions at most) and the sizes that `keys` name: n_kv_heads is n_heads, d_embed is d_model, head_dim
 * d_model / n_heads where that is whole, else 0; no table of positions, no types, no pad id. */
lath_status arch_read_sizes(const json_value *config, const char *name, const arch_size_keys *keys,
                            int64_t most_positions, arch_dims *out, lath_error *err);
/* The function that `key` names (`usual` where it is absent; NULL: it has to be there), and its name in m->dims. */
lath_status arch_read_activation(arch_model *m, const json_value *config, const char *name, const char *key,
                                 const char *usual, kern_fn *out, lath_error *err);
/* *eps stays where the key is absent. */
lath_status arch_read_eps(const json_value *config, const char *name, const char *key, double *eps, lath_error *err);
/* Sets `bit` of m->has where the flag is on; `on` where it is absent. */
lath_status arch_read_flag(arch_model *m, const json_value *config, const char *name, const char *key, bool on,
                           uint32_t bit, lath_error *err);

#endif
