/* Which of the instruction sets that kernels are compiled for this processor (and operating system) can run. */
int chroma_instruction_set(void);

/* 0: the baseline of the architecture; 2: AVX2 with FMA; 3: AVX-512 (F, CD, VL, BW, DQ). */
int chroma_instruction_set(void)
{
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        return 3;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return 2;
#endif
    return 0;
}

#ifdef CHROMA_PROBE
/* For CMake: the exit status tells. */
int main(void)
{
    return chroma_instruction_set();
}
#endif
