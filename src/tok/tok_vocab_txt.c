/* SPDX-License-Identifier: Apache-2.0
 * tok_vocab_txt.c: BERT's older files: vocab.txt (a token a line, its number is the id) with what
 * tokenizer_config.json says about case, accents, ideographs and special tokens. The pipeline is the one that the
 * reference builds for these files.
 */
#include "tok/tok_parts.h"

#include "base/file.h"
#include "base/unicode.h"
#include "base/utf8.h"

enum { VOCAB_TXT_MOST = 1 << 28 };

static lath_status read_lines(tok_load *l, const buf *text)
{
    size_t line = 0;
    for (size_t i = 0; i < text->len; line++) {
        const char *s = text->data + i, *end = memchr(s, '\n', text->len - i);
        size_t n = end ? (size_t)(end - s) : text->len - i, len;
        i += n + (end != NULL);
        if (line >= INT32_MAX - 1) return err_set(l->err, LATH_ERR_LIMIT, "%s: too many lines", l->name);
        if (utf8_first_invalid(s, n) < n)
            return err_set(l->err, LATH_ERR_FORMAT, "%s: line %zu is not valid UTF-8", l->name, line + 1);
        while (n && uni_flags(uni_before(s, n, &len)) & UNI_SPACE) n -= len;
        TRY(tok_vocab_add(&l->t->vocab, s, n, (int32_t)line, l->err));
    }
    lath_status st = tok_vocab_build(&l->t->vocab, TOK_TWICE_LAST, l->err);
    return st == LATH_OK ? st : tok_load_wrap(l, NULL, st);
}

typedef struct config {
    bool lower, strip, cjk;
    tok_string unk, sep, pad, cls, mask;
    const json_value *added, *additional; /* "added_tokens_decoder", "additional_special_tokens" */
} config;

/* "unk_token": "[UNK]", or {"content": "[UNK]", ...}; null: there is none. */
static lath_status special_name(tok_load *l, const json_value *obj, const char *key, const char *fallback,
                                tok_string *out)
{
    const json_value *v = json_get(obj, key);
    const char *s = fallback;
    *out = (tok_string){NULL, 0};
    if (v && v->kind == JSON_NULL) return LATH_OK;
    if (v && v->kind == JSON_OBJECT) v = json_get(v, "content");
    if (v && v->kind != JSON_STRING) return TOK_FAIL(l, v, LATH_ERR_FORMAT, "\"%s\": want a string", key);
    if (v) s = v->u.string.data;
    out->n = strlen(s);
    out->s = arena_strdup(&l->t->mem, s, out->n);
    return out->s ? LATH_OK : err_nomem(l->err, out->n);
}

/* root is NULL where there is no tokenizer_config.json. */
static lath_status read_config(tok_load *l, const json_value *root, config *c)
{
    c->lower = c->cjk = true;
    TRY(json_get_bool(root, "do_lower_case", l->name, &c->lower, l->err));
    c->strip = c->lower;
    TRY(json_get_bool(root, "strip_accents", l->name, &c->strip, l->err));
    TRY(json_get_bool(root, "tokenize_chinese_chars", l->name, &c->cjk, l->err));
    TRY(special_name(l, root, "unk_token", "[UNK]", &c->unk));
    TRY(special_name(l, root, "sep_token", "[SEP]", &c->sep));
    TRY(special_name(l, root, "pad_token", "[PAD]", &c->pad));
    TRY(special_name(l, root, "cls_token", "[CLS]", &c->cls));
    TRY(special_name(l, root, "mask_token", "[MASK]", &c->mask));
    c->added = json_get(root, "added_tokens_decoder");
    c->additional = json_get(root, "additional_special_tokens");
    if (json_present(c->added) && c->added->kind != JSON_OBJECT) {
        return TOK_FAIL(l, c->added, LATH_ERR_FORMAT, "\"added_tokens_decoder\": want an object");
    }
    if (json_present(c->additional) && c->additional->kind != JSON_ARRAY) {
        return TOK_FAIL(l, c->additional, LATH_ERR_FORMAT, "\"additional_special_tokens\": want a list");
    }
    return LATH_OK;
}

static lath_status add_special(tok_load *l, tok_string name)
{
    uint64_t id;
    if (!name.s || map_find(&l->t->added.by_content, name.s, name.n, &id)) return LATH_OK; /* flags of the list stay */
    tok_added_token token = {.content = name, .special = true};
    return tok_added_add(l, &token);
}

/* A member of added_tokens_decoder: "103": {"content": "[MASK]", "lstrip": false, ...}. */
static lath_status add_listed(tok_load *l, const json_value *v)
{
    tok_added_token token = {0};
    uint64_t id = 0;
    TRY(tok_load_string(l, v, "added_tokens_decoder", "content", &token.content));
    TRY(json_get_bool(v, "special", l->name, &token.special, l->err));
    token.normalized = !token.special;
    TRY(json_get_bool(v, "normalized", l->name, &token.normalized, l->err));
    TRY(json_get_bool(v, "single_word", l->name, &token.single_word, l->err));
    TRY(json_get_bool(v, "lstrip", l->name, &token.lstrip, l->err));
    TRY(json_get_bool(v, "rstrip", l->name, &token.rstrip, l->err));
    TRY(tok_added_add(l, &token));
    map_find(&l->t->added.by_content, token.content.s, token.content.n, &id);
    char want[24];
    size_t n = 0;
    do want[sizeof(want) - ++n] = (char)('0' + id % 10);
    while ((id /= 10) != 0);
    if (v->key_len == n && memcmp(v->key, want + sizeof(want) - n, n) == 0) return LATH_OK;
    return TOK_FAIL(l, v, LATH_ERR_FORMAT, "added_tokens_decoder: token \"%.80s\" does not have id %.40s in vocab.txt",
                    token.content.s, v->key);
}

static lath_status add_tokens(tok_load *l, const config *c)
{
    size_t most = 5;
    if (json_present(c->added)) most += c->added->u.items.count;
    if (json_present(c->additional)) most += c->additional->u.items.count;
    TRY(tok_added_init(l, most));
    if (json_present(c->added)) {
        for (const json_value *v = c->added->u.items.first; v; v = v->next) TRY(add_listed(l, v));
    }
    const tok_string five[] = {c->unk, c->sep, c->pad, c->cls, c->mask};
    for (size_t i = 0; i < 5; i++) TRY(add_special(l, five[i]));
    const json_value *v = json_present(c->additional) ? c->additional->u.items.first : NULL;
    for (; v; v = v->next) {
        const json_value *s = v->kind == JSON_OBJECT ? json_get(v, "content") : v;
        if (!s || s->kind != JSON_STRING)
            return TOK_FAIL(l, v, LATH_ERR_FORMAT, "additional_special_tokens: want strings");
        tok_string name = {arena_strdup(&l->t->mem, s->u.string.data, s->u.string.len), s->u.string.len};
        if (!name.s) return err_nomem(l->err, name.n);
        TRY(add_special(l, name));
    }
    return tok_added_finish(l);
}

static lath_status assemble(tok_load *l, const config *c, const char *vocab_name)
{
    tok *t = l->t;
    const tok_string sharps = {"##", 2};
    if (!c->unk.s || !c->cls.s || !c->sep.s)
        return TOK_FAIL(l, NULL, LATH_ERR_FORMAT, "unk_token, cls_token and sep_token must not be null");
    tok_norm_bert_init(&t->normalizer, true, c->cjk, c->strip, c->lower);
    t->unk = tok_vocab_find(&t->vocab, c->unk.s, c->unk.n);
    TRY(add_tokens(l, c));
    l->name = vocab_name;
    TRY(tok_wordpiece_init(l, NULL, c->unk, sharps, 100, &t->model));
    tok_split_bert_init(&t->splitter);
    tok_decoder_wordpiece_init(&t->decoder, sharps, true);
    int32_t cls = tok_vocab_find(&t->vocab, c->cls.s, c->cls.n), sep = tok_vocab_find(&t->vocab, c->sep.s, c->sep.n);
    if (cls < 0 || sep < 0) {
        return TOK_FAIL(l, NULL, LATH_ERR_FORMAT, "token \"%.80s\" is not in the vocabulary",
                        cls < 0 ? c->cls.s : c->sep.s);
    }
    return tok_template_bert_init(l, cls, sep, &t->template);
}

/* l->name is the path of vocab.txt. */
lath_status tok_vocab_txt_load(tok_load *l, const char *dir)
{
    const char *vocab_name = l->name;
    lath_status st = LATH_OK;
    json_value *root = NULL;
    config c = {0};
    arena tree;
    buf text, path;
    arena_init(&tree, l->t->alloc);
    buf_init(&text, l->t->alloc, VOCAB_TXT_MOST);
    buf_init(&path, l->t->alloc, 1 << 16);
    TRY_DONE(file_read(&text, l->name, VOCAB_TXT_MOST, l->err));
    TRY_DONE(read_lines(l, &text));
    file_join(&path, dir, "tokenizer_config.json");
    TRY_DONE(buf_status(&path, l->err));
    if (file_exists(buf_cstr(&path))) {
        l->name = path.data;
        TRY_DONE(json_load(&tree, l->name, NULL, &root, l->err));
    }
    TRY_DONE(read_config(l, root, &c));
    st = assemble(l, &c, vocab_name);
done:
    buf_deinit(&path);
    buf_deinit(&text);
    arena_deinit(&tree);
    return st;
}
