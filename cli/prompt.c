/* SPDX-License-Identifier: Apache-2.0
 * prompt.c: see prompt.h. */
#include "prompt.h"

#include <unistd.h>

#include "base/error.h"
#include "texts.h"

lath_status prompt_read(const options *o, buf *out, lath_error *err)
{
    text_source source = {0};
    buf_init(out, alloc_default(), SIZE_MAX / 2);
    if (o->args.n > 1)
        return err_set(err, LATH_ERR_USAGE, "%.60s: a PROMPT is one text; put it in quotes", o->args.items[1]);
    if (o->files.n > 1) return err_set(err, LATH_ERR_USAGE, "-f: a PROMPT is one text; %zu files", o->files.n);
    lath_status st = texts_open(&source, o, &o->args, err);
    if (st == LATH_OK) st = texts_whole(&source, out, err);
    texts_close(&source);
    return st;
}

void prompt_release(buf *text)
{
    if (text->alloc) buf_deinit(text);
    *text = (buf){0};
}
