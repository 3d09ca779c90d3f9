/* SPDX-License-Identifier: Apache-2.0
 *
 * chat.h: chat templates of models to text: an interpreter for Jinja as transformers sets it up (jinja2's ImmutableSandboxedEnvironment with
 * trim_blocks, lstrip_blocks, loop controls, its own tojson, raise_exception, strftime_now and the tag `generation`; autoescape is off).
 *
 *     text of a template -> lexer -> parser -> tree in an arena (chat_template, immutable) -> evaluator -> text
 *
 * Where jinja2 raises, a call fails. What it can and this cannot is LATH_ERR_UNSUPPORTED and names the construct; nothing is left out silently.
 * Work is bounded (chat_limits): a template is other people's program.
 *
 * Every byte of a string knows whether it came out of the variables' content or was written by the template or a trusted variable. Slices, trims,
 * replacements, joins, case changes and JSON carry that along, so that the caller can tell in the rendered text what people wrote: no special token
 * may come of it.
 */
#ifndef LATH_CHAT_H
#define LATH_CHAT_H

#include "base/json.h"

typedef struct chat_template chat_template;

/* Compiles text[0..n). `name` (a file name) leads messages. Any number of threads may render one template. LATH_ERR_FORMAT: no valid template;
 * LATH_ERR_UNSUPPORTED: a construct that is not there; LATH_ERR_LIMIT: over 1 MiB of text, or nested too deep. All name the line. */
lath_status chat_compile(const lath_allocator *alloc, const char *name, const char *text, size_t n, chat_template **out,
                         lath_error *err);
void chat_release(chat_template *t); /* NULL is allowed */
/* The template reads a variable of this name. */
bool chat_uses(const chat_template *t, const char *name);
size_t chat_bytes(const chat_template *t);

/* What a rendering may take; 0 is the default. */
typedef struct chat_limits {
    int64_t max_steps; /* nodes evaluated, and 64 bytes of text are one more; default 4 million */
    size_t max_output; /* bytes; default 64 MiB */
    size_t max_memory; /* bytes, of all values and the output together; default 256 MiB */
} chat_limits;

/* A variable of the template. Its strings are content, or the template's own words where it is trusted. `role` of the members of a trusted list
 * stays what it is; see chat_trust. */
typedef enum chat_trust {
    CHAT_TRUSTED,  /* special tokens, switches: may become special tokens */
    CHAT_CONTENT,  /* what people wrote */
    CHAT_MESSAGES, /* a list of messages: content, but for the value of "role" where it is a plain word of at most 32 letters, digits, '_', '-' */
} chat_trust;
typedef struct chat_var {
    const char *name;
    const json_value *value;
    chat_trust trust;
} chat_var;

typedef struct chat_input {
    const chat_var *vars; /* of one name the last counts */
    size_t n_vars;
    bool has_date; /* false: a template that asks for the date is refused (LATH_ERR_INPUT) */
    int64_t date;  /* for strftime_now: seconds since 1970 in the local time that is to be written */
    chat_limits limits;
} chat_input;

typedef struct chat_span {
    size_t begin, end;
} chat_span;

/* Zero it (chat_output_init) before the first use; reused from call to call. */
typedef struct chat_output {
    buf text;
    chat_span *content; /* [n_content] of text, in order, not touching: what people wrote */
    size_t n_content, cap_content;
} chat_output;
void chat_output_init(chat_output *o, const lath_allocator *alloc);
void chat_output_deinit(chat_output *o);

/* LATH_ERR_INPUT: the template refuses the conversation (raise_exception: its text) or cannot work on it (a value that is not defined, types that
 * do not go together). LATH_ERR_UNSUPPORTED, LATH_ERR_LIMIT. Messages name the line. */
lath_status chat_render(const chat_template *t, const chat_input *in, chat_output *out, lath_error *err);

#endif
