/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_gguf_out.c: the way back of tok_gguf.c: a tokenizer.json as the arrays that GGUF files carry. What llama.cpp does with the arrays has to give
 * the ids that the file gives, so every part of the pipeline is either said by a key, or what the kind of tokenizer does anyway, or refused by name.
 *
 *     gpt2    BPE of byte letters; its split patterns have a name (tok_gguf_split.c)
 *     llama   BPE with byte fallback over text whose spaces are U+2581, as SentencePiece trains it. Its merges carry no more than an order of pieces,
 *             which becomes their scores (tok_gguf_scores.c); merges that carry more are refused
 */
#include "tok/tok_gguf.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/utf8.h"
#include "tok/tok_parts.h"
#include "tok/tok_spm_proto.h"
#include "tok/tok_vocab_json.h"

enum { JSON_MOST = 1 << 30, MOST_PATTERNS = 8, MOST_IDS = 1 << 24 };

static const char mark[] = "\xE2\x96\x81"; /* U+2581 */
static const char byte_level_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

typedef tok_gguf_entry entry;
typedef tok_gguf_merge merge;

typedef struct added {
    tok_string content;
    int64_t id;
    bool special;
} added;

typedef struct job {
    arena *mem;
    const char *name; /* of tokenizer.json */
    const log_sink *log;
    lath_error *err;
    buf vocab, merges, extra; /* arrays of entry, merge, added */
    map by_text;              /* vocabulary: text -> index of entry */
    const json_value *root, *config;
    bool byte_level, whole, nfc, space_prefix, pieces;
    tok_string patterns[MOST_PATTERNS];
    size_t n_patterns;
    tok_arrays *out;
    size_t n_ids;
} job;

static const entry *entries(const job *j) { return (const entry *)(const void *)j->vocab.data; }
static const merge *merges(const job *j) { return (const merge *)(const void *)j->merges.data; }
static const added *extras(const job *j) { return (const added *)(const void *)j->extra.data; }
static size_t n_entries(const job *j) { return j->vocab.len / sizeof(entry); }
static size_t n_merges(const job *j) { return j->merges.len / sizeof(merge); }
static size_t n_extras(const job *j) { return j->extra.len / sizeof(added); }

static lath_status refuse(const job *j, const json_value *at, const char *what)
{
    return err_set(j->err, LATH_ERR_UNSUPPORTED, "%s: line %u: %s cannot be said in a GGUF file", j->name,
                   at ? at->line : 1, what);
}

static bool same(tok_string a, const char *b) { return a.n == strlen(b) && memcmp(a.s, b, a.n) == 0; }

static lath_status copy(const job *j, const json_value *v, tok_string *out)
{
    if (!v || v->kind != JSON_STRING)
        return err_set(j->err, LATH_ERR_FORMAT, "%s: line %u: want a string", j->name, v ? v->line : 1);
    out->n = v->u.string.len;
    out->s = arena_strdup(j->mem, v->u.string.data, out->n);
    return out->s ? LATH_OK : err_nomem(j->err, out->n);
}

/* ------------------------------------------------------------------------------------------------------- what is read */

static lath_status on_vocab(void *ctx, const json_value *item, lath_error *err)
{
    job *j = ctx;
    entry e = {.id = item->kind == JSON_INT ? item->u.integer : -1};
    if (!item->key || e.id < 0 || e.id >= MOST_IDS)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: line %u: a vocabulary other than text and ids is not supported",
                       j->name, item->line);
    e.text = (tok_string){arena_strdup(j->mem, item->key, item->key_len), item->key_len};
    if (!e.text.s) return err_nomem(err, e.text.n);
    buf_append(&j->vocab, &e, sizeof(e));
    return buf_status(&j->vocab, err);
}

/* "left right", or the two as an array. */
static lath_status on_merge(void *ctx, const json_value *item, lath_error *err)
{
    job *j = ctx;
    merge m;
    if (item->kind == JSON_ARRAY && item->u.items.count == 2) {
        TRY(copy(j, item->u.items.first, &m.left));
        TRY(copy(j, item->u.items.first->next, &m.right));
    } else {
        tok_string both = {0};
        TRY(copy(j, item, &both));
        const char *space = both.n > 1 ? memchr(both.s + 1, ' ', both.n - 1) : NULL;
        if (!space)
            return err_set(err, LATH_ERR_FORMAT, "%s: line %u: a merge is not two tokens with a space between", j->name,
                           item->line);
        m.left = (tok_string){both.s, (size_t)(space - both.s)};
        m.right = (tok_string){space + 1, both.n - m.left.n - 1};
    }
    buf_append(&j->merges, &m, sizeof(m));
    return buf_status(&j->merges, err);
}

static lath_status read_added(job *j)
{
    const json_value *list = json_get(j->root, "added_tokens");
    if (!json_present(list)) return LATH_OK;
    if (list->kind != JSON_ARRAY)
        return err_set(j->err, LATH_ERR_FORMAT, "%s: line %u: added_tokens: want an array", j->name, list->line);
    for (const json_value *v = list->u.items.first; v; v = v->next) {
        added a = {.id = -1};
        bool left = false, right = false;
        TRY(copy(j, json_get(v, "content"), &a.content));
        TRY(json_get_int(v, "id", j->name, 0, MOST_IDS, &a.id, j->err));
        TRY(json_get_bool(v, "special", j->name, &a.special, j->err));
        TRY(json_get_bool(v, "lstrip", j->name, &left, j->err));
        TRY(json_get_bool(v, "rstrip", j->name, &right, j->err));
        if (a.id < 0)
            return err_set(j->err, LATH_ERR_FORMAT, "%s: line %u: an added token without id", j->name, v->line);
        if (left || right)
            log_line(j->log, LATH_LOG_WARN, "%s: token \"%.80s\" takes spaces around it: GGUF files do not say so",
                     j->name, a.content.s);
        buf_append(&j->extra, &a, sizeof(a));
    }
    return buf_status(&j->extra, j->err);
}

static const added *find_added(const job *j, tok_string s)
{
    for (size_t i = 0; i < n_extras(j); i++) {
        if (extras(j)[i].content.n == s.n && memcmp(extras(j)[i].content.s, s.s, s.n) == 0) return &extras(j)[i];
    }
    return NULL;
}

static int64_t find_token(const job *j, tok_string s)
{
    uint64_t i;
    const added *a = find_added(j, s);
    if (a) return a->id;
    return map_find(&j->by_text, s.s, s.n, &i) ? entries(j)[i].id : -1;
}

/* ------------------------------------------------------------------------------------------------------- the pipeline */

typedef lath_status (*step_fn)(job *j, const json_value *v, const char *type);

/* One component, or each of a Sequence under `list`. */
static lath_status each_step(job *j, const json_value *v, const char *list, step_fn fn)
{
    const char *type = NULL;
    if (!json_present(v)) return LATH_OK;
    TRY(json_get_str(v, "type", j->name, &type, j->err));
    if (!type) return err_set(j->err, LATH_ERR_FORMAT, "%s: line %u: no \"type\" in it", j->name, v->line);
    if (strcmp(type, "Sequence") != 0) return fn(j, v, type);
    const json_value *items = json_get(v, list);
    for (const json_value *i = items && items->kind == JSON_ARRAY ? items->u.items.first : NULL; i; i = i->next)
        TRY(each_step(j, i, list, fn));
    return LATH_OK;
}

static lath_status add_pattern(job *j, const json_value *at, tok_string pattern)
{
    if (j->n_patterns == MOST_PATTERNS) return refuse(j, at, "a pre-tokenizer of so many steps");
    j->patterns[j->n_patterns++] = pattern;
    return LATH_OK;
}

static lath_status on_split(job *j, const json_value *v)
{
    const json_value *pattern = json_get(v, "pattern"), *regex = json_get(pattern, "Regex"),
                     *string = json_get(pattern, "String"), *behavior = json_get(v, "behavior");
    bool invert = false;
    tok_string s = {0};
    TRY(json_get_bool(v, "invert", j->name, &invert, j->err));
    /* Spaces are marks already where a tokenizer of pieces splits at them. */
    if (j->pieces && json_is_string(string, " ")) return LATH_OK;
    /* Patterns that cover every text: what lies between matches is nothing, so taking it out changes nothing. */
    const bool isolated =
        (json_is_string(behavior, "Isolated") && !invert) || (json_is_string(behavior, "Removed") && invert);
    if (!regex || !isolated || j->pieces) return refuse(j, v, "this Split");
    TRY(copy(j, regex, &s));
    return add_pattern(j, v, s);
}

static lath_status on_metaspace(job *j, const json_value *v)
{
    const char *scheme = "always", *replacement = mark;
    bool prefix = true;
    TRY(json_get_str(v, "replacement", j->name, &replacement, j->err));
    TRY(json_get_str(v, "prepend_scheme", j->name, &scheme, j->err));
    TRY(json_get_bool(v, "add_prefix_space", j->name, &prefix, j->err));
    if (strcmp(replacement, mark) != 0) return refuse(j, v, "a Metaspace of another mark");
    j->pieces = true;
    j->space_prefix = prefix && strcmp(scheme, "never") != 0;
    if (strcmp(scheme, "first") == 0)
        log_line(j->log, LATH_LOG_WARN,
                 "%s: a space goes before the first word of a text only; readers of GGUF files put one behind special "
                 "tokens, too",
                 j->name);
    return LATH_OK;
}

static lath_status on_pre_tokenizer(job *j, const json_value *v, const char *type)
{
    if (strcmp(type, "Split") == 0) return on_split(j, v);
    if (strcmp(type, "Metaspace") == 0) return on_metaspace(j, v);
    if (strcmp(type, "Digits") == 0) {
        bool each = false;
        TRY(json_get_bool(v, "individual_digits", j->name, &each, j->err));
        return add_pattern(j, v, each ? (tok_string){"\\p{N}", 5} : (tok_string){"\\p{N}+", 6});
    }
    if (strcmp(type, "ByteLevel") == 0) {
        bool prefix = false, regex = true;
        TRY(json_get_bool(v, "add_prefix_space", j->name, &prefix, j->err));
        TRY(json_get_bool(v, "use_regex", j->name, &regex, j->err));
        if (prefix) return refuse(j, v, "a ByteLevel with add_prefix_space");
        j->byte_level = true;
        return regex ? add_pattern(j, v, (tok_string){byte_level_pattern, sizeof(byte_level_pattern) - 1}) : LATH_OK;
    }
    return err_set(j->err, LATH_ERR_UNSUPPORTED, "%s: line %u: pre-tokenizer \"%.60s\" cannot be said in a GGUF file",
                   j->name, v->line, type);
}

static lath_status on_normalizer(job *j, const json_value *v, const char *type)
{
    if (strcmp(type, "NFC") == 0) {
        j->nfc = true;
        return LATH_OK;
    }
    if (strcmp(type, "Prepend") == 0 && json_is_string(json_get(v, "prepend"), mark)) {
        j->pieces = j->space_prefix = true;
        return LATH_OK;
    }
    if (strcmp(type, "Replace") == 0 && json_is_string(json_get(json_get(v, "pattern"), "String"), " ") &&
        json_is_string(json_get(v, "content"), mark)) {
        j->pieces = true;
        return LATH_OK;
    }
    return err_set(j->err, LATH_ERR_UNSUPPORTED, "%s: line %u: normalizer \"%.60s\" cannot be said in a GGUF file",
                   j->name, v->line, type);
}

/* The token that stands at one end of a text, its only one there. */
static lath_status end_token(job *j, const json_value *v, const json_value *special, int32_t *out)
{
    const char *name = NULL;
    int64_t id = -1;
    TRY(json_get_str(json_get(v, "SpecialToken"), "id", j->name, &name, j->err));
    const json_value *ids = json_get(json_get(special, name ? name : ""), "ids");
    if (ids && ids->kind == JSON_ARRAY && ids->u.items.count == 1 && ids->u.items.first->kind == JSON_INT)
        id = ids->u.items.first->u.integer;
    if (id < 0 || id >= MOST_IDS || *out >= 0) return refuse(j, v, "a template of more than a token at each end");
    *out = (int32_t)id;
    return LATH_OK;
}

static lath_status on_template(job *j, const json_value *v, const char *type)
{
    int32_t ends[2] = {-1, -1};
    bool behind = false;
    if (strcmp(type, "ByteLevel") == 0) return LATH_OK; /* about offsets */
    const json_value *single = json_get(v, "single");
    if (strcmp(type, "TemplateProcessing") != 0 || !single || single->kind != JSON_ARRAY)
        return err_set(j->err, LATH_ERR_UNSUPPORTED,
                       "%s: line %u: post-processor \"%.60s\" cannot be said in a GGUF file", j->name, v->line, type);
    for (const json_value *i = single->u.items.first; i; i = i->next) {
        if (json_get(i, "Sequence"))
            behind = true;
        else
            TRY(end_token(j, i, json_get(v, "special_tokens"), &ends[behind]));
    }
    tok_arrays *a = j->out;
    a->add_bos = ends[0] >= 0;
    a->add_eos = ends[1] >= 0;
    if (ends[0] >= 0) a->bos = ends[0];
    if (ends[1] >= 0) { /* the end of a text; what the configuration calls so ends a turn */
        if (a->eos >= 0 && a->eos != ends[1]) a->eot = a->eos;
        a->eos = ends[1];
    }
    return LATH_OK;
}

/* Ids by name of tokenizer_config.json: "bos_token": "<s>" or {"content": "<s>"}. */
static lath_status read_ids(job *j)
{
    tok_arrays *a = j->out;
    const struct {
        const char *key;
        int32_t *out;
    } rows[] = {{"bos_token", &a->bos}, {"eos_token", &a->eos}, {"unk_token", &a->unk},  {"sep_token", &a->sep},
                {"pad_token", &a->pad}, {"cls_token", &a->cls}, {"mask_token", &a->mask}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const json_value *v = json_get(j->config, rows[i].key);
        if (v && v->kind == JSON_OBJECT) v = json_get(v, "content");
        if (!v || v->kind != JSON_STRING) continue;
        *rows[i].out = (int32_t)find_token(j, (tok_string){v->u.string.data, v->u.string.len});
    }
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------ arrays */

/* Tokens that files of some models do not call special although they are, as llama.cpp's converter takes them. */
static bool looks_special(tok_string s)
{
    static const char *const names[] = {"<pad>", "<mask>", "<2mass>", "[@BOS@]"};
    static const struct {
        const char *begin, *end;
    } forms[] = {{"<|", "|>"}, {"<\xEF\xBD\x9C", "\xEF\xBD\x9C>"}, {"<unused", ">"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (same(s, names[i])) return true;
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        const size_t b = strlen(forms[i].begin), e = strlen(forms[i].end);
        if (s.n >= b + e && memcmp(s.s, forms[i].begin, b) == 0 && memcmp(s.s + s.n - e, forms[i].end, e) == 0)
            return true;
    }
    return false;
}

/* Marks become spaces: readers look for user-defined tokens in the raw text. */
static lath_status unmark(const job *j, tok_string *s)
{
    char *p = arena_bytes(j->mem, s->n + 1, 1);
    size_t n = 0;
    if (!p) return err_nomem(j->err, s->n);
    for (size_t i = 0; i < s->n;) {
        if (s->n - i >= 3 && memcmp(s->s + i, mark, 3) == 0) {
            p[n++] = ' ';
            i += 3;
        } else {
            p[n++] = s->s[i++];
        }
    }
    *s = (tok_string){p, n};
    return LATH_OK;
}

static lath_status place_entries(job *j, tok_string *tokens, int32_t *types)
{
    for (size_t i = 0; i < n_entries(j); i++) {
        const entry *e = &entries(j)[i];
        if ((size_t)e->id >= j->n_ids)
            return err_set(j->err, LATH_ERR_FORMAT, "%s: token %lld, but the model has %zu", j->name, (long long)e->id,
                           j->n_ids);
        if (tokens[e->id].s)
            return err_set(j->err, LATH_ERR_FORMAT, "%s: token %lld is there twice", j->name, (long long)e->id);
        tokens[e->id] = e->text;
        types[e->id] = j->pieces && tok_decoder_byte(e->text) >= 0 ? TOK_SPM_BYTE : TOK_SPM_NORMAL;
    }
    return LATH_OK;
}

static lath_status place_extras(job *j, tok_string *tokens, int32_t *types)
{
    for (size_t i = 0; i < n_extras(j); i++) {
        const added *a = &extras(j)[i];
        if ((size_t)a->id >= j->n_ids) { /* Gemma 3's text models: a token of pictures */
            log_line(j->log, LATH_LOG_WARN, "%s: added token %lld \"%.80s\" is left out: the model has %zu", j->name,
                     (long long)a->id, a->content.s, j->n_ids);
            continue;
        }
        const bool special = a->special || looks_special(a->content);
        tokens[a->id] = a->content;
        types[a->id] = special ? TOK_SPM_CONTROL : TOK_SPM_USER_DEFINED;
        if (!special && j->pieces) TRY(unmark(j, &tokens[a->id]));
    }
    return LATH_OK;
}

/* Rows of the embedding table that no token has. */
static lath_status fill_holes(job *j, tok_string *tokens, int32_t *types)
{
    for (size_t i = 0; i < j->n_ids; i++) {
        if (tokens[i].s) continue;
        char text[32];
        const int n = snprintf(text, sizeof(text), "[PAD%zu]", i);
        tokens[i] = (tok_string){arena_strdup(j->mem, text, (size_t)n), (size_t)n};
        types[i] = TOK_SPM_UNUSED;
        if (!tokens[i].s) return err_nomem(j->err, sizeof(text));
    }
    return LATH_OK;
}

static lath_status put_tokens(job *j, int32_t **types)
{
    tok_string *tokens = arena_array(j->mem, j->n_ids, sizeof(*tokens));
    *types = arena_array(j->mem, j->n_ids, sizeof(**types));
    if (!tokens || !*types) return err_nomem(j->err, j->n_ids * sizeof(*tokens));
    TRY(place_entries(j, tokens, *types));
    TRY(place_extras(j, tokens, *types));
    TRY(fill_holes(j, tokens, *types));
    j->out->tokens = tokens;
    j->out->types = *types;
    j->out->n = j->n_ids;
    return LATH_OK;
}

static lath_status put_merges(job *j)
{
    tok_string *v = arena_array(j->mem, n_merges(j), sizeof(*v));
    if (!v) return err_nomem(j->err, n_merges(j) * sizeof(*v));
    for (size_t i = 0; i < n_merges(j); i++) {
        const merge *m = &merges(j)[i];
        const size_t n = m->left.n + 1 + m->right.n;
        char *p = arena_bytes(j->mem, n, 1);
        if (!p) return err_nomem(j->err, n);
        if (memchr(m->left.s, ' ', m->left.n) || memchr(m->right.s, ' ', m->right.n))
            return err_set(j->err, LATH_ERR_UNSUPPORTED, "%s: merge %zu has a space in a token", j->name, i);
        memcpy(p, m->left.s, m->left.n);
        p[m->left.n] = ' ';
        memcpy(p + m->left.n + 1, m->right.s, m->right.n);
        v[i] = (tok_string){p, n};
    }
    j->out->merges = v;
    j->out->n_merges = n_merges(j);
    return LATH_OK;
}

static lath_status put_bytes(job *j)
{
    int32_t *types;
    const int flags = (j->whole ? TOK_GGUF_IGNORE_MERGES : 0) | (j->nfc ? TOK_GGUF_NFC : 0);
    bool exact = true;
    const tok_gguf_split *s = tok_gguf_split_match(j->patterns, j->n_patterns, flags, &exact);
    if (!s)
        return err_set(j->err, LATH_ERR_UNSUPPORTED, "%s: no name is known for the split pattern \"%.150s\"%s%s",
                       j->name, j->n_patterns ? j->patterns[0].s : "", j->n_patterns > 1 ? " and others behind it" : "",
                       j->whole ? " with ignore_merges" : "");
    if (!exact)
        log_line(j->log, LATH_LOG_WARN, "%s: readers of GGUF files will %snormalize (NFC) texts for this tokenizer",
                 j->name, j->nfc ? "not " : "");
    j->out->kind = "gpt2";
    j->out->pre = s->name;
    TRY(put_tokens(j, &types));
    return put_merges(j);
}

static lath_status put_pieces(job *j)
{
    int32_t *types;
    if (j->nfc || j->n_patterns || j->whole)
        return refuse(j, json_get(j->root, "model"), "NFC, a split or ignore_merges of a tokenizer of pieces");
    j->out->kind = "llama";
    j->out->pre = "default";
    j->out->add_space_prefix = j->space_prefix;
    TRY(put_tokens(j, &types));
    if (j->out->unk >= 0 && types[j->out->unk] == TOK_SPM_NORMAL) types[j->out->unk] = TOK_SPM_UNKNOWN;
    float *scores = arena_array(j->mem, j->n_ids, sizeof(*scores));
    if (!scores) return err_nomem(j->err, j->n_ids * sizeof(*scores));
    const tok_gguf_bpe b = {.mem = j->mem,
                            .name = j->name,
                            .entries = entries(j),
                            .n = n_entries(j),
                            .merges = merges(j),
                            .n_merges = n_merges(j),
                            .by_text = &j->by_text};
    TRY(tok_gguf_scores(&b, types, j->n_ids, scores, j->err));
    j->out->scores = scores;
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------- model */

static lath_status read_model(job *j)
{
    const json_value *m = json_get(j->root, "model");
    const char *type = NULL, *unk = NULL, *prefix = NULL, *suffix = NULL;
    bool fallback = false, fuse = false;
    TRY(json_get_str(m, "type", j->name, &type, j->err));
    if (type && strcmp(type, "BPE") != 0)
        return err_set(j->err, LATH_ERR_UNSUPPORTED, "%s: line %u: a tokenizer of model \"%.60s\" cannot be written",
                       j->name, m->line, type);
    TRY(json_get_bool(m, "byte_fallback", j->name, &fallback, j->err));
    TRY(json_get_bool(m, "fuse_unk", j->name, &fuse, j->err));
    TRY(json_get_bool(m, "ignore_merges", j->name, &j->whole, j->err));
    TRY(json_get_str(m, "unk_token", j->name, &unk, j->err));
    TRY(json_get_str(m, "continuing_subword_prefix", j->name, &prefix, j->err));
    TRY(json_get_str(m, "end_of_word_suffix", j->name, &suffix, j->err));
    if ((prefix && *prefix) || (suffix && *suffix)) return refuse(j, m, "a prefix or suffix of tokens");
    j->pieces |= fallback;
    if (j->pieces && !fallback && !fuse)
        log_line(j->log, LATH_LOG_WARN, "%s: unknown characters side by side are one token for readers of GGUF files",
                 j->name);
    if (unk && j->out->unk < 0) j->out->unk = (int32_t)find_token(j, (tok_string){unk, strlen(unk)});
    return LATH_OK;
}

static lath_status convert(job *j, int64_t n_ids)
{
    int64_t most = -1;
    TRY(map_reserve(&j->by_text, n_entries(j), j->err));
    for (size_t i = 0; i < n_entries(j); i++) {
        const entry *e = &entries(j)[i];
        TRY(map_add(&j->by_text, e->text.s, e->text.n, i, NULL, j->err));
        if (e->id > most) most = e->id;
    }
    TRY(read_added(j));
    for (size_t i = 0; n_ids == 0 && i < n_extras(j); i++) {
        if (extras(j)[i].id > most) most = extras(j)[i].id;
    }
    j->n_ids = (size_t)(n_ids ? n_ids : most + 1);
    if (j->n_ids == 0) return err_set(j->err, LATH_ERR_FORMAT, "%s: no tokens in it", j->name);
    TRY(read_ids(j));
    TRY(read_model(j));
    j->out->add_bos = j->out->add_eos = 0;
    TRY(each_step(j, json_get(j->root, "normalizer"), "normalizers", on_normalizer));
    TRY(each_step(j, json_get(j->root, "pre_tokenizer"), "pretokenizers", on_pre_tokenizer));
    TRY(each_step(j, json_get(j->root, "post_processor"), "processors", on_template));
    if (j->byte_level == j->pieces)
        return refuse(j, json_get(j->root, "model"), "BPE that is neither of byte letters nor of pieces");
    return j->byte_level ? put_bytes(j) : put_pieces(j);
}

/* tokenizer.json: text, or the file `name`. */
static lath_status read_json(const job *outer, const buf *text, int64_t n_ids)
{
    lath_status st;
    json_value *root = NULL;
    job j = *outer;
    arena *mem = j.mem;
    buf_init(&j.vocab, mem->alloc, JSON_MOST);
    buf_init(&j.merges, mem->alloc, JSON_MOST);
    buf_init(&j.extra, mem->alloc, JSON_MOST);
    map_init(&j.by_text, mem->alloc);
    const json_tap taps[] = {{"model.vocab", on_vocab, &j}, {"model.merges", on_merge, &j}};
    const json_options opts = {.max_bytes = JSON_MOST, .taps = taps, .n_taps = 2};
    TRY_DONE(text ? json_parse(mem, j.name, text->data, text->len, &opts, &root, j.err)
                  : json_load(mem, j.name, &opts, &root, j.err));
    j.root = root;
    TRY_DONE(convert(&j, n_ids));
done:
    map_deinit(&j.by_text);
    buf_deinit(&j.vocab);
    buf_deinit(&j.merges);
    buf_deinit(&j.extra);
    return st;
}

lath_status tok_arrays_parse(arena *mem, const char *name, const char *json, size_t n, int64_t n_ids,
                             const log_sink *log, tok_arrays *out, lath_error *err)
{
    const job j = {.mem = mem, .name = name, .log = log, .err = err, .out = out};
    const buf text = {.data = (char *)(uintptr_t)json, .len = n};
    *out = (tok_arrays)TOK_ARRAYS_INIT;
    return read_json(&j, &text, n_ids);
}

/* vocab.json and merges.txt, by way of the tokenizer.json that they stand for. */
static lath_status read_vocab_json(job *j, const char *dir, int64_t n_ids)
{
    buf json;
    buf_init(&json, j->mem->alloc, JSON_MOST);
    lath_status st = tok_vocab_json_to_json(j->mem->alloc, dir, j->config, &json, j->err);
    if (st == LATH_OK) st = read_json(j, &json, n_ids);
    buf_deinit(&json);
    return st;
}

/* The path in dir where there is such a file, else NULL; *failed: no memory. */
static const char *path_of(job *j, const char *dir, const char *name, bool *failed)
{
    const char *path = file_join_in(j->mem, dir, name);
    *failed |= !path;
    return path && file_exists(path) ? path : NULL;
}

lath_status tok_arrays_read(arena *mem, const char *dir, int64_t n_ids, const log_sink *log, tok_arrays *out,
                            lath_error *err)
{
    static const char *const spm[] = {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"};
    job j = {.mem = mem, .log = log, .err = err, .out = out};
    json_value *config = NULL;
    bool failed = false;
    *out = (tok_arrays)TOK_ARRAYS_INIT;
    const char *config_name = path_of(&j, dir, "tokenizer_config.json", &failed);
    const char *vocab = path_of(&j, dir, "vocab.json", &failed), *merges_txt = path_of(&j, dir, "merges.txt", &failed);
    j.name = file_join_in(mem, dir, "tokenizer.json");
    if (failed || !j.name) return err_nomem(err, strlen(dir));
    if (config_name) TRY(json_load(mem, config_name, NULL, &config, err));
    j.config = config;
    for (size_t i = 0; !file_exists(j.name) && i < sizeof(spm) / sizeof(spm[0]); i++) {
        const char *path = path_of(&j, dir, spm[i], &failed);
        if (failed) return err_nomem(err, strlen(dir));
        if (path) return tok_arrays_of_spm(mem, path, config, n_ids, out, err);
    }
    if (file_exists(j.name) || !vocab || !merges_txt) return read_json(&j, NULL, n_ids);
    j.name = vocab;
    return read_vocab_json(&j, dir, n_ids);
}
