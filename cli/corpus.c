/* SPDX-License-Identifier: Apache-2.0
 *
 * corpus.c: see corpus.h. The hash is XXH3-128 over blocks of 1 MiB, each seeded with the low word of the one before,
 * so that no map is needed.
 */
#include "corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "signals.h"

static const size_t HASH_BLOCK = (size_t)1 << 20;

/* Up to n bytes at offset; fewer only at the end of the file. */
static lath_status read_at(const corpus *c, uint64_t offset, char *p, size_t n, size_t *got, lath_error *err)
{
    *got = 0;
    while (*got < n) {
        const ssize_t r = pread(c->fd, p + *got, n - *got, (off_t)(offset + *got));
        if (r == 0) break;
        if (r > 0) {
            *got += (size_t)r;
        } else if (errno != EINTR) {
            const int e = errno;
            return err_os(err, LATH_ERR_IO, e, "%s", c->path);
        }
        TRY(signals_check(err));
    }
    return LATH_OK;
}

/* Of the first `most` bytes; *bytes is how many there were, *last the last of them. */
static lath_status hash_file(const corpus *c, uint64_t most, uint64_t hash[2], uint64_t *bytes, char *last,
                             lath_error *err)
{
    const lath_allocator *a = alloc_default();
    char *block = alloc_bytes(a, HASH_BLOCK, 64);
    hash128 h = {0, 0};
    size_t got;
    lath_status st = LATH_OK;
    *bytes = 0;
    *last = 0;
    if (!block) return err_nomem(err, HASH_BLOCK);
    do {
        const size_t want = most - *bytes < HASH_BLOCK ? (size_t)(most - *bytes) : HASH_BLOCK;
        TRY_DONE(read_at(c, *bytes, block, want, &got, err));
        h = hash_128(block, got, h.lo);
        *bytes += got;
        if (got > 0) *last = block[got - 1];
    } while (got == HASH_BLOCK);
    hash[0] = h.lo;
    hash[1] = h.hi;
done:
    alloc_release(a, block, HASH_BLOCK);
    return st;
}

lath_status corpus_open(corpus *c, const char *path, const char *field, bool lossy, lath_error *err)
{
    struct stat sb;
    char last;
    lath_status st;
    *c = (corpus){.path = path};
    text_decoder_init(&c->decoder, field, lossy);
    buf_init(&c->line, alloc_default(), (size_t)1 << 31);
    do c->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    while (c->fd < 0 && errno == EINTR);
    if (c->fd < 0) {
        const int e = errno;
        st = err_os(err, LATH_ERR_NOT_FOUND, e, "%s", path);
        goto done;
    }
    if (fstat(c->fd, &sb) != 0 || !S_ISREG(sb.st_mode)) {
        st = err_set(err, LATH_ERR_NOT_FOUND, "%s: a corpus has to be a regular file", path);
        goto done;
    }
    TRY_DONE(hash_file(c, UINT64_MAX, c->hash, &c->bytes, &last, err));
    return LATH_OK;
done:
    corpus_close(c);
    return st;
}

lath_status corpus_hash_prefix(const corpus *c, uint64_t bytes, uint64_t hash[2], char *last, lath_error *err)
{
    uint64_t got;
    TRY(hash_file(c, bytes, hash, &got, last, err));
    return got == bytes ? LATH_OK : err_set(err, LATH_ERR_FORMAT, "%s: it shrank while it was searched", c->path);
}

lath_status corpus_check_unchanged(const corpus *c, lath_error *err)
{
    corpus now = {.path = c->path};
    char last;
    lath_status st;
    do now.fd = open(c->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    while (now.fd < 0 && errno == EINTR);
    if (now.fd < 0) {
        const int e = errno;
        return err_os(err, LATH_ERR_IO, e, "%s", c->path);
    }
    st = hash_file(&now, UINT64_MAX, now.hash, &now.bytes, &last, err);
    close(now.fd);
    if (st == LATH_OK && (now.bytes != c->bytes || memcmp(now.hash, c->hash, sizeof(c->hash)) != 0))
        st = err_set(err, LATH_ERR_IO, "%s: changed while it was embedded", c->path);
    return st;
}

lath_status corpus_line(corpus *c, lath_span raw, bool sequential, const char **line, lath_error *err)
{
    const uint64_t have = c->line.len, skip = raw.offset - c->line_at;
    size_t got;
    if (raw.offset >= c->line_at && skip <= have && raw.len <= have - skip) {
        *line = c->line.data ? c->line.data + skip : "";
        return LATH_OK;
    }
    buf_clear(&c->line);
    const size_t want = sequential && raw.len < HASH_BLOCK ? HASH_BLOCK : (size_t)raw.len;
    char *at = buf_reserve(&c->line, want + 1);
    if (!at) return buf_status(&c->line, err);
    TRY(read_at(c, raw.offset, at, want, &got, err));
    if (got < raw.len) return err_set(err, LATH_ERR_FORMAT, "%s: it shrank while it was searched", c->path);
    c->line.len = got;
    c->line_at = raw.offset;
    *line = at;
    return LATH_OK;
}

/* The line is named by its place: lines are not counted here. */
static lath_status at_byte(const corpus *c, lath_span raw, lath_status st, lath_error *err)
{
    return st == LATH_OK ? st : err_wrap(err, st, "%s: byte %llu", c->path, (unsigned long long)raw.offset);
}

lath_status corpus_text(corpus *c, lath_span raw, buf *out, lath_error *err)
{
    const char *line;
    TRY(corpus_line(c, raw, false, &line, err));
    return at_byte(c, raw, text_decode(&c->decoder, line, (size_t)raw.len, out, err), err);
}

lath_status corpus_record(corpus *c, lath_span raw, bool sequential, const json_value **root, const char **json,
                          size_t *len, lath_error *err)
{
    const char *line;
    TRY(corpus_line(c, raw, sequential, &line, err));
    return at_byte(c, raw, text_record(&c->decoder, line, (size_t)raw.len, root, json, len, err), err);
}

void corpus_close(corpus *c)
{
    if (!c->line.alloc) return;
    if (c->fd >= 0) close(c->fd);
    buf_deinit(&c->line);
    text_decoder_deinit(&c->decoder);
    *c = (corpus){.fd = -1};
}
