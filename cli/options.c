/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c: the tables of commands and options made from the .def files, and the parser. An option is described once:
 * where its value goes is an offset into struct options and its kind says how text becomes a value, so the command line
 * and --config share one setter. The config file is applied first, then the command line; a list option replaces what
 * the file gave at its first appearance.
 */
#include "options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "lath/lath_vindex.h"

static const option_choice option_poolings[] = {
    {"auto", LATH_POOLING_AUTO}, {"cls", LATH_POOLING_CLS}, {"mean", LATH_POOLING_MEAN},
    {"last", LATH_POOLING_LAST}, {"max", LATH_POOLING_MAX}, {NULL, 0},
};
static const option_choice option_formats[] = {
    {"jsonl", FORMAT_JSONL}, {"json", FORMAT_JSON}, {"npy", FORMAT_NPY},
    {"f32", FORMAT_F32},     {"text", FORMAT_TEXT}, {NULL, 0},
};
static const option_choice option_devices[] = {
    {"auto", DEVICE_AUTO}, {"cpu", DEVICE_CPU}, {"gpu", DEVICE_GPU}, {NULL, 0}};
static const option_choice option_index_types[] = {
    {"f32", LATH_INDEX_F32}, {"f16", LATH_INDEX_F16}, {"int8", LATH_INDEX_INT8}, {NULL, 0}};
static const option_choice option_gguf_types[] = {
    {"f32", LATH_GGUF_F32 + 1},   {"f16", LATH_GGUF_F16 + 1},
    {"bf16", LATH_GGUF_BF16 + 1}, {"q8_0", LATH_GGUF_Q8_0 + 1},
    {"q4_0", LATH_GGUF_Q4_0 + 1}, {"q4_k", LATH_GGUF_Q4_K + 1},
    {"q6_k", LATH_GGUF_Q6_K + 1}, {NULL, 0},
};
static const option_choice option_row_types[] = {
    {"f32", LATH_ROWS_F32},   {"f16", LATH_ROWS_F16},   {"bf16", LATH_ROWS_BF16},
    {"q8_0", LATH_ROWS_Q8_0}, {"q4_k", LATH_ROWS_Q4_K}, {NULL, 0},
};
static const option_choice option_index_levels[] = {
    {"browse", LATH_VINDEX_BROWSE + 1},
    {"attention", LATH_VINDEX_ATTENTION + 1},
    {"inference", LATH_VINDEX_INFERENCE + 1},
    {"all", LATH_VINDEX_ALL + 1},
    {NULL, 0},
};
static const option_choice option_isas[] = {
    {"auto", LATH_ISA_AUTO},
    {"ref", LATH_ISA_REF},
    {"avx2", LATH_ISA_AVX2},
    {"avx512", LATH_ISA_AVX512},
    {"amx", LATH_ISA_AMX},
    {"neon", LATH_ISA_NEON},
    {NULL, 0},
};
static const option_choice option_precisions[] = {
    {"auto", LATH_PRECISION_AUTO},
    {"exact", LATH_PRECISION_EXACT},
    {"bf16", LATH_PRECISION_BF16},
    {"int8", LATH_PRECISION_INT8},
    {NULL, 0},
};
static const option_choice option_positions[] = {{"last", 0}, {"all", 1}, {NULL, 0}};
static const option_choice option_kvs[] = {
    {"auto", LATH_KV_AUTO}, {"f32", LATH_KV_F32}, {"f16", LATH_KV_F16}, {NULL, 0}};

const option_row option_rows[] = {
#define OPTION(group, short_name, name, kind, field, metavar, min, max, choices, help) \
    {group, short_name, name, OPTION_##kind, offsetof(options, field), metavar, min, max, choices, help},
#include "options.def"
#undef OPTION
    {0, 0, NULL, OPTION_FLAG, 0, NULL, 0, 0, NULL, NULL},
};

const command_row command_rows[] = {
#define COMMAND(name, groups, args, title, description, examples) \
    {#name, cmd_##name, groups, args, title, description, examples},
#define COMMAND_AS(name, shown, groups, args, title, description, examples) \
    {shown, cmd_##name, groups, args, title, description, examples},
#include "cmds.def"
#undef COMMAND
#undef COMMAND_AS
    {NULL, NULL, 0, NULL, NULL, NULL, NULL},
};

/* ----------------------------------------------------------------------------------------------------------- lookup */

const command_row *command_find(const char *name)
{
    for (const command_row *c = command_rows; c->name; c++) {
        if (strcmp(c->name, name) == 0) return c;
    }
    return NULL;
}

/* Edits between two words (Levenshtein, one row); a word over 31 letters is far from everything. */
static size_t edits(const char *a, const char *b)
{
    enum { MAX = 32 };
    size_t row[MAX];
    const size_t na = strlen(a), nb = strlen(b);
    if (na >= MAX || nb >= MAX) return MAX;
    for (size_t j = 0; j <= nb; j++) row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            const size_t up = row[j], change = diagonal + (a[i - 1] != b[j - 1]);
            const size_t step = (up < row[j - 1] ? up : row[j - 1]) + 1;
            row[j] = change < step ? change : step;
            diagonal = up;
        }
    }
    return row[nb];
}

enum { NEAR_EDITS = 2 };

const char *command_near(const char *name)
{
    const char *best = NULL;
    size_t least = NEAR_EDITS + 1;
    for (const command_row *c = command_rows; c->name; c++) {
        const size_t e = edits(name, c->name);
        if (e < least) {
            least = e;
            best = c->name;
        }
    }
    return best;
}

/* Commands may mean different things by one name: the row of `groups`, else one of another command, else NULL. */
static const option_row *find_long(const char *name, size_t n, unsigned groups)
{
    const option_row *other = NULL;
    for (const option_row *r = option_rows; r->name; r++) {
        if (strlen(r->name) != n || memcmp(r->name, name, n) != 0) continue;
        if (r->group & groups) return r;
        other = r;
    }
    return other;
}

static const option_row *find_short(char c, unsigned groups)
{
    for (const option_row *r = option_rows; r->name; r++) {
        if (r->short_name == c && (r->group & groups)) return r;
    }
    return NULL;
}

static const char *near_option(const char *name, unsigned groups)
{
    const char *best = NULL;
    size_t least = NEAR_EDITS + 1;
    for (const option_row *r = option_rows; r->name; r++) {
        const size_t e = r->group & groups ? edits(name, r->name) : NEAR_EDITS + 1;
        if (e < least) {
            least = e;
            best = r->name;
        }
    }
    return best;
}

/* ----------------------------------------------------------------------------------------------------------- values */

static lath_status list_add(options *o, string_list *l, const char *s, lath_error *err)
{
    if (l->n == l->capacity) {
        const size_t capacity = l->capacity ? 2 * l->capacity : 16;
        const char **items = arena_array(&o->arena, capacity, sizeof(*items));
        if (!items) return err_nomem(err, capacity * sizeof(*items));
        if (l->n) memcpy(items, l->items, l->n * sizeof(*items));
        l->items = items;
        l->capacity = capacity;
    }
    l->items[l->n++] = s;
    return LATH_OK;
}

static lath_status parse_int(const option_row *r, const char *s, int64_t *out, lath_error *err)
{
    int64_t v = 0;
    const char *p = s;
    const bool minus = *p == '-';
    if (minus || *p == '+') p++;
    bool ok = *p != 0;
    for (; *p && ok; p++) {
        if (*p < '0' || *p > '9')
            ok = false;
        else if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p - '0', &v))
            ok = false;
    }
    if (minus) v = -v;
    if (!ok || v < r->min || v > r->max)
        return err_set(err, LATH_ERR_USAGE, "--%s: \"%s\" is not a whole number from %lld to %lld", r->name, s,
                       (long long)r->min, (long long)r->max);
    *out = v;
    return LATH_OK;
}

/* Not a number, and what is beyond min..max, are refused. */
static lath_status parse_real(const option_row *r, const char *s, double *out, lath_error *err)
{
    char *end;
    const double v = strtod(s, &end);
    const bool plain = s[strspn(s, "+-.0123456789eE")] == 0; /* no hexadecimal, no names */
    if (end == s || *end || !plain || !(v >= (double)r->min && v <= (double)r->max))
        return err_set(err, LATH_ERR_USAGE, "--%s: \"%s\" is not a number from %lld to %lld", r->name, s,
                       (long long)r->min, (long long)r->max);
    *out = v;
    return LATH_OK;
}

static lath_status parse_choice(const option_row *r, const char *s, int *out, lath_error *err)
{
    char all[128] = "";
    for (const option_choice *c = r->choices; c->name; c++) {
        if (strcmp(c->name, s) == 0) {
            *out = c->value;
            return LATH_OK;
        }
        const size_t n = strlen(all);
        snprintf(all + n, sizeof(all) - n, "%s%s", n ? (c[1].name ? ", " : " or ") : "", c->name);
    }
    return err_set(err, LATH_ERR_USAGE, "--%s: \"%s\" is not one of %s", r->name, s, all);
}

/* value: NULL for flags. */
static lath_status set_option(options *o, const option_row *r, const char *value, lath_error *err)
{
    void *field = (char *)o + r->field;
    if (value && !*value && r->metavar && strcmp(r->metavar, "FILE") == 0)
        return err_set(err, LATH_ERR_USAGE, "--%s: want the name of a file", r->name);
    switch (r->kind) {
    case OPTION_FLAG: *(bool *)field = true; return LATH_OK;
    case OPTION_COUNT: ++*(int *)field; return LATH_OK;
    case OPTION_STR: *(const char **)field = value; return LATH_OK;
    case OPTION_LIST: return list_add(o, field, value, err);
    case OPTION_INT: return parse_int(r, value, field, err);
    case OPTION_NUMBER:
        ((option_number *)field)->given = true;
        return parse_int(r, value, &((option_number *)field)->whole, err);
    case OPTION_REAL:
        ((option_number *)field)->given = true;
        return parse_real(r, value, &((option_number *)field)->real, err);
    case OPTION_CHOICE: return parse_choice(r, value, field, err);
    }
    return LATH_OK;
}

static bool takes_value(const option_row *r) { return r->kind != OPTION_FLAG && r->kind != OPTION_COUNT; }

/* ----------------------------------------------------------------------------------------------------------- config */

static lath_status config_value(options *o, const option_row *r, const json_value *v, const char *path, lath_error *err)
{
    char number[32];
    lath_status st;
    if (!json_present(v)) return LATH_OK;
    if (v->kind == JSON_ARRAY && r->kind == OPTION_LIST) {
        for (const json_value *item = v->u.items.first; item; item = item->next) {
            if (item->kind != JSON_STRING)
                return err_set(err, LATH_ERR_USAGE, "%s: line %u: \"%s\": want strings", path, item->line, r->name);
            TRY(list_add(o, (string_list *)(void *)((char *)o + r->field), item->u.string.data, err));
        }
        return LATH_OK;
    }
    if (!takes_value(r)) {
        if (v->kind != JSON_BOOL)
            return err_set(err, LATH_ERR_USAGE, "%s: line %u: \"%s\": want true or false", path, v->line, r->name);
        return v->u.boolean ? set_option(o, r, NULL, err) : LATH_OK;
    }
    const char *text = number;
    const bool whole = r->kind == OPTION_INT || r->kind == OPTION_NUMBER || r->kind == OPTION_REAL;
    if (v->kind == JSON_STRING && strlen(v->u.string.data) == v->u.string.len)
        text = v->u.string.data;
    else if (v->kind == JSON_INT && whole)
        snprintf(number, sizeof(number), "%lld", (long long)v->u.integer);
    else if (v->kind == JSON_REAL && r->kind == OPTION_REAL)
        snprintf(number, sizeof(number), "%.17g", v->u.real);
    else
        return err_set(err, LATH_ERR_USAGE, "%s: line %u: \"%s\": want %s", path, v->line, r->name,
                       r->kind == OPTION_REAL ? "a number"
                       : whole                ? "a whole number"
                                              : "a string");
    st = set_option(o, r, text, err);
    return st == LATH_OK ? st : err_wrap(err, st, "%s: line %u", path, v->line);
}

/* Options of other commands are allowed in the file and passed over, so that one file serves all commands. */
static lath_status read_config(options *o, const command_row *cmd, const char *path, lath_error *err)
{
    json_value *root;
    TRY(json_load(&o->arena, path, NULL, &root, err));
    if (root->kind != JSON_OBJECT)
        return err_set(err, LATH_ERR_FORMAT, "%s: want a JSON object of option names and values", path);
    for (const json_value *v = root->u.items.first; v; v = v->next) {
        const option_row *r = find_long(v->key, v->key_len, cmd->groups);
        if (!r || strcmp(r->name, "config") == 0 || strcmp(r->name, "help") == 0)
            return err_set(err, LATH_ERR_USAGE, "%s: line %u: \"%s\" is no option", path, v->line, v->key);
        if (r->group & cmd->groups) TRY(config_value(o, r, v, path, err));
    }
    return LATH_OK;
}

/* ----------------------------------------------------------------------------------------------------- command line */

typedef struct parser {
    options *o;
    const command_row *cmd;
    int argc, at;
    char **argv;
    bool config_only; /* first pass: only --config is looked at */
    bool seen[128];   /* options that the command line has given; by row */
} parser;

/* Options that say the same thing in different ways: the first of a set on the command line wipes what --config said,
 * two on the command line are an error. */
static const char *const rivals[][3] = {
    {"prompt", "prompt-text", NULL},
    {"corpus-prompt", "corpus-prompt-text", NULL},
    {"json", "jsonl", "format"},
};

static void wipe(options *o, const option_row *r)
{
    void *field = (char *)o + r->field;
    switch (r->kind) {
    case OPTION_FLAG: *(bool *)field = false; break;
    case OPTION_COUNT:
    case OPTION_CHOICE: *(int *)field = 0; break;
    case OPTION_STR: *(const char **)field = NULL; break;
    case OPTION_LIST: ((string_list *)field)->n = 0; break;
    case OPTION_INT: *(int64_t *)field = 0; break;
    case OPTION_NUMBER:
    case OPTION_REAL: *(option_number *)field = (option_number){0}; break;
    }
}

static lath_status settle_rivals(parser *p, const option_row *r, lath_error *err)
{
    for (size_t s = 0; s < sizeof(rivals) / sizeof(rivals[0]); s++) {
        bool in_set = false;
        for (size_t i = 0; i < 3; i++) in_set |= rivals[s][i] && strcmp(rivals[s][i], r->name) == 0;
        for (size_t i = 0; in_set && i < 3 && rivals[s][i]; i++) {
            const option_row *other = find_long(rivals[s][i], strlen(rivals[s][i]), p->cmd->groups);
            if (other == r) continue;
            if (p->seen[other - option_rows])
                return err_set(err, LATH_ERR_USAGE, "--%s: cannot be given with --%s", r->name, other->name);
            wipe(p->o, other);
        }
    }
    return LATH_OK;
}

static lath_status apply(parser *p, const option_row *r, const char *value, lath_error *err)
{
    if (p->config_only) {
        if (strcmp(r->name, "config") == 0) p->o->config = value;
        return LATH_OK;
    }
    const size_t row = (size_t)(r - option_rows);
    if (r->kind == OPTION_LIST && !p->seen[row]) wipe(p->o, r);
    TRY(settle_rivals(p, r, err));
    p->seen[row] = true;
    return set_option(p->o, r, value, err);
}

/* The value behind an option: the rest of its own word or the next word. */
static lath_status value_of(parser *p, const char *shown, const char *rest, const char **out, lath_error *err)
{
    if (rest)
        *out = rest;
    else if (p->at < p->argc)
        *out = p->argv[p->at++];
    else
        return err_set(err, LATH_ERR_USAGE, "%s: wants a value", shown);
    return LATH_OK;
}

static lath_status long_option(parser *p, const char *word, lath_error *err)
{
    const char *name = word + 2, *equals = strchr(name, '=');
    const size_t n = equals ? (size_t)(equals - name) : strlen(name);
    const option_row *r = find_long(name, n, p->cmd->groups);
    const char *value = NULL;
    char shown[64];
    snprintf(shown, sizeof(shown), "--%.*s", (int)(n < 56 ? n : 56), name);
    if (!r) {
        const char *near = near_option(shown + 2, p->cmd->groups);
        if (near) return err_set(err, LATH_ERR_USAGE, "%s: no such option; did you mean --%s?", shown, near);
        return err_set(err, LATH_ERR_USAGE, "%s: no such option (lath %s --help lists them)", shown, p->cmd->name);
    }
    if (!(r->group & p->cmd->groups))
        return err_set(err, LATH_ERR_USAGE, "%s: not an option of lath %s", shown, p->cmd->name);
    if (takes_value(r))
        TRY(value_of(p, shown, equals ? equals + 1 : NULL, &value, err));
    else if (equals)
        return err_set(err, LATH_ERR_USAGE, "%s: takes no value", shown);
    return apply(p, r, value, err);
}

static lath_status short_options(parser *p, const char *word, lath_error *err)
{
    for (const char *c = word + 1; *c; c++) {
        const char shown[3] = {'-', *c, 0};
        const option_row *r = find_short(*c, p->cmd->groups);
        const char *value = NULL;
        if (!r)
            return err_set(err, LATH_ERR_USAGE, "%s: no such option (write -- before a text that begins with a dash)",
                           (unsigned char)*c < 0x80 ? shown : word);
        if (!takes_value(r)) {
            TRY(apply(p, r, NULL, err));
            continue;
        }
        TRY(value_of(p, shown, c[1] ? c + 1 : NULL, &value, err));
        return apply(p, r, value, err);
    }
    return LATH_OK;
}

static lath_status walk_words(parser *p, lath_error *err)
{
    bool options_ended = false;
    p->at = 0;
    while (p->at < p->argc) {
        const char *word = p->argv[p->at++];
        if (options_ended || word[0] != '-' || word[1] == 0) {
            if (!p->config_only) TRY(list_add(p->o, &p->o->args, word, err));
        } else if (strcmp(word, "--") == 0) {
            options_ended = true;
        } else if (word[1] == '-') {
            TRY(long_option(p, word, err));
        } else {
            TRY(short_options(p, word, err));
        }
    }
    return LATH_OK;
}

void options_init(options *o)
{
    memset(o, 0, sizeof(*o));
    arena_init(&o->arena, alloc_default());
}

void options_deinit(options *o) { arena_deinit(&o->arena); }

lath_status options_parse(options *o, const command_row *cmd, int argc, char **argv, lath_error *err)
{
    _Static_assert(sizeof(option_rows) / sizeof(option_rows[0]) <= sizeof(((parser *)0)->seen), "one flag a row");
    parser p = {.o = o, .cmd = cmd, .argc = argc, .argv = argv, .config_only = true};
    TRY(walk_words(&p, err));
    if (o->config) TRY(read_config(o, cmd, o->config, err));
    p.config_only = false;
    return walk_words(&p, err);
}
