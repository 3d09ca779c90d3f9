/* SPDX-License-Identifier: Apache-2.0
 * chat_methods.c: the methods of lists, tuples, dicts and the rest, and the functions of the environment. Methods that change a value are none:
 * the sandbox does not give them out. */
#include <string.h>

#include "chat/chat_call.h"

enum { RANGE_MOST = 100000 }; /* jinja2.sandbox.MAX_RANGE */

/* --------------------------------------------------------------------------------------------------------------- lists */

static lath_status m_count(render *r, value self, const args *a, value *out)
{
    value v;
    int64_t n = 0;
    TRY(args_read(r, a, "value", 1, &v));
    for (size_t i = 0; i < self.u.list->n; i++) {
        bool equal;
        TRY(value_equal(r, self.u.list->v[i], v, &equal));
        n += equal;
    }
    *out = value_int(n);
    return LATH_OK;
}

static lath_status m_index(render *r, value self, const args *a, value *out)
{
    value v[3] = {VALUE_NONE, value_int(0), value_int(INT64_MAX)};
    int64_t from, to;
    const int64_t n = (int64_t)self.u.list->n;
    TRY(args_read(r, a, "value start stop", 1, v));
    TRY(arg_int(r, a, v[1], &from));
    TRY(arg_int(r, a, v[2], &to));
    if (from < 0) from = from < -n ? 0 : from + n;
    if (to < 0) to = to < -n ? 0 : to + n;
    for (int64_t i = from; i < n && i < to; i++) {
        bool equal;
        TRY(value_equal(r, self.u.list->v[i], v[0], &equal));
        if (!equal) continue;
        *out = value_int(i);
        return LATH_OK;
    }
    return render_fail(r, LATH_ERR_INPUT, "index: the value is not in the list");
}

static lath_status m_copy_list(render *r, value self, const args *a, value *out)
{
    TRY(args_none(r, a));
    *out = self;
    return LATH_OK;
}

/* --------------------------------------------------------------------------------------------------------------- dicts */

static lath_status view(render *r, value self, const args *a, const char *name, value *out)
{
    const value_dict *d = self.u.dict;
    TRY(args_none(r, a));
    TRY(value_new_list(r, V_VIEW, d->n, out));
    out->u.list->view = name;
    for (size_t i = 0; i < d->n; i++) {
        value *v = &out->u.list->v[i];
        if (name[5] == 'i') {
            TRY(value_new_list(r, V_TUPLE, 2, v));
            v->u.list->v[0] = d->v[i].key;
            v->u.list->v[1] = d->v[i].value;
        } else {
            *v = name[5] == 'k' ? d->v[i].key : d->v[i].value;
        }
    }
    return LATH_OK;
}

static lath_status m_items(render *r, value self, const args *a, value *out)
{
    return view(r, self, a, "dict_items", out);
}
static lath_status m_keys(render *r, value self, const args *a, value *out)
{
    return view(r, self, a, "dict_keys", out);
}
static lath_status m_values(render *r, value self, const args *a, value *out)
{
    return view(r, self, a, "dict_values", out);
}

static lath_status m_get(render *r, value self, const args *a, value *out)
{
    value v[2] = {VALUE_NONE, VALUE_NONE};
    const value *there;
    bool hashable;
    TRY(args_read(r, a, "key default", 1, v));
    if (a->n_kw) return render_fail(r, LATH_ERR_INPUT, "get: takes no keywords");
    TRY(value_hashable(r, v[0], &hashable));
    if (!hashable) return render_fail(r, LATH_ERR_INPUT, "a %s cannot be the key of a dict", value_type(v[0]));
    TRY(dict_find(r, self.u.dict, v[0], &there));
    *out = there ? *there : v[1];
    return LATH_OK;
}

static const method_row list_methods[] = {{"count", m_count}, {"index", m_index}, {"copy", m_copy_list}, {0}};
static const method_row range_methods[] = {{"count", NULL}, {"index", NULL}, {"start", NULL},
                                           {"stop", NULL},  {"step", NULL},  {0}};
static const method_row tuple_methods[] = {{"count", m_count}, {"index", m_index}, {0}};
static const method_row dict_methods[] = {{"get", m_get},
                                          {"items", m_items},
                                          {"keys", m_keys},
                                          {"values", m_values},
                                          {"copy", m_copy_list},
                                          {"fromkeys", NULL},
                                          {0}};
static const method_row int_methods[] = {{"bit_length", NULL},
                                         {"bit_count", NULL},
                                         {"to_bytes", NULL},
                                         {"from_bytes", NULL},
                                         {"conjugate", NULL},
                                         {"as_integer_ratio", NULL},
                                         {0}};
static const method_row float_methods[] = {
    {"is_integer", NULL}, {"hex", NULL}, {"fromhex", NULL}, {"conjugate", NULL}, {"as_integer_ratio", NULL}, {0}};

/* ------------------------------------------------------------------------------------------------------------- cyclers */

static lath_status m_next(render *r, value self, const args *a, value *out)
{
    cycler *c = self.u.cycler;
    TRY(args_none(r, a));
    *out = c->v[c->at];
    c->at = (c->at + 1) % c->n;
    return LATH_OK;
}

static lath_status m_reset(render *r, value self, const args *a, value *out)
{
    TRY(args_none(r, a));
    self.u.cycler->at = 0;
    *out = VALUE_NONE;
    return LATH_OK;
}

static const method_row cycler_methods[] = {{"next", m_next}, {"reset", m_reset}, {0}};

/* ------------------------------------------------------------------------------------------------------------- look-up */

extern const method_row chat_str_methods[];

static const method_row *find_row(const method_row *rows, const char *name, size_t n)
{
    for (; rows->name; rows++) {
        if (strlen(rows->name) == n && memcmp(rows->name, name, n) == 0) return rows;
    }
    return NULL;
}

static bool is_one_of(const char *const *names, const char *name, size_t n)
{
    for (; *names; names++) {
        if (strlen(*names) == n && memcmp(*names, name, n) == 0) return true;
    }
    return false;
}

const method_row *chat_find_method(value_kind kind, const char *name, size_t n, bool *unsafe)
{
    static const char *const list_changes[] = {"append", "clear",  "pop",    "reverse", "insert",
                                               "sort",   "extend", "remove", NULL};
    static const char *const dict_changes[] = {"clear", "pop", "popitem", "setdefault", "update", NULL};
    *unsafe = kind == V_LIST ? is_one_of(list_changes, name, n) : kind == V_DICT && is_one_of(dict_changes, name, n);
    if (*unsafe) return NULL;
    switch (kind) {
    case V_STR: return find_row(chat_str_methods, name, n);
    case V_LIST: return find_row(list_methods, name, n);
    case V_TUPLE: return find_row(tuple_methods, name, n);
    case V_RANGE: return find_row(range_methods, name, n);
    case V_DICT: return find_row(dict_methods, name, n);
    case V_LOOP: return find_row(chat_loop_methods, name, n);
    case V_CYCLER: return find_row(cycler_methods, name, n);
    case V_BOOL:
    case V_INT: return find_row(int_methods, name, n);
    case V_FLOAT: return find_row(float_methods, name, n);
    default: return NULL;
    }
}

/* ------------------------------------------------------------------------------------------------------------- globals */

static lath_status g_range(render *r, const args *a, value *out)
{
    int64_t v[3] = {0, 0, 1};
    if (a->n_kw) return render_fail(r, LATH_ERR_INPUT, "range: takes no keywords");
    if (a->n < 1 || a->n > 3) return render_fail(r, LATH_ERR_INPUT, "range: want one to three numbers");
    for (size_t i = 0; i < a->n; i++) TRY(arg_int(r, a, a->v[i], &v[a->n == 1 ? 1 : i]));
    if (v[2] == 0) return render_fail(r, LATH_ERR_INPUT, "range: a step of 0");
    value_range *g = render_bytes(r, sizeof(*g));
    if (!g) return r->st;
    *g = (value_range){v[0], v[1], v[2], 0};
    const bool up = v[2] > 0;
    if (up ? v[1] > v[0] : v[1] < v[0]) {
        const uint64_t span = up ? (uint64_t)v[1] - (uint64_t)v[0] : (uint64_t)v[0] - (uint64_t)v[1];
        const uint64_t step = up ? (uint64_t)v[2] : -(uint64_t)v[2], n = (span - 1) / step + 1;
        if (n > RANGE_MOST) return render_fail(r, LATH_ERR_INPUT, "range: over %d numbers", RANGE_MOST);
        g->n = (size_t)n;
    }
    *out = (value){.kind = V_RANGE, .u.range = g};
    return LATH_OK;
}

/* dict(x, a=1): x a dict or pairs. */
static lath_status make_dict(render *r, const args *a, value_dict **out)
{
    value_dict *d;
    value *pairs;
    size_t n;
    if (a->n > 1) return render_fail(r, LATH_ERR_INPUT, "%s: at most one argument without a name", a->what);
    TRY(value_new_dict(r, a->n_kw, &d));
    if (a->n && a->v[0].kind == V_DICT) {
        for (size_t i = 0; i < a->v[0].u.dict->n; i++)
            TRY(dict_set(r, d, a->v[0].u.dict->v[i].key, a->v[0].u.dict->v[i].value));
    } else if (a->n) {
        TRY(value_items(r, a->v[0], &pairs, &n));
        for (size_t i = 0; i < n; i++) {
            value *kv;
            size_t two;
            TRY(value_items(r, pairs[i], &kv, &two));
            if (two != 2) return render_fail(r, LATH_ERR_INPUT, "%s: want pairs", a->what);
            TRY(dict_set(r, d, kv[0], kv[1]));
        }
    }
    for (size_t k = 0; k < a->n_kw; k++) {
        value key;
        TRY(str_new(r, a->kw[k].name, a->kw[k].n, false, &key));
        TRY(dict_set(r, d, key, a->kw[k].v));
    }
    *out = d;
    return LATH_OK;
}

static lath_status g_dict(render *r, const args *a, value *out)
{
    value_dict *d;
    TRY(make_dict(r, a, &d));
    *out = (value){.kind = V_DICT, .u.dict = d};
    return LATH_OK;
}

lath_status space_set(render *r, name_space *s, const char *name, size_t n, value v)
{
    struct space_entry **at = &s->first;
    for (; *at; at = &(*at)->next) {
        if ((*at)->n != n || memcmp((*at)->name, name, n) != 0) continue;
        (*at)->v = v;
        return LATH_OK;
    }
    struct space_entry *e = render_bytes(r, sizeof(*e));
    if (!e) return r->st;
    e->name = name;
    e->n = (uint32_t)n;
    e->v = v;
    *at = e;
    return LATH_OK;
}

static lath_status g_namespace(render *r, const args *a, value *out)
{
    value_dict *d;
    TRY(make_dict(r, a, &d));
    name_space *s = render_bytes(r, sizeof(*s));
    if (!s) return r->st;
    for (size_t i = 0; i < d->n; i++) {
        const value key = d->v[i].key;
        if (key.kind != V_STR) return fail_type(r, "the name of an attribute", key);
        if (key.u.str->n && key.u.str->s[0] == '_')
            return render_fail(r, LATH_ERR_INPUT, "a namespace takes no name with \"_\" in front");
        TRY(space_set(r, s, key.u.str->s, key.u.str->n, d->v[i].value));
    }
    *out = (value){.kind = V_NAMESPACE, .u.space = s};
    return LATH_OK;
}

static lath_status new_cycler(render *r, value_kind kind, const value *v, size_t n, value *out)
{
    cycler *c = render_bytes(r, sizeof(*c));
    value *copy = render_array(r, n, sizeof(*copy));
    if (!c || !copy) return r->st;
    memcpy(copy, v, n * sizeof(*copy));
    *c = (cycler){.v = copy, .n = n};
    *out = (value){.kind = kind, .u.cycler = c};
    return LATH_OK;
}

static lath_status g_cycler(render *r, const args *a, value *out)
{
    if (a->n == 0 || a->n_kw) return render_fail(r, LATH_ERR_INPUT, "cycler: no items");
    return new_cycler(r, V_CYCLER, a->v, a->n, out);
}

static lath_status g_joiner(render *r, const args *a, value *out)
{
    value by;
    TRY(str_own(r, ", ", &by));
    TRY(args_read(r, a, "sep", 0, &by));
    return new_cycler(r, V_JOINER, &by, 1, out);
}

static lath_status g_raise(render *r, const args *a, value *out)
{
    value v;
    const chat_str *text;
    (void)out;
    TRY(args_read(r, a, "message", 1, &v));
    TRY(value_to_str(r, v, &text));
    return render_fail(r, LATH_ERR_INPUT, "%.*s", text->n > 190 ? 190 : (int)text->n, text->s);
}

const global_row *chat_find_global(const char *name, size_t n)
{
    static const global_row rows[] = {{"range", g_range},
                                      {"dict", g_dict},
                                      {"namespace", g_namespace},
                                      {"cycler", g_cycler},
                                      {"joiner", g_joiner},
                                      {"raise_exception", g_raise},
                                      {"strftime_now", global_strftime_now},
                                      {"lipsum", NULL},
                                      {"self", NULL}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strlen(rows[i].name) == n && memcmp(rows[i].name, name, n) == 0) return &rows[i];
    }
    return NULL;
}
