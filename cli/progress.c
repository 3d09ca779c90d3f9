/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.c: see progress.h. Drawn at most ten times a second, and not before the first second has gone.
 */
#include "progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "signals.h"

enum { BAR_CELLS = 24 };
static const double FIRST_SECONDS = 1.0, EVERY_SECONDS = 0.1;

void progress_init(progress *p, const char *what, bool quiet)
{
    const double now = clock_now();
    *p = (progress){.what = what,
                    .unit = "texts",
                    .per_unit = 1,
                    .enabled = !quiet && isatty(STDERR_FILENO),
                    .begin = now,
                    .last = now + FIRST_SECONDS - EVERY_SECONDS,
                    .to = -1};
}

void progress_chunk(progress *p, double from, double to)
{
    p->from = from;
    p->to = to;
}

static void draw(progress *p, size_t done, double fraction, double now)
{
    char bar[BAR_CELLS + 1], percent[16] = "";
    done /= p->per_unit;
    const double rate = (double)done / (now - p->begin);
    if (fraction < 0) {
        fprintf(stderr, "\r\033[K%s  %zu %s  %.0f %s/s", p->what, done, p->unit, rate, p->unit);
    } else {
        const int full = (int)(fraction * BAR_CELLS + 0.5);
        for (int i = 0; i < BAR_CELLS; i++) bar[i] = i < full ? '#' : '.';
        bar[BAR_CELLS] = 0;
        snprintf(percent, sizeof(percent), "%3.0f %%", fraction * 100);
        fprintf(stderr, "\r\033[K%s  [%s] %s  %zu %s  %.0f %s/s", p->what, bar, percent, done, p->unit, rate, p->unit);
    }
    fflush(stderr);
    p->shown = true;
}

int progress_tick(void *ctx, size_t done, size_t total)
{
    progress *p = ctx;
    p->in_chunk = done;
    if (p->enabled) {
        const double now = clock_now();
        if (now - p->last >= EVERY_SECONDS) {
            double f = p->to < 0 ? -1 : p->from + (p->to - p->from) * (total ? (double)done / (double)total : 1.0);
            if (f > 1) f = 1;
            draw(p, p->done + done, f, now);
            p->last = now;
        }
    }
    return signals_interrupted() ? 1 : 0;
}

void progress_add(progress *p, size_t n)
{
    p->done += n;
    p->in_chunk = 0;
}

size_t progress_done(const progress *p) { return p->done + p->in_chunk; }

void progress_clear(progress *p)
{
    if (!p->shown) return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    p->shown = false;
}

double progress_seconds(const progress *p) { return clock_now() - p->begin; }
