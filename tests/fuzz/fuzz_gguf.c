/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_gguf.c: any bytes as a GGUF file. What opens must keep the promises of store/gguf.h: every value can be walked inside the file, every
 * tensor lies aligned inside it and is found by its name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "store/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "broken promise: %s\n", what);
    abort();
}

static void walk(const gguf_value *v, const uint8_t *begin, const uint8_t *end)
{
    if (v->kind == GGUF_STRING) {
        const uint8_t *text = (const uint8_t *)v->as.text.data;
        require(text >= begin && text <= end && v->as.text.len <= (size_t)(end - text), "a string inside the file");
    }
    if (v->kind != GGUF_ARRAY) return;
    const uint8_t *at = v->as.array.data;
    for (uint64_t i = 0; i < v->as.array.count; i++) {
        const gguf_value item = gguf_next(v, &at);
        require(at > begin && at <= end, "an element inside the file");
        walk(&item, begin, end);
    }
}

static void check(const gguf *g)
{
    const file_map *f = gguf_file(g);
    const uint8_t *end = f->data + f->size;
    for (size_t i = 0; i < gguf_n_keys(g); i++) {
        const gguf_value *v = gguf_key_at(g, i);
        require(gguf_get(g, v->key) == v, "found by key");
        walk(v, f->data, end);
    }
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const gguf_tensor *t = gguf_tensor_at(g, i);
        require(gguf_find(g, t->name) == t, "found by name");
        require(t->data >= f->data && t->data <= end && t->bytes <= (size_t)(end - t->data), "inside the file");
        require((size_t)(t->data - f->data) % gguf_alignment(g) == 0, "aligned");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    gguf *g = NULL;
    lath_error err;
    const int fd = memfd_create("fuzz", 0);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size, "a file in memory");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const lath_status got = gguf_open(alloc_default(), path, FILE_MAP, &g, &err);
    if (got == LATH_OK)
        check(g);
    else
        require(g == NULL && err.status == got && strlen(err.msg) > 0, "an error with a message");
    gguf_close(g);
    close(fd);
    return 0;
}
