/* SPDX-License-Identifier: Apache-2.0
 *
 * repl.c: see repl.h. libedit needs to know which bytes make a character: LC_CTYPE is set, and nothing else of the locale, so that numbers keep their
 * point. It prompts on stderr: standard output holds answers only.
 */
#include "repl.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <histedit.h>

#include "base/error.h"
#include "base/utf8.h"
#include "signals.h"

enum { HISTORY_LINES = 1000 };

struct repl {
    bool terminal, goes_on; /* goes_on: the line before ended in a backslash */
    EditLine *edit;
    History *history;
    char *line; /* getline's */
    size_t line_cap;
    size_t n_lines; /* of standard input so far */
};

static char *prompt(EditLine *edit)
{
    static char first[] = "> ", more[] = "| ";
    repl *r = NULL;
    el_get(edit, EL_CLIENTDATA, &r);
    return r && r->goes_on ? more : first;
}

static lath_status open_terminal(repl *r, lath_error *err)
{
    HistEvent event;
    const char *locale = setlocale(LC_CTYPE, "");
    if (!locale || strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0) setlocale(LC_CTYPE, "C.UTF-8");
    r->history = history_init();
    r->edit = el_init("lath", stdin, stderr, stderr);
    if (!r->history || !r->edit) return err_nomem(err, 0);
    history(r->history, &event, H_SETSIZE, HISTORY_LINES);
    el_set(r->edit, EL_CLIENTDATA, r);
    el_set(r->edit, EL_PROMPT, prompt);
    el_set(r->edit, EL_EDITOR, "emacs");
    el_set(r->edit, EL_HIST, history, r->history);
    el_set(r->edit, EL_SIGNAL, 0); /* signals are ours */
    return LATH_OK;
}

lath_status repl_open(repl **out, lath_error *err)
{
    repl *r = alloc_zero(alloc_default(), sizeof(*r));
    if (!r) return err_nomem(err, sizeof(*r));
    r->terminal = isatty(STDIN_FILENO) == 1;
    const lath_status st = r->terminal ? open_terminal(r, err) : LATH_OK;
    if (st != LATH_OK)
        repl_close(r);
    else
        *out = r;
    return st;
}

void repl_close(repl *r)
{
    if (!r) return;
    if (r->edit) el_end(r->edit);
    if (r->history) history_end(r->history);
    free(r->line);
    alloc_release(alloc_default(), r, sizeof(*r));
}

bool repl_is_terminal(const repl *r) { return r->terminal; }

/* Bytes of the next line, newline included; NULL at the end or when a signal came. */
static const char *next_line(repl *r, size_t *n)
{
    int count = 0;
    errno = 0;
    if (!r->terminal) {
        const ssize_t got = getline(&r->line, &r->line_cap, stdin);
        *n = got > 0 ? (size_t)got : 0;
        r->n_lines += got > 0;
        return got > 0 ? r->line : NULL;
    }
    const char *s = el_gets(r->edit, &count);
    *n = s && count > 0 ? (size_t)count : 0;
    return *n ? s : NULL;
}

static lath_status check_text(const repl *r, const buf *line, lath_error *err)
{
    const size_t bad = utf8_first_invalid(line->data ? line->data : "", line->len);
    if (bad == line->len) return LATH_OK;
    if (r->terminal) return err_set(err, LATH_ERR_INPUT, "not valid UTF-8 at byte %zu", bad + 1);
    return err_set(err, LATH_ERR_INPUT, "standard input: line %zu: not valid UTF-8 at byte %zu", r->n_lines, bad + 1);
}

lath_status repl_read(repl *r, buf *line, bool *end, lath_error *err)
{
    HistEvent event;
    buf_clear(line);
    r->goes_on = false;
    for (;;) {
        size_t n;
        const char *s = next_line(r, &n);
        TRY(signals_check(err));
        if (!s && !r->terminal && ferror(stdin)) return err_os(err, LATH_ERR_IO, errno, "standard input");
        *end = !s && !r->goes_on;
        if (!s) break;
        if (r->n_lines == 1 && n >= 3 && memcmp(s, "\xEF\xBB\xBF", 3) == 0) {
            s += 3;
            n -= 3;
        }
        if (r->terminal && n > 1) history(r->history, &event, H_ENTER, s);
        while (n && (s[n - 1] == '\n' || (s[n - 1] == '\r' && s[n] == '\n'))) n--;
        r->goes_on = n && s[n - 1] == '\\';
        buf_append(line, s, r->goes_on ? n - 1 : n);
        if (!r->goes_on) break;
        buf_char(line, '\n');
    }
    TRY(buf_status(line, err));
    return check_text(r, line, err);
}
