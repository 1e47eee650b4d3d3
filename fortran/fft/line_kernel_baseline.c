/* The kernels with vectors of 16 bytes, which every processor has or the compiler makes. */
#define VECTOR_BYTES 16
#define KERNELS line_kernels_baseline
#include "line_kernel_set.inc"
