/* SPDX-License-Identifier: Apache-2.0
 *
 * search_index.c: see search_index.h. A new index is written beside the old one from a mix of both sources: rows whose
 * text (by its 128-bit hash) the old one has are copied, the others embedded, and the rename ends it. Of a file that
 * only grew, the old part is not even read again for its texts: its hash says that it is the same.
 */
#include "search_index.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/hash.h"
#include "signals.h"

enum { CHUNK_TEXTS = 4096, TRIES = 3 };

void search_embed_options(const options *o, const char *prompt, lath_embed_options *out)
{
    setup_embed_options(o, out);
    out->normalize = 2;
    out->prompt_name = NULL;
    out->prompt_text = prompt;
}

/* -------------------------------------------------------------------------------------------------------------- key */

/* Everything beside model and corpus that decides the rows: written out and hashed. */
static lath_status make_key(const search_index *x, lath_index_key *key, lath_error *err)
{
    const options *o = x->o;
    buf b;
    buf_init(&b, alloc_default(), (size_t)1 << 26);
    buf_printf(
        &b, "search 1 pooling=%d dim=%lld max_len=%lld lossy=%d uncut=%d isa=%s precision=%d field=%zu:%s prompt=%zu:",
        o->pooling, (long long)o->dim, (long long)o->max_len, o->lossy, o->no_truncate, lath_runtime_isa(x->s->rt),
        o->precision, o->field ? strlen(o->field) : 0, o->field ? o->field : "", strlen(x->prompt));
    buf_str(&b, x->prompt);
    lath_status st = buf_status(&b, err);
    *key = (lath_index_key){.settings = st == LATH_OK ? hash_64(b.data, b.len) : 0, .corpus_bytes = x->corpus->bytes};
    if (st == LATH_OK) st = lath_model_get_identity(x->s->model, key->model, err);
    memcpy(key->corpus, x->corpus->hash, sizeof(key->corpus));
    buf_deinit(&b);
    return st;
}

static bool same_model(const lath_index_key *a, const lath_index_key *b)
{
    return memcmp(a->model, b->model, sizeof(a->model)) == 0;
}

/* Once an index had only the fingerprint of its model, which another one may have as well. */
static bool sampled_model(const search_index *x)
{
    return memcmp(x->info.key.model, x->model->fingerprint, sizeof(x->model->fingerprint)) == 0;
}

static bool same_corpus(const lath_index_key *a, const lath_index_key *b)
{
    return a->corpus_bytes == b->corpus_bytes && memcmp(a->corpus, b->corpus, sizeof(a->corpus)) == 0;
}

/* Its vectors are those that the model and the options make: texts that it has need not be embedded. */
static bool same_vectors(const search_index *x, const lath_index_key *key)
{
    return same_model(&x->info.key, key) && x->info.key.settings == key->settings;
}

/* --index-type asks for another type than the file has. */
static bool other_type(const search_index *x) { return x->o->index_type && x->o->index_type != (int)x->info.type; }

/* ------------------------------------------------------------------------------------------------ rows that are there */

/* Rows of the old index by the hash of their text: open addressing; a slot is row + 1, 0 when it is free. */
typedef struct row_table {
    uint64_t *slots; /* [size] */
    size_t size;     /* a power of two, 0: not made yet */
} row_table;

static lath_status row_table_fill(row_table *t, const lath_index *old, uint64_t n, lath_error *err)
{
    size_t size = 16;
    while (size < 2 * n) size *= 2;
    t->slots = alloc_array(alloc_default(), size, sizeof(*t->slots));
    if (!t->slots) return err_nomem(err, size * sizeof(*t->slots));
    t->size = size;
    for (uint64_t row = 0; row < n; row++) {
        lath_index_row r;
        TRY(lath_index_get_row(old, row, &r, err));
        size_t at = (size_t)r.text[0] & (size - 1);
        while (t->slots[at]) at = (at + 1) & (size - 1);
        t->slots[at] = row + 1;
    }
    return LATH_OK;
}

static void row_table_release(row_table *t)
{
    alloc_release(alloc_default(), t->slots, t->size * sizeof(*t->slots));
    *t = (row_table){0};
}

/* The old index while a new one is made of it. */
typedef struct old_rows {
    const lath_index *index; /* NULL: there is none */
    uint64_t n, next;        /* rows; the row that is likely to come */
    row_table table;
} old_rows;

static const uint64_t NO_ROW = UINT64_MAX;

static bool has_text(const old_rows *o, uint64_t row, const uint64_t text[2])
{
    lath_index_row r;
    return lath_index_get_row(o->index, row, &r, NULL) == LATH_OK && r.text[0] == text[0] && r.text[1] == text[1];
}

/* The row that has the text, or NO_ROW. Texts mostly stand in their old order: the next row is tried first. */
static lath_status find_row(old_rows *o, const uint64_t text[2], uint64_t *row, lath_error *err)
{
    *row = NO_ROW;
    if (!o->index || o->n == 0) return LATH_OK;
    if (o->next < o->n && has_text(o, o->next, text)) {
        *row = o->next++;
        return LATH_OK;
    }
    if (!o->table.slots) TRY(row_table_fill(&o->table, o->index, o->n, err));
    for (size_t at = (size_t)text[0] & (o->table.size - 1); o->table.slots[at]; at = (at + 1) & (o->table.size - 1)) {
        if (!has_text(o, o->table.slots[at] - 1, text)) continue;
        *row = o->table.slots[at] - 1;
        o->next = *row + 1;
        break;
    }
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------ build */

typedef struct build {
    search_index *x;
    embed_job e;
    lath_index_writer *w;
    text_source source;
    old_rows old;
    text_chunk chunk;
    text_chunk todo;      /* texts of the chunk that have to be embedded; a view of it */
    lath_index_row *rows; /* [CHUNK_TEXTS] of the chunk */
    uint64_t *from;       /* [CHUNK_TEXTS] the old row of each, or NO_ROW */
    uint64_t n_kept;
} build;

static lath_status build_arrays(build *b, lath_error *err)
{
    const lath_allocator *a = alloc_default();
    b->rows = alloc_array(a, CHUNK_TEXTS, sizeof(*b->rows));
    b->from = alloc_array(a, CHUNK_TEXTS, sizeof(*b->from));
    b->todo.texts = alloc_array(a, CHUNK_TEXTS, sizeof(*b->todo.texts));
    b->todo.places = alloc_array(a, CHUNK_TEXTS, sizeof(*b->todo.places));
    b->todo.capacity = CHUNK_TEXTS;
    if (b->rows && b->from && b->todo.texts && b->todo.places) return LATH_OK;
    return err_nomem(err, CHUNK_TEXTS * sizeof(*b->todo.places));
}

static void build_release(build *b)
{
    const lath_allocator *a = alloc_default();
    lath_index_abort(b->w);
    signals_set_temp(NULL);
    texts_close(&b->source);
    embed_job_close(&b->e);
    text_chunk_deinit(&b->chunk);
    row_table_release(&b->old.table);
    alloc_release(a, b->rows, CHUNK_TEXTS * sizeof(*b->rows));
    alloc_release(a, b->from, CHUNK_TEXTS * sizeof(*b->from));
    alloc_release(a, b->todo.texts, CHUNK_TEXTS * sizeof(*b->todo.texts));
    alloc_release(a, b->todo.places, CHUNK_TEXTS * sizeof(*b->todo.places));
}

/* Where each text of the chunk comes from, and those to embed. */
static lath_status sort_chunk(build *b, lath_error *err)
{
    const corpus *c = b->x->corpus;
    b->todo.n = 0;
    b->todo.from = b->chunk.from;
    b->todo.to = b->chunk.to;
    for (size_t i = 0; i < b->chunk.n; i++) {
        const lath_text t = b->chunk.texts[i];
        const lath_span raw = b->chunk.places[i].raw;
        const hash128 h = hash_128(t.data, t.len, 0);
        if (raw.offset + raw.len > c->bytes)
            return err_set(err, LATH_ERR_IO, "%s: changed while it was embedded", c->path);
        b->rows[i] = (lath_index_row){raw, {h.lo, h.hi}};
        TRY(find_row(&b->old, b->rows[i].text, &b->from[i], err));
        if (b->from[i] != NO_ROW) continue;
        b->todo.texts[b->todo.n] = t;
        b->todo.places[b->todo.n++] = b->chunk.places[i];
    }
    return LATH_OK;
}

/* Rows of the chunk in their order, in runs of one source. */
static lath_status write_chunk(build *b, lath_error *err)
{
    size_t embedded = 0;
    for (size_t i = 0, n; i < b->chunk.n; i += n) {
        const uint64_t row = b->from[i];
        n = 1;
        if (row != NO_ROW) {
            while (i + n < b->chunk.n && b->from[i + n] == row + n) n++;
            TRY(lath_index_copy_rows(b->w, b->old.index, row, b->rows + i, n, err));
            b->n_kept += n;
        } else {
            while (i + n < b->chunk.n && b->from[i + n] == NO_ROW) n++;
            TRY(lath_index_add_rows(b->w, b->e.vectors + embedded * (size_t)b->e.dim, b->rows + i, n, err));
            embedded += n;
        }
    }
    return LATH_OK;
}

/* Copies the rows of whole lines of a file that has only grown, and opens the source behind them. *done: it was so. */
static lath_status keep_prefix(build *b, bool *done, lath_error *err)
{
    const search_index *x = b->x;
    const options *o = x->o;
    const lath_index_key *key = &x->info.key;
    uint64_t hash[2], n = b->old.n, rest = key->corpus_bytes;
    char last;
    *done = false;
    if (!b->old.index || key->corpus_bytes > x->corpus->bytes) return LATH_OK;
    TRY(corpus_hash_prefix(x->corpus, key->corpus_bytes, hash, &last, err));
    if (memcmp(hash, key->corpus, sizeof(hash)) != 0 || n == 0) return LATH_OK;
    if (last != '\n' && key->corpus_bytes != x->corpus->bytes) { /* the last line may have grown */
        lath_span raw;
        TRY(lath_index_get_span(b->old.index, --n, &raw, err));
        rest = raw.offset;
    }
    for (uint64_t row = 0; row < n; row += CHUNK_TEXTS) {
        const size_t some = n - row < CHUNK_TEXTS ? (size_t)(n - row) : CHUNK_TEXTS;
        for (size_t i = 0; i < some; i++) TRY(lath_index_get_row(b->old.index, row + i, &b->rows[i], err));
        TRY(lath_index_copy_rows(b->w, b->old.index, row, b->rows, some, err));
        TRY(signals_check(err));
    }
    b->n_kept = b->old.next = n;
    texts_open_rest(&b->source, &x->corpus->path, o->field, o->lossy, rest, n);
    *done = true;
    return LATH_OK;
}

static lath_status write_rows(build *b, lath_error *err)
{
    const options *o = b->x->o;
    bool kept;
    TRY(keep_prefix(b, &kept, err));
    if (!kept) texts_open_file(&b->source, &b->x->corpus->path, o->field, o->lossy);
    for (;;) {
        TRY(texts_next(&b->source, &b->chunk, CHUNK_TEXTS, err));
        if (b->chunk.n == 0) break;
        TRY(sort_chunk(b, err));
        TRY(embed_job_run(&b->e, &b->todo, err));
        TRY(write_chunk(b, err));
    }
    TRY(corpus_check_unchanged(b->x->corpus, err));
    return signals_check(err);
}

static void say_built(const build *b)
{
    const embed_job *e = &b->e;
    char kept[64] = "";
    if (b->x->o->quiet) return;
    if (b->n_kept > 0) snprintf(kept, sizeof(kept), "; %llu were there already", (unsigned long long)b->n_kept);
    fprintf(stderr, "lath: indexed %llu text%s, %llu tokens in %.2f s: %.0f texts/s, %.0f tokens/s%s; kept in %s\n",
            (unsigned long long)e->n_texts, e->n_texts == 1 ? "" : "s", (unsigned long long)e->n_tokens,
            progress_seconds(&b->x->progress), e->seconds > 0 ? (double)e->n_texts / e->seconds : 0.0,
            e->seconds > 0 ? (double)e->n_tokens / e->seconds : 0.0, kept, b->x->path);
}

/* Makes the index, with what `old` has (NULL: nothing of it can be used). */
static lath_status build_index(search_index *x, const lath_index_key *key, const lath_index *old, lath_error *err)
{
    build b = {.x = x, .old = {.index = old, .n = old ? x->info.n : 0}};
    lath_index_options io = LATH_INDEX_OPTIONS_INIT;
    lath_embed_options eo;
    lath_status st;
    if (x->o->index_type)
        io.type = (lath_index_type)x->o->index_type;
    else if (x->index)
        io.type = x->info.type; /* it keeps its type when it is made again */
    text_chunk_init(&b.chunk);
    progress_init(&x->progress, "index", x->o->quiet);
    search_embed_options(x->o, x->prompt, &eo);
    TRY_DONE(build_arrays(&b, err));
    TRY_DONE(embed_job_open(&b.e, x->s, &eo, &x->progress, err));
    st = lath_index_create_with(x->s->rt, x->path, key, b.e.dim, &io, &b.w, err);
    if (st == LATH_ERR_IO && !x->o->index) err_wrap(err, st, "index (--index FILE puts it elsewhere)");
    if (st != LATH_OK) goto done;
    signals_set_temp(lath_index_temp_path(b.w));
    TRY_DONE(write_rows(&b, err));
    st = lath_index_commit(b.w, err);
    b.w = NULL;
    if (st != LATH_OK) goto done;
    progress_clear(&x->progress);
    embed_job_notes(&b.e);
    say_built(&b);
done:
    progress_clear(&x->progress);
    build_release(&b);
    return st;
}

/* ---------------------------------------------------------------------------------------------------------- provide */

static void close_index(search_index *x)
{
    signals_watch_index(NULL);
    lath_index_close(x->index);
    x->index = NULL;
}

static lath_status open_index(search_index *x, lath_error *err)
{
    x->info = (lath_index_info){.struct_size = sizeof(x->info)};
    TRY(lath_index_open(x->s->rt, x->path, LATH_LOAD_MAP, &x->index, err));
    signals_watch_index(x->index);
    return lath_index_get_info(x->index, &x->info, err);
}

lath_status search_index_advise(const search_index *x, lath_status st, lath_error *err)
{
    char why[sizeof(err->msg)];
    const size_t n = strlen(x->path);
    if (st != LATH_ERR_FORMAT || x->o->index || !err) return st;
    if (strncmp(err->msg, x->path, n) != 0 || err->msg[n] != ':') return st; /* the corpus or the model is at fault */
    snprintf(why, sizeof(why), "%s", err->msg);
    return err_set(err, st, "%s; delete it to have it made again", why);
}

static void say_again(const search_index *x, const char *why)
{
    if (!x->o->quiet) fprintf(stderr, "lath: note: %s: made again, because %s\n", x->path, why);
}

/* The file of the index that was opened (or is of an older version: `opened` false) is of another kind than is asked
 * for. CORPUS.lath is ours to make again; a file that --index names is not. */
static lath_status replace(search_index *x, bool opened, const char *what, const char *why, const lath_index_key *key,
                           lath_error *err)
{
    if (x->o->index)
        return err_set(err, LATH_ERR_FORMAT, "%s: an index of %s; delete it or name another file", x->path, what);
    say_again(x, why);
    /* f32 rows of the same model and options become another type without being computed again */
    const bool convert = opened && same_vectors(x, key) && x->info.type == LATH_INDEX_F32;
    return build_index(x, key, convert ? x->index : NULL, err);
}

/* Makes the file what it should be, from what it is. *done: it was. */
static lath_status refresh(search_index *x, const lath_index_key *key, bool *done, lath_error *err)
{
    struct stat sb;
    *done = false;
    if (stat(x->path, &sb) != 0) return build_index(x, key, NULL, err);
    const lath_status st = open_index(x, err);
    if (st == LATH_ERR_UNSUPPORTED)
        return replace(x, false, "an older version of lath", "it is of an older version", key, err);
    if (st != LATH_OK) return search_index_advise(x, st, err);
    if (sampled_model(x)) return replace(x, false, "an older version of lath", "it is of an older version", key, err);
    if (!same_model(&x->info.key, key)) return replace(x, true, "another model", "the model changed", key, err);
    if (!same_vectors(x, key))
        return replace(x, true, "other options (pooling, dim, prompt, field, ISA...)",
                       "an option that changes vectors changed", key, err);
    if (other_type(x)) return replace(x, true, "another type", "--index-type asks for another type", key, err);
    *done = same_corpus(&x->info.key, key);
    if (*done) return LATH_OK;
    if (!x->o->quiet) fprintf(stderr, "lath: note: %s: brought up to date, because the corpus changed\n", x->path);
    return search_index_advise(x, build_index(x, key, x->index, err), err);
}

/* What was made is opened by the same path as what was there: another process may have put its own in between. */
lath_status search_index_provide(search_index *x, lath_error *err)
{
    lath_index_key key;
    bool done = false;
    TRY(make_key(x, &key, err));
    for (int i = 0; i <= TRIES; i++) {
        TRY(refresh(x, &key, &done, err));
        if (done) return LATH_OK;
        close_index(x);
    }
    return err_set(err, LATH_ERR_IO, "%s: another process keeps changing it", x->path);
}

void search_index_close(search_index *x) { close_index(x); }
