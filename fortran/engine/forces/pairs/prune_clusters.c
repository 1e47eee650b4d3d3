/* Pruning in single precision with instructions written out, once for AVX2 and once for AVX-512 (LANES is 8 or 16): which
   entries of a list have atoms within reach of each other. gfortran brings a vector's minimum to one number by five steps
   that wait for each other; here a comparison tells. Arguments as in module pair_kernels_SET. */
#if defined(__x86_64__)
#if LANES == 16
#pragma GCC target("avx512f,fma")
#else
#pragma GCC target("avx2,fma")
#endif
#include <immintrin.h>

enum { ATOMS = 4, WIDTH = 8, GROUPS = ATOMS * WIDTH / LANES, CLUSTER = 3 * LANES, LONGEST_RUN = 8, TOGETHER = 512 };

typedef float reals __attribute__((vector_size(4 * LANES)));
typedef int ints __attribute__((vector_size(4 * LANES)));

#define INLINE static inline __attribute__((always_inline))
#define EACH(g) _Pragma("GCC unroll 4") for (int g = 0; g < GROUPS; g++)

#if LANES == 16
/* One or two atoms of an i cluster, each in the lanes of a j cluster. */
INLINE ints group_of(const int *of)
{
    return (ints)_mm512_mask_blend_epi32(0xff00, _mm512_set1_epi32(of[0]), _mm512_set1_epi32(of[1]));
}

INLINE ints load(const int *from)
{
    return (ints)_mm512_loadu_si512(from);
}

INLINE reals smaller(reals a, reals b)
{
    return (reals)_mm512_min_ps((__m512)a, (__m512)b);
}

INLINE reals all(float value)
{
    return (reals)_mm512_set1_ps(value);
}

INLINE int any_is_below(reals values, float limit)
{
    return _mm512_cmp_ps_mask((__m512)values, _mm512_set1_ps(limit), _CMP_LT_OQ) != 0;
}
#else
INLINE ints group_of(const int *of)
{
    return (ints)_mm256_set1_epi32(*of);
}

INLINE ints load(const int *from)
{
    return (ints)_mm256_loadu_si256((const __m256i *)from);
}

INLINE reals smaller(reals a, reals b)
{
    return (reals)_mm256_min_ps((__m256)a, (__m256)b);
}

INLINE reals all(float value)
{
    return (reals)_mm256_set1_ps(value);
}

INLINE int any_is_below(reals values, float limit)
{
    return _mm256_movemask_ps(_mm256_cmp_ps((__m256)values, _mm256_set1_ps(limit), _CMP_LT_OQ)) != 0;
}
#endif

/* Rows of the i clusters first_i to last_i, counted from 1, as they stand in list_first and kept_first. A run is its first
   cluster, counted from 0, times LONGEST_RUN, and how many follow. */
void PRUNE_CLUSTERS(int first_i, int last_i, const int *list_first, const int *restrict list_run,
                    const int *restrict coordinate, float near2, int *restrict kept_first, int *restrict kept_run)
{
    unsigned near[TOGETHER];
    int n_kept = 0;
    for (int i = 0; i <= last_i - first_i; i++) {
        const int c = first_i - 1 + i;
        const int *at = coordinate + (long)CLUSTER * (c / 2) + ATOMS * (c % 2);
        ints x[GROUPS], y[GROUPS], z[GROUPS];
        kept_first[i] = n_kept + 1;
        EACH(g) {
            x[g] = group_of(at + ATOMS / GROUPS * g);
            y[g] = group_of(at + LANES + ATOMS / GROUPS * g);
            z[g] = group_of(at + 2 * LANES + ATOMS / GROUPS * g);
        }
        unsigned previous = ~1u, run = 0;
        int next = list_first[i] - 1;
        const int end = list_first[i + 1] - 1;
        while (next < end) {
            /* Those that are near first, without a branch: whether an entry stays cannot be foreseen. */
            int n = 0;
            for (; next < end && n <= TOGETHER - LONGEST_RUN; next++) {
                const unsigned entry = (unsigned)list_run[next], first = entry / LONGEST_RUN;
                const int *other = coordinate + (long)CLUSTER * first;
                for (unsigned j = first; j <= first + entry % LONGEST_RUN; j++, other += CLUSTER) {
                    const ints xj = load(other), yj = load(other + LANES), zj = load(other + 2 * LANES);
                    reals closest = all(near2);
                    EACH(g) {
                        reals dx = __builtin_convertvector(x[g] - xj, reals);
                        reals dy = __builtin_convertvector(y[g] - yj, reals);
                        reals dz = __builtin_convertvector(z[g] - zj, reals);
                        closest = smaller(closest, dx * dx + dy * dy + dz * dz);
                    }
                    near[n] = j;
                    n += any_is_below(closest, near2);
                }
            }
            for (int k = 0; k < n; k++) {
                const unsigned j = near[k];
                const int grows = (j == previous + 1) & (run % LONGEST_RUN < LONGEST_RUN - 1);
                run = grows ? run + 1 : LONGEST_RUN * j;
                n_kept += !grows;
                kept_run[n_kept - 1] = (int)run;
                previous = j;
            }
        }
    }
    kept_first[last_i - first_i + 1] = n_kept + 1;
}
#endif
