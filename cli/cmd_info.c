/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_info.c: `lath info`: what a model is, what it weighs, what it will use here. The facts are gathered once (facts)
 * and printed twice: as a table or as JSON.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "lath/lath_vindex.h"
#include "lm.h"
#include "output.h"
#include "setup.h"

typedef struct facts {
    const lath_model *model;
    lath_model_info m;
    bool generates; /* a session of it can be made, as plan says */
    lath_session_plan plan;
    const char *isa;
    int32_t threads;
    const lath_vindex_info *index; /* of a model that is an index of features, or NULL */
} facts;

static lath_status gather(facts *f, const setup *s, const lath_vindex_info *index, lath_error *err)
{
    *f = (facts){.model = s->model,
                 .index = index,
                 .m = {.struct_size = sizeof(lath_model_info)},
                 .isa = lath_runtime_isa(s->rt),
                 .threads = lath_runtime_threads(s->rt)};
    TRY(lath_model_get_info(s->model, &f->m, err));
    const lath_session_options so = lm_session_options(s->o, s->o->ctx);
    f->plan.struct_size = sizeof(f->plan);
    const lath_status st = lath_session_get_plan(s->model, &so, &f->plan, err);
    f->generates = st == LATH_OK;
    return st == LATH_ERR_UNSUPPORTED && !s->o->ctx ? LATH_OK : st;
}

static const char *pooling_name(lath_pooling p)
{
    static const char *const names[] = {"auto", "cls",           "mean",          "last",
                                        "max",  "mean_sqrt_len", "weighted_mean", "concat"};
    return (size_t)p < sizeof(names) / sizeof(names[0]) ? names[p] : "other";
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

static void member(buf *b, const char *name, const char *value)
{
    buf_printf(b, "\"%s\":", name);
    if (value)
        json_put_string(b, value, strlen(value));
    else
        buf_str(b, "null");
    buf_char(b, ',');
}

static void number(buf *b, const char *name, uint64_t value)
{
    buf_printf(b, "\"%s\":%llu,", name, (unsigned long long)value);
}

/* What a session takes, and what conversations need. */
static void put_session(buf *b, const facts *f)
{
    const lath_session_plan *p = &f->plan;
    number(b, "kv_heads", (uint64_t)p->n_kv_heads);
    number(b, "head_dim", (uint64_t)p->head_dim);
    buf_printf(b, "\"output_head\":{\"tied\":%s,\"bytes\":%llu},", p->tied ? "true" : "false",
               (unsigned long long)f->m.head_bytes);
    buf_str(b, "\"session\":{");
    number(b, "ctx", (uint64_t)p->ctx);
    number(b, "most", (uint64_t)p->most);
    number(b, "kv_bytes", p->kv_bytes);
    number(b, "work_bytes", p->work_bytes);
    number(b, "recurrent_layers", (uint64_t)p->n_recurrent);
    number(b, "recurrent_bytes", p->recurrent_bytes);
    number(b, "snapshots", (uint64_t)p->n_snapshots);
    number(b, "snapshot_bytes", p->snapshot_bytes);
    number(b, "token_bytes", p->token_bytes);
    number(b, "far_token_bytes", p->far_bytes);
    number(b, "window_layers", (uint64_t)p->n_windows);
    buf_printf(b, "\"sliding_window\":%d},", (int)p->window);
    buf_printf(b, "\"chat_template\":%s,\"end_ids\":[", f->m.chat_template ? "true" : "false");
    for (int32_t i = 0; i < f->m.n_end_ids; i++) buf_printf(b, "%s%d", i > 0 ? "," : "", (int)f->m.end_ids[i]);
    buf_str(b, "],");
    member(b, "products", f->m.integer_products ? "int8" : "f32");
}

static lath_status put_prompts(buf *b, const facts *f, lath_error *err)
{
    buf_str(b, "\"prompts\":{");
    for (int32_t i = 0; i < f->m.n_prompts; i++) {
        const char *name, *text;
        TRY(lath_model_get_prompt(f->model, i, &name, &text, err));
        if (i > 0) buf_char(b, ',');
        json_put_string(b, name, strlen(name));
        buf_char(b, ':');
        json_put_string(b, text, strlen(text));
    }
    buf_str(b, "},");
    return LATH_OK;
}

static lath_status put_labels(buf *b, const facts *f, lath_error *err)
{
    buf_str(b, "\"labels\":[");
    for (int32_t i = 0; i < f->m.n_labels; i++) {
        const char *name;
        TRY(lath_model_get_label(f->model, i, &name, err));
        if (i > 0) buf_char(b, ',');
        json_put_string(b, name, strlen(name));
    }
    buf_str(b, "],");
    return LATH_OK;
}

static lath_status put_dtypes(buf *b, const facts *f, lath_error *err)
{
    buf_str(b, "\"dtypes\":{");
    for (int32_t i = 0; i < f->m.n_dtypes; i++) {
        lath_dtype_info d;
        TRY(lath_model_get_dtype(f->model, i, &d, err));
        buf_printf(b, "%s\"%s\":{\"tensors\":%d,\"params\":%llu,\"bytes\":%llu}", i > 0 ? "," : "", d.dtype,
                   (int)d.n_tensors, (unsigned long long)d.n_params, (unsigned long long)d.bytes);
    }
    buf_str(b, "},");
    return LATH_OK;
}

static lath_status put_tensors(buf *b, const facts *f, lath_error *err)
{
    buf_str(b, ",\"tensor_list\":[");
    for (int32_t i = 0; i < f->m.n_tensors; i++) {
        lath_tensor_info t;
        TRY(lath_model_get_tensor(f->model, i, &t, err));
        buf_str(b, i > 0 ? ",{" : "{");
        member(b, "name", t.name);
        member(b, "dtype", t.dtype);
        buf_str(b, "\"shape\":[");
        for (int32_t k = 0; k < t.rank; k++) buf_printf(b, "%s%lld", k ? "," : "", (long long)t.shape[k]);
        buf_printf(b, "],\"bytes\":%llu,\"used\":%s}", (unsigned long long)t.bytes, t.used ? "true" : "false");
    }
    buf_char(b, ']');
    return LATH_OK;
}

static lath_status put_unused(buf *b, const facts *f, lath_error *err)
{
    buf_str(b, "\"unused\":{");
    for (int32_t i = 0; i < f->m.n_unused_groups; i++) {
        lath_unused_info u;
        TRY(lath_model_get_unused(f->model, i, &u, err));
        buf_printf(b, "%s\"%s\":%d", i > 0 ? "," : "", u.what, (int)u.n_tensors);
    }
    buf_str(b, "},");
    return LATH_OK;
}

/* inference_config.json; null is what it does not say and what has no default. */
static void put_inference(buf *b, const lath_model_info *m)
{
    buf_str(b, "\"inference_config\":{\"eos_token_id\":");
    if (m->eos_token_id >= 0)
        buf_printf(b, "%d", (int)m->eos_token_id);
    else
        buf_str(b, "null");
    buf_str(b, ",\"rope_table_max_seq_len\":");
    if (m->rope_table_max_seq_len > 0)
        buf_printf(b, "%d", (int)m->rope_table_max_seq_len);
    else
        buf_str(b, "null");
    buf_printf(b, ",\"gpu_max_seq_len\":%d},", (int)m->gpu_max_seq_len);
}

static const char *level_name(lath_vindex_level level)
{
    static const char *const names[] = {"browse", "attention", "inference", "all"};
    return names[level];
}

static void put_index(buf *b, const lath_vindex_info *x)
{
    buf_str(b, "\"index\":{");
    member(b, "level", level_name(x->level));
    member(b, "dtype", x->dtype);
    member(b, "source", x->source);
    member(b, "model_type", x->model_type);
    number(b, "layers", (uint64_t)x->n_layers);
    number(b, "features", x->features);
    number(b, "row_bytes", x->row_bytes);
    number(b, "bytes", x->bytes);
    number(b, "never_read_tensors", (uint64_t)x->ffn_tensors);
    buf_printf(b, "\"never_read_bytes\":%llu,\"saved_bytes\":%lld}", (unsigned long long)x->ffn_bytes,
               (long long)(x->ffn_bytes - x->row_bytes));
}

static lath_status print_json(buf *b, const facts *f, bool tensors, lath_error *err)
{
    const lath_model_info *m = &f->m;
    buf_char(b, '{');
    if (f->index) put_index(b, f->index);
    if (f->index) buf_char(b, ',');
    member(b, "architecture", m->architecture);
    member(b, "kind", m->kind);
    member(b, "class", m->class_name);
    member(b, "path", m->path);
    member(b, "activation", m->activation);
    number(b, "layers", (uint64_t)m->n_layers);
    number(b, "heads", (uint64_t)m->n_heads);
    number(b, "d_model", (uint64_t)m->d_model);
    number(b, "d_ff", (uint64_t)m->d_ff);
    if (m->n_experts) {
        number(b, "experts", (uint64_t)m->n_experts);
        number(b, "experts_per_token", (uint64_t)m->n_top_experts);
        number(b, "d_expert", (uint64_t)m->d_expert);
    }
    number(b, "vocab_size", (uint64_t)m->vocab_size);
    number(b, "max_tokens", (uint64_t)m->max_tokens);
    if (m->n_labels) {
        TRY(put_labels(b, f, err));
        member(b, "score_activation", m->score_activation);
    } else {
        number(b, "d_embedding", (uint64_t)m->d_embedding);
        member(b, "pooling", pooling_name(m->pooling));
        buf_printf(b, "\"normalized\":%s,", m->normalized ? "true" : "false");
    }
    if (f->generates) put_session(b, f);
    member(b, "weights_dtype", m->weights);
    TRY(put_dtypes(b, f, err));
    number(b, "params", m->n_params);
    number(b, "tensors", (uint64_t)m->n_tensors);
    number(b, "unused_tensors", (uint64_t)m->n_unused);
    TRY(put_unused(b, f, err));
    number(b, "file_bytes", m->file_bytes);
    number(b, "private_bytes", m->private_bytes);
    number(b, "batch_bytes", m->batch_bytes);
    member(b, "isa", f->isa);
    number(b, "threads", (uint64_t)f->threads);
    TRY(put_prompts(b, f, err));
    member(b, "default_prompt", m->default_prompt);
    put_inference(b, m);
    buf_printf(b, "\"fingerprint\":\"%016llx%016llx\"", (unsigned long long)m->fingerprint[1],
               (unsigned long long)m->fingerprint[0]);
    if (tensors) TRY(put_tensors(b, f, err));
    buf_str(b, "}\n");
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------ table */

static void row(buf *b, const char *name, const char *fmt, ...) ERR_PRINTF(3, 4);
static void row(buf *b, const char *name, const char *fmt, ...)
{
    char value[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(value, sizeof(value), fmt, ap);
    va_end(ap);
    buf_printf(b, "%-16s %s\n", name, value);
}

/* "90.9 MB" and the like, powers of ten. */
static const char *size_text(uint64_t bytes, char out[24])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double v = (double)bytes;
    size_t u = 0;
    while (v >= 1000 && u + 1 < sizeof(units) / sizeof(units[0])) {
        v /= 1000;
        u++;
    }
    snprintf(out, 24, u == 0 ? "%.0f %s" : "%.1f %s", v, units[u]);
    return out;
}

static lath_status table_prompts(buf *b, const facts *f, lath_error *err)
{
    for (int32_t i = 0; i < f->m.n_prompts; i++) {
        const char *name, *text;
        TRY(lath_model_get_prompt(f->model, i, &name, &text, err));
        const bool is_default = f->m.default_prompt && strcmp(f->m.default_prompt, name) == 0;
        buf_printf(b, "%-16s %s%s: ", i == 0 ? "prompts" : "", name, is_default ? " (default)" : "");
        json_put_string(b, text, strlen(text));
        buf_char(b, '\n');
    }
    return LATH_OK;
}

/* Where inference_config.json says something. */
static void table_inference(buf *b, const lath_model_info *m)
{
    char eos[24] = "the tokenizer's", rope[24] = "no limit";
    if (m->eos_token_id < 0 && m->rope_table_max_seq_len == 0 && m->gpu_max_seq_len == 2048) return;
    if (m->eos_token_id >= 0) snprintf(eos, sizeof(eos), "%d", (int)m->eos_token_id);
    if (m->rope_table_max_seq_len > 0) snprintf(rope, sizeof(rope), "%d tokens", (int)m->rope_table_max_seq_len);
    row(b, "inference", "end token %s, rope table %s, on a GPU up to %d tokens", eos, rope, (int)m->gpu_max_seq_len);
}

static lath_status table_labels(buf *b, const facts *f, lath_error *err)
{
    buf_printf(b, "%-16s %d label%s (", "score", (int)f->m.n_labels, f->m.n_labels == 1 ? "" : "s");
    for (int32_t i = 0; i < f->m.n_labels; i++) {
        const char *name;
        TRY(lath_model_get_label(f->model, i, &name, err));
        buf_printf(b, "%s%s", i > 0 ? ", " : "", name);
    }
    buf_printf(b, "), activation %s\n", f->m.score_activation ? f->m.score_activation : "not declared");
    return LATH_OK;
}

/* Where there is more than one. */
static lath_status table_dtypes(buf *b, const facts *f, lath_error *err)
{
    for (int32_t i = 0; i < f->m.n_dtypes && f->m.n_dtypes > 1; i++) {
        lath_dtype_info d;
        char size[24];
        TRY(lath_model_get_dtype(f->model, i, &d, err));
        row(b, i == 0 ? "dtypes" : "", "%-6s %4d tensors, %.1f M parameters, %s", d.dtype, (int)d.n_tensors,
            (double)d.n_params / 1e6, size_text(d.bytes, size));
    }
    return LATH_OK;
}

/* What the tensors are of that are not used, as far as that is known. */
static lath_status table_unused(buf *b, const facts *f, lath_error *err)
{
    int32_t rest = f->m.n_unused;
    if (f->m.n_unused_groups == 0) return LATH_OK;
    buf_printf(b, "%-16s ", "not used");
    for (int32_t i = 0; i < f->m.n_unused_groups; i++) {
        lath_unused_info u;
        TRY(lath_model_get_unused(f->model, i, &u, err));
        buf_printf(b, "%s%d of the %s", i > 0 ? ", " : "", (int)u.n_tensors, u.what);
        rest -= u.n_tensors;
    }
    if (rest > 0) buf_printf(b, ", %d more", (int)rest);
    buf_char(b, '\n');
    return LATH_OK;
}

static lath_status table_tensors(buf *b, const facts *f, lath_error *err)
{
    buf_char(b, '\n');
    for (int32_t i = 0; i < f->m.n_tensors; i++) {
        lath_tensor_info t;
        char size[24];
        TRY(lath_model_get_tensor(f->model, i, &t, err));
        buf_printf(b, "%-6s %-6s %10s  %s [", t.used ? "used" : "unused", t.dtype, size_text(t.bytes, size), t.name);
        for (int32_t k = 0; k < t.rank; k++) buf_printf(b, "%s%lld", k ? ", " : "", (long long)t.shape[k]);
        buf_str(b, "]\n");
    }
    return LATH_OK;
}

static void table_ends(buf *b, const facts *f)
{
    const lath_tokenizer *tok = lath_model_tokenizer(f->model);
    buf_printf(b, "%-16s %s; ", "conversation", f->m.chat_template ? "chat template" : "no chat template");
    buf_str(b, f->m.n_end_ids ? "a text ends at " : "no token ends a text");
    for (int32_t i = 0; i < f->m.n_end_ids; i++) {
        const char *text = lath_tokenizer_token(tok, f->m.end_ids[i]);
        buf_printf(b, "%s%d", i > 0 ? ", " : "", (int)f->m.end_ids[i]);
        if (!text) continue;
        buf_char(b, ' ');
        json_put_string(b, text, strlen(text));
    }
    buf_char(b, '\n');
}

static void table_session(buf *b, const facts *f)
{
    const lath_session_plan *p = &f->plan;
    char kv[24], work[24], token[24], far[24];
    char windows[96] = "";
    if (p->n_windows)
        snprintf(windows, sizeof(windows), "; %d layers see %d tokens", (int)p->n_windows, (int)p->window);
    row(b, "attention", "%d head%s of keys and values, %d features%s", (int)p->n_kv_heads,
        p->n_kv_heads == 1 ? "" : "s", (int)p->head_dim, windows);
    row(b, "output head", "%s, %s", p->tied ? "the embeddings (tied)" : "a matrix of its own",
        size_text(f->m.head_bytes, work));
    row(b, "context", "%d of %d tokens: %s of keys and values, %s of work", (int)p->ctx, (int)p->most,
        size_text(p->kv_bytes, kv), size_text(p->work_bytes, work));
    if (p->n_windows)
        row(b, "a token", "%s of keys and values, beyond the sliding window %s", size_text(p->token_bytes, token),
            size_text(p->far_bytes, far));
    else
        row(b, "a token", "%s of keys and values", size_text(p->token_bytes, token));
    if (p->n_recurrent)
        row(b, "state", "%s in %d layers, %s for %d snapshots", size_text(p->recurrent_bytes, kv), (int)p->n_recurrent,
            size_text(p->snapshot_bytes, work), (int)p->n_snapshots);
    table_ends(b, f);
}

static void table_index(buf *b, const lath_vindex_info *x)
{
    char a[24], c[24];
    row(b, "index", "level %s of %s, %s in files", level_name(x->level), x->source, size_text(x->bytes, a));
    row(b, "features", "%llu in %d layers, %s, rows of %s", (unsigned long long)x->features, (int)x->n_layers, x->dtype,
        size_text(x->row_bytes, a));
    row(b, "never read", "%d FFN tensors of the model, %s", (int)x->ffn_tensors, size_text(x->ffn_bytes, a));
    if (x->ffn_bytes >= x->row_bytes)
        row(b, "saved", "%s: rows that are walked in the place of the tensors",
            size_text(x->ffn_bytes - x->row_bytes, c));
    else
        row(b, "saved", "nothing: the rows take %s more than the tensors", size_text(x->row_bytes - x->ffn_bytes, c));
}

static lath_status print_table(buf *b, const facts *f, bool tensors, lath_error *err)
{
    const lath_model_info *m = &f->m;
    char a[24], c[24], d[24];
    if (f->index) table_index(b, f->index);
    row(b, "architecture", "%s", m->architecture);
    row(b, "kind", "%s%s%s%s", m->kind, m->class_name ? " (" : "", m->class_name ? m->class_name : "",
        m->class_name ? ")" : "");
    row(b, "path", "%s", m->path);
    row(b, "layers", "%d of %d heads, width %lld, feed-forward %lld (%s)", (int)m->n_layers, (int)m->n_heads,
        (long long)m->d_model, (long long)m->d_ff, m->activation);
    if (m->n_experts)
        row(b, "experts", "%d a layer, width %lld, a token goes through %d", (int)m->n_experts, (long long)m->d_expert,
            (int)m->n_top_experts);
    row(b, "vocabulary", "%d", (int)m->vocab_size);
    row(b, "window", "%d tokens", (int)m->max_tokens);
    if (f->generates) table_session(b, f);
    if (m->n_labels)
        TRY(table_labels(b, f, err));
    else
        row(b, "vector", "%lld numbers, pooling %s, %s", (long long)m->d_embedding, pooling_name(m->pooling),
            m->normalized ? "length 1" : "not normalised");
    TRY(table_prompts(b, f, err));
    table_inference(b, m);
    row(b, "weights", "%s, %.1f M parameters, %d tensors (%d unused), %s in files", m->weights,
        (double)m->n_params / 1e6, (int)m->n_tensors, (int)m->n_unused, size_text(m->file_bytes, a));
    TRY(table_unused(b, f, err));
    TRY(table_dtypes(b, f, err));
    row(b, "memory", "files mapped, beside them %s for the model and %s for a full batch",
        size_text(m->private_bytes, c), size_text(m->batch_bytes, d));
    row(b, "kernels", "%s, %d thread%s%s", f->isa, (int)f->threads, f->threads == 1 ? "" : "s",
        m->integer_products ? "; sessions multiply in 8-bit integers (--precision exact: in floats)" : "");
    return tensors ? table_tensors(b, f, err) : LATH_OK;
}

/* *x: the index of features that the model is, or NULL. */
static lath_status look(const setup *s, lath_vindex **x, lath_vindex_info *info, lath_error *err)
{
    buf path;
    buf_init(&path, alloc_default(), 1 << 16);
    file_join(&path, buf_cstr((buf *)&s->path), "index.json");
    const bool is_index = file_exists(buf_cstr(&path));
    buf_deinit(&path);
    if (!is_index) return LATH_OK;
    TRY(lath_vindex_open(s->rt, buf_cstr((buf *)&s->path), x, err));
    return lath_vindex_get_info(*x, info, err);
}

/* Of an index that runs no model. */
static void print_index(buf *b, const lath_vindex_info *x, bool json)
{
    if (!json) {
        table_index(b, x);
        return;
    }
    buf_char(b, '{');
    put_index(b, x);
    buf_str(b, "}\n");
}

lath_status cmd_info(options *o, lath_error *err)
{
    setup s = {0}, first = {0};
    output out = {0};
    lath_vindex *x = NULL;
    lath_vindex_info info = LATH_VINDEX_INFO_INIT;
    facts f;
    lath_status st;
    const bool json = o->json || o->jsonl;
    if (o->args.n > 0)
        return err_set(err, LATH_ERR_USAGE, "%s: info takes no arguments; the model is named with -m",
                       o->args.items[0]);
    TRY_DONE(setup_path(&first, o, err));
    TRY_DONE(look(&first, &x, &info, err));
    TRY_DONE(output_open(&out, o->output, err));
    if (x && info.level < LATH_VINDEX_INFERENCE) {
        print_index(&out.b, &info, json);
    } else {
        TRY_DONE(setup_model_beside(&s, &first, o->model, err));
        TRY_DONE(gather(&f, &s, x ? &info : NULL, err));
        TRY_DONE(json ? print_json(&out.b, &f, o->tensors, err) : print_table(&out.b, &f, o->tensors, err));
    }
    st = output_close(&out, err);
done:
    output_abort(&out);
    setup_close(&s);
    lath_vindex_close(x);
    setup_close(&first);
    return st;
}
