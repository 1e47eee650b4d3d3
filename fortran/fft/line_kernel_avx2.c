/* The kernels with AVX2. */
#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
#include "line_kernel.h"
#define VECTOR_BYTES 32

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

const line_kernels line_kernels_avx2[2] = {
  {complex_lines_float, real_to_complex_float, complex_to_real_float},
  {complex_lines_double, real_to_complex_double, complex_to_real_double},
};
#endif
