/* What makes a program right: the checks of vr_program_finish.
 *
 * One pass in execution order: inputs before uses, weights that fit channels,
 * parameters in range. Then the geometry. An extent of a value is an affine
 * function of the latent's extent (scale * latent + offset), so values that
 * are added can be shown to agree for every latent size at once. Clause N4.
 *
 * SPDX-License-Identifier: MIT */
#include "program/internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

vr_status vr_prog_fail(const vr_op *op, vr_error *err, vr_status s, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return vr_fail(err, s, "%s '%.150s': %s", vr_op_name(op->kind), op->tap, text);
}

/* "'name' [512,4,3,3]" */
static const char *describe(const vr_weight *w, char *buf, size_t size)
{
    int n = snprintf(buf, size, "'%.120s' [", w->name);
    for (int32_t i = 0; i < w->rank && n >= 0 && (size_t)n < size; i++)
        n += snprintf(buf + n, size - (size_t)n, "%s%lld", i ? "," : "", (long long)w->dim[i]);
    if (n >= 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, "]");
    return buf;
}

/* A bias, gamma or beta: one number per channel the operation makes. */
static vr_status check_vector(const vr_program *p, const vr_op *op, int32_t weight,
                              const char *role, vr_error *err)
{
    if (weight < 0)
        return vr_prog_fail(op, err, VR_E_ARGUMENT, "has no %s", role);
    const vr_weight *w = &p->weight[weight];
    char d[240];
    if (w->rank != 1 || w->dim[0] != op->channels)
        return vr_prog_fail(op, err, VR_E_SHAPE, "%s %s, wanted [%lld], one per channel", role,
                            describe(w, d, sizeof d), (long long)op->channels);
    return VR_OK;
}

static vr_status check_conv2d(const vr_program *p, const vr_op *op, vr_error *err)
{
    if (op->weight[0] < 0)
        return vr_prog_fail(op, err, VR_E_ARGUMENT, "has no weight");
    const vr_weight *w = &p->weight[op->weight[0]];
    const vr_op *x = &p->op[op->in[0]];
    char d[240];
    if (w->rank != 4)
        return vr_prog_fail(op, err, VR_E_SHAPE, "weight %s, wanted rank 4 [out,in,rows,columns]",
                            describe(w, d, sizeof d));
    if (w->dim[1] != x->channels)
        return vr_prog_fail(op, err, VR_E_SHAPE,
                            "weight %s takes %lld channels, but its input '%.120s' has %lld",
                            describe(w, d, sizeof d), (long long)w->dim[1], x->tap,
                            (long long)x->channels);
    if (w->dim[0] != op->channels || w->dim[2] != op->p.conv2d.kh || w->dim[3] != op->p.conv2d.kw)
        return vr_prog_fail(op, err, VR_E_SHAPE,
                            "weight %s, wanted [%lld,%lld,%lld,%lld] as the operation says",
                            describe(w, d, sizeof d), (long long)op->channels,
                            (long long)x->channels, (long long)op->p.conv2d.kh,
                            (long long)op->p.conv2d.kw);
    if (w->dim[2] > VR_PROG_MAX_KERNEL || w->dim[3] > VR_PROG_MAX_KERNEL)
        return vr_prog_fail(op, err, VR_E_SHAPE, "weight %s: a kernel extent passes %lld",
                            describe(w, d, sizeof d), (long long)VR_PROG_MAX_KERNEL);
    const int64_t pad[4] = {op->p.conv2d.pad_top, op->p.conv2d.pad_bottom, op->p.conv2d.pad_left,
                            op->p.conv2d.pad_right};
    static const char *const side[4] = {"top", "bottom", "left", "right"};
    for (int i = 0; i < 4; i++)
        if (pad[i] < 0 || pad[i] > VR_PROG_MAX_KERNEL)
            return vr_prog_fail(op, err, VR_E_RANGE, "padding %s is %lld, wanted 0..%lld", side[i],
                                (long long)pad[i], (long long)VR_PROG_MAX_KERNEL);
    return op->weight[1] < 0 ? VR_OK : check_vector(p, op, op->weight[1], "bias", err);
}

static vr_status check_group_norm(const vr_program *p, const vr_op *op, vr_error *err)
{
    vr_status s = check_vector(p, op, op->weight[0], "gamma", err);
    if (s == VR_OK)
        s = check_vector(p, op, op->weight[1], "beta", err);
    if (s != VR_OK)
        return s;
    int64_t g = op->p.group_norm.groups;
    if (g < 1 || op->channels % g)
        return vr_prog_fail(op, err, VR_E_SHAPE, "%lld groups do not divide %lld channels",
                            (long long)g, (long long)op->channels);
    double eps = op->p.group_norm.eps;
    if (!isfinite(eps) || eps < 0)
        return vr_prog_fail(op, err, VR_E_RANGE, "eps is %g, wanted a finite number >= 0", eps);
    return VR_OK;
}

/* Add and attention: all inputs have the channels of the first. */
static vr_status check_same_channels(const vr_program *p, const vr_op *op, vr_error *err)
{
    const vr_op *a = &p->op[op->in[0]];
    for (int32_t j = 1; j < vr_prog_inputs(op->kind); j++) {
        const vr_op *b = &p->op[op->in[j]];
        if (b->channels != a->channels)
            return vr_prog_fail(op, err, VR_E_SHAPE,
                                "'%.120s' has %lld channels and '%.120s' has %lld, wanted the same",
                                a->tap, (long long)a->channels, b->tap, (long long)b->channels);
    }
    return VR_OK;
}

static vr_status check_factor(const vr_op *op, const char *axis, int64_t f, vr_error *err)
{
    if (f < 1 || f > VR_PROG_MAX_FACTOR)
        return vr_prog_fail(op, err, VR_E_RANGE, "factor along %s is %lld, wanted 1..%lld", axis,
                            (long long)f, (long long)VR_PROG_MAX_FACTOR);
    return VR_OK;
}

static vr_status check_factors(const vr_op *op, vr_error *err)
{
    int64_t t, h, w;
    vr_prog_factors(op, &t, &h, &w);
    vr_status s = check_factor(op, "frames", t, err);
    if (s == VR_OK)
        s = check_factor(op, "rows", h, err);
    if (s == VR_OK)
        s = check_factor(op, "columns", w, err);
    return s;
}

static vr_status check_unpack(const vr_program *p, const vr_op *op, vr_error *err)
{
    vr_status s = check_factors(op, err);
    int64_t f = op->p.unpack.fh * op->p.unpack.fw, c = p->op[op->in[0]].channels;
    if (s == VR_OK && c % f)
        s = vr_prog_fail(op, err, VR_E_SHAPE, "%lld channels of '%.120s' cannot be unpacked into "
                         "%lld positions, wanted a multiple", (long long)c, p->op[op->in[0]].tap,
                         (long long)f);
    return s;
}

static vr_status check_scale_shift(const vr_op *op, vr_error *err)
{
    for (int64_t c = 0; c < op->channels; c++)
        if (!isfinite(op->p.scale_shift.scale[c]) || !isfinite(op->p.scale_shift.shift[c]))
            return vr_prog_fail(op, err, VR_E_NONFINITE,
                                "channel %lld: scale %g, shift %g, wanted finite numbers",
                                (long long)c, op->p.scale_shift.scale[c],
                                op->p.scale_shift.shift[c]);
    return VR_OK;
}

static vr_status check_parameters(const vr_program *p, const vr_op *op, vr_error *err)
{
    switch (op->kind) {
    case VR_OP_CONV2D:
        return check_conv2d(p, op, err);
    case VR_OP_GROUP_NORM:
        return check_group_norm(p, op, err);
    case VR_OP_TANH_CLAMP:
        if (!isfinite(op->p.tanh_clamp.limit) || op->p.tanh_clamp.limit <= 0)
            return vr_prog_fail(op, err, VR_E_RANGE, "limit is %g, wanted a finite number > 0",
                                op->p.tanh_clamp.limit);
        return VR_OK;
    case VR_OP_UPSAMPLE_NEAREST:
        return check_factors(op, err);
    case VR_OP_ATTENTION:
        if (!isfinite(op->p.attention.scale))
            return vr_prog_fail(op, err, VR_E_RANGE, "scale is %g, wanted a finite number",
                                op->p.attention.scale);
        return check_same_channels(p, op, err);
    case VR_OP_ADD:
        return check_same_channels(p, op, err);
    case VR_OP_SCALE_SHIFT:
        return check_scale_shift(op, err);
    case VR_OP_UNPACK:
        return check_unpack(p, op, err);
    case VR_OP_CLAMP: /* infinite bounds are open ones */
        if (!(op->p.clamp.lo <= op->p.clamp.hi))
            return vr_prog_fail(op, err, VR_E_RANGE, "bounds are %g..%g, wanted low <= high",
                                op->p.clamp.lo, op->p.clamp.hi);
        return VR_OK;
    case VR_OP_INPUT:
    case VR_OP_SILU:
    case VR_OP_RELU:
    case VR_OP_KIND_COUNT:
        break;
    }
    return VR_OK;
}

/* Frames, rows, columns of a value: scale * latent + offset. */
struct geometry {
    int64_t scale[3], offset[3];
};

static vr_status geometry_of(const vr_program *p, const vr_op *op, struct geometry *g,
                             const struct geometry *all, vr_error *err)
{
    static const char *const axis[3] = {"frames", "rows", "columns"};
    *g = all[op->in[0]];
    for (int32_t j = 1; j < vr_prog_inputs(op->kind); j++)
        for (int a = 0; a < 3; a++) {
            const struct geometry *o = &all[op->in[j]];
            if (o->scale[a] != g->scale[a] || o->offset[a] != g->offset[a])
                return vr_prog_fail(op, err, VR_E_SHAPE,
                                    "'%.110s' has %lld x latent %+lld %s and '%.110s' has "
                                    "%lld x latent %+lld, wanted the same",
                                    p->op[op->in[0]].tap, (long long)g->scale[a],
                                    (long long)g->offset[a], axis[a], p->op[op->in[j]].tap,
                                    (long long)o->scale[a], (long long)o->offset[a]);
        }
    if (op->kind == VR_OP_CONV2D) {
        g->offset[1] += op->p.conv2d.pad_top + op->p.conv2d.pad_bottom - op->p.conv2d.kh + 1;
        g->offset[2] += op->p.conv2d.pad_left + op->p.conv2d.pad_right - op->p.conv2d.kw + 1;
    }
    int64_t f[3];
    vr_prog_factors(op, &f[0], &f[1], &f[2]);
    for (int a = 0; a < 3; a++) {
        g->scale[a] *= f[a];
        g->offset[a] *= f[a];
        if (g->scale[a] > VR_PROG_MAX_SCALE)
            return vr_prog_fail(op, err, VR_E_RANGE, "upscaling of %s reaches %lld, limit %lld",
                                axis[a], (long long)g->scale[a], (long long)VR_PROG_MAX_SCALE);
    }
    return VR_OK;
}

static vr_status check_operations(const vr_program *p, struct geometry *g, bool *used,
                                  vr_error *err)
{
    g[0] = (struct geometry){{1, 1, 1}, {0, 0, 0}};
    for (int32_t i = 1; i < p->op_count; i++) {
        const vr_op *op = &p->op[i];
        for (int32_t j = 0; j < vr_prog_inputs(op->kind); j++) {
            if (op->in[j] < 0 || op->in[j] >= i)
                return vr_prog_fail(op, err, VR_E_ARGUMENT,
                                    "input %d is value %d, but it is operation %d: a value must "
                                    "be made before it is used", (int)j, (int)op->in[j], (int)i);
            used[op->in[j]] = true;
        }
        vr_status s = check_parameters(p, op, err);
        if (s == VR_OK)
            s = geometry_of(p, op, &g[i], g, err);
        if (s != VR_OK)
            return s;
    }
    for (int32_t i = 0; i < p->op_count; i++)
        if (!used[i] && i != p->output)
            return vr_prog_fail(&p->op[i], err, VR_E_ARGUMENT,
                                "value %d is used by no operation and is not the output", (int)i);
    return VR_OK;
}

vr_status vr_prog_validate(const vr_program *p, vr_error *err)
{
    if (p->output < 1 || p->output >= p->op_count)
        return vr_fail(err, VR_E_ARGUMENT,
                       "program '%s': the output is value %d, wanted the result of an operation, "
                       "1..%d",
                       p->family, (int)p->output, (int)p->op_count - 1);
    if (!isfinite(p->range_lo) || !isfinite(p->range_hi) || !(p->range_lo < p->range_hi))
        return vr_fail(err, VR_E_RANGE, "program '%s': output range %g..%g, wanted black < white",
                       p->family, p->range_lo, p->range_hi);
    size_t n = (size_t)p->op_count;
    struct geometry *g = calloc(n, sizeof *g);
    bool *used = calloc(n, sizeof *used);
    vr_status s = VR_OK;
    if (g && used)
        s = check_operations(p, g, used, err);
    else
        s = vr_fail(err, VR_E_NOMEM, "program '%s': no memory to check %d operations", p->family,
                    (int)p->op_count);
    free(g);
    free(used);
    return s;
}
