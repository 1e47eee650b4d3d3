/* Standard normal numbers of many atoms: Philox 4x32 with 10 rounds, then Box and Muller's transformation, as module
   base_random describes them. Loops over a block of atoms, so that the compiler fills vectors with atoms. No multiplication
   is fused with an addition (CMakeLists.txt), so that all instruction sets give the same bits. */
#include <stdint.h>
#include <string.h>

enum { BLOCK = 64, ROUNDS = 10 };

#if defined(ONE_INSTRUCTION_SET) || !defined(__x86_64__) || !defined(__linux__) || defined(__clang__)
#define FOR_EACH_INSTRUCTION_SET
#else
#define FOR_EACH_INSTRUCTION_SET __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#define INLINE static inline __attribute__((always_inline))

INLINE double real_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* A 32-bit number as a uniform one in (0, 1); the detour by a signed number has an instruction everywhere. */
INLINE double uniform(uint32_t bits)
{
    return ((double)(int32_t)(bits ^ 0x80000000u) + 2147483648.5) * 0x1p-32;
}

/* The natural logarithm of a number in (0, 1): with x = m 2^k and s = (m - 1)/(m + 1), it is k ln 2 + 2 artanh(s). With m
   between the roots of 1/2 and of 2, s^2 is below 0.0295, and the series is cut at 1e-17. */
INLINE double logarithm(double x)
{
    uint64_t bits = bits_of(x);
    /* The exponent as a real number: 2^52 + e has e in its last bits. */
    double k = real_of(bits >> 52 | 0x4330000000000000u) - (0x1p52 + 1023);
    double m = real_of((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
    double half = m > 1.4142135623730951 ? 1.0 : 0.0;
    m -= 0.5 * half * m;
    k += half;
    double s = (m - 1) / (m + 1), z = s * s;
    double series = 1.0 / 21;
    series = series * z + 1.0 / 19;
    series = series * z + 1.0 / 17;
    series = series * z + 1.0 / 15;
    series = series * z + 1.0 / 13;
    series = series * z + 1.0 / 11;
    series = series * z + 1.0 / 9;
    series = series * z + 1.0 / 7;
    series = series * z + 1.0 / 5;
    series = series * z + 1.0 / 3;
    return k * 0.6931471805599453 + 2 * (s + s * (z * series));
}

/* Cosine and sine of 2 pi u, for u in (0, 1): Taylor's series within an eighth of a turn, to 1e-17, and the quarter turn
   that is nearest. */
INLINE void cosine_and_sine(double u, double *cosine, double *sine)
{
    double quarters = (u * 4 + 0x1.8p52) - 0x1.8p52;
    double x = (u - 0.25 * quarters) * 6.283185307179586, z = x * x;
    double c = 1.0 / 20922789888000;
    c = c * z - 1.0 / 87178291200;
    c = c * z + 1.0 / 479001600;
    c = c * z - 1.0 / 3628800;
    c = c * z + 1.0 / 40320;
    c = c * z - 1.0 / 720;
    c = c * z + 1.0 / 24;
    c = 1 - z * (0.5 - z * c);
    double s = -1.0 / 1307674368000;
    s = s * z + 1.0 / 6227020800;
    s = s * z - 1.0 / 39916800;
    s = s * z + 1.0 / 362880;
    s = s * z - 1.0 / 5040;
    s = s * z + 1.0 / 120;
    s = x - x * (z * (1.0 / 6 - z * s));
    int is_odd = quarters == 1 || quarters == 3;
    double a = is_odd ? s : c, b = is_odd ? c : s;
    *cosine = quarters == 1 || quarters == 2 ? -a : a;
    *sine = quarters == 2 || quarters == 3 ? -b : b;
}

/* Three numbers for each of n atoms, normal[n*k + i] for direction k. Key and counter are those of module base_random. */
FOR_EACH_INSTRUCTION_SET
void chroma_atom_normals(int64_t seed, int64_t purpose, int64_t step, int64_t n, const int64_t *atom, double *normal)
{
    for (int64_t first = 0; first < n; first += BLOCK) {
        const int size = n - first < BLOCK ? (int)(n - first) : BLOCK;
        uint32_t x0[BLOCK] = {0}, x1[BLOCK] = {0}, x2[BLOCK], x3[BLOCK];
        double out[3][BLOCK];
        uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)((uint64_t)seed >> 32);
        for (int i = 0; i < size; i++) {
            const uint64_t id = (uint64_t)atom[first + i];
            x0[i] = (uint32_t)id;
            x1[i] = (uint32_t)(id >> 32 | (uint64_t)purpose << 16);
        }
        for (int i = 0; i < BLOCK; i++) {
            x2[i] = (uint32_t)step;
            x3[i] = (uint32_t)((uint64_t)step >> 32);
        }
        for (int round = 0; round < ROUNDS; round++) {
            for (int i = 0; i < BLOCK; i++) {
                const uint64_t one = (uint64_t)0xD2511F53u * x0[i], other = (uint64_t)0xCD9E8D57u * x2[i];
                x0[i] = (uint32_t)(other >> 32) ^ x1[i] ^ key0;
                x1[i] = (uint32_t)other;
                x2[i] = (uint32_t)(one >> 32) ^ x3[i] ^ key1;
                x3[i] = (uint32_t)one;
            }
            key0 += 0x9E3779B9u;
            key1 += 0xBB67AE85u;
        }
        for (int i = 0; i < BLOCK; i++) {
            double cosine, sine, unused;
            const double radius = __builtin_sqrt(-2 * logarithm(uniform(x0[i])));
            cosine_and_sine(uniform(x1[i]), &cosine, &sine);
            out[0][i] = radius * cosine;
            out[1][i] = radius * sine;
            cosine_and_sine(uniform(x3[i]), &cosine, &unused);
            out[2][i] = __builtin_sqrt(-2 * logarithm(uniform(x2[i]))) * cosine;
        }
        for (int k = 0; k < 3; k++) memcpy(normal + n * k + first, out[k], (size_t)size * sizeof(double));
    }
}
