/* Calls of the file system whose arguments have types that Fortran does not know. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

int chroma_sync(const char *path);
int chroma_truncate(const char *path, int64_t bytes);
int chroma_make_folder(const char *path);
int64_t chroma_file_bytes(const char *path);
int chroma_lock(const char *path);
void chroma_pause(double seconds);
int chroma_open_placed(const char *path, int replace);
int chroma_open_scratch(const char *path);
int chroma_write_at(int file, const void *values, int64_t bytes, int64_t offset);
int chroma_read_at(int file, void *values, int64_t bytes, int64_t offset);

/* Bring a file, or the entries of a folder, to the disk. 0 = done. */
int chroma_sync(const char *path)
{
    int file = open(path, O_RDONLY);
    if (file < 0)
        return -1;
    int status = fsync(file);
    return close(file) < 0 ? -1 : status;
}

int chroma_truncate(const char *path, int64_t bytes)
{
    return truncate(path, (off_t)bytes);
}

/* 0 where the folder is there in the end. */
int chroma_make_folder(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : -1;
}

/* Size of a file as the disk has it, -1 where there is none. */
int64_t chroma_file_bytes(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 ? (int64_t)found.st_size : -1;
}

/* Hold a file, made if need be, until this process ends. 0 = held, or on a file system without locks; 1 = another process
   holds it; -1 = it cannot be made. */
int chroma_lock(const char *path)
{
    for (;;) {
        int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (file < 0)
            return -1;
        if (flock(file, LOCK_EX | LOCK_NB) != 0) {
            int is_held = errno == EWOULDBLOCK;
            close(file);
            return is_held;
        }
        struct stat ours, there;
        if (fstat(file, &ours) == 0 && stat(path, &there) == 0 && ours.st_ino == there.st_ino && ours.st_dev == there.st_dev)
            return 0;
        close(file); /* its last holder removed it meanwhile */
    }
}

void chroma_pause(double seconds)
{
    struct timespec pause = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&pause, NULL);
}

/* Open for writing, an empty file in place of what is there if `replace` is set. -1 where that fails. Not for reading: a
   network file system then writes no more than the bytes that it is given, and the rest of a page is another node's. */
int chroma_open_placed(const char *path, int replace)
{
    return open(path, O_WRONLY | O_CLOEXEC | (replace ? O_CREAT | O_TRUNC : 0), 0666);
}

/* An empty file for reading and writing that has no name any more: it goes with the process. -1 where that fails. */
int chroma_open_scratch(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC | O_CREAT | O_TRUNC, 0666);
    if (file >= 0)
        unlink(path);
    return file;
}

/* Write all bytes at their place. 0 = done. */
int chroma_write_at(int file, const void *values, int64_t bytes, int64_t offset)
{
    const char *next = values;
    while (bytes > 0) {
        ssize_t done = pwrite(file, next, (size_t)bytes, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return -1;
        next += done;
        offset += done;
        bytes -= done;
    }
    return 0;
}

/* Read all bytes from their place. 0 = done. */
int chroma_read_at(int file, void *values, int64_t bytes, int64_t offset)
{
    char *next = values;
    while (bytes > 0) {
        ssize_t done = pread(file, next, (size_t)bytes, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return -1;
        next += done;
        offset += done;
        bytes -= done;
    }
    return 0;
}
