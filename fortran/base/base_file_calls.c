/* Calls of the file system whose arguments have types that Fortran does not know. */
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

int chroma_sync(const char *path);
int chroma_truncate(const char *path, int64_t bytes);
int64_t chroma_file_bytes(const char *path);

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
