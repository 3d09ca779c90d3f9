/* SPDX-License-Identifier: Apache-2.0
 * kern_ref_dot.c: dot products of queries with the rows of a vector index. */
#include <string.h>

#include "kern/ref/kern_ref.h"

void kern_ref_dot_rows(const kern_dot_rows_args *a)
{
    const size_t size = dtype_block_bytes(a->type);
    for (int32_t j = 0; j < a->n_q; j++) {
        const float *q = a->q + j * a->q_stride;
        for (int64_t i = 0; i < a->n; i++) {
            const unsigned char *row = (const unsigned char *)a->rows + i * a->row_stride;
            float sum = 0.0f;
            for (int64_t f = 0; f < a->d; f++) {
                float v;
                dtype_to_f32(a->type, row + (size_t)f * size, 1, &v);
                sum += q[f] * v;
            }
            a->out[j * a->out_stride + i] = sum;
        }
    }
}

void kern_ref_dot_rows_i8(const kern_dot_rows_i8_args *a)
{
    for (int32_t j = 0; j < a->n_q; j++) {
        const int16_t *q = a->q + j * a->q_stride;
        for (int64_t i = 0; i < a->n; i++) {
            const unsigned char *row = (const unsigned char *)a->rows + i * a->row_stride;
            const int8_t *v = (const int8_t *)(row + sizeof(float));
            float scale;
            int32_t sum = 0;
            memcpy(&scale, row, sizeof(scale));
            for (int64_t f = 0; f < a->d; f++) sum += q[f] * v[f];
            a->out[j * a->out_stride + i] = (float)sum * scale * a->q_scale[j];
        }
    }
}
