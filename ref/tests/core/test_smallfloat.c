/* f16, bf16, e4m3 and e5m2 (clauses N2.1 to N2.4): every code, and conversion
 * against the slow model at random values and at every boundary.
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "core/smallfloat.h"
#include "small_model.h"

TestSuite(smallfloat);

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static double double_of(uint64_t u)
{
    double d;
    memcpy(&d, &u, 8);
    return d;
}

static const vr_small_format *format_of(const small_model *m)
{
    const vr_small_format *const f[SMALL_MODELS] = {&vr_fmt_f16, &vr_fmt_bf16, &vr_fmt_e4m3,
                                                    &vr_fmt_e5m2};
    return f[m - small_models];
}

static void check_f64(const small_model *m, double x)
{
    const uint32_t want = small_nearest(m, x), got = vr_small_from_f64(x, format_of(m));
    cr_assert(got == want, "%s of %a: %#x, expected %#x", m->name, x, got, want);
    if (m->dtype == VR_F16)
        cr_assert(vr_f16_from_f64(x) == want, "f16 of %a", x);
    if (m->dtype == VR_BF16)
        cr_assert(vr_bf16_from_f64(x) == want, "bf16 of %a", x);
}

static void check_f32(const small_model *m, float x)
{
    const uint32_t want = small_nearest(m, (double)x), got = small_from_f32(m, x);
    cr_assert(got == want, "%s of %a: %#x, expected %#x", m->name, (double)x, got, want);
}

Test(smallfloat, every_code_has_the_value_of_its_definition_and_comes_back)
{
    for (int i = 0; i < SMALL_MODELS; i++) {
        const small_model *m = &small_models[i];
        for (uint32_t code = 0; code < 2 * m->codes; code++) {
            const float v = small_to_f32(m, code);
            const uint32_t magnitude = code % m->codes;
            const double wide = vr_f64_from_small(code, format_of(m));
            if (small_is_nan(m, code)) {
                cr_assert(isnan(v) && isnan(wide), "%s %#x is %a", m->name, code, (double)v);
                cr_assert(small_is_nan(m, small_from_f32(m, v)), "%s %#x lost its NaN", m->name,
                          code);
                continue;
            }
            double want = magnitude < m->finite ? small_value(m, magnitude) : (double)INFINITY;
            want = code >= m->codes ? -want : want;
            cr_assert((double)v == want && wide == want, "%s %#x is %a, expected %a", m->name, code,
                      (double)v, want);
            cr_assert(!signbit(v) == (code < m->codes), "%s %#x: sign", m->name, code);
            cr_assert(small_from_f32(m, v) == code, "%s %#x came back as %#x", m->name, code,
                      small_from_f32(m, v));
        }
    }
}

Test(smallfloat, the_same_word_differs_by_type)
{
    const struct {
        int model;
        uint32_t code;
        double value;
    } words[] = {
        {0, 0x3f80, 1.875},   {1, 0x3f80, 1.0},
        {0, 0x3c00, 1.0},     {1, 0x3c00, 0.0078125},
        {2, 0x38, 1.0},       {3, 0x38, 0.5},
        {2, 0x7c, 384.0},     {3, 0x7c, (double)INFINITY},
        {2, 0x7e, 448.0},     {2, 0x01, 0x1p-9},
        {3, 0x01, 0x1p-16},   {2, 0x80, -0.0},
        {3, 0x80, -0.0},      {0, 0x8000, -0.0},
        {1, 0x8000, -0.0},    {0, 0x0001, 0x1p-24},
        {0, 0x7bff, 65504.0}, {1, 0x0001, 0x1p-133},
        {3, 0x7b, 57344.0},   {1, 0xff80, -(double)INFINITY},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const double v = (double)small_to_f32(&small_models[words[i].model], words[i].code);
        cr_assert(v == words[i].value && !signbit(v) == !signbit(words[i].value),
                  "%s %#x is %a, expected %a", small_models[words[i].model].name, words[i].code, v,
                  words[i].value);
    }
    cr_assert(isnan(vr_f32_from_e5m2(0x7e)) && isnan(vr_f32_from_e5m2(0x7f)));
    cr_assert(isnan(vr_f32_from_e4m3(0x7f)) && isnan(vr_f32_from_e4m3(0xff)));
}

Test(smallfloat, nan_stays_nan_whatever_its_payload)
{
    const uint64_t payloads[] = {0x7ff8000000000000u, 0x7ff0000000000001u, 0xfff0000000000001u,
                                 0x7fffffffffffffffu, 0xfff8000000000000u, 0x7ff0000020000000u};
    for (int i = 0; i < SMALL_MODELS; i++)
        for (size_t k = 0; k < sizeof payloads / sizeof payloads[0]; k++) {
            const small_model *m = &small_models[i];
            const uint32_t c = vr_small_from_f64(double_of(payloads[k]), format_of(m));
            cr_assert(small_is_nan(m, c), "%s from payload %zu gives %#x", m->name, k, c);
            const uint32_t word =
                (uint32_t)(payloads[k] >> 32) | 1u; /* NaN of f32 with a low payload bit */
            cr_assert(small_is_nan(m, small_from_f32(m, float_of(word | 0x7f800000u))),
                      "%s f32 %zu", m->name, k);
        }
}

Test(smallfloat, boundaries_round_to_nearest_even)
{
    for (int i = 0; i < SMALL_MODELS; i++) {
        const small_model *m = &small_models[i];
        for (uint32_t c = 0; c < m->finite; c++) {
            const double low = small_value(m, c), high = small_value(m, c + 1);
            const double half = low / 2 + high / 2; /* exact: three spare bits at least */
            const double points[] = {low, half, high};
            for (int k = 0; k < 3; k++)
                for (int s = -1; s <= 1; s += 2) {
                    const double x = s * points[k];
                    check_f64(m, x);
                    check_f64(m, nextafter(x, (double)INFINITY));
                    check_f64(m, nextafter(x, -(double)INFINITY));
                    const float f = (float)x;
                    check_f32(m, f);
                    check_f32(m, nextafterf(f, INFINITY));
                    check_f32(m, nextafterf(f, -INFINITY));
                }
        }
    }
}

Test(smallfloat, extremes_and_overflow_thresholds)
{
    const double thresholds[SMALL_MODELS] = {65520.0, 0x1.ffp127, 464.0, 61440.0};
    const double largest[SMALL_MODELS] = {65504.0, 0x1.fep127, 448.0, 57344.0};
    const double extremes[] = {
        0.0,      4.9406564584124654e-324, 0x1p-1022,       0x1.fffffffffffffp1023, 0x1p-149,
        0x1p-126, 0x1.fffffep127,          (double)INFINITY};
    for (int i = 0; i < SMALL_MODELS; i++) {
        const small_model *m = &small_models[i];
        for (size_t k = 0; k < sizeof extremes / sizeof extremes[0]; k++) {
            check_f64(m, extremes[k]);
            check_f64(m, -extremes[k]);
            check_f32(m, (float)extremes[k]);
            check_f32(m, -(float)extremes[k]);
        }
        /* The first value that overflows; e4m3's largest code is even, so its tie stays. */
        const double t = thresholds[i];
        const uint32_t at = vr_small_from_f64(t, format_of(m));
        cr_assert(at == (m->dtype == VR_F8_E4M3 ? 0x7eu : m->overflow), "%s of %a: %#x", m->name, t,
                  at);
        cr_assert(vr_small_from_f64(nextafter(t, INFINITY), format_of(m)) == m->overflow,
                  "%s above", m->name);
        const uint32_t under = vr_small_from_f64(nextafter(t, 0.0), format_of(m));
        cr_assert((double)small_to_f32(m, under) == largest[i], "%s below %a", m->name, t);
    }
}

Test(smallfloat, random_values_agree_with_the_search)
{
    for (int i = 0; i < SMALL_MODELS; i++) {
        const small_model *m = &small_models[i];
        const int span = 1 << m->exponent_bits;
        for (uint64_t n = 0; n < 200000; n++) {
            const uint64_t u = small_bits(n);
            const float f = float_of((uint32_t)(u >> 7));
            if (!isnan(f))
                check_f32(m, f);
            /* Any fraction, exponents from far below the smallest code to beyond the largest. */
            const int e = (int)(u >> 52) % (span + 40) - 30 - m->bias;
            const double mantissa = 1.0 + (double)(u & 0xfffffffffffffu) * 0x1p-52;
            check_f64(m, (u >> 63 ? -1 : 1) * ldexp(mantissa, e));
        }
    }
}

Test(smallfloat, f64_is_rounded_once)
{
    /* Just off a halfway point by less than f32 can hold: through f32 the tie
     * would go to even, once rounded it goes to the nearer neighbour. */
    int differ = 0;
    for (int i = 0; i < 2; i++) {
        const small_model *m = &small_models[i];
        for (uint32_t c = 1; c + 1 < m->finite; c++) {
            const double half = small_value(m, c) / 2 + small_value(m, c + 1) / 2;
            const double off = half * 0x1p-40;
            for (int s = -1; s <= 1; s += 2) {
                const double x = half + s * off;
                const uint32_t want = s < 0 ? c : c + 1 == m->finite ? m->overflow : c + 1;
                const uint32_t got = i == 0 ? vr_f16_from_f64(x) : vr_bf16_from_f64(x);
                cr_assert(got == want, "%s of %a: %#x, expected %#x", m->name, x, got, want);
                differ += small_from_f32(m, (float)x) != want;
            }
        }
    }
    cr_assert(differ > 60000, "only %d of the values would show a double rounding", differ);
}

Test(smallfloat, round_to_storage_is_there_and_back)
{
    for (uint64_t n = 0; n < 100000; n++) {
        const float x = float_of((uint32_t)small_bits(n));
        if (isnan(x))
            continue;
        cr_assert(vr_round_to(VR_F16, x) ==
                  small_to_f32(&small_models[0], small_nearest(&small_models[0], (double)x)));
        cr_assert(vr_round_to(VR_BF16, x) ==
                  small_to_f32(&small_models[1], small_nearest(&small_models[1], (double)x)));
        cr_assert(vr_round_to(VR_F32, x) == x);
    }
    cr_assert(isnan(vr_round_to(VR_F16, NAN)) && isnan(vr_round_to(VR_BF16, NAN)) &&
              isnan(vr_round_to(VR_F32, NAN)));
}
