/* SPDX-License-Identifier: Apache-2.0
 * golden.c: see golden.h. */
#include "support/golden.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>

#include "support/test.h"

static float number(const json_value *v) { return v->kind == JSON_INT ? (float)v->u.integer : (float)v->u.real; }

static void load_text(golden *g, golden_text *t, const json_value *row, const char *path)
{
    const json_value *text = json_get(row, "text"), *ids = json_get(row, "ids"), *vector = json_get(row, "embedding");
    lath_error err;
    assert_non_null(text);
    t->text = text->u.string.data;
    t->len = text->u.string.len;
    assert_ok(json_get_str(row, "prompt_name", path, &t->prompt_name, &err), err);
    assert_ok(json_get_str(row, "prompt", path, &t->prompt, &err), err);
    int64_t n = 0;
    assert_ok(json_get_int(row, "n_tokens_untruncated", path, 0, 1 << 30, &n, &err), err);
    t->n_untruncated = (size_t)n;
    if (ids) {
        t->ids = arena_array(&g->mem, ids->u.items.count, sizeof(int32_t));
        for (const json_value *v = ids->u.items.first; v; v = v->next) t->ids[t->n_ids++] = (int32_t)v->u.integer;
    }
    if (vector) {
        t->vector = arena_array(&g->mem, vector->u.items.count, sizeof(float));
        for (const json_value *v = vector->u.items.first; v; v = v->next) t->vector[t->dim++] = number(v);
    }
}

void golden_load(golden *g, const char *path)
{
    lath_error err;
    json_value *j;
    memset(g, 0, sizeof(*g));
    arena_init(&g->mem, alloc_default());
    assert_ok(json_load(&g->mem, path, NULL, &j, &err), err);
    g->json = j;
    const json_value *texts = json_get(j, "texts");
    assert_non_null(texts);
    g->texts = arena_array(&g->mem, texts->u.items.count, sizeof(golden_text));
    for (const json_value *v = texts->u.items.first; v; v = v->next) load_text(g, &g->texts[g->n++], v, path);
    assert_true(g->n > 0);
}

void golden_release(golden *g) { arena_deinit(&g->mem); }

double golden_max_abs(const float *a, const float *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        if (!(d <= most)) most = d; /* NaN counts */
    }
    return most;
}

double golden_cosine(const float *a, const float *b, size_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : aa == bb;
}

void test_path(char *out, size_t n, const char *a, const char *b)
{
    snprintf(out, n, "%s/%s/%s", test_data_dir(), a, b);
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

const char **test_list_dirs(arena *mem, const char *dir, size_t *n)
{
    enum { MOST = 256 };
    const char **names = arena_array(mem, MOST, sizeof(*names));
    *n = 0;
    DIR *d = opendir(dir);
    if (!d) fail_msg("%s cannot be read", dir);
    for (struct dirent *e; (e = readdir(d)) && *n < MOST;) {
        char path[1024];
        struct stat sb;
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        if (e->d_name[0] != '.' && stat(path, &sb) == 0 && S_ISDIR(sb.st_mode))
            names[(*n)++] = arena_strdup(mem, e->d_name, strlen(e->d_name));
    }
    closedir(d);
    qsort(names, *n, sizeof(*names), by_name);
    return names;
}
