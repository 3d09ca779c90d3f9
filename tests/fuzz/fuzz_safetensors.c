/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_safetensors.c: any bytes as a .safetensors file. What opens must keep the promises of store/safetensors.h: every tensor inside the data
 * section, one behind the other, none left out. The reader takes a path, so the bytes go through a file in memory (Linux) or in the working
 * directory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "store/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "broken promise: %s\n", what);
    abort();
}

static void check(const safetensors *st)
{
    const file_map *f = safetensors_file(st);
    const uint8_t *end = f->data + f->size, *at = NULL;
    for (int32_t i = 0; i < safetensors_count(st); i++) {
        const tensor *t = safetensors_at(st, i);
        const uint8_t *begin = t->data;
        int64_t count = 1;
        require(t->rank >= 0 && t->rank <= TENSOR_MAX_RANK, "rank");
        for (int32_t k = 0; k < t->rank; k++) count *= t->dim[k];
        require(count == t->count && t->bytes == (size_t)count * dtype_block_bytes(t->type), "bytes of a tensor");
        require(begin >= f->data + 8 && t->bytes <= (size_t)(end - begin), "inside the file");
        require(!at || begin == at, "no gap and no overlap");
        require(safetensors_find(st, t->name) == t, "found by name");
        at = begin + t->bytes;
    }
    require(!at || at == end, "the whole data section");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    safetensors *st = NULL;
    lath_error err;
    const int fd = memfd_create("fuzz", 0);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size, "a file in memory");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const lath_status got = safetensors_open(alloc_default(), path, FILE_MAP, &st, &err);
    if (got == LATH_OK)
        check(st);
    else
        require(st == NULL && err.status == got && strlen(err.msg) > 0, "an error with a message");
    safetensors_close(st);
    close(fd);
    return 0;
}
