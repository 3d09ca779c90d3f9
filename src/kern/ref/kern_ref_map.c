/* SPDX-License-Identifier: Apache-2.0
 * kern_ref_map.c: the elementwise functions, through the C library; products of several steps in double, so that the
 * result is rounded once.
 *
 * GELU(x) = x Phi(x) (Hendrycks & Gimpel 2016), Phi(x) = erfc(-x / sqrt 2) / 2, which keeps the relative accuracy of
 * the negative tail. GELU_TANH(x) = x (1 + tanh u) / 2 = x / (1 + exp(-2u)), u = sqrt(2 / pi) (x + 0.044715 x^3). At
 * -inf they and SILU take their limit, -0. */
#include <math.h>

#include "kern/ref/kern_ref.h"

static float ref_sigmoid(float x) { return (float)(1.0 / (1.0 + exp(-(double)x))); }

static float ref_gelu(float x)
{
    if (x == -INFINITY) return -0.0f;
    return (float)(0.5 * (double)x * erfc((double)x * -0.70710678118654752440));
}

static float ref_gelu_tanh(float x)
{
    const double v = (double)x, u2 = 1.59576912160573071176 * (v + 0.044715 * v * v * v);
    if (x == -INFINITY) return -0.0f;
    return (float)(v / (1.0 + exp(-u2)));
}

static float ref_silu(float x)
{
    if (x == -INFINITY) return -0.0f;
    return (float)((double)x / (1.0 + exp(-(double)x)));
}

/* tanhf of glibc errs by 2.02 ulp. */
static float ref_tanh(float x) { return (float)tanh((double)x); }

static float ref_relu(float x) { return x < 0.0f ? 0.0f : x; /* NaN stays */ }

static void ref_apply(float (*f)(float), size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++) y[i] = f(x[i]);
}

void kern_ref_glu(kern_fn fn, size_t n, const float *gate, const float *up, float *y)
{
    for (size_t i = 0; i < n; i++) {
        const float factor = up[i];
        kern_ref_map(fn, 1, gate + i, y + i);
        y[i] *= factor;
    }
}

void kern_ref_map(kern_fn fn, size_t n, const float *x, float *y)
{
    switch (fn) {
    case KERN_FN_RELU: ref_apply(ref_relu, n, x, y); break;
    case KERN_FN_GELU: ref_apply(ref_gelu, n, x, y); break;
    case KERN_FN_GELU_TANH: ref_apply(ref_gelu_tanh, n, x, y); break;
    case KERN_FN_SILU: ref_apply(ref_silu, n, x, y); break;
    case KERN_FN_TANH: ref_apply(ref_tanh, n, x, y); break;
    case KERN_FN_SIGMOID: ref_apply(ref_sigmoid, n, x, y); break;
    case KERN_FN_EXP: ref_apply(expf, n, x, y); break;
    case KERN_FN_NONE:
    case KERN_FN_COUNT:
        for (size_t i = 0; i < n; i++) y[i] = x[i];
        break;
    }
}
