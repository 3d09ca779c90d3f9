/* SPDX-License-Identifier: Apache-2.0
 * walk_rows.c: see walk_rows.h. */
#include "support/walk_rows.h"

#include "support/test.h"

typedef struct held {
    int32_t n_layers;
    ffn_walk_layer *layers;
    tensor *tensors;
    float **rows;
} held;

static void close_held(void *ctx)
{
    held *h = ctx;
    for (int32_t i = 0; i < h->n_layers; i++) free(h->rows[i]);
    free(h->layers);
    free(h->tensors);
    free(h->rows);
    free(h);
}

static void copy_weight(weight *to, const weight *from)
{
    weight_init(to, from->t, from->file, 0, from->rows, from->cols);
    to->data = from->data;
    to->row0 = from->row0;
}

static float *transposed(const weight *down)
{
    const size_t n = (size_t)(down->rows * down->cols);
    float *plain = malloc(n * sizeof(float)), *turned = malloc(n * sizeof(float));
    assert_true(plain && turned);
    dtype_to_f32(down->t->type, down->data, n, plain);
    for (int64_t r = 0; r < down->rows; r++)
        for (int64_t c = 0; c < down->cols; c++) turned[c * down->rows + r] = plain[r * down->cols + c];
    free(plain);
    return turned;
}

ffn_walk_source test_walk_source(ffn *own, int32_t n_layers, int64_t d_model, kern_fn fn, bool with_out)
{
    held *h = calloc(1, sizeof(*h));
    assert_non_null(h);
    *h = (held){n_layers, calloc((size_t)n_layers, sizeof(*h->layers)), calloc((size_t)n_layers, sizeof(*h->tensors)),
                calloc((size_t)n_layers, sizeof(*h->rows))};
    assert_true(h->layers && h->tensors && h->rows);
    for (int32_t i = 0; i < n_layers; i++) {
        ffn_walk_layer *l = &h->layers[i];
        ffn_parts p;
        if (!ffn_get_parts(own, i, &p)) continue;
        l->features = p.d_ff;
        if (p.gate) copy_weight(&l->gate, &p.gate->w);
        if (p.gate) l->gate_bias = p.gate->bias;
        copy_weight(&l->up, &p.up->w);
        l->up_bias = p.up->bias;
        l->down_bias = p.down->bias;
        if (with_out) copy_weight(&l->out, &p.down->w);
        h->rows[i] = transposed(&p.down->w);
        h->tensors[i] = (tensor){.name = "down rows",
                                 .type = DTYPE_F32,
                                 .rank = 2,
                                 .dim = {p.d_ff, d_model},
                                 .count = p.d_ff * d_model,
                                 .data = h->rows[i],
                                 .bytes = (size_t)(p.d_ff * d_model) * sizeof(float)};
        weight_init(&l->down, &h->tensors[i], "rows", 0, p.d_ff, d_model);
    }
    return (ffn_walk_source){.layers = h->layers,
                             .n_layers = n_layers,
                             .d_model = d_model,
                             .fn = fn,
                             .name = "rows",
                             .close = close_held,
                             .ctx = h};
}
