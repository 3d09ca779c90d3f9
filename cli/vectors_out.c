/* SPDX-License-Identifier: Apache-2.0
 *
 * vectors_out.c: see vectors_out.h. The header of an npy file holds the number of rows, which is often known at the end
 * only: into a file the header is written last, over room left for it; what cannot be patched (a pipe) is held in memory
 * until the end.
 */
#include "vectors_out.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "npy and f32 are written as they lie in memory, little-endian"
#endif

enum { NPY_HEADER = 128, PREVIEW_NUMBERS = 3, PREVIEW_CELLS = 48 };

/* Magic, version 1.0, length, dictionary, blanks up to a multiple of 64, newline. */
static void npy_header(char head[NPY_HEADER], uint64_t n, vectors_shape shape)
{
    enum { LEAD = 10 };
    memset(head, ' ', NPY_HEADER);
    memcpy(head, "\x93NUMPY\x01\x00", 8);
    head[8] = (char)((NPY_HEADER - LEAD) & 0xFF);
    head[9] = (char)((NPY_HEADER - LEAD) >> 8);
    char layers[24] = "";
    if (shape.all_layers) snprintf(layers, sizeof(layers), "%d, ", (int)shape.layers);
    const int used =
        snprintf(head + LEAD, NPY_HEADER - LEAD, "{'descr': '<f4', 'fortran_order': False, 'shape': (%llu, %s%lld), }",
                 (unsigned long long)n, layers, (long long)shape.d);
    head[LEAD + used] = ' '; /* over the terminator */
    head[NPY_HEADER - 1] = '\n';
}

lath_status vectors_begin(vectors_out *v, output *out, enum vectors_format format, vectors_shape shape, lath_error *err)
{
    char head[NPY_HEADER];
    *v = (vectors_out){.out = out, .format = format, .shape = shape};
    if ((format == VECTORS_NPY || format == VECTORS_F32) && out->terminal)
        return err_set(err, LATH_ERR_USAGE,
                       "standard output: bytes are not shown on a terminal; write them to a file with -o");
    if (format == VECTORS_JSON) buf_char(&out->b, '[');
    if (format == VECTORS_NPY) {
        npy_header(head, shape.rows, shape);
        buf_append(&out->b, head, NPY_HEADER);
    }
    return buf_status(&out->b, err);
}

static void put_numbers(buf *b, const float *row, int64_t d, char between)
{
    for (int64_t i = 0; i < d; i++) {
        if (i > 0) buf_char(b, between);
        json_put_f32(b, row[i]);
    }
}

static void put_json(buf *b, uint64_t index, const float *row, vectors_shape shape, const lath_embed_result *result)
{
    buf_printf(b, "{\"index\":%llu,\"%s\":[", (unsigned long long)index, shape.all_layers ? "layers" : "embedding");
    for (int32_t i = 0; i < shape.layers; i++, row += shape.d) {
        if (shape.all_layers) buf_str(b, i > 0 ? ",[" : "[");
        put_numbers(b, row, shape.d, ',');
        if (shape.all_layers) buf_char(b, ']');
    }
    buf_printf(b, "],\"tokens\":%d,\"truncated\":%s}", (int)result->n_tokens, result->truncated ? "true" : "false");
}

static void put_text(buf *b, const float *row, vectors_shape shape)
{
    for (int32_t i = 0; i < shape.layers; i++, row += shape.d) {
        put_numbers(b, row, shape.d, ' ');
        buf_char(b, '\n');
    }
}

void put_excerpt(buf *b, lath_text text, size_t cells)
{
    size_t at = 0, shown = 0;
    uint32_t cp;
    buf_char(b, '"');
    while (at < text.len && shown < cells) {
        const size_t n = utf8_decode(text.data + at, text.len - at, &cp);
        if (n == 0) break;
        if (cp < 0x20 || (cp >= 0x7F && cp < 0xA0))
            buf_char(b, ' ');
        else
            buf_append(b, text.data + at, n);
        at += n;
        shown++;
    }
    buf_str(b, at < text.len ? "...\"" : "\"");
}

static void put_preview_numbers(buf *b, const float *row, int64_t d)
{
    buf_char(b, '[');
    for (int64_t i = 0; i < d; i++) {
        if (i == PREVIEW_NUMBERS && d > 2 * PREVIEW_NUMBERS) {
            buf_str(b, ", ...");
            i = d - PREVIEW_NUMBERS;
        }
        buf_printf(b, "%s%.5f", i > 0 ? ", " : "", (double)row[i]);
    }
    buf_printf(b, "]  %lld numbers\n", (long long)d);
}

static void put_preview(buf *b, uint64_t index, const float *row, vectors_shape shape, const lath_embed_result *result,
                        lath_text text)
{
    buf_printf(b, "%llu  ", (unsigned long long)index);
    put_excerpt(b, text, PREVIEW_CELLS);
    buf_printf(b, "  %d token%s%s  ", (int)result->n_tokens, result->n_tokens == 1 ? "" : "s",
               result->truncated ? " (cut)" : "");
    for (int32_t i = 0; i < shape.layers; i++, row += shape.d) {
        if (shape.all_layers) buf_printf(b, "%slayer %d  ", i ? "    " : "\n    ", (int)i);
        put_preview_numbers(b, row, shape.d);
    }
}

lath_status vectors_add(vectors_out *v, const float *row, const lath_embed_result *result, lath_text text,
                        lath_error *err)
{
    buf *b = &v->out->b;
    switch (v->format) {
    case VECTORS_JSON:
        buf_str(b, v->n > 0 ? ",\n" : "");
        put_json(b, v->n, row, v->shape, result);
        break;
    case VECTORS_JSONL:
        put_json(b, v->n, row, v->shape, result);
        buf_char(b, '\n');
        break;
    case VECTORS_NPY:
    case VECTORS_F32: buf_append(b, row, (size_t)(v->shape.layers * v->shape.d) * sizeof(*row)); break;
    case VECTORS_TEXT: put_text(b, row, v->shape); break;
    case VECTORS_PREVIEW: put_preview(b, v->n, row, v->shape, result, text); break;
    }
    v->n++;
    if (v->format == VECTORS_NPY && !v->shape.rows && !output_can_patch(v->out)) return buf_status(b, err);
    return output_flush_full(v->out, err);
}

lath_status vectors_end(vectors_out *v, lath_error *err)
{
    buf *b = &v->out->b;
    char head[NPY_HEADER];
    if (v->format == VECTORS_JSON) buf_str(b, "]\n");
    if (v->format != VECTORS_NPY || v->shape.rows) return buf_status(b, err);
    npy_header(head, v->n, v->shape);
    if (!output_can_patch(v->out)) {
        TRY(buf_status(b, err));
        memcpy(b->data, head, NPY_HEADER); /* nothing was flushed yet */
        return LATH_OK;
    }
    TRY(output_flush(v->out, err));
    return output_patch(v->out, 0, head, NPY_HEADER, err);
}
