/* Calls of the file system whose arguments have types that Fortran does not know. */
#include <fcntl.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

int chroma_sync(const char *path);
int chroma_truncate(const char *path, int64_t bytes);

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
