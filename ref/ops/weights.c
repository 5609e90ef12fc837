/* Weights as a policy stores them (clause N4.1), rounding to 16-bit storage,
 * and scratch memory. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "ops/ops.h"

static vr_dtype storage_of(vr_policy p)
{
    switch (p) {
    case VR_POLICY_F16:
        return VR_F16;
    case VR_POLICY_BF16:
        return VR_BF16;
    case VR_POLICY_TRUTH:
        return VR_F64;
    case VR_POLICY_GOLDEN:
    case VR_POLICY_F32:
    case VR_POLICY_COUNT:
        break;
    }
    return VR_F32;
}

/* Whether every value of dtype `from` is a value of `to`. */
static bool widens(vr_dtype from, vr_dtype to)
{
    if (from == to || to == VR_F64)
        return true;
    bool f8 = from == VR_F8_E4M3 || from == VR_F8_E5M2;
    if (to == VR_F32)
        return from != VR_F64;
    return to == VR_F16 ? f8 : f8; /* e4m3 and e5m2 lie inside f16 and bf16 */
}

vr_status vr_weight_read(const vr_weight *w, vr_policy policy, int64_t first, int64_t n,
                         double *dst, vr_error *err)
{
    const char *src = (const char *)w->data + (size_t)first * vr_dtype_size(w->dtype);
    vr_dtype to = storage_of(policy);
    if (widens(w->dtype, to))
        return vr_convert(VR_F64, dst, w->dtype, src, (uint64_t)n, err);
    char part[4096 * 4];
    for (int64_t i = 0; i < n; i += 4096) {
        uint64_t m = (uint64_t)(n - i < 4096 ? n - i : 4096);
        vr_status s = vr_convert(to, part, w->dtype, src + (size_t)i * vr_dtype_size(w->dtype), m, err);
        if (s == VR_OK)
            s = vr_convert(VR_F64, dst + i, to, part, m, err);
        if (s != VR_OK)
            return s;
    }
    return VR_OK;
}

void vr_store_round(const vr_arith *a, float *x, int64_t n)
{
    if (a->policy == VR_POLICY_F16)
        a->k->round_f16(x, n);
    else if (a->policy == VR_POLICY_BF16)
        a->k->round_bf16(x, n);
}

vr_status vr_scratch(vr_arith *a, uint64_t bytes, void **out, vr_error *err)
{
    uint64_t rounded = (bytes + 63u) & ~(uint64_t)63u;
    *out = aligned_alloc(64, rounded ? rounded : 64);
    if (!*out)
        return vr_fail(err, VR_E_NOMEM, "cannot allocate %llu bytes of scratch memory",
                       (unsigned long long)bytes);
    if (bytes > a->scratch_peak)
        a->scratch_peak = bytes;
    return VR_OK;
}
