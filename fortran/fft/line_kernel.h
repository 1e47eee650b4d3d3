/* Plans and kernels of one-dimensional transforms; see line_kernel.inc and line_kernel.c. */
#ifndef LINE_KERNEL_H
#define LINE_KERNEL_H

struct line_plan;

typedef struct {
  void (*complex_lines)(const struct line_plan *, int backward, int n_lines, long stride, long distance, const void *,
                        void *, void *);
  void (*real_to_complex)(const struct line_plan *, int n_lines, const void *, void *, void *);
  void (*complex_to_real)(const struct line_plan *, int n_lines, const void *, void *, void *);
  void (*plane)(const struct line_plan *along_x, const struct line_plan *along_y, int what, int backward, const void *,
                void *, void *);
} line_kernels;

/* What is transformed. */
enum { complex_lines = 1, real_to_complex = 2, complex_to_real = 3 };

typedef struct line_plan {
  int n, n_passes, bytes;       /* length of the complex transform; passes; bytes of a real number */
  int is_halved;                /* real lines of 2n points */
  int radix[32];
  int first_twiddle[32], first_root[32], first_split;
  void *twiddle;                /* of all passes, then cos and sin of 2 pi j/radix; and of pi j/n if is_halved */
  const line_kernels *kernels;  /* for this processor */
} line_plan;

/* Groups of lines to transform together so that rows of memory are read in long runs and what is between the passes stays
   in the second level of the cache. */
static inline int groups_in_cache(int n, long group_bytes) {
  const long groups = 300000 / (n * group_bytes);
  return groups < 1 ? 1 : groups > 16 ? 16 : (int)groups;
}

/* The same for lines whose elements are so far apart; those that lie in the cache are best taken one by one. */
static inline int line_groups(int n, long stride_bytes, long group_bytes) {
  return n * stride_bytes < 1000000 ? 1 : groups_in_cache(n, group_bytes);
}

/* Single and double precision. */
extern const line_kernels line_kernels_baseline[2], line_kernels_avx2[2], line_kernels_avx512[2];

#endif
