/* Clock and multiply-add peak of this machine. SPDX-License-Identifier: MIT */
#include <time.h>

#include <omp.h>

#include "bench.h"

double vb_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void vb_keep(double v)
{
    __asm__ volatile("" : : "m"(v) : "memory");
}

static double widest(int64_t steps)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        return vb_peak_v4(steps);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return vb_peak_v3(steps);
#endif
    return vb_peak_portable(steps);
}

double vb_measure_peak(int32_t threads)
{
    const int64_t steps = 2000000;
    double flop = 0.0, start = vb_now();
#pragma omp parallel for num_threads(threads) reduction(+ : flop)
    for (int32_t i = 0; i < threads; i++)
        flop += widest(steps); /* every term is the same exact integer */
    return flop / (vb_now() - start) * 1e-9;
}
