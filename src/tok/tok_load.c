/* SPDX-License-Identifier: Apache-2.0
 * tok_load.c: tokenizer.json into a tok. The vocabulary is tapped (base/json.h): its entries go into the table one by
 * one and never make a tree. Everything else is a small tree, from which each component is read by the loader that
 * tok_types.def names.
 */
#include "base/file.h"
#include "tok/tok_bpe.h"
#include "tok/tok_decode_table.h"
#include "tok/tok_regex.h"
#include "tok/tok_spm.h"
#include "tok/tok_unigram.h"
#include "tok/tok_vocab_json.h"

enum { JSON_MOST = 1 << 30 };

/* ---------------------------------------------------------------------------------------------------------- helpers */

lath_status tok_load_wrap(tok_load *l, const json_value *at, lath_status st)
{
    if (at) return err_wrap(l->err, st, "%s: line %u", l->name, at->line);
    return err_wrap(l->err, st, "%s", l->name);
}

lath_status tok_load_fields(tok_load *l, const json_value *obj, const char *what, const char *const *known)
{
    for (const json_value *m = obj->u.items.first; m; m = m->next) {
        size_t k = 0;
        while (known[k] && strcmp(known[k], m->key) != 0) k++;
        if (!known[k])
            return TOK_FAIL(l, m, LATH_ERR_UNSUPPORTED, "%s: field \"%.80s\" is not supported", what, m->key);
    }
    return LATH_OK;
}

lath_status tok_load_bool(tok_load *l, const json_value *obj, const char *what, const char *key, bool *out)
{
    const json_value *v = json_get(obj, key);
    if (!v) return TOK_FAIL(l, obj, LATH_ERR_FORMAT, "%s: \"%s\" is missing", what, key);
    if (v->kind != JSON_BOOL) return TOK_FAIL(l, v, LATH_ERR_FORMAT, "%s: \"%s\": want true or false", what, key);
    *out = v->u.boolean;
    return LATH_OK;
}

lath_status tok_load_string(tok_load *l, const json_value *obj, const char *what, const char *key, tok_string *out)
{
    const json_value *v = json_get(obj, key);
    if (!v) return TOK_FAIL(l, obj, LATH_ERR_FORMAT, "%s: \"%s\" is missing", what, key);
    if (v->kind != JSON_STRING) return TOK_FAIL(l, v, LATH_ERR_FORMAT, "%s: \"%s\": want a string", what, key);
    out->n = v->u.string.len;
    out->s = arena_strdup(&l->t->mem, v->u.string.data, out->n);
    return out->s ? LATH_OK : err_nomem(l->err, out->n);
}

void *tok_load_array(tok_load *l, size_t count, size_t size) { return arena_array(&l->t->mem, count, size); }

/* ------------------------------------------------------------------------------------------------------- components */

#define TOK_NORMALIZER(name, fn)
#define TOK_PRE_TOKENIZER(name, fn)
#define TOK_MODEL(name, fn)
#define TOK_POST_PROCESSOR(name, fn)
#define TOK_DECODER(name, fn)

#undef TOK_NORMALIZER
#define TOK_NORMALIZER(name, fn) {name, fn},
static const struct {
    const char *name;
    lath_status (*load)(tok_load *, const json_value *, tok_normalizer *);
} normalizers[] = {
#include "tok/tok_types.def"
};
#undef TOK_NORMALIZER
#define TOK_NORMALIZER(name, fn)

#undef TOK_PRE_TOKENIZER
#define TOK_PRE_TOKENIZER(name, fn) {name, fn},
static const struct {
    const char *name;
    lath_status (*load)(tok_load *, const json_value *, tok_splitter *);
} splitters[] = {
#include "tok/tok_types.def"
};
#undef TOK_PRE_TOKENIZER
#define TOK_PRE_TOKENIZER(name, fn)

#undef TOK_MODEL
#define TOK_MODEL(name, fn) {name, fn},
static const struct {
    const char *name;
    lath_status (*load)(tok_load *, const json_value *, tok_model *);
} models[] = {
#include "tok/tok_types.def"
};
#undef TOK_MODEL
#define TOK_MODEL(name, fn)

#undef TOK_POST_PROCESSOR
#define TOK_POST_PROCESSOR(name, fn) {name, fn},
static const struct {
    const char *name;
    lath_status (*load)(tok_load *, const json_value *, tok_template *);
} templates[] = {
#include "tok/tok_types.def"
};
#undef TOK_POST_PROCESSOR
#define TOK_POST_PROCESSOR(name, fn)

#undef TOK_DECODER
#define TOK_DECODER(name, fn) {name, fn},
static const struct {
    const char *name;
    lath_status (*load)(tok_load *, const json_value *, tok_decoder *);
} decoders[] = {
#include "tok/tok_types.def"
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The name that "type" gives; v must be an object. */
static lath_status type_of(tok_load *l, const json_value *v, const char *what, const char **out)
{
    if (v->kind != JSON_OBJECT) return TOK_FAIL(l, v, LATH_ERR_FORMAT, "%s: want an object", what);
    const json_value *type = json_get(v, "type");
    if (!type || type->kind != JSON_STRING)
        return TOK_FAIL(l, type ? type : v, LATH_ERR_FORMAT, "%s: \"type\" is missing", what);
    *out = type->u.string.data;
    return LATH_OK;
}

static lath_status unknown_type(tok_load *l, const json_value *v, const char *what, const char *type)
{
    return TOK_FAIL(l, v, LATH_ERR_UNSUPPORTED, "%s: type \"%.80s\" is not supported", what, type);
}

/* Finds the row of the type and runs its loader. */
#define LOAD_COMPONENT(table, what)                                            \
    const char *type = NULL;                                                   \
    TRY(type_of(l, v, what, &type));                                           \
    for (size_t i = 0; i < COUNT(table); i++) {                                \
        if (strcmp(table[i].name, type) == 0) return table[i].load(l, v, out); \
    }                                                                          \
    return unknown_type(l, v, what, type)

lath_status tok_load_normalizer(tok_load *l, const json_value *v, tok_normalizer *out)
{
    LOAD_COMPONENT(normalizers, "normalizer");
}

lath_status tok_load_splitter(tok_load *l, const json_value *v, tok_splitter *out)
{
    LOAD_COMPONENT(splitters, "pre_tokenizer");
}

lath_status tok_load_template(tok_load *l, const json_value *v, tok_template *out)
{
    LOAD_COMPONENT(templates, "post_processor");
}

lath_status tok_load_decoder(tok_load *l, const json_value *v, tok_decoder *out)
{
    LOAD_COMPONENT(decoders, "decoder");
}

/* ------------------------------------------------------------------------------------------------------------ model */

/* Old files have no "type": the reference goes by the fields. */
static const char *infer_model(const tok_load *l, const json_value *v)
{
    if (json_get(v, "merges")) return "BPE";
    if (l->vocab_is_array) return "Unigram";
    return json_get(v, "continuing_subword_prefix") && json_get(v, "max_input_chars_per_word") ? "WordPiece"
                                                                                               : "WordLevel";
}

static lath_status load_model(tok_load *l, const json_value *v)
{
    if (!v || v->kind != JSON_OBJECT) return TOK_FAIL(l, v, LATH_ERR_FORMAT, "\"model\" is missing");
    const char *type = infer_model(l, v);
    if (json_get(v, "type")) TRY(type_of(l, v, "model", &type));
    for (size_t i = 0; i < COUNT(models); i++) {
        if (strcmp(models[i].name, type) != 0) continue;
        const json_value *vocab = json_get(v, "vocab");
        bool list = strcmp(type, "Unigram") == 0;
        if (!vocab || vocab->kind != (list ? JSON_ARRAY : JSON_OBJECT))
            return TOK_FAIL(l, vocab ? vocab : v, LATH_ERR_FORMAT, "model.vocab: want %s",
                            list ? "a list of pieces and scores" : "an object of tokens and ids");
        lath_status st = tok_vocab_build(&l->t->vocab, list ? TOK_TWICE_LISTED : TOK_TWICE_ERROR, l->err);
        if (st != LATH_OK) return tok_load_wrap(l, vocab, err_wrap(l->err, st, "model.vocab"));
        return models[i].load(l, v, &l->t->model);
    }
    return unknown_type(l, v, "model", type);
}

/* The id of "unk_token" or "unk_id", whatever the model. */
static lath_status find_unk(tok_load *l, const json_value *model)
{
    const json_value *name = json_get(model, "unk_token");
    int64_t id = -1;
    if (name && name->kind == JSON_STRING) id = tok_vocab_find(&l->t->vocab, name->u.string.data, name->u.string.len);
    if (json_present(json_get(model, "unk_id"))) TRY(json_get_int(model, "unk_id", l->name, 0, INT32_MAX, &id, l->err));
    l->t->unk = (int32_t)id;
    return LATH_OK;
}

/* An entry of a list: [piece, score]. */
static lath_status on_piece(tok_load *l, const json_value *item, lath_error *err)
{
    size_t id = l->scores.len / sizeof(double);
    const json_value *piece = item->kind == JSON_ARRAY && item->u.items.count == 2 ? item->u.items.first : NULL;
    const json_value *score = piece ? piece->next : NULL;
    if (!piece || piece->kind != JSON_STRING || (score->kind != JSON_INT && score->kind != JSON_REAL))
        return TOK_FAIL(l, item, LATH_ERR_FORMAT, "model.vocab: entry %zu: want [piece, score]", id);
    double value = score->kind == JSON_INT ? (double)score->u.integer : score->u.real;
    buf_append(&l->scores, &value, sizeof(value));
    TRY(buf_status(&l->scores, err));
    if (id >= INT32_MAX) return TOK_FAIL(l, item, LATH_ERR_LIMIT, "model.vocab: too many entries");
    return tok_vocab_add(&l->t->vocab, piece->u.string.data, piece->u.string.len, (int32_t)id, err);
}

/* The tap: one entry of model.vocab. An array is Unigram's; which model it is is known only when all of the file is
 * read. */
static lath_status on_vocab(void *ctx, const json_value *item, lath_error *err)
{
    tok_load *l = ctx;
    if (!item->key) {
        l->vocab_is_array = true;
        return on_piece(l, item, err);
    }
    if (item->kind != JSON_INT)
        return TOK_FAIL(l, item, LATH_ERR_FORMAT, "model.vocab: token \"%.80s\": want an id", item->key);
    if (item->u.integer < 0 || item->u.integer >= INT32_MAX) {
        return TOK_FAIL(l, item, LATH_ERR_FORMAT, "model.vocab: token \"%.80s\": id %lld is out of range", item->key,
                        (long long)item->u.integer);
    }
    return tok_vocab_add(&l->t->vocab, item->key, item->key_len, (int32_t)item->u.integer, err);
}

/* The tap of model.merges. */
static lath_status on_merge(void *ctx, const json_value *item, lath_error *err)
{
    return tok_bpe_on_merge(ctx, item, err);
}

/* ------------------------------------------------------------------------------------------------------------- open */

static lath_status load_parts(tok_load *l, const json_value *root)
{
    tok *t = l->t;
    if (root->kind != JSON_OBJECT) return TOK_FAIL(l, root, LATH_ERR_FORMAT, "want an object");
    const json_value *version = json_get(root, "version"), *v;
    if (version && !json_is_string(version, "1.0"))
        return TOK_FAIL(l, version, LATH_ERR_UNSUPPORTED, "\"version\" is not \"1.0\"");
    TRY(load_model(l, json_get(root, "model")));
    TRY(find_unk(l, json_get(root, "model")));
    if (json_present(v = json_get(root, "normalizer"))) TRY(tok_load_normalizer(l, v, &t->normalizer));
    TRY(tok_added_load(l, json_get(root, "added_tokens")));
    if (json_present(v = json_get(root, "pre_tokenizer"))) TRY(tok_load_splitter(l, v, &t->splitter));
    if (json_present(v = json_get(root, "post_processor"))) TRY(tok_load_template(l, v, &t->template));
    if (json_present(v = json_get(root, "decoder"))) TRY(tok_load_decoder(l, v, &t->decoder));
    tok_unigram_fuse(t);
    TRY(tok_bpe_fuse(l));
    return tok_decode_table_create(t, l->err);
}

static lath_status create(const lath_allocator *alloc, tok **out, lath_error *err)
{
    tok *t = alloc_zero(alloc, sizeof(*t));
    if (!t) return err_nomem(err, sizeof(*t));
    t->alloc = alloc;
    t->unk = -1;
    arena_init(&t->mem, alloc);
    tok_vocab_init(&t->vocab, alloc);
    map_init(&t->added.by_content, alloc);
    map_init(&t->added.special, alloc);
    map_init(&t->added.by_id, alloc);
    *out = t;
    return LATH_OK;
}

/* json == NULL: reads the file `name`. */
static lath_status open_json(const lath_allocator *alloc, const char *name, const char *json, size_t n, tok **out,
                             lath_error *err)
{
    tok *t = NULL;
    lath_status st = create(alloc, &t, err);
    if (st != LATH_OK) return st;
    tok_load l = {.t = t, .name = name, .err = err};
    buf_init(&l.scores, alloc, JSON_MOST);
    buf_init(&l.merges, alloc, JSON_MOST);
    json_tap taps[] = {{"model.vocab", on_vocab, &l}, {"model.merges", on_merge, &l}};
    json_options opts = {.max_bytes = JSON_MOST, .serde_reals = true, .taps = taps, .n_taps = 2};
    json_value *root = NULL;
    arena tree;
    arena_init(&tree, alloc);
    TRY_DONE(json ? json_parse(&tree, name, json, n, &opts, &root, err) : json_load(&tree, name, &opts, &root, err));
    TRY_DONE(load_parts(&l, root));
    *out = t;
    t = NULL;
done:
    buf_deinit(&l.scores);
    buf_deinit(&l.merges);
    arena_deinit(&tree);
    tok_close(t);
    return st;
}

lath_status tok_open_json(const lath_allocator *alloc, const char *name, const char *json, size_t n, tok **out,
                          lath_error *err)
{
    *out = NULL;
    return open_json(alloc, name, json ? json : "", n, out, err);
}

static lath_status open_vocab_txt(const lath_allocator *alloc, const char *dir, const char *path, tok **out,
                                  lath_error *err)
{
    tok *t = NULL;
    lath_status st = create(alloc, &t, err);
    if (st != LATH_OK) return st;
    tok_load l = {.t = t, .name = path, .err = err};
    st = tok_vocab_txt_load(&l, dir);
    if (st == LATH_OK)
        *out = t;
    else
        tok_close(t);
    return st;
}

/* dir's tokenizer_config.json, NULL where there is none. */
static lath_status load_config(arena *tree, const char *dir, json_value **out, lath_error *err)
{
    buf path;
    *out = NULL;
    buf_init(&path, tree->alloc, 1 << 16);
    file_join(&path, dir, "tokenizer_config.json");
    lath_status st = buf_status(&path, err);
    if (st == LATH_OK && file_exists(buf_cstr(&path))) st = json_load(tree, path.data, NULL, out, err);
    buf_deinit(&path);
    return st;
}

/* A SentencePiece file, by way of the tokenizer.json that it stands for. */
static lath_status open_spm(const lath_allocator *alloc, const char *dir, const char *path, tok **out, lath_error *err)
{
    lath_status st;
    file_map file = {0};
    json_value *config;
    arena tree;
    buf json;
    arena_init(&tree, alloc);
    buf_init(&json, alloc, JSON_MOST);
    TRY_DONE(file_map_open(&file, alloc, path, FILE_COPY, err));
    TRY_DONE(load_config(&tree, dir, &config, err));
    TRY_DONE(tok_spm_to_json(alloc, path, (const char *)file.data, file.size, config, &json, err));
    st = open_json(alloc, path, json.data, json.len, out, err);
done:
    buf_deinit(&json);
    arena_deinit(&tree);
    file_map_close(&file);
    return st;
}

/* vocab.json and merges.txt, by way of the tokenizer.json that they stand for. */
static lath_status open_vocab_json(const lath_allocator *alloc, const char *dir, const char *path, tok **out,
                                   lath_error *err)
{
    lath_status st;
    json_value *config;
    arena tree;
    buf json;
    arena_init(&tree, alloc);
    buf_init(&json, alloc, JSON_MOST);
    TRY_DONE(load_config(&tree, dir, &config, err));
    TRY_DONE(tok_vocab_json_to_json(alloc, dir, config, &json, err));
    TRY_DONE(open_json(alloc, path, json.data, json.len, out, err));
    st = tok_vocab_json_check(*out, dir, config, err);
    if (st != LATH_OK) {
        tok_close(*out);
        *out = NULL;
    }
done:
    buf_deinit(&json);
    arena_deinit(&tree);
    return st;
}

/* true: path is the first of the names that dir has. */
static bool find_file(buf *path, const char *dir, const char *const *names)
{
    for (; *names; names++) {
        buf_clear(path);
        file_join(path, dir, *names);
        if (!path->failed && file_exists(buf_cstr(path))) return true;
    }
    return false;
}

lath_status tok_open_dir(const lath_allocator *alloc, const char *dir, tok **out, lath_error *err)
{
    lath_status st = LATH_OK;
    buf path;
    *out = NULL;
    buf_init(&path, alloc, 1 << 16);
    file_join(&path, dir, "tokenizer.json");
    TRY_DONE(buf_status(&path, err));
    if (file_exists(buf_cstr(&path))) {
        st = open_json(alloc, path.data, NULL, 0, out, err);
        goto done;
    }
    static const char *const spm[] = {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model", NULL};
    if (find_file(&path, dir, spm)) {
        st = open_spm(alloc, dir, path.data, out, err);
        goto done;
    }
    static const char *const vocab_json[] = {"vocab.json", NULL}, *const merges[] = {"merges.txt", NULL};
    if (find_file(&path, dir, merges) && find_file(&path, dir, vocab_json)) {
        st = open_vocab_json(alloc, dir, path.data, out, err);
        goto done;
    }
    buf_clear(&path);
    file_join(&path, dir, "vocab.txt");
    TRY_DONE(buf_status(&path, err));
    if (!file_exists(buf_cstr(&path))) {
        st = err_set(err, LATH_ERR_NOT_FOUND, "%s: has neither tokenizer.json nor vocab.txt", dir);
        goto done;
    }
    st = open_vocab_txt(alloc, dir, path.data, out, err);
done:
    buf_deinit(&path);
    return st;
}

void tok_close(tok *t)
{
    if (!t) return;
    tok_added_deinit(&t->added);
    if (t->model.deinit) t->model.deinit(&t->model);
    tok_vocab_deinit(&t->vocab);
    tok_decode_table_destroy(t);
    tok_regex_release(t);
    arena_deinit(&t->mem);
    alloc_release(t->alloc, t, sizeof(*t));
}

/* -------------------------------------------------------------------------------------------------------- questions */

const lath_allocator *tok_allocator(const tok *t) { return t->alloc; }

size_t tok_private_bytes(const tok *t)
{
    size_t maps = t->added.by_content.n_slots + t->added.special.n_slots;
    size_t model = (t->model.bytes ? t->model.bytes(&t->model) : 0) + tok_decode_table_bytes(t);
    return sizeof(*t) + t->mem.total + tok_vocab_bytes(&t->vocab) + model + maps * sizeof(map_slot);
}

int32_t tok_size(const tok *t) { return (int32_t)t->vocab.n_ids; }

const char *tok_token(const tok *t, int32_t id, size_t *len) { return tok_vocab_get(&t->vocab, id, len); }

int32_t tok_id(const tok *t, const char *token, size_t len)
{
    uint64_t id;
    if (map_find(&t->added.by_content, token, len, &id)) return (int32_t)id;
    return tok_vocab_find(&t->vocab, token, len);
}

bool tok_is_special(const tok *t, int32_t id)
{
    size_t n;
    const char *s = tok_vocab_get(&t->vocab, id, &n);
    return s && map_find(&t->added.special, s, n, NULL);
}

int32_t tok_n_template(const tok *t) { return (int32_t)t->template.n_added; }
