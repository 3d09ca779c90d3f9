/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_tokenize.c: `lath tokenize`, both ways. Only the tokenizer of the model is opened.
 */
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "output.h"
#include "setup.h"
#include "signals.h"

enum { CHUNK_TEXTS = 4096 };

typedef struct tokenize_job {
    const options *o;
    const lath_tokenizer *tok;
    output *out;
    uint64_t index;
    lath_tokens tokens; /* reused from text to text */
    lath_parts parts;   /* the same of pairs */
    int32_t *ids;       /* [capacity] of a line to decode */
    size_t n_ids, capacity;
    arena scratch; /* JSON of one line */
} tokenize_job;

/* ----------------------------------------------------------------------------------------------------------- encode */

/* What is printed: of a text, or of the first part of a pair. */
typedef struct token_view {
    const int32_t *ids, *type_ids;
    const uint32_t *offsets;
    size_t n;
} token_view;

static void put_token(buf *b, const char *token) { json_put_string(b, token ? token : "", token ? strlen(token) : 0); }

static void put_json(const tokenize_job *j, const token_view *t)
{
    buf *b = &j->out->b;
    buf_printf(b, "{\"index\":%llu,\"ids\":[", (unsigned long long)j->index);
    for (size_t i = 0; i < t->n; i++) buf_printf(b, "%s%d", i ? "," : "", (int)t->ids[i]);
    buf_str(b, "],\"tokens\":[");
    for (size_t i = 0; i < t->n; i++) {
        if (i) buf_char(b, ',');
        put_token(b, lath_tokenizer_token(j->tok, t->ids[i]));
    }
    buf_str(b, "],\"offsets\":[");
    for (size_t i = 0; i < t->n; i++)
        buf_printf(b, "%s[%u,%u]", i ? "," : "", (unsigned)t->offsets[2 * i], (unsigned)t->offsets[2 * i + 1]);
    if (j->o->pair) {
        buf_str(b, "],\"type_ids\":[");
        for (size_t i = 0; i < t->n; i++) buf_printf(b, "%s%d", i ? "," : "", (int)t->type_ids[i]);
    }
    buf_str(b, "]}");
}

/* A token on a line of its own kind: control characters would break the line. */
static void put_plain_token(buf *b, const char *token)
{
    for (const char *p = token ? token : ""; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7F)
            buf_printf(b, "\\x%02x", (unsigned)(unsigned char)*p);
        else
            buf_char(b, *p);
    }
}

static void put_field(const tokenize_job *j, const token_view *t, size_t i, bool ids, bool tokens, bool offsets)
{
    buf *b = &j->out->b;
    if (ids) buf_printf(b, "%d", (int)t->ids[i]);
    if (tokens) {
        if (ids) buf_char(b, '\t');
        put_plain_token(b, lath_tokenizer_token(j->tok, t->ids[i]));
    }
    if (offsets)
        buf_printf(b, "%s%u-%u", ids || tokens ? "\t" : "", (unsigned)t->offsets[2 * i],
                   (unsigned)t->offsets[2 * i + 1]);
}

/* One kind: a line a text. Several: a line a token and an empty line behind each text. */
static void put_plain(const tokenize_job *j, const token_view *t)
{
    const options *o = j->o;
    const int kinds = o->ids + o->tokens + o->offsets;
    for (size_t i = 0; i < t->n; i++) {
        if (i > 0 && kinds <= 1) buf_char(&j->out->b, ' ');
        put_field(j, t, i, o->ids || kinds == 0, o->tokens, o->offsets);
        if (kinds > 1) buf_char(&j->out->b, '\n');
    }
    buf_char(&j->out->b, '\n');
}

static lath_status encode_text(tokenize_job *j, lath_text text, token_view *v, lath_error *err)
{
    lath_encode_options eo = LATH_ENCODE_OPTIONS_INIT;
    eo.add_special = !j->o->no_special;
    eo.parse_special = !j->o->no_parse_special;
    eo.max_tokens = j->o->max_len;
    TRY(lath_encode(j->tok, text, &eo, &j->tokens, err));
    *v = (token_view){j->tokens.ids, j->tokens.type_ids, j->tokens.offsets, j->tokens.n};
    return LATH_OK;
}

static lath_status encode_pair(tokenize_job *j, lath_text text, token_view *v, lath_error *err)
{
    lath_parts_options po = LATH_PARTS_OPTIONS_INIT;
    const lath_text texts[2] = {text, {j->o->pair, strlen(j->o->pair)}};
    po.add_special = !j->o->no_special;
    po.parse_special = !j->o->no_parse_special;
    po.max_tokens = j->o->max_len;
    TRY(lath_encode_parts(j->tok, texts, 2, &po, &j->parts, err));
    *v = (token_view){j->parts.ids, j->parts.type_ids, j->parts.offsets, j->parts.begin[1]};
    return LATH_OK;
}

static lath_status encode_one(tokenize_job *j, lath_text text, lath_error *err)
{
    token_view v;
    TRY(j->o->pair ? encode_pair(j, text, &v, err) : encode_text(j, text, &v, err));
    if (j->o->json || j->o->jsonl)
        put_json(j, &v);
    else
        put_plain(j, &v);
    return LATH_OK;
}

/* ----------------------------------------------------------------------------------------------------------- decode */

static lath_status add_id(tokenize_job *j, int64_t id, lath_error *err)
{
    const lath_allocator *a = alloc_default();
    if (id < 0 || id >= lath_tokenizer_size(j->tok))
        return err_set(err, LATH_ERR_INPUT, "id %lld is not in 0..%d", (long long)id,
                       (int)lath_tokenizer_size(j->tok) - 1);
    if (j->n_ids == j->capacity) {
        const size_t capacity = j->capacity ? 2 * j->capacity : 256;
        int32_t *p = alloc_resize(a, j->ids, j->capacity * sizeof(*p), capacity * sizeof(*p), _Alignof(int32_t));
        if (!p) return err_nomem(err, capacity * sizeof(*p));
        j->ids = p;
        j->capacity = capacity;
    }
    j->ids[j->n_ids++] = (int32_t)id;
    return LATH_OK;
}

/* Numbers with blanks, tabs or commas between. */
static lath_status read_plain_ids(tokenize_job *j, lath_text line, lath_error *err)
{
    size_t i = 0;
    while (i < line.len) {
        const char c = line.data[i];
        int64_t id = 0;
        size_t digits = 0;
        if (c == ' ' || c == '\t' || c == ',') {
            i++;
            continue;
        }
        for (; i < line.len && line.data[i] >= '0' && line.data[i] <= '9' && digits < 12; i++, digits++)
            id = id * 10 + (line.data[i] - '0');
        const bool ends = i == line.len || line.data[i] == ' ' || line.data[i] == '\t' || line.data[i] == ',';
        if (digits == 0 || !ends) return err_set(err, LATH_ERR_INPUT, "byte %zu: want token ids, whole numbers", i + 1);
        TRY(add_id(j, id, err));
    }
    return LATH_OK;
}

/* A line of --jsonl. */
static lath_status read_json_ids(tokenize_job *j, lath_text line, lath_error *err)
{
    json_value *root;
    arena_reset(&j->scratch);
    if (json_parse(&j->scratch, "line", line.data, line.len, NULL, &root, err) != LATH_OK)
        return err_set(err, LATH_ERR_INPUT, "want token ids or a JSON object with \"ids\"");
    const json_value *ids = json_get(root, "ids");
    if (!ids || ids->kind != JSON_ARRAY) return err_set(err, LATH_ERR_INPUT, "no list \"ids\"");
    for (const json_value *v = ids->u.items.first; v; v = v->next) {
        if (v->kind != JSON_INT) return err_set(err, LATH_ERR_INPUT, "\"ids\": want whole numbers");
        TRY(add_id(j, v->u.integer, err));
    }
    return LATH_OK;
}

static lath_status decode_one(tokenize_job *j, lath_text line, lath_error *err)
{
    buf *b = &j->out->b;
    char *text = NULL;
    size_t len = 0;
    j->n_ids = 0;
    TRY(line.len > 0 && line.data[0] == '{' ? read_json_ids(j, line, err) : read_plain_ids(j, line, err));
    TRY(lath_decode(j->tok, j->ids, j->n_ids, !j->o->keep_special, &text, &len, err));
    if (j->o->json || j->o->jsonl) {
        buf_printf(b, "{\"index\":%llu,\"text\":", (unsigned long long)j->index);
        json_put_string(b, text, len);
        buf_char(b, '}');
    } else {
        buf_append(b, text, len);
        buf_char(b, '\n');
    }
    lath_string_release(j->tok, text);
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- command */

static lath_status tokenize_chunk(tokenize_job *j, const text_chunk *c, lath_error *err)
{
    buf *b = &j->out->b;
    for (size_t i = 0; i < c->n; i++) {
        if (j->o->json) buf_str(b, j->index ? ",\n" : "[");
        const lath_status st = j->o->decode ? decode_one(j, c->texts[i], err) : encode_one(j, c->texts[i], err);
        if (st != LATH_OK) return text_where(c, i, st, err);
        if (j->o->jsonl) buf_char(b, '\n');
        j->index++;
        TRY(signals_check(err));
        TRY(output_flush_full(j->out, err));
    }
    return LATH_OK;
}

static lath_status tokenize_all(tokenize_job *j, text_source *source, lath_error *err)
{
    text_chunk chunk;
    lath_status st;
    text_chunk_init(&chunk);
    do {
        TRY_DONE(texts_next(source, &chunk, CHUNK_TEXTS, err));
        TRY_DONE(tokenize_chunk(j, &chunk, err));
        if (source->wait) TRY_DONE(output_flush(j->out, err)); /* a pipe's reader gets what is ready */
    } while (chunk.n > 0);
    if (j->o->json) buf_str(&j->out->b, j->index ? "]\n" : "[]\n");
    st = LATH_OK;
done:
    text_chunk_deinit(&chunk);
    return st;
}

lath_status cmd_tokenize(options *o, lath_error *err)
{
    setup s = {0};
    text_source source = {0};
    output out = {0};
    tokenize_job job = {.o = o, .out = &out};
    lath_status st;
    arena_init(&job.scratch, alloc_default());
    if (o->decode &&
        (o->ids || o->tokens || o->offsets || o->no_special || o->no_parse_special || o->pair || o->max_len)) {
        st =
            err_set(err, LATH_ERR_USAGE, "--decode: gives text; of the other options only --keep-special goes with it");
        goto done;
    }
    TRY_DONE(texts_open(&source, o, &o->args, err));
    TRY_DONE(setup_tokenizer(&s, o, err));
    job.tok = s.tok;
    TRY_DONE(output_open(&out, o->output, err));
    TRY_DONE(tokenize_all(&job, &source, err));
    st = output_close(&out, err);
done:
    output_abort(&out);
    texts_close(&source);
    lath_tokens_release(&job.tokens);
    lath_parts_release(&job.parts);
    alloc_release(alloc_default(), job.ids, job.capacity * sizeof(*job.ids));
    arena_deinit(&job.scratch);
    setup_close(&s);
    return st;
}
