/* SPDX-License-Identifier: Apache-2.0
 *
 * signals.c: see signals.h. Handlers use async-signal-safe calls only (write, unlink, _exit, lath_..._file_at). What
 * they read is written by the main thread while no watched memory is in use, so plain volatile pointers are enough.
 */
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

static volatile sig_atomic_t stop_asked;
static const lath_model *volatile watched_model;
static const lath_index *volatile watched_index;
static const char *volatile watched_path;
static char temp_path[PATH_MAX];
static volatile sig_atomic_t temp_set;

static void remove_temp(void)
{
    if (temp_set) (void)unlink(temp_path);
}

static void on_stop(int sig)
{
    if (stop_asked) {
        remove_temp();
        _exit(lath_status_exit_code(LATH_ERR_INTERRUPTED));
    }
    stop_asked = sig;
}

static void say(const char *s)
{
    for (size_t n = strlen(s); n > 0;) {
        const ssize_t w = write(STDERR_FILENO, s, n);
        if (w <= 0) return;
        s += w;
        n -= (size_t)w;
    }
}

static void on_bus(int sig, siginfo_t *info, void *context)
{
    const char *path = NULL;
    (void)context;
    if (watched_model) path = lath_model_file_at(watched_model, info->si_addr);
    if (!path && watched_index) path = lath_index_file_at(watched_index, info->si_addr);
    if (!path) path = watched_path;
    if (!path) { /* no file of ours: let it end the way it would have */
        signal(sig, SIG_DFL);
        raise(sig);
        return;
    }
    say("lath: ");
    say(path);
    say(": the file shrank or could not be read while it was in use\n");
    remove_temp();
    _exit(lath_status_exit_code(LATH_ERR_FORMAT));
}

/* A closed descriptor is filled with /dev/null opened the wrong way round, so that using it is still an error. */
static void fill_descriptor(int fd, int flags)
{
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) return;
    (void)open("/dev/null", flags); /* takes the lowest free number: fd, because those below are open */
}

void signals_install(void)
{
    struct sigaction act;
    fill_descriptor(STDIN_FILENO, O_WRONLY);
    fill_descriptor(STDOUT_FILENO, O_RDONLY);
    fill_descriptor(STDERR_FILENO, O_WRONLY);
    memset(&act, 0, sizeof(act));
    sigemptyset(&act.sa_mask);
    act.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &act, NULL);
    sigaction(SIGXFSZ, &act, NULL);
    act.sa_handler = on_stop; /* no SA_RESTART: a blocked read or write returns and looks at the flag */
    const int stops[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
        struct sigaction old;
        if (sigaction(stops[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN) continue; /* nohup, background jobs */
        sigaction(stops[i], &act, NULL);
    }
    act.sa_flags = SA_SIGINFO;
    act.sa_sigaction = on_bus;
    sigaction(SIGBUS, &act, NULL);
}

bool signals_interrupted(void) { return stop_asked != 0; }

bool signals_take_interrupt(void)
{
    const bool ours = stop_asked == SIGINT;
    if (ours) stop_asked = 0;
    return ours;
}

lath_status signals_check(lath_error *err)
{
    return stop_asked ? err_set(err, LATH_ERR_INTERRUPTED, "interrupted") : LATH_OK;
}

void signals_watch_model(const lath_model *model) { watched_model = model; }
void signals_watch_index(const lath_index *index) { watched_index = index; }
void signals_watch_path(const char *path) { watched_path = path; }

void signals_set_temp(const char *path)
{
    temp_set = 0;
    if (!path || strlen(path) >= sizeof(temp_path)) return;
    memcpy(temp_path, path, strlen(path) + 1);
    temp_set = 1;
}
