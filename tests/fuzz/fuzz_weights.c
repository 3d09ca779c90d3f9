/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_weights.c: any bytes as model.safetensors.index.json of a directory that holds two good shards ("a", "b" in one.safetensors, "c" in
 * two.safetensors), a damaged one and an empty file. What opens must keep the promises of store/weights.h: every tensor is found in the file
 * that holds it, none leads out of the directory; what fails names a file and says why.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATH_ROOM = 512 };
static char dir[256];
static const char index_name[] = "model.safetensors.index.json";
static const struct {
    const char *name, *bytes;
    size_t n;
} files[] = {
    {"one.safetensors",
     "\x69\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}xy",
     8 + 0x69 + 2},
    {"two.safetensors", "\x35\0\0\0\0\0\0\0{\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}z",
     8 + 0x35 + 1},
    {"damaged.safetensors", "\xff\0\0\0\0\0\0\0{", 9},
    {"empty.safetensors", "", 0},
};
enum { N_FILES = sizeof(files) / sizeof(files[0]) };

static void require(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "broken promise: %s\n", what);
    abort();
}

static void write_file(const char *name, const void *p, size_t n)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    require(f != NULL, "a file that can be written");
    require(fwrite(p, 1, n, f) == n, "room for the file");
    fclose(f);
}

static void remove_dir(void)
{
    char path[PATH_ROOM];
    for (int i = 0; i <= N_FILES; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, i < N_FILES ? files[i].name : index_name);
        unlink(path);
    }
    rmdir(dir);
}

static void make_dir(void)
{
    const char *tmp = getenv("TMPDIR");
    if (*dir) return;
    snprintf(dir, sizeof(dir), "%s/lath-fuzz-XXXXXX", tmp && *tmp ? tmp : P_tmpdir);
    require(mkdtemp(dir) != NULL, "a temporary directory");
    atexit(remove_dir);
    for (int i = 0; i < N_FILES; i++) write_file(files[i].name, files[i].bytes, files[i].n);
    for (int i = 0; i < 2; i++) {
        char path[PATH_ROOM];
        safetensors *st = NULL;
        snprintf(path, sizeof(path), "%s/%s", dir, files[i].name);
        require(safetensors_open(alloc_default(), path, FILE_MAP, &st, NULL) == LATH_OK, "shards that are good");
        safetensors_close(st);
    }
}

static void check_error(const lath_error *err, lath_status st)
{
    require(err->status == st && strstr(err->msg, ": ") != NULL, "an error that says where");
    require(st == LATH_ERR_FORMAT || st == LATH_ERR_NOT_FOUND || st == LATH_ERR_LIMIT, "a status that fits");
}

/* The shards that are open, tensor by tensor. */
static void check_open(weights *w)
{
    lath_error err;
    for (int32_t i = 0; i < weights_count(w); i++) {
        bool used;
        const tensor *t = weights_at(w, i, &used), *found;
        require(!used, "not used before it is marked");
        if (!t) continue;
        require(weights_find(w, t->name, &found, &err) == LATH_OK && found == t, "found by name");
        const char *path = weights_file_of(w, t);
        require(strncmp(path, dir, strlen(dir)) == 0 && strchr(path + strlen(dir) + 1, '/') == NULL,
                "a file of the directory");
        require(weights_file_at(w, t->data) == path || strcmp(weights_file_at(w, t->data), path) == 0,
                "its address is in that file");
        weights_mark_used(w, t);
        weights_at(w, i, &used);
        require(used, "marked");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weights *w = NULL;
    lath_error err = {0};
    make_dir();
    write_file(index_name, data, size);
    lath_status st = weights_open(alloc_default(), dir, FILE_MAP, &w, &err);
    if (st == LATH_OK) {
        require(weights_count(w) >= 1 && weights_n_files(w) >= 1 && weights_n_files(w) <= weights_count(w), "counts");
        for (const char *c = "abcd"; *c; c++) {
            const char name[2] = {*c, 0};
            const tensor *t = NULL;
            st = weights_find(w, name, &t, &err);
            require(st == LATH_OK || t == NULL, "no tensor of a failure");
            require(!t || (t->bytes == 1 && *(const char *)t->data == "xyz"[*c - 'a']), "the tensor's own byte");
            if (st != LATH_OK) check_error(&err, st);
        }
        st = weights_open_all(w, &err);
        check_open(w);
    }
    if (st != LATH_OK) check_error(&err, st);
    weights_close(w);
    return 0;
}
