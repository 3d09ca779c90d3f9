/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx512_linear.c: the product of row-major weights with panels of tokens (kern_avx2_drive.h) in tiles of 12 rows x 16 lanes of one or two panels.
 *
 * A step broadcasts one weight of each row and multiplies it with both panels: 24 accumulators, 24 FMAs for 14 loads, which is what two load ports
 * can bring. Twelve chains of one panel are enough for two FMA ports too. Every element is one chain of FMAs in step order: the bits of
 * AVX2. gcc 12 keeps an array of vectors in memory, hence the names. */
#include "kern/avx2/kern_avx2_drive.h"
#include "kern/avx512/kern_avx512.h"
#include "kern/avx512/kern_avx512_linear_q.h"
#include "kern/avx512/kern_avx512_vec.h"

typedef struct tile512 {
    vec512_f32 a0, b0, a1, b1, a2, b2, a3, b3, a4, b4, a5, b5, a6, b6, a7, b7, a8, b8, a9, b9, a10, b10, a11, b11;
} tile512;

#define TILE_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)

#if defined(__clang__)
#define TILE_UNROLL _Pragma("clang loop unroll_count(4)")
#else
#define TILE_UNROLL _Pragma("GCC unroll 4")
#endif

VEC512_INLINE void tile_begin(const int rows, const int panels, tile512 *t, const tile_job *j)
{
    const vec512_f32 zero = vec512_set1(0.0f);
#define DO(i)                                                                                     \
    if (rows > i) {                                                                               \
        const float *sum = j->sum + (i)*j->sum_stride;                                            \
        t->a##i = t->b##i = zero;                                                                 \
        if (j->start == START_BIAS) t->a##i = t->b##i = vec512_set1(j->bias[(i)*j->bias_stride]); \
        if (j->start == START_SUM) t->a##i = vec512_load(sum);                                    \
        if (j->start == START_SUM && panels == 2) t->b##i = vec512_load(sum + j->sum_panel);      \
    }
    TILE_EACH(DO)
#undef DO
}

VEC512_INLINE void tile_end(const int rows, const int panels, const tile512 *t, const tile_job *j)
{
#define DO(i)                                                                           \
    if (rows > i) {                                                                     \
        vec512_store(j->to + (i)*j->to_stride, t->a##i);                                \
        if (panels == 2) vec512_store(j->to + (i)*j->to_stride + j->to_panel, t->b##i); \
    }
    TILE_EACH(DO)
#undef DO
}

#define DO(i, row)                                           \
    if (rows > i) {                                          \
        const vec512_f32 e = vec512_broadcast(row);          \
        t.a##i = vec512_fma(e, xa, t.a##i);                  \
        if (panels == 2) t.b##i = vec512_fma(e, xb, t.b##i); \
    }
/* One step, and on to the next. */
/* clang-format off */
#define TILE_STEP()                                                                                                    \
    do {                                                                                                               \
        const vec512_f32 xa = vec512_load(x), xb = panels == 2 ? vec512_load(x + next) : xa;                           \
        DO(0, w0) DO(1, w0 + s) DO(2, w0 + 2 * s) DO(3, w3) DO(4, w3 + s) DO(5, w3 + 2 * s)                            \
        DO(6, w6) DO(7, w6 + s) DO(8, w6 + 2 * s) DO(9, w9) DO(10, w9 + s) DO(11, w9 + 2 * s)                          \
        x += KERN_LANES, w0 += 4, w3 += 4, w6 += 4, w9 += 4;                                                           \
    } while (0)
/* clang-format on */

VEC512_INLINE void tile_run(const int rows, const int panels, const tile_job *j)
{
    const int64_t s = j->w_stride, next = j->x_panel;
    const unsigned char *w0 = j->w, *w3 = w0 + 3 * s, *w6 = w3 + 3 * s, *w9 = w6 + 3 * s;
    const unsigned char *ahead = j->ahead.at;
    const float *x = j->x;
    tile512 t;
    int64_t i = 0;
    tile_begin(rows, panels, &t, j);
    for (; ahead && i + TILE_LINE_STEPS <= j->k; i += TILE_LINE_STEPS, ahead += j->ahead.step) {
        for (int r = 0; r < rows; r++) _mm_prefetch((const char *)ahead + r * j->ahead.row_bytes, _MM_HINT_T0);
        TILE_UNROLL
        for (int step = 0; step < TILE_LINE_STEPS; step++) TILE_STEP();
    }
    TILE_UNROLL
    for (; i < j->k; i++) TILE_STEP();
    tile_end(rows, panels, &t, j);
}
#undef DO

#define TILE_FUNCTION(rows)                                    \
    static void tile_rows##rows(int panels, const tile_job *j) \
    {                                                          \
        if (panels == 2)                                       \
            tile_run(rows, 2, j);                              \
        else                                                   \
            tile_run(rows, 1, j);                              \
    }
TILE_FUNCTION(1)
TILE_FUNCTION(2)
TILE_FUNCTION(4)
TILE_FUNCTION(8)
TILE_FUNCTION(12)

/* Fewer rows than a block has are taken in several tiles. */
static void run_tile(int rows, int panels, bool narrow, const tile_job *j)
{
    static const struct {
        int rows;
        void (*run)(int panels, const tile_job *j);
    } tiles[] = {{12, tile_rows12}, {8, tile_rows8}, {4, tile_rows4}, {2, tile_rows2}, {1, tile_rows1}};
    tile_job some = *j;
    (void)narrow;
    for (size_t i = 0; rows > 0;) {
        if (rows < tiles[i].rows) {
            i++;
            continue;
        }
        const int n = tiles[i].rows;
        tiles[i].run(panels, &some);
        rows -= n;
        some.w += n * j->w_stride, some.sum += n * j->sum_stride, some.to += n * j->to_stride;
        if (some.bias) some.bias += n * j->bias_stride;
        if (some.ahead.at) some.ahead.at += n * j->ahead.row_bytes;
    }
}

void KERN_AVX512(linear)(const kern_linear_args *a)
{
    if (a->xq)
        linear_q(a);
    else
        linear_drive(&(linear_tiles){LINEAR_MAX_ROWS, LINEAR_MAX_PANELS, run_tile}, a);
}
