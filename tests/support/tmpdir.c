/* SPDX-License-Identifier: Apache-2.0
 * tmpdir.c: see tmpdir.h. */
#include "support/tmpdir.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "store/safetensors.h"
#include "support/test.h"

enum { PREFIX = 8 };

static void path_in(char out[2 * TMP_PATH], const char *dir, const char *name)
{
    assert_true(snprintf(out, 2 * TMP_PATH, "%s/%s", dir, name) < 2 * TMP_PATH);
}

void tmp_join(char out[TMP_PATH], const char *dir, const char *name)
{
    assert_true(snprintf(out, TMP_PATH, "%s/%s", dir, name) < TMP_PATH);
}

void tmp_make(char *out)
{
    const char *tmp = getenv("TMPDIR");
    assert_true(snprintf(out, TMP_PATH, "%s/lath-test-XXXXXX", tmp && *tmp ? tmp : P_tmpdir) < TMP_PATH);
    assert_non_null(mkdtemp(out));
}

static int not_dots(const struct dirent *e) { return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0; }

static void copy_tree(const char *from, const char *to)
{
    struct dirent **names = NULL;
    int n = scandir(from, &names, not_dots, alphasort);
    if (n < 0) fail_msg("%s: cannot be read", from);
    for (int i = 0; i < n; i++) {
        char a[2 * TMP_PATH], b[2 * TMP_PATH];
        struct stat st;
        path_in(a, from, names[i]->d_name);
        path_in(b, to, names[i]->d_name);
        assert_int_equal(stat(a, &st), 0);
        if (S_ISDIR(st.st_mode)) {
            assert_int_equal(mkdir(b, 0755), 0);
            copy_tree(a, b);
        } else {
            size_t size;
            char *bytes = tmp_read(from, names[i]->d_name, &size);
            tmp_write_bytes(to, names[i]->d_name, bytes, size);
            free(bytes);
        }
        free(names[i]);
    }
    free(names);
}

void tmp_copy(char *out, const char *from)
{
    tmp_make(out);
    copy_tree(from, out);
}

void tmp_remove(const char *dir)
{
    struct dirent **names = NULL;
    int n = scandir(dir, &names, not_dots, alphasort);
    for (int i = 0; i < n; i++) {
        char p[2 * TMP_PATH];
        struct stat st;
        path_in(p, dir, names[i]->d_name);
        if (lstat(p, &st) == 0 && S_ISDIR(st.st_mode))
            tmp_remove(p);
        else
            unlink(p);
        free(names[i]);
    }
    free(names);
    rmdir(dir);
}

void tmp_write_bytes(const char *dir, const char *name, const void *p, size_t n)
{
    char path[2 * TMP_PATH];
    path_in(path, dir, name);
    for (char *slash = strchr(path + strlen(dir) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdir(path, 0755); /* may be there */
        *slash = '/';
    }
    FILE *f = fopen(path, "wb");
    if (!f) fail_msg("%s: cannot be written", path);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

void tmp_write(const char *dir, const char *name, const char *text) { tmp_write_bytes(dir, name, text, strlen(text)); }

char *tmp_read(const char *dir, const char *name, size_t *n)
{
    char path[2 * TMP_PATH];
    path_in(path, dir, name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s: cannot be read", path);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long size = ftell(f);
    assert_true(size >= 0);
    rewind(f);
    char *p = malloc((size_t)size + 1);
    assert_non_null(p);
    assert_int_equal(fread(p, 1, (size_t)size, f), size);
    fclose(f);
    p[size] = 0;
    if (n) *n = (size_t)size;
    return p;
}

/* text[0..n) with its only `old` replaced, malloc'd. */
static char *replaced(const char *text, size_t n, const char *old, const char *with, size_t *n_out)
{
    size_t k = strlen(old), l = strlen(with);
    const char *at = memmem(text, n, old, k);
    if (!at) fail_msg("nothing to replace: %s", old);
    assert_null(memmem(at + 1, n - (size_t)(at + 1 - text), old, k));
    char *out = malloc(n - k + l + 1);
    assert_non_null(out);
    size_t head = (size_t)(at - text);
    memcpy(out, text, head);
    memcpy(out + head, with, l);
    memcpy(out + head + l, at + k, n - head - k);
    *n_out = n - k + l;
    return out;
}

void tmp_replace(const char *dir, const char *name, const char *old, const char *with)
{
    size_t n, m;
    char *text = tmp_read(dir, name, &n), *fresh = replaced(text, n, old, with, &m);
    tmp_write_bytes(dir, name, fresh, m);
    free(text);
    free(fresh);
}

void tmp_delete(const char *dir, const char *name)
{
    char path[2 * TMP_PATH];
    path_in(path, dir, name);
    assert_int_equal(unlink(path), 0);
}

void tmp_rename(const char *dir, const char *from, const char *to)
{
    char a[2 * TMP_PATH], b[2 * TMP_PATH];
    path_in(a, dir, from);
    path_in(b, dir, to);
    assert_int_equal(rename(a, b), 0);
}

static size_t header_length(const char *bytes)
{
    uint64_t n = 0;
    for (int i = 0; i < PREFIX; i++) n |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    return (size_t)n;
}

void tmp_patch_tensor(const char *dir, const char *name, size_t at, const void *p, size_t n)
{
    size_t size;
    char *bytes = tmp_read(dir, "model.safetensors", &size);
    size_t head = header_length(bytes);
    arena mem;
    json_value *j = NULL;
    lath_error err;
    arena_init(&mem, alloc_default());
    assert_ok(json_parse(&mem, "header", bytes + PREFIX, head, NULL, &j, &err), err);
    const json_value *range = json_get(json_get(j, name), "data_offsets");
    if (!range) fail_msg("no tensor %s", name);
    size_t begin = (size_t)range->u.items.first->u.integer, end = (size_t)range->u.items.first->next->u.integer;
    assert_true(at + n <= end - begin);
    memcpy(bytes + PREFIX + head + begin + at, p, n);
    tmp_write_bytes(dir, "model.safetensors", bytes, size);
    arena_deinit(&mem);
    free(bytes);
}

void tmp_edit_header(const char *dir, const char *old, const char *with)
{
    size_t size, n;
    char *bytes = tmp_read(dir, "model.safetensors", &size);
    size_t head = header_length(bytes);
    char *text = replaced(bytes + PREFIX, head, old, with, &n);
    char *all = malloc(PREFIX + n + size - PREFIX - head);
    assert_non_null(all);
    for (int i = 0; i < PREFIX; i++) all[i] = (char)((uint64_t)n >> (8 * i));
    memcpy(all + PREFIX, text, n);
    memcpy(all + PREFIX + n, bytes + PREFIX + head, size - PREFIX - head);
    tmp_write_bytes(dir, "model.safetensors", all, PREFIX + n + size - PREFIX - head);
    free(bytes);
    free(text);
    free(all);
}

/* Tensors first <= i < end of a file as a file of their own. */
static void write_shard(const char *dir, const char *name, const safetensors *st, int32_t first, int32_t end)
{
    buf head, all;
    size_t at = 0;
    buf_init(&head, alloc_default(), SIZE_MAX / 2);
    buf_init(&all, alloc_default(), SIZE_MAX / 2);
    for (int32_t i = first; i < end; i++) {
        const tensor *t = safetensors_at(st, i);
        buf_char(&head, i == first ? '{' : ',');
        json_put_string(&head, t->name, strlen(t->name));
        buf_printf(&head, ":{\"dtype\":\"%s\",\"shape\":[", dtype_name(t->type));
        for (int32_t k = 0; k < t->rank; k++) buf_printf(&head, "%s%lld", k ? "," : "", (long long)t->dim[k]);
        buf_printf(&head, "],\"data_offsets\":[%zu,%zu]}", at, at + t->bytes);
        at += t->bytes;
    }
    buf_char(&head, '}');
    for (int i = 0; i < PREFIX; i++) buf_char(&all, (char)((uint64_t)head.len >> (8 * i)));
    buf_append(&all, head.data, head.len);
    for (int32_t i = first; i < end; i++) buf_append(&all, safetensors_at(st, i)->data, safetensors_at(st, i)->bytes);
    assert_false(head.failed || all.failed);
    tmp_write_bytes(dir, name, all.data, all.len);
    buf_deinit(&head);
    buf_deinit(&all);
}

void tmp_split(const char *dir, int32_t n)
{
    char path[TMP_PATH];
    safetensors *st = NULL;
    lath_error err;
    buf index;
    tmp_join(path, dir, "model.safetensors");
    assert_ok(safetensors_open(alloc_default(), path, FILE_COPY, &st, &err), err);
    buf_init(&index, alloc_default(), SIZE_MAX / 2);
    buf_str(&index, "{\"metadata\": {\"total_size\": 0}, \"weight_map\": {");
    const int32_t count = safetensors_count(st);
    for (int32_t s = 0; s < n; s++) {
        char name[64];
        const int32_t first = (int32_t)((int64_t)s * count / n), end = (int32_t)((int64_t)(s + 1) * count / n);
        snprintf(name, sizeof(name), "model-%05d-of-%05d.safetensors", s + 1, n);
        write_shard(dir, name, st, first, end);
        for (int32_t i = first; i < end; i++) {
            buf_str(&index, i ? ",\n" : "\n");
            json_put_string(&index, safetensors_at(st, i)->name, strlen(safetensors_at(st, i)->name));
            buf_printf(&index, ": \"%s\"", name);
        }
    }
    buf_str(&index, "}}\n");
    assert_false(index.failed);
    tmp_write_bytes(dir, "model.safetensors.index.json", index.data, index.len);
    tmp_delete(dir, "model.safetensors");
    buf_deinit(&index);
    safetensors_close(st);
}
