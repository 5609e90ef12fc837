/* Small binary floats (f16, bf16, e4m3fn, e5m2) to and from f64 by integer
 * arithmetic (clause N2). Inline, so that loops over arrays vectorise.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_CORE_SMALLFLOAT_H
#define VAEREF_CORE_SMALLFLOAT_H

#include <stdint.h>
#include <string.h>

typedef struct vr_small_format {
    int mantissa;       /* stored mantissa bits */
    int bias;
    uint32_t sign;      /* mask of the sign bit */
    uint32_t max;       /* code of the largest finite value, no sign */
    uint32_t overflow;  /* what lies beyond it: infinity, or NaN for e4m3fn */
    uint32_t nan;       /* quiet NaN, no sign */
} vr_small_format;

static const vr_small_format vr_fmt_f16 = {10, 15, 0x8000u, 0x7bffu, 0x7c00u, 0x7e00u};
static const vr_small_format vr_fmt_bf16 = {7, 127, 0x8000u, 0x7f7fu, 0x7f80u, 0x7fc0u};
static const vr_small_format vr_fmt_e4m3 = {3, 7, 0x80u, 0x7eu, 0x7fu, 0x7fu};
static const vr_small_format vr_fmt_e5m2 = {2, 15, 0x80u, 0x7bu, 0x7cu, 0x7eu};

/* Nearest code, ties to even, one rounding. */
static inline uint32_t vr_small_from_f64(double x, const vr_small_format *f)
{
    uint64_t u;
    memcpy(&u, &x, 8);
    uint32_t sign = (u >> 63) ? f->sign : 0u;
    u &= 0x7fffffffffffffffu;
    if (u > 0x7ff0000000000000u)
        return sign | f->nan;
    int exponent = (int)(u >> 52) - 1023 + f->bias; /* biased in the small format */
    uint64_t fraction = (u & 0xfffffffffffffu) | ((u >> 52) ? 0x10000000000000u : 0u);
    int drop = 52 - f->mantissa; /* bits below the last kept one */
    uint64_t base = 0;
    if (exponent >= 1) {
        base = (uint64_t)(exponent - 1) << f->mantissa; /* the hidden bit adds the last one */
    } else {
        drop += 1 - exponent; /* subnormal: the unit in the last place stops shrinking */
        if (drop > 62)
            drop = 62; /* below half the smallest: rounds to zero */
    }
    uint64_t kept = fraction >> drop, rest = fraction & (((uint64_t)1 << drop) - 1);
    uint64_t half = (uint64_t)1 << (drop - 1);
    kept += (uint64_t)(rest > half || (rest == half && (kept & 1)));
    uint64_t code = base + kept; /* a carry walks into the exponent, as it should */
    return sign | (code > f->max ? f->overflow : (uint32_t)code);
}

/* Exact. */
static inline double vr_f64_from_small(uint32_t code, const vr_small_format *f)
{
    uint32_t magnitude = code & ~f->sign;
    uint64_t sign = (code & f->sign) ? 0x8000000000000000u : 0u, u;
    uint32_t mask = (1u << f->mantissa) - 1u;
    int exponent = (int)(magnitude >> f->mantissa);
    double d;
    if (magnitude > f->max) {
        u = magnitude == f->overflow && f->overflow != f->nan ? 0x7ff0000000000000u : 0x7ff8000000000000u;
    } else if (exponent == 0) {
        /* subnormal: mantissa * 2^(1 - bias - mantissa bits), both exact in f64 */
        uint64_t scale = (uint64_t)(1023 + 1 - f->bias - f->mantissa) << 52;
        double unit;
        memcpy(&unit, &scale, 8);
        d = (double)magnitude * unit;
        memcpy(&u, &d, 8);
    } else {
        u = (uint64_t)(exponent - f->bias + 1023) << 52 | (uint64_t)(magnitude & mask) << (52 - f->mantissa);
    }
    u |= sign;
    memcpy(&d, &u, 8);
    return d;
}

#endif
