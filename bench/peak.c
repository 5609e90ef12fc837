/* f64 multiply-add peak of one vector width: independent chains in registers,
 * nothing loaded, nothing stored. Compiled once per width.
 *
 * SPDX-License-Identifier: MIT */
#include "bench.h"

typedef double vec __attribute__((vector_size(PEAK_BYTES)));

enum { CHAINS = PEAK_BYTES == 64 ? 24 : 10, LANES = PEAK_BYTES / 8 };

double PEAK_NAME(int64_t steps)
{
    vec acc[CHAINS], mul, add;
    for (int j = 0; j < LANES; j++) {
        mul[j] = 0.999999;
        add[j] = 1e-9 * (j + 1);
    }
    for (int i = 0; i < CHAINS; i++)
        for (int j = 0; j < LANES; j++)
            acc[i][j] = 1.0 + i + j;
    for (int64_t k = 0; k < steps; k++) {
#if defined(__x86_64__)
        __asm__ volatile("" ::: "memory"); /* keep the loop; registers are untouched */
#endif
#pragma GCC unroll 24
        for (int i = 0; i < CHAINS; i++)
            acc[i] = acc[i] * mul + add;
    }
    double sum = 0.0;
    for (int i = 0; i < CHAINS; i++)
        for (int j = 0; j < LANES; j++)
            sum += acc[i][j];
    vb_keep(sum);
    return (double)(2 * CHAINS * LANES * steps);
}
