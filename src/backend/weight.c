/* SPDX-License-Identifier: Apache-2.0
 * weight.c: tensors of a file as operands. */
#include <math.h>

#include "backend/backend.h"

void weight_init(weight *w, const tensor *t, const char *file, int64_t rows, int64_t cols)
{
    w->t = t;
    w->file = file;
    w->rows = rows;
    w->cols = cols;
    atomic_init(&w->finite, false);
}

lath_status vec_init(vec *v, arena *a, const tensor *t, const char *file, lath_error *err)
{
    const float *data = t->data;
    if (t->type != DTYPE_F32 || (uintptr_t)t->data % sizeof(float) != 0) {
        float *copy = arena_array(a, (size_t)t->count, sizeof(float));
        if (!copy) return err_nomem(err, (size_t)t->count * sizeof(float));
        dtype_to_f32(t->type, t->data, (size_t)t->count, copy);
        data = copy;
    }
    for (int64_t i = 0; i < t->count; i++) {
        if (!isfinite(data[i]))
            return err_set(err, LATH_ERR_FORMAT, "%s: tensor \"%s\": element %lld is not finite", file, t->name,
                           (long long)i);
    }
    v->data = data;
    v->n = t->count;
    return LATH_OK;
}
