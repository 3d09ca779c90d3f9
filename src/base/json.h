/* SPDX-License-Identifier: Apache-2.0
 * json.h: JSON in (yajl's event parser into a tree in an arena) and the few pieces of JSON out.
 *
 * Rules on input: strict RFC 8259 UTF-8 text, optional byte order mark, nothing behind the value; duplicate keys of one object, lone
 * surrogate escapes, nesting over max_depth and text over max_bytes are errors that name the line. A number is JSON_INT when it is written
 * without '.', 'e' and fits int64, else JSON_REAL. Independent of the locale.
 *
 * Taps: a container named by its path may be too large for a tree (a vocabulary). Its members are then handed out one by one, each as a
 * small tree that is valid during the call only, and the container appears empty in the tree.
 */
#ifndef LATH_BASE_JSON_H
#define LATH_BASE_JSON_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"

typedef enum json_kind { JSON_NULL, JSON_BOOL, JSON_INT, JSON_REAL, JSON_STRING, JSON_ARRAY, JSON_OBJECT } json_kind;

typedef struct json_value json_value;
struct json_value {
    json_kind kind;
    uint32_t line;   /* 1-based line in the text where the value began; 0: of no text */
    const char *key; /* member of an object: its name (terminated; may hold 0 bytes: see key_len), else NULL */
    size_t key_len;
    json_value *next; /* next member of the same container, in file order */
    union {
        bool boolean;
        int64_t integer;
        double real;
        struct {
            const char *data; /* terminated, may hold 0 bytes */
            size_t len;
        } string;
        struct {
            json_value *first;
            size_t count;
        } items; /* JSON_ARRAY, JSON_OBJECT */
    } u;
};

/* item->key is set for members of an object. A status other than LATH_OK stops the parse and becomes its result. */
typedef lath_status (*json_tap_fn)(void *ctx, const json_value *item, lath_error *err);
typedef struct json_tap {
    const char *path; /* member names joined by '.', e.g. "model.vocab" (names only, no array steps) */
    json_tap_fn fn;
    void *ctx;
} json_tap;

typedef struct json_options {
    size_t max_bytes; /* 0: 64 MiB */
    int max_depth;    /* 0: 64 */
    const json_tap *taps;
    size_t n_taps;
    bool
        serde_reals; /* reals as the Rust package serde_json reads them by default: off by a unit in the last place at times */
} json_options;

/* Parses text[0..n) into `a`. `name` (a file name, or "request") leads the error message: "NAME: line 3: ...". opts may be NULL. */
lath_status json_parse(arena *a, const char *name, const char *text, size_t n, const json_options *opts,
                       json_value **out, lath_error *err);
/* Reads the file and parses it; LATH_ERR_NOT_FOUND when it does not exist. The name in messages is the path as given. */
lath_status json_load(arena *a, const char *path, const json_options *opts, json_value **out, lath_error *err);

/* Member of an object by name; NULL when absent or when v is NULL or no object. */
const json_value *json_get(const json_value *v, const char *key);
/* The value is there and not JSON null. */
bool json_present(const json_value *v);
bool json_is_string(const json_value *v, const char *s);

/* Typed members with a default. Absent or null leaves *out as it is; another type is LATH_ERR_FORMAT: "NAME: line 4: \"key\": want an integer".
 * json_get_int also takes a real that is a whole number. Strings are borrowed from the arena. */
lath_status json_get_int(const json_value *obj, const char *key, const char *name, int64_t min, int64_t max,
                         int64_t *out, lath_error *err);
lath_status json_get_real(const json_value *obj, const char *key, const char *name, double *out, lath_error *err);
lath_status json_get_bool(const json_value *obj, const char *key, const char *name, bool *out, lath_error *err);
lath_status json_get_str(const json_value *obj, const char *key, const char *name, const char **out, lath_error *err);

/* "..." with escapes; s is valid UTF-8. */
void json_put_string(buf *b, const char *s, size_t n);
/* The shortest of %.6g to %.9g that reads back as the same f32, with a point in every locale; null for NaN and infinities. */
void json_put_f32(buf *b, float v);
void json_put_f64(buf *b, double v);
/* A tree as it would be read again. NaN and infinities, which no text has, become null. */
void json_put_value(buf *b, const json_value *v);

#endif
