/* SPDX-License-Identifier: Apache-2.0
 *
 * outfile.c: files out, whole or not at all (see outfile.h). The temporary file lies in the folder of the target,
 * because a rename is atomic only within one file system; it is created exclusively, under the process id and a
 * counter, and locked until it has its name: what is not locked was left by a process that was killed (outfile_sweep). No fsync: the promise is about interrupted programs and full disks, not about power cuts.
 */
#include "base/outfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEMP_TRIES = 1000, TEMP_SUFFIX = 40 };

static char *copy_string(const lath_allocator *alloc, const char *s)
{
    const size_t n = strlen(s) + 1;
    char *p = alloc_bytes(alloc, n, 1);
    if (p) memcpy(p, s, n);
    return p;
}

static void release_string(const lath_allocator *alloc, char *s, size_t size)
{
    if (s) alloc_release(alloc, s, size);
}

static void outfile_release(outfile *f)
{
    if (f->path) release_string(f->alloc, f->temp, strlen(f->path) + TEMP_SUFFIX);
    if (f->path) release_string(f->alloc, f->path, strlen(f->path) + 1);
    *f = (outfile){.fd = -1};
}

/* Locks the file and says whether it still has a name: a sweep may have come between its creation and the lock. */
static bool lock_temp(int fd)
{
    struct stat sb;
    return flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &sb) != 0 || sb.st_nlink > 0;
}

/* Opens a new file beside the target with the rights `mode` (cut by the umask when the target is new). */
static lath_status open_temp(outfile *f, mode_t mode, bool keep_mode, lath_error *err)
{
    const size_t size = strlen(f->path) + TEMP_SUFFIX;
    f->temp = alloc_bytes(f->alloc, size, 1);
    if (!f->temp) return err_nomem(err, size);
    for (int i = 0; i < TEMP_TRIES; i++) {
        snprintf(f->temp, size, "%s.%ld-%d.tmp", f->path, (long)getpid(), i);
        f->fd = open(f->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, mode);
        if (f->fd < 0 && (errno == EEXIST || errno == EINTR)) continue;
        if (f->fd < 0 || lock_temp(f->fd)) break;
        close(f->fd);
        f->fd = -1;
        errno = EEXIST;
    }
    if (f->fd < 0) {
        const int e = errno;
        return err_os(err, LATH_ERR_IO, e, "%s: cannot create", f->path);
    }
    if (keep_mode && fchmod(f->fd, mode) != 0) {
        const int e = errno;
        return err_os(err, LATH_ERR_IO, e, "%s: cannot set its rights", f->temp);
    }
    return LATH_OK;
}

/* A pipe or a device takes the bytes as they come. */
static lath_status open_direct(outfile *f, lath_error *err)
{
    f->direct = true;
    f->fd = open(f->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    const int e = errno;
    if (f->fd >= 0) return LATH_OK;
    if (e == EINTR) return err_set(err, LATH_ERR_INTERRUPTED, "%s: interrupted while waiting for its reader", f->path);
    return err_os(err, LATH_ERR_IO, e, "%s: cannot open", f->path);
}

/* A rename would also replace a file that its owner has write-protected: that is refused. */
static lath_status open_replacement(outfile *f, mode_t mode, lath_error *err)
{
    if (access(f->path, W_OK) != 0) {
        const int e = errno;
        return err_os(err, LATH_ERR_IO, e, "%s: cannot write", f->path);
    }
    return open_temp(f, mode & 07777, true, err);
}

lath_status outfile_create(outfile *f, const lath_allocator *alloc, const char *path, lath_error *err)
{
    struct stat sb;
    char real[PATH_MAX];
    lath_status st;
    *f = (outfile){.alloc = alloc, .fd = -1};
    const bool exists = stat(path, &sb) == 0, regular = exists && S_ISREG(sb.st_mode);
    if (exists && S_ISDIR(sb.st_mode)) return err_set(err, LATH_ERR_IO, "%s: is a directory", path);
    if (regular && realpath(path, real)) path = real;
    f->path = copy_string(alloc, path);
    if (!f->path) return err_nomem(err, strlen(path) + 1);
    if (!exists)
        st = open_temp(f, 0666, false, err);
    else
        st = regular ? open_replacement(f, sb.st_mode, err) : open_direct(f, err);
    if (st != LATH_OK) outfile_abort(f);
    return st;
}

lath_status outfile_write(outfile *f, const void *p, size_t n, lath_error *err)
{
    for (const char *c = p; n > 0;) {
        const ssize_t w = write(f->fd, c, n < (size_t)1 << 30 ? n : (size_t)1 << 30);
        if (w > 0) {
            c += w;
            n -= (size_t)w;
        } else if (w < 0 && errno == EINTR && f->direct) { /* a pipe whose reader does not read */
            return err_set(err, LATH_ERR_INTERRUPTED, "%s: interrupted while writing", f->path);
        } else if (w == 0 || errno != EINTR) {
            const int e = w == 0 ? EIO : errno;
            return err_os(err, LATH_ERR_IO, e, "%s: cannot write", f->path);
        }
    }
    return LATH_OK;
}

lath_status outfile_write_at(outfile *f, uint64_t offset, const void *p, size_t n, lath_error *err)
{
    for (const char *c = p; n > 0;) {
        const ssize_t w = pwrite(f->fd, c, n < (size_t)1 << 30 ? n : (size_t)1 << 30, (off_t)offset);
        if (w > 0) {
            c += w;
            n -= (size_t)w;
            offset += (uint64_t)w;
        } else if (w == 0 || errno != EINTR) {
            const int e = w == 0 ? EIO : errno;
            return err_os(err, LATH_ERR_IO, e, "%s: cannot write", f->path);
        }
    }
    return LATH_OK;
}

lath_status outfile_reserve(outfile *f, uint64_t n, lath_error *err)
{
    if (f->direct || n == 0) return LATH_OK;
    if (n > INT64_MAX) return err_set(err, LATH_ERR_LIMIT, "%s: its size overflows", f->path);
    const int e = posix_fallocate(f->fd, 0, (off_t)n);
    if (e == 0 || e == EOPNOTSUPP || e == EINVAL || e == EINTR || e == ENOSYS || e == ENODEV) return LATH_OK;
    return err_os(err, LATH_ERR_IO, e, "%s: no room for %llu bytes", f->path, (unsigned long long)n);
}

lath_status outfile_commit(outfile *f, lath_error *err)
{
    lath_status st = LATH_OK;
    const int hold = f->direct ? -1 : dup(f->fd); /* the lock, until the rename */
    const int closed = close(f->fd);
    f->fd = -1;
    if (closed != 0) {
        const int e = errno;
        st = err_os(err, LATH_ERR_IO, e, "%s: cannot write", f->path);
    } else if (!f->direct && rename(f->temp, f->path) != 0) {
        const int e = errno;
        st = err_os(err, LATH_ERR_IO, e, "%s: cannot rename the finished file", f->path);
    }
    if (hold >= 0) close(hold);
    if (st != LATH_OK) {
        outfile_abort(f);
        return st;
    }
    outfile_release(f);
    return LATH_OK;
}

void outfile_abort(outfile *f)
{
    if (!f->path) return;
    if (f->fd >= 0) close(f->fd);
    if (f->temp) (void)unlink(f->temp);
    outfile_release(f);
}

static const char *skip_digits(const char *p)
{
    while (*p >= '0' && *p <= '9') p++;
    return p;
}

/* "NAME.PID-N.tmp", as open_temp names them. */
static bool is_temp_of(const char *entry, const char *name, size_t n)
{
    if (strncmp(entry, name, n) != 0 || entry[n] != '.') return false;
    const char *pid = entry + n + 1, *dash = skip_digits(pid);
    if (dash == pid || *dash != '-') return false;
    const char *end = skip_digits(dash + 1);
    return end > dash + 1 && strcmp(end, ".tmp") == 0;
}

/* Removes the file unless it is locked, or another has its name by now. */
static void remove_unlocked(int dir, const char *entry)
{
    struct stat a, b;
    const int fd = openat(dir, entry, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return;
    if (fstat(fd, &a) == 0 && S_ISREG(a.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        fstatat(dir, entry, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
        (void)unlinkat(dir, entry, 0);
    close(fd);
}

void outfile_sweep(const char *path)
{
    char real[PATH_MAX];
    if (!realpath(path, real) && snprintf(real, sizeof(real), "%s", path) >= (int)sizeof(real)) return;
    char *slash = strrchr(real, '/');
    const char *name = slash ? slash + 1 : real, *folder = slash ? real : ".";
    if (slash == real) folder = "/";
    if (slash) *slash = '\0';
    DIR *d = opendir(folder);
    if (!d) return;
    const size_t n = strlen(name);
    for (const struct dirent *e = readdir(d); n > 0 && e; e = readdir(d)) {
        if (is_temp_of(e->d_name, name, n)) remove_unlocked(dirfd(d), e->d_name);
    }
    closedir(d);
}
