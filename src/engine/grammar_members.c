/* SPDX-License-Identifier: Apache-2.0
 *
 * grammar_members.c: objects and arrays of a schema. Properties come in the order of the schema; an optional one may be left out. What may follow
 * depends only on how far the list is and whether a comma is due, which makes two rules a property:
 *
 *     first_i ::= m_i more_i+1 | first_i+1      (the second part where m_i is optional)
 *     more_i  ::= "," m_i more_i+1 | more_i+1
 *
 * Properties that the schema does not list come behind those that it lists, and only where additionalProperties says so or no property is listed.
 * Their names then have no escapes, so that none of them can be a listed one in disguise.
 */
#include <string.h>

#include "base/utf8.h"
#include "engine/grammar_schema.h"

enum { PROPERTIES_MOST = 4096, NAME_CHARS_MOST = 200 };

static grammar_expr *never(schema *s) { return grammar_list(s->b, GRAMMAR_ALT, NULL, 0); }

static void set_rule(schema *s, uint32_t rule, grammar_expr *e)
{
    if (s->b->status == LATH_OK) s->b->rules[rule].expr = e;
}

static grammar_expr *comma(schema *s) { return GRAMMAR_SEQ_OF(s->b, grammar_text(s->b, ","), schema_space(s)); }

/* open close, if it may be empty, or open items close. */
static grammar_expr *enclose(schema *s, const char *open, grammar_expr *items, bool may_be_empty, const char *close)
{
    grammar_builder *b = s->b;
    grammar_expr *full = GRAMMAR_SEQ_OF(b, schema_space(s), items, schema_space(s), grammar_text(b, close));
    grammar_expr *empty = may_be_empty ? GRAMMAR_SEQ_OF(b, schema_space(s), grammar_text(b, close)) : never(s);
    return GRAMMAR_SEQ_OF(b, grammar_text(b, open), GRAMMAR_ALT_OF(b, empty, full));
}

/* ---------------------------------------------------------------------------------------------------- names not listed */

typedef struct name {
    uint32_t cp[NAME_CHARS_MOST];
    size_t n;
} name;

/* All of plain characters, without quotes, that go on from the first `depth` characters of names[0 .. n), which they share, and are none of them. */
static grammar_expr *other_names(schema *s, const name *const *names, size_t n, size_t depth)
{
    grammar_builder *b = s->b;
    grammar_chars others = {0}, plain;
    bool end = true; /* a name may end here */
    size_t n_alts = 0;
    grammar_expr **alts = arena_array(b->mem, n + 2, sizeof(*alts));
    const name **sub = arena_array(b->mem, n, sizeof(*sub));
    if (!alts || !sub) grammar_fail(b, LATH_ERR_NOMEM, "out of memory");
    if (b->status != LATH_OK) return never(s);
    for (size_t i = 0; i < n; i++) {
        if (names[i]->n == depth) {
            end = false;
            continue;
        }
        const uint32_t cp = names[i]->cp[depth];
        if (grammar_chars_has(&others, cp)) continue; /* its group was there */
        size_t n_sub = 0;
        for (size_t k = i; k < n; k++) {
            if (names[k]->n > depth && names[k]->cp[depth] == cp) sub[n_sub++] = names[k];
        }
        grammar_chars one = {0};
        grammar_chars_add(b, &one, cp, cp);
        grammar_chars_add(b, &others, cp, cp);
        alts[n_alts++] = GRAMMAR_SEQ_OF(b, grammar_char(b, &one), other_names(s, sub, n_sub, depth + 1));
    }
    schema_plain_chars(s, &plain);
    grammar_chars_invert(b, &others);
    grammar_chars_intersect(b, &others, &plain);
    alts[n_alts++] = GRAMMAR_SEQ_OF(b, grammar_char(b, &others), schema_plain_text(s));
    if (end) alts[n_alts++] = grammar_text(b, "");
    return grammar_list(b, GRAMMAR_ALT, alts, n_alts);
}

/* false: it has characters that the other names never have. */
static bool read_name(schema *s, const json_value *m, const char *key, size_t len, const schema_place *at, name *out)
{
    grammar_chars plain;
    schema_plain_chars(s, &plain);
    out->n = 0;
    for (size_t i = 0, k; i < len; i += k) {
        uint32_t cp = 0;
        k = utf8_decode(key + i, len - i, &cp);
        if (k == 0 || !grammar_chars_has(&plain, cp)) return false;
        if (out->n == NAME_CHARS_MOST) {
            schema_fail(s, m, at, LATH_ERR_UNSUPPORTED,
                        "\"%.40s...\": beside additional properties a name has at most %d characters", key,
                        NAME_CHARS_MOST);
            return false;
        }
        out->cp[out->n++] = cp;
    }
    return true;
}

/* -------------------------------------------------------------------------------------------------------------- object */

typedef struct member {
    const json_value *v; /* its schema, NULL: none of its own */
    const char *key;
    size_t key_len;
    bool required;
    grammar_expr *expr; /* "key": value */
} member;

typedef struct object {
    member *m; /* [n] */
    size_t n;
    grammar_expr *others; /* of properties that are not listed; NULL: none come */
    const json_value *additional;
    bool closed; /* additionalProperties is false */
} object;

static member *find_member(object *o, const char *key, size_t len)
{
    for (size_t i = 0; i < o->n; i++) {
        if (o->m[i].key_len == len && memcmp(o->m[i].key, key, len) == 0) return &o->m[i];
    }
    return NULL;
}

static bool read_members(schema *s, const json_value *v, const schema_place *at, object *o)
{
    const json_value *properties = json_get(v, "properties"), *required = json_get(v, "required");
    if (properties && properties->kind != JSON_OBJECT) {
        schema_fail(s, properties, at, LATH_ERR_INPUT, "\"properties\": want an object");
        return false;
    }
    if (required && required->kind != JSON_ARRAY) {
        schema_fail(s, required, at, LATH_ERR_INPUT, "\"required\": want a list of names");
        return false;
    }
    const size_t most = (properties ? properties->u.items.count : 0) + (required ? required->u.items.count : 0);
    if (most > PROPERTIES_MOST) {
        schema_fail(s, v, at, LATH_ERR_LIMIT, "%zu properties, at most %d", most, PROPERTIES_MOST);
        return false;
    }
    o->m = arena_array(s->b->mem, most, sizeof(*o->m));
    if (!o->m) {
        grammar_fail(s->b, LATH_ERR_NOMEM, "out of memory");
        return false;
    }
    for (const json_value *p = properties ? properties->u.items.first : NULL; p; p = p->next)
        o->m[o->n++] = (member){.v = p, .key = p->key, .key_len = p->key_len};
    for (const json_value *r = required ? required->u.items.first : NULL; r; r = r->next) {
        if (r->kind != JSON_STRING) {
            schema_fail(s, r, at, LATH_ERR_INPUT, "\"required\": want a list of names");
            return false;
        }
        member *m = find_member(o, r->u.string.data, r->u.string.len);
        if (!m) {
            if (o->closed) {
                schema_fail(s, r, at, LATH_ERR_INPUT, "\"required\": \"%.80s\" is no property, and no others may come",
                            r->u.string.data);
                return false;
            }
            m = &o->m[o->n++];
            *m = (member){.v = o->additional, .key = r->u.string.data, .key_len = r->u.string.len};
        }
        m->required = true;
    }
    return true;
}

/* "additionalProperties"; without it others come only where no property is listed. */
static grammar_expr *other_members(schema *s, const json_value *v, const schema_place *at, object *o)
{
    grammar_builder *b = s->b;
    if (o->closed || (!json_get(v, "additionalProperties") && o->n > 0)) return NULL;
    const schema_place place = {at, "additionalProperties", 0};
    grammar_expr *value = o->additional ? schema_shared(s, o->additional, &place) : schema_any(s);
    if (o->n == 0) return schema_member(s, schema_any_string(s), value);
    name *names = arena_array(b->mem, o->n, sizeof(*names));
    const name **list = arena_array(b->mem, o->n, sizeof(*list));
    size_t n = 0;
    if (!names || !list) grammar_fail(b, LATH_ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < o->n && b->status == LATH_OK; i++) {
        if (read_name(s, v, o->m[i].key, o->m[i].key_len, at, &names[n])) {
            list[n] = &names[n];
            n++;
        }
    }
    if (b->status != LATH_OK) return NULL;
    grammar_expr *key = GRAMMAR_SEQ_OF(b, grammar_text(b, "\""), other_names(s, list, n, 0), grammar_text(b, "\""));
    return schema_member(s, key, value);
}

static grammar_expr *member_value(schema *s, const member *m, const schema_place *at)
{
    if (!m->v) return schema_any(s);
    const schema_place here = {at, "properties", 0}, place = {&here, m->key, 0};
    return schema_value(s, m->v, &place);
}

/* first_0, from the back to the front. */
static grammar_expr *member_list(schema *s, object *o, const schema_place *at)
{
    grammar_builder *b = s->b;
    grammar_expr *more = grammar_text(b, ""), *first = never(s);
    if (o->others) {
        const uint32_t rule = grammar_add_rule(b, "other property");
        set_rule(s, rule, o->others);
        grammar_expr *other = grammar_ref(b, rule);
        more = grammar_repeat(b, GRAMMAR_SEQ_OF(b, comma(s), other), 0, GRAMMAR_UNBOUNDED);
        first = GRAMMAR_SEQ_OF(b, other, more);
    }
    for (size_t i = o->n; i-- > 0 && b->status == LATH_OK;) {
        member *m = &o->m[i];
        const uint32_t rule = grammar_add_rule(b, m->key), rest = grammar_add_rule(b, m->key);
        grammar_expr *key = schema_key(s, m->key, m->key_len);
        set_rule(s, rest, more);
        set_rule(s, rule, schema_member(s, key, member_value(s, m, at)));
        grammar_expr *with = GRAMMAR_SEQ_OF(b, grammar_ref(b, rule), grammar_ref(b, rest));
        const uint32_t first_rule = grammar_add_rule(b, m->key);
        set_rule(s, first_rule, m->required ? with : GRAMMAR_ALT_OF(b, with, first));
        first = grammar_ref(b, first_rule);
        grammar_expr *next = GRAMMAR_SEQ_OF(b, comma(s), with);
        more = m->required ? next : GRAMMAR_ALT_OF(b, next, grammar_ref(b, rest));
    }
    return first;
}

/* Whether an object may be empty, after minProperties and maxProperties, which are enforced where it is simple. */
static bool check_counts(schema *s, const json_value *v, const schema_place *at, object *o, bool *may_be_empty)
{
    uint32_t min = 0, max = UINT32_MAX;
    size_t n_required = 0;
    if (!schema_count(s, v, "minProperties", at, &min) || !schema_count(s, v, "maxProperties", at, &max)) return false;
    for (size_t i = 0; i < o->n; i++) n_required += o->m[i].required;
    *may_be_empty = n_required == 0 && min == 0;
    if (max < n_required || max < min) {
        schema_fail(s, v, at, LATH_ERR_INPUT, "no object has as many properties as it must and no more than it may");
        return false;
    }
    if (min > n_required && min > 1) {
        schema_refuse(s, json_get(v, "minProperties"), at, "over 1 and over the required ones cannot be enforced");
        return false;
    }
    if (max < UINT32_MAX && max != 0 && (o->others || max < o->n)) {
        schema_refuse(s, json_get(v, "maxProperties"), at, "below what may come cannot be enforced");
        return false;
    }
    if (max == 0) {
        o->n = 0;
        o->others = NULL;
    }
    return true;
}

grammar_expr *schema_object(schema *s, const json_value *v, const schema_place *at)
{
    const json_value *additional = json_get(v, "additionalProperties");
    object o = {.additional = additional && additional->kind == JSON_OBJECT ? additional : NULL,
                .closed = additional && additional->kind == JSON_BOOL && !additional->u.boolean};
    bool may_be_empty = true;
    if (additional && additional->kind != JSON_OBJECT && additional->kind != JSON_BOOL)
        return schema_fail(s, additional, at, LATH_ERR_INPUT, "\"additionalProperties\": want a schema");
    if (!read_members(s, v, at, &o)) return never(s);
    o.others = other_members(s, v, at, &o);
    if (s->b->status != LATH_OK || !check_counts(s, v, at, &o, &may_be_empty)) return never(s);
    return enclose(s, "{", member_list(s, &o, at), may_be_empty, "}");
}

/* --------------------------------------------------------------------------------------------------------------- array */

typedef struct array {
    const json_value *prefix; /* first of n_prefix schemas */
    const char *prefix_key;
    size_t n_prefix;
    grammar_expr *rest; /* of items behind them; NULL: none come */
    uint32_t min, max;
} array;

/* 2020-12: prefixItems and items; before: items as a list and additionalItems. */
static bool read_items(schema *s, const json_value *v, const schema_place *at, array *a)
{
    const json_value *prefix = json_get(v, "prefixItems"), *rest = json_get(v, "items");
    const char *rest_key = "items";
    if (!prefix && rest && rest->kind == JSON_ARRAY) {
        prefix = rest;
        rest_key = "additionalItems";
        rest = json_get(v, rest_key);
    }
    if (prefix && (prefix->kind != JSON_ARRAY || prefix->u.items.count > PROPERTIES_MOST)) {
        schema_fail(s, prefix, at, LATH_ERR_INPUT, "\"%s\": want a list of at most %d schemas", prefix->key,
                    PROPERTIES_MOST);
        return false;
    }
    a->prefix = prefix ? prefix->u.items.first : NULL;
    a->prefix_key = prefix ? prefix->key : "";
    a->n_prefix = prefix ? prefix->u.items.count : 0;
    const schema_place place = {at, rest_key, 0};
    if (!rest && !prefix) {
        a->rest = schema_any(s);
    } else if (rest && !(rest->kind == JSON_BOOL && !rest->u.boolean)) {
        a->rest = schema_shared(s, rest, &place);
    }
    return s->b->status == LATH_OK;
}

/* What comes behind the first i items, from the back to the front. */
static grammar_expr *item_list(schema *s, const json_value *v, const array *a, const schema_place *at)
{
    grammar_builder *b = s->b;
    const size_t n = a->n_prefix < a->max ? a->n_prefix : a->max; /* of the prefix */
    grammar_expr *nothing = grammar_text(b, ""), *tail = nothing;
    if (a->rest && a->max > n) {
        const uint32_t first = n == 0; /* stands without a comma */
        const uint32_t min = a->min > n + first ? a->min - (uint32_t)n - first : 0;
        const uint32_t max = a->max == UINT32_MAX ? GRAMMAR_UNBOUNDED : a->max - (uint32_t)n - first;
        tail = grammar_repeat(b, GRAMMAR_SEQ_OF(b, comma(s), a->rest), min, max);
        if (first) return GRAMMAR_SEQ_OF(b, a->rest, tail);
    } else if (a->min > n) {
        return schema_fail(s, v, at, LATH_ERR_INPUT, "\"minItems\" is %u, but no more than %zu items may come", a->min,
                           n);
    }
    const json_value **items = arena_array(b->mem, n, sizeof(*items));
    if (!items) grammar_fail(b, LATH_ERR_NOMEM, "out of memory");
    if (b->status != LATH_OK || n == 0) return never(s);
    const json_value *m = a->prefix;
    for (size_t i = 0; i < n; i++, m = m->next) items[i] = m;
    const schema_place here = {at, a->prefix_key, 0};
    for (size_t i = n; i-- > 0;) {
        const schema_place place = {&here, NULL, i};
        grammar_expr *item = schema_value(s, items[i], &place);
        tail = i ? GRAMMAR_SEQ_OF(b, comma(s), item, tail) : GRAMMAR_SEQ_OF(b, item, tail);
        const uint32_t rule = grammar_add_rule(b, "items");
        set_rule(s, rule, i && i >= a->min ? GRAMMAR_ALT_OF(b, tail, nothing) : tail);
        tail = grammar_ref(b, rule);
    }
    return tail;
}

grammar_expr *schema_array(schema *s, const json_value *v, const schema_place *at)
{
    const json_value *unique = json_get(v, "uniqueItems");
    array a = {.max = UINT32_MAX};
    if (!schema_count(s, v, "minItems", at, &a.min) || !schema_count(s, v, "maxItems", at, &a.max)) return never(s);
    if (a.max < a.min) return schema_fail(s, v, at, LATH_ERR_INPUT, "\"maxItems\" is less than \"minItems\"");
    if (unique && !(unique->kind == JSON_BOOL && !unique->u.boolean) && a.max > 1)
        return schema_refuse(s, unique, at, "cannot be enforced");
    if (!read_items(s, v, at, &a)) return never(s);
    return enclose(s, "[", item_list(s, v, &a, at), a.min == 0, "]");
}
