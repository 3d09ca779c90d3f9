/* SPDX-License-Identifier: Apache-2.0
 * tok_vocab_json.c: vocab.json and merges.txt as tokenizer.json. What the tokenizer classes do is what transformers
 * builds for them. The text of vocab.json is put first and as it is, so that line numbers in messages are its own.
 */
#include "tok/tok_vocab_json.h"

#include <string.h>

#include "base/file.h"

enum { FILE_MOST = 1 << 29 };

typedef struct family {
    const char *name; /* of the class, without "Fast" */
    bool roberta, qwen;
    const char *special[4]; /* names of the special tokens that it has where the configuration says nothing */
} family;

static const family families[] = {
    {"GPT2Tokenizer", false, false, {"<|endoftext|>"}},
    {"CodeGenTokenizer", false, false, {"<|endoftext|>"}},
    {"Qwen2Tokenizer", false, true, {"<|endoftext|>"}},
    {"RobertaTokenizer", true, false, {"<s>", "</s>", "<unk>", "<pad>"}},
    {"BartTokenizer", true, false, {"<s>", "</s>", "<unk>", "<pad>"}},
    {"LongformerTokenizer", true, false, {"<s>", "</s>", "<unk>", "<pad>"}},
};

static const char qwen_pattern[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+"
    "[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

typedef struct writer {
    buf *out;
    const char *dir;
    const json_value *config;
    const family *family;
    lath_error *err;
} writer;

static lath_status find_family(writer *w)
{
    const json_value *v = json_get(w->config, "tokenizer_class");
    w->family = &families[0];
    if (!json_present(v)) return LATH_OK;
    if (v->kind != JSON_STRING)
        return err_set(w->err, LATH_ERR_FORMAT, "%s/tokenizer_config.json: line %u: \"tokenizer_class\": want a string",
                       w->dir, v->line);
    const char *s = v->u.string.data;
    for (size_t k = 0; k < sizeof(families) / sizeof(families[0]); k++) {
        size_t n = strlen(families[k].name);
        if (strncmp(s, families[k].name, n) != 0 || (s[n] && strcmp(s + n, "Fast") != 0)) continue;
        w->family = &families[k];
        return LATH_OK;
    }
    return err_set(w->err, LATH_ERR_UNSUPPORTED,
                   "%s/tokenizer_config.json: line %u: tokenizer_class \"%.80s\" is not supported with vocab.json",
                   w->dir, v->line, s);
}

/* ------------------------------------------------------------------------------------------------------------- model */

static lath_status append_file(writer *w, const lath_allocator *alloc, const char *name, buf *to)
{
    buf path;
    buf_init(&path, alloc, 1 << 16);
    file_join(&path, w->dir, name);
    lath_status st = buf_status(&path, w->err);
    if (st == LATH_OK) st = file_read(to, buf_cstr(&path), FILE_MOST, w->err);
    buf_deinit(&path);
    return st;
}

/* Lines of merges.txt, without the "#version" line; the last one may be empty. */
static lath_status put_merges(writer *w, const lath_allocator *alloc)
{
    buf text;
    bool first = true;
    buf_init(&text, alloc, FILE_MOST);
    lath_status st = append_file(w, alloc, "merges.txt", &text);
    for (size_t i = 0; st == LATH_OK && i < text.len;) {
        const char *s = text.data + i, *end = memchr(s, '\n', text.len - i);
        size_t n = end ? (size_t)(end - s) : text.len - i;
        i += n + 1;
        if (n && s[n - 1] == '\r') n--;
        if (n == 0 || (n >= 8 && memcmp(s, "#version", 8) == 0)) continue;
        if (!first) buf_char(w->out, ',');
        json_put_string(w->out, s, n);
        first = false;
    }
    buf_deinit(&text);
    return st;
}

static lath_status put_model(writer *w, const lath_allocator *alloc)
{
    buf_str(w->out, "{\"model\":{\"vocab\":");
    buf text;
    buf_init(&text, alloc, FILE_MOST);
    lath_status st = append_file(w, alloc, "vocab.json", &text);
    size_t mark = st == LATH_OK && text.len >= 3 && memcmp(text.data, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    if (st == LATH_OK) buf_append(w->out, text.data + mark, text.len - mark);
    buf_deinit(&text);
    if (st != LATH_OK) return st;
    buf_str(w->out, ",\"type\":\"BPE\",\"merges\":[");
    TRY(put_merges(w, alloc));
    buf_str(w->out, "]}");
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------ special tokens */

/* The content of a special token of the configuration: "x" or {"content": "x", ...}; NULL: it has none. */
static const json_value *special(const writer *w, const char *key, bool *said)
{
    const json_value *v = json_get(w->config, key);
    *said = v != NULL;
    if (v && v->kind == JSON_OBJECT) v = json_get(v, "content");
    return v && v->kind == JSON_STRING ? v : NULL;
}

static void put_token(writer *w, bool *first, long long id, const char *s, size_t n, bool is_special,
                      const bool flags[4])
{
    static const char *const names[] = {"single_word", "lstrip", "rstrip", "normalized"};
    buf_printf(w->out, "%s{\"id\":%lld,\"content\":", *first ? "" : ",", id);
    json_put_string(w->out, s, n);
    for (int k = 0; k < 4; k++) buf_printf(w->out, ",\"%s\":%s", names[k], flags[k] ? "true" : "false");
    buf_printf(w->out, ",\"special\":%s}", is_special ? "true" : "false");
    *first = false;
}

/* "50256": {"content": "<|endoftext|>", "special": true, ...} */
static lath_status put_listed(writer *w, const json_value *v, bool *first)
{
    static const char *const names[] = {"single_word", "lstrip", "rstrip", "normalized"};
    const json_value *content = json_get(v, "content");
    bool is_special = false, flags[4] = {false};
    if (!content || content->kind != JSON_STRING)
        return err_set(w->err, LATH_ERR_FORMAT, "%s/tokenizer_config.json: line %u: a token without \"content\"",
                       w->dir, v->line);
    TRY(json_get_bool(v, "special", w->dir, &is_special, w->err));
    flags[3] = !is_special;
    for (int k = 0; k < 4; k++) TRY(json_get_bool(v, names[k], w->dir, &flags[k], w->err));
    put_token(w, first, 0, content->u.string.data, content->u.string.len, is_special, flags);
    return LATH_OK;
}

static bool is_listed(const writer *w, const char *s, size_t n)
{
    const json_value *list = json_get(w->config, "added_tokens_decoder");
    for (const json_value *v = list && list->kind == JSON_OBJECT ? list->u.items.first : NULL; v; v = v->next) {
        const json_value *c = json_get(v, "content");
        if (c && c->kind == JSON_STRING && c->u.string.len == n && memcmp(c->u.string.data, s, n) == 0) return true;
    }
    return false;
}

static lath_status put_added_tokens(writer *w)
{
    static const char *const keys[] = {"unk_token", "bos_token", "eos_token", "sep_token",
                                       "cls_token", "pad_token", "mask_token"};
    const json_value *list = json_get(w->config, "added_tokens_decoder");
    bool first = true, said;
    buf_str(w->out, ",\"added_tokens\":[");
    if (json_present(list) && list->kind != JSON_OBJECT)
        return err_set(w->err, LATH_ERR_FORMAT,
                       "%s/tokenizer_config.json: line %u: \"added_tokens_decoder\": want an object", w->dir,
                       list->line);
    for (const json_value *v = json_present(list) ? list->u.items.first : NULL; v; v = v->next)
        TRY(put_listed(w, v, &first));
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
        const json_value *v = special(w, keys[k], &said);
        if (!v || is_listed(w, v->u.string.data, v->u.string.len)) continue;
        const bool flags[4] = {false, strcmp(keys[k], "mask_token") == 0, false, false};
        put_token(w, &first, 0, v->u.string.data, v->u.string.len, true, flags);
    }
    for (size_t k = 0; k < 4 && w->family->special[k]; k++) {
        const bool flags[4] = {false};
        const char *s = w->family->special[k];
        if (!is_listed(w, s, strlen(s))) put_token(w, &first, 0, s, strlen(s), true, flags);
    }
    /* RoBERTa's mask takes the space before it. */
    const bool mask[4] = {false, true, false, false};
    if (w->family->roberta && !special(w, "mask_token", &said) && !said && !is_listed(w, "<mask>", 6))
        put_token(w, &first, 0, "<mask>", 6, true, mask);
    buf_str(w->out, "]");
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- pipeline */

/* The id that vocab.json gives to a token, for the template. */
static lath_status id_of(writer *w, const json_value *vocab, const char *key, const char *fallback, buf *out)
{
    bool said;
    const json_value *v = special(w, key, &said);
    const char *s = v ? v->u.string.data : fallback;
    const json_value *id = json_get(vocab, s);
    if (!id || id->kind != JSON_INT)
        return err_set(w->err, LATH_ERR_FORMAT, "%s/vocab.json: token \"%.80s\" is not there", w->dir, s);
    json_put_string(out, s, strlen(s));
    buf_printf(out, ",%lld", (long long)id->u.integer);
    return LATH_OK;
}

static lath_status put_roberta(writer *w, const lath_allocator *alloc, bool prefix)
{
    bool trim = true;
    json_value *vocab = NULL;
    arena tree;
    buf path;
    arena_init(&tree, alloc);
    buf_init(&path, alloc, 1 << 16);
    json_options opts = {.max_bytes = FILE_MOST};
    lath_status st = LATH_OK;
    file_join(&path, w->dir, "vocab.json");
    TRY_DONE(buf_status(&path, w->err));
    TRY_DONE(json_load(&tree, buf_cstr(&path), &opts, &vocab, w->err));
    TRY_DONE(json_get_bool(w->config, "trim_offsets", w->dir, &trim, w->err));
    buf_str(w->out, ",\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[");
    TRY_DONE(id_of(w, vocab, "sep_token", "</s>", w->out));
    buf_str(w->out, "],\"cls\":[");
    TRY_DONE(id_of(w, vocab, "cls_token", "<s>", w->out));
    buf_printf(w->out, "],\"trim_offsets\":%s,\"add_prefix_space\":%s}", trim ? "true" : "false",
               prefix ? "true" : "false");
done:
    buf_deinit(&path);
    arena_deinit(&tree);
    return st;
}

static lath_status put_pipeline(writer *w, const lath_allocator *alloc)
{
    bool prefix = false;
    TRY(json_get_bool(w->config, "add_prefix_space", w->dir, &prefix, w->err));
    const char *p = prefix ? "true" : "false";
    if (w->family->qwen) {
        buf_str(
            w->out,
            ",\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
            "\"Split\",\"pattern\":{\"Regex\":");
        json_put_string(w->out, qwen_pattern, strlen(qwen_pattern));
        buf_printf(w->out,
                   "},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":%s,"
                   "\"trim_offsets\":true,\"use_regex\":false}]}",
                   p);
    } else {
        buf_printf(w->out, ",\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":%s,\"trim_offsets\":true}",
                   p);
    }
    buf_str(w->out, ",\"decoder\":{\"type\":\"ByteLevel\"}");
    return w->family->roberta ? put_roberta(w, alloc, prefix) : LATH_OK;
}

lath_status tok_vocab_json_to_json(const lath_allocator *alloc, const char *dir, const json_value *config, buf *out,
                                   lath_error *err)
{
    writer w = {.out = out, .dir = dir, .config = config, .err = err};
    TRY(find_family(&w));
    TRY(put_model(&w, alloc));
    TRY(put_pipeline(&w, alloc));
    TRY(put_added_tokens(&w));
    buf_str(out, "}");
    return buf_status(out, err);
}

lath_status tok_vocab_json_check(const tok *t, const char *dir, const json_value *config, lath_error *err)
{
    const json_value *list = json_get(config, "added_tokens_decoder");
    for (const json_value *v = json_present(list) ? list->u.items.first : NULL; v; v = v->next) {
        const json_value *c = json_get(v, "content");
        long long want = 0;
        bool digits = v->key_len > 0 && v->key_len < 11;
        for (size_t i = 0; i < v->key_len && digits; i++) {
            digits = v->key[i] >= '0' && v->key[i] <= '9';
            want = want * 10 + (v->key[i] - '0');
        }
        if (digits && tok_id(t, c->u.string.data, c->u.string.len) == want) continue;
        return err_set(err, LATH_ERR_FORMAT,
                       "%s/tokenizer_config.json: line %u: token \"%.80s\" does not have id %.40s", dir, v->line,
                       c->u.string.data, v->key);
    }
    return LATH_OK;
}
