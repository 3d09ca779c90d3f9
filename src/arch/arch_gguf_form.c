/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_gguf_form.c: tensors of a directory in the form of GGUF files (arch_gguf_form.h).
 *
 * Heads of gated delta nets: Hugging Face has the value heads of a key head side by side, 0 0 0 1 1 1 by key head; files of Qwen3.5 have them 0 1 0 1 0 1
 * (ARCH_STORED_TILED_HEADS), so everything with rows or columns of value heads is put into that order. Qwen3-Next's heads stay, but what its in_proj_qkvz
 * has by key head (its query, its key, its values, their z) is two tensors: queries of all heads, keys, values; and z.
 */
#include "arch/arch_gguf_form.h"

#include <stdio.h>
#include <string.h>

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

static bool is_part(const char *name, const char *part)
{
    const char *dot = strrchr(name, '.');
    const size_t n = strlen(part);
    return dot && (size_t)(dot - name) >= n && strncmp(dot - n, part, n) == 0;
}

/* ------------------------------------------------------------------------------------------------------------------ runs */

static void add_run(arch_gguf_form *f, arch_gguf_run r) { f->row[f->n_runs++] = r; }

/* n_pieces pieces of `size` that are `step` apart. */
static arch_gguf_run pieces(int64_t offset, int64_t n_pieces, int64_t size, int64_t step)
{
    return (arch_gguf_run){
        .n = n_pieces * size, .offset = offset, .n_mid = 1, .n_unit = size, .by_outer = step, .by_unit = 1};
}

/* A head's first half and second half become even and odd rows. */
static arch_gguf_run pairs(int64_t n, int64_t head)
{
    return (arch_gguf_run){.n = n, .n_mid = head / 2, .n_unit = 2, .by_outer = head, .by_mid = 1, .by_unit = head / 2};
}

/* Value heads of `size`: the first of each key head, then the second of each, ... */
static arch_gguf_run tiles(const arch_dims *d, int64_t offset, int64_t size)
{
    return (arch_gguf_run){.n = d->n_v_heads * size,
                           .offset = offset,
                           .n_mid = d->n_k_heads,
                           .n_unit = size,
                           .by_outer = size,
                           .by_mid = d->n_v_heads / d->n_k_heads * size,
                           .by_unit = 1};
}

static int64_t source_of(const arch_gguf_run *r, int64_t i)
{
    const int64_t unit = i % r->n_unit, mid = i / r->n_unit % r->n_mid, outer = i / r->n_unit / r->n_mid;
    return r->offset + outer * r->by_outer + mid * r->by_mid + unit * r->by_unit;
}

int64_t arch_gguf_source_row(const arch_gguf_form *f, int64_t i)
{
    for (int32_t k = 0; k < f->n_runs; i -= f->row[k++].n)
        if (i < f->row[k].n) return source_of(&f->row[k], i);
    return i;
}

int64_t arch_gguf_source_col(const arch_gguf_form *f, int64_t i) { return f->col.n ? source_of(&f->col, i) : i; }

/* ----------------------------------------------------------------------------------------------------------------- forms */

/* What has rows or columns of value heads. */
static void tile(const arch_dims *d, const char *name, arch_gguf_form *f)
{
    static const struct {
        const char *part;
        bool has_keys, of_heads, in_cols; /* queries and keys before the values; rows of a head, not one; columns */
    } rows[] = {
        {"attn_qkv", true, true, false}, {"ssm_conv1d", true, true, false},  {"attn_gate", false, true, false},
        {"ssm_out", false, true, true},  {"ssm_alpha", false, false, false}, {"ssm_beta", false, false, false},
        {"ssm_dt", false, false, false},
    };
    if (ends_with(name, ".ssm_a")) add_run(f, tiles(d, 0, 1));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!is_part(name, rows[i].part)) continue;
        const int64_t keys = rows[i].has_keys ? 2 * d->n_k_heads * d->d_k : 0;
        const arch_gguf_run run = tiles(d, keys, rows[i].of_heads ? d->d_v : 1);
        if (keys) add_run(f, pieces(0, 1, keys, 0));
        if (rows[i].in_cols)
            f->col = run;
        else
            add_run(f, run);
    }
}

/* Of each key head q, k, its values, their z: as two tensors. */
static lath_status unmix(const arch_dims *d, const char *name, arena *mem, arch_gguf_form out[2], lath_error *err)
{
    static const char *const parts[] = {"attn_qkv.weight", "attn_gate.weight"};
    const int64_t values = d->n_v_heads / d->n_k_heads * d->d_v, group = 2 * (d->d_k + values);
    out[1] = out[0];
    for (int i = 0; i < 2; i++) {
        char text[64];
        snprintf(text, sizeof(text), "%.*s%s", (int)(strrchr(name, '.') - strlen("ssm_in") - name), name, parts[i]);
        out[i].name = arena_strdup(mem, text, strlen(text));
        if (!out[i].name) return err_nomem(err, sizeof(text));
    }
    add_run(&out[0], pieces(0, d->n_k_heads, d->d_k, group));
    add_run(&out[0], pieces(d->d_k, d->n_k_heads, d->d_k, group));
    add_run(&out[0], pieces(2 * d->d_k, d->n_k_heads, values, group));
    add_run(&out[1], pieces(2 * d->d_k + values, d->n_k_heads, values, group));
    out[0].rows = 2 * d->n_k_heads * d->d_k + d->n_k_heads * values;
    out[1].rows = d->n_k_heads * values;
    return LATH_OK;
}

/* One expert's matrix, where all are in one tensor. */
static void pick_expert(const arch_weight_row *row, const tensor *t, int32_t expert, arch_gguf_form *f)
{
    const int64_t total = t->dim[1], n = row->stack == ARCH_ALONE ? total : total / 2;
    f->rows = n;
    add_run(f, pieces(expert * total + (row->stack == ARCH_SECOND_HALF ? n : 0), 1, n, 0));
}

static bool is_plain(const arch_gguf_form *f, const char *name)
{
    return f->rows == 0 || ends_with(name, "_norm.weight") || is_part(name, "ffn_gate_inp") ||
           is_part(name, "ffn_gate_inp_shexp") || is_part(name, "ssm_conv1d");
}

lath_status arch_gguf_form_of(const arch_model *m, uint32_t stored, const arch_weight_row *row, const char *name,
                              const tensor *t, int32_t expert, arena *mem, arch_gguf_form out[ARCH_GGUF_MAX_PARTS],
                              int32_t *n, lath_error *err)
{
    const arch_dims *d = &m->dims;
    const bool is_vector = row->kind == ARCH_VECTOR && !row->taps;
    arch_gguf_form f = {.cols = t->dim[t->rank - 1]};
    f.name = arena_strdup(mem, name, strlen(name));
    if (!f.name) return err_nomem(err, strlen(name));
    f.rows = is_vector ? 0 : t->count / f.cols;
    f.plain = is_plain(&f, name);
    if (stored & ARCH_STORED_ROPE_PAIRS && (is_part(name, "attn_q") || is_part(name, "attn_k")))
        add_run(&f, pairs(is_vector ? f.cols : f.rows, d->head_dim));
    if (stored & ARCH_STORED_WHOLE_NORMS && is_vector && ends_with(name, "norm.weight") && !is_part(name, "ssm_norm"))
        f.change = GGUF_PLUS_ONE;
    if (stored & ARCH_STORED_DECAY && ends_with(name, ".ssm_a")) f.change = GGUF_RATE;
    if (stored & ARCH_STORED_TILED_HEADS) tile(d, name, &f);
    if (row->experts && t->rank == 3) pick_expert(row, t, expert, &f);
    out[0] = f;
    *n = is_part(name, "ssm_in") ? 2 : 1;
    return *n == 2 ? unmix(d, name, mem, out, err) : LATH_OK;
}
