/* SPDX-License-Identifier: Apache-2.0
 * grammar_disjoint.c: what can be told about the values of a schema without making them: their types, and that no value fits two schemas ("oneOf"
 * can be enforced only then). */
#include <math.h>
#include <string.h>

#include "engine/grammar_schema.h"

unsigned schema_type_bit(const json_value *v)
{
    static const char *const names[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    for (unsigned i = 0; i < 7; i++) {
        if (json_is_string(v, names[i])) return 1u << i;
    }
    return 0;
}

bool schema_is_of(const json_value *v, unsigned types)
{
    switch (v->kind) {
    case JSON_NULL: return types & T_NULL;
    case JSON_BOOL: return types & T_BOOLEAN;
    case JSON_INT: return types & (T_INTEGER | T_NUMBER);
    case JSON_REAL: return types & T_NUMBER || (types & T_INTEGER && v->u.real == floor(v->u.real));
    case JSON_STRING: return types & T_STRING;
    case JSON_ARRAY: return types & T_ARRAY;
    default: return types & T_OBJECT;
    }
}

static bool equal(const json_value *a, const json_value *b)
{
    const bool a_number = a->kind == JSON_INT || a->kind == JSON_REAL;
    if (a_number && (b->kind == JSON_INT || b->kind == JSON_REAL)) {
        if (a->kind == JSON_INT && b->kind == JSON_INT) return a->u.integer == b->u.integer;
        return (a->kind == JSON_INT ? (double)a->u.integer : a->u.real) ==
               (b->kind == JSON_INT ? (double)b->u.integer : b->u.real);
    }
    if (a->kind != b->kind) return false;
    if (a->kind == JSON_BOOL) return a->u.boolean == b->u.boolean;
    if (a->kind == JSON_STRING)
        return a->u.string.len == b->u.string.len && memcmp(a->u.string.data, b->u.string.data, a->u.string.len) == 0;
    return true; /* null; containers are not looked into: they may be equal */
}

/* What "$ref" and "allOf" of one schema lead to; NULL: too far. */
static const json_value *follow(schema *s, const json_value *v)
{
    static const schema_place nowhere = {NULL, "", 0};
    for (int i = 0; i < 32 && v && v->kind == JSON_OBJECT; i++) {
        const json_value *ref = json_get(v, "$ref"), *all = json_get(v, "allOf");
        if (ref) {
            v = schema_resolve(s, ref, &nowhere);
        } else if (all && all->kind == JSON_ARRAY && all->u.items.count == 1) {
            v = all->u.items.first;
        } else {
            return v;
        }
    }
    return v && v->kind == JSON_OBJECT ? NULL : v;
}

/* Bits of types that a value under the schema may have. */
static unsigned possible_types(const json_value *v)
{
    const json_value *type = json_get(v, "type");
    unsigned types = 0;
    if (!type) return T_ALL;
    if (type->kind != JSON_ARRAY) {
        types = schema_type_bit(type);
    } else {
        for (const json_value *m = type->u.items.first; m; m = m->next) types |= schema_type_bit(m);
    }
    return types & T_NUMBER ? types | T_INTEGER : types;
}

/* The values that "const" or "enum" name: *count of them. */
static const json_value *named_values(const json_value *v, size_t *count)
{
    const json_value *one = json_get(v, "const"), *list = json_get(v, "enum");
    *count = one ? 1 : list && list->kind == JSON_ARRAY ? list->u.items.count : 0;
    return one ? one : *count ? list->u.items.first : NULL;
}

static bool is_required(const json_value *v, const json_value *property)
{
    const json_value *list = json_get(v, "required");
    if (!list || list->kind != JSON_ARRAY) return false;
    for (const json_value *m = list->u.items.first; m; m = m->next) {
        if (m->kind == JSON_STRING && m->u.string.len == property->key_len &&
            memcmp(m->u.string.data, property->key, property->key_len) == 0)
            return true;
    }
    return false;
}

/* One value cannot be under v. */
static bool excludes(const json_value *v, const json_value *value)
{
    size_t count;
    const json_value *named = named_values(v, &count);
    if (!schema_is_of(value, possible_types(v))) return true;
    if (!named) return false;
    for (size_t i = 0; i < count; i++, named = named->next) {
        if (equal(named, value)) return false;
    }
    return true;
}

static bool objects_disjoint(schema *s, const json_value *a, const json_value *b, int depth)
{
    const json_value *pa = json_get(a, "properties"), *pb = json_get(b, "properties");
    if (!pa || !pb || pa->kind != JSON_OBJECT || pb->kind != JSON_OBJECT) return false;
    for (const json_value *x = pa->u.items.first; x; x = x->next) {
        const json_value *y = schema_step(pb, x->key, x->key_len);
        if (y && is_required(a, x) && is_required(b, x) && schema_disjoint(s, x, y, depth + 1)) return true;
    }
    return false;
}

/* Every branch of x with y. */
static bool branches_disjoint(schema *s, const json_value *x, const json_value *y, int depth)
{
    const json_value *list = json_get(x, "anyOf");
    if (!list) list = json_get(x, "oneOf");
    if (!list || list->kind != JSON_ARRAY) return false;
    for (const json_value *m = list->u.items.first; m; m = m->next) {
        if (!schema_disjoint(s, m, y, depth + 1)) return false;
    }
    return true;
}

/* x names its values, and none of them can be under y. */
static bool names_excluded(const json_value *x, const json_value *y)
{
    size_t count;
    const json_value *named = named_values(x, &count);
    if (!named) return false;
    for (size_t i = 0; i < count; i++, named = named->next) {
        if (!excludes(y, named)) return false;
    }
    return true;
}

bool schema_disjoint(schema *s, const json_value *a, const json_value *b, int depth)
{
    a = follow(s, a);
    b = follow(s, b);
    if (!a || !b || depth > 8) return false;
    if ((a->kind == JSON_BOOL && !a->u.boolean) || (b->kind == JSON_BOOL && !b->u.boolean)) return true;
    if (a->kind != JSON_OBJECT || b->kind != JSON_OBJECT) return false;
    if (branches_disjoint(s, a, b, depth) || branches_disjoint(s, b, a, depth)) return true;
    if (names_excluded(a, b) || names_excluded(b, a)) return true;
    const unsigned types = possible_types(a) & possible_types(b);
    return types == 0 || (types == T_OBJECT && objects_disjoint(s, a, b, depth));
}
