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
int64_t chroma_file_bytes(const char *path);
int chroma_lock(const char *path);
void chroma_pause(double seconds);

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
