/* The kernels with AVX2. */
#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
#define VECTOR_BYTES 32
#define KERNELS product_kernels_avx2
#include "product_kernel.inc"
#endif
