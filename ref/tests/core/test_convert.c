/* Arrays of any type to arrays of any float type (clause N2.5), element types'
 * names and sizes.
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "small_model.h"

TestSuite(convert);

static const vr_dtype floats[] = {VR_F64, VR_F32, VR_F16, VR_BF16, VR_F8_E4M3, VR_F8_E5M2};
static const vr_dtype integers[] = {VR_I64, VR_I32, VR_I16, VR_I8,  VR_U64,
                                    VR_U32, VR_U16, VR_U8,  VR_BOOL};
enum { FLOATS = 6, INTEGERS = 9, COUNT = 1500 }; /* more than two of the inner parts */

static const small_model *model_of(vr_dtype t)
{
    for (int i = 0; i < SMALL_MODELS; i++)
        if (small_models[i].dtype == t)
            return &small_models[i];
    return NULL;
}

/* Element i of an array of floats, by the scalar functions. */
static double scalar_load(vr_dtype t, const unsigned char *p, int i)
{
    uint64_t u = 0;
    const size_t size = vr_dtype_size(t);
    memcpy(&u, p + (size_t)i * size, size);
    if (t == VR_F64) {
        double d;
        memcpy(&d, &u, 8);
        return d;
    }
    if (t == VR_F32) {
        float f;
        memcpy(&f, &u, 4);
        return (double)f;
    }
    return (double)small_to_f32(model_of(t), (uint32_t)u);
}

static double scalar_round(vr_dtype t, double x)
{
    if (t == VR_F64 || isnan(x))
        return x;
    if (t == VR_F32)
        return (double)(float)x;
    return (double)small_to_f32(model_of(t), small_nearest(model_of(t), x));
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

/* Random bits in every type, thinned so that most values are within the range of f16. */
static void fill(vr_dtype t, unsigned char *p)
{
    for (int i = 0; i < COUNT; i++) {
        uint64_t u = small_bits((uint64_t)i);
        const double d = ldexp((double)(int64_t)u, (int)(u % 40) - 80);
        const float f = (float)d;
        if (t == VR_F64 && i % 4)
            memcpy(&u, &d, 8);
        if (t == VR_F32 && i % 4)
            memcpy(&u, &f, 4);
        memcpy(p + (size_t)i * vr_dtype_size(t), &u, vr_dtype_size(t));
    }
}

Test(convert, every_float_pair_equals_the_scalars_at_any_alignment)
{
    static unsigned char src[COUNT * 8 + 8], dst[COUNT * 8 + 24];
    const int counts[] = {0, 1, 7, 511, 512, 513, COUNT};
    for (int s = 0; s < FLOATS; s++)
        for (int d = 0; d < FLOATS; d++)
            for (int k = 0; k < 7; k++) {
                const int n = counts[k], shift = k;
                fill(floats[s], src + shift);
                memset(dst, 0xa5, sizeof dst);
                unsigned char *to = dst + 8 - shift;
                const size_t bytes = (size_t)n * vr_dtype_size(floats[d]);
                cr_assert(vr_convert(floats[d], to, floats[s], src + shift, (uint64_t)n, NULL) ==
                          VR_OK);
                for (int i = 0; i < n; i++) {
                    const double x = scalar_load(floats[s], src + shift, i);
                    const double got = scalar_load(floats[d], to, i),
                                 want = scalar_round(floats[d], x);
                    cr_assert(
                        same(got, want), "%s to %s, element %d of %d: %a gives %a, expected %a",
                        vr_dtype_name(floats[s]), vr_dtype_name(floats[d]), i, n, x, got, want);
                }
                cr_assert(to[-1] == 0xa5 && to[bytes] == 0xa5, "%s to %s wrote outside %d elements",
                          vr_dtype_name(floats[s]), vr_dtype_name(floats[d]), n);
            }
}

#define EXPECT(code, type, value, want)                                                  \
    do {                                                                                 \
        const type v_ = (value);                                                         \
        double d_ = 0;                                                                   \
        cr_assert(vr_convert(VR_F64, &d_, code, &v_, 1, NULL) == VR_OK);                 \
        cr_assert(d_ == (want), "%s gives %a, expected %a", #value, d_, (double)(want)); \
    } while (0)

Test(convert, integers_convert_by_value)
{
    EXPECT(VR_I64, int64_t, INT64_MIN, -0x1p63);
    EXPECT(VR_I64, int64_t, -3, -3.0);
    EXPECT(VR_I32, int32_t, INT32_MIN, -0x1p31);
    EXPECT(VR_I16, int16_t, -32768, -32768.0);
    EXPECT(VR_I8, int8_t, -128, -128.0);
    EXPECT(VR_U64, uint64_t, UINT64_MAX, 0x1p64);
    EXPECT(VR_U32, uint32_t, UINT32_MAX, 4294967295.0);
    EXPECT(VR_U16, uint16_t, UINT16_MAX, 65535.0);
    EXPECT(VR_U8, uint8_t, 255, 255.0);
    EXPECT(VR_BOOL, uint8_t, 0, 0.0);
    EXPECT(VR_BOOL, uint8_t, 2, 1.0);
}

Test(convert, wide_integers_are_rounded_once)
{
    /* Just above the halfway point of two f32 values, by less than f64 can hold. */
    const int64_t a[] = {((int64_t)1 << 60) + ((int64_t)1 << 36) + 1,
                         ((int64_t)1 << 60) + ((int64_t)1 << 36),
                         -(((int64_t)1 << 60) + ((int64_t)1 << 36) + 1), INT64_MAX};
    const float want[] = {0x1.000002p60f, 0x1p60f, -0x1.000002p60f, 0x1p63f};
    float f[4];
    cr_assert(vr_convert(VR_F32, f, VR_I64, a, 4, NULL) == VR_OK);
    for (int i = 0; i < 4; i++)
        cr_assert(f[i] == want[i], "%lld gives %a, expected %a", (long long)a[i], (double)f[i],
                  (double)want[i]);
    const uint64_t u = ((uint64_t)1 << 63) + ((uint64_t)1 << 39) + 1;
    cr_assert(vr_convert(VR_F32, f, VR_U64, &u, 1, NULL) == VR_OK && f[0] == 0x1.000002p63f, "%a",
              (double)f[0]);
    uint16_t b;
    const uint64_t v = ((uint64_t)1 << 62) + ((uint64_t)1 << 54) + 1;
    cr_assert(vr_convert(VR_BF16, &b, VR_U64, &v, 1, NULL) == VR_OK && b == 0x5e81, "%#x", b);
}

Test(convert, a_float_is_never_made_an_integer)
{
    unsigned char in[8] = {0}, out[8];
    for (int s = 0; s < FLOATS; s++)
        for (int d = 0; d < INTEGERS; d++) {
            vr_error err = {0};
            memset(out, 0xa5, sizeof out);
            cr_assert(vr_convert(integers[d], out, floats[s], in, 1, &err) == VR_E_DTYPE);
            cr_assert(strstr(err.text, vr_dtype_name(floats[s])) &&
                          strstr(err.text, vr_dtype_name(integers[d])),
                      "text does not name both types: %s", err.text);
            for (int i = 0; i < 8; i++)
                cr_assert(out[i] == 0xa5, "a refused conversion wrote");
        }
    cr_assert(vr_convert(VR_F32, out, VR_DTYPE_NONE, in, 1, NULL) == VR_E_DTYPE);
}

Test(convert, names_and_sizes_are_those_of_safetensors)
{
    const struct {
        const char *name;
        vr_dtype type;
        size_t size;
    } t[] = {{"F64", VR_F64, 8},   {"F32", VR_F32, 4},         {"F16", VR_F16, 2},
             {"BF16", VR_BF16, 2}, {"F8_E4M3", VR_F8_E4M3, 1}, {"F8_E5M2", VR_F8_E5M2, 1},
             {"I64", VR_I64, 8},   {"I32", VR_I32, 4},         {"I16", VR_I16, 2},
             {"I8", VR_I8, 1},     {"U64", VR_U64, 8},         {"U32", VR_U32, 4},
             {"U16", VR_U16, 2},   {"U8", VR_U8, 1},           {"BOOL", VR_BOOL, 1}};
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        cr_assert(vr_dtype_from_name(t[i].name) == t[i].type, "%s", t[i].name);
        cr_assert(strcmp(vr_dtype_name(t[i].type), t[i].name) == 0, "%s", t[i].name);
        cr_assert(vr_dtype_size(t[i].type) == t[i].size, "%s", t[i].name);
        cr_assert(vr_dtype_is_float(t[i].type) == (i < FLOATS), "%s", t[i].name);
    }
    const char *const unknown[] = {"", "f32", "F32 ", "F8", "F8_E4M3FNUZ", "C64"};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        cr_assert(vr_dtype_from_name(unknown[i]) == VR_DTYPE_NONE, "'%s'", unknown[i]);
    cr_assert(vr_dtype_size(VR_DTYPE_NONE) == 0 && !vr_dtype_is_float(VR_DTYPE_NONE));
    cr_assert(strcmp(vr_dtype_name(VR_DTYPE_NONE), "?") == 0);
}
