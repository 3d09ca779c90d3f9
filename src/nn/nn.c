/* SPDX-License-Identifier: Apache-2.0
 * nn.c: linear, norm, activations by name. */
#include "nn/nn.h"

#include <string.h>

lath_status nn_linear(const fwd *f, nn_linear_w *w, kern_fn fn, view x, view y)
{
    op_linear part = {&w->w, w->bias, fn, y};
    return f->s->ops->linear(f->s, x, &part, 1);
}

lath_status nn_norm(const fwd *f, view x, const view *r, const op_norm *norm, view y)
{
    const op_norm_args a = {.x = x, .r = r, .norm = norm, .n_groups = 1, .y = y};
    return f->s->ops->norm(f->s, &a);
}

lath_status nn_add_norm(const fwd *f, view x, view r, const op_norm *norm, view y, trace_point point, int32_t layer)
{
    const op_norm_args a = {.x = x, .r = &r, .sum = &x, .norm = norm, .n_groups = 1, .y = y};
    TRY(f->s->ops->norm(f->s, &a));
    if (!f->trace) return LATH_OK;
    trace_event e = {.point = point, .layer = layer, .expert = -1, .x = x};
    TRY(f->trace->see(f->trace->ctx, f, &e));
    return e.changed ? nn_norm(f, x, NULL, norm, y) : LATH_OK;
}

lath_status nn_scale(const fwd *f, view x, float by)
{
    const op_map a = {KERN_FN_NONE, by, 1, x, x};
    return f->s->ops->map(f->s, &a);
}

bool nn_activation(const char *name, kern_fn *out)
{
    /* Names as transformers (activations.py, ACT2FN) and torch.nn have them. */
    static const struct {
        const char *name;
        kern_fn fn;
    } rows[] = {
        {"gelu", KERN_FN_GELU},
        {"gelu_python", KERN_FN_GELU},
        {"gelu_new", KERN_FN_GELU_TANH},
        {"gelu_pytorch_tanh", KERN_FN_GELU_TANH},
        {"gelu_fast", KERN_FN_GELU_TANH},
        {"relu", KERN_FN_RELU},
        {"silu", KERN_FN_SILU},
        {"swish", KERN_FN_SILU},
        {"tanh", KERN_FN_TANH},
        {"sigmoid", KERN_FN_SIGMOID},
        {"linear", KERN_FN_NONE},
        {"torch.nn.modules.linear.Identity", KERN_FN_NONE},
        {"torch.nn.modules.activation.Tanh", KERN_FN_TANH},
        {"torch.nn.modules.activation.ReLU", KERN_FN_RELU},
        {"torch.nn.modules.activation.GELU", KERN_FN_GELU},
        {"torch.nn.modules.activation.SiLU", KERN_FN_SILU},
        {"torch.nn.modules.activation.Sigmoid", KERN_FN_SIGMOID},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *out = rows[i].fn;
            return true;
        }
    }
    return false;
}
