/* SPDX-License-Identifier: Apache-2.0
 * arch_config.c: see arch_config.h. */
#include "arch/arch_config.h"

#include <string.h>

const arch_size_keys arch_usual_keys = {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"};

lath_status arch_want_size(const json_value *c, const char *key, const char *name, int64_t most, int64_t *out,
                           lath_error *err)
{
    *out = 0;
    TRY(json_get_int(c, key, name, 1, most, out, err));
    return *out ? LATH_OK : err_set(err, LATH_ERR_FORMAT, "%s: no \"%s\" in it", name, key);
}

lath_status arch_read_sizes(const json_value *c, const char *name, const arch_size_keys *keys, int64_t most_positions,
                            arch_dims *out, lath_error *err)
{
    int64_t vocab, d, layers, heads, ff, positions;
    TRY(arch_want_size(c, "vocab_size", name, 1 << 24, &vocab, err));
    TRY(arch_want_size(c, keys->d_model, name, 1 << 16, &d, err));
    TRY(arch_want_size(c, keys->layers, name, 1024, &layers, err));
    TRY(arch_want_size(c, keys->heads, name, 1 << 12, &heads, err));
    TRY(arch_want_size(c, keys->d_ff, name, 1 << 18, &ff, err));
    TRY(arch_want_size(c, "max_position_embeddings", name, most_positions, &positions, err));
    *out = (arch_dims){
        .n_layers = (int32_t)layers,
        .n_heads = (int32_t)heads,
        .n_kv_heads = (int32_t)heads,
        .vocab_size = (int32_t)vocab,
        .max_positions = (int32_t)positions,
        .pad_id = -1,
        .d_model = d,
        .d_embed = d,
        .d_ff = ff,
        .head_dim = d % heads ? 0 : d / heads,
    };
    return LATH_OK;
}

lath_status arch_read_activation(arch_model *m, const json_value *c, const char *name, const char *key,
                                 const char *usual, kern_fn *out, lath_error *err)
{
    const char *act = usual;
    TRY(json_get_str(c, key, name, &act, err));
    if (!act) return err_set(err, LATH_ERR_FORMAT, "%s: no \"%s\" in it", name, key);
    if (!nn_activation(act, out))
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: %s \"%.60s\" is not supported", name, key, act);
    m->dims.activation = arena_strdup(m->mem, act, strlen(act));
    return m->dims.activation ? LATH_OK : err_nomem(err, strlen(act));
}

lath_status arch_read_eps(const json_value *c, const char *name, const char *key, double *eps, lath_error *err)
{
    TRY(json_get_real(c, key, name, eps, err));
    if (!(*eps >= 0 && *eps < 1)) return err_set(err, LATH_ERR_FORMAT, "%s: %s is out of range", name, key);
    return LATH_OK;
}

lath_status arch_read_flag(arch_model *m, const json_value *c, const char *name, const char *key, bool on, uint32_t bit,
                           lath_error *err)
{
    TRY(json_get_bool(c, key, name, &on, err));
    if (on) m->has |= bit;
    return LATH_OK;
}
