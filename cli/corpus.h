/* SPDX-License-Identifier: Apache-2.0
 *
 * corpus.h: the file that `lath search` looks into: its hash, its texts for embedding, single texts again for showing
 * results. The file is read, not mapped, and stays open, so that a file renamed over it does not mix in.
 */
#ifndef LATH_CLI_CORPUS_H
#define LATH_CLI_CORPUS_H

#include "texts.h"

typedef struct corpus {
    const char *path;
    int fd;
    text_decoder decoder;
    buf line; /* bytes of the file from line_at on */
    uint64_t line_at;
    uint64_t hash[2];
    uint64_t bytes;
} corpus;

/* Opens and hashes. LATH_ERR_NOT_FOUND when it is no regular file. */
lath_status corpus_open(corpus *c, const char *path, const char *field, bool lossy, lath_error *err);
/* LATH_ERR_IO when the file is not any more what was hashed. */
lath_status corpus_check_unchanged(const corpus *c, lath_error *err);
/* The hash that a file of the first `bytes` has; the last of them into *last (0 when there is none). */
lath_status corpus_hash_prefix(const corpus *c, uint64_t bytes, uint64_t hash[2], char *last, lath_error *err);
/* A raw line, borrowed until the next call. sequential: lines are asked for in the order of the file, and the bytes
 * behind are read along. */
lath_status corpus_line(corpus *c, lath_span raw, bool sequential, const char **line, lath_error *err);
/* The text of a raw line, appended to out. */
lath_status corpus_text(corpus *c, lath_span raw, buf *out, lath_error *err);
/* text_record of a raw line. */
lath_status corpus_record(corpus *c, lath_span raw, bool sequential, const json_value **root, const char **json,
                          size_t *len, lath_error *err);
void corpus_close(corpus *c); /* a zeroed one is allowed */

#endif
