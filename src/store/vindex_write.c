/* SPDX-License-Identifier: Apache-2.0
 *
 * vindex_write.c: the writer of a vindex. Every byte has its place before the first is written, and pieces do not depend on each other: so a run that goes on
 * behind a stopped one ends with the same bytes as one that was not stopped.
 */
#include "store/vindex_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "base/outfile.h"
#include "store/vindex_parts.h"

typedef struct piece {
    int32_t kind, layer, experts; /* layer -1: a tensor */
    tensor t;
    uint64_t offset;
    bool done;
} piece;

typedef struct copied {
    const char *name;
    uint64_t bytes;
    hash128 hash;
} copied;

struct vindex_writer {
    const lath_allocator *alloc;
    arena mem;
    const char *dir, *part;
    vindex_facts facts;
    buf pieces; /* of piece */
    buf copies; /* of copied */
    buf plan;   /* index.json up to its "files" */
    uint64_t end[VINDEX_N_FILES];
    uint64_t total, done;
    int fd[VINDEX_N_FILES], progress; /* -1: not open */
};

static const char PROGRESS_NAME[] = "progress.jsonl";
enum { PROGRESS_BYTES_MOST = 64 << 20 };

static piece *piece_at(const vindex_writer *w, int32_t i) { return (piece *)(void *)w->pieces.data + i; }
static int32_t n_pieces(const vindex_writer *w) { return (int32_t)(w->pieces.len / sizeof(piece)); }

static lath_status io_error(lath_error *err, const char *path, const char *what)
{
    const int e = errno;
    return err_os(err, LATH_ERR_IO, e, "%s: %s", path, what);
}

/* ---------------------------------------------------------------------------------------------------------------- plan */

/* NULL: there is no memory. */
static const char *with_suffix(arena *a, const char *dir, const char *suffix)
{
    const size_t n = strlen(dir);
    char *s = arena_bytes(a, n + strlen(suffix) + 1, 1);
    if (s) {
        memcpy(s, dir, n);
        memcpy(s + n, suffix, strlen(suffix) + 1);
    }
    return s;
}

static bool is_empty_dir(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    if (!d) return false;
    while (n <= 2 && readdir(d)) n++;
    closedir(d);
    return n <= 2;
}

lath_status vindex_writer_create(const lath_allocator *alloc, const char *dir, const vindex_facts *facts,
                                 vindex_writer **out, lath_error *err)
{
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/') n--;
    vindex_writer *w = alloc_zero(alloc, sizeof(*w));
    if (!w) return err_nomem(err, sizeof(*w));
    w->alloc = alloc;
    w->facts = *facts;
    w->progress = -1;
    for (int i = 0; i < VINDEX_N_FILES; i++) w->fd[i] = -1;
    arena_init(&w->mem, alloc);
    buf_init(&w->pieces, alloc, SIZE_MAX / 2);
    buf_init(&w->copies, alloc, SIZE_MAX / 2);
    buf_init(&w->plan, alloc, SIZE_MAX / 2);
    w->dir = arena_strdup(&w->mem, dir, n);
    w->part = w->dir ? with_suffix(&w->mem, w->dir, ".part") : NULL;
    lath_status st = LATH_OK;
    if (!w->part)
        st = err_nomem(err, n);
    else if (n == 0)
        st = err_set(err, LATH_ERR_USAGE, "an index wants the name of a directory");
    else if (file_exists(w->dir) && !is_empty_dir(w->dir))
        st = err_set(err, LATH_ERR_USAGE, "%s: is there already", w->dir);
    if (st == LATH_OK)
        *out = w;
    else
        vindex_writer_abort(w);
    return st;
}

/* The piece behind the others of its file. */
static lath_status add_piece(vindex_writer *w, piece *p, lath_error *err)
{
    uint64_t *end = &w->end[p->kind];
    if (*end == 0) *end = sizeof(vindex_header);
    p->offset = (*end + VINDEX_ALIGN - 1) / VINDEX_ALIGN * VINDEX_ALIGN;
    if (p->t.bytes > INT64_MAX / 2 - p->offset)
        return err_set(err, LATH_ERR_LIMIT, "%s/%s: its size overflows", w->dir, vindex_file_names[p->kind]);
    *end = p->offset + p->t.bytes;
    w->total += p->t.bytes;
    buf_append(&w->pieces, p, sizeof(*p));
    return buf_status(&w->pieces, err);
}

lath_status vindex_add_rows(vindex_writer *w, vindex_file file, int32_t layer, int64_t features, int32_t experts,
                            lath_error *err)
{
    const vindex_facts *f = &w->facts;
    piece p = {.kind = (int32_t)file, .layer = layer, .experts = experts};
    const bool is_out = file == VINDEX_OUT, is_tokens = file == VINDEX_TOKENS;
    p.t = (tensor){.name = vindex_file_names[file], .type = is_tokens ? DTYPE_U32 : f->rows, .rank = 2};
    p.t.dim[0] = is_out ? f->d_model : features;
    p.t.dim[1] = is_out ? features : is_tokens ? 2 * VINDEX_TOP : f->d_model;
    size_t row;
    if (!dtype_row_bytes(p.t.type, (uint64_t)p.t.dim[1], &row))
        return err_set(err, LATH_ERR_UNSUPPORTED,
                       "%s: rows of %lld numbers are no whole number of %s blocks (%zu): take another type",
                       vindex_file_names[file], (long long)p.t.dim[1], dtype_name(p.t.type),
                       dtype_block_numbers(p.t.type));
    if (!size_mul(row, (size_t)p.t.dim[0], &p.t.bytes))
        return err_set(err, LATH_ERR_LIMIT, "%s: its size overflows", vindex_file_names[file]);
    return add_piece(w, &p, err);
}

lath_status vindex_add_tensor(vindex_writer *w, const tensor *t, lath_error *err)
{
    piece p = {.kind = VINDEX_TENSORS, .layer = -1, .t = *t};
    p.t.name = arena_strdup(&w->mem, t->name, strlen(t->name));
    if (!p.t.name) return err_nomem(err, strlen(t->name));
    return add_piece(w, &p, err);
}

/* ,"offset":..,"bytes":..,"shape":[..]} */
static void put_place(buf *b, const piece *p)
{
    buf_printf(b, ",\"offset\":%llu,\"bytes\":%llu,\"shape\":[", (unsigned long long)p->offset,
               (unsigned long long)p->t.bytes);
    for (int32_t i = 0; i < p->t.rank; i++) buf_printf(b, "%s%lld", i ? "," : "", (long long)p->t.dim[i]);
    buf_str(b, "]}");
}

static lath_status make_plan(vindex_writer *w, lath_error *err)
{
    buf *b = &w->plan;
    const vindex_facts *f = &w->facts;
    char id[VINDEX_HEX + 1];
    vindex_hex((hash128){f->identity[0], f->identity[1]}, id);
    buf_printf(b, "{\"format\":\"lath-vindex\",\"version\":%d,\"level\":\"%s\",\"dtype\":\"%s\",\"model_type\":",
               VINDEX_VERSION, vindex_level_name(f->level), dtype_name(f->rows));
    json_put_string(b, f->model_type, strlen(f->model_type));
    buf_printf(
        b, ",\"names\":\"%s\",\"stored\":%u,\n\"n_layers\":%d,\"d_model\":%lld,\"vocab_size\":%d,\"source\":{\"name\":",
        f->gguf_names ? "gguf" : "hf", f->stored, f->n_layers, (long long)f->d_model, f->vocab_size);
    json_put_string(b, f->source, strlen(f->source));
    buf_printf(b, ",\"identity\":\"%s\",\"ffn_tensors\":%d,\"ffn_bytes\":%llu},\n\"config\":", id, f->ffn_tensors,
               (unsigned long long)f->ffn_bytes);
    json_put_value(b, f->config);
    buf_str(b, ",\n\"rows\":[");
    const char *comma = "\n";
    for (int32_t i = 0; i < n_pieces(w); i++) {
        const piece *p = piece_at(w, i);
        if (p->layer < 0) continue;
        buf_printf(b, "%s{\"file\":\"%s\",\"layer\":%d", comma, vindex_file_names[p->kind], p->layer);
        if (p->experts) buf_printf(b, ",\"experts\":%d", p->experts);
        put_place(b, p);
        comma = ",\n";
    }
    buf_str(b, "],\n\"tensors\":[");
    comma = "\n";
    for (int32_t i = 0; i < n_pieces(w); i++) {
        const piece *p = piece_at(w, i);
        if (p->layer >= 0) continue;
        buf_printf(b, "%s{\"name\":", comma);
        json_put_string(b, p->t.name, strlen(p->t.name));
        buf_printf(b, ",\"dtype\":\"%s\"", dtype_name(p->t.type));
        put_place(b, p);
        comma = ",\n";
    }
    buf_char(b, ']');
    return buf_status(b, err);
}

/* ------------------------------------------------------------------------------------------------------------ DIR.part */

static lath_status path_in(const vindex_writer *w, const char *name, const char **out, lath_error *err)
{
    *out = file_join_in(&((vindex_writer *)w)->mem, w->part, name);
    return *out ? LATH_OK : err_nomem(err, strlen(name));
}

/* Everything that an extract put into DIR.part. It holds no folders. */
static lath_status empty_part(const vindex_writer *w, lath_error *err)
{
    DIR *d = opendir(w->part);
    if (!d) return io_error(err, w->part, "cannot read");
    const struct dirent *e;
    lath_status st = LATH_OK;
    while (st == LATH_OK && (e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || strcmp(e->d_name, PROGRESS_NAME) == 0)
            continue;
        if (unlinkat(dirfd(d), e->d_name, 0) != 0) st = io_error(err, w->part, "cannot empty it");
    }
    closedir(d);
    return st;
}

static void remove_part(const vindex_writer *w)
{
    const char *path;
    if (empty_part(w, NULL) != LATH_OK || path_in(w, PROGRESS_NAME, &path, NULL) != LATH_OK) return;
    (void)unlink(path);
    (void)rmdir(w->part);
}

/* The file of progress, locked: whoever has it is at work on DIR.part. */
static lath_status open_part(vindex_writer *w, lath_error *err)
{
    const char *path;
    TRY(path_in(w, PROGRESS_NAME, &path, err));
    if (mkdir(w->part, 0777) != 0 && errno != EEXIST) return io_error(err, w->part, "cannot create");
    if (!file_is_dir(w->part)) return err_set(err, LATH_ERR_IO, "%s: is there, and no directory", w->part);
    if (!file_exists(path) && !is_empty_dir(w->part))
        return err_set(err, LATH_ERR_IO, "%s: is there, and was made by something else", w->part);
    w->progress = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
    if (w->progress < 0) return io_error(err, path, "cannot create");
    if (flock(w->progress, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return err_set(err, LATH_ERR_IO, "%s: another process is at work on it", w->part);
    return LATH_OK;
}

static lath_status open_data(vindex_writer *w, int32_t kind, lath_error *err)
{
    const char *path;
    const uint64_t bytes = w->end[kind];
    vindex_header h = {
        .magic = {'L', 'V', 'I', 'X'}, .version = VINDEX_VERSION, .kind = (uint32_t)kind, .bytes = bytes};
    memcpy(h.source, w->facts.identity, sizeof(h.source));
    if (bytes == 0) return LATH_OK;
    TRY(path_in(w, vindex_file_names[kind], &path, err));
    w->fd[kind] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (w->fd[kind] < 0) return io_error(err, path, "cannot create");
    if (ftruncate(w->fd[kind], (off_t)bytes) != 0) return io_error(err, path, "cannot make it as long as it will be");
    const int e = posix_fallocate(w->fd[kind], 0, (off_t)bytes);
    if (e != 0 && e != EOPNOTSUPP && e != EINVAL && e != EINTR && e != ENOSYS && e != ENODEV)
        return err_os(err, LATH_ERR_IO, e, "%s: no room for %llu bytes", path, (unsigned long long)bytes);
    outfile f = {.fd = w->fd[kind], .path = (char *)path};
    return outfile_write_at(&f, 0, &h, sizeof(h), err);
}

/* ------------------------------------------------------------------------------------------------------------ progress */

static lath_status say(vindex_writer *w, lath_error *err, const char *format, ...) ERR_PRINTF(3, 4);
static lath_status say(vindex_writer *w, lath_error *err, const char *format, ...)
{
    char text[160];
    outfile f = {.fd = w->progress, .path = (char *)w->part};
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return outfile_write(&f, text, (size_t)n, err);
}

static lath_status hash_piece(const vindex_writer *w, const piece *p, hash128 *out, lath_error *err)
{
    const char *path;
    file_map map = {0};
    TRY(path_in(w, vindex_file_names[p->kind], &path, err));
    TRY(file_map_open(&map, w->alloc, path, FILE_MAP, err));
    *out = hash_128(map.data + p->offset, p->t.bytes, 0);
    file_map_close(&map);
    return LATH_OK;
}

/* A line of a piece that was whole: it is, when its bytes say so. */
static lath_status take_line(vindex_writer *w, const char *line, lath_error *err)
{
    int number;
    char hex[VINDEX_HEX + 1];
    hash128 want, have;
    if (sscanf(line, "{\"piece\":%d,\"xxh3\":\"%32[0-9a-f]\"}", &number, hex) != 2 || number < 0 ||
        number >= n_pieces(w) || !vindex_unhex(hex, &want))
        return LATH_OK;
    piece *p = piece_at(w, number);
    TRY(hash_piece(w, p, &have, err));
    if (p->done || have.lo != want.lo || have.hi != want.hi) return LATH_OK;
    p->done = true;
    w->done += p->t.bytes;
    return LATH_OK;
}

static void plan_line(const vindex_writer *w, char out[64])
{
    char hex[VINDEX_HEX + 1];
    vindex_hex(hash_128(w->plan.data, w->plan.len, 0), hex);
    snprintf(out, 64, "{\"plan\":\"%s\"}", hex);
}

/* The first line of what was written last time says of which model and options; *lines: what is behind it, NULL: nothing was begun. */
static lath_status check_plan(const vindex_writer *w, char *text, char **lines, lath_error *err)
{
    char plan[64], *end = strchr(text, '\n');
    *lines = NULL;
    if (!end) return LATH_OK;
    *end = 0;
    plan_line(w, plan);
    if (strcmp(text, plan) != 0)
        return err_set(err, LATH_ERR_USAGE,
                       "%s: was begun with another model or other options (without --resume it is begun anew)",
                       w->part);
    *lines = end + 1;
    return LATH_OK;
}

/* Lines that end are whole; one that does not was being written when its process ended. */
static lath_status take_lines(vindex_writer *w, char *lines, lath_error *err)
{
    for (char *end; (end = strchr(lines, '\n')); lines = end + 1) {
        *end = 0;
        TRY(take_line(w, lines, err));
    }
    return say(w, err, "\n"); /* ends a line that was not finished */
}

static lath_status begin_anew(vindex_writer *w, lath_error *err)
{
    char plan[64];
    if (ftruncate(w->progress, 0) != 0) return io_error(err, w->part, "cannot begin anew");
    TRY(empty_part(w, err));
    for (int32_t i = 0; i < VINDEX_N_FILES; i++) TRY(open_data(w, i, err));
    plan_line(w, plan);
    return say(w, err, "%s\n", plan);
}

static lath_status begin(vindex_writer *w, bool resume, buf *text, bool *fresh, lath_error *err)
{
    const char *path;
    char *lines = NULL;
    TRY(make_plan(w, err));
    TRY(open_part(w, err));
    TRY(path_in(w, PROGRESS_NAME, &path, err));
    if (resume) {
        TRY(file_read(text, path, PROGRESS_BYTES_MOST, err));
        buf_char(text, 0);
        TRY(buf_status(text, err));
        TRY(check_plan(w, text->data, &lines, err));
    }
    *fresh = !lines;
    if (*fresh) return begin_anew(w, err);
    for (int32_t i = 0; i < VINDEX_N_FILES; i++) TRY(open_data(w, i, err));
    return take_lines(w, lines, err);
}

lath_status vindex_writer_begin(vindex_writer *w, bool resume, lath_error *err)
{
    bool fresh = false;
    buf text;
    buf_init(&text, w->alloc, PROGRESS_BYTES_MOST + 1);
    const lath_status st = begin(w, resume, &text, &fresh, err);
    buf_deinit(&text);
    if (st != LATH_OK && fresh) remove_part(w);
    return st;
}

/* -------------------------------------------------------------------------------------------------------------- pieces */

uint64_t vindex_writer_total(const vindex_writer *w) { return w->total; }
uint64_t vindex_writer_done(const vindex_writer *w) { return w->done; }
bool vindex_piece_done(const vindex_writer *w, int32_t number) { return piece_at(w, number)->done; }

lath_status vindex_piece_write(vindex_writer *w, int32_t number, uint64_t at, const void *p, size_t n, lath_error *err)
{
    const piece *to = piece_at(w, number);
    outfile f = {.fd = w->fd[to->kind], .path = NULL};
    const char *path;
    TRY(path_in(w, vindex_file_names[to->kind], &path, err));
    f.path = (char *)path;
    return outfile_write_at(&f, to->offset + at, p, n, err);
}

lath_status vindex_piece_end(vindex_writer *w, int32_t number, lath_error *err)
{
    piece *p = piece_at(w, number);
    hash128 h;
    char hex[VINDEX_HEX + 1];
    TRY(hash_piece(w, p, &h, err));
    vindex_hex(h, hex);
    p->done = true;
    w->done += p->t.bytes;
    return say(w, err, "{\"piece\":%d,\"xxh3\":\"%s\"}\n", number, hex);
}

/* A whole file of DIR.part, on the disk. */
static lath_status write_file(const vindex_writer *w, const char *name, const void *p, size_t n, lath_error *err)
{
    const char *path;
    TRY(path_in(w, name, &path, err));
    outfile f = {.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), .path = (char *)path};
    if (f.fd < 0) return io_error(err, path, "cannot create");
    lath_status st = outfile_write(&f, p, n, err);
    if (st == LATH_OK && fsync(f.fd) != 0) st = io_error(err, path, "cannot write");
    if (close(f.fd) != 0 && st == LATH_OK) st = io_error(err, path, "cannot write");
    return st;
}

lath_status vindex_copy(vindex_writer *w, const char *name, const void *p, size_t n, lath_error *err)
{
    copied c = {.bytes = n, .hash = hash_128(p, n, 0)};
    c.name = arena_strdup(&w->mem, name, strlen(name));
    if (!c.name) return err_nomem(err, strlen(name));
    TRY(write_file(w, name, p, n, err));
    buf_append(&w->copies, &c, sizeof(c));
    return buf_status(&w->copies, err);
}

/* -------------------------------------------------------------------------------------------------------------- finish */

static void put_file(buf *b, const char **comma, const char *name, uint64_t bytes, hash128 h)
{
    char hex[VINDEX_HEX + 1];
    vindex_hex(h, hex);
    buf_printf(b, "%s{\"name\":\"%s\",\"bytes\":%llu,\"xxh3\":\"%s\"}", *comma, name, (unsigned long long)bytes, hex);
    *comma = ",\n";
}

static lath_status list_files(vindex_writer *w, uint64_t *bytes, lath_error *err)
{
    buf *b = &w->plan;
    const char *comma = "\n", *path;
    *bytes = 0;
    buf_str(b, ",\n\"files\":[");
    for (int32_t i = 0; i < VINDEX_N_FILES; i++) {
        file_map map = {0};
        if (w->fd[i] < 0) continue;
        if (fsync(w->fd[i]) != 0) return io_error(err, w->part, "cannot write");
        TRY(path_in(w, vindex_file_names[i], &path, err));
        TRY(file_map_open(&map, w->alloc, path, FILE_MAP, err));
        put_file(b, &comma, vindex_file_names[i], map.size, hash_128(map.data, map.size, 0));
        *bytes += map.size;
        file_map_close(&map);
    }
    const copied *c = (const copied *)(const void *)w->copies.data;
    for (size_t i = 0; i < w->copies.len / sizeof(copied); i++) {
        put_file(b, &comma, c[i].name, c[i].bytes, c[i].hash);
        *bytes += c[i].bytes;
    }
    buf_char(b, ']');
    if (!b->failed) vindex_put_seal(b);
    return buf_status(b, err);
}

/* What a folder lists, on the disk. Some file systems cannot: then it is as it is. */
static void sync_dir(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

static lath_status finish(vindex_writer *w, uint64_t *bytes, lath_error *err)
{
    const char *left = file_join_in(&w->mem, w->dir, PROGRESS_NAME), *parent;
    const char *slash = strrchr(w->dir, '/');
    parent = !slash ? "." : slash == w->dir ? "/" : arena_strdup(&w->mem, w->dir, (size_t)(slash - w->dir));
    if (!left || !parent) return err_nomem(err, strlen(w->dir));
    TRY(list_files(w, bytes, err));
    TRY(write_file(w, "index.json", w->plan.data, w->plan.len, err));
    *bytes += w->plan.len;
    sync_dir(w->part);
    if (rename(w->part, w->dir) != 0) return io_error(err, w->dir, "cannot rename the finished index");
    (void)unlink(left);
    sync_dir(parent);
    return LATH_OK;
}

lath_status vindex_writer_finish(vindex_writer *w, uint64_t *bytes, lath_error *err)
{
    const lath_status st = finish(w, bytes, err);
    vindex_writer_abort(w);
    return st;
}

void vindex_writer_abort(vindex_writer *w)
{
    if (!w) return;
    for (int i = 0; i < VINDEX_N_FILES; i++)
        if (w->fd[i] >= 0) close(w->fd[i]);
    if (w->progress >= 0) close(w->progress);
    buf_deinit(&w->pieces);
    buf_deinit(&w->copies);
    buf_deinit(&w->plan);
    arena_deinit(&w->mem);
    alloc_release(w->alloc, w, sizeof(*w));
}
