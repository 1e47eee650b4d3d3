/* The kernels with AVX-512. */
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,fma,prefer-vector-width=512")
#include "line_kernel.h"
#define VECTOR_BYTES 64

#define REAL float
#define REAL_BYTES 4
#define NAME(x) x##_float
#include "line_kernel.inc"
#undef REAL
#undef REAL_BYTES
#undef NAME

#define REAL double
#define REAL_BYTES 8
#define NAME(x) x##_double
#include "line_kernel.inc"

const line_kernels line_kernels_avx512[2] = {
  {complex_lines_float, real_to_complex_float, complex_to_real_float},
  {complex_lines_double, real_to_complex_double, complex_to_real_double},
};
#endif
