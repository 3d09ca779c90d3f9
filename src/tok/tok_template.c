/* SPDX-License-Identifier: Apache-2.0
 * tok_template.c: post-processors: which tokens stand around the text. All become a list of pieces (tok_piece).
 */
#include "tok/tok_parts.h"

static lath_status new_pieces(tok_load *l, size_t n, tok_piece **out)
{
    *out = tok_load_array(l, n ? n : 1, sizeof(**out));
    return *out ? LATH_OK : err_nomem(l->err, n * sizeof(**out));
}

static size_t count_added(const tok_piece *v, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) k += v[i].n_ids;
    return k;
}

static lath_status one_id(tok_load *l, int32_t id, tok_piece *out, int32_t type_id)
{
    int32_t *ids = tok_load_array(l, 1, sizeof(*ids));
    if (!ids) return err_nomem(l->err, sizeof(*ids));
    *ids = id;
    *out = (tok_piece){0, type_id, ids, 1};
    return LATH_OK;
}

lath_status tok_template_bert_init(tok_load *l, int32_t cls, int32_t sep, tok_template *out)
{
    tok_piece *one, *two;
    TRY(new_pieces(l, 3, &one));
    TRY(new_pieces(l, 5, &two));
    TRY(one_id(l, cls, &one[0], 0));
    one[1] = (tok_piece){.sequence = 'A'};
    TRY(one_id(l, sep, &one[2], 0));
    memcpy(two, one, 3 * sizeof(*one));
    two[3] = (tok_piece){.sequence = 'B', .type_id = 1};
    TRY(one_id(l, sep, &two[4], 1));
    *out = (tok_template){.single = one, .pair = two, .n_single = 3, .n_pair = 5, .n_added = 2, .n_added_pair = 3};
    return LATH_OK;
}

/* A pair has two separators in the middle; all types are 0. */
lath_status tok_template_roberta_init(tok_load *l, int32_t cls, int32_t sep, tok_template *out)
{
    tok_piece *one, *two;
    TRY(new_pieces(l, 3, &one));
    TRY(new_pieces(l, 6, &two));
    TRY(one_id(l, cls, &one[0], 0));
    one[1] = (tok_piece){.sequence = 'A'};
    TRY(one_id(l, sep, &one[2], 0));
    memcpy(two, one, 3 * sizeof(*one));
    two[3] = one[2];
    two[4] = (tok_piece){.sequence = 'B'};
    two[5] = one[2];
    *out = (tok_template){.single = one, .pair = two, .n_single = 3, .n_pair = 6, .n_added = 2, .n_added_pair = 4};
    out->types_always = out->types_of_rest = true;
    return LATH_OK;
}

/* An id of a template: a token of the vocabulary or an added one. */
static lath_status load_id(tok_load *l, const json_value *v, const char *name, int32_t *out)
{
    if (v->kind != JSON_INT || v->u.integer < 0 || v->u.integer > INT32_MAX) {
        return TOK_FAIL(l, v, LATH_ERR_FORMAT, "post_processor: token \"%.80s\": want an id", name);
    }
    *out = (int32_t)v->u.integer;
    if (tok_vocab_get(&l->t->vocab, *out, NULL)) return LATH_OK;
    return TOK_FAIL(l, v, LATH_ERR_FORMAT, "post_processor: token \"%.80s\": id %d is no token of this file", name,
                    (int)*out);
}

/* "sep": ["[SEP]", 102] */
lath_status tok_template_load_pair(tok_load *l, const json_value *v, const char *key, int32_t *id)
{
    const json_value *p = json_get(v, key);
    if (!p || p->kind != JSON_ARRAY || p->u.items.count != 2 || p->u.items.first->kind != JSON_STRING) {
        return TOK_FAIL(l, p ? p : v, LATH_ERR_FORMAT, "post_processor: want \"%s\": [token, id]", key);
    }
    return load_id(l, p->u.items.first->next, p->u.items.first->u.string.data, id);
}

lath_status tok_template_bert(tok_load *l, const json_value *v, tok_template *out)
{
    static const char *const known[] = {"type", "sep", "cls", NULL};
    int32_t cls, sep;
    TRY(tok_load_fields(l, v, "post_processor", known));
    TRY(tok_template_load_pair(l, v, "cls", &cls));
    TRY(tok_template_load_pair(l, v, "sep", &sep));
    return tok_template_bert_init(l, cls, sep, out);
}

static lath_status load_type_id(tok_load *l, const json_value *body, int32_t *out)
{
    int64_t type = -1;
    TRY(json_get_int(body, "type_id", l->name, 0, INT32_MAX, &type, l->err));
    if (type < 0) return TOK_FAIL(l, body, LATH_ERR_FORMAT, "post_processor: a piece without \"type_id\"");
    *out = (int32_t)type;
    return LATH_OK;
}

/* The ids of a special token of the template, by the name that the template uses. */
static lath_status load_special(tok_load *l, const json_value *tokens, const json_value *body, tok_piece *out)
{
    const json_value *name = json_get(body, "id");
    if (!name || name->kind != JSON_STRING)
        return TOK_FAIL(l, body, LATH_ERR_FORMAT, "post_processor: a special token without \"id\"");
    const char *s = name->u.string.data;
    const json_value *ids = json_get(json_get(tokens, s), "ids");
    if (!ids || ids->kind != JSON_ARRAY) {
        return TOK_FAIL(l, name, LATH_ERR_FORMAT,
                        "post_processor: token \"%.80s\" of the template is not among its special_tokens", s);
    }
    int32_t *v = tok_load_array(l, ids->u.items.count ? ids->u.items.count : 1, sizeof(*v));
    if (!v) return err_nomem(l->err, ids->u.items.count * sizeof(*v));
    size_t n = 0;
    for (const json_value *m = ids->u.items.first; m; m = m->next) TRY(load_id(l, m, s, &v[n++]));
    out->ids = v;
    out->n_ids = n;
    return LATH_OK;
}

/* {"Sequence": {"id": "A", "type_id": 0}} or {"SpecialToken": {"id": "[CLS]", "type_id": 0}} */
static lath_status load_piece(tok_load *l, const json_value *tokens, const json_value *v, bool pair, tok_piece *out)
{
    const json_value *text = json_get(v, "Sequence"), *special = json_get(v, "SpecialToken"),
                     *body = text ? text : special;
    if (!body || body->kind != JSON_OBJECT || v->u.items.count != 1) {
        return TOK_FAIL(l, v, LATH_ERR_FORMAT, "post_processor: a piece must be one Sequence or SpecialToken");
    }
    TRY(load_type_id(l, body, &out->type_id));
    if (special) return load_special(l, tokens, body, out);
    const json_value *id = json_get(body, "id");
    bool a = json_is_string(id, "A"), b = json_is_string(id, "B");
    if (!a && !(b && pair))
        return TOK_FAIL(l, body, LATH_ERR_FORMAT, "post_processor: a Sequence must be \"A\"%s",
                        pair ? " or \"B\"" : "");
    out->sequence = a ? 'A' : 'B';
    return LATH_OK;
}

static lath_status load_pieces(tok_load *l, const json_value *v, const char *key, const tok_piece **out, size_t *n)
{
    const json_value *list = json_get(v, key);
    if (!list || list->kind != JSON_ARRAY)
        return TOK_FAIL(l, v, LATH_ERR_FORMAT, "post_processor: want a list \"%s\"", key);
    tok_piece *pieces;
    TRY(new_pieces(l, list->u.items.count, &pieces));
    *n = 0;
    for (const json_value *m = list->u.items.first; m; m = m->next) {
        TRY(load_piece(l, json_get(v, "special_tokens"), m, strcmp(key, "pair") == 0, &pieces[(*n)++]));
    }
    *out = pieces;
    return LATH_OK;
}

lath_status tok_template_processing(tok_load *l, const json_value *v, tok_template *out)
{
    static const char *const known[] = {"type", "single", "pair", "special_tokens", NULL};
    TRY(tok_load_fields(l, v, "post_processor", known));
    *out = (tok_template){.types_always = true};
    TRY(load_pieces(l, v, "single", &out->single, &out->n_single));
    TRY(load_pieces(l, v, "pair", &out->pair, &out->n_pair));
    out->n_added = count_added(out->single, out->n_single);
    out->n_added_pair = count_added(out->pair, out->n_pair);
    return LATH_OK;
}
