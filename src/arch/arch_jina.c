/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_jina.c: jina-embeddings-v3 as transformers 5 has it (Sturua et al. 2024): XLM-RoBERTa with rotary positions, which is arch_bert.c's forward with
 * names of its own. Its adapters, one a task, are to be merged into the weights: adapter_config.json beside them is refused where models are opened.
 */
#include "arch/arch_bert.h"
#include "arch/arch_config.h"
#include "arch/arch_rope.h"

#define MODEL(field) offsetof(bert_model, field)
#define LAYER(field) offsetof(bert_layer, field)
#define L "encoder.layers.{}."
static const arch_weight_row rows[] = {
    ARCH_MAT(MODEL(word), "embeddings.word_embeddings.weight", ARCH_VOCAB, ARCH_D_MODEL),
    ARCH_MAT(MODEL(type), "embeddings.token_type_embeddings.weight", ARCH_TYPES, ARCH_D_MODEL),
    ARCH_VEC(MODEL(embed_norm.gamma), "emb_ln.weight", ARCH_D_MODEL),
    ARCH_VEC(MODEL(embed_norm.beta), "emb_ln.bias", ARCH_D_MODEL),
    ARCH_MAT(LAYER(attn.q.w), L "mixer.Wqkv.weight", ARCH_D_Q, ARCH_D_MODEL, .stack = ARCH_QKV_Q),
    ARCH_VEC(LAYER(attn.q.bias), L "mixer.Wqkv.bias", ARCH_D_Q, .stack = ARCH_QKV_Q),
    ARCH_MAT(LAYER(attn.k.w), L "mixer.Wqkv.weight", ARCH_D_KV, ARCH_D_MODEL, .stack = ARCH_QKV_K),
    ARCH_VEC(LAYER(attn.k.bias), L "mixer.Wqkv.bias", ARCH_D_KV, .stack = ARCH_QKV_K),
    ARCH_MAT(LAYER(attn.v.w), L "mixer.Wqkv.weight", ARCH_D_KV, ARCH_D_MODEL, .stack = ARCH_QKV_V),
    ARCH_VEC(LAYER(attn.v.bias), L "mixer.Wqkv.bias", ARCH_D_KV, .stack = ARCH_QKV_V),
    ARCH_MAT(LAYER(attn.o.w), L "mixer.out_proj.weight", ARCH_D_MODEL, ARCH_D_Q),
    ARCH_VEC(LAYER(attn.o.bias), L "mixer.out_proj.bias", ARCH_D_MODEL),
    ARCH_VEC(LAYER(attn_norm.gamma), L "norm1.weight", ARCH_D_MODEL),
    ARCH_VEC(LAYER(attn_norm.beta), L "norm1.bias", ARCH_D_MODEL),
    ARCH_MAT(LAYER(ffn.up.w), L "mlp.fc1.weight", ARCH_D_FF, ARCH_D_MODEL),
    ARCH_VEC(LAYER(ffn.up.bias), L "mlp.fc1.bias", ARCH_D_FF),
    ARCH_MAT(LAYER(ffn.down.w), L "mlp.fc2.weight", ARCH_D_MODEL, ARCH_D_FF),
    ARCH_VEC(LAYER(ffn.down.bias), L "mlp.fc2.bias", ARCH_D_MODEL),
    ARCH_VEC(LAYER(ffn_norm.gamma), L "norm2.weight", ARCH_D_MODEL),
    ARCH_VEC(LAYER(ffn_norm.beta), L "norm2.bias", ARCH_D_MODEL),
};
#undef L

static lath_status parse(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    bert_model *w = m->weights;
    arch_dims *d = &m->dims;
    int64_t types, head_dim;
    TRY(arch_read_sizes(c, name, &arch_usual_keys, 1 << 24, d, err));
    TRY(arch_want_size(c, "type_vocab_size", name, 1 << 10, &types, err));
    d->n_types = (int32_t)types;
    head_dim = d->head_dim;
    TRY(json_get_int(c, "head_dim", name, 1, 1 << 16, &head_dim, err));
    if (head_dim == 0 || head_dim != d->head_dim || head_dim % 2 != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: hidden_size %lld are not num_attention_heads %d of %lld, in pairs",
                       name, (long long)d->d_model, d->n_heads, (long long)head_dim);
    TRY(arch_read_activation(m, c, name, "hidden_act", "gelu", &w->fn, err));
    w->eps = 1e-5;
    TRY(arch_read_eps(c, name, "layer_norm_eps", &w->eps, err));
    const arch_rope_spec spec = {.theta_key = "rope_theta",
                                 .scaled = true,
                                 .theta = 20000,
                                 .head_dim = head_dim,
                                 .max_positions = d->max_positions};
    return arch_rope_parse_whole(c, name, &spec, m->mem, &w->rope, err);
}

static const char *const prefixes[] = {"", "roberta.", NULL};

BERT_FAMILY(arch_jina, "jina_embeddings_v3", prefixes, parse, rows);
