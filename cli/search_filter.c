/* SPDX-License-Identifier: Apache-2.0
 *
 * search_filter.c: see search_filter.h. The whole corpus is looked through before the search, so that the best k are
 * the best among the records that count. Most lines need no parsing: one without a backslash that does not have the
 * key in quotes has no such member.
 */
#include "search_filter.h"

#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "signals.h"

static lath_status parse_value(search_filter *f, const char *condition, const char *text, json_value *out,
                               lath_error *err)
{
    const json_options limits = {.max_bytes = 1 << 20, .max_depth = 64};
    json_value *v;
    if (json_parse(&f->mem, "value", text, strlen(text), &limits, &v, NULL) != LATH_OK) {
        *out = (json_value){.kind = JSON_STRING, .u.string = {text, strlen(text)}};
        return LATH_OK;
    }
    if (v->kind == JSON_ARRAY || v->kind == JSON_OBJECT)
        return err_set(err, LATH_ERR_USAGE, "--filter: %s: want a string, a number, true, false or null", condition);
    *out = *v;
    return LATH_OK;
}

static lath_status parse_term(search_filter *f, const char *condition, filter_term *t, lath_error *err)
{
    const char *equal = strchr(condition, '=');
    const size_t bad = utf8_first_invalid(condition, strlen(condition));
    if (condition[bad])
        return err_set(err, LATH_ERR_INPUT, "--filter: %s: not valid UTF-8 at byte %zu", condition, bad + 1);
    if (equal) t->unequal = equal > condition && equal[-1] == '!';
    const size_t n = equal ? (size_t)(equal - condition) - (t->unequal ? 1 : 0) : 0;
    if (n == 0) return err_set(err, LATH_ERR_USAGE, "--filter: %s: want KEY=VALUE or KEY!=VALUE", condition);
    char *key = arena_array(&f->mem, n + 1, 1);
    if (!key) return err_nomem(err, n + 1);
    memcpy(key, condition, n);
    t->key = key;
    json_put_string(&t->needle, key, n);
    TRY(buf_status(&t->needle, err));
    return parse_value(f, condition, equal + 1, &t->value, err);
}

lath_status search_filter_parse(search_filter *f, const string_list *conditions, lath_error *err)
{
    *f = (search_filter){0};
    arena_init(&f->mem, alloc_default());
    if (conditions->n == 0) return LATH_OK;
    f->terms = arena_array(&f->mem, conditions->n, sizeof(*f->terms));
    if (!f->terms) return err_nomem(err, conditions->n * sizeof(*f->terms));
    for (size_t i = 0; i < conditions->n; i++, f->n++) buf_init(&f->terms[i].needle, alloc_default(), 1 << 20);
    for (size_t i = 0; i < conditions->n; i++) TRY(parse_term(f, conditions->items[i], &f->terms[i], err));
    return LATH_OK;
}

void search_filter_deinit(search_filter *f)
{
    for (size_t i = 0; i < f->n; i++) buf_deinit(&f->terms[i].needle);
    if (f->mem.alloc) arena_deinit(&f->mem);
    *f = (search_filter){0};
}

static double number(const json_value *v) { return v->kind == JSON_INT ? (double)v->u.integer : v->u.real; }

static bool equal_values(const json_value *a, const json_value *b)
{
    const bool numbers = (a->kind == JSON_INT || a->kind == JSON_REAL) && (b->kind == JSON_INT || b->kind == JSON_REAL);
    if (!numbers && a->kind != b->kind) return false;
    switch (a->kind) {
    case JSON_NULL: return true;
    case JSON_BOOL: return a->u.boolean == b->u.boolean;
    case JSON_INT:
        if (b->kind == JSON_INT) return a->u.integer == b->u.integer;
        return number(a) == number(b);
    case JSON_REAL: return number(a) == number(b);
    case JSON_STRING:
        return a->u.string.len == b->u.string.len && memcmp(a->u.string.data, b->u.string.data, a->u.string.len) == 0;
    case JSON_ARRAY:
    case JSON_OBJECT: break;
    }
    return false;
}

bool search_filter_holds(const search_filter *f, const json_value *record)
{
    for (size_t i = 0; i < f->n; i++) {
        const json_value *v = json_get(record, f->terms[i].key);
        const bool equal = v && equal_values(v, &f->terms[i].value);
        if (equal == f->terms[i].unequal) return false;
    }
    return true;
}

/* What can be said of a line without parsing it: false when a member that has to be there is not. */
static bool may_hold(const search_filter *f, const char *line, size_t len)
{
    if (memchr(line, '\\', len)) return true;
    for (size_t i = 0; i < f->n; i++) {
        const buf *needle = &f->terms[i].needle;
        if (memchr(needle->data, '\\', needle->len)) continue; /* may be written in more than one way */
        if (!f->terms[i].unequal && !memmem(line, len, needle->data, needle->len)) return false;
    }
    return true;
}

lath_status search_filter_rows(const search_filter *f, corpus *c, const lath_index *index, uint64_t n, uint8_t *allowed,
                               uint64_t *count, lath_error *err)
{
    *count = 0;
    for (uint64_t row = 0; row < n; row++) {
        const json_value *record;
        const char *line, *json;
        lath_span raw;
        size_t len;
        if (row % 4096 == 0) TRY(signals_check(err));
        TRY(lath_index_get_span(index, row, &raw, err));
        TRY(corpus_line(c, raw, true, &line, err));
        if (!c->decoder.lossy && !may_hold(f, line, (size_t)raw.len)) continue;
        TRY(corpus_record(c, raw, true, &record, &json, &len, err));
        allowed[row] = search_filter_holds(f, record);
        *count += allowed[row];
    }
    return LATH_OK;
}
