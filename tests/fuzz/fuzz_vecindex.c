/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_vecindex.c: any bytes as a vector index file: as they are, and once more with every checksum made right, so that
 * the checks behind them are reached. What opens must keep the promises of store/vecindex.h, and can be searched.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "lath/lath.h"
#include "store/vecindex_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "broken promise: %s\n", what);
    abort();
}

/* Right sums where the sizes say that there is something to sum. */
static void reseal(uint8_t *b, size_t size)
{
    vecindex_header h;
    memcpy(&h, b, sizeof(h));
    vecindex_header fits = h;
    if (vecindex_lay_out(&fits) && fits.file_bytes == size) {
        h = fits;
        vecindex_checks *checks = (vecindex_checks *)(void *)(b + h.checks_offset);
        for (uint64_t at = 0, i = 0; at < h.n; at += h.block_rows, i++) {
            const size_t rows = (size_t)(h.n - at < h.block_rows ? h.n - at : h.block_rows);
            checks[i].vectors = hash_64(b + h.vectors_offset + at * h.row_bytes, rows * (size_t)h.row_bytes);
            checks[i].entries =
                hash_64(b + h.entries_offset + at * sizeof(vecindex_entry), rows * sizeof(vecindex_entry));
        }
        const hash128 sum = hash_128(checks, (size_t)h.checks_bytes, 0);
        h.checks_hash[0] = sum.lo;
        h.checks_hash[1] = sum.hi;
    }
    h.header_hash = hash_64(&h, offsetof(vecindex_header, header_hash));
    memcpy(b, &h, sizeof(h));
}

static void use_rows(const vecindex *x)
{
    vecindex_entry e;
    lath_error err;
    bool whole = true;
    require(x->n_blocks == vecindex_blocks(x->n, x->block_rows), "blocks");
    require(x->vectors + x->n * x->row_bytes <= x->file.data + x->file.size, "vectors inside the file");
    for (uint64_t b = 0; b < x->n_blocks; b++) whole = vecindex_check(x, b, &err) == LATH_OK && whole;
    for (uint64_t row = 0; row < x->n; row++) {
        if (vecindex_get_entry(x, row, &e, &err) != LATH_OK) {
            whole = false;
            continue;
        }
        require(e.offset <= x->key.corpus_bytes && e.len <= x->key.corpus_bytes - e.offset, "inside the corpus");
    }
    require((vecindex_verify(x, &err) == LATH_OK) == whole, "verify finds what its parts find");
}

static void search(const char *path)
{
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_index_info info = {.struct_size = sizeof(info)};
    lath_runtime *rt = NULL;
    lath_index *x = NULL;
    lath_hit hits[2 * 5];
    lath_error err;
    ro.n_threads = 1;
    require(lath_runtime_create(&ro, &rt, &err) == LATH_OK, "a runtime");
    if (lath_index_open(rt, path, LATH_LOAD_MAP, &x, &err) == LATH_OK &&
        lath_index_get_info(x, &info, &err) == LATH_OK && info.d <= 1 << 16) {
        const lath_index_search_options so = {sizeof(so), 5, NULL};
        float *q = malloc(2 * (size_t)info.d * sizeof(*q));
        size_t n = 0;
        require(q != NULL, "memory");
        for (int64_t i = 0; i < 2 * info.d; i++) q[i] = i % 3 ? 0.25f : -1.0f;
        if (lath_index_search_with(x, q, 2, &so, hits, &n, &err) == LATH_OK) {
            require(n == (info.n < 5 ? info.n : 5), "as many hits as there can be");
            for (size_t i = 0; i < 2 * n; i++) require(hits[i].row < info.n && !isnan(hits[i].score), "a hit");
            for (size_t i = 1; i < n; i++) require(hits[i - 1].score >= hits[i].score, "the order");
        }
        free(q);
    }
    lath_index_close(x);
    lath_runtime_destroy(rt);
}

static void run(const uint8_t *data, size_t size)
{
    char path[64];
    vecindex x;
    lath_error err;
    const int fd = memfd_create("fuzz", 0);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size, "a file in memory");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const lath_status got = vecindex_open(alloc_default(), path, FILE_MAP, &x, &err);
    if (got == LATH_OK) {
        use_rows(&x);
        search(path);
    } else {
        require(!x.file.data && err.status == got && strlen(err.msg) > 0, "an error with a message");
    }
    vecindex_close(&x);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run(data, size);
    if (size < VECINDEX_HEADER) return 0;
    uint8_t *sealed = aligned_alloc(64, (size + 63) / 64 * 64);
    require(sealed != NULL, "memory");
    memcpy(sealed, data, size);
    reseal(sealed, size);
    run(sealed, size);
    free(sealed);
    return 0;
}
