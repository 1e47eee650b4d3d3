/* Counts the device memory that a program asks OpenCL for: a library to load before it (LD_PRELOAD).

   Buffers that are held and the most at any time, bytes, are written to the file that GPU_MEMORY_FILE names, each time
   that the most grows. A buffer ends with its last reference. */

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { REFERENCES = 0x1105, MOST_BUFFERS = 1 << 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { void *buffer; size_t size; } held[MOST_BUFFERS];
static size_t in_use, most;

/* Plugins load OpenCL for themselves alone, where RTLD_NEXT does not look. */
static void *real(const char *name)
{
    return dlsym(dlopen("libOpenCL.so.1", RTLD_NOW), name);
}

static void change(void *buffer, size_t size)
{
    pthread_mutex_lock(&lock);
    for (int k = 0; k < MOST_BUFFERS; k++) {
        if (size && !held[k].buffer) {
            held[k].buffer = buffer;
            held[k].size = size;
            in_use += size;
            break;
        }
        if (!size && held[k].buffer == buffer) {
            in_use -= held[k].size;
            held[k].buffer = NULL;
            break;
        }
    }
    if (in_use > most) {
        most = in_use;
        FILE *file = fopen(getenv("GPU_MEMORY_FILE"), "w");
        if (file) {
            fprintf(file, "%zu\n", most);
            fclose(file);
        }
    }
    pthread_mutex_unlock(&lock);
}

void *clCreateBuffer(void *context, uint64_t flags, size_t size, void *host, int32_t *error)
{
    void *(*create)(void *, uint64_t, size_t, void *, int32_t *) = real("clCreateBuffer");
    void *buffer = create(context, flags, size, host, error);
    if (buffer)
        change(buffer, size);
    return buffer;
}

int32_t clReleaseMemObject(void *buffer)
{
    int32_t (*release)(void *) = real("clReleaseMemObject");
    int32_t (*ask)(void *, uint32_t, size_t, void *, size_t *) = real("clGetMemObjectInfo");
    uint32_t references = 0;
    if (ask(buffer, REFERENCES, sizeof references, &references, NULL) == 0 && references == 1)
        change(buffer, 0);
    return release(buffer);
}
