/* SPDX-License-Identifier: Apache-2.0
 * json_get.c: looking into a parsed tree, with errors that name file, line and key. Members are searched in file order: objects that are looked
 * into have tens of members. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

lath_status json_load(arena *a, const char *path, const json_options *opts, json_value **out, lath_error *err)
{
    buf text;
    size_t most = opts && opts->max_bytes ? opts->max_bytes : (size_t)64 << 20;
    buf_init(&text, a->alloc, SIZE_MAX / 2);
    lath_status st = file_read(&text, path, most, err);
    if (st == LATH_OK) st = json_parse(a, path, text.data ? text.data : "", text.len, opts, out, err);
    buf_deinit(&text);
    return st;
}

const json_value *json_get(const json_value *v, const char *key)
{
    if (!v || v->kind != JSON_OBJECT) return NULL;
    size_t n = strlen(key);
    for (const json_value *m = v->u.items.first; m; m = m->next) {
        if (m->key_len == n && memcmp(m->key, key, n) == 0) return m;
    }
    return NULL;
}

bool json_present(const json_value *v) { return v && v->kind != JSON_NULL; }

bool json_is_string(const json_value *v, const char *s)
{
    return v && v->kind == JSON_STRING && v->u.string.len == strlen(s) &&
           memcmp(v->u.string.data, s, v->u.string.len) == 0;
}

static lath_status wrong_type(const char *name, const json_value *v, const char *want, lath_error *err)
{
    const char *key = v->key ? v->key : "value";
    if (v->line == 0) return err_set(err, LATH_ERR_FORMAT, "%s: \"%.60s\": want %s", name, key, want);
    return err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"%.60s\": want %s", name, v->line, key, want);
}

lath_status json_get_int(const json_value *obj, const char *key, const char *name, int64_t min, int64_t max,
                         int64_t *out, lath_error *err)
{
    const json_value *v = json_get(obj, key);
    if (!json_present(v)) return LATH_OK;
    int64_t n;
    if (v->kind == JSON_INT)
        n = v->u.integer;
    else if (v->kind == JSON_REAL && v->u.real == floor(v->u.real) && fabs(v->u.real) < 9e15)
        n = (int64_t)v->u.real;
    else
        return wrong_type(name, v, "an integer", err);
    if ((n < min || n > max) && v->line == 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: \"%s\" is %lld, want %lld to %lld", name, key, (long long)n,
                       (long long)min, (long long)max);
    if (n < min || n > max)
        return err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"%s\" is %lld, want %lld to %lld", name, v->line, key,
                       (long long)n, (long long)min, (long long)max);
    *out = n;
    return LATH_OK;
}

lath_status json_get_real(const json_value *obj, const char *key, const char *name, double *out, lath_error *err)
{
    const json_value *v = json_get(obj, key);
    if (!json_present(v)) return LATH_OK;
    if (v->kind == JSON_INT)
        *out = (double)v->u.integer;
    else if (v->kind == JSON_REAL)
        *out = v->u.real;
    else
        return wrong_type(name, v, "a number", err);
    return LATH_OK;
}

lath_status json_get_bool(const json_value *obj, const char *key, const char *name, bool *out, lath_error *err)
{
    const json_value *v = json_get(obj, key);
    if (!json_present(v)) return LATH_OK;
    if (v->kind != JSON_BOOL) return wrong_type(name, v, "true or false", err);
    *out = v->u.boolean;
    return LATH_OK;
}

lath_status json_get_str(const json_value *obj, const char *key, const char *name, const char **out, lath_error *err)
{
    const json_value *v = json_get(obj, key);
    if (!json_present(v)) return LATH_OK;
    if (v->kind != JSON_STRING) return wrong_type(name, v, "a string", err);
    if (memchr(v->u.string.data, 0, v->u.string.len))
        return wrong_type(name, v, "a string without NUL characters", err);
    *out = v->u.string.data;
    return LATH_OK;
}
