/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_tracefile.c: any bytes as a trace, a boundary and a context file. What opens must keep the promises of store/tracefile.h, and what a writer goes on
 * with must open again with one record more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/tracefile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "broken promise: %s\n", what);
    abort();
}

static void use(const tracefile *f)
{
    const uint8_t *end = f->file.data + f->file.size;
    uint32_t begin = 0, behind = 0;
    require(f->vectors == tracefile_vectors(&f->shape) && f->vectors > 0, "vectors");
    for (uint32_t i = 0; i < f->n_records; i++) {
        const float *first = tracefile_get(f, i, 0), *last = tracefile_get(f, i, f->vectors - 1);
        require((const uint8_t *)first > f->file.data && (const uint8_t *)(last + f->shape.d) <= end,
                "inside the file");
        if (i + 1 == f->n_records) require((const uint8_t *)(last + f->shape.d) == end, "to its end");
        if (f->shape.kind == TRACEFILE_TRAC) continue;
        require(tracefile_window(f, i, &begin, &behind) && begin < behind, "a window");
        require(tracefile_find(f, begin) == i && tracefile_find(f, behind - 1) == i, "found");
    }
    require(!tracefile_get(f, f->n_records, 0) && !tracefile_get(f, 0, f->vectors), "nothing behind");
    if (f->shape.kind != TRACEFILE_TRAC) require(f->n_tokens == behind, "tokens");
}

static void go_on(const char *path, tracefile_kind kind)
{
    tracefile_writer *w;
    tracefile f;
    lath_error err;
    if (tracefile_continue(alloc_default(), path, kind, NULL, &w, &err) != LATH_OK) return;
    const tracefile_shape *s = tracefile_writer_shape(w);
    const size_t numbers = tracefile_vectors(s) * s->d;
    if (numbers > 1 << 16) {
        tracefile_abort(w);
        return;
    }
    float *record = calloc(numbers, sizeof(*record));
    require(record != NULL, "memory");
    require(tracefile_open(alloc_default(), path, kind, &f, &err) == LATH_OK, "what a writer goes on with opens");
    const uint32_t n = f.n_records, behind = f.n_tokens;
    tracefile_close(&f);
    const lath_status st = tracefile_add(w, behind, 1, record, &err);
    require(tracefile_commit(w, &err) == LATH_OK, "commit");
    require(tracefile_open(alloc_default(), path, kind, &f, &err) == LATH_OK, "what was written opens");
    require(f.n_records == n + (st == LATH_OK), "one record more");
    use(&f);
    tracefile_close(&f);
    free(record);
}

static void run(const char *path, const uint8_t *data, size_t size, tracefile_kind kind)
{
    tracefile f;
    lath_error err;
    FILE *out = fopen(path, "wb");
    require(out && fwrite(data, 1, size, out) == size && fclose(out) == 0, "a file");
    const lath_status got = tracefile_open(alloc_default(), path, kind, &f, &err);
    if (got == LATH_OK)
        use(&f);
    else
        require(!f.file.data && err.status == got && strlen(err.msg) > 0, "an error with a message");
    tracefile_close(&f);
    go_on(path, kind);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = P_tmpdir "/fuzz_tracefile.XXXXXX";
    const int fd = mkstemp(path);
    require(fd >= 0, "a file");
    close(fd);
    for (int kind = TRACEFILE_TRAC; kind <= TRACEFILE_CTXT; kind++) run(path, data, size, (tracefile_kind)kind);
    unlink(path);
    return 0;
}
