/* The loops over pairs for AVX2, in single precision and without energies: what module vector_loops calls in place of
   those of pair_loop.inc, which gfortran makes 1.3 times as slow for sixteen registers. Arguments as in
   pair_loop.F90.in.

   A j cluster fills a vector, the four atoms of an i cluster go through each line of the formulas side by side, so that
   none waits for the other. y is 2/r: Newton's step from the processor's estimate needs no factor then, and the powers
   of two lie in the constants. Atoms with Lennard-Jones terms come first in an i cluster; a loop for each number of
   them leaves the rest out. */
#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
#include <immintrin.h>
#include <stdint.h>

enum { ATOMS = 4, CLUSTER = 3 * LANES, FIT_DEGREE = 12, LONGEST_RUN = 8, CLUSTERS_TOGETHER = 512 };
enum law { PLAIN, SWITCH, FORCE_SWITCH };

typedef float real8 __attribute__((vector_size(32)));
typedef int32_t int8 __attribute__((vector_size(32)));

/* As in module vector_loops; see type pair_parameters_t. */
struct pair_constants {
    float force_fit[FIT_DEGREE + 1], fit_scale, cutoff2, closest2, switch2, switch_fit[2], switch_slope[2];
    float cutoff_m3, cutoff_m6, switch_factor6, switch_factor12, unit2;
};

/* The same in all lanes, with the factors that y = 2/r and y*y bring. */
struct constants {
    real8 fit[FIT_DEGREE + 1], fit_scale, cutoff2, closest2, unit2, one, three, contact;
    real8 slope6, slope12, switch2, switch_fit[2], switch_slope[2];
    real8 cutoff_m3, cutoff_m6, switch_factor6, switch_factor12;
};

/* An i cluster, each number in all lanes, and the forces on its atoms, which the lanes share. */
struct i_cluster {
    int8 x[ATOMS], y[ATOMS], z[ATOMS];
    real8 charge[ATOMS], half_sigma[ATOMS], root_epsilon[ATOMS];
    real8 fx[ATOMS], fy[ATOMS], fz[ATOMS];
};

#define INLINE static inline __attribute__((always_inline))
#define EACH_FROM(first, a, n) _Pragma("GCC unroll 4") for (int a = first; a < (n); a++)
#define EACH(a, n) EACH_FROM(0, a, n)

INLINE real8 all(float value)
{
    return (real8)_mm256_set1_ps(value);
}

INLINE real8 larger(real8 a, real8 b)
{
    return (real8)_mm256_max_ps((__m256)a, (__m256)b);
}

INLINE real8 load(const float *from)
{
    return (real8)_mm256_loadu_ps(from);
}

INLINE int8 load_int(const int *from)
{
    return (int8)_mm256_loadu_si256((const __m256i *)from);
}

INLINE real8 where(int8 mask, real8 value)
{
    return (real8)((int8)value & mask);
}

/* a*b + c, a*b - c and c - a*b, rounded once: the compiler fuses nothing by itself. */
INLINE real8 plus(real8 a, real8 b, real8 c)
{
    return (real8)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

INLINE real8 minus(real8 a, real8 b, real8 c)
{
    return (real8)_mm256_fmsub_ps((__m256)a, (__m256)b, (__m256)c);
}

INLINE real8 from(real8 c, real8 a, real8 b)
{
    return (real8)_mm256_fnmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

INLINE float total(real8 v)
{
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

INLINE struct constants constants_of(const struct pair_constants *pair)
{
    struct constants c;
    for (int k = 0; k <= FIT_DEGREE; k++) c.fit[k] = all(8 * pair->force_fit[k]);
    c.fit_scale = all(pair->fit_scale);
    c.cutoff2 = all(pair->cutoff2);
    c.closest2 = all(pair->closest2);
    c.unit2 = all(pair->unit2);
    c.one = all(1.0f);
    c.three = all(3.0f);
    c.contact = all(64.0f);
    c.slope6 = all(6.0f / 4);
    c.slope12 = all(12.0f / 256);
    c.switch2 = all(pair->switch2);
    for (int k = 0; k < 2; k++) {
        c.switch_fit[k] = all(pair->switch_fit[k]);
        c.switch_slope[k] = all(pair->switch_slope[k] / 64);
    }
    c.cutoff_m3 = all(pair->cutoff_m3 / 2);
    c.cutoff_m6 = all(pair->cutoff_m6);
    c.switch_factor6 = all(pair->switch_factor6);
    c.switch_factor12 = all(pair->switch_factor12);
    return c;
}

/* Lennard-Jones force over distance, divided by the product of root_epsilon and times 64. */
INLINE real8 lennard_jones(const enum law law, const struct constants *pair, real8 sigma, real8 r2, real8 y, real8 y2)
{
    real8 s2 = sigma * sigma * y2; /* 4 (sigma/r)^2 */
    real8 s6 = s2 * s2 * s2;
    if (law == FORCE_SWITCH) {
        int8 beyond = r2 > pair->switch2;
        real8 r4 = r2 * r2;
        real8 w6 = minus(pair->switch_factor12, from(pair->one, pair->cutoff_m6, r4 * r2), pair->one);
        real8 w3 = minus(pair->switch_factor6, from(pair->one, pair->cutoff_m3, r4 * y), pair->one);
        real8 repulsion = pair->slope12 * s6 * (pair->one + where(beyond, w6));
        return s6 * y2 * from(repulsion, pair->slope6, pair->one + where(beyond, w3));
    }
    real8 slope = minus(pair->slope12, s6, pair->slope6) * y2;
    if (law == SWITCH) {
        real8 u = larger(r2 - pair->switch2, all(0.0f));
        slope *= from(pair->one, u * u, from(pair->switch_fit[0], u, pair->switch_fit[1]));
        slope = plus(u * from(pair->switch_slope[0], u, pair->switch_slope[1]), s6 - pair->contact, slope);
    }
    return s6 * slope;
}

/* The pairs of an i cluster, of whose atoms the first n_lj have Lennard-Jones terms, with a j cluster. */
INLINE void add_pairs(const enum law law, const int n_lj, const struct constants *pair, struct i_cluster *i,
                      const int *coordinate, const float *parameter, const int8 *counts, float *force)
{
    int8 xj = load_int(coordinate), yj = load_int(coordinate + LANES), zj = load_int(coordinate + 2 * LANES);
    real8 charge = load(parameter), half_sigma = load(parameter + LANES), root_epsilon = load(parameter + 2 * LANES);
    real8 fxj = load(force), fyj = load(force + LANES), fzj = load(force + 2 * LANES);
    real8 dx[ATOMS], dy[ATOMS], dz[ATOMS], r2[ATOMS], y[ATOMS], y2[ATOMS], t[ATOMS], t2[ATOMS], even[ATOMS], odd[ATOMS];
    real8 f[ATOMS], lj[ATOMS];
    const real8 *fit = pair->fit;

    EACH(a, ATOMS) {
        dx[a] = __builtin_convertvector(i->x[a] - xj, real8);
        dy[a] = __builtin_convertvector(i->y[a] - yj, real8);
        dz[a] = __builtin_convertvector(i->z[a] - zj, real8);
        r2[a] = plus(dz[a], dz[a], plus(dy[a], dy[a], dx[a] * dx[a]));
        r2[a] = larger(r2[a] * pair->unit2, pair->closest2);
    }
    EACH(a, ATOMS) y[a] = (real8)_mm256_rsqrt_ps((__m256)r2[a]);
    EACH(a, ATOMS) y[a] *= from(pair->three, r2[a] * y[a], y[a]);
    EACH(a, ATOMS) y2[a] = y[a] * y[a];
    /* The polynomial of the Ewald correction: of even and of odd powers, which need not wait for each other. */
    EACH(a, ATOMS) t[a] = minus(r2[a], pair->fit_scale, pair->one);
    EACH(a, ATOMS) t2[a] = t[a] * t[a];
    EACH(a, ATOMS) even[a] = plus(fit[12], t2[a], fit[10]);
    EACH(a, ATOMS) odd[a] = plus(fit[11], t2[a], fit[9]);
    _Pragma("GCC unroll 4") for (int k = 8; k > 0; k -= 2) {
        EACH(a, ATOMS) even[a] = plus(even[a], t2[a], fit[k]);
        EACH(a, ATOMS) odd[a] = plus(odd[a], t2[a], fit[k - 1]);
    }
    EACH(a, ATOMS) even[a] = plus(even[a], t2[a], fit[0]);
    EACH(a, ATOMS) f[a] = minus(y[a], y2[a], plus(odd[a], t[a], even[a]));
    EACH(a, n_lj) lj[a] = i->root_epsilon[a] * root_epsilon *
                          lennard_jones(law, pair, i->half_sigma[a] + half_sigma, r2[a], y[a], y2[a]);
    EACH(a, n_lj) f[a] = plus(i->charge[a] * charge, f[a], lj[a]);
    EACH_FROM(n_lj, a, ATOMS) f[a] *= i->charge[a] * charge;
    EACH(a, ATOMS) {
        int8 inside = r2[a] < pair->cutoff2;
        f[a] = where(counts ? inside & counts[a] : inside, f[a]);
    }
    EACH(a, ATOMS) {
        dx[a] *= f[a];
        dy[a] *= f[a];
        dz[a] *= f[a];
        i->fx[a] += dx[a];
        i->fy[a] += dy[a];
        i->fz[a] += dz[a];
        fxj -= dx[a];
        fyj -= dy[a];
        fzj -= dz[a];
    }
    _mm256_storeu_ps(force, (__m256)fxj);
    _mm256_storeu_ps(force + LANES, (__m256)fyj);
    _mm256_storeu_ps(force + 2 * LANES, (__m256)fzj);
}

/* Entries of the list of one i cluster: n clusters, counted from 0, with their bits if they have any. */
INLINE void add_entries(const enum law law, const int n_lj, const struct constants *pair, struct i_cluster *given,
                        int n, const int *cluster, const int *bits, const int *coordinate, const float *parameter_of,
                        float *force)
{
    const int8 bit = {1, 2, 4, 8, 16, 32, 64, 128};
    struct i_cluster i = *given;
    int8 counts[ATOMS];
    for (int e = 0; e < n; e++) {
        const long place = (long)CLUSTER * cluster[e];
        if (bits)
            EACH(a, ATOMS) counts[a] = ((int8)_mm256_set1_epi32((uint32_t)bits[e] >> LANES * a) & bit) == bit;
        add_pairs(law, n_lj, pair, &i, coordinate + place, parameter_of + place, bits ? counts : 0, force + place);
    }
    *given = i;
}

#define ADD_ENTRIES(n_lj) add_entries(law, n_lj, &constants, &i, n, cluster, bits, coordinate, parameter_of, force)

/* The loop of a law over i clusters first_i to last_i, counted from 1. */
INLINE void loop(const enum law law, const int is_masked, int first_i, int last_i, const int *list_first,
                 const int *list, const int *list_bits, const int *coordinate, const float *parameter_of,
                 const struct pair_constants *pair, int force_lower, float *force)
{
    const struct constants constants = constants_of(pair);
    int decoded[CLUSTERS_TOGETHER];
    force -= (long)CLUSTER * (force_lower - 1);
    for (int c = first_i - 1; c < last_i; c++, list_first++) {
        if (list_first[0] == list_first[1]) continue;
        const long place = (long)CLUSTER * (c / 2) + ATOMS * (c % 2);
        struct i_cluster i;
        int n_lj = 0;
        for (int a = 0; a < ATOMS; a++) {
            const int *at = coordinate + place + a;
            const float *of = parameter_of + place + a;
            i.x[a] = (int8)_mm256_set1_epi32(at[0]);
            i.y[a] = (int8)_mm256_set1_epi32(at[LANES]);
            i.z[a] = (int8)_mm256_set1_epi32(at[2 * LANES]);
            i.charge[a] = all(of[0] / 8);
            i.half_sigma[a] = all(of[LANES]);
            i.root_epsilon[a] = all(of[2 * LANES] / 64);
            i.fx[a] = i.fy[a] = i.fz[a] = all(0.0f);
            if (of[2 * LANES] > 0.0f) n_lj = a + 1;
        }
        int next = list_first[0] - 1;
        while (next < list_first[1] - 1) {
            int n = 0;
            const int *bits = is_masked ? list_bits + next : 0;
            const int *cluster = decoded;
            /* Runs are written out, each as if it were of full length. */
            while (next < list_first[1] - 1 && n <= CLUSTERS_TOGETHER - LONGEST_RUN) {
                if (is_masked) {
                    decoded[n++] = list[next++] - 1;
                } else {
                    for (int k = 0; k < LONGEST_RUN; k++) decoded[n + k] = list[next] / LONGEST_RUN + k;
                    n += list[next++] % LONGEST_RUN + 1;
                }
            }
            switch (n_lj) {
            case 0: ADD_ENTRIES(0); break;
            case 1: ADD_ENTRIES(1); break;
            case 2: ADD_ENTRIES(2); break;
            case 3: ADD_ENTRIES(3); break;
            default: ADD_ENTRIES(4);
            }
        }
        for (int a = 0; a < ATOMS; a++) {
            force[place + a] += total(i.fx[a]);
            force[place + a + LANES] += total(i.fy[a]);
            force[place + a + 2 * LANES] += total(i.fz[a]);
        }
    }
}

/* What module vector_loops calls; laws as there. */
void chroma_vector_loop(int law, int is_masked, int first_i, int last_i, const int *list_first, const int *list,
                        const int *list_bits, const int *coordinate, const float *parameter_of,
                        const struct pair_constants *pair, int force_lower, float *force)
{
#define LOOP(law, is_masked)                                                                                        \
    loop(law, is_masked, first_i, last_i, list_first, list, list_bits, coordinate, parameter_of, pair, force_lower, \
         force)
    switch (2 * law + is_masked) {
    case 2 * PLAIN: LOOP(PLAIN, 0); break;
    case 2 * PLAIN + 1: LOOP(PLAIN, 1); break;
    case 2 * SWITCH: LOOP(SWITCH, 0); break;
    case 2 * SWITCH + 1: LOOP(SWITCH, 1); break;
    case 2 * FORCE_SWITCH: LOOP(FORCE_SWITCH, 0); break;
    case 2 * FORCE_SWITCH + 1: LOOP(FORCE_SWITCH, 1);
    }
}
#endif
