/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_gguf_put.c: configurations to metadata of GGUF files (arch_gguf_put.h). Values are those of the parsed model, where defaults have been filled in;
 * a field that only its family knows is taken from config.json.
 */
#include "arch/arch_gguf_put.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "arch/arch_gguf_table.h"
#include "arch/arch_prenorm.h"

enum { KEY_MAX_LEN = 160 };

typedef struct putting {
    const arch_model *m;
    const prenorm_model *w;
    const json_value *config;
    const char *name;
    const arch_gguf_table *t;
    arena *mem;
    gguf_writer *out;
    arch_gguf_out *result;
    lath_error *err;
} putting;

static const char *full(const putting *p, const char *key, char out[KEY_MAX_LEN])
{
    snprintf(out, KEY_MAX_LEN, "%s.%s", p->t->name, key);
    return out;
}

static void put_size(const putting *p, const char *key, int64_t v)
{
    char name[KEY_MAX_LEN];
    gguf_put_u32(p->out, full(p, key, name), (uint32_t)v);
}

static void put_real(const putting *p, const char *key, double v)
{
    char name[KEY_MAX_LEN];
    gguf_put_f32(p->out, full(p, key, name), (float)v);
}

static void put_text(const putting *p, const char *key, const char *s)
{
    char name[KEY_MAX_LEN];
    gguf_put_text(p->out, full(p, key, name), s, strlen(s));
}

/* ------------------------------------------------------------------------------------------------------------- values */

/* What a field says; -1: not known here. */
static int64_t size_of(const putting *p, const char *field)
{
    const arch_dims *d = &p->m->dims;
    const struct {
        const char *field;
        int64_t value;
    } rows[] = {
        {"hidden_size", d->d_model},
        {"num_hidden_layers", d->n_layers},
        {"intermediate_size", json_present(json_get(p->config, "intermediate_size")) ? d->d_ff : -1},
        {"num_attention_heads", d->n_heads},
        {"num_key_value_heads", d->n_kv_heads},
        {"head_dim", d->head_dim},
        {"num_experts", d->n_experts},
        {"num_experts_per_tok", p->w->moe.top},
        {"moe_intermediate_size", d->d_expert},
        {"sliding_window", p->w->uses[PRENORM_SLIDING] ? p->w->reach + 1 : -1},
        {"shared_expert_intermediate_size", d->d_shared},
        {"linear_conv_kernel_dim", d->conv_width},
        {"linear_key_head_dim", d->d_k},
        {"linear_num_key_heads", d->n_k_heads},
        {"linear_num_value_heads", d->n_v_heads},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].field, field) == 0) return rows[i].value;
    const json_value *v = json_get(p->config, field);
    /* What scaling makes of it is said by its own keys. */
    if (!v && strcmp(field, "max_position_embeddings") == 0) return d->max_positions;
    return v && v->kind == JSON_INT && v->u.integer >= 0 && v->u.integer <= UINT32_MAX ? v->u.integer : -1;
}

/* False: not known here, or it is what readers take where there is none. */
static bool real_of(const putting *p, const char *field, double *out)
{
    const struct {
        const char *field;
        double value, usual;
    } rows[] = {
        {"rms_norm_eps", p->w->eps, -1},
        {"attn_logit_softcapping", (double)p->w->attn_softcap, 0},
        {"final_logit_softcapping", (double)p->m->lm_head.softcap, 0},
        {"logits_scaling", 1 / (double)p->m->lm_head.scale, -1},
        {"residual_multiplier", (double)p->w->residual_scale, 1},
        {"embedding_multiplier", (double)p->w->embed_scale, 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].field, field) != 0) continue;
        *out = rows[i].value;
        return rows[i].value != rows[i].usual;
    }
    return false;
}

/* A bool for each layer, true where it slides; nothing where that is what readers take it to be: all but every pattern-th. */
static lath_status put_pattern(const putting *p, const char *key, int32_t pattern)
{
    const int32_t n = p->m->dims.n_layers;
    bool usual = true, *slides = arena_array(p->mem, (size_t)n, sizeof(*slides));
    char name[KEY_MAX_LEN];
    if (!slides) return err_nomem(p->err, (size_t)n);
    for (int32_t i = 0; i < n; i++) {
        slides[i] = p->w->kinds[i] == PRENORM_SLIDING;
        usual &= slides[i] == ((i + 1) % pattern != 0);
    }
    if (!usual && p->w->uses[PRENORM_SLIDING]) gguf_put_array(p->out, full(p, key, name), GGUF_BOOL, slides, (size_t)n);
    return LATH_OK;
}

static lath_status put_row(const putting *p, const arch_gguf_row *r)
{
    char name[KEY_MAX_LEN];
    double x;
    if (!r->field) return LATH_OK;
    const int64_t n = size_of(p, r->field);
    const bool window = strcmp(r->field, "sliding_window") == 0;
    if (strcmp(r->field, "layer_types") == 0 && !p->w->recurs)
        return put_pattern(p, r->key, strcmp(p->t->name, "gemma2") == 0 ? 2 : 6);
    if ((r->kind == KEY_SIZE || r->kind == KEY_EACH || window) && n >= 0) put_size(p, r->key, n);
    if (r->kind == KEY_REAL && real_of(p, r->field, &x)) put_real(p, r->key, x);
    if (r->kind == KEY_FLAG && p->w->bidirectional) gguf_put_bool(p->out, full(p, r->key, name), false);
    if (strcmp(r->field, "rope_local_base_freq") == 0) put_real(p, r->key, p->w->ropes[PRENORM_SLIDING].theta);
    if (strcmp(r->field, "attention_multiplier") == 0) put_real(p, r->key, p->w->attn_scale);
    return LATH_OK;
}

/* How a picture's axes share the rotary pairs; the published models' where config.json does not say it. Readers of these files want it. */
static lath_status put_sections(const putting *p)
{
    int32_t sections[4] = {11, 11, 10, 0};
    size_t n = 0;
    char name[KEY_MAX_LEN];
    const json_value *rope = json_get(p->config, "rope_parameters");
    const json_value *list = json_get(rope ? rope : json_get(p->config, "rope_scaling"), "mrope_section");
    const bool listed = json_present(list) && list->kind == JSON_ARRAY;
    for (size_t i = 0; listed && i < 4; i++) sections[i] = 0;
    for (const json_value *v = listed ? list->u.items.first : NULL; v; v = v->next, n++) {
        if (n == 4 || v->kind != JSON_INT || v->u.integer < 0 || v->u.integer > INT32_MAX)
            return err_set(p->err, LATH_ERR_FORMAT, "%s: line %u: \"mrope_section\": want whole numbers, four at most",
                           p->name, list->line);
        sections[n] = (int32_t)v->u.integer;
    }
    gguf_put_array(p->out, full(p, "rope.dimension_sections", name), GGUF_I32, sections, 4);
    return LATH_OK;
}

/* What Qwen3.5 and Qwen3-Next have that is not one key for one field. */
static lath_status put_hybrid(const putting *p)
{
    const arch_dims *d = &p->m->dims;
    char name[KEY_MAX_LEN];
    int64_t interval = 4; /* as the reference's default */
    bool *recurs = arena_array(p->mem, (size_t)d->n_layers, sizeof(*recurs));
    if (!recurs) return err_nomem(p->err, (size_t)d->n_layers);
    for (int32_t i = 0; i < d->n_layers; i++) recurs[i] = p->w->kinds[i] == PRENORM_RECURS;
    put_size(p, "block_count", d->n_layers);
    put_size(p, "ssm.inner_size", d->n_v_heads * d->d_v);
    gguf_put_array(p->out, full(p, "attention.recurrent_layers", name), GGUF_BOOL, recurs, (size_t)d->n_layers);
    TRY(json_get_int(p->config, "full_attention_interval", p->name, 1, UINT32_MAX, &interval, p->err));
    put_size(p, "full_attention_interval", interval);
    return p->t->stored & ARCH_STORED_TILED_HEADS ? put_sections(p) : LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------ rotation */

static lath_status add_extra(const putting *p, const char *name, float *data, int64_t n)
{
    if (!data) return err_nomem(p->err, (size_t)n * sizeof(float));
    p->result->extra[p->result->n_extra++] = (arch_gguf_extra){name, data, (uint64_t)n};
    return LATH_OK;
}

/* What each frequency is divided by. */
static lath_status put_factors(const putting *p, const nn_rope *rope)
{
    const size_t n = (size_t)rope->n_pairs;
    float *plain = arena_array(p->mem, n, sizeof(float)), *factors = arena_array(p->mem, n, sizeof(float));
    if (!plain || !factors) return err_nomem(p->err, n * sizeof(float));
    nn_rope_frequencies(rope->theta, rope->n_pairs, plain);
    for (size_t i = 0; i < n; i++) factors[i] = plain[i] / rope->inv_freq[i];
    return add_extra(p, "rope_freqs.weight", factors, rope->n_pairs);
}

/* Numbers of an array of "rope_scaling". */
static lath_status put_list(const putting *p, const json_value *scaling, const char *field, const char *vector)
{
    const json_value *list = json_get(scaling, field);
    if (!list || list->kind != JSON_ARRAY) return LATH_OK; /* the model could not be opened */
    float *v = arena_array(p->mem, list->u.items.count, sizeof(float));
    size_t n = 0;
    for (const json_value *e = v ? list->u.items.first : NULL; e; e = e->next)
        v[n++] = e->kind == JSON_INT ? (float)e->u.integer : (float)e->u.real;
    return add_extra(p, vector, v, (int64_t)list->u.items.count);
}

static void put_scaled(const putting *p, const json_value *scaling, const char *field, const char *key)
{
    double x;
    const json_value *v = json_get(scaling, field);
    if (!json_present(v) || (v->kind != JSON_INT && v->kind != JSON_REAL)) return;
    x = v->kind == JSON_INT ? (double)v->u.integer : v->u.real;
    put_real(p, key, x);
}

static lath_status put_rope(const putting *p)
{
    static const char original[] = "original_max_position_embeddings";
    const nn_rope *rope = &p->w->ropes[PRENORM_FULL];
    const char *type;
    int64_t length = p->m->dims.max_positions;
    const json_value *scaling = arch_rope_scaling(p->config, "full_attention", &type);
    put_size(p, "rope.dimension_count", 2 * rope->n_pairs);
    put_real(p, "rope.freq_base", rope->theta);
    if (strcmp(type, "llama3") == 0) return put_factors(p, rope);
    if (strcmp(type, "dynamic") == 0)
        p->result->note = "\"dynamic\" scaling is not in the file: it counts for texts over max_position_embeddings";
    if (strcmp(type, "linear") == 0 || strcmp(type, "yarn") == 0) {
        put_text(p, "rope.scaling.type", type);
        put_scaled(p, scaling, "factor", "rope.scaling.factor");
    }
    TRY(json_get_int(p->config, original, p->name, 1, INT32_MAX, &length, p->err));
    TRY(json_get_int(scaling, original, p->name, 1, INT32_MAX, &length, p->err));
    if (strcmp(type, "yarn") == 0) {
        put_size(p, "rope.scaling.original_context_length", length);
        put_scaled(p, scaling, "beta_fast", "rope.scaling.yarn_beta_fast");
        put_scaled(p, scaling, "beta_slow", "rope.scaling.yarn_beta_slow");
    }
    if (strcmp(type, "longrope") != 0 && strcmp(type, "su") != 0) return LATH_OK;
    put_text(p, "rope.scaling.type", "longrope");
    put_size(p, "rope.scaling.original_context_length", length);
    put_real(p, "rope.scaling.attn_factor", (double)rope->scale);
    TRY(put_list(p, scaling, "long_factor", "rope_factors_long.weight"));
    return put_list(p, scaling, "short_factor", "rope_factors_short.weight");
}

/* ----------------------------------------------------------------------------------------------------------- interface */

static lath_status find_table(putting *p)
{
    const char *type = p->m->desc->name;
    static const struct {
        const char *type, *as;
    } others[] = {
        {"mistral", "llama"}, /* a window tells them apart */
        {"qwen3_5", "qwen3_5_text"},
        {"qwen3_5_moe", "qwen3_5_moe_text"},
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(type, others[i].type) == 0) type = others[i].as;
    for (size_t i = 0; i < arch_gguf_n_tables; i++)
        if (strcmp(arch_gguf_tables[i].model_type, type) == 0) p->t = &arch_gguf_tables[i];
    if (p->t && p->m->desc->forward == prenorm_forward) return LATH_OK;
    return err_set(p->err, LATH_ERR_UNSUPPORTED, "%s: model_type \"%s\" cannot be written as a GGUF file", p->name,
                   p->m->desc->name);
}

/* A row of the architecture's own hides one of the common ones. */
static bool is_hidden(const arch_gguf_table *t, const arch_gguf_row *common)
{
    for (size_t i = 0; i < t->n_rows; i++)
        if (strcmp(t->rows[i].key, common->key) == 0) return true;
    return false;
}

lath_status arch_gguf_put(const arch_model *m, const json_value *config, const char *name, arena *mem, gguf_writer *w,
                          arch_gguf_out *out, lath_error *err)
{
    putting p = {
        .m = m, .w = m->weights, .config = config, .name = name, .mem = mem, .out = w, .result = out, .err = err};
    TRY(find_table(&p));
    /* Of a model that sees images, too, the text part. */
    if (json_present(json_get(config, "text_config"))) p.config = json_get(config, "text_config");
    *out = (arch_gguf_out){.architecture = p.t->name, .stored = p.t->stored};
    gguf_put_text(w, "general.architecture", p.t->name, strlen(p.t->name));
    for (size_t i = 0; i < arch_gguf_n_common; i++)
        if (!is_hidden(p.t, &arch_gguf_common[i])) TRY(put_row(&p, &arch_gguf_common[i]));
    for (size_t i = 0; i < p.t->n_rows; i++) TRY(put_row(&p, &p.t->rows[i]));
    put_size(&p, "attention.key_length", m->dims.head_dim);
    put_size(&p, "attention.value_length", m->dims.head_dim);
    put_size(&p, "vocab_size", m->dims.vocab_size);
    if (p.w->recurs) TRY(put_hybrid(&p));
    return put_rope(&p);
}

/* Through an f32 and back. */
static bool near(double a, double b) { return fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b)); }

static bool same_rope(const nn_rope *a, const nn_rope *b)
{
    if (a->n_pairs != b->n_pairs || !near((double)a->scale, (double)b->scale)) return false;
    for (int64_t i = 0; i < a->n_pairs; i++)
        if (!near((double)a->inv_freq[i], (double)b->inv_freq[i])) return false;
    if (!a->long_freq != !b->long_freq) return false;
    for (int64_t i = 0; a->long_freq && i < a->n_pairs; i++)
        if (!near((double)a->long_freq[i], (double)b->long_freq[i])) return false;
    /* What "dynamic" scaling does to longer texts is not said: the file's limit is the length up to which it does nothing. */
    return a->trained == b->trained || (!a->long_freq && b->trained == 0);
}

/* Both kinds of layers turn as they did. */
static bool same_ropes(const prenorm_model *a, const prenorm_model *b)
{
    for (int k = 0; k < PRENORM_N_KINDS; k++) {
        const nn_rope *x = &a->ropes[a->one_rope ? PRENORM_FULL : k], *y = &b->ropes[b->one_rope ? PRENORM_FULL : k];
        if (a->uses[k] && !same_rope(x, y)) return false;
    }
    return true;
}

static bool same_experts(const arch_model *a, const arch_model *b)
{
    const prenorm_model *x = a->weights, *y = b->weights;
    for (int32_t i = 0; i < a->dims.n_layers; i++)
        if ((x->sparse && x->sparse[i]) != (y->sparse && y->sparse[i])) return false;
    return a->dims.n_experts == b->dims.n_experts && a->dims.d_expert == b->dims.d_expert &&
           a->dims.d_shared == b->dims.d_shared &&
           (!x->sparse || (x->moe.top == y->moe.top && x->moe.normalize == y->moe.normalize));
}

/* Delta nets: sizes of theirs, and the gate that attention has beside them. */
static bool same_delta(const arch_model *a, const arch_model *b)
{
    const arch_dims *x = &a->dims, *y = &b->dims;
    const prenorm_model *v = a->weights, *w = b->weights;
    return v->recurs == w->recurs && v->gated == w->gated && x->n_k_heads == y->n_k_heads &&
           x->n_v_heads == y->n_v_heads && x->d_k == y->d_k && x->d_v == y->d_v && x->conv_width == y->conv_width;
}

static bool same_turns(const prenorm_model *a, const prenorm_model *b, size_t layers)
{
    for (size_t i = 0; i < layers; i++)
        if ((a->unturned && a->unturned[i]) != (b->unturned && b->unturned[i])) return false;
    return true;
}

lath_status arch_gguf_compare(const arch_model *m, const arch_model *written, const char *name, lath_error *err)
{
    const arch_dims *a = &m->dims, *b = &written->dims;
    const prenorm_model *x = m->weights, *y = written->weights;
    const size_t layers = (size_t)a->n_layers;
    const nn_rope *rope = &x->ropes[PRENORM_FULL];
    const bool is_dynamic = rope->trained && !rope->long_freq; /* see same_rope */
    const bool sizes = a->n_layers == b->n_layers && a->n_heads == b->n_heads && a->n_kv_heads == b->n_kv_heads &&
                       a->vocab_size == b->vocab_size && (a->max_positions == b->max_positions || is_dynamic) &&
                       a->d_model == b->d_model && a->d_ff == b->d_ff && a->head_dim == b->head_dim;
    const struct {
        bool same;
        const char *what;
    } rows[] = {
        {sizes, "sizes"},
        {m->desc->forward == written->desc->forward, "the kind of blocks"},
        {x->norm_kind == y->norm_kind && near(x->eps, y->eps), "norms"},
        {near((double)x->embed_scale, (double)y->embed_scale), "the scale of embeddings"},
        {near((double)x->residual_scale, (double)y->residual_scale), "the scale of what blocks add"},
        {near(x->attn_scale, y->attn_scale), "the scale of attention"},
        {near((double)x->attn_softcap, (double)y->attn_softcap), "the cap of scores"},
        {x->fn == y->fn, "the activation"},
        {x->bidirectional == y->bidirectional, "attention that looks ahead"},
        {!sizes || memcmp(x->kinds, y->kinds, layers) == 0, x->recurs ? "which layers recur" : "which layers slide"},
        {same_delta(m, written), "delta nets"},
        {!x->uses[PRENORM_SLIDING] || x->reach == y->reach, "the sliding window"},
        {!sizes || same_turns(x, y, layers), "which layers turn"},
        {!sizes || same_experts(m, written), "which layers have experts and how these are chosen"},
        {same_ropes(x, y), "rotary frequencies"},
        {near((double)m->lm_head.scale, (double)written->lm_head.scale), "the scale of logits"},
        {near((double)m->lm_head.softcap, (double)written->lm_head.softcap), "the cap of logits"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!rows[i].same)
            return err_set(err, LATH_ERR_UNSUPPORTED, "%s: %s cannot be said in a GGUF file of this architecture", name,
                           rows[i].what);
    }
    return LATH_OK;
}
