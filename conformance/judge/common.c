/* Checks of arguments, reading, results (J1, J13).
 * SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "judge/internal.h"

const char *vj_status_name(vj_status s)
{
    static const char *const name[] = {"pass", "fail", "mistrusted"};
    return (unsigned)s < 3 ? name[s] : "?";
}

/* ---- checks -------------------------------------------------------------- */

vr_status vj_check_rules(const vj_rules *r, vr_error *err)
{
    if (!r || !r->limits)
        return vr_fail(err, VR_E_ARGUMENT, "rules without limits; want a row of vj_limits_find");
    if (!vj_type_of(r->limits->contract.storage) || !vj_type_of(r->limits->contract.accumulate))
        return vr_fail(err, VR_E_DTYPE, "contract %s/%s; want F64, F32, F16 or BF16",
                       vr_dtype_name(r->limits->contract.storage), vr_dtype_name(r->limits->contract.accumulate));
    if ((unsigned)r->level >= VJ_LEVEL_COUNT)
        return vr_fail(err, VR_E_ARGUMENT, "level %d; want op, block or decode", (int)r->level);
    if (!(r->expected_rms >= 0.0) || isinf(r->expected_rms))
        return vr_fail(err, VR_E_RANGE, "expected rms %g; want 0 (unknown) or more", r->expected_rms);
    if (!(r->explained_zeros >= 0.0 && r->explained_zeros <= 1.0))
        return vr_fail(err, VR_E_RANGE, "explained share of zeros %g; want 0 to 1", r->explained_zeros);
    return VR_OK;
}

vr_status vj_check_float(const char *what, const vr_tensor *t, vr_error *err)
{
    if (!vj_type_of(t->dtype))
        return vr_fail(err, VR_E_DTYPE, "%s is %s; want F64, F32, F16 or BF16", what, vr_dtype_name(t->dtype));
    return VR_OK;
}

vr_status vj_check_f64(const char *what, const vr_tensor *t, vr_error *err)
{
    if (t->dtype != VR_F64)
        return vr_fail(err, VR_E_DTYPE, "%s is %s; want F64", what, vr_dtype_name(t->dtype));
    return VR_OK;
}

vr_status vj_check_shape(const char *what, const vr_tensor *t, const vr_tensor *like, vr_error *err)
{
    char have[VJ_PLACE * 2], want[VJ_PLACE * 2];
    bool same = t->rank == like->rank;
    for (int32_t i = 0; same && i < t->rank; i++)
        same = t->dim[i] == like->dim[i];
    if (!same)
        return vr_fail(err, VR_E_SHAPE, "%s is %s; want the shape of %s", what,
                       vr_tensor_describe(t, have, sizeof have), vr_tensor_describe(like, want, sizeof want));
    return VR_OK;
}

vr_status vj_check_ideals(const vr_tensor *ideals, int32_t n, const vr_tensor *like, vr_error *err)
{
    if (n < 1 || n > VJ_MAX_IDEALS)
        return vr_fail(err, VR_E_RANGE, "%d ideals; want 1 to %d", (int)n, VJ_MAX_IDEALS);
    for (int32_t k = 0; k < n; k++) {
        char what[32];
        snprintf(what, sizeof what, "ideal %d", (int)k);
        vr_status s = vj_check_float(what, &ideals[k], err);
        if (s == VR_OK)
            s = vj_check_shape(what, &ideals[k], like, err);
        if (s != VR_OK)
            return s;
    }
    return VR_OK;
}

static vr_status check_axis(const char *name, const vr_tile_axis *a, int64_t extent, vr_error *err)
{
    int64_t at = 0;
    for (int64_t i = 0; i < a->count; i++) {
        const vr_axis_tile *t = &a->tile[i];
        if (t->owned != at || t->owned_length < 1)
            return vr_fail(
                err, VR_E_RANGE, "tile %lld of the grid's %s owns pixels %lld to %lld; want it to start at %lld",
                (long long)i, name, (long long)t->owned, (long long)(t->owned + t->owned_length - 1), (long long)at);
        at += t->owned_length;
    }
    if (at != extent)
        return vr_fail(err, VR_E_RANGE, "the grid's %s own %lld pixels; the picture has %lld", name, (long long)at,
                       (long long)extent);
    return VR_OK;
}

vr_status vj_check_grid(const vr_tile_grid *g, int64_t h, int64_t w, vr_error *err)
{
    vr_status s = check_axis("rows", &g->h, h, err);
    return s == VR_OK ? check_axis("columns", &g->w, w, err) : s;
}

vr_status vj_count(const char *what, const vr_tensor *t, int64_t *count, vr_error *err)
{
    vr_status s = vr_tensor_count(t, count, err);
    if (s == VR_OK && *count == 0)
        return vr_fail(err, VR_E_SHAPE, "%s has no elements", what);
    return s == VR_OK ? s : vr_fail_prefix(err, "%s", what);
}

/* ---- reading ------------------------------------------------------------- */

vr_status vj_read(const vr_tensor *t, int64_t first, int64_t n, double *dst, vr_error *err)
{
    const char *src = (const char *)t->data + (size_t)first * vr_dtype_size(t->dtype);
    return vr_convert(VR_F64, dst, t->dtype, src, (uint64_t)n, err);
}

double vj_at(const vr_tensor *t, int64_t index)
{
    double x = NAN;
    vj_read(t, index, 1, &x, NULL);
    return x;
}

vr_status vj_as_f32(const vr_tensor *t, vr_tensor *out, vr_error *err)
{
    int64_t count;
    vr_status s = vr_tensor_count(t, &count, err);
    if (s == VR_OK)
        s = vr_tensor_new(out, VR_F32, t->rank, t->dim, err);
    return s == VR_OK ? vr_convert(VR_F32, out->data, t->dtype, t->data, (uint64_t)count, err) : s;
}

/* ---- results ------------------------------------------------------------- */

void vj_start(vj_result *r)
{
    *r = (vj_result){.status = VJ_PASS, .first_wrong = -1, .wrong_above = NAN};
    r->numeric.truth_rms = r->numeric.zero_share = r->numeric.error_rms = r->numeric.error_max = NAN;
    r->numeric.noise_rms = r->numeric.noise_max = r->numeric.floor = r->numeric.ideal_spread = NAN;
    r->numeric.ratio_rms = r->numeric.limit_rms = r->numeric.ratio_max = r->numeric.limit_max = NAN;
    r->numeric.cap_ratio = NAN;
    r->ulp.max = r->ulp.mean = r->ulp.limit = NAN;
    r->u8.share = r->u8.predicted = r->u8.limit = r->u8.delta = NAN;
    r->picture.psnr = r->picture.psnr_noise = r->picture.psnr_limit = r->picture.psnr_u8 = NAN;
    r->picture.ssim = r->picture.ssim_noise = r->picture.ssim_limit = NAN;
    r->picture.border_score = r->picture.border_limit = NAN;
    r->picture.corner_score = r->picture.corner_limit = r->picture.tone_step = NAN;
    r->flicker.change_score = r->flicker.level_score = r->flicker.limit = NAN;
}

void vj_verdict(vj_result *r, vj_status s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    r->status = s;
    vsnprintf(r->reason, sizeof r->reason, fmt, ap);
    va_end(ap);
}

void vj_count_wrong(vj_result *r, int64_t index)
{
    if (r->wrong++ == 0)
        r->first_wrong = index;
}

void vj_keep_worst(vj_result *r, int64_t index, double truth, double got, double ratio)
{
    enum { MOST = sizeof r->worst / sizeof r->worst[0] };
    if (!(ratio > 0.0) || (r->worst_count == MOST && ratio <= r->worst[MOST - 1].ratio))
        return;
    int32_t i = r->worst_count < MOST ? r->worst_count++ : MOST - 1;
    for (; i > 0 && r->worst[i - 1].ratio < ratio; i--)
        r->worst[i] = r->worst[i - 1];
    r->worst[i] = (vj_element){.index = index, .truth = truth, .ideal = NAN, .got = got, .ratio = ratio};
}

char *vj_place(const vr_tensor *t, int64_t index, char *buf, size_t size)
{
    int64_t at[VR_MAX_RANK];
    for (int32_t i = t->rank - 1; i >= 0; i--) {
        at[i] = index % t->dim[i];
        index /= t->dim[i];
    }
    size_t used = 0;
    buf[0] = '\0';
    for (int32_t i = 0; i < t->rank && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%lld", i ? "," : "[", (long long)at[i]);
    if (used < size)
        snprintf(buf + used, size - used, t->rank ? "]" : "[]");
    return buf;
}

/* ---- trust shared by several judges (J6) --------------------------------- */

bool vj_mistrust_zeros(double share, const vj_rules *rules, const char *what, vj_result *r)
{
    if (share <= rules->explained_zeros + 0.30)
        return false;
    vj_verdict(r, VJ_MISTRUSTED, "%.1f %% of the %s; the case explains %.1f %%, and 30 %% more is the limit",
               100.0 * share, what, 100.0 * rules->explained_zeros);
    return true;
}
