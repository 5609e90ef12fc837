/* Deterministic exp, sigmoid, silu, tanh and rsqrt in f64 (clause N5).
 *
 * Only + - * / and integer operations on bit patterns, in a fixed order, never
 * fused: the bits are the same on every machine. No branches and no tables, so
 * loops over arrays vectorise. Errors in units in the last place of the f64
 * result, as the tests bound them: exp 1, sigmoid 3, silu 4 (for x > -708;
 * below, sigmoid is subnormal), tanh 3, rsqrt 2.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_CORE_DETMATH_H
#define VAEREF_CORE_DETMATH_H

#include <stdint.h>
#include <string.h>

static inline double vr_f64_from_bits(uint64_t u)
{
    double d;
    memcpy(&d, &u, 8);
    return d;
}

static inline uint64_t vr_bits_from_f64(double d)
{
    uint64_t u;
    memcpy(&u, &d, 8);
    return u;
}

/* c = k ln 2 + r with |r| <= ln 2 / 2: returns exp(r) - 1 and k (|c| < 2^20). */
static inline double vr_exp_reduced(double c, uint64_t *k)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: the sum is rounded to an integer */
    const double shifted = c * 1.44269504088896338700 + magic;
    const double n = shifted - magic;
    *k = vr_bits_from_f64(shifted) - vr_bits_from_f64(magic); /* two's complement */
    /* The high part has 21 trailing zero bits, so n times it is exact. */
    const double r = (c - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    double p = 1.0 / 6227020800.0; /* Taylor to degree 13: remainder below 2^-57 */
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    return p * (r * r) + r;
}

static inline double vr_exp(double x)
{
    double c = x < -746.0 ? -746.0 : x; /* NaN passes */
    c = c > 710.0 ? 710.0 : c;
    uint64_t k;
    const double q = vr_exp_reduced(c, &k);
    /* 2^k in two factors, so that the last product does the gradual underflow. */
    const uint64_t half = ((k + 2048u) >> 1) - 1024u;
    const double s1 = vr_f64_from_bits((half + 1023u) << 52);
    const double s2 = vr_f64_from_bits((k - half + 1023u) << 52);
    return ((1.0 + q) * s1) * s2;
}

/* 1 / (1 + exp(-x)) without overflow on either side. */
static inline double vr_sigmoid(double x)
{
    const double a = vr_f64_from_bits(vr_bits_from_f64(x) | 0x8000000000000000u); /* -|x| */
    const double e = vr_exp(a);
    const double top = x < 0.0 ? e : 1.0;
    return top / (1.0 + e);
}

static inline double vr_silu(double x)
{
    return x * vr_sigmoid(x);
}

/* -expm1(-2a) / (2 + expm1(-2a)), a = |x|; the sign of x is put back. */
static inline double vr_tanh(double x)
{
    const uint64_t sign = vr_bits_from_f64(x) & 0x8000000000000000u;
    double c = -2.0 * vr_f64_from_bits(vr_bits_from_f64(x) & 0x7fffffffffffffffu);
    c = c < -45.0 ? -45.0 : c; /* there tanh is 1 to the last bit */
    uint64_t k;
    const double q = vr_exp_reduced(c, &k);
    const double s = vr_f64_from_bits((k + 1023u) << 52);
    const double m = s * q + (s - 1.0); /* expm1 */
    /* Of 0 the quotient is +0 and of any other it is negative: the sign is set, not flipped. */
    return vr_f64_from_bits((vr_bits_from_f64(m / (2.0 + m)) & 0x7fffffffffffffffu) | sign);
}

/* 1 / sqrt(x): a guess from the exponent, five Newton steps. 0 -> inf, inf -> 0,
 * negative and NaN -> NaN. */
static inline double vr_rsqrt(double x)
{
    /* The scale keeps 0.5 v and the guess normal; it is 1 where that is so anyway. */
    const int tiny = x < 0x1p-960;
    const double v = x * (tiny ? 0x1p108 : 1.0);
    double y = vr_f64_from_bits(0x5fe6eb50c7b537a9u - (vr_bits_from_f64(v) >> 1));
    for (int i = 0; i < 5; i++)
        y = y * (1.5 - ((0.5 * v) * y) * y);
    y = y * (tiny ? 0x1p54 : 1.0);
    y = x > 1.7976931348623157e308 ? 0.0 : y;
    const double edge = vr_f64_from_bits(x == 0.0 ? 0x7ff0000000000000u : 0x7ff8000000000000u);
    return x > 0.0 ? y : edge; /* chosen, not branched to: loops vectorise */
}

#endif
