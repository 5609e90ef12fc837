/* Element-wise conversion of arrays (clause N2.4). Sources and targets need no
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

/* f32 and bf16 share exponents: plain shifts, which vectorise. */
static bool convert_common(vr_dtype dt, void *dst, vr_dtype st, const void *src, uint64_t n)
{
    if (dt == st) {
        memcpy(dst, src, n * vr_dtype_size(dt));
        return true;
    }
    if (dt == VR_F64 && st == VR_F32) {
        for (uint64_t i = 0; i < n; i++) {
            LOAD(float);
            double d = (double)v;
            memcpy((char *)dst + i * 8, &d, 8);
        }
        return true;
    }
    if (dt == VR_F32 && st == VR_BF16) {
        for (uint64_t i = 0; i < n; i++) {
            LOAD(uint16_t);
            uint32_t u = (uint32_t)v << 16;
            memcpy((char *)dst + i * 4, &u, 4);
        }
        return true;
    }
    return false;
}

vr_status vr_convert(vr_dtype dst_type, void *dst, vr_dtype src_type, const void *src, uint64_t n,
                     vr_error *err)
{
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
