/* SPDX-License-Identifier: Apache-2.0
 *
 * test_embcache_file.c: the cache's file: kept from one opening to the next, bits included; another model's, a foreign,
 * a cut or a damaged file is refused and stays as it is, byte for byte; locks are waited for, not for ever; records in
 * and out. Damage inside is made with SQLite itself. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "lath/lath.h"
#include "support/test.h"
#include "support/tmpdir.h"

enum { N = 40, WIDE = 64 };

static lath_error err;
static lath_runtime *rt;
static lath_model *model, *other;
static char dir[TMP_PATH], path[TMP_PATH];
static char rooms[N][300];
static lath_text texts[N];
static float want[N * WIDE];

static lath_model *open_model(const char *name)
{
    char p[TMP_PATH];
    lath_model *m = NULL;
    tmp_join(p, test_data_dir(), name);
    assert_ok(lath_model_open(rt, p, NULL, &m, &err), err);
    return m;
}

static lath_cache *open_cache(void)
{
    lath_cache_options o = LATH_CACHE_OPTIONS_INIT;
    lath_cache *c = NULL;
    o.path = path;
    o.lock_wait_ms = 200;
    assert_ok(lath_cache_open(rt, &o, &c, &err), err);
    return c;
}

/* What embedding the texts with the cache comes to; vectors into v. */
static lath_status embed(const lath_model *m, lath_cache *c, int n, float *v)
{
    lath_embedder *e = NULL;
    lath_embed_options o = LATH_EMBED_OPTIONS_INIT;
    o.cache = c;
    lath_status st = lath_embedder_create(m, &o, &e, &err);
    if (st == LATH_OK) st = lath_embed(e, texts, (size_t)n, v, NULL, &err);
    lath_embedder_destroy(e);
    return st;
}

/* Opens the file and embeds: the whole of what a program does. */
static lath_status use(const lath_model *m, float *v)
{
    lath_cache_options o = LATH_CACHE_OPTIONS_INIT;
    lath_cache *c = NULL;
    o.path = path;
    lath_status st = lath_cache_open(rt, &o, &c, &err);
    if (st == LATH_OK) st = embed(m, c, N, v);
    lath_cache_close(c);
    return st;
}

static int setup(void **state)
{
    lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
    (void)state;
    tmp_make(dir);
    tmp_join(path, dir, "cache");
    o.n_threads = 1; /* children are forked */
    assert_ok(lath_runtime_create(&o, &rt, &err), err);
    model = open_model("golden/bert/mean_norm_gelu");
    other = open_model("golden/bert/cls_norm_bge");
    for (int i = 0; i < N; i++) {
        for (int k = 0; k <= i % 20; k++) strcat(rooms[i], i < 20 ? "water " : "river ");
        texts[i] = (lath_text){rooms[i], strlen(rooms[i])};
    }
    assert_ok(embed(model, NULL, N, want), err);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    lath_model_close(model);
    lath_model_close(other);
    lath_runtime_destroy(rt);
    tmp_remove(dir);
    return 0;
}

/* Only the cache's file is in the folder: no log, no temporary file. */
static void want_alone(void)
{
    static const char *const ends[] = {"-wal", "-shm", "-journal"};
    char p[TMP_PATH + 16];
    for (int i = 0; i < 3; i++) {
        snprintf(p, sizeof(p), "%s%s", path, ends[i]);
        if (access(p, F_OK) == 0) fail_msg("%s was left", p);
    }
}

static void start_anew(void)
{
    char p[TMP_PATH + 16];
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (int i = 0; i < 3; i++) {
        snprintf(p, sizeof(p), "%s%s", path, ends[i]);
        unlink(p);
    }
}

/* A sound file with all texts. */
static void make_good(void)
{
    float v[N * WIDE];
    start_anew();
    assert_ok(use(model, v), err);
    want_alone();
}

static void want_stats(lath_cache *c, uint64_t hits, uint64_t disk_hits, uint64_t misses)
{
    lath_cache_stats s = {.struct_size = sizeof(s)};
    assert_ok(lath_cache_get_stats(c, &s, &err), err);
    if (s.hits != hits || s.disk_hits != disk_hits || s.misses != misses)
        fail_msg("hits %d, disk %d, misses %d", (int)s.hits, (int)s.disk_hits, (int)s.misses);
}

static void sql(const char *text)
{
    sqlite3 *db = NULL;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK) fail_msg("%s: %s", text, message);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ------------------------------------------------------------------------------------------------------------ is kept */

static void test_kept(void **state)
{
    float v[N * WIDE];
    (void)state;
    start_anew();
    lath_cache *c = open_cache();
    assert_ok(embed(model, c, N, v), err);
    want_stats(c, 0, 0, N);
    assert_memory_equal(v, want, N * 30 * sizeof(float));
    lath_cache_close(c);
    want_alone();
    c = open_cache();
    memset(v, 0, sizeof(v));
    assert_ok(embed(model, c, N, v), err);
    want_stats(c, 0, N, 0);
    assert_memory_equal(v, want, N * 30 * sizeof(float));
    assert_ok(embed(model, c, N, v), err);
    want_stats(c, N, N, 0);
    lath_cache_close(c);
}

/* Two handles in one process, as two programs have them. */
static void test_two_handles(void **state)
{
    float v[N * WIDE];
    (void)state;
    start_anew();
    lath_cache *a = open_cache(), *b = open_cache();
    assert_ok(embed(model, a, 10, v), err);
    assert_ok(embed(model, b, 20, v), err);
    want_stats(b, 0, 10, 10);
    assert_ok(embed(model, a, 20, v), err);
    want_stats(a, 10, 10, 10);
    lath_cache_close(b);
    assert_ok(embed(model, a, N, v), err);
    assert_memory_equal(v, want, N * 30 * sizeof(float));
    lath_cache_close(a);
    want_alone();
}

/* ------------------------------------------------------------------------------------------------------ is left alone */

/* The file, of n bytes, is refused for that reason, and no byte of it changes. */
static void refuse(const lath_model *m, lath_status st, const char *part)
{
    float v[N * WIDE];
    size_t n = 0, after = 0;
    char *before = tmp_read(dir, "cache", &n);
    if (use(m, v) != st || !strstr(err.msg, part) || !strstr(err.msg, "/cache: "))
        fail_msg("status %d (%s), want %d (%s)", (int)err.status, err.msg, (int)st, part);
    char *bytes = tmp_read(dir, "cache", &after);
    assert_int_equal(after, n);
    assert_memory_equal(bytes, before, n);
    free(before);
    free(bytes);
}

static void test_other_model(void **state)
{
    (void)state;
    make_good();
    refuse(other, LATH_ERR_FORMAT, "of another model");
    want_alone();
    float v[N * WIDE];
    lath_cache *c = open_cache(); /* also when it is open already */
    assert_ok(embed(model, c, N, v), err);
    assert_int_equal(embed(other, c, N, v), LATH_ERR_FORMAT);
    assert_ok(embed(model, c, N, v), err);
    assert_memory_equal(v, want, N * 30 * sizeof(float));
    lath_cache_close(c);
}

static void test_foreign(void **state)
{
    char link_path[TMP_PATH];
    (void)state;
    start_anew();
    tmp_write_bytes(dir, "cache", "", 0);
    refuse(model, LATH_ERR_FORMAT, "the file is empty or cut");
    tmp_write(dir, "cache", "a text of mine\n");
    refuse(model, LATH_ERR_FORMAT, "no embedding cache");
    tmp_write_bytes(dir, "cache", "SQLite format 3", 16);
    refuse(model, LATH_ERR_FORMAT, "cut");
    start_anew();
    sql("CREATE TABLE diary(entry TEXT);INSERT INTO diary VALUES('today')");
    refuse(model, LATH_ERR_FORMAT, "a database of another program");
    sql("PRAGMA journal_mode=WAL");
    refuse(model, LATH_ERR_FORMAT, "a database of another program");
    make_good();
    sql("PRAGMA user_version=2");
    refuse(model, LATH_ERR_FORMAT, "version 2");
    start_anew();
    assert_int_equal(mkdir(path, 0755), 0);
    float v[N * WIDE];
    assert_int_equal(use(model, v), LATH_ERR_NOT_FOUND);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0644), 0);
    assert_int_equal(use(model, v), LATH_ERR_NOT_FOUND);
    start_anew();
    tmp_join(link_path, dir, "nowhere/x");
    assert_int_equal(symlink(link_path, path), 0);
    assert_int_equal(use(model, v), LATH_ERR_IO);
    start_anew();
}

/* A database of another program that was killed: what it left in its log is not touched. */
static void test_foreign_with_a_log(void **state)
{
    char saved[TMP_PATH];
    float v[N * WIDE];
    sqlite3 *db = NULL;
    size_t n, m;
    (void)state;
    start_anew();
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "PRAGMA journal_mode=WAL;CREATE TABLE t(x);INSERT INTO t VALUES(1)", NULL, NULL, NULL),
        SQLITE_OK);
    char *main_file = tmp_read(dir, "cache", &n), *log = tmp_read(dir, "cache-wal", &m);
    assert_true(m > 0);
    sqlite3_close(db);
    tmp_write_bytes(dir, "cache", main_file, n);
    tmp_write_bytes(dir, "cache-wal", log, m);
    assert_int_equal(use(model, v), LATH_ERR_FORMAT);
    size_t size;
    char *after = tmp_read(dir, "cache-wal", &size);
    assert_int_equal(size, m);
    assert_memory_equal(after, log, m);
    free(after);
    free(main_file);
    free(log);
    tmp_join(saved, dir, "cache-shm");
    assert_int_not_equal(access(saved, F_OK), 0);
}

/* A text of each reason that a cut or damaged file gives. */
static void test_cut(void **state)
{
    size_t n = 0;
    (void)state;
    make_good();
    char *good = tmp_read(dir, "cache", &n);
    for (size_t cut = 16; cut < n; cut += 509) {
        tmp_write_bytes(dir, "cache", good, cut);
        refuse(model, LATH_ERR_FORMAT, "");
        want_alone();
    }
    free(good);
}

/* A byte anywhere: either the file is refused and stays as it is, or nothing that is read from it is wrong. */
static void test_damaged(void **state)
{
    float v[N * WIDE];
    size_t n = 0, after = 0;
    int refused = 0, harmless = 0;
    (void)state;
    make_good();
    char *good = tmp_read(dir, "cache", &n), *bad = malloc(n);
    for (size_t at = 0; at < n; at += at < 200 ? 7 : 61) {
        memcpy(bad, good, n);
        bad[at] = (char)(bad[at] ^ 0x41);
        start_anew();
        tmp_write_bytes(dir, "cache", bad, n);
        const lath_status st = use(model, v);
        if (st == LATH_OK) {
            assert_memory_equal(v, want, N * 30 * sizeof(float));
            harmless++;
            continue;
        }
        if (st != LATH_ERR_FORMAT) fail_msg("byte %zu: status %d (%s)", at, (int)st, err.msg);
        char *bytes = tmp_read(dir, "cache", &after);
        assert_int_equal(after, n);
        assert_memory_equal(bytes, bad, n);
        free(bytes);
        want_alone();
        refused++;
    }
    printf("    %d damaged files refused, %d harmless (bytes that hold nothing)\n", refused, harmless);
    assert_true(refused > 50);
    free(good);
    free(bad);
}

/* One number of one weight decides which model it is. */
static void test_almost_the_same_model(void **state)
{
    char from[TMP_PATH], copy[TMP_PATH];
    const float number = 0.125f;
    float v[N * WIDE];
    lath_model *m = NULL;
    (void)state;
    make_good();
    tmp_join(from, test_data_dir(), "golden/bert/mean_norm_gelu");
    tmp_copy(copy, from);
    assert_ok(lath_model_open(rt, copy, NULL, &m, &err), err);
    assert_ok(use(m, v), err); /* a copy is the same */
    lath_model_close(m);
    tmp_patch_tensor(copy, "embeddings.word_embeddings.weight", 400, &number, sizeof(number));
    assert_ok(lath_model_open(rt, copy, NULL, &m, &err), err);
    refuse(m, LATH_ERR_FORMAT, "of another model");
    lath_model_close(m);
    tmp_remove(copy);
}

/* What only a program that knows the tables could do. */
static void test_changed_inside(void **state)
{
    static const struct {
        const char *sql, *part;
    } cases[] = {
        {"UPDATE vectors SET vector=(SELECT vector FROM vectors ORDER BY hash DESC LIMIT 1)", "checksum"},
        {"UPDATE vectors SET vector=zeroblob(120)", "checksum"},
        {"UPDATE vectors SET vector=zeroblob(116)", "wrong length"},
        {"UPDATE vectors SET vector='text'", "wrong length"},
        {"UPDATE vectors SET ids=x'01000000'", "checksum"},
        {"UPDATE vectors SET ids=x'0100'", "wrong length"},
        {"UPDATE vectors SET skip=skip+1", "checksum"},
        {"UPDATE vectors SET sum=sum+1", "checksum"},
        {"UPDATE vectors SET sum='x'", "checksum"},
        {"UPDATE model SET fingerprint=zeroblob(16)", "of another model"},
        {"UPDATE model SET fingerprint=x'00'", "of another model"},
        {"CREATE TABLE more(x)", "tables"},
        {"DROP TABLE spaces", "tables"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        make_good();
        sql(cases[i].sql);
        refuse(model, LATH_ERR_FORMAT, cases[i].part);
    }
    /* the settings of another space, or vectors that another model made */
    make_good();
    sql("UPDATE spaces SET settings=settings||'x'");
    float v[N * WIDE];
    assert_ok(use(model, v), err);
    assert_memory_equal(v, want, N * 30 * sizeof(float));
    make_good();
    char text[2 * TMP_PATH], theirs_path[TMP_PATH], mine[TMP_PATH];
    lath_model_info info = {.struct_size = sizeof(info)};
    assert_ok(lath_model_get_info(other, &info, &err), err);
    tmp_join(theirs_path, dir, "theirs");
    memcpy(mine, path, sizeof(mine));
    memcpy(path, theirs_path, sizeof(path));
    assert_ok(use(other, v), err);
    memcpy(path, mine, sizeof(path));
    snprintf(text, sizeof(text), "ATTACH '%s' AS t;UPDATE model SET fingerprint=(SELECT fingerprint FROM t.model)",
             theirs_path);
    sql(text);
    float theirs[N * WIDE];
    assert_ok(use(other, v), err); /* no vector of the first model may come out */
    assert_ok(embed(other, NULL, N, theirs), err);
    assert_memory_equal(v, theirs, sizeof(float) * N * (size_t)info.d_embedding);
}

/* -------------------------------------------------------------------------------------------------- locks, full disks */

static void test_locked(void **state)
{
    float v[N * WIDE];
    sqlite3 *db = NULL;
    (void)state;
    start_anew();
    lath_cache *c = open_cache();
    assert_ok(embed(model, c, 10, v), err);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_ok(embed(model, c, 10, v), err); /* reading needs no lock */
    const double begin = clock_now();
    assert_int_equal(embed(model, c, 20, v), LATH_ERR_IO);
    const double waited = clock_now() - begin;
    assert_non_null(strstr(err.msg, "locked for 0.2 s"));
    assert_true(waited >= 0.15 && waited < 20);
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_ok(embed(model, c, N, v), err);
    assert_memory_equal(v, want, N * 30 * sizeof(float));
    lath_cache_close(c);
    assert_ok(use(model, v), err);
    assert_memory_equal(v, want, N * 30 * sizeof(float));
}

/* A file that may not grow stands for a full disk. */
static void test_full_disk(void **state)
{
    float v[N * WIDE];
    int code = 0;
    (void)state;
    start_anew();
    lath_cache *c = open_cache();
    assert_ok(embed(model, c, 5, v), err);
    lath_cache_close(c);
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {4096, 4096};
        signal(SIGXFSZ, SIG_IGN);
        const lath_status st = setrlimit(RLIMIT_FSIZE, &limit) == 0 ? use(model, v) : LATH_OK;
        _exit(st == LATH_ERR_IO && strstr(err.msg, "/cache: ") ? 0 : 1 + (int)st);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code));
    assert_int_equal(WEXITSTATUS(code), 0);
    assert_ok(use(model, v), err);
    assert_memory_equal(v, want, N * 30 * sizeof(float));
    start_anew();
    tmp_join(path, dir, "no/such/folder");
    assert_int_equal(use(model, v), LATH_ERR_IO);
    tmp_join(path, dir, "cache");
}

/* ------------------------------------------------------------------------------------------------------------ records */

static lath_embedder *with_cache(const lath_model *m, lath_cache *c, int32_t dim)
{
    lath_embedder *e = NULL;
    lath_embed_options o = LATH_EMBED_OPTIONS_INIT;
    o.cache = c;
    o.dim = dim;
    assert_ok(lath_embedder_create(m, &o, &e, &err), err);
    return e;
}

static lath_cache *memory_cache(void)
{
    lath_cache *c = NULL;
    assert_ok(lath_cache_open(rt, NULL, &c, &err), err);
    return c;
}

static void test_records(void **state)
{
    float v[N * WIDE];
    char rec[TMP_PATH], again[TMP_PATH];
    uint64_t n = 0;
    (void)state;
    tmp_join(rec, dir, "rec");
    tmp_join(again, dir, "again");
    for (int from_file = 0; from_file < 2; from_file++) {
        start_anew();
        lath_cache *c = from_file ? open_cache() : memory_cache();
        lath_embedder *e = with_cache(model, c, 0), *short_one = with_cache(model, c, 5);
        assert_ok(lath_embed(e, texts, N, v, NULL, &err), err);
        assert_ok(lath_embed(short_one, texts, 3, v, NULL, &err), err);
        assert_ok(lath_cache_export(e, rec, &n, &err), err);
        assert_int_equal(n, N); /* the other settings' vectors stay out */
        lath_embedder_destroy(e);
        lath_embedder_destroy(short_one);
        lath_cache_close(c);
        for (int to_file = 0; to_file < 2; to_file++) {
            start_anew();
            c = to_file ? open_cache() : memory_cache();
            e = with_cache(model, c, 0);
            n = 0;
            assert_ok(lath_cache_import(e, rec, &n, &err), err);
            assert_int_equal(n, N);
            memset(v, 0, sizeof(v));
            assert_ok(lath_embed(e, texts, N, v, NULL, &err), err);
            want_stats(c, N, 0, 0);
            assert_memory_equal(v, want, N * 30 * sizeof(float));
            assert_ok(lath_cache_export(e, again, NULL, &err), err);
            if (from_file == to_file) {
                size_t a, b;
                char *one = tmp_read(dir, "rec", &a), *two = tmp_read(dir, "again", &b);
                assert_int_equal(a, b);
                assert_memory_equal(one, two, a);
                free(one);
                free(two);
            }
            lath_embedder_destroy(e);
            lath_cache_close(c);
            if (to_file) { /* and it is in the file */
                c = open_cache();
                assert_ok(embed(model, c, N, v), err);
                want_stats(c, 0, N, 0);
                lath_cache_close(c);
            }
        }
    }
}

static void test_records_refused(void **state)
{
    float v[N * WIDE];
    char rec[TMP_PATH];
    size_t size;
    uint64_t n = 77;
    (void)state;
    tmp_join(rec, dir, "rec");
    lath_cache *c = memory_cache();
    lath_embedder *e = with_cache(model, c, 0), *short_one = with_cache(model, c, 5),
                  *of_other = with_cache(other, c, 0);
    assert_ok(lath_embed(e, texts, N, v, NULL, &err), err);
    assert_ok(lath_cache_export(e, rec, NULL, &err), err);
    assert_int_equal(lath_cache_import(of_other, rec, &n, &err), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "rec: the records are of another model"));
    assert_int_equal(lath_cache_import(short_one, rec, &n, &err), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "rec: the records are of other settings"));
    char *bytes = tmp_read(dir, "rec", &size);
    bytes[size / 2] = (char)(bytes[size / 2] ^ 1);
    tmp_write_bytes(dir, "rec", bytes, size);
    free(bytes);
    lath_cache *fresh = memory_cache();
    lath_embedder *f = with_cache(model, fresh, 0);
    assert_int_equal(lath_cache_import(f, rec, &n, &err), LATH_ERR_FORMAT);
    assert_int_equal(lath_cache_import(f, "nowhere.rec", &n, &err), LATH_ERR_NOT_FOUND);
    assert_int_equal(n, 77);
    lath_cache_stats s = {.struct_size = sizeof(s)};
    assert_ok(lath_cache_get_stats(fresh, &s, &err), err);
    assert_int_equal(s.entries, 0); /* nothing of it was taken */
    assert_int_equal(lath_cache_export(f, "/nowhere/rec", NULL, &err), LATH_ERR_IO);
    lath_embedder_destroy(f);
    lath_cache_close(fresh);
    lath_embedder_destroy(e);
    lath_embedder_destroy(short_one);
    lath_embedder_destroy(of_other);
    lath_cache_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_two_handles),
        cmocka_unit_test(test_other_model),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_foreign_with_a_log),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_almost_the_same_model),
        cmocka_unit_test(test_changed_inside),
        cmocka_unit_test(test_locked),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_records_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
