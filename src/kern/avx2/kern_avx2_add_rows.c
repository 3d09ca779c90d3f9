/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_add_rows.c: weighted sums of chosen rows. Memory is the limit, and rows lie anywhere: one of each quarter of the call is
 * read side by side, as four long streams (kern_avx2_dot.c), and with each line of them the same line of their successors is asked for, which the machine
 * cannot guess where rows are left out.
 *
 * A number of y gets one fused multiply-add for each row: of the quarters in turn, then of the rows that are left; blocks are decoded a chunk at a time.
 */
#include "kern/avx2/kern_avx2.h"
#include "kern/avx2/kern_avx2_decode.h"
#include "kern/avx2/kern_avx2_math.h"

enum {
    ROWS = 4,
    CHUNK = 256 /* numbers of a row of blocks that are f32 at a time; whole blocks */,
    LINE = 64,
    AHEAD = 4096
};

typedef struct four {
    const unsigned char *row[ROWS];
    float by[ROWS];
} four;

static const unsigned char *row_at(const kern_add_rows_args *a, int64_t i)
{
    const int64_t in = i < a->n ? i : a->n - 1, r = a->index ? a->index[in] : in;
    return (const unsigned char *)a->rows + r * a->row_stride + dtype_bytes(a->type, a->f0);
}

/* Rows i, i + step, ... of the call; behind the last one that one again, which nobody adds. */
static four four_at(const kern_add_rows_args *a, int64_t i, int64_t step)
{
    four f;
    for (int64_t j = 0; j < ROWS; j++) {
        f.row[j] = row_at(a, i + j * step);
        f.by[j] = a->by[i + j * step < a->n ? i + j * step : a->n - 1];
    }
    return f;
}

VEC_INLINE void ask(const four *next, int64_t at)
{
    _mm_prefetch((const char *)next->row[0] + at, _MM_HINT_T0);
    _mm_prefetch((const char *)next->row[1] + at, _MM_HINT_T0);
    _mm_prefetch((const char *)next->row[2] + at, _MM_HINT_T0);
    _mm_prefetch((const char *)next->row[3] + at, _MM_HINT_T0);
}

/* Numbers f .. f + 7 of y. */
#define ADD_EIGHT(f)                                                                                  \
    do {                                                                                              \
        const int64_t at_ = (f)*size;                                                                 \
        __m256 v_ = _mm256_fmadd_ps(b0, vec_load(type, rows->row[0] + at_), _mm256_load_ps(y + (f))); \
        if (n > 1) v_ = _mm256_fmadd_ps(b1, vec_load(type, rows->row[1] + at_), v_);                  \
        if (n > 2) v_ = _mm256_fmadd_ps(b2, vec_load(type, rows->row[2] + at_), v_);                  \
        if (n > 3) v_ = _mm256_fmadd_ps(b3, vec_load(type, rows->row[3] + at_), v_);                  \
        _mm256_store_ps(y + (f), v_);                                                                 \
    } while (0)

/* n rows (1 to 4) of floats times their factors; `next`: the rows behind. */
VEC_INLINE void add_floats(const dtype type, const int64_t size, const int n, const four *rows, const four *next,
                           int64_t k, float *y)
{
    const __m256 b0 = _mm256_set1_ps(rows->by[0]), b1 = _mm256_set1_ps(rows->by[1]), b2 = _mm256_set1_ps(rows->by[2]),
                 b3 = _mm256_set1_ps(rows->by[3]);
    const int64_t ahead = AHEAD < k * size ? AHEAD : k * size,
                  turn = k - ahead / size; /* then the lines are the next rows' */
    int64_t f = 0;
    for (; f + 16 <= k; f += 16) {
        if (f < turn)
            ask(rows, f * size + ahead);
        else
            ask(next, (f - turn) * size);
        ADD_EIGHT(f);
        ADD_EIGHT(f + 8);
    }
    for (; f + 8 <= k; f += 8) ADD_EIGHT(f);
    for (; f < k; f++) {
        for (int j = 0; j < n; j++) {
            float w;
            dtype_to_f32(type, rows->row[j] + f * size, 1, &w);
            y[f] = __builtin_fmaf(rows->by[j], w, y[f]);
        }
    }
}

VEC_INLINE void add_all_floats(const dtype type, const int64_t size, const kern_add_rows_args *a)
{
    const int64_t part = a->n / ROWS;
    four rows = four_at(a, 0, part);
    for (int64_t i = 0; i < part; i++) {
        const four next = four_at(a, i + 1, part);
        add_floats(type, size, ROWS, &rows, &next, a->k, a->y);
        rows = next;
    }
    rows = four_at(a, ROWS * part, 1);
    switch (a->n - ROWS * part) {
    case 1: add_floats(type, size, 1, &rows, &rows, a->k, a->y); break;
    case 2: add_floats(type, size, 2, &rows, &rows, a->k, a->y); break;
    case 3: add_floats(type, size, 3, &rows, &rows, a->k, a->y); break;
    default: break;
    }
}

static void add_one(const float *w, float by, int64_t n, float *y)
{
    const __m256 b = _mm256_set1_ps(by);
    for (int64_t f = 0; f < n; f += 8)
        _mm256_store_ps(y + f, _mm256_fmadd_ps(b, _mm256_load_ps(w + f), _mm256_load_ps(y + f)));
}

static void add_four(float w[ROWS][CHUNK], const float *by, int64_t n, float *y)
{
    const __m256 b0 = _mm256_set1_ps(by[0]), b1 = _mm256_set1_ps(by[1]), b2 = _mm256_set1_ps(by[2]),
                 b3 = _mm256_set1_ps(by[3]);
    for (int64_t f = 0; f < n; f += 8) {
        __m256 v = _mm256_fmadd_ps(b0, _mm256_load_ps(w[0] + f), _mm256_load_ps(y + f));
        v = _mm256_fmadd_ps(b1, _mm256_load_ps(w[1] + f), v);
        v = _mm256_fmadd_ps(b2, _mm256_load_ps(w[2] + f), v);
        _mm256_store_ps(y + f, _mm256_fmadd_ps(b3, _mm256_load_ps(w[3] + f), v));
    }
}

/* n rows of blocks, which are whole eights. */
static void add_decoded(const kern_add_rows_args *a, int n, const four *rows, const four *next)
{
    _Alignas(32) float w[ROWS][CHUNK];
    for (int64_t f0 = 0; f0 < a->k; f0 += CHUNK) {
        const int64_t size = a->k - f0 < CHUNK ? a->k - f0 : CHUNK, at = (int64_t)dtype_bytes(a->type, f0),
                      end = (int64_t)dtype_bytes(a->type, f0 + size);
        float *y = a->y + f0;
        for (int64_t line = at; line < end; line += LINE) ask(next, line);
        for (int j = 0; j < n; j++) kern_avx2_to_f32(a->type, rows->row[j] + at, size, w[j]);
        if (n == ROWS)
            add_four(w, rows->by, size, y);
        else
            for (int j = 0; j < n; j++) add_one(w[j], rows->by[j], size, y);
    }
}

static void add_blocks(const kern_add_rows_args *a)
{
    const int64_t part = a->n / ROWS;
    for (int64_t i = 0; i < part; i++) {
        const four rows = four_at(a, i, part), next = four_at(a, i + 1, part);
        add_decoded(a, ROWS, &rows, &next);
    }
    const four rows = four_at(a, ROWS * part, 1);
    if (a->n > ROWS * part) add_decoded(a, (int)(a->n - ROWS * part), &rows, &rows);
}

void kern_avx2_add_rows(const kern_add_rows_args *a)
{
    if (a->n == 0) return;
    switch (a->type) {
    case DTYPE_F32: add_all_floats(DTYPE_F32, 4, a); break;
    case DTYPE_F16: add_all_floats(DTYPE_F16, 2, a); break;
    case DTYPE_BF16: add_all_floats(DTYPE_BF16, 2, a); break;
    case DTYPE_F8_E4M3: add_all_floats(DTYPE_F8_E4M3, 1, a); break;
    case DTYPE_F8_E5M2: add_all_floats(DTYPE_F8_E5M2, 1, a); break;
    default: add_blocks(a); break;
    }
}
