/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_split.c: which part of a model a GGUF file is, and what the other parts are called (gguf-split of llama.cpp writes them so).
 */
#include "store/gguf_split.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

enum { MAX_PARTS = 1 << 16, SUFFIX_LEN = 20 }; /* "-00001-of-00003.gguf" */

/* *out stays where there is no such key. */
static lath_status read_count(const gguf *g, const char *key, int64_t most, int64_t *out, lath_error *err)
{
    const gguf_value *v = gguf_get(g, key);
    if (!v) return LATH_OK;
    if (!gguf_whole(v, most, out))
        return err_set(err, LATH_ERR_FORMAT, "%s: key \"%s\": want a whole number from 0 to %lld", gguf_file(g)->path,
                       key, (long long)most);
    return LATH_OK;
}

lath_status gguf_split_read(const gguf *g, gguf_split *out, lath_error *err)
{
    int64_t no = 0, count = 1, n_tensors = -1;
    TRY(read_count(g, "split.count", MAX_PARTS, &count, err));
    TRY(read_count(g, "split.no", MAX_PARTS, &no, err));
    TRY(read_count(g, "split.tensors.count", GGUF_MAX_TENSORS, &n_tensors, err));
    if (count == 0) count = 1;
    if (no >= count)
        return err_set(err, LATH_ERR_FORMAT, "%s: key \"split.no\": part %lld (from 0) of %lld", gguf_file(g)->path,
                       (long long)no, (long long)count);
    *out = (gguf_split){(int32_t)no, (int32_t)count, count == 1 ? -1 : n_tensors};
    return LATH_OK;
}

lath_status gguf_split_path(arena *a, const gguf *g, const gguf_split *s, int32_t no, const char **out, lath_error *err)
{
    const char *path = gguf_file(g)->path;
    const size_t n = strlen(path);
    char suffix[SUFFIX_LEN + 16];
    snprintf(suffix, sizeof(suffix), "-%05d-of-%05d.gguf", s->no + 1, s->count);
    if (n < SUFFIX_LEN || strcmp(path + n - SUFFIX_LEN, suffix) != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: it is part %d of %d, so its name should end with %s", path, s->no + 1,
                       s->count, suffix);
    char *other = arena_strdup(a, path, n);
    if (!other) return err_nomem(err, n);
    snprintf(suffix, sizeof(suffix), "-%05d-of-%05d.gguf", no + 1, s->count);
    memcpy(other + n - SUFFIX_LEN, suffix, SUFFIX_LEN);
    *out = other;
    return LATH_OK;
}

lath_status gguf_open_first(const lath_allocator *alloc, const char *path, file_mode mode, gguf **out, lath_error *err)
{
    gguf *given = NULL;
    gguf_split s;
    arena scratch;
    const char *first = NULL;
    TRY(gguf_open(alloc, path, mode, &given, err));
    arena_init(&scratch, alloc);
    lath_status st = gguf_split_read(given, &s, err);
    if (st == LATH_OK && s.no > 0) st = gguf_split_path(&scratch, given, &s, 0, &first, err);
    if (st == LATH_OK && s.no == 0) {
        *out = given;
        given = NULL;
    } else if (st == LATH_OK) {
        st = gguf_open(alloc, first, mode, out, err);
    }
    gguf_close(given);
    arena_deinit(&scratch);
    return st;
}
