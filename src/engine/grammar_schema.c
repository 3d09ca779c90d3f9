/* SPDX-License-Identifier: Apache-2.0
 * grammar_schema.c: from a JSON schema to rules: keywords, references, combinations; types have files of their own. */
#include "engine/grammar_schema.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ENUM_MOST = 4096, SCHEMA_BYTES_MOST = 4 << 20, SCHEMA_DEPTH_MOST = 256, POINTER_MOST = 400 };

/* ---------------------------------------------------------------------------------------------------------- messages */

static void put_place(const schema_place *at, char *out, size_t n)
{
    char step[160];
    if (at->up) {
        put_place(at->up, out, n);
        if (at->text) {
            snprintf(step, sizeof(step), "/%.120s", at->text);
        } else {
            snprintf(step, sizeof(step), "/%zu", at->index);
        }
    } else {
        snprintf(step, sizeof(step), "%.150s", at->text);
    }
    const size_t len = strlen(out);
    snprintf(out + len, n - len, "%s", step);
}

static grammar_expr *none(schema *s) { return grammar_list(s->b, GRAMMAR_ALT, NULL, 0); }

grammar_expr *schema_fail(schema *s, const json_value *v, const schema_place *at, lath_status st, const char *fmt, ...)
{
    char place[POINTER_MOST] = "", text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    put_place(at, place, sizeof(place));
    grammar_fail(s->b, st, "%s: line %u: %s: %s", s->name, v->line, place, text);
    return grammar_text(s->b, "");
}

grammar_expr *schema_refuse(schema *s, const json_value *v, const schema_place *at, const char *why)
{
    return schema_fail(s, v, at, LATH_ERR_UNSUPPORTED, "\"%.80s\" %s", v->key ? v->key : "", why);
}

/* ---------------------------------------------------------------------------------------------------------- keywords */

typedef enum keyword_kind {
    NOTE,   /* says nothing about values */
    WHOLE,  /* says what a value is, for all types */
    OBJECT, /* the rest is for values of one type */
    ARRAY,
    STRING,
    NUMBER,
    REFUSED
} keyword_kind;

static const struct {
    const char *name;
    keyword_kind kind;
} keywords[] = {
    {"$schema", NOTE},
    {"$id", NOTE},
    {"id", NOTE},
    {"$comment", NOTE},
    {"$defs", NOTE},
    {"definitions", NOTE},
    {"$anchor", NOTE},
    {"title", NOTE},
    {"description", NOTE},
    {"default", NOTE},
    {"example", NOTE},
    {"examples", NOTE},
    {"deprecated", NOTE},
    {"readOnly", NOTE},
    {"writeOnly", NOTE},
    {"contentEncoding", NOTE},
    {"contentMediaType", NOTE},
    {"contentSchema", NOTE},
    {"type", WHOLE},
    {"enum", WHOLE},
    {"const", WHOLE},
    {"$ref", WHOLE},
    {"anyOf", WHOLE},
    {"oneOf", WHOLE},
    {"allOf", WHOLE},
    {"properties", OBJECT},
    {"required", OBJECT},
    {"additionalProperties", OBJECT},
    {"minProperties", OBJECT},
    {"maxProperties", OBJECT},
    {"items", ARRAY},
    {"prefixItems", ARRAY},
    {"additionalItems", ARRAY},
    {"minItems", ARRAY},
    {"maxItems", ARRAY},
    {"uniqueItems", ARRAY},
    {"minLength", STRING},
    {"maxLength", STRING},
    {"pattern", STRING},
    {"format", STRING},
    {"minimum", NUMBER},
    {"maximum", NUMBER},
    {"exclusiveMinimum", NUMBER},
    {"exclusiveMaximum", NUMBER},
    {"multipleOf", NUMBER},
    {"not", REFUSED},
    {"if", REFUSED},
    {"then", REFUSED},
    {"else", REFUSED},
    {"patternProperties", REFUSED},
    {"propertyNames", REFUSED},
    {"dependencies", REFUSED},
    {"dependentRequired", REFUSED},
    {"dependentSchemas", REFUSED},
    {"unevaluatedProperties", REFUSED},
    {"unevaluatedItems", REFUSED},
    {"contains", REFUSED},
    {"minContains", REFUSED},
    {"maxContains", REFUSED},
    {"$dynamicRef", REFUSED},
    {"$recursiveRef", REFUSED},
    {"$dynamicAnchor", REFUSED},
    {"$recursiveAnchor", REFUSED},
    {"$vocabulary", REFUSED},
};

static bool find_keyword(const char *name, keyword_kind *out)
{
    for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
        if (strcmp(keywords[i].name, name) != 0) continue;
        *out = keywords[i].kind;
        return true;
    }
    *out = NOTE;
    return strncmp(name, "x-", 2) == 0;
}

/* Bits of the kinds that are there. */
static unsigned kinds_of(schema *s, const json_value *v, const schema_place *at)
{
    unsigned kinds = 0;
    for (const json_value *m = v->u.items.first; m; m = m->next) {
        keyword_kind kind;
        if (!find_keyword(m->key, &kind)) {
            schema_refuse(s, m, at, "is a keyword that is not known");
        } else if (kind == REFUSED) {
            schema_refuse(s, m, at, "cannot be enforced");
        } else if (strcmp(m->key, "$id") == 0 && v != s->root) {
            schema_refuse(s, m, at, "cannot be followed inside a schema");
        }
        kinds |= 1u << kind;
    }
    return kinds;
}

/* Nothing beside the keyword says what a value is, but for `also` (NULL: nothing). */
static bool stands_alone(schema *s, const json_value *v, const char *keyword, const char *also, const schema_place *at)
{
    for (const json_value *m = v->u.items.first; m; m = m->next) {
        keyword_kind kind;
        find_keyword(m->key, &kind);
        if (kind == NOTE || strcmp(m->key, keyword) == 0 || (also && strcmp(m->key, also) == 0)) continue;
        schema_fail(s, m, at, LATH_ERR_UNSUPPORTED, "\"%.80s\" beside \"%s\" cannot be enforced", m->key, keyword);
        return false;
    }
    return true;
}

bool schema_count(schema *s, const json_value *v, const char *key, const schema_place *at, uint32_t *out)
{
    const json_value *m = json_get(v, key);
    if (!m) return true;
    double x = m->kind == JSON_INT ? (double)m->u.integer : m->kind == JSON_REAL ? m->u.real : -1;
    if (x < 0 || x != floor(x)) {
        schema_fail(s, m, at, LATH_ERR_INPUT, "\"%s\": want a whole number, 0 or more", key);
        return false;
    }
    *out = x > 1e9 ? 1000000000 : (uint32_t)x;
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- references */

/* The next step of a JSON pointer (RFC 6901) in a URI fragment: %XX, ~0, ~1. Returns its length; SIZE_MAX: malformed. */
static size_t read_step(const char **at, const char *end, char *out, size_t room)
{
    size_t n = 0;
    for ((*at)++; *at < end && **at != '/'; (*at)++) {
        char c = **at;
        if (c == '%' && end - *at > 2) {
            static const char digits[] = "0123456789abcdef";
            const char *high = memchr(digits, (*at)[1] | 0x20, 16), *low = memchr(digits, (*at)[2] | 0x20, 16);
            if (!high || !low) return SIZE_MAX;
            c = (char)((high - digits) * 16 + (low - digits));
            *at += 2;
        } else if (c == '~' && end - *at > 1 && ((*at)[1] == '0' || (*at)[1] == '1')) {
            c = (*at)[1] == '0' ? '~' : '/';
            (*at)++;
        }
        if (n == room) return SIZE_MAX;
        out[n++] = c;
    }
    return n;
}

const json_value *schema_step(const json_value *v, const char *step, size_t n)
{
    size_t index = 0;
    if (v->kind == JSON_OBJECT) {
        for (const json_value *m = v->u.items.first; m; m = m->next) {
            if (m->key_len == n && memcmp(m->key, step, n) == 0) return m;
        }
        return NULL;
    }
    if (v->kind != JSON_ARRAY || n == 0 || n > 6) return NULL;
    for (size_t i = 0; i < n; i++) {
        if (step[i] < '0' || step[i] > '9') return NULL;
        index = index * 10 + (size_t)(step[i] - '0');
    }
    const json_value *m = v->u.items.first;
    while (m && index-- > 0) m = m->next;
    return m;
}

const json_value *schema_resolve(schema *s, const json_value *ref, const schema_place *at)
{
    if (ref->kind != JSON_STRING) {
        schema_fail(s, ref, at, LATH_ERR_INPUT, "\"$ref\": want a string");
        return NULL;
    }
    const char *p = ref->u.string.data, *end = p + ref->u.string.len;
    const json_value *v = s->root;
    if (p == end || *p != '#' || (p + 1 < end && p[1] != '/')) {
        schema_fail(s, ref, at, LATH_ERR_UNSUPPORTED, "\"$ref\": \"%.100s\" is not a place in this schema (#/...)", p);
        return NULL;
    }
    for (p++; p < end && v;) {
        char step[POINTER_MOST];
        const size_t n = read_step(&p, end, step, sizeof(step));
        v = n == SIZE_MAX ? NULL : schema_step(v, step, n);
    }
    if (!v) schema_fail(s, ref, at, LATH_ERR_INPUT, "\"$ref\": there is no \"%.100s\"", ref->u.string.data);
    return v;
}

static const char *copy_place(schema *s, const schema_place *at)
{
    char place[POINTER_MOST] = "";
    put_place(at, place, sizeof(place));
    const char *copy = arena_strdup(s->b->mem, place, strlen(place));
    if (!copy) grammar_fail(s->b, LATH_ERR_NOMEM, "out of memory");
    return copy;
}

static bool grow_rules(schema *s)
{
    if (s->n_todo < s->cap_todo) return true;
    const size_t cap = s->cap_todo ? 2 * s->cap_todo : 16;
    schema_rule *v = arena_array(s->b->mem, cap, sizeof(*v));
    if (!v) {
        grammar_fail(s->b, LATH_ERR_NOMEM, "out of memory");
        return false;
    }
    if (s->n_todo) memcpy(v, s->todo, s->n_todo * sizeof(*v));
    s->todo = v;
    s->cap_todo = cap;
    return true;
}

/* The rule of a schema that is used more than once. It is read later, so that chains of references do not nest calls. */
static uint32_t rule_of(schema *s, const json_value *v, const schema_place *at)
{
    uint64_t rule = 0;
    const json_value **key = arena_array(s->b->mem, 1, sizeof(v));
    if (!key) {
        grammar_fail(s->b, LATH_ERR_NOMEM, "out of memory");
        return 0;
    }
    *key = v;
    if (map_find(&s->rules, (const char *)key, sizeof(v), &rule)) return (uint32_t)rule;
    const char *place = copy_place(s, at);
    rule = grammar_add_rule(s->b, place);
    if (s->b->status != LATH_OK || !grow_rules(s)) return 0;
    const lath_status st = map_add(&s->rules, (const char *)key, sizeof(v), rule, NULL, &s->b->error);
    if (st != LATH_OK) {
        s->b->status = st;
        return 0;
    }
    s->todo[s->n_todo++] = (schema_rule){v, place, (uint32_t)rule};
    return (uint32_t)rule;
}

grammar_expr *schema_shared(schema *s, const json_value *v, const schema_place *at)
{
    return grammar_ref(s->b, rule_of(s, v, at));
}

static grammar_expr *reference(schema *s, const json_value *v, const json_value *ref, const schema_place *at)
{
    if (!stands_alone(s, v, "$ref", NULL, at)) return none(s);
    const json_value *to = schema_resolve(s, ref, at);
    if (!to) return none(s);
    const schema_place place = {NULL, ref->u.string.data, 0};
    return schema_shared(s, to, &place);
}

/* -------------------------------------------------------------------------------------------------------- combinations */

static bool want_list(schema *s, const json_value *list, const schema_place *at)
{
    if (list->kind == JSON_ARRAY && list->u.items.count > 0) return true;
    schema_fail(s, list, at, LATH_ERR_INPUT, "\"%s\": want a list that is not empty", list->key);
    return false;
}

static void want_disjoint(schema *s, const json_value *list, const schema_place *at)
{
    size_t i = 0;
    for (const json_value *a = list->u.items.first; a; a = a->next, i++) {
        size_t k = i + 1;
        for (const json_value *b = a->next; b && s->b->status == LATH_OK; b = b->next, k++) {
            if (schema_disjoint(s, a, b, 0)) continue;
            schema_fail(s, list, at, LATH_ERR_UNSUPPORTED,
                        "\"oneOf\": a value may fit both %zu and %zu, and it cannot be enforced that it does not", i,
                        k);
        }
    }
}

static grammar_expr *any_of(schema *s, const json_value *v, const json_value *list, const schema_place *at)
{
    if (!stands_alone(s, v, list->key, NULL, at) || !want_list(s, list, at)) return none(s);
    const schema_place here = {at, list->key, 0};
    grammar_expr **alts = arena_array(s->b->mem, list->u.items.count, sizeof(*alts));
    size_t n = 0;
    if (!alts) grammar_fail(s->b, LATH_ERR_NOMEM, "out of memory");
    if (strcmp(list->key, "oneOf") == 0) want_disjoint(s, list, at);
    for (const json_value *m = list->u.items.first; m && s->b->status == LATH_OK; m = m->next) {
        const schema_place place = {&here, NULL, n};
        alts[n++] = schema_value(s, m, &place);
    }
    return grammar_list(s->b, GRAMMAR_ALT, alts, n);
}

static grammar_expr *all_of(schema *s, const json_value *v, const json_value *list, const schema_place *at)
{
    if (!stands_alone(s, v, "allOf", NULL, at) || !want_list(s, list, at)) return none(s);
    if (list->u.items.count > 1) return schema_refuse(s, list, at, "of more than one schema cannot be enforced");
    const schema_place here = {at, "allOf", 0}, place = {&here, NULL, 0};
    return schema_value(s, list->u.items.first, &place);
}

/* -------------------------------------------------------------------------------------------------------------- values */

/* What "type" says; all where it is not there, 0 after a failure. */
static unsigned types_of(schema *s, const json_value *v, const schema_place *at)
{
    const json_value *type = json_get(v, "type");
    unsigned types = 0;
    if (!type) return T_ALL;
    if (type->kind == JSON_ARRAY) {
        for (const json_value *m = type->u.items.first; m; m = m->next) {
            const unsigned bit = schema_type_bit(m);
            if (bit == 0) types = 0;
            if (bit == 0) break;
            types |= bit;
        }
    } else {
        types = schema_type_bit(type);
    }
    if (types == 0) schema_fail(s, type, at, LATH_ERR_INPUT, "\"type\": no such type");
    return types;
}

/* "enum" and "const": those values that are of the type. */
static grammar_expr *one_of_values(schema *s, const json_value *v, const char *keyword, const json_value *first,
                                   size_t count, const schema_place *at)
{
    if (!stands_alone(s, v, keyword, "type", at)) return none(s);
    const unsigned types = types_of(s, v, at);
    grammar_expr **alts = arena_array(s->b->mem, count, sizeof(*alts));
    size_t n = 0;
    if (count > ENUM_MOST)
        return schema_fail(s, first, at, LATH_ERR_LIMIT, "\"%s\": %zu values, at most %d", keyword, count, ENUM_MOST);
    if (!alts) grammar_fail(s->b, LATH_ERR_NOMEM, "out of memory");
    for (const json_value *m = first; m && n < count && s->b->status == LATH_OK; m = m->next) {
        if (schema_is_of(m, types)) alts[n++] = schema_literal(s, m);
    }
    if (n == 0 && s->b->status == LATH_OK)
        return schema_fail(s, first, at, LATH_ERR_INPUT, "\"%s\": no value is of the type", keyword);
    return grammar_list(s->b, GRAMMAR_ALT, alts, n);
}

static grammar_expr *by_type(schema *s, const json_value *v, unsigned types, const schema_place *at)
{
    grammar_expr *alts[7];
    size_t n = 0;
    if (types & T_NULL) alts[n++] = grammar_text(s->b, "null");
    if (types & T_BOOLEAN) alts[n++] = GRAMMAR_ALT_OF(s->b, grammar_text(s->b, "true"), grammar_text(s->b, "false"));
    if (types & T_NUMBER) {
        alts[n++] = schema_number(s, v, at, false);
    } else if (types & T_INTEGER) {
        alts[n++] = schema_number(s, v, at, true);
    }
    if (types & T_STRING) alts[n++] = schema_string(s, v, at);
    if (types & T_ARRAY) alts[n++] = schema_array(s, v, at);
    if (types & T_OBJECT) alts[n++] = schema_object(s, v, at);
    return grammar_list(s->b, GRAMMAR_ALT, alts, n);
}

grammar_expr *schema_value(schema *s, const json_value *v, const schema_place *at)
{
    if (s->b->status != LATH_OK) return grammar_text(s->b, "");
    if (v->kind == JSON_BOOL) return v->u.boolean ? schema_any(s) : none(s);
    if (v->kind != JSON_OBJECT) return schema_fail(s, v, at, LATH_ERR_INPUT, "want a schema: an object, true or false");
    const unsigned kinds = kinds_of(s, v, at);
    const json_value *m;
    if ((m = json_get(v, "$ref"))) return reference(s, v, m, at);
    if ((m = json_get(v, "anyOf")) || (m = json_get(v, "oneOf"))) return any_of(s, v, m, at);
    if ((m = json_get(v, "allOf"))) return all_of(s, v, m, at);
    if ((m = json_get(v, "const"))) return one_of_values(s, v, "const", m, 1, at);
    if ((m = json_get(v, "enum"))) {
        if (!want_list(s, m, at)) return none(s);
        return one_of_values(s, v, "enum", m->u.items.first, m->u.items.count, at);
    }
    unsigned types = types_of(s, v, at);
    if (!json_get(v, "type")) { /* keywords of a type stand for the type */
        unsigned meant = 0;
        if (kinds & 1u << OBJECT) meant |= T_OBJECT;
        if (kinds & 1u << ARRAY) meant |= T_ARRAY;
        if (kinds & 1u << STRING) meant |= T_STRING;
        if (kinds & 1u << NUMBER) meant |= T_NUMBER;
        if (meant == 0) return schema_any(s);
        types = meant;
    }
    return by_type(s, v, types, at);
}

/* ---------------------------------------------------------------------------------------------------------------- open */

void grammar_from_schema(grammar_builder *b, const char *name, const char *json, size_t n)
{
    static const schema_place root_place = {NULL, "#", 0};
    const json_options options = {.max_bytes = SCHEMA_BYTES_MOST, .max_depth = SCHEMA_DEPTH_MOST};
    schema s = {.b = b, .name = name};
    json_value *root;
    const lath_status st = json_parse(b->mem, name, json, n, &options, &root, &b->error);
    if (st != LATH_OK) { /* a schema is given to work with: it is input, not a file of the model */
        b->status = st == LATH_ERR_FORMAT ? LATH_ERR_INPUT : st;
        b->error.status = b->status;
        return;
    }
    s.root = root;
    map_init(&s.rules, b->mem->alloc);
    rule_of(&s, root, &root_place); /* rule 0 */
    for (size_t i = 0; i < s.n_todo && b->status == LATH_OK; i++) {
        const schema_rule r = s.todo[i];
        const schema_place place = {NULL, r.place, 0};
        grammar_expr *e = schema_value(&s, r.v, &place);
        b->rules[r.rule].expr = e;
    }
    map_deinit(&s.rules);
}
