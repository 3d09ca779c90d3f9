/* SPDX-License-Identifier: Apache-2.0
 * chat_date.c: strftime_now: the caller's date as strftime writes it in the C locale. The library reads no clock. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chat/chat_call.h"

typedef struct date {
    int64_t year;
    int month, day, hour, minute, second; /* month 1..12 */
    int weekday, yearday;                 /* Sunday is 0; January 1 is 1 */
} date;

/* Days since 1970 to the proleptic Gregorian calendar, by eras of 400 years that begin in March. */
static date of_seconds(int64_t t)
{
    int64_t days = t / 86400, rest = t % 86400;
    if (rest < 0) {
        rest += 86400;
        days--;
    }
    date d = {.hour = (int)(rest / 3600), .minute = (int)(rest / 60 % 60), .second = (int)(rest % 60)};
    d.weekday = (int)(((days % 7) + 11) % 7);
    const int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, doe = z - era * 146097;
    const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    const int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    d.day = (int)(doy - (153 * mp + 2) / 5 + 1);
    d.month = (int)(mp < 10 ? mp + 3 : mp - 9);
    d.year = yoe + era * 400 + (d.month <= 2);
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    const bool leap = (d.year % 4 == 0 && d.year % 100 != 0) || d.year % 400 == 0;
    d.yearday = before[d.month - 1] + d.day + (leap && d.month > 2);
    return d;
}

static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};
static const char *const weekdays[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

static bool put_part(const date *d, char c, char *out, size_t n)
{
    const int twelve = d->hour % 12 ? d->hour % 12 : 12;
    switch (c) {
    case 'Y': snprintf(out, n, "%" PRId64, d->year); return true;
    case 'y': snprintf(out, n, "%02d", (int)(((d->year % 100) + 100) % 100)); return true;
    case 'm': snprintf(out, n, "%02d", d->month); return true;
    case 'd': snprintf(out, n, "%02d", d->day); return true;
    case 'e': snprintf(out, n, "%2d", d->day); return true;
    case 'H': snprintf(out, n, "%02d", d->hour); return true;
    case 'I': snprintf(out, n, "%02d", twelve); return true;
    case 'M': snprintf(out, n, "%02d", d->minute); return true;
    case 'S': snprintf(out, n, "%02d", d->second); return true;
    case 'p': snprintf(out, n, "%s", d->hour < 12 ? "AM" : "PM"); return true;
    case 'j': snprintf(out, n, "%03d", d->yearday); return true;
    case 'w': snprintf(out, n, "%d", d->weekday); return true;
    case 'u': snprintf(out, n, "%d", d->weekday ? d->weekday : 7); return true;
    case 'B': snprintf(out, n, "%s", months[d->month - 1]); return true;
    case 'b':
    case 'h': snprintf(out, n, "%.3s", months[d->month - 1]); return true;
    case 'A': snprintf(out, n, "%s", weekdays[d->weekday]); return true;
    case 'a': snprintf(out, n, "%.3s", weekdays[d->weekday]); return true;
    case 'F': snprintf(out, n, "%" PRId64 "-%02d-%02d", d->year, d->month, d->day); return true;
    case 'T': snprintf(out, n, "%02d:%02d:%02d", d->hour, d->minute, d->second); return true;
    case 'D': snprintf(out, n, "%02d/%02d/%02d", d->month, d->day, (int)(d->year % 100)); return true;
    case 'R': snprintf(out, n, "%02d:%02d", d->hour, d->minute); return true;
    case 'n': snprintf(out, n, "\n"); return true;
    case 't': snprintf(out, n, "\t"); return true;
    case '%': snprintf(out, n, "%%"); return true;
    default: return false;
    }
}

lath_status global_strftime_now(render *r, const args *a, value *out)
{
    value v;
    text_out o;
    const chat_str *f;
    TRY(args_read(r, a, "format", 1, &v));
    TRY(arg_str(r, a, v, &f));
    if (!r->in->has_date) return render_fail(r, LATH_ERR_INPUT, "the template asks for the date, and none is given");
    const date d = of_seconds(r->in->date);
    text_init(&o, r);
    for (size_t i = 0; i < f->n; i++) {
        char part[48];
        if (f->s[i] != '%') {
            text_part(&o, f, i, i + 1);
            continue;
        }
        const bool bare = i + 2 < f->n && f->s[i + 1] == '-'; /* %-d: without zeros in front */
        i += bare ? 2 : 1;
        if (i >= f->n || !put_part(&d, f->s[i], part, sizeof(part)))
            return render_fail(r, LATH_ERR_UNSUPPORTED, "strftime_now: the format %%%c", i < f->n ? f->s[i] : ' ');
        const char *s = part;
        while (bare && (*s == '0' || *s == ' ') && s[1]) s++;
        text_own(&o, s);
    }
    return text_finish(&o, out);
}
