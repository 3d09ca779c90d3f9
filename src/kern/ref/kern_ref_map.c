/* SPDX-License-Identifier: Apache-2.0
 * kern_ref_map.c: the elementwise functions, through the C library.
 *
 * GELU(x) = x Phi(x) (Hendrycks & Gimpel 2016), Phi(x) = erfc(-x / sqrt 2) / 2, which keeps the relative accuracy of the negative tail.
 * GELU_TANH(x) = x (1 + tanh u) / 2 = x sigmoid(2u), u = sqrt(2 / pi) (x + 0.044715 x^3). At -inf they and SILU take their limit, -0. */
#include <math.h>

#include "kern/ref/kern_ref.h"

static float ref_sigmoid(float x)
{
    float e = expf(-fabsf(x)); /* at most 1: never overflows, and small results keep their accuracy */
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

static float ref_gelu(float x)
{
    if (x == -INFINITY) return -0.0f;
    return (float)(0.5 * (double)x * erfc((double)x * -0.70710678118654752440));
}

static float ref_gelu_tanh(float x)
{
    if (x == -INFINITY) return -0.0f;
    return x * ref_sigmoid(1.5957691216057308f * (x + 0.044715f * x * x * x));
}

static float ref_silu(float x)
{
    if (x == -INFINITY) return -0.0f;
    return x * ref_sigmoid(x);
}

static float ref_relu(float x) { return x < 0.0f ? 0.0f : x; /* NaN stays */ }

static void ref_apply(float (*f)(float), size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++) y[i] = f(x[i]);
}

void kern_ref_map(kern_fn fn, size_t n, const float *x, float *y)
{
    switch (fn) {
    case KERN_FN_RELU: ref_apply(ref_relu, n, x, y); break;
    case KERN_FN_GELU: ref_apply(ref_gelu, n, x, y); break;
    case KERN_FN_GELU_TANH: ref_apply(ref_gelu_tanh, n, x, y); break;
    case KERN_FN_SILU: ref_apply(ref_silu, n, x, y); break;
    case KERN_FN_TANH: ref_apply(tanhf, n, x, y); break;
    case KERN_FN_SIGMOID: ref_apply(ref_sigmoid, n, x, y); break;
    case KERN_FN_EXP: ref_apply(expf, n, x, y); break;
    case KERN_FN_NONE:
    case KERN_FN_COUNT:
        for (size_t i = 0; i < n; i++) y[i] = x[i];
        break;
    }
}
