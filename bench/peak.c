/* f64 multiply-add peak of one vector width: independent chains in registers,
 * nothing loaded, nothing stored. Compiled once per width.
 *
 * SPDX-License-Identifier: MIT */
#include "bench.h"

typedef double vec __attribute__((vector_size(PEAK_BYTES)));

enum { CHAINS = PEAK_BYTES == 64 ? 24 : 10, LANES = PEAK_BYTES / 8 };

static inline vec splat(double d)
{
    vec v = {0};
    for (int j = 0; j < LANES; j++)
        v[j] = d;
    return v;
}

double PEAK_NAME(int64_t steps)
{
    /* Every loop over chains is unrolled, so that each chain is a register. */
    vec acc[CHAINS], mul = splat(0.999999), add = splat(1e-9), sum = splat(0.0);
#pragma GCC unroll 24
    for (int i = 0; i < CHAINS; i++)
        acc[i] = splat(1.0 + i);
    for (int64_t k = 0; k < steps; k++) {
#pragma GCC unroll 24
        for (int i = 0; i < CHAINS; i++)
            acc[i] = acc[i] * mul + add;
    }
#pragma GCC unroll 24
    for (int i = 0; i < CHAINS; i++)
        sum += acc[i];
    for (int j = 0; j < LANES; j++)
        vb_keep(sum[j]);
    return (double)(2 * CHAINS * LANES * steps);
}
