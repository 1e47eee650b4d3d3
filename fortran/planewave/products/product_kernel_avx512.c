/* The kernels with AVX-512. */
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,fma,prefer-vector-width=512")
#define VECTOR_BYTES 64
#define KERNELS product_kernels_avx512
#include "product_kernel.inc"
#endif
