/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_tokenizer.c: the tokenizer that a GGUF file carries: its metadata tokenizer.ggml.* (docs of ggml, gguf.md) as plain arrays for tok/, and
 * the way back. What the keys are called is known here and nowhere else; what they mean is tok/'s business.
 */
#include <string.h>

#include "engine/engine.h"
#include "store/gguf_write.h"

/* Numbers of tok_arrays. */
static const struct {
    const char *key;
    size_t offset;
    bool flag;
} numbers[] = {
#define NUMBER(key, field, flag)                                 \
    {                                                            \
        "tokenizer.ggml." key, offsetof(tok_arrays, field), flag \
    }
    NUMBER("bos_token_id", bos, false),
    NUMBER("eos_token_id", eos, false),
    NUMBER("eot_token_id", eot, false),
    NUMBER("eom_token_id", eom, false),
    NUMBER("unknown_token_id", unk, false),
    NUMBER("seperator_token_id", sep, false), /* the format spells it so */
    NUMBER("padding_token_id", pad, false),
    NUMBER("cls_token_id", cls, false),
    NUMBER("mask_token_id", mask, false),
    NUMBER("add_bos_token", add_bos, true),
    NUMBER("add_eos_token", add_eos, true),
    NUMBER("add_space_prefix", add_space_prefix, true),
    NUMBER("remove_extra_whitespaces", remove_extra_spaces, true),
#undef NUMBER
};
enum { N_NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

typedef struct reading {
    const gguf *g;
    const char *path;
    arena *mem;
} reading;

static lath_status wrong(const reading *r, const char *key, const char *want, lath_error *err)
{
    return err_set(err, LATH_ERR_FORMAT, "%s: key \"%s\": want %s", r->path, key, want);
}

/* A string, terminated; *out stays where there is none. */
static lath_status get_text(const reading *r, const char *key, const char **out, lath_error *err)
{
    const gguf_value *v = gguf_get(r->g, key);
    if (!v) return LATH_OK;
    if (v->kind != GGUF_STRING) return wrong(r, key, "a string", err);
    *out = arena_strdup(r->mem, v->as.text.data, v->as.text.len);
    return *out ? LATH_OK : err_nomem(err, v->as.text.len);
}

static lath_status get_number(const reading *r, const char *key, int32_t *out, lath_error *err)
{
    const gguf_value *v = gguf_get(r->g, key);
    int64_t n;
    if (!v) return LATH_OK;
    const size_t len = strlen(key), tail = sizeof("_token_id") - 1;
    const bool is_id = len > tail && strcmp(key + len - tail, "_token_id") == 0;
    /* All bits set is how some writers say that there is none. */
    if (is_id && v->kind == GGUF_U32 && v->as.u == UINT32_MAX) return LATH_OK;
    if (!gguf_whole(v, INT32_MAX, &n))
        return wrong(r, key, is_id ? "the id of a token" : "a number from 0 to 2147483647", err);
    *out = (int32_t)n;
    return LATH_OK;
}

/* The array of that key with elements of `kind`; NULL where there is none. n: how many elements it must have; 0: any. */
static lath_status get_array(const reading *r, const char *key, gguf_kind kind, uint64_t n, const gguf_value **out,
                             lath_error *err)
{
    *out = gguf_get(r->g, key);
    if (!*out) return LATH_OK;
    const bool right = (*out)->kind == GGUF_ARRAY && (*out)->as.array.kind == kind;
    if (!right) return wrong(r, key, kind == GGUF_STRING ? "an array of strings" : "an array of numbers", err);
    if (n && (*out)->as.array.count != n)
        return err_set(err, LATH_ERR_FORMAT, "%s: key \"%s\": %llu elements, want %llu", r->path, key,
                       (unsigned long long)(*out)->as.array.count, (unsigned long long)n);
    return LATH_OK;
}

static lath_status get_strings(const reading *r, const char *key, const tok_string **out, size_t *n, lath_error *err)
{
    const gguf_value *v;
    TRY(get_array(r, key, GGUF_STRING, 0, &v, err));
    if (!v || v->as.array.count == 0) return LATH_OK;
    tok_string *s = arena_array(r->mem, (size_t)v->as.array.count, sizeof(*s));
    if (!s) return err_nomem(err, (size_t)v->as.array.count * sizeof(*s));
    const uint8_t *at = v->as.array.data;
    for (uint64_t i = 0; i < v->as.array.count; i++) {
        const gguf_value e = gguf_next(v, &at);
        s[i] = (tok_string){e.as.text.data, e.as.text.len};
    }
    *out = s;
    *n = (size_t)v->as.array.count;
    return LATH_OK;
}

static lath_status get_scores(const reading *r, tok_arrays *a, lath_error *err)
{
    const gguf_value *v;
    TRY(get_array(r, "tokenizer.ggml.scores", GGUF_F32, a->n, &v, err));
    if (!v) return LATH_OK;
    float *scores = arena_array(r->mem, a->n, sizeof(*scores));
    if (!scores) return err_nomem(err, a->n * sizeof(*scores));
    const uint8_t *at = v->as.array.data;
    for (size_t i = 0; i < a->n; i++) scores[i] = (float)gguf_next(v, &at).as.f;
    a->scores = scores;
    return LATH_OK;
}

static lath_status get_types(const reading *r, tok_arrays *a, lath_error *err)
{
    static const char key[] = "tokenizer.ggml.token_type";
    const gguf_value *v;
    TRY(get_array(r, key, GGUF_I32, a->n, &v, err));
    if (!v) return LATH_OK;
    int32_t *types = arena_array(r->mem, a->n, sizeof(*types));
    if (!types) return err_nomem(err, a->n * sizeof(*types));
    const uint8_t *at = v->as.array.data;
    for (size_t i = 0; i < a->n; i++) types[i] = (int32_t)gguf_next(v, &at).as.i;
    a->types = types;
    return LATH_OK;
}

/* t5: bytes of the SentencePiece map, as an array of numbers of 8 bits. */
static lath_status get_charsmap(const reading *r, tok_arrays *a, lath_error *err)
{
    static const char key[] = "tokenizer.ggml.precompiled_charsmap";
    const gguf_value *v = gguf_get(r->g, key);
    if (!v) return LATH_OK;
    if (v->kind != GGUF_ARRAY || (v->as.array.kind != GGUF_U8 && v->as.array.kind != GGUF_I8))
        return wrong(r, key, "an array of bytes", err);
    a->charsmap = (const char *)v->as.array.data;
    a->n_charsmap = (size_t)v->as.array.count;
    return LATH_OK;
}

static lath_status get_numbers(const reading *r, tok_arrays *a, lath_error *err)
{
    for (size_t i = 0; i < N_NUMBERS; i++)
        TRY(get_number(r, numbers[i].key, (int32_t *)(void *)((char *)a + numbers[i].offset), err));
    return LATH_OK;
}

static lath_status open_from(const reading *r, const lath_allocator *alloc, tok **out, lath_error *err)
{
    tok_arrays a = TOK_ARRAYS_INIT;
    TRY(get_text(r, "tokenizer.ggml.model", &a.kind, err));
    if (!a.kind)
        return err_set(err, LATH_ERR_NOT_FOUND, "%s: no tokenizer in it (key \"tokenizer.ggml.model\")", r->path);
    TRY(get_text(r, "tokenizer.ggml.pre", &a.pre, err));
    TRY(get_strings(r, "tokenizer.ggml.tokens", &a.tokens, &a.n, err));
    if (a.n == 0) return err_set(err, LATH_ERR_FORMAT, "%s: no tokens in it (key \"tokenizer.ggml.tokens\")", r->path);
    TRY(get_strings(r, "tokenizer.ggml.merges", &a.merges, &a.n_merges, err));
    TRY(get_scores(r, &a, err));
    TRY(get_types(r, &a, err));
    TRY(get_charsmap(r, &a, err));
    TRY(get_numbers(r, &a, err));
    return tok_open_arrays(alloc, r->path, &a, out, err);
}

lath_status gguf_tokenizer_open(const lath_allocator *alloc, const gguf *g, tok **out, lath_error *err)
{
    arena mem;
    arena_init(&mem, alloc);
    const reading r = {g, gguf_file(g)->path, &mem};
    const lath_status st = open_from(&r, alloc, out, err);
    arena_deinit(&mem);
    return st;
}

static void put_texts(gguf_writer *w, const char *key, const tok_string *v, size_t n)
{
    gguf_put_texts(w, key, n);
    for (size_t i = 0; i < n; i++) gguf_put_next_text(w, v[i].s, v[i].n);
}

void gguf_tokenizer_put(gguf_writer *w, const tok_arrays *a)
{
    gguf_put_text(w, "tokenizer.ggml.model", a->kind, strlen(a->kind));
    gguf_put_text(w, "tokenizer.ggml.pre", a->pre, strlen(a->pre));
    put_texts(w, "tokenizer.ggml.tokens", a->tokens, a->n);
    if (a->scores) gguf_put_array(w, "tokenizer.ggml.scores", GGUF_F32, a->scores, a->n);
    if (a->types) gguf_put_array(w, "tokenizer.ggml.token_type", GGUF_I32, a->types, a->n);
    if (a->merges) put_texts(w, "tokenizer.ggml.merges", a->merges, a->n_merges);
    if (a->n_charsmap) gguf_put_array(w, "tokenizer.ggml.precompiled_charsmap", GGUF_U8, a->charsmap, a->n_charsmap);
    for (size_t i = 0; i < N_NUMBERS; i++) {
        int32_t v;
        memcpy(&v, (const char *)a + numbers[i].offset, sizeof(v));
        if (v < 0) continue;
        if (numbers[i].flag)
            gguf_put_bool(w, numbers[i].key, v != 0);
        else
            gguf_put_u32(w, numbers[i].key, (uint32_t)v);
    }
}
