/* The choice of the kernels for the processor that runs. */
#include <stddef.h>
#include "product_kernel.h"

/* The best that is compiled and that the processor runs: see base_cpu_features.c. */
int chroma_instruction_set(void);

/* Plans of transforms, which come first in a run, refuse a processor without any of the sets that are compiled. */
static const product_kernels *kernels(void) {
#ifdef PRODUCT_KERNELS_avx512
  if (chroma_instruction_set() >= 3) return &product_kernels_avx512;
#endif
#ifdef PRODUCT_KERNELS_avx2
  if (chroma_instruction_set() >= 2) return &product_kernels_avx2;
#endif
#ifdef PRODUCT_KERNELS_baseline
  return &product_kernels_baseline;
#else
  return NULL;
#endif
}

void product_overlap(long k, long m, long n, const double *a, long columns_a, const double *b, long columns_b, double *s,
                     long columns_s) {
  kernels()->overlap(k, m, n, a, columns_a, b, columns_b, s, columns_s);
}

void product_rotate(long k, long m, long n, const double *a, long columns_a, const double *x, double *c, long columns_c,
                    double *work) {
  kernels()->rotate(k, m, n, a, columns_a, x, c, columns_c, work);
}
