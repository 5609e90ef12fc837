/* Reading a program: names, taps, shapes of values, upscaling.
 *
 * Shapes follow from the latent's shape alone, operation by operation (clause
 * N4). Convolution, normalisation and attention work frame by frame or on all
 * frames, so frames pass through everything but the upsampling that names them.
 *
 * SPDX-License-Identifier: MIT */
#include "program/internal.h"

#include <string.h>

const char *vr_op_name(vr_op_kind k)
{
    static const char *const name[VR_OP_KIND_COUNT] = {
#define VR_X(id, text) [id] = text,
        VR_OP_MAP(VR_X)
#undef VR_X
    };
    return (unsigned)k < VR_OP_KIND_COUNT ? name[k] : "?";
}

int32_t vr_prog_inputs(vr_op_kind k)
{
    switch (k) {
    case VR_OP_INPUT:
        return 0;
    case VR_OP_ADD:
        return 2;
    case VR_OP_ATTENTION:
        return 3;
    default:
        return 1;
    }
}

bool vr_prog_distinct_input(const vr_op *op, int32_t j)
{
    for (int32_t k = 0; k < j; k++)
        if (op->in[k] == op->in[j])
            return false;
    return true;
}

void vr_prog_factors(const vr_op *op, int64_t *t, int64_t *h, int64_t *w)
{
    *t = *h = *w = 1;
    if (op->kind == VR_OP_UPSAMPLE_NEAREST) {
        *t = op->p.upsample.factor_t;
        *h = op->p.upsample.factor_h;
        *w = op->p.upsample.factor_w;
    } else if (op->kind == VR_OP_UNPACK) {
        *h = op->p.unpack.fh;
        *w = op->p.unpack.fw;
    }
}

vr_status vr_prog_need_finished(const vr_program *p, vr_error *err)
{
    if (p && p->memory->finished)
        return VR_OK;
    return vr_fail(err, VR_E_ARGUMENT, "program '%s' was not finished", p ? p->family : "");
}

int32_t vr_program_find_tap(const vr_program *p, const char *tap)
{
    for (int32_t i = 0; p && tap && i < p->op_count; i++)
        if (!strcmp(p->op[i].tap, tap))
            return i;
    return -1;
}

vr_status vr_shape_count(vr_shape s, int64_t *count, vr_error *err)
{
    const int64_t extent[5] = {s.n, s.c, s.t, s.h, s.w};
    int64_t product = 1;
    for (int i = 0; i < 5; i++) {
        if (extent[i] < 1 || extent[i] > VR_PROG_MAX_ELEMENTS / product)
            return vr_fail(err, VR_E_SHAPE,
                           "shape [n=%lld,c=%lld,t=%lld,h=%lld,w=%lld]: wanted extents of at least "
                           "1 and at most 2^46 elements",
                           (long long)s.n, (long long)s.c, (long long)s.t, (long long)s.h,
                           (long long)s.w);
        product *= extent[i];
    }
    *count = product;
    return VR_OK;
}

static vr_status shape_of(const vr_op *op, vr_shape in, vr_shape *out, vr_error *err)
{
    vr_shape s = in;
    s.c = op->channels;
    if (op->kind == VR_OP_CONV2D) {
        s.h += op->p.conv2d.pad_top + op->p.conv2d.pad_bottom - op->p.conv2d.kh + 1;
        s.w += op->p.conv2d.pad_left + op->p.conv2d.pad_right - op->p.conv2d.kw + 1;
        if (s.h < 1 || s.w < 1)
            return vr_prog_fail(op, err, VR_E_SHAPE,
                                "a kernel of %lld x %lld (rows x columns) does not fit an input of "
                                "%lld x %lld with padding %lld,%lld,%lld,%lld (top, bottom, left, "
                                "right)",
                                (long long)op->p.conv2d.kh, (long long)op->p.conv2d.kw,
                                (long long)in.h, (long long)in.w,
                                (long long)op->p.conv2d.pad_top, (long long)op->p.conv2d.pad_bottom,
                                (long long)op->p.conv2d.pad_left,
                                (long long)op->p.conv2d.pad_right);
    }
    int64_t ft, fh, fw, count;
    vr_prog_factors(op, &ft, &fh, &fw);
    s.t *= ft; /* extents <= 2^46, factors <= 2^16: no overflow */
    s.h *= fh;
    s.w *= fw;
    vr_status st = vr_shape_count(s, &count, err);
    if (st != VR_OK) {
        vr_fail_prefix(err, "%s '%.150s'", vr_op_name(op->kind), op->tap);
        return st;
    }
    *out = s;
    return VR_OK;
}

vr_status vr_program_shapes(const vr_program *p, vr_shape latent, vr_shape *out, vr_error *err)
{
    vr_status s = vr_prog_need_finished(p, err);
    if (s != VR_OK)
        return s;
    int64_t count;
    s = vr_shape_count(latent, &count, err);
    if (s != VR_OK) {
        vr_fail_prefix(err, "latent");
        return s;
    }
    if (latent.c != p->op[0].channels)
        return vr_fail(err, VR_E_SHAPE, "the latent has %lld channels, wanted %lld",
                       (long long)latent.c, (long long)p->op[0].channels);
    out[0] = latent;
    for (int32_t i = 1; i < p->op_count && s == VR_OK; i++)
        s = shape_of(&p->op[i], out[p->op[i].in[0]], &out[i], err);
    return s;
}

void vr_program_scale(const vr_program *p, int64_t *scale_h, int64_t *scale_w)
{
    *scale_h = *scale_w = 1;
    /* Every path from latent to output upscales alike (validate.c), so one
     * path tells. */
    for (int32_t v = p->output; v > 0; v = p->op[v].in[0]) {
        int64_t t, h, w;
        vr_prog_factors(&p->op[v], &t, &h, &w);
        *scale_h *= h;
        *scale_w *= w;
    }
}
