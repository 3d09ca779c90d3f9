/* SPDX-License-Identifier: Apache-2.0
 * tok_decode_table.h: decoding by a table of what each id becomes, for decoders that treat each token by itself and then
 * put all of them together: ByteLevel, and rows of Replace, ByteFallback, Fuse and Strip as SentencePiece models have
 * them. The table is made when it has become worth while, by whichever thread comes first. */
#ifndef LATH_TOK_DECODE_TABLE_H
#define LATH_TOK_DECODE_TABLE_H

#include "tok/tok_parts.h"

typedef struct tok_decode_table tok_decode_table;

/* After all components are loaded. t->decode_table stays NULL where the decoder is of another kind. */
lath_status tok_decode_table_create(tok *t, lath_error *err);
void tok_decode_table_destroy(tok *t);
size_t tok_decode_table_bytes(const tok *t);
/* *done: the text of ids is in out, as tok_decode gives it; else nothing has happened. */
lath_status tok_decode_table_run(const tok *t, const int32_t *ids, size_t n, bool skip_special, buf *out, bool *done,
                                 lath_error *err);

#endif
