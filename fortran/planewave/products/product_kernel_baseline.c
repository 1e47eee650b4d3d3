/* The kernels with vectors of 16 bytes, which every processor has or the compiler makes. */
#define VECTOR_BYTES 16
#define KERNELS product_kernels_baseline
#include "product_kernel.inc"
