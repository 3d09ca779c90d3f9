/* SPDX-License-Identifier: Apache-2.0
 *
 * test_embcache_kill.c: the cache's file under several processes and kill -9. A child embeds new texts without end and
 * tells through a pipe how many calls are done; it is killed at some moment, fifty times; then every text of every
 * call that was done has to be in the file, with the bits that computing gives. */
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lath/lath.h"
#include "support/test.h"
#include "support/tmpdir.h"

enum { KILLS = 50, EACH = 4, WIDE = 64, D = 30, WORDS = 6, TOGETHER = 3, SHARED = 240 };

static lath_error err;
static char dir[TMP_PATH], path[TMP_PATH];

/* Text i: i in base 6, a word a digit. */
static lath_text numbered(char room[400], uint32_t i)
{
    static const char *const words[WORDS] = {"water ", "river ", "old ", "green ", "small ", "house "};
    room[0] = 0;
    for (i += WORDS; i > 0; i /= WORDS) strcat(room, words[i % WORDS]);
    return (lath_text){room, strlen(room)};
}

typedef struct user {
    lath_runtime *rt;
    lath_model *model;
    lath_cache *cache;
    lath_embedder *e;
} user;

/* One process's way to the file; no thread is started. */
static lath_status start(user *u, bool cached)
{
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_cache_options co = LATH_CACHE_OPTIONS_INIT;
    lath_embed_options eo = LATH_EMBED_OPTIONS_INIT;
    char name[TMP_PATH];
    *u = (user){0};
    snprintf(name, sizeof(name), "%s/golden/bert/mean_norm_gelu", test_data_dir());
    ro.n_threads = 1;
    co.path = path;
    co.max_entries = 10;
    lath_status st = lath_runtime_create(&ro, &u->rt, &err);
    if (st == LATH_OK) st = lath_model_open(u->rt, name, NULL, &u->model, &err);
    if (st == LATH_OK && cached) st = lath_cache_open(u->rt, &co, &u->cache, &err);
    eo.cache = u->cache;
    if (st == LATH_OK) st = lath_embedder_create(u->model, &eo, &u->e, &err);
    return st;
}

static void stop(user *u)
{
    lath_embedder_destroy(u->e);
    lath_cache_close(u->cache);
    lath_model_close(u->model);
    lath_runtime_destroy(u->rt);
}

static lath_status embed(const user *u, uint32_t first, uint32_t n, float *v)
{
    static char rooms[EACH][400];
    lath_text texts[EACH];
    for (uint32_t i = 0; i < n; i++) texts[i] = numbered(rooms[i], first + i);
    return lath_embed(u->e, texts, n, v, NULL, &err);
}

/* The child: calls without end from text `first` on, each told when it is done. */
static void write_for_ever(uint32_t first, int pipe_end)
{
    user u;
    float v[EACH * WIDE];
    if (start(&u, true) != LATH_OK) _exit(2);
    for (;;) {
        if (embed(&u, first, EACH, v) != LATH_OK) _exit(3);
        first += EACH;
        if (write(pipe_end, &first, sizeof(first)) != sizeof(first)) _exit(4);
    }
}

/* Lets a child write for about that long, kills it, and gives the first text of the call that it was in. */
static uint32_t kill_one(uint32_t first, long microseconds)
{
    int ends[2], code = 0;
    uint32_t told, done = first;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        write_for_ever(first, ends[1]);
    }
    assert_true(child > 0);
    close(ends[1]);
    const struct timespec pause = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&pause, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    while (read(ends[0], &told, sizeof(told)) == sizeof(told)) done = told;
    close(ends[0]);
    assert_int_equal(waitpid(child, &code, 0), child);
    if (!WIFSIGNALED(code)) fail_msg("the child ended by itself, code %d", code);
    return done;
}

/* Texts from..to - 1 with the file and without, bit for bit; returns how many had to be computed. */
static uint64_t compare(uint32_t from, uint32_t to)
{
    user with, without;
    float a[EACH * WIDE], b[EACH * WIDE];
    lath_cache_stats s = {.struct_size = sizeof(s)};
    assert_ok(start(&with, true), err);
    assert_ok(start(&without, false), err);
    for (uint32_t i = from; i < to; i += EACH) {
        const uint32_t n = to - i < EACH ? to - i : EACH;
        assert_ok(embed(&with, i, n, a), err);
        assert_ok(embed(&without, i, n, b), err);
        assert_memory_equal(a, b, n * D * sizeof(float));
    }
    assert_ok(lath_cache_get_stats(with.cache, &s, &err), err);
    stop(&with);
    stop(&without);
    return s.misses;
}

static void test_kill(void **state)
{
    uint32_t done = 0;
    unsigned seed = 12345;
    (void)state;
    for (int i = 0; i < KILLS; i++) {
        seed = seed * 1103515245 + 12345;
        done = kill_one(done, 1000 + (long)(seed >> 8) % 60000); /* from before the file is there to far into writing */
        if (i % 10 == 9) assert_int_equal(compare(0, done), 0);
    }
    assert_true(done > 0);
    assert_int_equal(compare(0, done), 0);
    printf("    %d kills, %u texts kept\n", KILLS, done);
    assert_true(compare(0, done + 2 * EACH) <= 2 * EACH);
    assert_int_equal(compare(0, done + 2 * EACH), 0);
}

/* A child that writes its share of the texts and everybody else's. */
static void write_share(uint32_t first)
{
    user u;
    float v[EACH * WIDE];
    lath_status st = start(&u, true);
    for (uint32_t i = 0; st == LATH_OK && i < SHARED; i += EACH) st = embed(&u, (first + i) % SHARED, EACH, v);
    stop(&u);
    if (st != LATH_OK) fprintf(stderr, "%s\n", err.msg);
    _exit(st == LATH_OK ? 0 : 1);
}

/* All of them find no file, make it, and write. */
static void test_together(void **state)
{
    char *ends[] = {"", "-wal", "-shm"}, p[TMP_PATH + 8];
    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf(p, sizeof(p), "%s%s", path, ends[i]);
        unlink(p);
    }
    pid_t children[TOGETHER];
    for (int i = 0; i < TOGETHER; i++) {
        children[i] = fork();
        if (children[i] == 0) write_share((uint32_t)i * (SHARED / TOGETHER / EACH * EACH));
        assert_true(children[i] > 0);
    }
    for (int i = 0; i < TOGETHER; i++) {
        int code = 0;
        assert_int_equal(waitpid(children[i], &code, 0), children[i]);
        assert_true(WIFEXITED(code));
        assert_int_equal(WEXITSTATUS(code), 0);
    }
    assert_int_equal(compare(0, SHARED), 0);
}

static int setup(void **state)
{
    (void)state;
    tmp_make(dir);
    tmp_join(path, dir, "cache");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tmp_remove(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kill), cmocka_unit_test(test_together)};
    return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
