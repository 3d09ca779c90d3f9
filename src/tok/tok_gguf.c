/* SPDX-License-Identifier: Apache-2.0
 * tok_gguf.c: tokenizers of GGUF files, from the arrays of tokenizer.ggml.*. The arrays become the text of a
 * tokenizer.json with the pipeline that the kind stands for, which is then read like any other: one loader, one set of
 * checks.
 *
 *     gpt2    BPE of byte letters, split by the patterns that `pre` names (tok_gguf_split.c)
 *     llama   SentencePiece BPE: merges ranked by scores; t5: Unigram (both by tok_spm.c)
 *     bert    WordPiece; words begin with U+2581 in the file and pieces inside them with nothing
 */
#include "tok/tok_gguf.h"

#include <stdio.h>

#include "base/checked.h"
#include "base/utf8.h"
#include "tok/tok_parts.h"
#include "tok/tok_spm.h"

enum { JSON_MOST = 1 << 30, MARK_LEN = 3 };

static const char mark[] = "\xE2\x96\x81"; /* U+2581 */

typedef struct job {
    const tok_arrays *a;
    const char *name;
    buf *b; /* tokenizer.json */
    arena *mem;
    lath_error *err;
} job;

static void put(const job *j, const char *s) { buf_str(j->b, s); }
static void put_text(const job *j, tok_string s) { json_put_string(j->b, s.s, s.n); }

static bool flag(int value, bool otherwise) { return value < 0 ? otherwise : value != 0; }

static int32_t type_of(const tok_arrays *a, size_t id) { return a->types ? a->types[id] : TOK_SPM_NORMAL; }

/* ------------------------------------------------------------------------------------------------------------ checks */

static lath_status check_id(const job *j, const char *what, int32_t id)
{
    if (id >= -1 && (id < 0 || (size_t)id < j->a->n)) return LATH_OK;
    return err_set(j->err, LATH_ERR_FORMAT, "%s: tokenizer.ggml.%s_token_id %d is not in 0..%zu", j->name, what,
                   (int)id, j->a->n - 1);
}

static lath_status check(const job *j)
{
    const tok_arrays *a = j->a;
    if (!a->tokens || a->n == 0)
        return err_set(j->err, LATH_ERR_FORMAT, "%s: tokenizer.ggml.tokens is missing", j->name);
    if (a->n >= INT32_MAX) return err_set(j->err, LATH_ERR_LIMIT, "%s: %zu tokens are too many", j->name, a->n);
    for (size_t i = 0; i < a->n; i++) {
        if (utf8_first_invalid(a->tokens[i].s, a->tokens[i].n) < a->tokens[i].n)
            return err_set(j->err, LATH_ERR_FORMAT, "%s: token %zu is not valid UTF-8", j->name, i);
        if (type_of(a, i) < TOK_SPM_NORMAL || type_of(a, i) > TOK_SPM_BYTE)
            return err_set(j->err, LATH_ERR_FORMAT, "%s: token %zu: type %d is not known", j->name, i,
                           (int)a->types[i]);
    }
    TRY(check_id(j, "bos", a->bos));
    TRY(check_id(j, "eos", a->eos));
    TRY(check_id(j, "unknown", a->unk));
    TRY(check_id(j, "seperator", a->sep)); /* as the key is spelled */
    TRY(check_id(j, "padding", a->pad));
    TRY(check_id(j, "cls", a->cls));
    return check_id(j, "mask", a->mask);
}

/* ------------------------------------------------------------------------------------------------------------- parts */

static bool named_special(const tok_arrays *a, size_t id)
{
    const int32_t ids[] = {a->bos, a->eos, a->unk, a->sep, a->pad, a->cls, a->mask};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        if (ids[i] >= 0 && (size_t)ids[i] == id) return true;
    }
    return false;
}

/* Control tokens are special, user-defined ones are not. Without types the ids that the file names are special. */
static void put_added_tokens(const job *j)
{
    const tok_arrays *a = j->a;
    const char *comma = "";
    put(j, "\"added_tokens\":[");
    for (size_t i = 0; i < a->n; i++) {
        int32_t type = type_of(a, i);
        bool special = a->types ? type == TOK_SPM_CONTROL || type == TOK_SPM_UNKNOWN : named_special(a, i);
        if ((!special && type != TOK_SPM_USER_DEFINED) || a->tokens[i].n == 0) continue;
        buf_printf(j->b, "%s{\"id\":%zu,\"content\":", comma, i);
        put_text(j, a->tokens[i]);
        buf_printf(j->b,
                   ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":%s}",
                   special ? "true" : "false");
        comma = ",";
    }
    put(j, "],");
}

static void put_special(const job *j, int32_t id, int type, bool behind)
{
    if (behind) put(j, ",");
    put(j, "{\"SpecialToken\":{\"id\":");
    put_text(j, j->a->tokens[id]);
    buf_printf(j->b, ",\"type_id\":%d}}", type);
}

static void put_one(const job *j, int32_t bos, int32_t eos, char name, int type)
{
    if (bos >= 0) put_special(j, bos, type, false);
    buf_printf(j->b, "%s{\"Sequence\":{\"id\":\"%c\",\"type_id\":%d}}", bos >= 0 ? "," : "", name, type);
    if (eos >= 0) put_special(j, eos, type, true);
}

static void put_ids(const job *j, int32_t id, bool behind)
{
    tok_string s = j->a->tokens[id];
    if (behind) put(j, ",");
    put_text(j, s);
    put(j, ":{\"id\":");
    put_text(j, s);
    buf_printf(j->b, ",\"ids\":[%d],\"tokens\":[", (int)id);
    put_text(j, s);
    put(j, "]}");
}

/* bos A eos; of pairs bos A eos bos B eos, or with a separator instead of the second bos. */
static void put_template(const job *j, int32_t bos, int32_t eos, int32_t second, int type_of_second)
{
    if (bos < 0 && eos < 0) return;
    put(j, "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[");
    put_one(j, bos, eos, 'A', 0);
    put(j, "],\"pair\":[");
    put_one(j, bos, eos, 'A', 0);
    put(j, ",");
    put_one(j, second, eos, 'B', type_of_second);
    put(j, "],\"special_tokens\":{");
    if (bos >= 0) put_ids(j, bos, false);
    if (eos >= 0 && eos != bos) put_ids(j, eos, bos >= 0);
    put(j, "}},");
}

/* ----------------------------------------------------------------------------------------------------------- gpt2 */

static void put_splits(const job *j, const tok_gguf_split *split)
{
    put(j, "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[");
    for (size_t i = 0; split->patterns[i]; i++) {
        put(j, i ? ",{\"type\":\"Split\",\"pattern\":{\"Regex\":" : "{\"type\":\"Split\",\"pattern\":{\"Regex\":");
        put_text(j, (tok_string){split->patterns[i], strlen(split->patterns[i])});
        put(j, "},\"behavior\":\"Isolated\",\"invert\":false}");
    }
    if (!(split->flags & TOK_GGUF_RAW))
        put(j, ",{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":false,\"use_regex\":false}");
    put(j, "]},");
}

/* "left right": the first space that is not the first byte divides. */
static lath_status put_merges(const job *j)
{
    put(j, "},\"merges\":[");
    for (size_t i = 0; i < j->a->n_merges; i++) {
        tok_string m = j->a->merges[i];
        const char *space = m.n > 1 ? memchr(m.s + 1, ' ', m.n - 1) : NULL;
        if (!space || utf8_first_invalid(m.s, m.n) < m.n)
            return err_set(j->err, LATH_ERR_FORMAT, "%s: merge %zu is not two tokens with a space between", j->name, i);
        size_t n = (size_t)(space - m.s);
        put(j, i ? ",[" : "[");
        put_text(j, (tok_string){m.s, n});
        put(j, ",");
        put_text(j, (tok_string){space + 1, m.n - n - 1});
        put(j, "]");
    }
    put(j, "]}}");
    return LATH_OK;
}

static void put_vocab(const job *j, const tok_string *tokens)
{
    for (size_t i = 0; i < j->a->n; i++) {
        if (i) put(j, ",");
        put_text(j, tokens[i]);
        buf_printf(j->b, ":%zu", i);
    }
}

static lath_status put_gpt2(const job *j, const char *pre)
{
    const tok_arrays *a = j->a;
    const tok_gguf_split *split = tok_gguf_split_find(pre);
    if (!split)
        return err_set(j->err, LATH_ERR_UNSUPPORTED, "%s: tokenizer.ggml.pre \"%.80s\" is not supported", j->name, pre);
    if (!a->merges) return err_set(j->err, LATH_ERR_FORMAT, "%s: tokenizer.ggml.merges is missing", j->name);
    bool raw = split->flags & TOK_GGUF_RAW, sep = a->sep >= 0 && strcmp(pre, "roberta-bpe") == 0;
    put_added_tokens(j);
    if (split->flags & TOK_GGUF_NFC) put(j, "\"normalizer\":{\"type\":\"NFC\"},");
    if (raw)
        buf_printf(j->b, "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"%s\"},",
                   mark);
    put_splits(j, split);
    int32_t bos = flag(a->add_bos, split->flags & TOK_GGUF_ADD_BOS || sep) ? a->bos : -1;
    int32_t eos = flag(a->add_eos, sep) ? a->eos : -1;
    put_template(j, bos, eos, sep ? a->sep : bos, !sep);
    if (raw)
        buf_printf(
            j->b,
            "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"%s\"},"
            "\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]},",
            mark);
    else
        put(j,
            "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},");
    put(j, "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":");
    if (raw && a->unk >= 0)
        put_text(j, a->tokens[a->unk]);
    else
        put(j, "null");
    buf_printf(j->b,
               ",\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":%s,\"byte_fallback\":%s,"
               "\"ignore_merges\":%s,\"vocab\":{",
               raw ? "true" : "false", raw ? "true" : "false",
               split->flags & TOK_GGUF_IGNORE_MERGES ? "true" : "false");
    put_vocab(j, a->tokens);
    return put_merges(j);
}

/* ------------------------------------------------------------------------------------------------------------- bert */

static bool in_brackets(tok_string s) { return s.n >= 2 && s.s[0] == '[' && s.s[s.n - 1] == ']'; }
static bool is_marked(tok_string s) { return s.n > MARK_LEN && memcmp(s.s, mark, MARK_LEN) == 0; }

/* Tokens as WordPiece has them: the file's words lose their mark, its other pieces get "##". */
static lath_status unmark(const job *j, tok_string **out)
{
    const tok_arrays *a = j->a;
    tok_string *v = arena_array(j->mem, a->n, sizeof(*v));
    bool marked = false;
    if (!v) return err_nomem(j->err, a->n * sizeof(*v));
    for (size_t i = 0; i < a->n && !marked; i++) marked = is_marked(a->tokens[i]);
    for (size_t i = 0; i < a->n; i++) {
        tok_string s = a->tokens[i];
        v[i] = s;
        if (!marked || in_brackets(s) || type_of(a, i) == TOK_SPM_CONTROL || type_of(a, i) == TOK_SPM_UNKNOWN) continue;
        if (is_marked(s)) {
            v[i] = (tok_string){s.s + MARK_LEN, s.n - MARK_LEN};
            continue;
        }
        char *p = arena_bytes(j->mem, s.n + 2, 1);
        if (!p) return err_nomem(j->err, s.n + 2);
        p[0] = p[1] = '#';
        memcpy(p + 2, s.s, s.n);
        v[i] = (tok_string){p, s.n + 2};
    }
    *out = v;
    return LATH_OK;
}

/* A vocabulary without capital letters is of a model that lower-cases: nothing else could ever match. */
static bool has_capitals(const tok_arrays *a)
{
    for (size_t i = 0; i < a->n; i++) {
        tok_string s = a->tokens[i];
        if (in_brackets(s) || type_of(a, i) != TOK_SPM_NORMAL) continue;
        for (size_t k = 0; k < s.n; k++) {
            if (s.s[k] >= 'A' && s.s[k] <= 'Z') return true;
        }
    }
    return false;
}

static int32_t find_token(const tok_arrays *a, int32_t id, const char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; id < 0 && i < a->n; i++) {
        if (a->tokens[i].n == n && memcmp(a->tokens[i].s, text, n) == 0) id = (int32_t)i;
    }
    return id;
}

static lath_status put_bert(const job *j)
{
    const tok_arrays *a = j->a;
    int32_t unk = find_token(a, a->unk, "[UNK]"), cls = find_token(a, a->cls >= 0 ? a->cls : a->bos, "[CLS]");
    int32_t sep = find_token(a, a->sep >= 0 ? a->sep : a->eos, "[SEP]");
    tok_string *tokens = NULL;
    if (unk < 0 || cls < 0 || sep < 0)
        return err_set(j->err, LATH_ERR_FORMAT, "%s: a bert tokenizer without [UNK], [CLS] or [SEP]", j->name);
    TRY(unmark(j, &tokens));
    bool cased = has_capitals(a);
    put_added_tokens(j);
    buf_printf(j->b,
               "\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
               "\"strip_accents\":null,\"lowercase\":%s},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},",
               cased ? "false" : "true");
    put_template(j, flag(a->add_bos, true) ? cls : -1, flag(a->add_eos, true) ? sep : -1, -1, 1);
    put(j, "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},"
           "\"model\":{\"type\":\"WordPiece\",\"unk_token\":");
    put_text(j, a->tokens[unk]);
    put(j, ",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100,\"vocab\":{");
    put_vocab(j, tokens);
    put(j, "}}}");
    return LATH_OK;
}

/* --------------------------------------------------------------------------------------------------- SentencePiece */

static lath_status fill_pieces(const job *j, tok_spm *m)
{
    const tok_arrays *a = j->a;
    if (!a->scores) return err_set(j->err, LATH_ERR_FORMAT, "%s: tokenizer.ggml.scores is missing", j->name);
    m->pieces = arena_array(j->mem, a->n, sizeof(*m->pieces));
    m->n = a->n;
    if (!m->pieces) return err_nomem(j->err, a->n * sizeof(*m->pieces));
    for (size_t i = 0; i < a->n; i++) {
        if (!(a->scores[i] > -1e30f && a->scores[i] < 1e30f))
            return err_set(j->err, LATH_ERR_FORMAT, "%s: the score of token %zu is not finite", j->name, i);
        m->pieces[i] = (tok_spm_piece){a->tokens[i].s, a->tokens[i].n, a->scores[i], (tok_spm_type)type_of(a, i)};
        m->byte_fallback |= type_of(a, i) == TOK_SPM_BYTE;
    }
    return LATH_OK;
}

static lath_status put_spm(const job *j, bool unigram)
{
    const tok_arrays *a = j->a;
    tok_spm m = {.kind = unigram ? TOK_SPM_UNIGRAM : TOK_SPM_BPE,
                 .bos = a->bos,
                 .eos = a->eos,
                 .escape_spaces = true,
                 .user_as_added = true};
    json_value *config;
    char flags[64];
    TRY(fill_pieces(j, &m));
    m.unk = a->unk;
    for (size_t i = 0; m.unk < 0 && i < a->n; i++) {
        if (type_of(a, i) == TOK_SPM_UNKNOWN) m.unk = (int64_t)i;
    }
    if (m.unk < 0) return err_set(j->err, LATH_ERR_FORMAT, "%s: there is no unknown token", j->name);
    m.pieces[m.unk].type = TOK_SPM_UNKNOWN;
    m.add_dummy_prefix = flag(a->add_space_prefix, true);
    m.remove_extra_spaces = flag(a->remove_extra_spaces, unigram);
    m.charsmap = a->charsmap;
    m.n_charsmap = a->charsmap ? a->n_charsmap : 0;
    snprintf(flags, sizeof(flags), "{\"add_bos_token\":%s,\"add_eos_token\":%s}",
             flag(a->add_bos, !unigram) ? "true" : "false", flag(a->add_eos, unigram) ? "true" : "false");
    TRY(json_parse(j->mem, j->name, flags, strlen(flags), NULL, &config, j->err));
    return tok_spm_put_json(j->mem, j->name, &m, config, j->b, j->err);
}

static lath_status write_json(const job *j)
{
    const char *kind = j->a->kind ? j->a->kind : "";
    TRY(check(j));
    if (strcmp(kind, "llama") == 0 || strcmp(kind, "t5") == 0) return put_spm(j, kind[0] == 't');
    put(j, "{\"version\":\"1.0\",");
    if (strcmp(kind, "gpt2") == 0) return put_gpt2(j, j->a->pre ? j->a->pre : "default");
    if (strcmp(kind, "gemma4") == 0) return put_gpt2(j, "gemma4");
    if (strcmp(kind, "bert") == 0) return put_bert(j);
    return err_set(j->err, LATH_ERR_UNSUPPORTED, "%s: tokenizer.ggml.model \"%.80s\" is not supported", j->name, kind);
}

lath_status tok_open_arrays(const lath_allocator *alloc, const char *name, const tok_arrays *a, tok **out,
                            lath_error *err)
{
    arena mem;
    buf json;
    *out = NULL;
    arena_init(&mem, alloc);
    buf_init(&json, alloc, JSON_MOST);
    job j = {.a = a, .name = name, .b = &json, .mem = &mem, .err = err};
    lath_status st = write_json(&j);
    if (st == LATH_OK) st = buf_status(&json, err);
    arena_deinit(&mem);
    if (st == LATH_OK) st = tok_open_json(alloc, name, json.data, json.len, out, err);
    buf_deinit(&json);
    return st;
}
