/* SPDX-License-Identifier: Apache-2.0
 *
 * file.c: files in, mapped or copied. Every file is opened without blocking and must be a regular one, so that a pipe or a device given as a
 * model answers with an error instead of a wait. What the path leads to is decided on the open descriptor, never by its name, and symbolic
 * links are followed (model caches are made of them). No writes.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* One read call: Linux returns at most 2 GiB - 4 KiB, macOS refuses more than INT_MAX. */
static const size_t READ_MAX = (size_t)1 << 30;
/* Grain of reading what is behind the size that the file system told (files of /proc tell 0). */
static const size_t READ_STEP = (size_t)64 << 10;
/* Data of a copied file begins on a cache line, as it would in a map. */
static const size_t COPY_ALIGN = 64;

static const char *kind_text(mode_t mode)
{
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    return "of an unknown kind";
}

/* The status of a failed open: what a user can mend by another path or other rights is NOT_FOUND, the rest is a fault of the system. */
static lath_status open_status(int os_errno)
{
    switch (os_errno) {
    case ENOMEM: return LATH_ERR_NOMEM;
    case EMFILE:
    case ENFILE:
    case EIO: return LATH_ERR_IO;
    default: return LATH_ERR_NOT_FOUND;
    }
}

/* Opens a regular file; *fd is the caller's to close, *size what the file system tells. */
static lath_status open_regular(const char *path, int *fd, uint64_t *size, lath_error *err)
{
    struct stat sb;
    lath_status st;
    int f;
    do f = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (f < 0 && errno == EINTR);
    if (f < 0) {
        const int e = errno;
        if (e == ENXIO) return err_set(err, LATH_ERR_NOT_FOUND, "%s: is a socket or device, want a regular file", path);
        return err_os(err, open_status(e), e, "%s", path);
    }
    if (fstat(f, &sb) != 0) {
        const int e = errno;
        st = err_os(err, LATH_ERR_IO, e, "%s", path);
        goto fail;
    }
    if (!S_ISREG(sb.st_mode)) {
        st = err_set(err, LATH_ERR_NOT_FOUND, "%s: is %s, want a regular file", path, kind_text(sb.st_mode));
        goto fail;
    }
    *fd = f;
    *size = (uint64_t)sb.st_size;
    return LATH_OK;
fail:
    close(f);
    return st;
}

/* At most n bytes into p; fewer only at the end of the file. */
static lath_status read_some(int fd, const char *path, void *p, size_t n, size_t *got, lath_error *err)
{
    *got = 0;
    while (*got < n) {
        const size_t want = n - *got < READ_MAX ? n - *got : READ_MAX;
        const ssize_t r = read(fd, (char *)p + *got, want);
        if (r == 0) break;
        if (r > 0) {
            *got += (size_t)r;
        } else if (errno != EINTR) {
            const int e = errno;
            return err_os(err, LATH_ERR_IO, e, "%s", path);
        }
    }
    return LATH_OK;
}

static lath_status load_map(file_map *m, int fd, lath_error *err)
{
    void *p = mmap(NULL, m->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
        const int e = errno;
        return err_os(err, e == ENOMEM ? LATH_ERR_NOMEM : LATH_ERR_IO, e, "%s: cannot map %zu bytes", m->path, m->size);
    }
    m->data = p;
    return LATH_OK;
}

static lath_status load_copy(file_map *m, int fd, lath_error *err)
{
    size_t got;
    void *p = alloc_bytes(m->alloc, m->size, COPY_ALIGN);
    if (!p) return err_nomem(err, m->size);
    m->data = p;
    TRY(read_some(fd, m->path, p, m->size, &got, err));
    if (got == m->size) return LATH_OK;
    return err_set(err, LATH_ERR_IO, "%s: shrank from %zu to %zu bytes while it was read", m->path, m->size, got);
}

lath_status file_map_open(file_map *m, const lath_allocator *alloc, const char *path, file_mode mode, lath_error *err)
{
    const size_t n_path = strlen(path) + 1;
    uint64_t size = 0;
    int fd = -1;
    lath_status st;
    *m = (file_map){.alloc = alloc, .mode = mode};
    TRY(open_regular(path, &fd, &size, err));
    if (size > SIZE_MAX / 2) {
        st = err_set(err, LATH_ERR_LIMIT, "%s: %llu bytes are more than this machine can address", path,
                     (unsigned long long)size);
        goto done;
    }
    m->path = alloc_bytes(alloc, n_path, 1);
    if (!m->path) {
        st = err_nomem(err, n_path);
        goto done;
    }
    memcpy(m->path, path, n_path);
    m->size = (size_t)size;
    st = LATH_OK;
    if (m->size > 0) st = mode == FILE_MAP ? load_map(m, fd, err) : load_copy(m, fd, err);
done:
    close(fd);
    if (st != LATH_OK) file_map_close(m);
    return st;
}

void file_map_close(file_map *m)
{
    if (m->data && m->mode == FILE_MAP) munmap((void *)(uintptr_t)m->data, m->size);
    if (m->data && m->mode == FILE_COPY) alloc_release(m->alloc, (void *)(uintptr_t)m->data, m->size);
    if (m->path) alloc_release(m->alloc, m->path, strlen(m->path) + 1);
    *m = (file_map){0};
}

/* Room for n more bytes, with the path in front of a failure. */
static lath_status reserve(buf *b, const char *path, size_t n, char **at, lath_error *err)
{
    *at = buf_reserve(b, n);
    if (*at) return LATH_OK;
    const lath_status st = buf_status(b, err);
    return err_wrap(err, st == LATH_OK ? LATH_ERR_NOMEM : st, "%s", path);
}

void file_forget(const void *p, size_t n)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = ((uintptr_t)p + page - 1) / page * page;
    const uintptr_t to = ((uintptr_t)p + n) / page * page;
    if (from < to) (void)madvise((void *)from, to - from, MADV_DONTNEED);
}

void file_ahead(const void *p, size_t n)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)p / page * page;
    if (n > 0) (void)madvise((void *)from, (uintptr_t)p + n - from, MADV_WILLNEED);
}

lath_status file_read(buf *b, const char *path, size_t max, lath_error *err)
{
    uint64_t size = 0;
    size_t want, got;
    int fd = -1;
    lath_status st = LATH_OK;
    buf_clear(b);
    TRY(open_regular(path, &fd, &size, err));
    if (size > max) {
        st = err_set(err, LATH_ERR_LIMIT, "%s: %llu bytes, over the limit of %zu for such a file", path,
                     (unsigned long long)size, max);
        goto done;
    }
    want = (size_t)size + 1; /* one more than told, so that the first read finds the end */
    do {
        char *at;
        TRY_DONE(reserve(b, path, want, &at, err));
        TRY_DONE(read_some(fd, path, at, want, &got, err));
        b->len += got;
        if (b->len > max) {
            st = err_set(err, LATH_ERR_LIMIT, "%s: over the limit of %zu bytes for such a file", path, max);
            goto done;
        }
        want = got < want ? 0 : READ_STEP;
    } while (want > 0);
done:
    close(fd);
    return st;
}

/* A name that is there but leads nowhere or may not be looked at counts: opening it then says what is wrong. */
bool file_exists(const char *path)
{
    struct stat sb;
    return lstat(path, &sb) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

bool file_is_regular(const char *path)
{
    struct stat sb;
    return stat(path, &sb) == 0 && S_ISREG(sb.st_mode);
}

lath_status file_size(const char *path, uint64_t *size, lath_error *err)
{
    int fd = -1;
    TRY(open_regular(path, &fd, size, err));
    close(fd);
    return LATH_OK;
}

bool file_is_dir(const char *path)
{
    struct stat sb;
    return stat(path, &sb) == 0 && S_ISDIR(sb.st_mode);
}

void file_join(buf *b, const char *dir, const char *name)
{
    const size_t n = strlen(dir);
    buf_clear(b);
    buf_append(b, dir, n);
    if (n > 0 && dir[n - 1] != '/') buf_char(b, '/');
    buf_str(b, name);
    (void)buf_cstr(b);
}

char *file_join_in(arena *a, const char *dir, const char *name)
{
    const size_t n = strlen(dir), k = strlen(name), gap = n > 0 && dir[n - 1] != '/';
    char *path = arena_bytes(a, n + gap + k + 1, 1);
    if (!path) return NULL;
    memcpy(path, dir, n);
    if (gap) path[n] = '/';
    memcpy(path + n + gap, name, k + 1);
    return path;
}
