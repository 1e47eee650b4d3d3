/* A disk that fails: preloaded, it counts all calls that change files in a folder, over all processes that share a file
   of the counter, and lets those from a given one on fail, as on a full disk (ENOSPC) or a broken one (EIO).

   FAILING_FOLDER: files below it count. FAILING_COUNTER: a file of 8 bytes. FAILING_FROM: number of the first call that
   fails, from 1; 0 = none. FAILING_WITH: the number of the error. FAILING_ONCE: only that call fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *folder;
static volatile int64_t *counter;
static int64_t first_failing;
static int error_number, once;

void failing_disk_begin(void);

/* Read the environment; also after a fork, in which it was changed. */
__attribute__((constructor)) void failing_disk_begin(void)
{
    const char *path = getenv("FAILING_COUNTER"), *from = getenv("FAILING_FROM"), *with = getenv("FAILING_WITH");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0 || !from || !with)
        return;
    void *shared = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared == MAP_FAILED)
        return;
    first_failing = atoll(from);
    error_number = atoi(with);
    once = getenv("FAILING_ONCE") != NULL;
    counter = shared;
    folder = getenv("FAILING_FOLDER");
}

/* Whether a change below the folder is to fail; errno is set then. */
static int fails(const char *path)
{
    size_t length = folder ? strlen(folder) : 0;
    if (!folder || strncmp(path, folder, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return 0;
    int64_t call = __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
    if (first_failing == 0 || call < first_failing || (once && call > first_failing))
        return 0;
    errno = error_number;
    return 1;
}

static int fails_at(const char *path)
{
    char whole[PATH_MAX], place[PATH_MAX];
    if (!folder)
        return 0;
    if (path[0] == '/')
        return fails(path);
    if (!getcwd(place, sizeof place) || snprintf(whole, sizeof whole, "%s/%s", place, path) >= (int)sizeof whole)
        return 0;
    return fails(whole);
}

static int fails_open(int file)
{
    char link[40], path[PATH_MAX];
    if (!folder)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = '\0';
    return fails(path);
}

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

#define ON_FILE(type, name, parameters, arguments, ...)                                                                     \
    type name parameters                                                                                                    \
    {                                                                                                                       \
        static type (*real)(__VA_ARGS__);                                                                                   \
        if (!real)                                                                                                          \
            real = REAL(type, name, __VA_ARGS__);                                                                           \
        return fails_open(file) ? -1 : real arguments;                                                                      \
    }

ON_FILE(ssize_t, write, (int file, const void *values, size_t bytes), (file, values, bytes), int, const void *, size_t)
ON_FILE(ssize_t, pwrite, (int file, const void *values, size_t bytes, off_t at), (file, values, bytes, at), int, const void *,
        size_t, off_t)
ON_FILE(ssize_t, pwrite64, (int file, const void *values, size_t bytes, off64_t at), (file, values, bytes, at), int,
        const void *, size_t, off64_t)
ON_FILE(ssize_t, writev, (int file, const struct iovec *values, int count), (file, values, count), int, const struct iovec *,
        int)
ON_FILE(int, fsync, (int file), (file), int)
ON_FILE(int, fdatasync, (int file), (file), int)

int mkdir(const char *path, mode_t mode)
{
    return fails_at(path) ? -1 : REAL(int, mkdir, const char *, mode_t)(path, mode);
}

int rename(const char *old, const char *new)
{
    return fails_at(new) ? -1 : REAL(int, rename, const char *, const char *)(old, new);
}

#define OPENS(name)                                                                                                         \
    int name(const char *path, int flags, ...)                                                                              \
    {                                                                                                                       \
        mode_t mode = 0;                                                                                                    \
        if (flags & (O_CREAT | O_TMPFILE)) {                                                                                \
            va_list list;                                                                                                   \
            va_start(list, flags);                                                                                          \
            mode = va_arg(list, mode_t);                                                                                    \
            va_end(list);                                                                                                   \
        }                                                                                                                   \
        if ((flags & O_CREAT) && access(path, F_OK) != 0 && fails_at(path))                                                 \
            return -1;                                                                                                      \
        return REAL(int, name, const char *, int, ...)(path, flags, mode);                                                  \
    }

OPENS(open)
OPENS(open64)

int creat(const char *path, mode_t mode)
{
    return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    if (mode[0] == 'w' && access(path, F_OK) != 0 && fails_at(path))
        return NULL;
    return REAL(FILE *, fopen, const char *, const char *)(path, mode);
}
