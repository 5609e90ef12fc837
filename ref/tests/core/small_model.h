/* Slow, independent model of the small floats for the tests (clause N2): a table
 * of every finite value, built from the definition with ldexp, and a search for
 * the nearest one. It shares nothing with core/smallfloat.h.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_TESTS_SMALL_MODEL_H
#define VAEREF_TESTS_SMALL_MODEL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "vaeref/core.h"

typedef struct small_model {
    const char *name;
    vr_dtype dtype;
    int exponent_bits, mantissa_bits, bias;
    uint32_t codes;    /* of one sign: 0 .. codes - 1 */
    uint32_t finite;   /* codes 0 .. finite - 1 are finite values, ascending */
    uint32_t overflow; /* code of what lies beyond, without sign */
} small_model;

static const small_model small_models[] = {
    {"f16", VR_F16, 5, 10, 15, 0x8000, 0x7c00, 0x7c00},
    {"bf16", VR_BF16, 8, 7, 127, 0x8000, 0x7f80, 0x7f80},
    {"e4m3", VR_F8_E4M3, 4, 3, 7, 0x80, 0x7f, 0x7f},
    {"e5m2", VR_F8_E5M2, 5, 2, 15, 0x80, 0x7c, 0x7c},
};
enum { SMALL_MODELS = sizeof small_models / sizeof small_models[0] };

/* Value of finite code c (no sign). c = m->finite is allowed: it gives the value
 * the next code would have if the exponent range went on. */
static inline double small_value(const small_model *m, uint32_t c)
{
    const uint32_t per = 1u << m->mantissa_bits, e = c / per, f = c % per;
    return e == 0 ? ldexp((double)f, 1 - m->bias - m->mantissa_bits)
                  : ldexp((double)(per + f), (int)e - m->bias - m->mantissa_bits);
}

/* Nearest code, ties to the even code, found by bisection of the values. */
static inline uint32_t small_nearest(const small_model *m, double x)
{
    const uint32_t sign = signbit(x) ? m->codes : 0;
    const double a = fabs(x);
    uint32_t low = 0, high = m->finite; /* value(low) <= a < value(high) */
    if (a >= small_value(m, high))
        return sign | m->overflow;
    while (high - low > 1) {
        const uint32_t mid = (low + high) / 2;
        if (small_value(m, mid) <= a)
            low = mid;
        else
            high = mid;
    }
    /* Both differences are exact in long double at the places where it matters. */
    const long double down = (long double)a - small_value(m, low);
    const long double up = (long double)small_value(m, high) - a;
    const uint32_t c = down < up || (down == up && low % 2 == 0) ? low : high;
    return sign | (c == m->finite ? m->overflow : c);
}

static inline bool small_is_nan(const small_model *m, uint32_t code)
{
    const uint32_t c = code % m->codes;
    return c > m->overflow || (m->dtype == VR_F8_E4M3 && c == 0x7f);
}

static inline uint32_t small_from_f32(const small_model *m, float x)
{
    switch (m->dtype) {
    case VR_F16:
        return vr_f16_from_f32(x);
    case VR_BF16:
        return vr_bf16_from_f32(x);
    case VR_F8_E4M3:
        return vr_e4m3_from_f32(x);
    default:
        return vr_e5m2_from_f32(x);
    }
}

static inline float small_to_f32(const small_model *m, uint32_t code)
{
    switch (m->dtype) {
    case VR_F16:
        return vr_f32_from_f16((uint16_t)code);
    case VR_BF16:
        return vr_f32_from_bf16((uint16_t)code);
    case VR_F8_E4M3:
        return vr_f32_from_e4m3((uint8_t)code);
    default:
        return vr_f32_from_e5m2((uint8_t)code);
    }
}

/* 64 random bits; the tests of the generator itself are elsewhere. */
static inline uint64_t small_bits(uint64_t index)
{
    return (uint64_t)vr_random_u32(2024, 1, 2 * index) << 32 |
           vr_random_u32(2024, 1, 2 * index + 1);
}

#endif
