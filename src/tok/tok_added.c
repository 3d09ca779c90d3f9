/* SPDX-License-Identifier: Apache-2.0
 * tok_added.c: added tokens: reading the list, giving ids, and finding them in text.
 *
 * Ids are given as the reference gives them: that of the vocabulary where it has the content, else the next free
 * number; the id that the file states is checked to be sane and not used. Matching is leftmost-longest; a match that
 * its flags reject is skipped as a whole.
 */
#include "tok/tok_parts.h"

#include "base/unicode.h"

static bool equal(tok_string a, tok_string b) { return a.n == b.n && memcmp(a.s, b.s, a.n) == 0; }

lath_status tok_added_init(tok_load *l, size_t most)
{
    tok_added *a = &l->t->added;
    map_init(&a->by_content, l->t->alloc);
    map_init(&a->special, l->t->alloc);
    map_init(&a->by_id, l->t->alloc);
    a->v = tok_load_array(l, most ? most : 1, sizeof(*a->v));
    a->next_id = (int32_t)l->t->vocab.count;
    return a->v ? LATH_OK : err_nomem(l->err, most * sizeof(*a->v));
}

void tok_added_deinit(tok_added *a)
{
    map_deinit(&a->by_content);
    map_deinit(&a->special);
    map_deinit(&a->by_id);
}

static bool same_flags(const tok_added_token *a, const tok_added_token *b)
{
    return a->special == b->special && a->single_word == b->single_word && a->lstrip == b->lstrip &&
           a->rstrip == b->rstrip && a->normalized == b->normalized;
}

lath_status tok_added_add(tok_load *l, const tok_added_token *token)
{
    tok_added *a = &l->t->added;
    tok_string c = token->content;
    uint64_t id, index;
    if (c.n == 0) return LATH_OK;
    if (!map_find(&a->by_content, c.s, c.n, &id)) {
        int32_t known = tok_vocab_find(&l->t->vocab, c.s, c.n);
        id = (uint64_t)(known >= 0 ? known : a->next_id++);
        TRY(map_add(&a->by_content, c.s, c.n, id, NULL, l->err));
    }
    if (token->special) {
        a->special_first[(uint8_t)c.s[0]] = true;
        TRY(map_add(&a->special, c.s, c.n, 1, NULL, l->err));
    }
    int32_t id32 = (int32_t)id;
    tok_added_token *place;
    if (map_find(&a->by_id, (const char *)&id32, sizeof(id32), &index)) {
        place = &a->v[index];
        if (equal(place->content, c) && same_flags(place, token)) return LATH_OK;
        *place = *token; /* later flags win, and so does a later token that came to the same id */
        place->id = id32;
        return LATH_OK;
    }
    place = &a->v[a->n];
    *place = *token;
    place->id = id32;
    return map_add(&a->by_id, (const char *)&place->id, sizeof(place->id), a->n++, NULL, l->err);
}

/* What the token looks like in normalized text. */
static lath_status make_pattern(tok_load *l, arena *scratch, tok_added_token *token)
{
    token->pattern = token->content;
    if (!token->normalized || !l->t->normalizer.run) return LATH_OK;
    tok_work w = {.t = l->t, .scratch = scratch, .err = l->err};
    tok_text text = {.s = token->content.s, .n = token->content.n};
    TRY(tok_normalize(l->t, &w, &text));
    tok_string now = {text.s, text.n};
    if (!equal(now, token->content)) {
        char *s = arena_strdup(&l->t->mem, now.s, now.n);
        if (!s) return err_nomem(l->err, now.n);
        token->pattern = (tok_string){s, now.n};
        l->t->added.patterns_differ = true;
    }
    arena_reset(scratch);
    return LATH_OK;
}

static lath_status build_tries(tok_load *l)
{
    tok_added *a = &l->t->added;
    size_t total[2] = {0, 0};
    for (size_t i = 0; i < a->n; i++) total[a->v[i].normalized] += a->v[i].pattern.n;
    TRY(tok_trie_init(&a->raw, &l->t->mem, total[0], l->err));
    TRY(tok_trie_init(&a->normalized, &l->t->mem, total[1], l->err));
    for (size_t i = 0; i < a->n; i++) {
        const tok_added_token *k = &a->v[i];
        if (k->pattern.n)
            tok_trie_add(k->normalized ? &a->normalized : &a->raw, k->pattern.s, k->pattern.n, (int32_t)i);
    }
    return LATH_OK;
}

/* A special token that the model has as well: text may come to its id although it is not parsed. */
static bool can_be_forged(const tok *t, const tok_added_token *k)
{
    return k->special && k->id != t->unk && tok_vocab_find(&t->vocab, k->content.s, k->content.n) == k->id;
}

static lath_status build_forged(tok_load *l)
{
    tok *t = l->t;
    tok_added *a = &t->added;
    size_t total = 0;
    for (size_t i = 0; i < a->n; i++) {
        if (!can_be_forged(t, &a->v[i])) continue;
        total += a->v[i].content.n;
        a->n_forged++;
    }
    if (a->n_forged == 0) return LATH_OK;
    a->is_forged = tok_load_array(l, t->vocab.n_ids / 64 + 1, sizeof(*a->is_forged));
    if (!a->is_forged) return err_nomem(l->err, t->vocab.n_ids / 8 + 8);
    memset(a->is_forged, 0, (t->vocab.n_ids / 64 + 1) * sizeof(*a->is_forged));
    TRY(tok_trie_init(&a->forged, &t->mem, total, l->err));
    for (size_t i = 0; i < a->n; i++) {
        const tok_added_token *k = &a->v[i];
        if (!can_be_forged(t, k)) continue;
        tok_trie_add(&a->forged, k->content.s, k->content.n, (int32_t)i);
        a->is_forged[k->id / 64] |= (uint64_t)1 << k->id % 64;
    }
    return LATH_OK;
}

lath_status tok_added_finish(tok_load *l)
{
    tok_added *a = &l->t->added;
    lath_status st = LATH_OK;
    arena scratch;
    arena_init(&scratch, l->t->alloc);
    map_deinit(&a->by_id);
    for (size_t i = 0; i < a->n; i++) {
        tok_added_token *k = &a->v[i];
        k->special = map_find(&a->special, k->content.s, k->content.n, NULL);
        TRY_DONE(make_pattern(l, &scratch, k));
        TRY_DONE(tok_vocab_name(&l->t->vocab, k->id, k->content.s, k->content.n, l->err));
    }
    TRY_DONE(build_tries(l));
    st = build_forged(l);
done:
    arena_deinit(&scratch);
    return st;
}

static lath_status load_one(tok_load *l, const json_value *v, tok_added_token *out)
{
    int64_t id = -1;
    TRY(json_get_int(v, "id", l->name, 0, INT32_MAX - 1, &id, l->err));
    if (id < 0) return TOK_FAIL(l, v, LATH_ERR_FORMAT, "added_tokens: a token without \"id\"");
    TRY(tok_load_string(l, v, "added_tokens", "content", &out->content));
    TRY(tok_load_bool(l, v, "added_tokens", "special", &out->special));
    TRY(tok_load_bool(l, v, "added_tokens", "single_word", &out->single_word));
    TRY(tok_load_bool(l, v, "added_tokens", "lstrip", &out->lstrip));
    TRY(tok_load_bool(l, v, "added_tokens", "rstrip", &out->rstrip));
    return tok_load_bool(l, v, "added_tokens", "normalized", &out->normalized);
}

lath_status tok_added_load(tok_load *l, const json_value *list)
{
    if (!json_present(list)) {
        TRY(tok_added_init(l, 0));
        return tok_added_finish(l);
    }
    if (list->kind != JSON_ARRAY) return TOK_FAIL(l, list, LATH_ERR_FORMAT, "added_tokens: want a list");
    TRY(tok_added_init(l, list->u.items.count));
    for (const json_value *v = list->u.items.first; v; v = v->next) {
        tok_added_token token = {0};
        if (v->kind != JSON_OBJECT) return TOK_FAIL(l, v, LATH_ERR_FORMAT, "added_tokens: want objects");
        TRY(load_one(l, v, &token));
        TRY(tok_added_add(l, &token));
    }
    return tok_added_finish(l);
}

/* --------------------------------------------------------------------------------------------------------- matching */

static bool stands_alone(const char *s, size_t n, size_t b, size_t e)
{
    size_t len;
    if (b > 0 && uni_flags(uni_before(s, b, &len)) & UNI_WORD) return false;
    return e == n || !(uni_flags(uni_next(s + e, &len)) & UNI_WORD);
}

static size_t spaces_before(const char *s, size_t b)
{
    size_t len;
    while (b > 0 && uni_flags(uni_before(s, b, &len)) & UNI_SPACE) b -= len;
    return b;
}

static size_t spaces_behind(const char *s, size_t n, size_t e)
{
    size_t len;
    while (e < n && uni_flags(uni_next(s + e, &len)) & UNI_SPACE) e += len;
    return e;
}

size_t tok_plain_in(const tok_work *w, size_t begin, size_t end)
{
    size_t low = 0, high = w->n_plain;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (w->plain[mid].end <= begin)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == w->n_plain || w->plain[low].begin >= end) return end;
    return w->plain[low].begin > begin ? w->plain[low].begin : begin;
}

/* The longest token at i; of those that are special, one that has no bytes in a plain range. 0: there is none. */
static size_t match_at(const tok_added *a, const tok_trie *trie, const tok_text *t, size_t i, const tok_work *w,
                       int32_t *index)
{
    size_t most = t->n - i;
    for (;;) {
        const size_t len = tok_trie_longest(trie, t->s + i, most, index);
        if (len == 0 || w->n_plain == 0 || !a->v[*index].special) return len;
        const size_t from = tok_text_from(t, i), to = tok_text_to(t, i + len);
        if (tok_plain_in(w, from, to) == to) return len;
        most = len - 1;
        if (most == 0) return 0;
    }
}

lath_status tok_added_split(const tok_added *a, const tok_trie *trie, const tok_text *text, bool parse_special,
                            tok_piece_fn fn, tok_work *w, void *ctx)
{
    const char *s = text->s;
    const size_t n = text->n;
    size_t done = 0; /* pieces up to here are out */
    for (size_t i = tok_trie_next(trie, s, 0, n); i < n; i = tok_trie_next(trie, s, i, n)) {
        int32_t index = 0;
        size_t len = match_at(a, trie, text, i, w, &index);
        if (len == 0) {
            i++;
            continue;
        }
        const tok_added_token *k = &a->v[index];
        size_t b = i, e = i + len;
        i = e;
        if (k->special && !parse_special) continue;
        if (k->single_word && !stands_alone(s, n, b, e)) continue;
        if (k->lstrip) {
            b = spaces_before(s, b);
            if (b < done) b = done; /* the token before took those spaces */
        }
        if (k->rstrip) e = spaces_behind(s, n, e);
        if (done < b) TRY(fn(w, ctx, done, b, NULL));
        if (b < e)
            TRY(fn(w, ctx, b, e,
                   k)); /* may overlap spaces that the token before took, and end before it: as in the reference */
        done = e;
    }
    return done < n ? fn(w, ctx, done, n, NULL) : LATH_OK;
}
