/* The receptive field: which latent cells one output block depends on.
 *
 * Interval arithmetic from the output back to the latent. The output cells of
 * latent cell 0 are [0, scale-1]; every operation says which interval of its
 * input an interval of its result needs, and a value with several readers
 * needs the union. All these maps are monotone, so the ends are exact.
 * Global operations (statistics, attention) pass through and are counted.
 *
 * SPDX-License-Identifier: MIT */
#include "program/internal.h"

#include <stdlib.h>

struct interval {
    int64_t lo, hi; /* empty while lo > hi */
};

static int64_t floor_div(int64_t a, int64_t b) /* b >= 1 */
{
    return a / b - (a % b < 0);
}

static void include(struct interval *u, struct interval a)
{
    if (u->lo > u->hi) {
        *u = a;
        return;
    }
    if (a.lo < u->lo)
        u->lo = a.lo;
    if (a.hi > u->hi)
        u->hi = a.hi;
}

/* Needed interval of the input, along rows (axis 0) or columns (1). */
static struct interval needed(const vr_op *op, int axis, struct interval out)
{
    if (op->kind == VR_OP_CONV2D) {
        int64_t pad = axis ? op->p.conv2d.pad_left : op->p.conv2d.pad_top;
        int64_t k = axis ? op->p.conv2d.kw : op->p.conv2d.kh;
        return (struct interval){out.lo - pad, out.hi + k - 1 - pad};
    }
    int64_t t, f[2];
    vr_prog_factors(op, &t, &f[0], &f[1]);
    return (struct interval){floor_div(out.lo, f[axis]), floor_div(out.hi, f[axis])};
}

static struct interval latent_interval(const vr_program *p, int axis, int64_t scale,
                                       struct interval *need)
{
    for (int32_t i = 0; i < p->op_count; i++)
        need[i] = (struct interval){0, -1};
    need[p->output] = (struct interval){0, scale - 1};
    for (int32_t i = p->op_count - 1; i > 0; i--)
        for (int32_t j = 0; j < vr_prog_inputs(p->op[i].kind); j++)
            include(&need[p->op[i].in[j]], needed(&p->op[i], axis, need[i]));
    return need[0];
}

vr_status vr_program_receptive_field(const vr_program *p, vr_receptive_field *out, vr_error *err)
{
    vr_status s = vr_prog_need_finished(p, err);
    if (s != VR_OK)
        return s;
    struct interval *need = malloc((size_t)p->op_count * sizeof *need);
    if (!need)
        return vr_fail(err, VR_E_NOMEM, "program '%s': no memory for %d intervals", p->family,
                       (int)p->op_count);
    int64_t scale[2];
    vr_program_scale(p, &scale[0], &scale[1]);
    struct interval row = latent_interval(p, 0, scale[0], need);
    struct interval column = latent_interval(p, 1, scale[1], need);
    free(need);
    /* Padding is never negative, so lo <= 0; more padding than kernel can move
     * the whole interval before the cell. */
    *out = (vr_receptive_field){
        .halo_low = -row.lo,
        .halo_high = row.hi > 0 ? row.hi : 0,
        .halo_low_w = -column.lo,
        .halo_high_w = column.hi > 0 ? column.hi : 0,
    };
    for (int32_t i = 0; i < p->op_count; i++)
        if (p->op[i].kind == VR_OP_GROUP_NORM || p->op[i].kind == VR_OP_ATTENTION)
            out->global_ops++;
    return VR_OK;
}
