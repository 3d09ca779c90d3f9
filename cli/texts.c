/* SPDX-License-Identifier: Apache-2.0
 *
 * texts.c: see texts.h. Input is read with read(2), not stdio: a read that a signal interrupts has to look at the flag,
 * and a pipe that pauses should have its finished lines worked on meanwhile. A chunk holds copies of its texts, because
 * the read buffer moves on.
 */
#include "texts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"
#include "signals.h"

static const size_t READ_BYTES = (size_t)256 << 10;
static const size_t CHUNK_BYTES = (size_t)4 << 20; /* of text: a chunk ends when it has more */
static const size_t LINE_CEILING = (size_t)1 << 30;
enum { PAUSE_MS = 20 };

/* ----------------------------------------------------------------------------------------------- a line to its text */

void text_decoder_init(text_decoder *d, const char *field, bool lossy)
{
    *d = (text_decoder){.field = field, .lossy = lossy};
    arena_init(&d->scratch, alloc_default());
    buf_init(&d->fixed, alloc_default(), 4 * LINE_CEILING);
}

void text_decoder_deinit(text_decoder *d)
{
    if (d->fixed.alloc) buf_deinit(&d->fixed);
    if (d->scratch.alloc) arena_deinit(&d->scratch);
    *d = (text_decoder){0};
}

static lath_status check_utf8(const char *s, size_t n, lath_error *err)
{
    const size_t at = utf8_first_invalid(s, n);
    if (at == n) return LATH_OK;
    return err_set(err, LATH_ERR_INPUT, "not valid UTF-8 at byte %zu (--lossy replaces it)", at + 1);
}

/* The code unit of \uXXXX at s, or -1. */
static int32_t escape_unit(const char *s, size_t n)
{
    int32_t v = 0;
    if (n < 6 || s[0] != '\\' || s[1] != 'u') return -1;
    for (size_t i = 2; i < 6; i++) {
        const char c = s[i];
        const int32_t digit = c >= '0' && c <= '9'   ? c - '0'
                              : c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                     : -1;
        if (digit < 0) return -1;
        v = v * 16 + digit;
    }
    return v;
}

/* Offset of the first \u escape at or behind `at` that is half a surrogate pair, n when there is none. A backslash is
 * only met inside strings. */
static size_t lone_surrogate(const char *s, size_t n, size_t at)
{
    while (at < n) {
        const char *p = memchr(s + at, '\\', n - at);
        if (!p) break;
        at = (size_t)(p - s);
        const int32_t unit = escape_unit(p, n - at);
        if (unit < 0xD800 || unit > 0xDFFF) {
            at += unit < 0 ? 2 : 6;
            continue;
        }
        const int32_t low = unit < 0xDC00 ? escape_unit(p + 6, n - at - 6) : -1;
        if (low < 0xDC00 || low > 0xDFFF) return at;
        at += 12;
    }
    return n;
}

static bool is_blank(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] != ' ' && s[i] != '\t' && s[i] != '\r') return false;
    }
    return true;
}

/* Replaces invalid bytes and lone surrogate escapes; *line and *len then point into d->fixed. */
static lath_status repair(text_decoder *d, const char **line, size_t *len, lath_error *err)
{
    buf_clear(&d->fixed);
    utf8_append_lossy(&d->fixed, *line, *len);
    TRY(buf_status(&d->fixed, err));
    for (size_t at = 0; d->field && (at = lone_surrogate(d->fixed.data, d->fixed.len, at)) < d->fixed.len; at += 6)
        memcpy(d->fixed.data + at, "\\ufffd", 6);
    *line = d->fixed.data;
    *len = d->fixed.len;
    return LATH_OK;
}

/* json_parse names its text and a line inside it; here the text is one line of a file, which the caller names. */
static lath_status parse_line(text_decoder *d, const char *line, size_t len, json_value **out, lath_error *err)
{
    static const char lead[] = "JSON: line 1: ";
    const json_options limits = {.max_bytes = LINE_CEILING, .max_depth = 256};
    const lath_status st = json_parse(&d->scratch, "JSON", line, len, &limits, out, err);
    if (st != LATH_OK && err && strncmp(err->msg, lead, sizeof(lead) - 1) == 0)
        memmove(err->msg, err->msg + sizeof(lead) - 1, strlen(err->msg) - (sizeof(lead) - 1) + 1);
    return st;
}

static lath_status parse_record(text_decoder *d, const char *line, size_t len, json_value **root, lath_error *err)
{
    const size_t half = lone_surrogate(line, len, 0);
    if (half < len)
        return err_set(err, LATH_ERR_INPUT, "%.6s at byte %zu is half a surrogate pair (--lossy replaces it)",
                       line + half, half + 1);
    arena_reset(&d->scratch);
    TRY(parse_line(d, line, len, root, err));
    return (*root)->kind == JSON_OBJECT ? LATH_OK : err_set(err, LATH_ERR_FORMAT, "want a JSON object");
}

static lath_status decode_field(text_decoder *d, const char *line, size_t len, buf *out, lath_error *err)
{
    json_value *root;
    if (is_blank(line, len)) return LATH_OK;
    TRY(parse_record(d, line, len, &root, err));
    const json_value *v = json_get(root, d->field);
    if (!v) return err_set(err, LATH_ERR_INPUT, "no field \"%s\"", d->field);
    if (v->kind != JSON_STRING) return err_set(err, LATH_ERR_INPUT, "field \"%s\": want a string", d->field);
    buf_append(out, v->u.string.data, v->u.string.len);
    return buf_status(out, err);
}

/* The line as it is valid, or the refusal. */
static lath_status valid_line(text_decoder *d, const char **line, size_t *len, lath_error *err)
{
    return d->lossy ? repair(d, line, len, err) : check_utf8(*line, *len, err);
}

lath_status text_record(text_decoder *d, const char *line, size_t line_len, const json_value **root, const char **json,
                        size_t *len, lath_error *err)
{
    json_value *v;
    *root = NULL;
    *json = "";
    *len = 0;
    if (is_blank(line, line_len)) return LATH_OK;
    TRY(valid_line(d, &line, &line_len, err));
    TRY(parse_record(d, line, line_len, &v, err));
    while (is_blank(line, 1)) line++, line_len--;
    while (is_blank(line + line_len - 1, 1)) line_len--;
    *root = v;
    *json = line;
    *len = line_len;
    return LATH_OK;
}

lath_status text_decode(text_decoder *d, const char *line, size_t len, buf *out, lath_error *err)
{
    if (len == 0) return LATH_OK;
    TRY(valid_line(d, &line, &len, err));
    if (d->field) return decode_field(d, line, len, out, err);
    buf_append(out, line, len);
    return buf_status(out, err);
}

/* ------------------------------------------------------------------------------------------------------------ chunk */

void text_chunk_init(text_chunk *c)
{
    *c = (text_chunk){0};
    buf_init(&c->bytes, alloc_default(), 8 * LINE_CEILING);
}

static void release_arrays(text_chunk *c)
{
    const lath_allocator *a = alloc_default();
    alloc_release(a, c->texts, c->capacity * sizeof(*c->texts));
    alloc_release(a, c->places, c->capacity * sizeof(*c->places));
    c->texts = NULL;
    c->places = NULL;
}

void text_chunk_deinit(text_chunk *c)
{
    release_arrays(c);
    if (c->bytes.alloc) buf_deinit(&c->bytes);
    *c = (text_chunk){0};
}

/* Room for one more text. */
static lath_status chunk_room(text_chunk *c, lath_error *err)
{
    const lath_allocator *a = alloc_default();
    if (c->n < c->capacity) return LATH_OK;
    text_chunk grown = {.capacity = c->capacity ? 2 * c->capacity : 64};
    grown.texts = alloc_array(a, grown.capacity, sizeof(*grown.texts));
    grown.places = alloc_array(a, grown.capacity, sizeof(*grown.places));
    if (!grown.texts || !grown.places) {
        release_arrays(&grown);
        return err_nomem(err, grown.capacity * sizeof(*grown.places));
    }
    if (c->n) memcpy(grown.places, c->places, c->n * sizeof(*c->places));
    release_arrays(c);
    c->texts = grown.texts;
    c->places = grown.places;
    c->capacity = grown.capacity;
    return LATH_OK;
}

static lath_status chunk_add(text_source *s, text_chunk *c, const char *line, size_t len, text_place place,
                             lath_error *err)
{
    TRY(chunk_room(c, err));
    place.begin = c->bytes.len;
    c->places[c->n] = place;
    const lath_status st = text_decode(&s->decoder, line, len, &c->bytes, err);
    if (st != LATH_OK) return text_where(c, c->n, st, err);
    c->n++;
    return LATH_OK;
}

/* Pointers are set when the bytes have stopped moving. */
static void chunk_seal(text_chunk *c)
{
    const char *data = c->bytes.data ? c->bytes.data : "";
    for (size_t i = 0; i < c->n; i++) {
        const size_t begin = c->places[i].begin, end = i + 1 < c->n ? c->places[i + 1].begin : c->bytes.len;
        c->texts[i] = (lath_text){data + begin, end - begin};
    }
}

lath_status text_where(const text_chunk *c, size_t i, lath_status st, lath_error *err)
{
    const text_place *p = &c->places[i];
    if (!p->name) return err_wrap(err, st, "text %llu", (unsigned long long)p->number);
    return err_wrap(err, st, "%s: line %llu", p->name, (unsigned long long)p->number);
}

/* ----------------------------------------------------------------------------------------------------------- source */

static const char *const stdin_only[] = {"-"};

static void source_init(text_source *s, const char *field, bool lossy)
{
    *s = (text_source){.fd = -1};
    text_decoder_init(&s->decoder, field, lossy);
    buf_init(&s->raw, alloc_default(), LINE_CEILING + READ_BYTES);
}

lath_status texts_open(text_source *s, const options *o, const string_list *args, lath_error *err)
{
    source_init(s, o->field, o->lossy);
    if (args->n > 0 && o->files.n > 0) return err_set(err, LATH_ERR_USAGE, "-f: texts are given as arguments already");
    if (args->n > 0) {
        s->decoder.field = NULL; /* an argument is a text, never JSON */
        s->args = args->items;
        s->n_args = args->n;
    } else if (o->files.n > 0) {
        s->files = o->files.items;
        s->n_files = o->files.n;
    } else if (!isatty(STDIN_FILENO)) {
        s->files = stdin_only;
        s->n_files = 1;
    } else {
        return err_set(err, LATH_ERR_USAGE, "no text: give it as an argument, with -f FILE, or on standard input");
    }
    return LATH_OK;
}

void texts_open_file(text_source *s, const char *const *path, const char *field, bool lossy)
{
    source_init(s, field, lossy);
    s->files = path;
    s->n_files = 1;
}

void texts_open_rest(text_source *s, const char *const *path, const char *field, bool lossy, uint64_t bytes,
                     uint64_t lines)
{
    texts_open_file(s, path, field, lossy);
    s->skip_bytes = bytes;
    s->skip_lines = lines;
}

static void close_file(text_source *s)
{
    if (s->fd > STDIN_FILENO) close(s->fd);
    s->fd = -1;
}

void texts_close(text_source *s)
{
    if (!s->raw.alloc) return;
    close_file(s);
    buf_deinit(&s->raw);
    text_decoder_deinit(&s->decoder);
    *s = (text_source){.fd = -1};
}

static lath_status open_next_file(text_source *s, lath_error *err)
{
    const char *path = s->files[s->next++];
    struct stat sb;
    const bool is_stdin = strcmp(path, "-") == 0;
    s->name = is_stdin ? "standard input" : path;
    do s->fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    while (s->fd < 0 && errno == EINTR && !signals_interrupted());
    const int e = errno;
    TRY(signals_check(err));
    if (s->fd < 0) return err_os(err, e == EMFILE || e == EIO ? LATH_ERR_IO : LATH_ERR_NOT_FOUND, e, "%s", path);
    s->size = 0;
    s->wait = true;
    if (fstat(s->fd, &sb) == 0) {
        if (S_ISDIR(sb.st_mode)) return err_set(err, LATH_ERR_NOT_FOUND, "%s: is a directory", s->name);
        if (S_ISREG(sb.st_mode)) {
            s->size = (uint64_t)sb.st_size;
            s->wait = false;
        }
    }
    if (s->skip_bytes > 0 && lseek(s->fd, (off_t)s->skip_bytes, SEEK_SET) < 0) {
        const int cause = errno;
        return err_os(err, LATH_ERR_IO, cause, "%s", s->name);
    }
    buf_clear(&s->raw);
    s->pos = 0;
    s->raw_at = s->skip_bytes;
    s->ended = false;
    s->line = 1 + s->skip_lines;
    s->skip_bytes = s->skip_lines = 0;
    return LATH_OK;
}

/* Nothing to read for a moment. */
static bool input_pauses(const text_source *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    return s->wait && poll(&p, 1, PAUSE_MS) == 0;
}

/* Reads more behind what is there; drops what was given out. */
static lath_status fill(text_source *s, lath_error *err)
{
    ssize_t got;
    if (s->pos > 0) {
        memmove(s->raw.data, s->raw.data + s->pos, s->raw.len - s->pos);
        s->raw.len -= s->pos;
        s->raw_at += s->pos;
        s->pos = 0;
    }
    char *at = buf_reserve(&s->raw, READ_BYTES);
    if (!at) {
        const lath_status st = buf_status(&s->raw, err);
        return err_wrap(err, st, "%s: line %llu", s->name, (unsigned long long)s->line);
    }
    do {
        got = read(s->fd, at, READ_BYTES);
        if (got < 0 && errno != EINTR) {
            const int e = errno;
            return err_os(err, LATH_ERR_IO, e, "%s", s->name);
        }
        TRY(signals_check(err));
    } while (got < 0);
    const bool at_start = s->raw_at == 0 && s->raw.len < 3;
    s->raw.len += (size_t)got;
    if (got == 0) s->ended = true;
    /* the mark may come in pieces: it is looked for as long as no line was given out */
    if (at_start && s->line == 1 && s->raw.len >= 3 && memcmp(s->raw.data, "\xEF\xBB\xBF", 3) == 0) s->pos = 3;
    return LATH_OK;
}

/* The next raw line, without its end. *found false: the file has no more (or, with `only_ready`, has none ready now).
 */
static lath_status next_line(text_source *s, bool only_ready, const char **line, size_t *len, bool *found,
                             lath_error *err)
{
    size_t searched = 0;
    *found = false;
    for (;;) {
        const size_t there = s->raw.len - s->pos;
        const char *begin = s->raw.data ? s->raw.data + s->pos : "";
        const char *lf = there > searched ? memchr(begin + searched, '\n', there - searched) : NULL;
        if (lf || (s->ended && there > 0)) {
            *len = lf ? (size_t)(lf - begin) : there;
            s->pos += *len + (lf ? 1 : 0);
            if (lf && *len > 0 && begin[*len - 1] == '\r') --*len;
            *line = begin;
            *found = true;
            s->line++;
            return LATH_OK;
        }
        if (s->ended || (only_ready && input_pauses(s))) return LATH_OK;
        TRY(fill(s, err));
        searched = s->pos ? 0 : there; /* a byte order mark was found and is not searched */
    }
}

static void set_part(const text_source *s, text_chunk *c, double from)
{
    const double files = (double)s->n_files;
    c->from = (from + (double)(s->next - 1)) / files;
    c->to = s->size ? ((double)(s->raw_at + s->pos) / (double)s->size + (double)(s->next - 1)) / files : -1;
}

/* Texts of the open file, or of the next ones while they are empty. */
static lath_status next_from_files(text_source *s, text_chunk *c, size_t most, lath_error *err)
{
    const size_t before = c->n, bytes_before = c->bytes.len;
    while (c->n == before) {
        if (s->fd < 0) {
            if (s->next == s->n_files) return LATH_OK;
            TRY(open_next_file(s, err));
        }
        const double from = s->size ? (double)(s->raw_at + s->pos) / (double)s->size : 0;
        bool found = true;
        while (c->n < most && c->bytes.len - bytes_before < CHUNK_BYTES) {
            const char *line;
            text_place place = {.name = s->name, .number = s->line};
            size_t len;
            TRY(next_line(s, c->n > before, &line, &len, &found, err));
            if (!found) break;
            place.raw = (lath_span){s->raw_at + (uint64_t)(line - s->raw.data), len};
            TRY(chunk_add(s, c, line, len, place, err));
        }
        set_part(s, c, from);
        if (!found && s->ended) close_file(s);
    }
    return LATH_OK;
}

static lath_status next_from_args(text_source *s, text_chunk *c, size_t most, lath_error *err)
{
    c->from = (double)s->next / (double)s->n_args;
    while (s->next < s->n_args && c->n < most) {
        const char *arg = s->args[s->next++];
        TRY(chunk_add(s, c, arg, strlen(arg), (text_place){.number = s->next}, err));
    }
    c->to = (double)s->next / (double)s->n_args;
    return LATH_OK;
}

static lath_status next_any(text_source *s, text_chunk *c, size_t most, lath_error *err)
{
    return s->args ? next_from_args(s, c, most, err) : next_from_files(s, c, most, err);
}

lath_status texts_next(text_source *s, text_chunk *c, size_t most, lath_error *err)
{
    c->n = 0;
    buf_clear(&c->bytes);
    TRY(next_any(s, c, most, err));
    chunk_seal(c);
    return LATH_OK;
}

lath_status texts_all(text_source *s, text_chunk *c, lath_error *err)
{
    size_t before;
    c->n = 0;
    buf_clear(&c->bytes);
    do {
        before = c->n;
        TRY(next_any(s, c, SIZE_MAX, err));
    } while (c->n > before);
    chunk_seal(c);
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------- whole files */

/* What is not valid is named by line and byte of the line, as people see it. */
static lath_status refuse_invalid(const text_source *s, const char *text, size_t at, lath_error *err)
{
    uint64_t line = 1;
    size_t begin = 0;
    for (size_t i = 0; i < at; i++) {
        if (text[i] != '\n') continue;
        line++;
        begin = i + 1;
    }
    return err_set(err, LATH_ERR_INPUT, "%s: line %llu: not valid UTF-8 at byte %zu (--lossy replaces it)", s->name,
                   (unsigned long long)line, at - begin + 1);
}

lath_status texts_whole(text_source *s, buf *out, lath_error *err)
{
    const char *text;
    size_t len;
    if (s->args) {
        s->name = "argument";
        text = s->args[0];
        len = strlen(text);
    } else {
        TRY(open_next_file(s, err));
        while (!s->ended) {
            /* fill drops what is before pos: the mark, when it was found */
            const lath_status st = fill(s, err);
            if (st != LATH_OK) return st;
        }
        text = s->raw.data ? s->raw.data + s->pos : "";
        len = s->raw.len - s->pos;
    }
    const size_t bad = utf8_first_invalid(text, len);
    if (bad < len && !s->decoder.lossy) return refuse_invalid(s, text, bad, err);
    if (bad < len)
        utf8_append_lossy(out, text, len);
    else
        buf_append(out, text, len);
    return buf_status(out, err);
}
