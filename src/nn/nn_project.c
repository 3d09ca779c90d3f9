/* SPDX-License-Identifier: Apache-2.0
 * nn_project.c: products whose features are put together from rows of several matrices, in the order in which the layer wants them. */
#include <string.h>

#include "nn/nn.h"

enum { PARTS = 64 }; /* of a pass */

/* The next piece: rows row .. row + n - 1 of `whole`. */
static void add_rows(nn_pieces *p, nn_linear_w *whole, int64_t row, int64_t n, int64_t at)
{
    nn_piece *last = p->n ? &p->piece[p->n - 1] : NULL;
    const weight *w = &whole->w;
    const int64_t first = w->row0 + row;
    if (last && last->w.t == w->t && last->w.row0 + last->w.rows == first && last->at + last->w.rows == at) {
        last->w.rows += n;
        last->bias.n += last->bias.data ? n : 0;
        return;
    }
    nn_piece *new = &p->piece[p->n++];
    weight_init(&new->w, w->t, w->file, first, n, w->cols);
    if (whole->bias.data) new->bias = (vec){whole->bias.data + row, n};
    new->at = at;
}

lath_status nn_pieces_add(nn_pieces *p, arena *mem, nn_linear_w *whole, int64_t n_groups, int32_t n_sizes,
                          const int64_t *size, const int64_t *at, lath_error *err)
{
    const size_t most = (size_t)p->n + (size_t)n_groups * (size_t)n_sizes;
    nn_piece *all = arena_array(mem, most, sizeof(*all));
    if (!all) return err_nomem(err, most * sizeof(*all));
    for (int32_t i = 0; i < p->n; i++) {
        const nn_piece *old = &p->piece[i];
        all[i] = (nn_piece){.bias = old->bias, .at = old->at};
        weight_init(&all[i].w, old->w.t, old->w.file, old->w.row0, old->w.rows, old->w.cols);
    }
    p->piece = all;
    int64_t row = 0;
    for (int64_t g = 0; g < n_groups; g++) {
        for (int32_t i = 0; i < n_sizes; i++) {
            add_rows(p, whole, row, size[i], at[i] + g * size[i]);
            row += size[i];
        }
    }
    return LATH_OK;
}

lath_status nn_project(const fwd *f, const nn_pieces *p, view x, view y)
{
    const backend_ops *ops = f->s->ops;
    op_linear parts[PARTS];
    for (int32_t first = 0; first < p->n; first += PARTS) {
        const int32_t n = p->n - first < PARTS ? p->n - first : PARTS;
        for (int32_t i = 0; i < n; i++) {
            nn_piece *piece = &p->piece[first + i];
            parts[i] = (op_linear){&piece->w, piece->bias, KERN_FN_NONE, ops->slice(y, piece->at, piece->w.rows)};
        }
        TRY(ops->linear(f->s, x, parts, n));
    }
    return LATH_OK;
}
