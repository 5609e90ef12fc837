/* Sums of f32 values in the named orders (clause N6), one sum at a time; the
 * lane-parallel form of the same orders is ordered_dot32 in strict.c.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "ops/ordered_sum.h"

static float seq(const float *v, int64_t n)
{
    float s = 0.0f;
    for (int64_t i = 0; i < n; i++)
        s += v[i];
    return s;
}

static float lanes(const float *v, int64_t n, int count)
{
    float l[32];
    memset(l, 0, sizeof l);
    for (int64_t i = 0; i < n; i++)
        l[i % count] += v[i];
    for (int half = count / 2; half >= 1; half /= 2)
        for (int j = 0; j < half; j++)
            l[j] += l[j + half];
    return l[0];
}

static float pairwise(const float *v, int64_t n)
{
    float partial[48], run = 0.0f;
    for (int64_t j = 0; j < n; j++) {
        run = v[j];
        int b = 0;
        for (int64_t t = j; t & 1; t >>= 1, b++)
            run = partial[b] + run;
        partial[b] = run;
    }
    bool first = true;
    for (int b = 0; b < 48; b++)
        if ((n >> b) & 1) {
            run = first ? partial[b] : partial[b] + run;
            first = false;
        }
    return n ? run : 0.0f;
}

float vr_sum_ordered(vr_order order, const float *v, int64_t n)
{
    switch (order) {
    case VR_ORDER_LANES8:
        return lanes(v, n, 8);
    case VR_ORDER_LANES32:
        return lanes(v, n, 32);
    case VR_ORDER_PAIRWISE:
        return pairwise(v, n);
    case VR_ORDER_KBLOCK64: {
        float total = 0.0f;
        for (int64_t i = 0; i < n; i += 64)
            total += seq(v + i, n - i < 64 ? n - i : 64);
        return total;
    }
    case VR_ORDER_SEQ:
    case VR_ORDER_COUNT:
        break;
    }
    return seq(v, n);
}
