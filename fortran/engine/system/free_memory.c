/* Give memory that the program has freed back to the system, where the C library can. */
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

void chromamd_trim_memory(void);

void chromamd_trim_memory(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
