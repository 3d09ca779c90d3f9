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
    buf line;
    uint64_t hash[2];
    uint64_t bytes;
} corpus;

/* Opens and hashes. LATH_ERR_NOT_FOUND when it is no regular file. */
lath_status corpus_open(corpus *c, const char *path, const char *field, bool lossy, lath_error *err);
/* LATH_ERR_IO when the file is not any more what was hashed. */
lath_status corpus_check_unchanged(const corpus *c, lath_error *err);
/* The text of a raw line, appended to out. */
lath_status corpus_text(corpus *c, lath_span raw, buf *out, lath_error *err);
void corpus_close(corpus *c); /* a zeroed one is allowed */

#endif
