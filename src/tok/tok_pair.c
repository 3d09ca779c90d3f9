/* SPDX-License-Identifier: Apache-2.0
 * tok_pair.c: one or two texts under a template, cut to a limit, with the parts that were cut off.
 *
 * Each text is encoded by itself; the limit says which ranges of its tokens become parts (the first is kept, the
 * others overflow). The template then copies ranges: an occurrence of a text in it stands for one of the parts, and
 * every combination of parts is one part of the result, in the order in which the reference (`tokenizers` 0.23:
 * truncate_encodings, Encoding::truncate, Encoding::merge_with) puts them.
 */
#include "tok/tok_parts.h"

#include "base/checked.h"

enum { MOST_PARTS = 1 << 24, MOST_TOKENS = 1 << 30 };

typedef struct range {
    size_t b, e;
} range;

/* The parts of one text: ranges of job.out->texts. v[0] is kept. */
typedef struct ranges {
    range *v;
    size_t n;
} ranges;

typedef struct job {
    const tok *t;
    arena *scratch;
    const tok_pair_options *o;
    tok_parts *out;
    const char *const *texts;
    size_t n_texts, len[2];  /* tokens of each text */
    const tok_piece *pieces; /* [n_pieces] of the template */
    size_t n_pieces, added;
    ranges parts[2];
    lath_error *err;
} job;

/* ---------------------------------------------------------------------------------------------------------- cutting */

/* How many tokens of each text stay in the first part (Encoding::truncate's max_len). limit: of both together. */
static lath_status share_limit(const job *j, size_t limit, size_t keep[2])
{
    size_t a = j->len[0], b = j->len[1], total = a + b;
    keep[0] = a;
    keep[1] = b;
    if (total <= limit) return LATH_OK;
    if (limit == 0) {
        keep[0] = keep[1] = 0;
        return LATH_OK;
    }
    if (j->o->truncation == TOK_LONGEST_FIRST && j->n_texts == 2) {
        size_t small = a < b ? a : b, big = small > limit ? small : limit - small;
        if (big < small) big = small;
        if (small + big > limit) {
            small = limit / 2;
            big = small + limit % 2;
        }
        keep[0] = a > b ? big : small;
        keep[1] = a > b ? small : big;
        return LATH_OK;
    }
    size_t which = j->o->truncation == TOK_ONLY_SECOND, remove = total - limit;
    if (which >= j->n_texts)
        return err_set(j->err, LATH_ERR_USAGE, "only the second text may be cut, and there is none");
    if (j->len[which] <= remove) {
        return err_item(j->err, LATH_ERR_WINDOW, (int64_t)which,
                        "a text of %zu tokens is too short to cut the %zu that are over the limit", j->len[which],
                        remove);
    }
    keep[which] -= remove;
    return LATH_OK;
}

/* Part i of count of n tokens, of which `keep` fit into one. */
static range range_at(const job *j, size_t i, size_t n, size_t keep)
{
    if (keep >= n) return (range){0, n};
    if (keep == 0) return (range){0, i == 0 ? 0 : n}; /* nothing is kept, all of it overflows */
    size_t done = i * (keep - (size_t)j->o->stride), len = n - done < keep ? n - done : keep;
    return j->o->cut_left ? (range){n - done - len, n - done} : (range){done, done + len};
}

/* Cuts a text, whose tokens begin at `first`, into parts of `keep`, from the side that is kept. */
static lath_status cut(job *j, size_t which, size_t first, size_t keep)
{
    size_t n = j->len[which], stride = (size_t)j->o->stride, count = 1;
    if (keep == 0 && n > 0) count = 2;
    if (keep > 0 && keep < n) {
        if (stride >= keep) {
            return err_set(j->err, LATH_ERR_USAGE, "a stride of %zu tokens leaves nothing new in parts of %zu", stride,
                           keep);
        }
        count = 1 + (n - keep + (keep - stride) - 1) / (keep - stride);
    }
    if (j->o->first_only) count = 1;
    if (count > MOST_PARTS) return err_set(j->err, LATH_ERR_LIMIT, "%zu parts of a text are too many", count);
    range *v = arena_array(j->scratch, count, sizeof(*v));
    if (!v) return err_nomem(j->err, count * sizeof(*v));
    for (size_t i = 0; i < count; i++) {
        v[i] = range_at(j, i, n, keep);
        v[i].b += first;
        v[i].e += first;
    }
    j->parts[which] = (ranges){v, count};
    return LATH_OK;
}

/* -------------------------------------------------------------------------------------------------- parts of the whole */

/* rows: [n][n_slots] which part of its text each occurrence of a text has. */
typedef struct combos {
    uint32_t *rows;
    size_t n, n_slots;
} combos;

static size_t text_of_piece(const tok_piece *p) { return p->sequence == 'B'; }

/* All combinations but the one of first parts, in the reference's order: merging one more text that has the parts 0..n
 * gives every row so far with each of them, and then the first parts with 1..n. */
static lath_status combine(const job *j, combos *out)
{
    size_t slots = 0, filled = 0, room = 1, bytes;
    for (size_t i = 0; i < j->n_pieces; i++) {
        if (!j->pieces[i].sequence) continue;
        slots++;
        if (!size_mul(room, j->parts[text_of_piece(&j->pieces[i])].n, &room) || room > MOST_PARTS)
            return err_set(j->err, LATH_ERR_LIMIT, "the texts have too many combinations of parts");
    }
    *out = (combos){.n = 0, .n_slots = slots};
    if (!size_mul(room, slots ? slots : 1, &bytes) || bytes > MOST_TOKENS)
        return err_set(j->err, LATH_ERR_LIMIT, "the texts have too many combinations of parts");
    uint32_t *rows = arena_array(j->scratch, bytes, sizeof(*rows)),
             *next = arena_array(j->scratch, bytes, sizeof(*next));
    if (!rows || !next) return err_nomem(j->err, bytes * sizeof(*rows));
    for (size_t i = 0; i < j->n_pieces; i++) {
        if (!j->pieces[i].sequence) continue;
        size_t n_parts = j->parts[text_of_piece(&j->pieces[i])].n, n = 0;
        for (size_t r = 0; r <= out->n; r++) {
            bool first = r == out->n; /* the row of first parts */
            for (size_t p = first; p < n_parts; p++, n++) {
                if (first)
                    memset(next + n * slots, 0, slots * sizeof(*next));
                else
                    memcpy(next + n * slots, rows + r * slots, slots * sizeof(*next));
                next[n * slots + filled] = (uint32_t)p;
            }
        }
        filled++;
        uint32_t *swap = rows;
        rows = next;
        next = swap;
        out->n = n;
    }
    out->rows = rows;
    return LATH_OK;
}

static lath_status grow_marks(tok_parts *out, const lath_allocator *alloc, size_t n, lath_error *err)
{
    if (n <= out->cap_marks) return LATH_OK;
    uint8_t *mask = alloc_bytes(alloc, n, 1);
    int8_t *source = alloc_bytes(alloc, n, 1);
    if (!mask || !source) {
        alloc_release(alloc, mask, n);
        alloc_release(alloc, source, n);
        return err_nomem(err, 2 * n);
    }
    alloc_release(alloc, out->special_mask, out->cap_marks);
    alloc_release(alloc, out->source, out->cap_marks);
    out->special_mask = mask;
    out->source = source;
    out->cap_marks = n;
    return LATH_OK;
}

/* Room for n tokens in n_parts parts. */
static lath_status reserve(const job *j, size_t n, size_t n_parts)
{
    const lath_allocator *alloc = j->t->alloc;
    tok_parts *out = j->out;
    out->e.n = 0;
    if (n > out->e.capacity) TRY(tok_encoding_grow(alloc, &out->e, n, j->err));
    TRY(grow_marks(out, alloc, n, j->err));
    if (n_parts + 1 <= out->cap_begin) return LATH_OK;
    size_t *begin = alloc_array(alloc, n_parts + 1, sizeof(*begin));
    if (!begin) return err_nomem(j->err, (n_parts + 1) * sizeof(*begin));
    alloc_release(alloc, out->begin, out->cap_begin * sizeof(*begin));
    out->begin = begin;
    out->cap_begin = n_parts + 1;
    return LATH_OK;
}

/* Tokens of the parts in all; the first part's row is NULL. */
static size_t count_tokens(const job *j, const uint32_t *row)
{
    size_t n = j->added, slot = 0;
    for (size_t i = 0; i < j->n_pieces; i++) {
        if (!j->pieces[i].sequence) continue;
        const range *r = &j->parts[text_of_piece(&j->pieces[i])].v[row ? row[slot] : 0];
        n += r->e - r->b;
        slot++;
    }
    return n;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

static void put_tokens(tok_parts *out, const tok_piece *p)
{
    for (size_t i = 0; i < p->n_ids; i++) {
        size_t k = out->e.n++;
        out->e.ids[k] = p->ids[i];
        out->e.type_ids[k] = p->type_id;
        out->e.offsets[2 * k] = out->e.offsets[2 * k + 1] = 0;
        out->special_mask[k] = 1;
        out->source[k] = -1;
    }
}

static void put_range(const job *j, range r, size_t which, int32_t type_id)
{
    tok_parts *out = j->out;
    size_t k = out->e.n, n = r.e - r.b;
    if (n == 0) return;
    memcpy(out->e.ids + k, out->texts.ids + r.b, n * sizeof(*out->e.ids));
    memcpy(out->e.offsets + 2 * k, out->texts.offsets + 2 * r.b, 2 * n * sizeof(*out->e.offsets));
    for (size_t i = 0; i < n; i++) out->e.type_ids[k + i] = type_id;
    memset(out->special_mask + k, 0, n);
    memset(out->source + k, (int)which, n);
    if (j->t->template.trim) tok_trim_offsets(j->t, j->texts[which], &out->texts, r.b, out->e.offsets + 2 * k, n);
    out->e.n = k + n;
}

/* One part of the result. The reference gives type ids of the template to the first part of a text only; the others
 * keep what they were encoded with: 0 for the first text, 1 for the second. */
static void put_part(const job *j, const uint32_t *row)
{
    const tok_template *t = &j->t->template;
    bool types_of_first = j->o->add_special || t->types_always, types_of_rest = j->o->add_special && t->types_of_rest;
    size_t slot = 0;
    j->out->begin[j->out->n_parts++] = j->out->e.n;
    for (size_t i = 0; i < j->n_pieces; i++) {
        const tok_piece *p = &j->pieces[i];
        if (!p->sequence) {
            if (j->o->add_special) put_tokens(j->out, p);
            continue;
        }
        size_t which = text_of_piece(p), part = row ? row[slot] : 0;
        bool types = part == 0 ? types_of_first : types_of_rest;
        put_range(j, j->parts[which].v[part], which, types ? p->type_id : (int32_t)which);
        slot++;
    }
}

static lath_status put_parts(const job *j)
{
    combos c = {0};
    TRY(combine(j, &c));
    size_t n = count_tokens(j, NULL);
    for (size_t r = 0; r < c.n && n <= MOST_TOKENS; r++) n += count_tokens(j, c.rows + r * c.n_slots);
    if (n > MOST_TOKENS) return err_set(j->err, LATH_ERR_LIMIT, "the parts have more than %d tokens", (int)MOST_TOKENS);
    TRY(reserve(j, n, c.n + 1));
    j->out->n_parts = 0;
    put_part(j, NULL);
    for (size_t r = 0; r < c.n; r++) put_part(j, c.rows + r * c.n_slots);
    j->out->begin[j->out->n_parts] = j->out->e.n;
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------- call */

static const tok_piece only_texts[2] = {{.sequence = 'A'}, {.sequence = 'B', .type_id = 1}};

static void choose_template(job *j)
{
    const tok_template *t = &j->t->template;
    bool pair = j->n_texts == 2;
    j->pieces = pair ? t->pair : t->single;
    j->n_pieces = pair ? t->n_pair : t->n_single;
    j->added = !j->o->add_special ? 0 : pair ? t->n_added_pair : t->n_added;
    if (j->pieces) return;
    j->pieces = only_texts;
    j->n_pieces = j->n_texts;
    j->added = 0;
}

static lath_status check_options(const job *j)
{
    const tok_pair_options *o = j->o;
    if (o->max_tokens < 0 || (o->max_tokens > 0 && (uint64_t)o->max_tokens < j->added)) {
        return err_set(j->err, LATH_ERR_USAGE, "a limit of %lld tokens is less than the %zu of the template",
                       (long long)o->max_tokens, j->added);
    }
    /* Refused beforehand, whether or not this text is cut; by the template of a single text, as the reference does. */
    int64_t room = o->max_tokens - (int64_t)j->t->template.n_added;
    if (o->max_tokens > 0 && o->stride > 0 && room >= 0 && o->stride > room) {
        return err_set(j->err, LATH_ERR_USAGE, "a stride of %lld tokens leaves nothing new under a limit of %lld",
                       (long long)o->stride, (long long)o->max_tokens);
    }
    if (o->stride < 0) return err_set(j->err, LATH_ERR_USAGE, "a stride of %lld tokens", (long long)o->stride);
    return LATH_OK;
}

static lath_status encode_texts(job *j, const size_t *lens)
{
    tok_encoding *e = &j->out->texts;
    e->n = 0;
    for (size_t i = 0; i < j->n_texts; i++) {
        size_t before = e->n;
        lath_status st = tok_check_text(j->texts[i], lens[i], j->err);
        const tok_special special = {.parse = j->o->parse_special};
        if (st == LATH_OK) st = tok_encode_text(j->t, j->scratch, j->texts[i], lens[i], special, e, j->err);
        if (st != LATH_OK) {
            if (j->err) j->err->item = (int64_t)i;
            return st;
        }
        j->len[i] = e->n - before;
    }
    return LATH_OK;
}

lath_status tok_encode_parts(const tok *t, arena *scratch, const char *const *texts, const size_t *lens, size_t n_texts,
                             const tok_pair_options *opts, tok_parts *out, lath_error *err)
{
    job j = {.t = t, .scratch = scratch, .o = opts, .out = out, .texts = texts, .n_texts = n_texts, .err = err};
    size_t keep[2], whole;
    out->e.n = out->e.n_untruncated = out->n_parts = 0;
    choose_template(&j);
    TRY(check_options(&j));
    TRY(encode_texts(&j, lens));
    whole = j.added;
    for (size_t i = 0; i < j.n_pieces; i++) {
        if (j.pieces[i].sequence) whole += j.len[text_of_piece(&j.pieces[i])];
    }
    TRY(share_limit(&j, opts->max_tokens > 0 ? (size_t)opts->max_tokens - j.added : SIZE_MAX, keep));
    TRY(cut(&j, 0, 0, keep[0]));
    TRY(cut(&j, 1, j.len[0], keep[1]));
    TRY(put_parts(&j));
    out->e.n_untruncated = whole;
    return LATH_OK;
}

void tok_parts_release(const tok *t, tok_parts *p)
{
    tok_encoding_release(t, &p->e);
    tok_encoding_release(t, &p->texts);
    alloc_release(t->alloc, p->special_mask, p->cap_marks);
    alloc_release(t->alloc, p->source, p->cap_marks);
    alloc_release(t->alloc, p->begin, p->cap_begin * sizeof(*p->begin));
    *p = (tok_parts){0};
}
