/* SPDX-License-Identifier: Apache-2.0
 * tok_stream.c: decoding while ids arrive. What comes out in all is what tok_decode gives for all ids.
 *
 * The decoder of the file becomes a row of stages. A token goes through it as events: pieces of its text, the last of
 * them marked; a stage passes on what later tokens cannot change and holds the rest. Stages that fuse all tokens into
 * one (ByteLevel, Fuse) pass pieces of a token that ends with the stream. Pieces are whole characters.
 *
 *     id -> text --event--> [Replace] --event--> [ByteFallback] --event--> [Fuse] --event--> [Strip] -> out
 *
 * The one place where the stream can differ: a run of byte tokens (ByteFallback) is text or U+FFFD as a whole in the
 * reference, and characters of a run are passed on before it ends.
 */
#include "tok/tok_parts.h"

#include "base/utf8.h"

enum { HELD_MOST = 1 << 30, STAGES_MOST = 1 << 10 };

static const char replacement[] = "\xEF\xBF\xBD";

typedef struct stage {
    const tok_decoder *d; /* NULL: no decoder, tokens are joined by a space */
    tok_stream_kind kind;
    bool any;        /* there was a token */
    buf part;        /* the token in hand, where a stage wants it whole */
    buf held;        /* text or bytes that cannot go on yet. PREVIOUS: the token before */
    size_t sent;     /* LAST: bytes of the held token's output that went on. BYTE_FALLBACK: of the run in hand */
    size_t stripped; /* STRIP: characters dropped at the beginning; SIZE_MAX: the beginning is over */
    bool bad;        /* BYTE_FALLBACK: the run in hand is not UTF-8 */
} stage;

struct tok_stream {
    const tok *t;
    bool skip_special, failed;
    arena mem;     /* the stages */
    arena scratch; /* of one event */
    stage *stages; /* [n] */
    size_t n;
    buf *out; /* of the call */
    lath_error *err;
};

static lath_status feed(tok_stream *s, size_t at, const char *text, size_t n, bool end);

/* ------------------------------------------------------------------------------------------------- tokens as a whole */

static lath_status run_two(tok_stream *s, const stage *g, tok_string a, tok_string b, size_t count, tok_string out[2],
                           size_t *n_out)
{
    out[0] = a;
    out[1] = b;
    *n_out = count;
    return g->d->run(g->d, &s->scratch, out, n_out, s->err);
}

static lath_status each_token(tok_stream *s, size_t at, tok_string token, bool first)
{
    static const tok_string none = {"", 0};
    tok_string v[2];
    size_t n;
    TRY(run_two(s, &s->stages[at], first ? token : none, token, first ? 1 : 2, v, &n));
    if (n == 0) return LATH_OK;
    return feed(s, at + 1, v[n - 1].s, v[n - 1].n, true);
}

/* What the token adds to what the one before gave alone. */
static lath_status token_behind(tok_stream *s, size_t at, tok_string token, bool first)
{
    stage *g = &s->stages[at];
    tok_string v[2], before = {g->held.data ? g->held.data : "", g->held.len};
    size_t n, skip = 0;
    if (!first) {
        TRY(run_two(s, g, before, before, 1, v, &skip));
        TRY(run_two(s, g, before, token, 2, v, &n));
    } else {
        TRY(run_two(s, g, token, token, 1, v, &n));
    }
    for (size_t i = skip; i < n; i++) TRY(feed(s, at + 1, v[i].s, v[i].n, true));
    buf_clear(&g->held);
    buf_append(&g->held, token.s, token.n);
    return buf_status(&g->held, s->err);
}

static size_t common_prefix(tok_string a, tok_string b)
{
    size_t n = a.n < b.n ? a.n : b.n, i = 0;
    while (i < n && a.s[i] == b.s[i]) i++;
    while (i > 0 && i < n && ((uint8_t)a.s[i] & 0xC0) == 0x80) i--;
    return i;
}

/* The held token's output is known up to where being the last one changes it. */
static lath_status send_certain(tok_stream *s, size_t at)
{
    stage *g = &s->stages[at];
    tok_string held = {g->held.data ? g->held.data : "", g->held.len}, inner[2], last[2];
    size_t n;
    TRY(run_two(s, g, held, held, 2, inner, &n));
    TRY(run_two(s, g, held, held, 1, last, &n));
    g->sent = common_prefix(inner[0], last[0]);
    return g->sent ? feed(s, at + 1, inner[0].s, g->sent, false) : LATH_OK;
}

static lath_status send_held(tok_stream *s, size_t at, bool last)
{
    stage *g = &s->stages[at];
    tok_string held = {g->held.data ? g->held.data : "", g->held.len}, v[2];
    size_t n;
    TRY(run_two(s, g, held, held, last ? 1 : 2, v, &n));
    return feed(s, at + 1, v[0].s + g->sent, v[0].n - g->sent, true);
}

static lath_status token_if_last(tok_stream *s, size_t at, tok_string token, bool first)
{
    stage *g = &s->stages[at];
    if (!first) TRY(send_held(s, at, false));
    buf_clear(&g->held);
    buf_append(&g->held, token.s, token.n);
    TRY(buf_status(&g->held, s->err));
    return send_certain(s, at);
}

/* ----------------------------------------------------------------------------------------------------- bytes to text */

/* The bytes at the end of a text that may still become a character. */
static size_t open_tail(const char *text, size_t n)
{
    for (size_t k = 1; k <= 3 && k <= n; k++) {
        uint8_t lead = (uint8_t)text[n - k];
        if ((lead & 0xC0) == 0x80) continue;
        size_t want = lead >= 0xF0 && lead <= 0xF4 ? 4 : lead >= 0xE0 ? 3 : 2;
        if (lead < 0xC2 || lead > 0xF4 || want <= k) return 0;
        if (k == 1) return k;
        uint8_t second = (uint8_t)text[n - k + 1];
        uint8_t lo = lead == 0xE0   ? 0xA0
                     : lead == 0xF0 ? 0x90
                                    : 0x80,
                hi = lead == 0xED   ? 0x9F
                     : lead == 0xF4 ? 0x8F
                                    : 0xBF;
        return second >= lo && second <= hi ? k : 0;
    }
    return 0;
}

/* Bytes of all tokens are one text, in which what is not UTF-8 becomes U+FFFD. held: the tail that is open. */
static lath_status send_bytes(tok_stream *s, size_t at, const char *bytes, size_t n)
{
    stage *g = &s->stages[at];
    buf text;
    lath_status st;
    buf_append(&g->held, bytes, n);
    TRY(buf_status(&g->held, s->err));
    size_t tail = open_tail(g->held.data, g->held.len), whole = g->held.len - tail;
    if (whole == 0) return LATH_OK;
    buf_init(&text, s->t->alloc, HELD_MOST);
    utf8_append_lossy(&text, g->held.data, whole);
    st = buf_status(&text, s->err);
    memmove(g->held.data, g->held.data + whole, tail);
    g->held.len = tail;
    if (st == LATH_OK) st = feed(s, at + 1, text.data, text.len, false);
    buf_deinit(&text);
    return st;
}

/* The byte that a character of the byte-level alphabet (GPT-2) stands for, -1 for others: printable Latin-1 stands for
 * itself, U+0100.. for the rest in order. */
static int byte_of_char(uint32_t c)
{
    if ((c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xFF && c != 0xAD)) return (int)c;
    if (c < 0x100 || c > 0x143) return -1;
    c -= 0x100;
    return (int)(c <= 0x20 ? c : c == 0x21 ? 0x7F : c <= 0x42 ? c - 0x22 + 0x80 : 0xAD);
}

/* A token with a character of another alphabet is text as it is. */
static lath_status byte_level_token(tok_stream *s, size_t at, tok_string token)
{
    char *bytes = arena_bytes(&s->scratch, token.n + 1, 1);
    size_t n = 0;
    if (!bytes) return err_nomem(s->err, token.n + 1);
    for (size_t i = 0; i < token.n;) {
        uint32_t c = 0;
        size_t len = utf8_decode(token.s + i, token.n - i, &c);
        int byte = len ? byte_of_char(c) : -1;
        if (byte < 0) return send_bytes(s, at, token.s, token.n);
        bytes[n++] = (char)byte;
        i += len;
    }
    return send_bytes(s, at, bytes, n);
}

/* The bytes of a run that did not go on become U+FFFD, one for each; a part that went on is a token of its own. */
static lath_status give_up_run(tok_stream *s, size_t at)
{
    stage *g = &s->stages[at];
    if (g->sent) TRY(feed(s, at + 1, "", 0, true));
    for (size_t i = 0; i < g->held.len; i++) TRY(feed(s, at + 1, replacement, 3, true));
    buf_clear(&g->held);
    g->sent = 0;
    return LATH_OK;
}

static lath_status end_run(tok_stream *s, size_t at)
{
    TRY(give_up_run(s, at));
    s->stages[at].bad = false;
    return LATH_OK;
}

static lath_status run_byte(tok_stream *s, size_t at, uint8_t byte)
{
    stage *g = &s->stages[at];
    buf_char(&g->held, (char)byte);
    TRY(buf_status(&g->held, s->err));
    size_t n = g->held.len;
    if (!g->bad && open_tail(g->held.data, n) == n) return LATH_OK;
    if (g->bad || utf8_first_invalid(g->held.data, n) < n) {
        g->bad = true;
        return give_up_run(s, at);
    }
    TRY(feed(s, at + 1, g->held.data, n, false));
    g->sent += n;
    buf_clear(&g->held);
    return LATH_OK;
}

static lath_status byte_fallback_token(tok_stream *s, size_t at, tok_string token)
{
    int byte = tok_decoder_byte(token);
    if (byte >= 0) return run_byte(s, at, (uint8_t)byte);
    TRY(end_run(s, at));
    return feed(s, at + 1, token.s, token.n, true);
}

/* ------------------------------------------------------------------------------------------------------------- strip */

/* Piece by piece, because what follows Fuse is one long token. held: characters that are dropped if the token ends. */
static lath_status strip_piece(tok_stream *s, size_t at, const char *text, size_t n, bool end)
{
    stage *g = &s->stages[at];
    tok_string c = g->d->strip.content;
    size_t b = 0;
    while (g->stripped < g->d->strip.start && n - b >= c.n && memcmp(text + b, c.s, c.n) == 0) {
        b += c.n;
        g->stripped++;
    }
    if (b < n) g->stripped = SIZE_MAX;
    size_t e = n, most = g->d->strip.stop, tail = 0; /* characters at the end of the piece */
    while (tail < most && e - b >= c.n && memcmp(text + e - c.n, c.s, c.n) == 0) {
        e -= c.n;
        tail++;
    }
    size_t held = g->held.len / c.n, keep = 0; /* of those held, how many stay so */
    if (b == e) keep = held + tail <= most ? held : most - tail;
    if (held > keep) TRY(feed(s, at + 1, g->held.data, (held - keep) * c.n, false));
    g->held.len = keep * c.n;
    if (b < e) TRY(feed(s, at + 1, text + b, e - b, false));
    for (size_t i = 0; i < tail; i++) buf_append(&g->held, c.s, c.n);
    TRY(buf_status(&g->held, s->err));
    if (!end) return LATH_OK;
    g->stripped = 0;
    buf_clear(&g->held);
    return feed(s, at + 1, "", 0, true);
}

/* ------------------------------------------------------------------------------------------------------------ stages */

static lath_status whole_token(tok_stream *s, size_t at, tok_string token)
{
    stage *g = &s->stages[at];
    bool first = !g->any;
    g->any = true;
    if (g->kind == TOK_STREAM_PREVIOUS) return token_behind(s, at, token, first);
    if (g->kind == TOK_STREAM_LAST) return token_if_last(s, at, token, first);
    if (g->kind == TOK_STREAM_BYTE_LEVEL) return byte_level_token(s, at, token);
    if (g->kind == TOK_STREAM_BYTE_FALLBACK) return byte_fallback_token(s, at, token);
    return each_token(s, at, token, first);
}

/* Tokens as a whole, put together from their pieces. */
static lath_status collect(tok_stream *s, size_t at, const char *text, size_t n, bool end)
{
    stage *g = &s->stages[at];
    if (end && g->part.len == 0) return whole_token(s, at, (tok_string){text, n});
    buf_append(&g->part, text, n);
    TRY(buf_status(&g->part, s->err));
    if (!end) return LATH_OK;
    lath_status st = whole_token(s, at, (tok_string){g->part.data, g->part.len});
    buf_clear(&g->part);
    return st;
}

/* An event for stage `at`; behind the last one is the output. */
static lath_status feed(tok_stream *s, size_t at, const char *text, size_t n, bool end)
{
    if (at == s->n) {
        buf_append(s->out, text, n);
        return LATH_OK;
    }
    stage *g = &s->stages[at];
    if (g->kind == TOK_STREAM_FUSE) return n ? feed(s, at + 1, text, n, false) : LATH_OK;
    if (g->kind == TOK_STREAM_STRIP) return strip_piece(s, at, text, n, end);
    if (g->d) return collect(s, at, text, n, end);
    if (g->any) TRY(feed(s, at + 1, " ", 1, false));
    g->any = true;
    return feed(s, at + 1, text, n, end);
}

/* No more tokens for stage `at`. */
static lath_status finish_stage(tok_stream *s, size_t at)
{
    stage *g = &s->stages[at];
    switch (g->kind) {
    case TOK_STREAM_BYTE_LEVEL:
        if (g->held.len) TRY(feed(s, at + 1, replacement, 3, false));
        return feed(s, at + 1, "", 0, true);
    case TOK_STREAM_FUSE: return feed(s, at + 1, "", 0, true);
    case TOK_STREAM_BYTE_FALLBACK: return end_run(s, at);
    case TOK_STREAM_LAST: return g->any ? send_held(s, at, true) : LATH_OK;
    default: return LATH_OK;
    }
}

static void reset(stage *g)
{
    buf_clear(&g->part);
    buf_clear(&g->held);
    g->any = g->bad = false;
    g->sent = g->stripped = 0;
}

/* ------------------------------------------------------------------------------------------------------------- calls */

static size_t count_stages(const tok_decoder *d)
{
    size_t n = 0;
    if (d->stream != TOK_STREAM_SEQUENCE) return 1;
    for (size_t i = 0; i < d->n_items; i++) n += count_stages(&d->items[i]);
    return n;
}

static void add_stages(tok_stream *s, const tok_decoder *d)
{
    if (d->stream == TOK_STREAM_SEQUENCE) {
        for (size_t i = 0; i < d->n_items; i++) add_stages(s, &d->items[i]);
        return;
    }
    stage *g = &s->stages[s->n++];
    *g = (stage){.d = d->run ? d : NULL, .kind = d->stream};
    buf_init(&g->part, s->t->alloc, HELD_MOST);
    buf_init(&g->held, s->t->alloc, HELD_MOST);
}

lath_status tok_stream_create(const tok *t, bool skip_special, tok_stream **out, lath_error *err)
{
    tok_stream *s = alloc_zero(t->alloc, sizeof(*s));
    *out = NULL;
    if (!s) return err_nomem(err, sizeof(*s));
    s->t = t;
    s->skip_special = skip_special;
    arena_init(&s->mem, t->alloc);
    arena_init(&s->scratch, t->alloc);
    size_t n = count_stages(&t->decoder);
    s->stages = arena_array(&s->mem, n ? n : 1, sizeof(*s->stages));
    if (!s->stages) {
        tok_stream_destroy(s);
        return err_nomem(err, n * sizeof(*s->stages));
    }
    add_stages(s, &t->decoder);
    *out = s;
    return LATH_OK;
}

void tok_stream_destroy(tok_stream *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n; i++) {
        buf_deinit(&s->stages[i].part);
        buf_deinit(&s->stages[i].held);
    }
    arena_deinit(&s->scratch);
    arena_deinit(&s->mem);
    alloc_release(s->t->alloc, s, sizeof(*s));
}

static lath_status begin(tok_stream *s, buf *out, lath_error *err)
{
    if (s->failed) return err_set(err, LATH_ERR_USAGE, "the decoder failed before");
    s->out = out;
    s->err = err;
    return LATH_OK;
}

static lath_status end(tok_stream *s, lath_status st)
{
    if (st == LATH_OK) st = buf_status(s->out, s->err);
    s->failed = st != LATH_OK;
    arena_reset(&s->scratch);
    return st;
}

lath_status tok_stream_push(tok_stream *s, const int32_t *ids, size_t n, buf *out, lath_error *err)
{
    lath_status st = begin(s, out, err);
    if (st != LATH_OK) return st;
    for (size_t i = 0; i < n; i++) {
        if (!tok_vocab_get(&s->t->vocab, ids[i], NULL))
            return err_set(err, LATH_ERR_INPUT, "id %d (position %zu) is no token", (int)ids[i], i);
    }
    for (size_t i = 0; i < n && st == LATH_OK; i++) {
        tok_string token = tok_decoder_text(s->t, ids[i]);
        if (s->skip_special && map_find(&s->t->added.special, token.s, token.n, NULL)) continue;
        st = feed(s, 0, token.s, token.n, true);
    }
    return end(s, st);
}

lath_status tok_stream_finish(tok_stream *s, buf *out, lath_error *err)
{
    lath_status st = begin(s, out, err);
    if (st != LATH_OK) return st;
    for (size_t i = 0; i < s->n && st == LATH_OK; i++) st = finish_stage(s, i);
    for (size_t i = 0; i < s->n; i++) reset(&s->stages[i]);
    return end(s, st);
}
