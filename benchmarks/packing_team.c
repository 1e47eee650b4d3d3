/* Packing of halo messages by a team of spin-waiting threads beside OpenMP: does it pay?

     gcc -O3 -march=native -fopenmp benchmarks/packing_team.c -o packing_team && OMP_NUM_THREADS=2 ./packing_team

   Positions (3 doubles) of n atoms are gathered by an index list, shifted and written to a message: by one thread, in an
   OpenMP region, and by a team of threads that do nothing but wait for the next list (a counter in a cache line, pause
   between looks). "alone": one packing after the other. "in a step": each after an OpenMP region of computation of about
   80 us on the same number of threads, as in a time step, where the waiting team takes the cores from OpenMP's threads
   unless there are cores to spare; the time of the computation is given too. Medians of 200, microseconds. */
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { largest = 50000, pool = 200000, repeats = 200, most_threads = 64 };
static double position[3 * pool], message[3 * largest], sink[most_threads * 8];
static int list[largest];

static struct { _Alignas(64) atomic_long job; _Alignas(64) atomic_int left; int n, n_threads; } team;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * t.tv_sec + 1e-3 * t.tv_nsec;
}

static void pack(int first, int last)
{
    for (int k = first; k < last; k++)
        for (int a = 0; a < 3; a++)
            message[3 * k + a] = position[3 * list[k] + a] + 0.5;
    /* Nobody reads the message; the compiler must not know. */
    __asm__ volatile("" : : "r"(message) : "memory");
}

static void pack_share(int n, int share, int shares)
{
    pack((long)n * share / shares, (long)n * (share + 1) / shares);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void *wait_and_pack(void *number)
{
    long seen = 0;
    for (;;) {
        while (atomic_load_explicit(&team.job, memory_order_acquire) == seen)
            relax();
        seen = atomic_load_explicit(&team.job, memory_order_acquire);
        if (seen < 0)
            return NULL;
        pack_share(team.n, (int)(long)number, team.n_threads);
        atomic_fetch_sub_explicit(&team.left, 1, memory_order_release);
    }
}

static void by_one(int n, int threads) { (void)threads; pack(0, n); }

static void by_openmp(int n, int threads)
{
#pragma omp parallel num_threads(threads)
    pack_share(n, omp_get_thread_num(), omp_get_num_threads());
}

static void by_team(int n, int threads)
{
    team.n = n;
    atomic_store_explicit(&team.left, threads - 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&team.job, 1, memory_order_release);
    pack_share(n, 0, threads);
    while (atomic_load_explicit(&team.left, memory_order_acquire) > 0)
        relax();
}

static void compute(int threads)
{
#pragma omp parallel num_threads(threads)
    {
        volatile double begin = 0.5;
        double x = begin;
        for (int k = 0; k < 50000; k++)
            x = x * 0.999999 + 1e-6;
        sink[8 * omp_get_thread_num()] += x;
        __asm__ volatile("" : : "r"(sink) : "memory");
    }
}

static int ascending(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double median(double *values)
{
    qsort(values, repeats, sizeof *values, ascending);
    return values[repeats / 2];
}

/* Time of a packing; with `step`, of those between computations, and of the computation. */
static double measure(void (*how)(int, int), int n, int threads, int step, double *computation)
{
    static double packing[repeats], computing[repeats];
    for (int k = 0; k < repeats; k++) {
        double start = now();
        if (step)
            compute(threads);
        double middle = now();
        how(n, threads);
        packing[k] = now() - middle;
        computing[k] = middle - start;
    }
    *computation = median(computing);
    return median(packing);
}

int main(void)
{
    const int sizes[] = {22, 100, 500, 2000, 10000, 50000};
    const char *names[] = {"one thread", "OpenMP region", "spinning team"};
    void (*hows[])(int, int) = {by_one, by_openmp, by_team};
    int threads = omp_get_max_threads();
    pthread_t worker[most_threads];
    double computation;
    if (threads > most_threads)
        return 1;
    for (int k = 0; k < pool; k++)
        position[3 * k] = position[3 * k + 1] = position[3 * k + 2] = k;
    for (int k = 0; k < largest; k++)
        list[k] = (int)((long)k * 3 + k % 7);
    printf("%d threads; microseconds\n%-15s%8s%10s%12s%14s\n", threads, "", "atoms", "alone", "in a step", "computation");
    for (int h = 0; h < 3; h++) {
        team.n_threads = threads;
        if (h == 2)
            for (long t = 1; t < threads; t++)
                pthread_create(&worker[t], NULL, wait_and_pack, (void *)t);
        for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            double alone = measure(hows[h], sizes[s], threads, 0, &computation);
            double in_step = measure(hows[h], sizes[s], threads, 1, &computation);
            printf("%-15s%8d%10.2f%12.2f%14.1f\n", names[h], sizes[s], alone, in_step, computation);
        }
    }
    atomic_store(&team.job, -1);
    for (long t = 1; t < threads; t++)
        pthread_join(worker[t], NULL);
    return 0;
}
