/* SPDX-License-Identifier: Apache-2.0
 * dialog.c: see dialog.h. */
#include "dialog.h"

#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

enum { TEMPLATE_BYTES_MOST = 4 << 20 };

static lath_status open_own(dialog *d, const lath_model *model, lath_error *err)
{
    lath_model_info info = {.struct_size = sizeof(info)};
    TRY(lath_model_get_info(model, &info, err));
    if (!info.chat_template)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: the model has no chat template (--chat-template FILE gives one)",
                       info.path);
    return lath_chat_create(model, NULL, &d->chat, err);
}

static lath_status open_file(dialog *d, const lath_model *model, const char *path, lath_error *err)
{
    lath_chat_options opts = LATH_CHAT_OPTIONS_INIT;
    buf text;
    buf_init(&text, alloc_default(), TEMPLATE_BYTES_MOST);
    lath_status st = file_read(&text, path, TEMPLATE_BYTES_MOST, err);
    if (st == LATH_OK && text.len && memchr(text.data, 0, text.len))
        st = err_set(err, LATH_ERR_FORMAT, "%s: not a text: it has a byte 0", path);
    if (st == LATH_OK) {
        opts.template_text = (lath_text){buf_cstr(&text), text.len};
        st = lath_chat_create(model, &opts, &d->chat, err);
        if (st != LATH_OK) st = err_wrap(err, st, "--chat-template %s", path);
    }
    buf_deinit(&text);
    return st;
}

lath_status dialog_open(dialog *d, const lath_model *model, const options *o, lath_error *err)
{
    const char *path = o->chat_template;
    *d = (dialog){.end_id = -1};
    TRY(path ? open_file(d, model, path, err) : open_own(d, model, err));
    d->end_id = lath_chat_end_id(d->chat);
    return thinking_read(&d->thinking, o, d->chat, err);
}

static void release(dialog_message *m)
{
    buf_deinit(&m->text);
    buf_deinit(&m->thought);
}

void dialog_drop_last(dialog *d) { release(&d->messages[--d->n]); }

static bool has_system(const dialog *d) { return d->n && strcmp(d->messages[0].role, "system") == 0; }

void dialog_reset(dialog *d)
{
    while (d->n > (size_t)has_system(d)) dialog_drop_last(d);
}

void dialog_close(dialog *d)
{
    while (d->n) dialog_drop_last(d);
    lath_chat_prompt_release(&d->prompt);
    lath_chat_destroy(d->chat);
    alloc_release(alloc_default(), d->messages, d->capacity * sizeof(*d->messages));
    alloc_release(alloc_default(), d->shown, d->capacity * sizeof(*d->shown));
    *d = (dialog){0};
}

static lath_status grow(dialog *d, lath_error *err)
{
    const lath_allocator *a = alloc_default();
    if (d->n < d->capacity) return LATH_OK;
    const size_t cap = d->capacity ? d->capacity * 2 : 16;
    dialog_message *m = alloc_array(a, cap, sizeof(*m));
    lath_message *s = alloc_array(a, cap, sizeof(*s));
    if (!m || !s) {
        alloc_release(a, m, cap * sizeof(*m));
        alloc_release(a, s, cap * sizeof(*s));
        return err_nomem(err, cap * sizeof(*m));
    }
    if (d->n) memcpy(m, d->messages, d->n * sizeof(*m));
    alloc_release(a, d->messages, d->capacity * sizeof(*m));
    alloc_release(a, d->shown, d->capacity * sizeof(*s));
    d->messages = m;
    d->shown = s;
    d->capacity = cap;
    return LATH_OK;
}

lath_status dialog_add(dialog *d, const char *role, const char *text, size_t n, lath_error *err)
{
    TRY(grow(d, err));
    dialog_message *m = &d->messages[d->n];
    m->role = role;
    buf_init(&m->text, alloc_default(), SIZE_MAX / 2);
    buf_init(&m->thought, alloc_default(), SIZE_MAX / 2);
    buf_append(&m->text, text, n);
    const lath_status st = buf_status(&m->text, err);
    if (st != LATH_OK)
        release(m);
    else
        d->n++;
    return st;
}

lath_status dialog_add_thought(dialog *d, const char *text, size_t n, lath_error *err)
{
    buf *b = &d->messages[d->n - 1].thought;
    buf_append(b, text, n);
    return buf_status(b, err);
}

lath_status dialog_set_system(dialog *d, const char *text, size_t n, lath_error *err)
{
    if (has_system(d)) {
        release(&d->messages[0]);
        d->n--;
        memmove(d->messages, d->messages + 1, d->n * sizeof(*d->messages));
    }
    if (n == 0) return LATH_OK;
    TRY(dialog_add(d, "system", text, n, err));
    const dialog_message m = d->messages[d->n - 1];
    memmove(d->messages + 1, d->messages, (d->n - 1) * sizeof(*d->messages));
    d->messages[0] = m;
    return LATH_OK;
}

/* Seconds since 1970 as a clock on the wall here shows them. */
static int64_t local_now(void)
{
    const time_t now = time(NULL);
    struct tm parts;
    return localtime_r(&now, &parts) ? (int64_t)now + parts.tm_gmtoff : (int64_t)now;
}

static lath_text of_buf(const buf *b) { return (lath_text){b->data ? b->data : "", b->len}; }

lath_status dialog_render(dialog *d, lath_error *err)
{
    lath_chat_input in = LATH_CHAT_INPUT_INIT;
    for (size_t i = 0; i < d->n; i++) {
        const dialog_message *m = &d->messages[i];
        d->shown[i] = (lath_message){m->role, of_buf(&m->text), of_buf(&m->thought)};
    }
    in.messages = d->shown;
    in.n_messages = d->n;
    in.has_date = 1;
    in.date = local_now();
    in.think = d->thinking.think;
    return lath_chat_render(d->chat, &in, &d->prompt, err);
}

void dialog_ask(dialog *d, lath_generate_options *g)
{
    g->new_text = 1;
    g->end_ids = &d->end_id;
    g->n_end_ids = d->end_id >= 0;
    thinking_ask(&d->thinking, &d->prompt, g);
}

void dialog_put_json(const dialog *d, buf *out)
{
    buf_str(out, "[");
    for (size_t i = 0; i < d->n; i++) {
        const dialog_message *m = &d->messages[i];
        buf_printf(out, "%s\n  {\"role\":\"%s\",\"content\":", i ? "," : "", m->role);
        json_put_string(out, m->text.data ? m->text.data : "", m->text.len);
        if (m->thought.len) {
            buf_str(out, ",\"reasoning_content\":");
            json_put_string(out, m->thought.data, m->thought.len);
        }
        buf_char(out, '}');
    }
    buf_str(out, "\n]\n");
}
