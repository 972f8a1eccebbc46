// Preloaded into a process, this makes the n-th call fail that changes a file whose path begins with FAULT_PREFIX, or every call
// that writes to one as long as there is a file FAULT_WHILE, as on a disk that is full until somebody makes room.
//
//     FAULT_PREFIX=/tmp/store FAULT_NUMBER=7 FAULT_KIND=EIO|ENOSPC|short FAULT_MARK=/tmp/mark
//     FAULT_PREFIX=/tmp/store FAULT_KIND=ENOSPC FAULT_WHILE=/tmp/full

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_long count;

static int is_ours(const char *path) {
    const char *prefix = getenv("FAULT_PREFIX");
    const char *rest;
    if (!prefix || strncmp(path, prefix, strlen(prefix)) != 0) return 0;
    rest = path + strlen(prefix);
    return *rest == 0 || *rest == '-';
}

// The file FAULT_MARK tells that it came to that.
static int is_due(void) {
    const char *number = getenv("FAULT_NUMBER"), *mark = getenv("FAULT_MARK");
    if (atomic_fetch_add(&count, 1) + 1 != (number ? atol(number) : 0)) return 0;
    if (mark) close(creat(mark, 0600));
    return 1;
}

static int fails_path(const char *path) { return is_ours(path) && is_due(); }

static int find_path(int descriptor, char *path, size_t size) {
    char link[64];
    ssize_t length;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    length = readlink(link, path, size - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return 1;
}

static int fails(int descriptor) {
    char path[4096];
    return find_path(descriptor, path, sizeof path) && fails_path(path);
}

static int is_full(int descriptor) {
    const char *mark = getenv("FAULT_WHILE");
    char path[4096];
    return mark && access(mark, F_OK) == 0 && find_path(descriptor, path, sizeof path) && is_ours(path);
}

static int is_kind(const char *kind) {
    const char *chosen = getenv("FAULT_KIND");
    return chosen && strcmp(chosen, kind) == 0;
}

static void set_error(void) { errno = is_kind("ENOSPC") ? ENOSPC : EIO; }

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

// A short write is what a disk that fills up gives: a part is written.
#define WRITE(name, offset_type)                                                            \
    ssize_t name(int descriptor, const void *bytes, size_t length, offset_type offset) {    \
        REAL(name);                                                                         \
        if (!is_full(descriptor) && !fails(descriptor)) return real(descriptor, bytes, length, offset); \
        if (is_kind("short") && length > 1) return real(descriptor, bytes, length / 2, offset); \
        set_error();                                                                        \
        return -1;                                                                          \
    }
WRITE(pwrite, off_t)
WRITE(pwrite64, off64_t)

ssize_t write(int descriptor, const void *bytes, size_t length) {
    REAL(write);
    if (descriptor < 3 || !fails(descriptor)) return real(descriptor, bytes, length);
    if (is_kind("short") && length > 1) return real(descriptor, bytes, length / 2);
    set_error();
    return -1;
}

#define SYNC(name)                                          \
    int name(int descriptor) {                              \
        REAL(name);                                         \
        if (!fails(descriptor)) return real(descriptor);    \
        set_error();                                        \
        return -1;                                          \
    }
SYNC(fsync)
SYNC(fdatasync)

#define TRUNCATE(name, offset_type)                                 \
    int name(int descriptor, offset_type length) {                  \
        REAL(name);                                                 \
        if (!fails(descriptor)) return real(descriptor, length);    \
        set_error();                                                \
        return -1;                                                  \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

// Answers with the error itself.
#define ALLOCATE(name, offset_type)                                                     \
    int name(int descriptor, offset_type offset, offset_type length) {                  \
        REAL(name);                                                                     \
        if (!is_full(descriptor) && !fails(descriptor)) return real(descriptor, offset, length); \
        return is_kind("EIO") ? EIO : ENOSPC;                                           \
    }
ALLOCATE(posix_fallocate, off_t)
ALLOCATE(posix_fallocate64, off64_t)

int unlink(const char *path) {
    REAL(unlink);
    if (!fails_path(path)) return real(path);
    set_error();
    return -1;
}

int rename(const char *from, const char *to) {
    REAL(rename);
    if (!fails_path(from)) return real(from, to);
    set_error();
    return -1;
}

#define OPEN(name)                                              \
    int name(const char *path, int flags, ...) {                \
        REAL(name);                                             \
        va_list arguments;                                      \
        va_start(arguments, flags);                             \
        int mode = va_arg(arguments, int);                      \
        va_end(arguments);                                      \
        if (!(flags & O_CREAT) || !fails_path(path)) return real(path, flags, mode); \
        set_error();                                            \
        return -1;                                              \
    }
OPEN(open)
OPEN(open64)

#define MAP(name, offset_type)                                                                          \
    void *name(void *address, size_t length, int protection, int flags, int descriptor, offset_type offset) { \
        REAL(name);                                                                                     \
        if (descriptor < 0 || !fails(descriptor)) return real(address, length, protection, flags, descriptor, offset); \
        set_error();                                                                                    \
        return MAP_FAILED;                                                                              \
    }
MAP(mmap, off_t)
MAP(mmap64, off64_t)
