/* Calls of the file system whose arguments have types that Fortran does not know. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

int chroma_sync(const char *path);
int chroma_truncate(const char *path, int64_t bytes);
int64_t chroma_file_bytes(const char *path);
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

/* Size of a file as the disk has it, -1 where there is none. */
int64_t chroma_file_bytes(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 ? (int64_t)found.st_size : -1;
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
