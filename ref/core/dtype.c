/* Element types: sizes, names, and exact scalar conversions (clause N2).
 * Everything is integer arithmetic on the bit patterns, so the result does not
 * depend on the rounding mode or on hardware support for small floats.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/smallfloat.h"
#include "vaeref/core.h"

size_t vr_dtype_size(vr_dtype t)
{
    switch (t) {
#define VR_X(name, code, text, bytes) \
    case name:                        \
        return bytes;
        VR_DTYPE_MAP(VR_X)
#undef VR_X
    case VR_DTYPE_NONE:
        break;
    }
    return 0;
}

const char *vr_dtype_name(vr_dtype t)
{
    switch (t) {
#define VR_X(name, code, text, bytes) \
    case name:                        \
        return text;
        VR_DTYPE_MAP(VR_X)
#undef VR_X
    case VR_DTYPE_NONE:
        break;
    }
    return "?";
}

vr_dtype vr_dtype_from_name(const char *s)
{
#define VR_X(name, code, text, bytes) \
    if (strcmp(s, text) == 0)         \
        return name;
    VR_DTYPE_MAP(VR_X)
#undef VR_X
    return VR_DTYPE_NONE;
}

bool vr_dtype_is_float(vr_dtype t)
{
    return t >= VR_F64 && t <= VR_F8_E5M2;
}

uint16_t vr_f16_from_f32(float x)
{
    return (uint16_t)vr_small_from_f64((double)x, &vr_fmt_f16);
}

uint16_t vr_f16_from_f64(double x)
{
    return (uint16_t)vr_small_from_f64(x, &vr_fmt_f16);
}

uint16_t vr_bf16_from_f32(float x)
{
    return (uint16_t)vr_small_from_f64((double)x, &vr_fmt_bf16);
}

uint16_t vr_bf16_from_f64(double x)
{
    return (uint16_t)vr_small_from_f64(x, &vr_fmt_bf16);
}

uint8_t vr_e4m3_from_f32(float x)
{
    return (uint8_t)vr_small_from_f64((double)x, &vr_fmt_e4m3);
}

uint8_t vr_e5m2_from_f32(float x)
{
    return (uint8_t)vr_small_from_f64((double)x, &vr_fmt_e5m2);
}

float vr_f32_from_f16(uint16_t h)
{
    return (float)vr_f64_from_small(h, &vr_fmt_f16);
}

float vr_f32_from_bf16(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

float vr_f32_from_e4m3(uint8_t b)
{
    return (float)vr_f64_from_small(b, &vr_fmt_e4m3);
}

float vr_f32_from_e5m2(uint8_t b)
{
    return (float)vr_f64_from_small(b, &vr_fmt_e5m2);
}

float vr_round_to(vr_dtype storage, float x)
{
    if (storage == VR_F16)
        return vr_f32_from_f16(vr_f16_from_f32(x));
    if (storage == VR_BF16)
        return vr_f32_from_bf16(vr_bf16_from_f32(x));
    return x;
}
