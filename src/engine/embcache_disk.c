/* SPDX-License-Identifier: Apache-2.0
 *
 * embcache_disk.c: the cache's file, a SQLite database in WAL mode (the one owner of sqlite3.h; docs/formats/embcache.md
 * has the tables). What keeps it whole:
 *   - it is made under a temporary name and linked to its own, so that a file of that name is complete or not there;
 *   - its first bytes are looked at, through SQLite's own handle, before SQLite reads, recovers or writes anything (a
 *     second descriptor would drop the process's locks on the file when it is closed);
 *   - rows go in by transactions; WAL with synchronous=NORMAL loses none that was committed when a process is killed,
 *     and stays consistent when the power goes;
 *   - a row's checksum is seeded by the hash of its key, which is seeded by model and settings: a vector that stands in
 *     the wrong place is as visible as one that is damaged.
 */
#include "engine/embcache_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "ids and vectors are kept little-endian"
#endif

#define APPLICATION_ID 0x4C454331 /* "LEC1" */
#define FILE_VERSION 1
#define STRING_(x) #x
#define STRING(x) STRING_(x)

#define TABLE_MODEL "CREATE TABLE model(id INTEGER PRIMARY KEY CHECK(id=1),fingerprint BLOB NOT NULL)"
#define TABLE_SPACES "CREATE TABLE spaces(id INTEGER PRIMARY KEY,settings TEXT NOT NULL UNIQUE)"
#define TABLE_VECTORS                                                                                               \
    "CREATE TABLE vectors(hash INTEGER PRIMARY KEY,space INTEGER NOT NULL,skip INTEGER NOT NULL,ids BLOB NOT NULL," \
    "vector BLOB NOT NULL,sum INTEGER NOT NULL)"

enum {
    HEADER_BYTES = 100, /* of a SQLite file */
    AT_VERSION = 60,    /* user_version, big-endian */
    AT_APPLICATION = 68,
    TEMP_TRIES = 1000,
    TEMP_SUFFIX = 40,
    CHECK_ALL_BYTES = 32 << 20 /* a file up to here is checked as a whole when it is opened: some ten milliseconds */
};

typedef enum statement {
    BEGIN,
    COMMIT,
    ROLLBACK,
    GET_MODEL,
    PUT_MODEL,
    GET_SPACE,
    PUT_SPACE,
    GET_VECTOR,
    PUT_VECTOR,
    EACH_VECTOR,
    N_STATEMENTS
} statement;

static const char *const SQL[N_STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
    [GET_MODEL] = "SELECT fingerprint FROM model",
    [PUT_MODEL] = "INSERT INTO model VALUES(1,?)",
    [GET_SPACE] = "SELECT id FROM spaces WHERE settings=?",
    [PUT_SPACE] = "INSERT INTO spaces(settings) VALUES(?)",
    [GET_VECTOR] = "SELECT hash,space,skip,ids,vector,sum FROM vectors WHERE hash=?",
    [PUT_VECTOR] = "INSERT OR IGNORE INTO vectors(hash,space,skip,ids,vector,sum) VALUES(?,?,?,?,?,?)",
    [EACH_VECTOR] = "SELECT hash,space,skip,ids,vector,sum FROM vectors WHERE space=?",
};

struct embdisk {
    const lath_allocator *alloc;
    char *path;             /* as given; owned */
    char log[PATH_MAX + 8]; /* of SQLite's write-ahead log */
    int32_t wait_ms;
    sqlite3 *db;
    sqlite3_stmt *stmt[N_STATEMENTS];
};

/* ------------------------------------------------------------------------------------------------------------- errors */

/* What is in the log stays there when the database is closed, instead of being written into the file. An empty log is
 * better removed. */
static void keep_log(embdisk *d)
{
    struct stat sb;
    const bool holds = stat(d->log, &sb) == 0 && sb.st_size > 0;
    sqlite3_db_config(d->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, holds, NULL);
}

static lath_status damaged(embdisk *d, const char *what, lath_error *err)
{
    keep_log(d);
    return err_set(err, LATH_ERR_FORMAT, "%s: damaged embedding cache: %s", d->path, what);
}

/* What a SQLite result code means to us. */
static lath_status failed(embdisk *d, int rc, const char *doing, lath_error *err)
{
    switch (rc & 0xFF) {
    case SQLITE_NOMEM: return err_set(err, LATH_ERR_NOMEM, "%s: out of memory while %s", d->path, doing);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(err, LATH_ERR_IO, "%s: another process has had the embedding cache locked for %.1f s", d->path,
                       (double)d->wait_ms / 1e3);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return damaged(d, sqlite3_errmsg(d->db), err);
    default: break;
    }
    if (rc == SQLITE_IOERR_SHORT_READ) return damaged(d, "it is cut", err);
    const int e = sqlite3_system_errno(d->db);
    if (e) return err_os(err, LATH_ERR_IO, e, "%s: embedding cache, %s: %s", d->path, doing, sqlite3_errmsg(d->db));
    return err_set(err, LATH_ERR_IO, "%s: embedding cache, %s: %s", d->path, doing, sqlite3_errmsg(d->db));
}

/* -------------------------------------------------------------------------------------------------------- statements */

/* The statement, ready for new values. */
static sqlite3_stmt *fresh(embdisk *d, statement which)
{
    sqlite3_reset(d->stmt[which]);
    sqlite3_clear_bindings(d->stmt[which]);
    return d->stmt[which];
}

/* Runs one that gives no row. */
static lath_status run(embdisk *d, sqlite3_stmt *s, const char *doing, lath_error *err)
{
    const int rc = sqlite3_step(s);
    lath_status st = rc == SQLITE_DONE ? LATH_OK : failed(d, rc, doing, err);
    sqlite3_reset(s);
    return st;
}

static lath_status begin(embdisk *d, lath_error *err) { return run(d, fresh(d, BEGIN), "locking", err); }

/* Commits when st is LATH_OK, else undoes. */
static lath_status end(embdisk *d, lath_status st, lath_error *err)
{
    if (st == LATH_OK) st = run(d, fresh(d, COMMIT), "committing", err);
    if (st != LATH_OK && !sqlite3_get_autocommit(d->db)) (void)run(d, fresh(d, ROLLBACK), "undoing", NULL);
    return st;
}

static lath_status exec(embdisk *d, const char *sql, const char *doing, lath_error *err)
{
    const int rc = sqlite3_exec(d->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? LATH_OK : failed(d, rc, doing, err);
}

/* The text that a query's first row begins with is `want`; *same says so. */
static lath_status compare_text(embdisk *d, const char *sql, const char *want, bool *same, lath_error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(d->db, sql, -1, &s, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_step(s);
    const unsigned char *text = rc == SQLITE_ROW ? sqlite3_column_text(s, 0) : NULL;
    *same = text && strcmp((const char *)text, want) == 0;
    lath_status st = rc == SQLITE_ROW || rc == SQLITE_DONE ? LATH_OK : failed(d, rc, "opening", err);
    sqlite3_finalize(s);
    return st;
}

/* --------------------------------------------------------------------------------------------------------- a new file */

/* A complete, empty cache in the file of that name, which is there and empty. */
static lath_status fill_new(embdisk *d, const char *name, lath_error *err)
{
    static const char sql[] = "PRAGMA page_size=8192;PRAGMA journal_mode=MEMORY;"
                              "PRAGMA application_id=" STRING(APPLICATION_ID) ";PRAGMA user_version=" STRING(
                                  FILE_VERSION) ";BEGIN;" TABLE_MODEL ";" TABLE_SPACES ";" TABLE_VECTORS ";COMMIT;"
                                                "PRAGMA journal_mode=WAL;";
    const int rc = sqlite3_open_v2(name, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    lath_status st = rc == SQLITE_OK ? exec(d, sql, "making it", err)
                     : d->db         ? failed(d, rc, "making it", err)
                                     : err_nomem(err, sizeof(*d));
    sqlite3_close(d->db);
    d->db = NULL;
    return st;
}

/* Makes the file unless somebody else does so first. `real` is absolute when the folder is known. */
static lath_status make_file(embdisk *d, lath_error *err)
{
    const size_t size = strlen(d->path) + TEMP_SUFFIX;
    char *temp = alloc_bytes(d->alloc, size, 1);
    lath_status st = LATH_OK;
    int fd = -1;
    if (!temp) return err_nomem(err, size);
    for (int i = 0; i < TEMP_TRIES; i++) {
        snprintf(temp, size, "%s%s.%ld-%d.tmp", strchr(d->path, '/') ? "" : "./", d->path, (long)getpid(), i);
        fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
        if (fd >= 0 || (errno != EEXIST && errno != EINTR)) break;
    }
    if (fd < 0) {
        const int e = errno;
        st = err_os(err, LATH_ERR_IO, e, "%s: cannot create", d->path);
        goto done;
    }
    close(fd);
    st = fill_new(d, temp, err);
    if (st == LATH_OK && link(temp, d->path) != 0 && errno != EEXIST) {
        const int e = errno;
        st = err_os(err, LATH_ERR_IO, e, "%s: cannot create", d->path);
    }
    unlink(temp);
done:
    alloc_release(d->alloc, temp, size);
    return st;
}

/* The file is there and is a regular one; its absolute path into real, so that SQLite sees no name with a meaning of its
 * own (":memory:"). */
static lath_status provide_file(embdisk *d, char real[PATH_MAX], lath_error *err)
{
    struct stat sb;
    if (stat(d->path, &sb) != 0) {
        if (errno != ENOENT) {
            const int e = errno;
            return err_os(err, LATH_ERR_NOT_FOUND, e, "%s: cannot open", d->path);
        }
        TRY(make_file(d, err));
    }
    if (stat(d->path, &sb) != 0 || !realpath(d->path, real)) {
        const int e = errno;
        return err_os(err, LATH_ERR_IO, e, "%s: cannot open", d->path);
    }
    if (!S_ISREG(sb.st_mode)) return err_set(err, LATH_ERR_NOT_FOUND, "%s: no regular file", d->path);
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------- checks */

static uint32_t big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Before SQLite touches it. */
static lath_status check_header(embdisk *d, lath_error *err)
{
    static const char magic[16] = "SQLite format 3";
    unsigned char head[HEADER_BYTES];
    sqlite3_file *f = NULL;
    sqlite3_int64 size = 0;
    int rc = sqlite3_file_control(d->db, "main", SQLITE_FCNTL_FILE_POINTER, &f);
    if (rc != SQLITE_OK || !f || !f->pMethods) return failed(d, rc, "opening", err);
    rc = f->pMethods->xFileSize(f, &size);
    if (rc != SQLITE_OK) return failed(d, rc, "opening", err);
    if (size == 0) return err_set(err, LATH_ERR_FORMAT, "%s: no embedding cache: the file is empty or cut", d->path);
    rc = f->pMethods->xRead(f, head, sizeof(head), 0); /* what is not there is read as 0 */
    if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ) return failed(d, rc, "reading", err);
    if (memcmp(head, magic, sizeof(magic)) != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: no embedding cache (it does not begin as one)", d->path);
    if (size < HEADER_BYTES) return damaged(d, "it is cut", err);
    if (big_endian(head + AT_APPLICATION) != APPLICATION_ID)
        return err_set(err, LATH_ERR_FORMAT, "%s: no embedding cache, but a database of another program", d->path);
    if (big_endian(head + AT_VERSION) != FILE_VERSION)
        return err_set(err, LATH_ERR_FORMAT, "%s: embedding cache of version %u, want %d", d->path,
                       big_endian(head + AT_VERSION), FILE_VERSION);
    return LATH_OK;
}

/* Journal mode, tables, and of a small file every page. */
static lath_status check_content(embdisk *d, bool all, lath_error *err)
{
    bool same = false;
    TRY(compare_text(
        d, "SELECT group_concat(sql,';') FROM (SELECT sql FROM sqlite_schema WHERE sql NOT NULL ORDER BY name)",
        TABLE_MODEL ";" TABLE_SPACES ";" TABLE_VECTORS, &same, err));
    if (!same) return damaged(d, "its tables are not those of a cache", err);
    TRY(compare_text(d, "PRAGMA journal_mode=WAL", "wal", &same, err));
    if (!same) return err_set(err, LATH_ERR_IO, "%s: the embedding cache has to be on a local file system", d->path);
    if (!all) return LATH_OK;
    TRY(compare_text(d, "PRAGMA quick_check(1)", "ok", &same, err));
    return same ? LATH_OK : damaged(d, "its pages contradict each other", err);
}

/* -------------------------------------------------------------------------------------------------------- open, close */

static lath_status open_database(embdisk *d, const char *real, lath_error *err)
{
    struct stat sb = {0};
    int rc = sqlite3_open_v2(real, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (!d->db) return err_nomem(err, sizeof(*d));
    if (rc != SQLITE_OK) return failed(d, rc, "opening", err);
    snprintf(d->log, sizeof(d->log), "%s-wal", real);
    keep_log(d); /* what another process left goes into the file only when both have been found sound */
    sqlite3_db_config(d->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(d->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    TRY(check_header(d, err));
    if (sqlite3_db_readonly(d->db, "main") == 1)
        return err_set(err, LATH_ERR_IO, "%s: the embedding cache cannot be written", d->path);
    sqlite3_busy_timeout(d->db, d->wait_ms);
    TRY(exec(d, "PRAGMA synchronous=NORMAL;PRAGMA cell_size_check=ON;PRAGMA journal_size_limit=67108864", "opening",
             err));
    TRY(check_content(d, stat(real, &sb) == 0 && sb.st_size <= CHECK_ALL_BYTES, err));
    for (int i = 0; i < N_STATEMENTS; i++) {
        rc = sqlite3_prepare_v3(d->db, SQL[i], -1, SQLITE_PREPARE_PERSISTENT, &d->stmt[i], NULL);
        if (rc != SQLITE_OK) return failed(d, rc, "opening", err);
    }
    sqlite3_db_config(d->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return LATH_OK;
}

lath_status embdisk_open(const lath_allocator *alloc, const char *path, int32_t wait_ms, embdisk **out, lath_error *err)
{
    char real[PATH_MAX];
    const size_t len = strlen(path);
    if (len == 0) return err_set(err, LATH_ERR_USAGE, "embedding cache: an empty path");
    embdisk *d = alloc_zero(alloc, sizeof(*d));
    if (!d) return err_nomem(err, sizeof(*d));
    d->alloc = alloc;
    d->wait_ms = wait_ms;
    d->path = alloc_bytes(alloc, len + 1, 1);
    lath_status st = d->path ? LATH_OK : err_nomem(err, len + 1);
    if (st == LATH_OK) {
        memcpy(d->path, path, len + 1);
        st = provide_file(d, real, err);
    }
    if (st == LATH_OK) st = open_database(d, real, err);
    if (st != LATH_OK)
        embdisk_close(d);
    else
        *out = d;
    return st;
}

void embdisk_close(embdisk *d)
{
    if (!d) return;
    for (int i = 0; i < N_STATEMENTS; i++) sqlite3_finalize(d->stmt[i]);
    sqlite3_close(d->db);
    if (d->path) alloc_release(d->alloc, d->path, strlen(d->path) + 1);
    alloc_release(d->alloc, d, sizeof(*d));
}

/* -------------------------------------------------------------------------------------------------------------- space */

/* *known: the file is bound to a model, which is this one. */
static lath_status check_model(embdisk *d, const embcache_space *s, bool *known, lath_error *err)
{
    sqlite3_stmt *q = fresh(d, GET_MODEL);
    const int rc = sqlite3_step(q);
    lath_status st = LATH_OK;
    *known = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        st = failed(d, rc, "reading", err);
    else if (*known && (sqlite3_column_bytes(q, 0) != (int)sizeof(s->model) ||
                        memcmp(sqlite3_column_blob(q, 0), s->model, sizeof(s->model)) != 0))
        st = err_set(err, LATH_ERR_FORMAT, "%s: the embedding cache holds vectors of another model", d->path);
    sqlite3_reset(q);
    return st;
}

static lath_status find_space(embdisk *d, embcache_space *s, bool *known, lath_error *err)
{
    sqlite3_stmt *q = fresh(d, GET_SPACE);
    sqlite3_bind_text(q, 1, s->settings, -1, SQLITE_STATIC);
    const int rc = sqlite3_step(q);
    *known = rc == SQLITE_ROW;
    if (*known) s->disk_id = sqlite3_column_int64(q, 0);
    lath_status st = rc == SQLITE_ROW || rc == SQLITE_DONE ? LATH_OK : failed(d, rc, "reading", err);
    sqlite3_reset(q);
    return st;
}

/* Looks again, now that nobody else can write, and adds what is missing. */
static lath_status add_space(embdisk *d, embcache_space *s, lath_error *err)
{
    bool known = false;
    TRY(check_model(d, s, &known, err));
    if (!known) {
        sqlite3_stmt *q = fresh(d, PUT_MODEL);
        sqlite3_bind_blob(q, 1, s->model, (int)sizeof(s->model), SQLITE_STATIC);
        TRY(run(d, q, "writing", err));
    }
    TRY(find_space(d, s, &known, err));
    if (known) return LATH_OK;
    sqlite3_stmt *q = fresh(d, PUT_SPACE);
    sqlite3_bind_text(q, 1, s->settings, -1, SQLITE_STATIC);
    TRY(run(d, q, "writing", err));
    s->disk_id = sqlite3_last_insert_rowid(d->db);
    return LATH_OK;
}

lath_status embdisk_join(embdisk *d, embcache_space *s, lath_error *err)
{
    bool bound = false, known = false;
    TRY(check_model(d, s, &bound, err));
    if (bound) TRY(find_space(d, s, &known, err));
    if (known) return LATH_OK;
    TRY(begin(d, err));
    return end(d, add_space(d, s, err), err);
}

/* ------------------------------------------------------------------------------------------------------------ vectors */

/* The columns of a row of `s`, checked against its checksum. Pointers live until the statement moves on. */
static lath_status read_row(embdisk *d, const embcache_space *s, sqlite3_stmt *q, embcache_item *out, lath_error *err)
{
    const void *ids = sqlite3_column_blob(q, 3), *vector = sqlite3_column_blob(q, 4);
    const size_t ids_bytes = (size_t)sqlite3_column_bytes(q, 3), bytes = (size_t)sqlite3_column_bytes(q, 4);
    if (!ids || !vector || ids_bytes % sizeof(int32_t) != 0 || bytes != (size_t)s->dim * sizeof(float))
        return damaged(d, "a vector of a wrong length", err);
    *out = (embcache_item){ids, (int64_t)(ids_bytes / sizeof(int32_t)), sqlite3_column_int64(q, 2), vector};
    const hash128 key = embcache_hash(s, out);
    if (key.lo != (uint64_t)sqlite3_column_int64(q, 0) ||
        embcache_sum(vector, bytes, key) != (uint64_t)sqlite3_column_int64(q, 5))
        return damaged(d, "a vector does not match its checksum", err);
    return LATH_OK;
}

lath_status embdisk_find(embdisk *d, const embcache_space *s, const embcache_item *text, hash128 key, float *vector,
                         bool *found, lath_error *err)
{
    sqlite3_stmt *q = fresh(d, GET_VECTOR);
    lath_status st = LATH_OK;
    embcache_item row;
    *found = false;
    sqlite3_bind_int64(q, 1, (sqlite3_int64)key.lo);
    const int rc = sqlite3_step(q);
    if (rc != SQLITE_ROW) {
        if (rc != SQLITE_DONE) st = failed(d, rc, "reading", err);
        goto done;
    }
    if (sqlite3_column_int64(q, 1) != s->disk_id) goto done; /* the same 64 bits by chance, under other settings */
    TRY_DONE(read_row(d, s, q, &row, err));
    *found = row.n == text->n && row.skip == text->skip &&
             memcmp(row.ids, text->ids, (size_t)text->n * sizeof(*text->ids)) == 0;
    if (*found) memcpy(vector, row.vector, (size_t)s->dim * sizeof(*vector));
done:
    sqlite3_reset(q);
    return st;
}

static lath_status put_row(embdisk *d, const embcache_space *s, const embcache_item *item, lath_error *err)
{
    const size_t ids = (size_t)item->n * sizeof(*item->ids), bytes = (size_t)s->dim * sizeof(*item->vector);
    const hash128 key = embcache_hash(s, item);
    sqlite3_stmt *q = fresh(d, PUT_VECTOR);
    sqlite3_bind_int64(q, 1, (sqlite3_int64)key.lo);
    sqlite3_bind_int64(q, 2, s->disk_id);
    sqlite3_bind_int64(q, 3, item->skip);
    int rc = sqlite3_bind_blob64(q, 4, item->ids, ids, SQLITE_STATIC);
    if (rc == SQLITE_OK) rc = sqlite3_bind_blob64(q, 5, item->vector, bytes, SQLITE_STATIC);
    if (rc != SQLITE_OK) return failed(d, rc, "writing", err);
    sqlite3_bind_int64(q, 6, (sqlite3_int64)embcache_sum(item->vector, bytes, key));
    return run(d, q, "writing", err);
}

lath_status embdisk_add(embdisk *d, const embcache_space *s, const embcache_item *items, size_t n, lath_error *err)
{
    lath_status st = LATH_OK;
    TRY(begin(d, err));
    for (size_t i = 0; st == LATH_OK && i < n; i++) st = put_row(d, s, &items[i], err);
    return end(d, st, err);
}

lath_status embdisk_each(embdisk *d, const embcache_space *s, embcache_visit visit, void *ctx, lath_error *err)
{
    sqlite3_stmt *q = fresh(d, EACH_VECTOR);
    lath_status st = LATH_OK;
    embcache_item item;
    int rc;
    sqlite3_bind_int64(q, 1, s->disk_id);
    while (st == LATH_OK && (rc = sqlite3_step(q)) != SQLITE_DONE) {
        if (rc != SQLITE_ROW) {
            st = failed(d, rc, "reading", err);
            break;
        }
        st = read_row(d, s, q, &item, err);
        if (st == LATH_OK) st = visit(ctx, &item, err);
    }
    sqlite3_reset(q);
    return st;
}
