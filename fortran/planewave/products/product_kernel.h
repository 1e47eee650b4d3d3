/* Products of tall matrices (columns of Fortran, rows without gaps), in one kernel an instruction set. */
#ifndef PRODUCT_KERNEL_H
#define PRODUCT_KERNEL_H

typedef struct {
  /* s(m, n) += a(k, m)^T b(k, n); `columns` between columns. */
  void (*overlap)(long k, long m, long n, const double *a, long columns_a, const double *b, long columns_b, double *s,
                  long columns_s);
  /* c(k, n) += a(k, m) x(m, n); work: of m (n + 80) numbers. */
  void (*rotate)(long k, long m, long n, const double *a, long columns_a, const double *x, double *c, long columns_c,
                 double *work);
} product_kernels;

extern const product_kernels product_kernels_baseline, product_kernels_avx2, product_kernels_avx512;

#endif
