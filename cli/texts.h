/* SPDX-License-Identifier: Apache-2.0
 *
 * texts.h: where texts come from: arguments, files, standard input. One text a line; lines end with LF or CRLF; a byte
 * order mark at the start of a file is skipped; an empty line is an empty text; a last line needs no newline. With a
 * field name a line is a JSON object whose string under that name is the text (an empty line is still an empty text).
 * Texts come in chunks, so that a file of any size needs little memory. What is wrong is named by file and line.
 */
#ifndef LATH_CLI_TEXTS_H
#define LATH_CLI_TEXTS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "lath/lath.h"
#include "options.h"

/* Turns one raw line into a text. */
typedef struct text_decoder {
    const char *field; /* NULL: the line is the text */
    bool lossy;
    arena scratch; /* JSON of one line */
    buf fixed;     /* a line after the repairs of `lossy` */
} text_decoder;

void text_decoder_init(text_decoder *d, const char *field, bool lossy);
void text_decoder_deinit(text_decoder *d);
/* Appends the text of the line to out. LATH_ERR_INPUT: invalid UTF-8, half a surrogate pair, no string under the field;
 * LATH_ERR_FORMAT: the line is no JSON object. The message has no file or line: the caller puts it in front. */
lath_status text_decode(text_decoder *d, const char *line, size_t len, buf *out, lath_error *err);

/* The JSON object of a line, with a field name: *root lives in the decoder until its next call and is NULL for a blank
 * line; *json and *len are its text as it was read, blanks around it cut (after the repairs of `lossy`), borrowed as
 * long. Errors as text_decode. */
lath_status text_record(text_decoder *d, const char *line, size_t line_len, const json_value **root, const char **json,
                        size_t *len, lath_error *err);

typedef struct text_source {
    text_decoder decoder;
    const char *const *args; /* arguments that are texts, or NULL */
    size_t n_args;
    const char *const *files; /* "-" is standard input */
    size_t n_files;
    size_t next;                     /* argument or file that comes next */
    uint64_t skip_bytes, skip_lines; /* of the first file: not read */
    const char *name;                /* of the open file, for messages */
    int fd;                          /* of the open file, or -1 */
    uint64_t size;                   /* of the open file; 0: unknown */
    uint64_t raw_at;                 /* offset in the file of raw.data[0] */
    buf raw;                         /* bytes read and not yet given out from `pos` on */
    size_t pos;
    bool ended;    /* the file has no more bytes */
    bool wait;     /* hand out what is there when the input pauses (a pipe, a terminal) */
    uint64_t line; /* of the next line, from 1 */
} text_source;

/* Where a text was found. */
typedef struct text_place {
    const char *name; /* file, or NULL for an argument */
    uint64_t number;  /* of the line or argument, from 1 */
    lath_span raw;    /* the raw line in its file, without line end */
    size_t begin;     /* of the text in the chunk's bytes */
} text_place;

typedef struct text_chunk {
    lath_text *texts;   /* [n] into bytes */
    text_place *places; /* [n] */
    size_t n, capacity;
    buf bytes;
    double from, to; /* part of all the input that this chunk is; to < 0: unknown */
} text_chunk;

/* Decides where texts come from: `args` when there are any, else --file, else standard input when it is no terminal.
 * LATH_ERR_USAGE when there is none or both. */
lath_status texts_open(text_source *s, const options *o, const string_list *args, lath_error *err);
/* One file. */
void texts_open_file(text_source *s, const char *const *path, const char *field, bool lossy);
/* The same behind its first `bytes`, which are `lines` whole lines. */
void texts_open_rest(text_source *s, const char *const *path, const char *field, bool lossy, uint64_t bytes,
                     uint64_t lines);
void texts_close(text_source *s); /* a zeroed one is allowed */

void text_chunk_init(text_chunk *c);
void text_chunk_deinit(text_chunk *c);
/* The next texts, at most `most`. c->n == 0 at the end. */
lath_status texts_next(text_source *s, text_chunk *c, size_t most, lath_error *err);
/* The first argument or file as one text, lines and all, appended to out; the byte order mark of a file is skipped. */
lath_status texts_whole(text_source *s, buf *out, lath_error *err);
/* All texts at once (few are expected: a matrix, queries). */
lath_status texts_all(text_source *s, text_chunk *c, lath_error *err);
/* Puts "FILE: line 7: " or "text 2: " in front of the message; i is an index into the chunk. */
lath_status text_where(const text_chunk *c, size_t i, lath_status st, lath_error *err);

#endif
