/* From the plug-in's program to the reference's. SPDX-License-Identifier: MIT */
#include "backends/common.h"

bool vp_dtype_of(uint32_t dtype, vr_dtype *out)
{
    static const struct {
        uint32_t vp;
        vr_dtype vr;
    } map[] = {{VP_F64, VR_F64}, {VP_F32, VR_F32}, {VP_F16, VR_F16}, {VP_BF16, VR_BF16}};
    for (size_t i = 0; i < sizeof map / sizeof *map; i++)
        if (map[i].vp == dtype) {
            *out = map[i].vr;
            return true;
        }
    return false;
}

static int32_t add_op(vr_program *p, const vp_op *o, vr_error *err)
{
    const int64_t *i = o->i;
    switch (o->kind) {
    case VP_OP_CONV2D:
        return vr_program_conv2d_pads(p, o->tap, o->in[0], o->weight[0], o->weight[1], i[2], i[3], i[4], i[5]);
    case VP_OP_GROUP_NORM:
        return vr_program_group_norm(p, o->tap, o->in[0], o->weight[0], o->weight[1], i[0], o->f[0]);
    case VP_OP_SILU:
        return vr_program_unary(p, o->tap, VR_OP_SILU, o->in[0]);
    case VP_OP_RELU:
        return vr_program_unary(p, o->tap, VR_OP_RELU, o->in[0]);
    case VP_OP_TANH_CLAMP:
        return vr_program_tanh_clamp(p, o->tap, o->in[0], o->f[0]);
    case VP_OP_UPSAMPLE_NEAREST:
        return vr_program_upsample(p, o->tap, o->in[0], i[0], i[1], i[2]);
    case VP_OP_ATTENTION:
        return vr_program_attention(p, o->tap, o->in[0], o->in[1], o->in[2], o->f[0]);
    case VP_OP_ADD:
        return vr_program_add(p, o->tap, o->in[0], o->in[1]);
    case VP_OP_SCALE_SHIFT:
        return vr_program_scale_shift(p, o->tap, o->in[0], o->table[0], o->table[1]);
    case VP_OP_UNPACK:
        return vr_program_unpack(p, o->tap, o->in[0], i[0], i[1]);
    case VP_OP_CLAMP:
        return vr_program_clamp(p, o->tap, o->in[0], o->f[0], o->f[1]);
    default:
        vr_fail(err, VR_E_UNSUPPORTED, "operation kind %u (%s) is not known here", o->kind, o->tap);
        return -2;
    }
}

vr_status vp_program_of(const vp_program *p, vr_program **out, vr_error *err)
{
    *out = NULL;
    if (!p || p->op_count < 2 || vp_program_op(p, 0)->kind != VP_OP_INPUT)
        return vr_fail(err, VR_E_ARGUMENT, "a program begins with its input and has at least one operation");
    vr_program *q = vr_program_new("plug-in", vp_program_op(p, 0)->channels);
    vr_status s = VR_OK;
    for (uint32_t k = 0; s == VR_OK && k < p->weight_count; k++) {
        const vp_weight *w = vp_program_weight_at(p, k);
        vr_dtype d;
        if (!vp_dtype_of(w->tensor.dtype, &d))
            s = vr_fail(err, VR_E_UNSUPPORTED, "weight %s has dtype %u, which is not known here", w->name, w->tensor.dtype);
        else
            vr_program_weight(q, w->name, NULL, d, (int32_t)w->tensor.rank, w->tensor.dim, w->tensor.data);
    }
    for (uint32_t k = 1; s == VR_OK && k < p->op_count; k++)
        if (add_op(q, vp_program_op(p, k), err) == -2)
            s = VR_E_UNSUPPORTED;
    if (s == VR_OK)
        s = vr_program_finish(q, p->output, p->range_lo, p->range_hi, err);
    if (s == VR_OK)
        *out = q;
    else
        vr_program_free(q);
    return s;
}
