/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_bert_families.c: the families that run arch_bert.c's forward: where their weights are, and what their configurations say. Sources: the classes
 * of transformers 5.24.
 *
 *     bert            also MiniLM, BGE, E5, GTE and every other model whose config.json says so
 *     ernie           a fourth embedding, of the task, where use_task_id (Sun et al. 2020); the task is always 0
 *     electra         embeddings of their own width, projected (Clark et al. 2020)
 *     roberta, xlm-roberta, camembert, data2vec-text
 *                     positions begin behind pad_token_id, pad tokens take none (Liu et al. 2019)
 *     mpnet           the same positions behind pad id 1, no token types, a bias by distance (Song et al. 2020)
 *     distilbert      no token types (Sanh et al. 2019)
 */
#include <string.h>

#include "arch/arch_bert.h"
#include "arch/arch_config.h"

/* ------------------------------------------------------------------------------------------------------------- tables */

enum { HAS_TASKS = 1, HAS_PROJECT = 2 };

#define MODEL(field) offsetof(bert_model, field)
#define LAYER(field) offsetof(bert_layer, field)
/* y = W x + b: two rows. */
#define LINEAR(of, field, name, out, in, ...)                    \
    ARCH_MAT(of(field.w), name ".weight", out, in, __VA_ARGS__), \
        ARCH_VEC(of(field.bias), name ".bias", out, __VA_ARGS__)
/* A layer norm: two rows, under old names in files that were TensorFlow's first. */
#define NORM(of, field, name, d)                                           \
    ARCH_VEC(of(field.gamma), name ".weight", d, .hf_old = name ".gamma"), \
        ARCH_VEC(of(field.beta), name ".bias", d, .hf_old = name ".beta")
/* The same, with a name in GGUF files. */
#define LINEAR_GGUF(of, field, name, in_gguf, out, in)                         \
    ARCH_MAT(of(field.w), name ".weight", out, in, .gguf = in_gguf ".weight"), \
        ARCH_VEC(of(field.bias), name ".bias", out, .gguf = in_gguf ".bias")
#define NORM_GGUF(of, field, name, in_gguf, d)                                                        \
    ARCH_VEC(of(field.gamma), name ".weight", d, .hf_old = name ".gamma", .gguf = in_gguf ".weight"), \
        ARCH_VEC(of(field.beta), name ".bias", d, .hf_old = name ".beta", .gguf = in_gguf ".bias")

#define L "encoder.layer.{}."
static const arch_weight_row bert_rows[] = {
    ARCH_MAT(MODEL(word), "embeddings.word_embeddings.weight", ARCH_VOCAB, ARCH_D_EMBED, .gguf = "token_embd.weight"),
    ARCH_MAT(MODEL(position), "embeddings.position_embeddings.weight", ARCH_POSITIONS, ARCH_D_EMBED,
             .gguf = "position_embd.weight"),
    ARCH_MAT(MODEL(type), "embeddings.token_type_embeddings.weight", ARCH_TYPES, ARCH_D_EMBED,
             .gguf = "token_types.weight"),
    ARCH_MAT(MODEL(task), "embeddings.task_type_embeddings.weight", ARCH_TASKS, ARCH_D_EMBED, .when = HAS_TASKS),
    NORM_GGUF(MODEL, embed_norm, "embeddings.LayerNorm", "token_embd_norm", ARCH_D_EMBED),
    LINEAR(MODEL, project, "embeddings_project", ARCH_D_MODEL, ARCH_D_EMBED, .when = HAS_PROJECT),
    LINEAR_GGUF(LAYER, attn.q, L "attention.self.query", "blk.{}.attn_q", ARCH_D_MODEL, ARCH_D_MODEL),
    LINEAR_GGUF(LAYER, attn.k, L "attention.self.key", "blk.{}.attn_k", ARCH_D_MODEL, ARCH_D_MODEL),
    LINEAR_GGUF(LAYER, attn.v, L "attention.self.value", "blk.{}.attn_v", ARCH_D_MODEL, ARCH_D_MODEL),
    LINEAR_GGUF(LAYER, attn.o, L "attention.output.dense", "blk.{}.attn_output", ARCH_D_MODEL, ARCH_D_MODEL),
    NORM_GGUF(LAYER, attn_norm, L "attention.output.LayerNorm", "blk.{}.attn_output_norm", ARCH_D_MODEL),
    LINEAR_GGUF(LAYER, ffn.up, L "intermediate.dense", "blk.{}.ffn_up", ARCH_D_FF, ARCH_D_MODEL),
    LINEAR_GGUF(LAYER, ffn.down, L "output.dense", "blk.{}.ffn_down", ARCH_D_MODEL, ARCH_D_FF),
    NORM_GGUF(LAYER, ffn_norm, L "output.LayerNorm", "blk.{}.layer_output_norm", ARCH_D_MODEL),
};

static const arch_weight_row mpnet_rows[] = {
    ARCH_MAT(MODEL(word), "embeddings.word_embeddings.weight", ARCH_VOCAB, ARCH_D_EMBED),
    ARCH_MAT(MODEL(position), "embeddings.position_embeddings.weight", ARCH_POSITIONS, ARCH_D_EMBED),
    NORM(MODEL, embed_norm, "embeddings.LayerNorm", ARCH_D_EMBED),
    ARCH_MAT(MODEL(buckets), "encoder.relative_attention_bias.weight", ARCH_BUCKETS, ARCH_HEADS),
    LINEAR(LAYER, attn.q, L "attention.attn.q", ARCH_D_MODEL, ARCH_D_MODEL),
    LINEAR(LAYER, attn.k, L "attention.attn.k", ARCH_D_MODEL, ARCH_D_MODEL),
    LINEAR(LAYER, attn.v, L "attention.attn.v", ARCH_D_MODEL, ARCH_D_MODEL),
    LINEAR(LAYER, attn.o, L "attention.attn.o", ARCH_D_MODEL, ARCH_D_MODEL),
    NORM(LAYER, attn_norm, L "attention.LayerNorm", ARCH_D_MODEL),
    LINEAR(LAYER, ffn.up, L "intermediate.dense", ARCH_D_FF, ARCH_D_MODEL),
    LINEAR(LAYER, ffn.down, L "output.dense", ARCH_D_MODEL, ARCH_D_FF),
    NORM(LAYER, ffn_norm, L "output.LayerNorm", ARCH_D_MODEL),
};
#undef L

#define L "transformer.layer.{}."
static const arch_weight_row distilbert_rows[] = {
    ARCH_MAT(MODEL(word), "embeddings.word_embeddings.weight", ARCH_VOCAB, ARCH_D_EMBED),
    ARCH_MAT(MODEL(position), "embeddings.position_embeddings.weight", ARCH_POSITIONS, ARCH_D_EMBED),
    NORM(MODEL, embed_norm, "embeddings.LayerNorm", ARCH_D_EMBED),
    LINEAR(LAYER, attn.q, L "attention.q_lin", ARCH_D_MODEL, ARCH_D_MODEL),
    LINEAR(LAYER, attn.k, L "attention.k_lin", ARCH_D_MODEL, ARCH_D_MODEL),
    LINEAR(LAYER, attn.v, L "attention.v_lin", ARCH_D_MODEL, ARCH_D_MODEL),
    LINEAR(LAYER, attn.o, L "attention.out_lin", ARCH_D_MODEL, ARCH_D_MODEL),
    NORM(LAYER, attn_norm, L "sa_layer_norm", ARCH_D_MODEL),
    LINEAR(LAYER, ffn.up, L "ffn.lin1", ARCH_D_FF, ARCH_D_MODEL),
    LINEAR(LAYER, ffn.down, L "ffn.lin2", ARCH_D_MODEL, ARCH_D_FF),
    NORM(LAYER, ffn_norm, L "output_layer_norm", ARCH_D_MODEL),
};
#undef L

/* ------------------------------------------------------------------------------------------------------ configurations */

/* What would make another model of it. */
static lath_status refuse_variants(const json_value *c, const char *name, lath_error *err)
{
    const char *pos = "absolute";
    TRY(json_get_str(c, "position_embedding_type", name, &pos, err));
    if (strcmp(pos, "absolute") != 0)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: position_embedding_type \"%.60s\" is not supported", name, pos);
    bool decoder = false, cross = false;
    TRY(json_get_bool(c, "is_decoder", name, &decoder, err));
    TRY(json_get_bool(c, "add_cross_attention", name, &cross, err));
    if (decoder || cross)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: %s: a decoder of this family is not supported", name,
                       decoder ? "is_decoder" : "add_cross_attention");
    return LATH_OK;
}

/* The fields that all families have; positions from 0, no token types. */
static lath_status parse_common(arch_model *m, const json_value *c, const char *name, const arch_size_keys *k,
                                const char *activation, lath_error *err)
{
    bert_model *w = m->weights;
    arch_dims *d = &m->dims;
    TRY(arch_read_sizes(c, name, k, 1 << 20, d, err));
    if (d->head_dim == 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: %s %lld is no multiple of %s %d", name, k->d_model,
                       (long long)d->d_model, k->heads, d->n_heads);
    d->n_positions = d->max_positions;
    TRY(refuse_variants(c, name, err));
    w->eps = 1e-12;
    return arch_read_activation(m, c, name, activation, "gelu", &w->fn, err);
}

static lath_status read_eps(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    return arch_read_eps(c, name, "layer_norm_eps", &((bert_model *)m->weights)->eps, err);
}

/* Positions begin behind `pad`; pad tokens are all at `pad`. */
static lath_status begin_behind(arch_model *m, int64_t pad, const char *name, lath_error *err)
{
    arch_dims *d = &m->dims;
    if (pad + 1 >= d->n_positions)
        return err_set(err, LATH_ERR_FORMAT,
                       "%s: max_position_embeddings %d leaves no position behind pad_token_id %lld", name,
                       d->n_positions, (long long)pad);
    d->pad_id = (int32_t)pad;
    d->pos0 = (int32_t)pad + 1;
    d->max_positions = d->n_positions - d->pos0;
    return LATH_OK;
}

static lath_status parse_bert(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    int64_t types;
    TRY(parse_common(m, c, name, &arch_usual_keys, "hidden_act", err));
    TRY(arch_want_size(c, "type_vocab_size", name, 1 << 10, &types, err));
    m->dims.n_types = (int32_t)types;
    return read_eps(m, c, name, err);
}

static lath_status parse_roberta(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    int64_t pad = 1;
    const json_value *v = json_get(c, "pad_token_id");
    TRY(parse_bert(m, c, name, err));
    if (v && !json_present(v))
        return err_set(err, LATH_ERR_FORMAT, "%s: line %u: pad_token_id is null, but positions begin behind it", name,
                       v->line);
    TRY(json_get_int(c, "pad_token_id", name, 0, 1 << 20, &pad, err));
    return begin_behind(m, pad, name, err);
}

static lath_status parse_ernie(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    bool tasks = false;
    int64_t n = 3;
    TRY(parse_bert(m, c, name, err));
    TRY(json_get_bool(c, "use_task_id", name, &tasks, err));
    TRY(json_get_int(c, "task_type_vocab_size", name, 1, 1 << 10, &n, err));
    if (tasks) m->has |= HAS_TASKS;
    m->dims.n_tasks = (int32_t)n;
    return LATH_OK;
}

static lath_status parse_electra(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    TRY(parse_bert(m, c, name, err));
    TRY(arch_want_size(c, "embedding_size", name, 1 << 16, &m->dims.d_embed, err));
    if (m->dims.d_embed != m->dims.d_model) m->has |= HAS_PROJECT;
    return LATH_OK;
}

/* The reference takes pad id 1 and 32 buckets whatever config.json says; relative_attention_num_buckets is the table's
 * height only. */
static lath_status parse_mpnet(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    enum { PAD = 1, BUCKETS = 32 };
    int64_t buckets = BUCKETS;
    TRY(parse_common(m, c, name, &arch_usual_keys, "hidden_act", err));
    TRY(read_eps(m, c, name, err));
    TRY(json_get_int(c, "relative_attention_num_buckets", name, 1, 1 << 20, &buckets, err));
    if (buckets < BUCKETS)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: relative_attention_num_buckets %lld, want %d", name,
                       (long long)buckets, (int)BUCKETS);
    m->dims.n_buckets = (int32_t)buckets;
    return begin_behind(m, PAD, name, err);
}

/* The norms' eps is fixed. sinusoidal_pos_embds says how the position table was filled at first: the file has it either way. */
static lath_status parse_distilbert(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    static const arch_size_keys keys = {"dim", "n_layers", "n_heads", "hidden_dim"};
    bool sinusoidal = false;
    TRY(parse_common(m, c, name, &keys, "activation", err));
    return json_get_bool(c, "sinusoidal_pos_embds", name, &sinusoidal, err);
}

/* -------------------------------------------------------------------------------------------------------- descriptors */

static const char *const bert_prefixes[] = {"", "bert.", "model.", NULL};
static const char *const ernie_prefixes[] = {"", "ernie.", "model.", NULL};
static const char *const electra_prefixes[] = {"", "electra.", "model.", NULL};
static const char *const roberta_prefixes[] = {"", "roberta.", "model.", NULL};
static const char *const data2vec_prefixes[] = {"", "data2vec_text.", "model.", NULL};
static const char *const mpnet_prefixes[] = {"", "mpnet.", "model.", NULL};
static const char *const distilbert_prefixes[] = {"", "distilbert.", "model.", NULL};

BERT_FAMILY(arch_bert, "bert", bert_prefixes, parse_bert, bert_rows);
BERT_FAMILY(arch_ernie, "ernie", ernie_prefixes, parse_ernie, bert_rows);
BERT_FAMILY(arch_electra, "electra", electra_prefixes, parse_electra, bert_rows);
BERT_FAMILY(arch_roberta, "roberta", roberta_prefixes, parse_roberta, bert_rows);
BERT_FAMILY(arch_xlm_roberta, "xlm-roberta", roberta_prefixes, parse_roberta, bert_rows);
BERT_FAMILY(arch_camembert, "camembert", roberta_prefixes, parse_roberta, bert_rows);
BERT_FAMILY(arch_data2vec_text, "data2vec-text", data2vec_prefixes, parse_roberta, bert_rows);
BERT_FAMILY(arch_mpnet, "mpnet", mpnet_prefixes, parse_mpnet, mpnet_rows);
BERT_FAMILY(arch_distilbert, "distilbert", distilbert_prefixes, parse_distilbert, distilbert_rows);
