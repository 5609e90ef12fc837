/* Element-wise conversion of arrays (clauses N2.3 to N2.5). Sources and targets need no
 * alignment: elements are copied through memcpy. The pairs that weights and
 * latents use have loops of their own; the rest goes through f64, which holds
 * every value of every type but 64-bit integers beyond 2^53: their low bits are
 * folded into one first, so that they are not rounded twice.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/smallfloat.h"
#include "vaeref/core.h"

#define LOAD(type) \
    type v;        \
    memcpy(&v, (const char *)src + i * sizeof v, sizeof v)

/* v cut to 53 bits, the lowest of them set when any bit below was: on the same side
 * of every tie of a narrower type as v itself, and exact in f64. */
static double sticky_u64(uint64_t v)
{
    int drop = 0;
    while (v >> drop >= (uint64_t)1 << 53)
        drop++;
    const uint64_t rest = v & (((uint64_t)1 << drop) - 1);
    return (double)(((v >> drop) | (rest != 0)) << drop);
}

static double sticky_i64(int64_t v)
{
    return v < 0 ? -sticky_u64((uint64_t)0 - (uint64_t)v) : sticky_u64((uint64_t)v);
}

/* `wide`: the values end as f64. */
static bool read_f64(vr_dtype t, const void *src, uint64_t first, uint64_t n, bool wide, double *out)
{
#define READ(code, type, expr)                     \
    case code:                                     \
        for (uint64_t k = 0; k < n; k++) {         \
            uint64_t i = first + k;                \
            LOAD(type);                            \
            out[k] = expr;                         \
        }                                          \
        return true;
    switch (t) {
        READ(VR_F64, double, v)
        READ(VR_F32, float, (double)v)
        READ(VR_F16, uint16_t, vr_f64_from_small(v, &vr_fmt_f16))
        READ(VR_BF16, uint16_t, vr_f64_from_small(v, &vr_fmt_bf16))
        READ(VR_F8_E4M3, uint8_t, vr_f64_from_small(v, &vr_fmt_e4m3))
        READ(VR_F8_E5M2, uint8_t, vr_f64_from_small(v, &vr_fmt_e5m2))
        READ(VR_I64, int64_t, wide ? (double)v : sticky_i64(v))
        READ(VR_I32, int32_t, (double)v)
        READ(VR_I16, int16_t, (double)v)
        READ(VR_I8, int8_t, (double)v)
        READ(VR_U64, uint64_t, wide ? (double)v : sticky_u64(v))
        READ(VR_U32, uint32_t, (double)v)
        READ(VR_U16, uint16_t, (double)v)
        READ(VR_U8, uint8_t, (double)v)
        READ(VR_BOOL, uint8_t, v ? 1.0 : 0.0)
    case VR_DTYPE_NONE:
        break;
    }
#undef READ
    return false;
}

static bool write_f64(vr_dtype t, void *dst, uint64_t first, uint64_t n, const double *in)
{
#define WRITE(code, type, expr)                                          \
    case code:                                                           \
        for (uint64_t k = 0; k < n; k++) {                               \
            type v = (type)(expr);                                       \
            memcpy((char *)dst + (first + k) * sizeof v, &v, sizeof v);  \
        }                                                                \
        return true;
    switch (t) {
        WRITE(VR_F64, double, in[k])
        WRITE(VR_F32, float, in[k])
        WRITE(VR_F16, uint16_t, vr_small_from_f64(in[k], &vr_fmt_f16))
        WRITE(VR_BF16, uint16_t, vr_small_from_f64(in[k], &vr_fmt_bf16))
        WRITE(VR_F8_E4M3, uint8_t, vr_small_from_f64(in[k], &vr_fmt_e4m3))
        WRITE(VR_F8_E5M2, uint8_t, vr_small_from_f64(in[k], &vr_fmt_e5m2))
    default:
        break;
    }
#undef WRITE
    return false;
}

/* The pairs below have no branches, so their loops vectorise, and give the bits of
 * the scalar functions. */
static inline float f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint32_t bits_from_f32(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

/* Bits of the f32 of an f16 code. */
static inline uint32_t widen_f16(uint32_t h)
{
    const uint32_t m = h & 0x7fffu;
    /* Bias 127 - 15, twice for infinity. */
    const uint32_t normal = (m << 13) + ((m >= 0x7c00u ? 224u : 112u) << 23);
    const uint32_t small = bits_from_f32((float)(int32_t)m * 0x1p-24f); /* exact for subnormals */
    const uint32_t quiet = m > 0x7c00u ? 0x7fc00000u : normal;
    return (h & 0x8000u) << 16 | (m < 0x0400u ? small : quiet);
}

/* f16 code of the bits of an f32. */
static inline uint32_t narrow_f16(uint32_t u)
{
    const uint32_t a = u & 0x7fffffffu;
    const uint32_t normal = (a + 0xfffu + (a >> 13 & 1u) - (112u << 23)) >> 13;
    /* The unit in the last place of 0.5 is that of f16 subnormals: the sum rounds. */
    const uint32_t low = a < 0x38800000u ? a : 0u;
    const uint32_t small = bits_from_f32(f32_from_bits(low) + 0.5f) - 0x3f000000u;
    const uint32_t finite = a < 0x38800000u ? small : normal;
    const uint32_t beyond = a > 0x7f800000u ? 0x7e00u : 0x7c00u;
    return (u >> 16 & 0x8000u) | (a >= 0x477ff000u ? beyond : finite); /* 65520 and up overflow */
}

static inline uint32_t narrow_bf16(uint32_t u)
{
    /* A carry may reach infinity, as it should. */
    const uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
    return (u & 0x7fffffffu) > 0x7f800000u ? (u >> 16 & 0x8000u) | 0x7fc0u : rounded;
}

static bool convert_common(vr_dtype dt, void *dst, vr_dtype st, const void *src, uint64_t n)
{
    if (dt == st) {
        memcpy(dst, src, n * vr_dtype_size(dt));
        return true;
    }
#define PAIR(to, from, to_type, from_type, expr)         \
    if (dt == to && st == from) {                        \
        for (uint64_t i = 0; i < n; i++) {               \
            LOAD(from_type);                             \
            const to_type r = (to_type)(expr);           \
            memcpy((char *)dst + i * sizeof r, &r, sizeof r); \
        }                                                \
        return true;                                     \
    }
    PAIR(VR_F64, VR_F32, double, float, v)
    PAIR(VR_F32, VR_F64, float, double, v)
    PAIR(VR_F32, VR_BF16, uint32_t, uint16_t, (uint32_t)v << 16)
    PAIR(VR_F32, VR_F16, uint32_t, uint16_t, widen_f16(v))
    PAIR(VR_F16, VR_F32, uint16_t, uint32_t, narrow_f16(v))
    PAIR(VR_BF16, VR_F32, uint16_t, uint32_t, narrow_bf16(v))
#undef PAIR
    return false;
}

vr_status vr_convert(vr_dtype dst_type, void *dst, vr_dtype src_type, const void *src, uint64_t n,
                     vr_error *err)
{
    if (vr_dtype_size(src_type) == 0 || (dst_type != src_type && !vr_dtype_is_float(dst_type)))
        return vr_fail(err, VR_E_DTYPE, "cannot convert %s to %s; a float type is wanted",
                       vr_dtype_name(src_type), vr_dtype_name(dst_type));
    enum { PART = 512 };
    if (n == 0 || convert_common(dst_type, dst, src_type, src, n))
        return VR_OK;
    double part[PART];
    for (uint64_t first = 0; first < n; first += PART) {
        uint64_t m = n - first < PART ? n - first : PART;
        if (!read_f64(src_type, src, first, m, dst_type == VR_F64, part) ||
            !write_f64(dst_type, dst, first, m, part))
            return vr_fail(err, VR_E_DTYPE, "cannot convert %s to %s; a float type is wanted",
                           vr_dtype_name(src_type), vr_dtype_name(dst_type));
    }
    return VR_OK;
}
