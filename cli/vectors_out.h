/* SPDX-License-Identifier: Apache-2.0
 *
 * vectors_out.h: embeddings in the formats of `lath embed`; matrices of other numbers as npy.
 *   jsonl, json   {"index":0,"embedding":[...],"tokens":7,"truncated":false}; numbers read back as the same f32
 *                 of all layers: "layers":[[...],...] for "embedding"
 *   npy           NumPy format 1.0, '<f4', [n, d] or [n, layers, d], C order (numpy.lib.format)
 *   f32           bare little-endian f32, row after row
 *   text          numbers with blanks between, a line a text (of all layers: a line a layer)
 *   preview       for people: the first and last numbers and the text's begin
 */
#ifndef LATH_CLI_VECTORS_OUT_H
#define LATH_CLI_VECTORS_OUT_H

#include "output.h"
#include "texts.h"

enum vectors_format { VECTORS_JSONL, VECTORS_JSON, VECTORS_NPY, VECTORS_F32, VECTORS_TEXT, VECTORS_PREVIEW };

/* What there is for a text: a vector of d numbers, or of each layer one. */
typedef struct vectors_shape {
    bool all_layers;
    int32_t layers;
    int64_t d;
    uint64_t rows; /* that will be written, where it is known; 0: not */
} vectors_shape;

typedef struct vectors_out {
    output *out;
    enum vectors_format format;
    vectors_shape shape;
    uint64_t n; /* written so far */
} vectors_out;

lath_status vectors_begin(vectors_out *v, output *out, enum vectors_format format, vectors_shape shape,
                          lath_error *err);
/* One text's vector: row [layers, d]. `result` is not used by npy, f32 and text, `text` by the preview only. */
lath_status vectors_add(vectors_out *v, const float *row, const lath_embed_result *result, lath_text text,
                        lath_error *err);
/* Ends the document; the output is the caller's to close. */
lath_status vectors_end(vectors_out *v, lath_error *err);

/* The begin of a text on one line, in double quotes, at most `cells` characters. */
void put_excerpt(buf *b, lath_text text, size_t cells);

#endif
