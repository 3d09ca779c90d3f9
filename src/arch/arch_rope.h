/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_rope.h: the frequencies of rotary embeddings, as configurations describe them. Both forms are read: "rope_parameters"
 * (by layer type or for all layers) and the older "rope_theta", "rope_scaling" and "partial_rotary_factor".
 */
#ifndef LATH_ARCH_ROPE_H
#define LATH_ARCH_ROPE_H

#include "base/json.h"
#include "nn/nn.h"

typedef struct arch_rope_spec {
    const char
        *layer_type; /* "full_attention", ...: the member of "rope_parameters"; NULL: models that tell none apart */
    const char *theta_key; /* top-level key of the base: "rope_theta" */
    bool scaled;           /* the older "rope_scaling" is about these layers */
    double theta;          /* the base where the configuration has none */
    double partial;        /* of each head, what turns where it does not say; 0: all */
    int64_t head_dim;
    int64_t max_positions; /* "max_position_embeddings" */
} arch_rope_spec;

/* Types: default, linear, dynamic, ntk (of "new" models), llama3, yarn, longrope ("su" in older files); factors, an array of what each frequency is
 * divided by (of GGUF files). Another one is LATH_ERR_UNSUPPORTED and named.
 * The numbers are kept in `mem`. */
lath_status arch_rope_parse(const json_value *config, const char *name, const arch_rope_spec *spec, arena *mem,
                            nn_rope *out, lath_error *err);

/* The same for families whose whole heads turn: LATH_ERR_UNSUPPORTED where only a part of them does. */
lath_status arch_rope_parse_whole(const json_value *config, const char *name, const arch_rope_spec *spec, arena *mem,
                                  nn_rope *out, lath_error *err);

/* The object that says how frequencies are scaled, of the layers that `layer_type` names; NULL: there is none. *type: "default" where it does not
 * say. */
const json_value *arch_rope_scaling(const json_value *config, const char *layer_type, const char **type);

/* n_pairs frequencies theta^(-2 i / (2 n_pairs)) (Su et al. 2021, 3.2.2), unscaled. */
lath_status arch_rope_init(arena *mem, double theta, int64_t n_pairs, nn_rope *out, lath_error *err);
/* Base and scaling leave frequencies that f32 holds: each turns, and the angle of every position is finite. `name`: of the file. */
lath_status arch_rope_check(const nn_rope *r, const char *name, lath_error *err);

#endif
