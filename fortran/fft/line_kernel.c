/* Plans of one-dimensional transforms, and the choice of the kernels for the processor that runs. */
#include <math.h>
#include <stdlib.h>
#include "line_kernel.h"

/* The best that is compiled and that the processor runs: see base_cpu_features.c. */
int chroma_instruction_set(void);

static const line_kernels *kernels(void) {
#ifdef LINE_KERNELS_avx512
  if (chroma_instruction_set() >= 3) return line_kernels_avx512;
#endif
#ifdef LINE_KERNELS_avx2
  if (chroma_instruction_set() >= 2) return line_kernels_avx2;
#endif
#ifdef LINE_KERNELS_baseline
  return line_kernels_baseline;
#else
  return NULL;
#endif
}

static void put(line_plan *plan, int at, long double angle) {
  if (plan->bytes == 4) {
    ((float *)plan->twiddle)[at] = (float)cosl(angle);
    ((float *)plan->twiddle)[at + 1] = (float)sinl(angle);
  } else {
    ((double *)plan->twiddle)[at] = (double)cosl(angle);
    ((double *)plan->twiddle)[at + 1] = (double)sinl(angle);
  }
}

/* A plan for lines of `length` numbers, real (to complex or back) or complex, of `bytes` (4, 8) bytes a real. Null when
   there is no memory, or no kernel for this processor. */
line_plan *line_plan_create(int length, int is_real, int bytes) {
  const long double turn = 6.283185307179586476925286766559005768L;
  const line_kernels *chosen = kernels();
  line_plan *plan = chosen ? calloc(1, sizeof *plan) : NULL;
  if (!plan) return plan;
  int n = is_real && length % 2 == 0 ? length / 2 : length;
  plan->n = n;
  plan->is_halved = n < length;
  plan->bytes = bytes;
  plan->kernels = &chosen[bytes == 8];
  int rest = n, twos = 0, size = 0;
  for (; rest % 2 == 0; rest /= 2) twos++;
  /* As few passes as can be, and those as equal as can be. */
  for (int parts = (twos + 3) / 4; parts > 0; parts--) {
    int power = (twos + parts - 1) / parts;
    plan->radix[plan->n_passes++] = 1 << power;
    twos -= power;
  }
  for (int p = 3; rest > 1; p += 2)
    for (; rest % p == 0; rest /= p) plan->radix[plan->n_passes++] = p;
  for (int i = 0; i < plan->n_passes; i++) size += 2 * plan->radix[i] + 2 * n;
  plan->twiddle = malloc((size_t)bytes * (size + 2 * n + 1));
  if (!plan->twiddle) {
    free(plan);
    return 0;
  }
  int at = 0;
  length = n;
  for (int i = 0; i < plan->n_passes; i++) {
    int radix = plan->radix[i];
    plan->first_twiddle[i] = at;
    for (int p = 0; p < length / radix; p++)
      for (int k = 1; k < radix; k++, at += 2) put(plan, at, -turn * ((long)p * k % length) / length);
    plan->first_root[i] = at;
    for (int j = 0; j < radix; j++, at += 2) put(plan, at, turn * j / radix);
    length /= radix;
  }
  plan->first_split = at;
  for (int j = 0; j < n; j++, at += 2) put(plan, at, turn * j / (2 * n));
  return plan;
}

void line_plan_destroy(line_plan *plan) {
  free(plan->twiddle);
  free(plan);
}

/* Memory of this thread, at least so many bytes; null when there is none. */
static void *work_of(size_t need) {
  static _Thread_local char *work;
  static _Thread_local size_t size;
  if (size < need) {
    free(work);
    work = aligned_alloc(64, (need + 63) / 64 * 64);
    size = work ? need : 0;
  }
  return work;
}

/* Transform lines. Element k of complex line l is number l*distance + k*stride; real lines follow each other. Returns
   0, or 1 when there is no memory. */
int line_plan_run(const line_plan *plan, int what, int sign, int n_lines, long stride, long distance, const void *input,
                  void *output) {
  /* Two arrays of lines, and room for waves or a butterfly of any radix. */
  size_t groups = what == complex_lines ? line_groups(plan->n, stride * 2 * plan->bytes, 2 * 64) : 1;
  void *work = work_of(2 * 64 * 2 * (groups + 1) * ((size_t)plan->n + 1));
  if (!work) return 1;
  const line_kernels *kernel = plan->kernels;
  if (what == complex_lines) kernel->complex_lines(plan, sign > 0, n_lines, stride, distance, input, output, work);
  if (what == real_to_complex) kernel->real_to_complex(plan, n_lines, input, output, work);
  if (what == complex_to_real) kernel->complex_to_real(plan, n_lines, input, output, work);
  return 0;
}

/* Transform a plane of lines along x (fastest; `what` they are) and along y (complex). Forward: x, then y; backward: y,
   then x. The output may be the input if both are complex. Returns 0, or 1 when there is no memory. */
int plane_plan_run(const line_plan *along_x, const line_plan *along_y, int what, int sign, const void *input,
                   void *output) {
  /* The plane, in whole vectors either way, and twice groups of lines and a butterfly of any radix. */
  size_t n_x = (size_t)along_x->n * (along_x->is_halved ? 2 : 1), n_y = along_y->n, most = n_x > n_y ? n_x : n_y;
  size_t plane = (2 * along_x->bytes * (sign > 0 ? n_y : n_x) + 2 * 64) * ((sign > 0 ? n_x : n_y) + 17);
  size_t scratch = 2 * 64 * (groups_in_cache(along_y->n, 2 * 64) + 6) * (most + 17);
  void *work = work_of(plane + 2 * scratch);
  if (!work) return 1;
  along_x->kernels->plane(along_x, along_y, what, sign > 0, input, output, work);
  return 0;
}
