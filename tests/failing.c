/* A disk that fails: the Nth write, flush, rename, truncation or new file under a folder ends with an error.
   Loaded in front of the C library (LD_PRELOAD) by tests/failing.py, which arms it with `fail_at`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char watched[PATH_MAX];
static long left = -1; /* operations that still succeed; below 0 all do */
static long done = 0;
static int with = ENOSPC;

/* Arm: after `count` operations under `folder` each one fails with `error`; a negative count only counts. */
void fail_at(const char *folder, long count, int error) {
    snprintf(watched, sizeof watched, *folder ? "%s/" : "%s", folder);
    left = count;
    with = error;
    done = 0;
}

long operations(void) { return done; }

static int under(const char *path) {
    char here[PATH_MAX], whole[2 * PATH_MAX];
    if (!watched[0] || !path) return 0;
    if (*path != '/' && getcwd(here, sizeof here)) {
        snprintf(whole, sizeof whole, "%s/%s", here, path);
        path = whole;
    }
    return !strncmp(path, watched, strlen(watched));
}

static int under_fd(int fd) {
    char link[64], path[PATH_MAX];
    if (!watched[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return under(path);
}

static int fails(void) {
    done++;
    if (left < 0) return 0;
    if (left-- > 0) return 0;
    left = 0; /* a full disk stays full */
    errno = with;
    return 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t size) {
    if (under_fd(fd) && fails()) return -1;
    return NEXT(write)(fd, data, size);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    if (under_fd(fd) && fails()) return -1;
    return NEXT(pwrite64)(fd, data, size, at);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (under_fd(fd) && fails()) return -1;
    return NEXT(writev)(fd, parts, count);
}
int fsync(int fd) {
    if (under_fd(fd) && fails()) return -1;
    return NEXT(fsync)(fd);
}
int ftruncate64(int fd, off64_t size) {
    if (under_fd(fd) && fails()) return -1;
    return NEXT(ftruncate64)(fd, size);
}
int rename(const char *from, const char *to) {
    if (under(to) && fails()) return -1;
    return NEXT(rename)(from, to);
}
int mkdir(const char *path, mode_t mode) {
    if (under(path) && fails()) return -1;
    return NEXT(mkdir)(path, mode);
}

static int opened(const char *name, const char *path, int flags, mode_t mode) {
    int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name);
    if ((flags & O_CREAT) && under(path) && fails()) return -1;
    return next(path, flags, mode);
}
int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return opened("open", path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return opened("open64", path, flags, mode);
}
