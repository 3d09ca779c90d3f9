/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_gguf.c: metadata of GGUF files to configurations (arch_gguf.h). What a key means, and what is meant where it is absent, is as in llama.cpp
 * (its converters write these files, its loaders define the defaults) and in the description of the format (docs of ggml, gguf.md).
 */
#include "arch/arch_gguf_reading.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "store/gguf.h"

enum { KEY_MAX_LEN = 160 };

/* ------------------------------------------------------------------------------------------------------------------ tables */

const arch_gguf_row arch_gguf_common[] = {
    {"context_length", KEY_SIZE, "max_position_embeddings", true},
    {"embedding_length", KEY_SIZE, "hidden_size", true},
    {"block_count", KEY_SIZE, "num_hidden_layers", true},
    {"feed_forward_length", KEY_EACH, "intermediate_size", true},
    {"attention.head_count", KEY_EACH, "num_attention_heads", true},
    {"attention.head_count_kv", KEY_EACH, "num_key_value_heads", false},
    {"attention.key_length", KEY_READ, "head_dim", false},
    {"attention.value_length", KEY_READ, NULL, false},
    {"attention.layer_norm_rms_epsilon", KEY_REAL, "rms_norm_eps", true},
    {"attention.causal", KEY_FLAG, "is_causal", false},
    {"rope.dimension_count", KEY_READ, "partial_rotary_factor", false},
    {"rope.freq_base", KEY_READ, "rope_theta", false},
    {"rope.scaling.type", KEY_READ, "rope_type", false},
    {"rope.scaling.factor", KEY_READ, "factor", false},
    {"rope.scale_linear", KEY_READ, NULL, false}, /* its older name */
    {"rope.scaling.original_context_length", KEY_READ, "original_max_position_embeddings", false},
    {"rope.scaling.attn_factor", KEY_READ, NULL, false},
    {"rope.scaling.yarn_attn_factor", KEY_READ, NULL, false},
    {"rope.scaling.yarn_beta_fast", KEY_READ, "beta_fast", false},
    {"rope.scaling.yarn_beta_slow", KEY_READ, "beta_slow", false},
    {"rope.scaling.yarn_ext_factor", KEY_ONE, NULL, false},
    {"rope.scaling.yarn_log_multiplier", KEY_ZERO, NULL, false},
    {"rope.scaling.finetuned", KEY_NO_MATTER, NULL, false},
    {"vocab_size", KEY_NO_MATTER, NULL, false}, /* the table of embeddings says it */
    {"pooling_type", KEY_READ, NULL, false},
    {"use_parallel_residual", KEY_ZERO, NULL, false},
};

const size_t arch_gguf_n_common = sizeof(arch_gguf_common) / sizeof(arch_gguf_common[0]);

typedef struct arch_gguf_reading reading;
static lath_status finish_encoder(reading *r);
static lath_status finish_llama(reading *r);
static lath_status finish_qwen3moe(reading *r);
static lath_status finish_gemma2(reading *r);
static lath_status finish_gemma3(reading *r);
static lath_status finish_phi3(reading *r);
static lath_status finish_granite(reading *r);
static lath_status finish_smollm3(reading *r);

static const arch_gguf_row encoder_rows[] = {
    {"attention.layer_norm_epsilon", KEY_REAL, "layer_norm_eps", true},
    {"attention.layer_norm_rms_epsilon", KEY_NO_MATTER, NULL, false},
    {"attention.causal", KEY_ZERO, NULL, false},
};
static const arch_gguf_row llama_rows[] = {
    {"attention.sliding_window", KEY_READ, "sliding_window", false},
    {"tensor_data_layout", KEY_READ, NULL, false},
    {"expert_count", KEY_ZERO, NULL, false},
    {"expert_used_count", KEY_ZERO, NULL, false},
};
static const arch_gguf_row qwen3moe_rows[] = {
    {"expert_count", KEY_SIZE, "num_experts", true},
    {"expert_used_count", KEY_SIZE, "num_experts_per_tok", true},
    {"expert_feed_forward_length", KEY_EACH, "moe_intermediate_size", true},
};
static const arch_gguf_row gemma2_rows[] = {
    {"attention.sliding_window", KEY_SIZE, "sliding_window", false},
    {"attention.sliding_window_pattern", KEY_READ, "layer_types", false},
    {"attn_logit_softcapping", KEY_REAL, "attn_logit_softcapping", false},
    {"final_logit_softcapping", KEY_REAL, "final_logit_softcapping", false},
};
static const arch_gguf_row gemma3_rows[] = {
    {"attention.sliding_window", KEY_READ, "sliding_window", false},
    {"attention.sliding_window_pattern", KEY_READ, "layer_types", false},
    {"rope.freq_base_swa", KEY_READ, "rope_local_base_freq", false},
    {"final_logit_softcapping", KEY_REAL, "final_logit_softcapping", false},
};
static const arch_gguf_row phi3_rows[] = {{"attention.sliding_window", KEY_READ, "sliding_window", false}};
static const arch_gguf_row granite_rows[] = {
    {"logit_scale", KEY_REAL, "logits_scaling", true},
    {"residual_scale", KEY_REAL, "residual_multiplier", false},
    {"embedding_scale", KEY_REAL, "embedding_multiplier", false},
    {"attention.scale", KEY_READ, "attention_multiplier", false},
    {"rope.scaling.finetuned", KEY_ONE, NULL, false}, /* false: no rotation at all */
    {"expert_count", KEY_ZERO, NULL, false},
    {"expert_used_count", KEY_ZERO, NULL, false},
};

#define HYBRID_STORED (ARCH_STORED_WHOLE_NORMS | ARCH_STORED_DECAY)
#define ROWS(rows) (rows), sizeof(rows) / sizeof((rows)[0])
const arch_gguf_table arch_gguf_tables[] = {
    {"llama", "llama", "LlamaForCausalLM", "silu", ARCH_STORED_ROPE_PAIRS, ROWS(llama_rows), finish_llama},
    {"qwen2", "qwen2", "Qwen2ForCausalLM", "silu", 0, NULL, 0, NULL},
    {"qwen3", "qwen3", "Qwen3ForCausalLM", "silu", 0, NULL, 0, NULL},
    {"qwen3moe", "qwen3_moe", "Qwen3MoeForCausalLM", "silu", 0, ROWS(qwen3moe_rows), finish_qwen3moe},
    {"gemma2", "gemma2", "Gemma2ForCausalLM", "gelu_pytorch_tanh", ARCH_STORED_WHOLE_NORMS, ROWS(gemma2_rows),
     finish_gemma2},
    {"gemma3", "gemma3_text", "Gemma3ForCausalLM", "gelu_pytorch_tanh", ARCH_STORED_WHOLE_NORMS, ROWS(gemma3_rows),
     finish_gemma3},
    {"phi3", "phi3", "Phi3ForCausalLM", "silu", 0, ROWS(phi3_rows), finish_phi3},
    {"granite", "granite", "GraniteForCausalLM", "silu", ARCH_STORED_ROPE_PAIRS, ROWS(granite_rows), finish_granite},
    {"bert", "bert", "BertModel", "gelu", 0, ROWS(encoder_rows), finish_encoder},
    {"nomic-bert", "nomic_bert", "NomicBertModel", "silu", 0, ROWS(encoder_rows), finish_encoder},
    {"smollm3", "smollm3", "SmolLM3ForCausalLM", "silu", ARCH_STORED_ROPE_PAIRS, NULL, 0, finish_smollm3},
    {"qwen35", "qwen3_5_text", "Qwen3_5ForCausalLM", "silu", HYBRID_STORED | ARCH_STORED_TILED_HEADS, arch_gguf_hybrid,
     ARCH_GGUF_N_DENSE, arch_gguf_finish_qwen35},
    {"qwen35moe", "qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", "silu", HYBRID_STORED | ARCH_STORED_TILED_HEADS,
     arch_gguf_hybrid, ARCH_GGUF_N_HYBRID, arch_gguf_finish_qwen35},
    {"qwen3next", "qwen3_next", "Qwen3NextForCausalLM", "silu", HYBRID_STORED | ARCH_STORED_SPLIT_Z, arch_gguf_hybrid,
     ARCH_GGUF_N_HYBRID, arch_gguf_finish_qwen3next},
};
#undef ROWS
#undef HYBRID_STORED
const size_t arch_gguf_n_tables = sizeof(arch_gguf_tables) / sizeof(arch_gguf_tables[0]);

/* -------------------------------------------------------------------------------------------------------------- the reading */

const gguf_value *arch_key_get(const reading *r, const char *key)
{
    char full[KEY_MAX_LEN];
    snprintf(full, sizeof(full), "%s.%s", r->t->name, key);
    return gguf_get(r->g, full);
}

lath_status arch_key_bad(const reading *r, lath_status st, const char *key, const char *what)
{
    return err_set(r->err, st, "%s: key \"%s.%s\": %s", r->path, r->t->name, key, what);
}

const tensor *arch_key_tensor(const reading *r, const char *name)
{
    const tensor *t = NULL;
    return weights_find(r->w, name, &t, r->err) == LATH_OK ? t : NULL;
}

/* A whole number; *out stays where the key is absent. */
lath_status arch_key_size(const reading *r, const char *key, int64_t *out)
{
    const gguf_value *v = arch_key_get(r, key);
    if (!v) return LATH_OK;
    return gguf_whole(v, INT32_MAX, out)
               ? LATH_OK
               : arch_key_bad(r, LATH_ERR_FORMAT, key, "want a whole number from 0 to 2147483647");
}

/* The same, or the number that all layers have. */
static lath_status get_each(const reading *r, const char *key, int64_t *out)
{
    const gguf_value *v = arch_key_get(r, key);
    if (!v || v->kind != GGUF_ARRAY) return arch_key_size(r, key, out);
    const uint8_t *at = v->as.array.data;
    for (uint64_t i = 0; i < v->as.array.count; i++) {
        const gguf_value item = gguf_next(v, &at);
        int64_t n;
        if (!gguf_whole(&item, INT32_MAX, &n)) return arch_key_bad(r, LATH_ERR_FORMAT, key, "want whole numbers");
        if (i > 0 && n != *out)
            return arch_key_bad(r, LATH_ERR_UNSUPPORTED, key, "layers that differ are not supported");
        *out = n;
    }
    return v->as.array.count > 0 ? LATH_OK : arch_key_bad(r, LATH_ERR_FORMAT, key, "an empty array");
}

lath_status arch_key_real(const reading *r, const char *key, double *out)
{
    const gguf_value *v = arch_key_get(r, key);
    int64_t n;
    if (!v) return LATH_OK;
    if (v->kind == GGUF_F32 || v->kind == GGUF_F64)
        *out = v->as.f;
    else if (gguf_whole(v, INT32_MAX, &n))
        *out = (double)n;
    else
        return arch_key_bad(r, LATH_ERR_FORMAT, key, "want a number");
    return isfinite(*out) ? LATH_OK : arch_key_bad(r, LATH_ERR_FORMAT, key, "want a finite number");
}

/* ----------------------------------------------------------------------------------------------------------------- the tree */

json_value *arch_field_put(reading *r, json_value *into, const char *field, json_kind kind)
{
    json_value *v = arena_zero(r->mem, sizeof(*v));
    if (!v) {
        r->no_memory = true;
        r->lost = (json_value){.kind = JSON_OBJECT};
        return &r->lost;
    }
    v->kind = kind;
    v->key = field;
    v->key_len = field ? strlen(field) : 0;
    json_value **end = &into->u.items.first;
    while (*end) end = &(*end)->next;
    *end = v;
    into->u.items.count++;
    return v;
}

void arch_field_int(reading *r, json_value *into, const char *field, int64_t v)
{
    arch_field_put(r, into, field, JSON_INT)->u.integer = v;
}

void arch_field_real(reading *r, json_value *into, const char *field, double v)
{
    arch_field_put(r, into, field, JSON_REAL)->u.real = v;
}

void arch_field_flag(reading *r, const char *field, bool v)
{
    arch_field_put(r, r->config, field, JSON_BOOL)->u.boolean = v;
}

void arch_field_text(reading *r, json_value *into, const char *field, const char *text)
{
    json_value *v = arch_field_put(r, into, field, JSON_STRING);
    v->u.string.data = text;
    v->u.string.len = strlen(text);
}

/* ---------------------------------------------------------------------------------------------------------------- the keys */

static lath_status read_row(reading *r, const arch_gguf_row *k)
{
    const gguf_value *v = arch_key_get(r, k->key);
    int64_t n = 0;
    double x = 0;
    if (!v && k->required) return arch_key_bad(r, LATH_ERR_FORMAT, k->key, "is not there");
    if (!v) return LATH_OK;
    switch (k->kind) {
    case KEY_SIZE:
    case KEY_EACH:
        TRY(k->kind == KEY_SIZE ? arch_key_size(r, k->key, &n) : get_each(r, k->key, &n));
        arch_field_int(r, r->config, k->field, n);
        break;
    case KEY_REAL:
        TRY(arch_key_real(r, k->key, &x));
        arch_field_real(r, r->config, k->field, x);
        break;
    case KEY_FLAG:
        if (v->kind != GGUF_BOOL) return arch_key_bad(r, LATH_ERR_FORMAT, k->key, "want true or false");
        arch_field_flag(r, k->field, v->as.u != 0);
        break;
    case KEY_ZERO:
    case KEY_ONE:
        TRY(arch_key_real(r, k->key, &x));
        if (x != (k->kind == KEY_ONE))
            return arch_key_bad(r, LATH_ERR_UNSUPPORTED, k->key, "this value is not supported");
        break;
    case KEY_READ:
    case KEY_NO_MATTER: break;
    }
    return LATH_OK;
}

/* The row of a key's last part; its own rows hide common ones. */
static const arch_gguf_row *row_of(const arch_gguf_table *t, const char *key)
{
    for (size_t i = 0; i < t->n_rows; i++)
        if (strcmp(t->rows[i].key, key) == 0) return &t->rows[i];
    for (size_t i = 0; i < arch_gguf_n_common; i++)
        if (strcmp(arch_gguf_common[i].key, key) == 0) return &arch_gguf_common[i];
    return NULL;
}

static lath_status read_rows(reading *r)
{
    const size_t n = strlen(r->t->name);
    for (size_t i = 0; i < gguf_n_keys(r->g); i++) {
        const char *key = gguf_key_at(r->g, i)->key;
        if (strncmp(key, r->t->name, n) != 0 || key[n] != '.') continue;
        if (!row_of(r->t, key + n + 1))
            return err_set(r->err, LATH_ERR_UNSUPPORTED, "%s: key \"%.150s\" is not supported", r->path, key);
    }
    for (size_t i = 0; i < r->t->n_rows; i++) TRY(read_row(r, &r->t->rows[i]));
    for (size_t i = 0; i < arch_gguf_n_common; i++)
        if (row_of(r->t, arch_gguf_common[i].key) == &arch_gguf_common[i]) TRY(read_row(r, &arch_gguf_common[i]));
    return LATH_OK;
}

/* Rows of the table of embeddings; where that is missing, which is said when it is bound, the tokens'. */
static lath_status read_vocab(reading *r)
{
    const tensor *t = arch_key_tensor(r, "token_embd.weight");
    const gguf_value *tokens = gguf_get(r->g, "tokenizer.ggml.tokens");
    if (t && t->rank == 2)
        arch_field_int(r, r->config, "vocab_size", t->dim[0]);
    else if (tokens && tokens->kind == GGUF_ARRAY)
        arch_field_int(r, r->config, "vocab_size", (int64_t)tokens->as.array.count);
    else
        return err_set(r->err, LATH_ERR_FORMAT, "%s: no tensor \"token_embd.weight\"", r->path);
    return LATH_OK;
}

static bool turns_partly(const arch_gguf_table *t)
{
    return t->finish == finish_phi3 || t->finish == arch_gguf_finish_qwen35 || t->finish == arch_gguf_finish_qwen3next;
}

static lath_status read_heads(reading *r)
{
    int64_t key = 0, value = 0, turning = 0;
    TRY(arch_key_size(r, "block_count", &r->n_layers));
    TRY(get_each(r, "attention.head_count", &r->n_heads));
    TRY(arch_key_size(r, "embedding_length", &r->d_model));
    TRY(arch_key_size(r, "attention.key_length", &key));
    TRY(arch_key_size(r, "attention.value_length", &value));
    TRY(arch_key_size(r, "rope.dimension_count", &turning));
    const int64_t usual = r->n_heads && r->d_model % r->n_heads == 0 ? r->d_model / r->n_heads : 0;
    r->head_dim = key ? key : usual;
    if ((value ? value : usual) != r->head_dim)
        return arch_key_bad(r, LATH_ERR_UNSUPPORTED, "attention.value_length", "values of another size than keys");
    if (r->head_dim) arch_field_int(r, r->config, "head_dim", r->head_dim);
    if (!turning || turning == r->head_dim) return LATH_OK;
    if (turning > r->head_dim) return arch_key_bad(r, LATH_ERR_FORMAT, "rope.dimension_count", "more than a head has");
    if (!turns_partly(r->t))
        return arch_key_bad(r, LATH_ERR_UNSUPPORTED, "rope.dimension_count", "heads of which a part turns");
    /* Half a feature more: the product with head_dim is cut. */
    arch_field_real(r, r->config, "partial_rotary_factor", ((double)turning + 0.5) / (double)r->head_dim);
    return LATH_OK;
}

/* The numbers of a vector of the file as an array of the tree. */
static lath_status put_numbers(reading *r, json_value *into, const char *field, const tensor *t)
{
    if (t->rank != 1 || t->type != DTYPE_F32 || t->count > 1 << 12)
        return err_set(r->err, LATH_ERR_FORMAT, "%s: tensor \"%s\": want a vector of F32, at most 4096",
                       weights_file_of(r->w, t), t->name);
    json_value *list = arch_field_put(r, into, field, JSON_ARRAY);
    for (int64_t i = 0; i < t->count; i++) {
        float v;
        memcpy(&v, (const char *)t->data + 4 * i, 4);
        if (!(v > 0) || !isfinite(v))
            return err_set(r->err, LATH_ERR_FORMAT, "%s: tensor \"%s\": element %lld is not a number over 0",
                           weights_file_of(r->w, t), t->name, (long long)i);
        arch_field_real(r, list, NULL, (double)v);
    }
    weights_mark_used(r->w, t);
    return LATH_OK;
}

/* What a number is under "rope_scaling", where the file says it. */
static lath_status put_scaling(reading *r, json_value *scaling, const char *key, const char *field)
{
    double x = 0;
    if (!arch_key_get(r, key)) return LATH_OK;
    TRY(arch_key_real(r, key, &x));
    arch_field_real(r, scaling, field, x);
    return LATH_OK;
}

/* Frequencies of which each is divided by a number of the file: what llama3's scaling comes to. */
static lath_status put_factors(reading *r, const tensor *t)
{
    json_value *scaling = arch_field_put(r, r->config, "rope_scaling", JSON_OBJECT);
    arch_field_text(r, scaling, "rope_type", "factors");
    return put_numbers(r, scaling, "factors", t);
}

/* Two sets of factors, for texts up to the original length and for longer ones. */
static lath_status put_longrope(reading *r, const tensor *longer)
{
    int64_t original = 0;
    const tensor *shorter = arch_key_tensor(r, "rope_factors_short.weight");
    json_value *scaling = arch_field_put(r, r->config, "rope_scaling", JSON_OBJECT);
    if (!shorter) return err_set(r->err, LATH_ERR_FORMAT, "%s: no tensor \"rope_factors_short.weight\"", r->path);
    arch_field_text(r, scaling, "rope_type", "longrope");
    TRY(put_numbers(r, scaling, "long_factor", longer));
    TRY(put_numbers(r, scaling, "short_factor", shorter));
    TRY(put_scaling(r, scaling, "rope.scaling.attn_factor", "attention_factor"));
    TRY(arch_key_size(r, "rope.scaling.original_context_length", &original));
    if (original == 0) return arch_key_bad(r, LATH_ERR_FORMAT, "rope.scaling.original_context_length", "is not there");
    arch_field_int(r, r->config, "original_max_position_embeddings", original);
    return LATH_OK;
}

static lath_status put_yarn(reading *r, double factor)
{
    json_value *scaling = arch_field_put(r, r->config, "rope_scaling", JSON_OBJECT);
    arch_field_text(r, scaling, "rope_type", "yarn");
    arch_field_real(r, scaling, "factor", factor);
    TRY(put_scaling(r, scaling, "rope.scaling.original_context_length", "original_max_position_embeddings"));
    TRY(put_scaling(r, scaling, "rope.scaling.yarn_attn_factor", "attention_factor"));
    TRY(put_scaling(r, scaling, "rope.scaling.yarn_beta_fast", "beta_fast"));
    return put_scaling(r, scaling, "rope.scaling.yarn_beta_slow", "beta_slow");
}

static bool text_is(const gguf_value *v, const char *s)
{
    return v->as.text.len == strlen(s) && memcmp(v->as.text.data, s, v->as.text.len) == 0;
}

static lath_status put_linear(reading *r, double factor)
{
    json_value *scaling = arch_field_put(r, r->config, "rope_scaling", JSON_OBJECT);
    arch_field_text(r, scaling, "rope_type", "linear");
    arch_field_real(r, scaling, "factor", factor);
    return LATH_OK;
}

/* "rope.scaling.type" as one of these; NULL where the file does not say it. */
static lath_status read_rope_type(const reading *r, const char **out)
{
    static const char *const types[] = {"none", "linear", "yarn", "longrope"};
    static const char key[] = "rope.scaling.type";
    const gguf_value *v = arch_key_get(r, key);
    *out = NULL;
    if (!v) return LATH_OK;
    if (v->kind != GGUF_STRING) return arch_key_bad(r, LATH_ERR_FORMAT, key, "want a string");
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (text_is(v, types[i])) *out = types[i];
    if (*out) return LATH_OK;
    return err_set(r->err, LATH_ERR_UNSUPPORTED, "%s: key \"%s.%s\": \"%.*s\" is not supported", r->path, r->t->name,
                   key, (int)(v->as.text.len < 40 ? v->as.text.len : 40), v->as.text.data);
}

/* What no tensor of factors says. A file that gives a factor and no type means linear. */
static lath_status read_scaling(reading *r, const char *type, bool has_factors)
{
    double factor = 0, attention = 1;
    TRY(arch_key_real(r, "rope.scaling.attn_factor", &attention));
    if (attention != 1)
        return arch_key_bad(r, LATH_ERR_UNSUPPORTED, "rope.scaling.attn_factor", "this value is not supported");
    TRY(arch_key_real(r, "rope.scale_linear", &factor));
    TRY(arch_key_real(r, "rope.scaling.factor", &factor));
    if (factor == 0 || (type && strcmp(type, "none") == 0)) factor = 1;
    const bool yarn = type && strcmp(type, "yarn") == 0;
    if (has_factors && (yarn || factor != 1))
        return arch_key_bad(r, LATH_ERR_UNSUPPORTED, "rope.scaling.factor", "beside the tensor \"rope_freqs.weight\"");
    if (yarn) return put_yarn(r, factor);
    return factor == 1 ? LATH_OK : put_linear(r, factor);
}

static lath_status read_rope(reading *r)
{
    double base = 10000;
    const char *type;
    const tensor *factors = arch_key_tensor(r, "rope_freqs.weight"),
                 *longer = arch_key_tensor(r, "rope_factors_long.weight");
    TRY(arch_key_real(r, "rope.freq_base", &base));
    arch_field_real(r, r->config, "rope_theta", base);
    TRY(read_rope_type(r, &type));
    const bool longrope = type && strcmp(type, "longrope") == 0;
    if (longrope && !longer)
        return err_set(r->err, LATH_ERR_FORMAT, "%s: no tensor \"rope_factors_long.weight\"", r->path);
    if (longrope || (longer && !type)) return put_longrope(r, longer);
    TRY(read_scaling(r, type, factors != NULL));
    return factors ? put_factors(r, factors) : LATH_OK;
}

/* Biases are not told by keys: they are there or not. */
static void read_presence(reading *r)
{
    arch_field_flag(r, "tie_word_embeddings", !arch_key_tensor(r, "output.weight"));
    if (arch_key_tensor(r, "blk.0.attn_q.bias")) arch_field_flag(r, "attention_bias", true);
    if (arch_key_tensor(r, "blk.0.ffn_gate.bias")) arch_field_flag(r, "mlp_bias", true);
}

/* -------------------------------------------------------------------------------------------------------- of architectures */

/* The table of token types says how many there are; where it is missing, BERT's binding says so. */
static lath_status finish_encoder(reading *r)
{
    const tensor *t = arch_key_tensor(r, "token_types.weight");
    const bool has_positions = strcmp(r->t->name, "bert") == 0;
    arch_field_int(r, r->config, "type_vocab_size", t && t->rank == 2 ? t->dim[0] : has_positions);
    return LATH_OK;
}

/* The original layout is the one that all files have; Mistral's first models slide in every layer. */
static lath_status finish_llama(reading *r)
{
    const gguf_value *layout = arch_key_get(r, "tensor_data_layout");
    int64_t window = 0;
    if (layout && (layout->kind != GGUF_STRING || !text_is(layout, "Meta AI original pth")))
        return arch_key_bad(r, LATH_ERR_UNSUPPORTED, "tensor_data_layout", "this layout is not supported");
    TRY(arch_key_size(r, "attention.sliding_window", &window));
    if (window == 0) return LATH_OK;
    arch_field_int(r, r->config, "sliding_window", window);
    r->model_type = "mistral";
    return LATH_OK;
}

static lath_status finish_qwen3moe(reading *r)
{
    arch_field_flag(r, "norm_topk_prob", true); /* files do not say it; all models of this architecture have it */
    arch_field_int(r, r->config, "decoder_sparse_step", 1);
    return LATH_OK;
}

/* "attention.sliding_window_pattern": every n-th layer, from the n-th on, sees all; or a bool for each layer. slides false: all see all. */
static lath_status put_layer_types(reading *r, bool slides, int64_t pattern)
{
    static const char key[] = "attention.sliding_window_pattern";
    const gguf_value *v = arch_key_get(r, key);
    if (r->n_layers > 1024) return LATH_OK; /* parse() says so */
    const bool listed = v && v->kind == GGUF_ARRAY;
    if (!listed) TRY(arch_key_size(r, key, &pattern));
    if (listed && (v->as.array.kind != GGUF_BOOL || v->as.array.count != (uint64_t)r->n_layers))
        return arch_key_bad(r, LATH_ERR_FORMAT, key, "want a bool for each layer");
    const uint8_t *at = listed ? v->as.array.data : NULL;
    json_value *list = arch_field_put(r, r->config, "layer_types", JSON_ARRAY);
    for (int64_t i = 0; i < r->n_layers; i++) {
        const bool own = listed ? gguf_next(v, &at).as.u != 0 : pattern > 0 && (i + 1) % pattern != 0;
        arch_field_text(r, list, NULL, slides && own ? "sliding_attention" : "full_attention");
    }
    return LATH_OK;
}

/* What scores are scaled by: the head's size, but d_model / n_heads in the model of 27 billion, which is known by its layers. */
static void put_gemma_scale(reading *r, int64_t layers_of_27b)
{
    const bool large = r->n_layers == layers_of_27b && r->n_heads > 0;
    arch_field_int(r, r->config, "query_pre_attn_scalar", large ? r->d_model / r->n_heads : r->head_dim);
}

static lath_status finish_gemma2(reading *r)
{
    if (!arch_key_get(r, "attention.sliding_window")) arch_field_int(r, r->config, "sliding_window", 4096);
    if (!arch_key_get(r, "attn_logit_softcapping")) arch_field_real(r, r->config, "attn_logit_softcapping", 50);
    if (!arch_key_get(r, "final_logit_softcapping")) arch_field_real(r, r->config, "final_logit_softcapping", 30);
    put_gemma_scale(r, 46);
    return put_layer_types(r, true, 2);
}

static lath_status finish_gemma3(reading *r)
{
    int64_t window = 0;
    double local = 10000;
    TRY(arch_key_size(r, "attention.sliding_window", &window));
    TRY(arch_key_real(r, "rope.freq_base_swa", &local));
    if (window) arch_field_int(r, r->config, "sliding_window", window);
    arch_field_real(r, r->config, "rope_local_base_freq", local);
    put_gemma_scale(r, 62);
    return put_layer_types(r, window > 0, 6);
}

static lath_status finish_phi3(reading *r)
{
    int64_t window = 0;
    TRY(arch_key_size(r, "attention.sliding_window", &window));
    if (window) arch_field_int(r, r->config, "sliding_window", window);
    return LATH_OK;
}

static lath_status finish_granite(reading *r)
{
    double scale = 0;
    TRY(arch_key_real(r, "attention.scale", &scale));
    if (scale == 0 && r->head_dim > 0) scale = 1 / sqrt((double)r->head_dim);
    arch_field_real(r, r->config, "attention_multiplier", scale);
    return LATH_OK;
}

/* Every fourth layer does not turn. */
static lath_status finish_smollm3(reading *r)
{
    if (r->n_layers > 1024) return LATH_OK; /* parse() says so */
    json_value *list = arch_field_put(r, r->config, "no_rope_layers", JSON_ARRAY);
    for (int64_t i = 0; i < r->n_layers; i++) arch_field_int(r, list, NULL, (i + 1) % 4 != 0);
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------------- interface */

static lath_status find_table(reading *r)
{
    const gguf_value *type = gguf_get(r->g, "general.type"), *name = gguf_get(r->g, "general.architecture");
    if (!name || name->kind != GGUF_STRING)
        return err_set(r->err, LATH_ERR_FORMAT, "%s: no key \"general.architecture\", a string, in it", r->path);
    if (type && (type->kind != GGUF_STRING || !text_is(type, "model")))
        return err_set(r->err, LATH_ERR_UNSUPPORTED, "%s: key \"general.type\": only models are supported", r->path);
    for (size_t i = 0; i < arch_gguf_n_tables; i++)
        if (text_is(name, arch_gguf_tables[i].name) && arch_find(arch_gguf_tables[i].model_type))
            r->t = &arch_gguf_tables[i];
    if (r->t) return LATH_OK;
    char known[160] = "";
    size_t at = 0;
    for (size_t i = 0; i < arch_gguf_n_tables; i++)
        if (arch_find(arch_gguf_tables[i].model_type) && at < sizeof(known))
            at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s", at ? ", " : "", arch_gguf_tables[i].name);
    return err_set(r->err, LATH_ERR_UNSUPPORTED, "%s: general.architecture \"%.*s\" is not supported (there is: %s)",
                   r->path, (int)(name->as.text.len < 40 ? name->as.text.len : 40), name->as.text.data, known);
}

static lath_status read_pooling(const reading *r, arch_gguf_pooling *out)
{
    int64_t n = GGUF_POOL_UNSAID;
    TRY(arch_key_size(r, "pooling_type", &n));
    if (n > GGUF_POOL_LAST) return arch_key_bad(r, LATH_ERR_UNSUPPORTED, "pooling_type", "this value is not supported");
    *out = (arch_gguf_pooling)n;
    return LATH_OK;
}

lath_status arch_gguf_read(weights *w, arena *mem, arch_gguf *out, lath_error *err)
{
    const gguf *g = weights_gguf(w);
    json_value root = {.kind = JSON_OBJECT};
    reading r = {.w = w, .g = g, .path = gguf_file(g)->path, .mem = mem, .err = err};
    r.config = arena_zero(mem, sizeof(root));
    if (!r.config) return err_nomem(err, sizeof(root));
    *r.config = root;
    TRY(find_table(&r));
    r.model_type = r.t->model_type;
    r.stored = r.t->stored;
    arch_field_text(&r, arch_field_put(&r, r.config, "architectures", JSON_ARRAY), NULL, r.t->class_name);
    arch_field_text(&r, r.config, "hidden_act", r.t->activation);
    TRY(read_rows(&r));
    TRY(read_vocab(&r));
    TRY(read_heads(&r));
    TRY(read_rope(&r));
    read_presence(&r);
    if (r.t->finish) TRY(r.t->finish(&r));
    arch_field_text(&r, r.config, "model_type", r.model_type);
    if (r.no_memory) return err_nomem(err, sizeof(json_value));
    *out = (arch_gguf){.config = r.config, .model_type = r.model_type, .stored = r.stored, .table = r.t};
    return read_pooling(&r, &out->pooling);
}

static void explain_row(const arch_gguf_table *t, const arch_gguf_row *k, lath_error *err)
{
    char key[KEY_MAX_LEN];
    const char *at = k->field ? strstr(err->msg, k->field) : NULL;
    const size_t n = strlen(err->msg);
    if (!at) return;
    /* Not inside a longer name, and not a second time. */
    const char before = at > err->msg ? at[-1] : ' ', behind = at[strlen(k->field)];
    if ((before != ' ' && before != '"') || (behind != ' ' && behind != '"')) return;
    snprintf(key, sizeof(key), " (%s.%s)", t->name, k->key);
    if (!strstr(err->msg, key)) snprintf(err->msg + n, sizeof(err->msg) - n, "%s", key);
}

void arch_gguf_explain(const arch_gguf *g, lath_error *err)
{
    if (!err) return;
    for (size_t i = 0; i < g->table->n_rows; i++) explain_row(g->table, &g->table->rows[i], err);
    for (size_t i = 0; i < arch_gguf_n_common; i++) explain_row(g->table, &arch_gguf_common[i], err);
}
