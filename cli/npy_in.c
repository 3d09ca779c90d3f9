/* SPDX-License-Identifier: Apache-2.0
 *
 * npy_in.c: see npy_in.h. The header of an npy file is a Python dictionary in text. Its three keys are looked for by name, each with the
 * few values that a vector can have.
 */
#include "npy_in.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"

enum { MAGIC_BYTES = 6, BYTES_MOST = 64 << 20, QUOTE = 40 };

typedef struct npy {
    const char *path;
    const char *head; /* [head_len] the dictionary */
    size_t head_len;
    const uint8_t *data;
    size_t data_len;
    size_t item; /* bytes of a number */
    size_t d;
} npy;

static lath_status find_parts(npy *x, const buf *file, lath_error *err)
{
    const uint8_t *p = (const uint8_t *)file->data;
    size_t at = MAGIC_BYTES + 2, n;
    if (file->len < at + 2 || memcmp(p, "\x93NUMPY", MAGIC_BYTES) != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: is no npy file", x->path);
    const uint8_t version = p[MAGIC_BYTES];
    if (version < 1 || version > 3)
        return err_set(err, LATH_ERR_FORMAT, "%s: npy of version %d; this reads 1 to 3", x->path, version);
    n = p[at] | (size_t)p[at + 1] << 8;
    at += 2;
    if (version > 1) {
        if (file->len < at + 2) return err_set(err, LATH_ERR_FORMAT, "%s: is cut", x->path);
        n |= (size_t)p[at] << 16 | (size_t)p[at + 1] << 24;
        at += 2;
    }
    if (n > file->len - at) return err_set(err, LATH_ERR_FORMAT, "%s: is cut in its header", x->path);
    x->head = file->data + at;
    x->head_len = n;
    x->data = p + at + n;
    x->data_len = file->len - at - n;
    return LATH_OK;
}

/* What is behind 'key': in the dictionary, blanks skipped; NULL: it is not there. */
static const char *value_of(const npy *x, const char *key)
{
    const size_t n = strlen(key);
    const char *end = x->head + x->head_len;
    for (const char *p = x->head; p + n <= end; p++) {
        if (memcmp(p, key, n) != 0) continue;
        p += n;
        while (p < end && (*p == ' ' || *p == ':')) p++;
        return p < end ? p : NULL;
    }
    return NULL;
}

static bool begins(const npy *x, const char *at, const char *with)
{
    const size_t n = strlen(with);
    return at && (size_t)(x->head + x->head_len - at) >= n && memcmp(at, with, n) == 0;
}

/* How much of a value a message shows: up to a comma, a bracket or the line's end. No 0 is behind the dictionary. */
static int quoted(const npy *x, const char *at)
{
    const size_t left = (size_t)(x->head + x->head_len - at);
    size_t n = 0;
    while (n < left && n < QUOTE && !strchr(",}\n", at[n])) n++;
    return (int)n;
}

static lath_status take_type(npy *x, lath_error *err)
{
    const char *descr = value_of(x, "'descr'");
    x->item = begins(x, descr, "'<f4'") ? 4 : begins(x, descr, "'<f8'") ? 8 : begins(x, descr, "'<f2'") ? 2 : 0;
    if (!x->item)
        return err_set(err, LATH_ERR_INPUT, "%s: its type is %.*s; want '<f4', '<f8' or '<f2'", x->path,
                       descr ? quoted(x, descr) : 9, descr ? descr : "not there");
    return LATH_OK;
}

/* (d,) or (1, d). */
static lath_status take_shape(npy *x, lath_error *err)
{
    const char *at = value_of(x, "'shape'"), *shape = at, *end = x->head + x->head_len;
    size_t dims[2] = {0, 0}, n = 0;
    bool sound = begins(x, at, "(");
    if (sound) at++;
    while (sound && at < end && *at != ')') {
        const bool digit = *at >= '0' && *at <= '9';
        if (digit && n < 2 && dims[n] <= BYTES_MOST && !(at[-1] == ' ' && dims[n])) {
            dims[n] = dims[n] * 10 + (size_t)(*at - '0');
        } else if (*at == ',') {
            n++;
        } else if (*at != ' ') {
            sound = false;
        }
        at++;
    }
    if (n < 2 && dims[n]) n++; /* no comma behind the last */
    sound = sound && at < end && (n == 1 || (n == 2 && dims[0] == 1));
    x->d = n == 2 ? dims[1] : dims[0];
    if (!sound || x->d == 0 || x->d > BYTES_MOST)
        return err_set(err, LATH_ERR_INPUT, "%s: its shape is %.*s; want (d,) or (1, d)", x->path,
                       shape && at < end ? (int)(at - shape + 1 < QUOTE ? at - shape + 1 : QUOTE) : 9,
                       shape && at < end ? shape : "not there");
    return LATH_OK;
}

/* IEEE 754 binary16. */
static double half(uint16_t h)
{
    const int exponent = h >> 10 & 31, mantissa = h & 1023;
    const double v = exponent == 31  ? (mantissa ? NAN : INFINITY)
                     : exponent == 0 ? ldexp(mantissa, -24)
                                     : ldexp(mantissa + 1024, exponent - 25);
    return h & 0x8000 ? -v : v;
}

static double number_at(const npy *x, size_t i)
{
    const uint8_t *p = x->data + i * x->item;
    float f;
    double d;
    uint16_t h;
    switch (x->item) {
    case 2: memcpy(&h, p, sizeof(h)); return half(h);
    case 4: memcpy(&f, p, sizeof(f)); return f;
    default: memcpy(&d, p, sizeof(d)); return d;
    }
}

static lath_status take_numbers(const npy *x, float *out, lath_error *err)
{
    for (size_t i = 0; i < x->d; i++) {
        out[i] = (float)number_at(x, i);
        if (!isfinite(out[i]))
            return err_set(err, LATH_ERR_INPUT, "%s: number %zu is not finite, or too large for f32", x->path, i);
    }
    return LATH_OK;
}

static lath_status parse(npy *x, const buf *file, lath_error *err)
{
    TRY(find_parts(x, file, err));
    TRY(take_type(x, err));
    TRY(take_shape(x, err));
    if (x->data_len != x->d * x->item)
        return err_set(err, LATH_ERR_FORMAT, "%s: has %zu bytes of numbers, its shape says %zu", x->path, x->data_len,
                       x->d * x->item);
    return LATH_OK;
}

lath_status npy_read(const char *path, float **vector, size_t *d, lath_error *err)
{
    npy x = {.path = path};
    float *v = NULL;
    buf file;
    buf_init(&file, alloc_default(), BYTES_MOST);
    lath_status st = file_read(&file, path, BYTES_MOST, err);
    if (st == LATH_OK) st = parse(&x, &file, err);
    if (st == LATH_OK) {
        v = alloc_array(alloc_default(), x.d, sizeof(*v));
        st = v ? take_numbers(&x, v, err) : err_nomem(err, x.d * sizeof(*v));
    }
    buf_deinit(&file);
    if (st == LATH_OK) {
        *vector = v;
        *d = x.d;
        return LATH_OK;
    }
    alloc_release(alloc_default(), v, x.d * sizeof(*v));
    return st;
}
