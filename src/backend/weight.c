/* SPDX-License-Identifier: Apache-2.0
 * weight.c: tensors of a file as operands. */
#include <math.h>

#include "backend/backend.h"

void weight_init(weight *w, const tensor *t, const char *file, int64_t row0, int64_t rows, int64_t cols)
{
    w->t = t;
    w->file = file;
    w->data = (const char *)t->data + (size_t)row0 * dtype_bytes(t->type, cols);
    w->row0 = row0;
    w->rows = rows;
    w->cols = cols;
    atomic_init(&w->finite, false);
}

lath_status vec_init(vec *v, arena *a, const tensor *t, const char *file, int64_t first, int64_t n, lath_error *err)
{
    const int64_t numbers = (int64_t)dtype_block_numbers(t->type);
    if (first % numbers != 0 || n % numbers != 0)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: tensor \"%s\": a vector that begins or ends inside a %s block",
                       file, t->name, dtype_name(t->type));
    const void *from = (const char *)t->data + dtype_bytes(t->type, first);
    const float *data = from;
    if (t->type != DTYPE_F32 || (uintptr_t)from % sizeof(float) != 0) {
        float *copy = arena_array(a, (size_t)n, sizeof(float));
        if (!copy) return err_nomem(err, (size_t)n * sizeof(float));
        dtype_to_f32(t->type, from, (size_t)n, copy);
        data = copy;
    }
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(data[i]))
            return err_set(err, LATH_ERR_FORMAT, "%s: tensor \"%s\": element %lld is not finite", file, t->name,
                           (long long)(first + i));
    }
    v->data = data;
    v->n = n;
    return LATH_OK;
}
