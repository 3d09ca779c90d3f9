/* SPDX-License-Identifier: Apache-2.0
 * tok_spm.c: a SentencePiece file as tokenizer.json, with the pipeline that transformers builds for it so that it
 * encodes as SentencePiece itself: the normalizer's settings in SentencePiece's order, BPE merges ranked by the scores
 * of pieces, user-defined pieces never cut. Control pieces and the unknown one are special tokens.
 *
 * tokenizer_class XLMRobertaTokenizer: the ids are those of fairseq (<s> <pad> </s> <unk>, pieces from the fourth on,
 * <mask>).
 */
#include "tok/tok_spm.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "tok/tok_spm_proto.h"

enum { BPE_PIECE_MOST = 256 }; /* bytes: all ways to cut a piece in two are looked up */

typedef struct writer {
    buf *b;
    const tok_spm *m;
    const json_value *config;
    const char *name;
    bool fairseq;
    arena *mem;
    lath_error *err;
} writer;

static void put(const writer *w, const char *s) { buf_str(w->b, s); }
static void put_text(const writer *w, const char *s, size_t n) { json_put_string(w->b, s, n); }

/* ------------------------------------------------------------------------------------------------------------ config */

static bool class_is(const writer *w, const char *name)
{
    const json_value *v = json_get(w->config, "tokenizer_class");
    size_t n = strlen(name);
    return v && v->kind == JSON_STRING && strncmp(v->u.string.data, name, n) == 0 &&
           (v->u.string.data[n] == 0 || strcmp(v->u.string.data + n, "Fast") == 0);
}

/* The ids that the template puts around a text; -1: none. */
static lath_status read_template(const writer *w, int64_t *bos, int64_t *eos)
{
    bool add_bos = class_is(w, "LlamaTokenizer") || class_is(w, "GemmaTokenizer") || w->fairseq;
    bool add_eos = class_is(w, "T5Tokenizer") || class_is(w, "MT5Tokenizer") || w->fairseq;
    TRY(json_get_bool(w->config, "add_bos_token", w->name, &add_bos, w->err));
    TRY(json_get_bool(w->config, "add_eos_token", w->name, &add_eos, w->err));
    *bos = add_bos ? w->m->bos : -1;
    *eos = add_eos ? w->m->eos : -1;
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------- parts */

static void put_base64(buf *b, const char *s, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        size_t k = n - i < 3 ? n - i : 3;
        uint32_t v = 0;
        for (size_t j = 0; j < 3; j++) v = v << 8 | (j < k ? (uint8_t)s[i + j] : 0);
        for (size_t j = 0; j < 4; j++) buf_char(b, j <= k ? digits[v >> (18 - 6 * j) & 63] : '=');
    }
}

static void put_normalizer(const writer *w)
{
    const tok_spm *m = w->m;
    const char *comma = "";
    put(w, "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    if (m->n_charsmap) {
        put(w, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"");
        put_base64(w->b, m->charsmap, m->n_charsmap);
        put(w, "\"}");
        comma = ",";
    }
    if (m->remove_extra_spaces) {
        put(w, comma);
        put(w, "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"\\\\A +| +\\\\z\"},\"content\":\"\"},"
               "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"}");
        comma = ",";
    }
    if (m->escape_spaces) {
        put(w, comma);
        put(w, "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xE2\x96\x81\"}");
        comma = ",";
    }
    if (m->add_dummy_prefix) { /* Metaspace puts no mark where there is one, SentencePiece does */
        put(w, comma);
        put(w, "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"\\\\A\xE2\x96\x81\"},"
               "\"content\":\"\xE2\x96\x81\xE2\x96\x81\"}");
    }
    put(w, "]},");
}

typedef struct ranked {
    uint32_t index;
    size_t key; /* characters of the piece */
} ranked;

static int longer_first(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static size_t count_chars(const char *s, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) k += ((uint8_t)s[i] & 0xC0) != 0x80;
    return k;
}

/* User-defined pieces as a regular expression, the longest first. */
static lath_status put_user_defined(const writer *w, size_t n)
{
    const tok_spm *m = w->m;
    lath_status st = LATH_OK;
    buf pattern;
    buf_init(&pattern, w->b->alloc, (size_t)1 << 30);
    ranked *v = arena_array(w->mem, n, sizeof(*v));
    if (!v) {
        st = err_nomem(w->err, n * sizeof(*v));
        goto done;
    }
    size_t k = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (m->pieces[i].type == TOK_SPM_USER_DEFINED)
            v[k++] = (ranked){(uint32_t)i, count_chars(m->pieces[i].s, m->pieces[i].n)};
    }
    qsort(v, k, sizeof(*v), longer_first);
    for (size_t i = 0; i < k; i++) {
        const tok_spm_piece *p = &m->pieces[v[i].index];
        if (i) buf_char(&pattern, '|');
        for (size_t j = 0; j < p->n; j++) {
            if (p->s[j] && strchr("\\^$.|?*+()[]{}#&-~ \t\n\r", p->s[j])) buf_char(&pattern, '\\');
            buf_char(&pattern, p->s[j]);
        }
    }
    TRY_DONE(buf_status(&pattern, w->err));
    put(w, "{\"type\":\"Split\",\"pattern\":{\"Regex\":");
    put_text(w, pattern.data, pattern.len);
    put(w, "},\"behavior\":\"Isolated\",\"invert\":false}");
done:
    buf_deinit(&pattern);
    return st;
}

static size_t count_type(const tok_spm *m, tok_spm_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) n += m->pieces[i].type == type;
    return n;
}

/* User-defined pieces that the pre-tokenizer cuts out. */
static size_t count_cut(const tok_spm *m) { return m->user_as_added ? 0 : count_type(m, TOK_SPM_USER_DEFINED); }

static lath_status put_pre_tokenizer(const writer *w)
{
    size_t user = count_cut(w->m);
    put(w, "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[");
    if (w->m->add_dummy_prefix) {
        put(w,
            "{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":\"always\",\"split\":false}");
        if (user) put(w, ",");
    }
    if (user) TRY(put_user_defined(w, user));
    put(w, "]},");
    return LATH_OK;
}

static void put_decoder(const writer *w)
{
    put(w, "\"decoder\":{\"type\":\"Sequence\",\"decoders\":["
           "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xE2\x96\x81\"},\"content\":\" \"}");
    if (w->m->byte_fallback) put(w, ",{\"type\":\"ByteFallback\"}");
    if (w->m->add_dummy_prefix)
        put(w, ",{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}");
    else if (w->m->byte_fallback)
        put(w, ",{\"type\":\"Fuse\"}");
    put(w, "]},");
}

static int64_t id_of(const writer *w, int64_t index)
{
    if (!w->fairseq) return index;
    return index == w->m->bos ? 0 : index == w->m->eos ? 2 : index == w->m->unk ? 3 : index + 1;
}

static void put_special(const writer *w, int64_t index, int type, bool first)
{
    const tok_spm_piece *p = &w->m->pieces[index];
    if (!first) put(w, ",");
    put(w, "{\"SpecialToken\":{\"id\":");
    put_text(w, p->s, p->n);
    buf_printf(w->b, ",\"type_id\":%d}}", type);
}

/* One text of a template. */
static void put_one(const writer *w, int64_t bos, int64_t eos, char name, int type)
{
    if (bos >= 0) put_special(w, bos, type, true);
    buf_printf(w->b, "%s{\"Sequence\":{\"id\":\"%c\",\"type_id\":%d}}", bos >= 0 ? "," : "", name, type);
    if (eos >= 0) put_special(w, eos, type, false);
}

static void put_ids(const writer *w, int64_t index, bool first)
{
    const tok_spm_piece *p = &w->m->pieces[index];
    if (!first) put(w, ",");
    put_text(w, p->s, p->n);
    put(w, ":{\"id\":");
    put_text(w, p->s, p->n);
    buf_printf(w->b, ",\"ids\":[%lld],\"tokens\":[", (long long)id_of(w, index));
    put_text(w, p->s, p->n);
    put(w, "]}");
}

static lath_status put_template(const writer *w)
{
    int64_t bos, eos;
    TRY(read_template(w, &bos, &eos));
    if (bos < 0 && eos < 0) return LATH_OK;
    put(w, "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[");
    put_one(w, bos, eos, 'A', 0);
    put(w, "],\"pair\":[");
    put_one(w, bos, eos, 'A', 0);
    put(w, ",");
    if (w->fairseq)
        put_one(w, eos, eos, 'B', 0);
    else
        put_one(w, bos, eos, 'B', bos >= 0);
    put(w, "],\"special_tokens\":{");
    if (bos >= 0) put_ids(w, bos, true);
    if (eos >= 0 && eos != bos) put_ids(w, eos, bos < 0);
    put(w, "}},");
    return LATH_OK;
}

static void put_added(const writer *w, int64_t id, const char *s, size_t n, bool special, bool lstrip, bool first)
{
    if (!first) put(w, ",");
    buf_printf(w->b, "{\"id\":%lld,\"content\":", (long long)id);
    put_text(w, s, n);
    buf_printf(w->b, ",\"single_word\":false,\"lstrip\":%s,\"rstrip\":false,\"normalized\":false,\"special\":%s}",
               lstrip ? "true" : "false", special ? "true" : "false");
}

static void put_added_tokens(const writer *w)
{
    static const char *const names[] = {"<s>", "<pad>", "</s>", "<unk>"};
    const tok_spm *m = w->m;
    bool first = true;
    put(w, "\"added_tokens\":[");
    for (size_t i = 0; w->fairseq && i < 4; i++)
        put_added(w, (int64_t)i, names[i], strlen(names[i]), true, false, i == 0);
    if (w->fairseq) put_added(w, (int64_t)m->n + 1, "<mask>", 6, true, true, false);
    for (size_t i = 0; !w->fairseq && i < m->n; i++) {
        const tok_spm_piece *p = &m->pieces[i];
        bool user = p->type == TOK_SPM_USER_DEFINED && m->user_as_added;
        if (p->n == 0 || (p->type != TOK_SPM_CONTROL && p->type != TOK_SPM_UNKNOWN && !user)) continue;
        put_added(w, (int64_t)i, p->s, p->n, !user, false, first);
        first = false;
    }
    put(w, "],");
}

/* ------------------------------------------------------------------------------------------------------------- model */

static void put_unigram(const writer *w)
{
    const tok_spm *m = w->m;
    buf_printf(w->b, "\"model\":{\"type\":\"Unigram\",\"unk_id\":%lld,\"byte_fallback\":%s,\"vocab\":[",
               (long long)id_of(w, m->unk), m->byte_fallback ? "true" : "false");
    if (w->fairseq) put(w, "[\"<s>\",0.0],[\"<pad>\",0.0],[\"</s>\",0.0],[\"<unk>\",0.0],");
    size_t from = w->fairseq ? 3 : 0;
    for (size_t i = from; i < m->n; i++) {
        if (i > from) put(w, ",");
        put(w, "[");
        put_text(w, m->pieces[i].s, m->pieces[i].n);
        put(w, ",");
        json_put_f64(w->b, (double)m->pieces[i].score);
        put(w, "]");
    }
    put(w, w->fairseq ? ",[\"<mask>\",0.0]]}}" : "]}}");
}

typedef struct scored {
    float score;
    uint32_t index;
} scored;

static int better_first(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* All ways to put the piece together from two pieces, the shortest first part first. */
static void put_merges_of(const writer *w, const map *normal, const tok_spm_piece *p, bool *first)
{
    for (size_t k = 1; k < p->n; k++) {
        if (((uint8_t)p->s[k] & 0xC0) == 0x80) continue;
        if (!map_find(normal, p->s, k, NULL) || !map_find(normal, p->s + k, p->n - k, NULL)) continue;
        put(w, *first ? "[" : ",[");
        put_text(w, p->s, k);
        put(w, ",");
        put_text(w, p->s + k, p->n - k);
        put(w, "]");
        *first = false;
    }
}

static lath_status put_merges(const writer *w)
{
    const tok_spm *m = w->m;
    lath_status st = LATH_OK;
    map normal;
    map_init(&normal, w->b->alloc);
    scored *v = arena_array(w->mem, m->n, sizeof(*v));
    size_t n = 0;
    if (!v) {
        st = err_nomem(w->err, m->n * sizeof(*v));
        goto done;
    }
    TRY_DONE(map_reserve(&normal, m->n, w->err));
    for (size_t i = 0; i < m->n; i++) {
        const tok_spm_piece *p = &m->pieces[i];
        if (p->type != TOK_SPM_NORMAL && (p->type != TOK_SPM_USER_DEFINED || !m->user_as_added)) continue;
        if (p->n > BPE_PIECE_MOST) {
            st = err_set(w->err, LATH_ERR_LIMIT, "%s: piece %zu has %zu bytes, at most %d are allowed", w->name, i,
                         p->n, BPE_PIECE_MOST);
            goto done;
        }
        TRY_DONE(map_add(&normal, p->s, p->n, i, NULL, w->err));
        v[n++] = (scored){p->score, (uint32_t)i};
    }
    qsort(v, n, sizeof(*v), better_first);
    bool first = true;
    for (size_t i = 0; i < n; i++) put_merges_of(w, &normal, &m->pieces[v[i].index], &first);
done:
    map_deinit(&normal);
    return st;
}

static lath_status put_bpe(const writer *w)
{
    const tok_spm *m = w->m;
    put(w, "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":");
    put_text(w, m->pieces[m->unk].s, m->pieces[m->unk].n);
    buf_printf(w->b,
               ",\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":true,"
               "\"byte_fallback\":%s,\"ignore_merges\":%s,\"vocab\":{",
               m->byte_fallback ? "true" : "false", count_cut(m) ? "true" : "false");
    for (size_t i = 0; i < m->n; i++) {
        if (i) put(w, ",");
        put_text(w, m->pieces[i].s, m->pieces[i].n);
        buf_printf(w->b, ":%zu", i);
    }
    put(w, "},\"merges\":[");
    TRY(put_merges(w));
    put(w, "]}}");
    return LATH_OK;
}

static bool is_fairseq(const writer *w)
{
    return class_is(w, "XLMRobertaTokenizer") && w->m->kind == TOK_SPM_UNIGRAM && w->m->n > 3;
}

lath_status tok_spm_template(const tok_spm *m, const json_value *config, const char *name, int64_t *bos, int64_t *eos,
                             bool *fairseq, lath_error *err)
{
    writer w = {.m = m, .config = config, .name = name, .err = err};
    *fairseq = w.fairseq = is_fairseq(&w);
    return read_template(&w, bos, eos);
}

lath_status tok_spm_put_json(arena *mem, const char *name, const tok_spm *m, const json_value *config, buf *out,
                             lath_error *err)
{
    writer w = {.b = out, .m = m, .config = config, .name = name, .mem = mem, .err = err};
    w.fairseq = is_fairseq(&w);
    put(&w, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,");
    put_added_tokens(&w);
    put_normalizer(&w);
    TRY(put_pre_tokenizer(&w));
    TRY(put_template(&w));
    put_decoder(&w);
    if (m->kind == TOK_SPM_BPE)
        TRY(put_bpe(&w));
    else
        put_unigram(&w);
    return buf_status(out, err);
}

lath_status tok_spm_to_json(const lath_allocator *alloc, const char *name, const char *bytes, size_t n,
                            const json_value *config, buf *out, lath_error *err)
{
    arena mem;
    tok_spm m;
    arena_init(&mem, alloc);
    lath_status st = tok_spm_parse(&mem, name, bytes, n, &m, err);
    if (st == LATH_OK) st = tok_spm_put_json(&mem, name, &m, config, out, err);
    arena_deinit(&mem);
    return st;
}
