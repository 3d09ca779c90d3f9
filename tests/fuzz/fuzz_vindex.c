/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_vindex.c: any bytes as index.json of a vindex, without its checksum, which no mutation would pass. What is taken must keep the promises of
 * store/vindex.h: every place inside its file and as large as its shape, none over another, what the level promises there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/vindex_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "broken promise: %s\n", what);
    abort();
}

static void check_place(const vindex *x, int32_t kind, const tensor *t, uint64_t *end)
{
    size_t row;
    const uint64_t at = (uint64_t)(uintptr_t)t->data;
    require(x->at[kind] >= 0, "a tensor's file is listed");
    require(at % VINDEX_ALIGN == 0 && at >= sizeof(vindex_header), "a tensor is aligned, behind the header");
    require(t->bytes > 0 && at + t->bytes <= x->files[x->at[kind]].bytes, "a tensor is in its file");
    require(dtype_row_bytes(t->type, (uint64_t)t->dim[t->rank - 1], &row) && t->bytes % row == 0, "whole rows");
    require(at >= *end, "no tensor over another");
    *end = at + t->bytes;
}

static int by_place(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)((const tensor *)a)->data, y = (uintptr_t)((const tensor *)b)->data;
    return x < y ? -1 : x > y;
}

/* The rows of one file in the order of their places: layers may stand in any. */
static void check_rows(const vindex *x, int32_t kind)
{
    const int32_t n = x->facts.n_layers;
    tensor *all = malloc((size_t)n * sizeof(*all));
    uint64_t end = 0;
    int32_t k = 0;
    if (!all) return;
    for (int32_t l = 0; l < n; l++) {
        const tensor *t = vindex_rows(x, (vindex_file)kind, l);
        if (!t) continue;
        require(t->dim[kind == VINDEX_OUT ? 1 : 0] == vindex_features(x, l), "a row a feature");
        all[k++] = *t;
    }
    qsort(all, (size_t)k, sizeof(*all), by_place);
    for (int32_t i = 0; i < k; i++) check_place(x, kind, &all[i], &end);
    free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lath_error err;
    vindex x = {.alloc = alloc_default(), .name = "index.json", .dir = "."};
    uint64_t end = 0;
    arena_init(&x.mem, x.alloc);
    if (vindex_read_text(&x, (const char *)data, size, false, &err) == LATH_OK) {
        for (int32_t k = 0; k < VINDEX_TENSORS; k++) check_rows(&x, k);
        for (int32_t i = 0; i < x.n_tensors; i++) check_place(&x, VINDEX_TENSORS, &x.tensors[i], &end);
        for (int32_t l = 0; l < x.facts.n_layers; l++) require(vindex_features(&x, l) > 0, "a layer has features");
    } else {
        require(err.msg[0] != 0, "an error has a message");
    }
    arena_deinit(&x.mem);
    return 0;
}
