/* Which values are alive when, and which operation may write over its input.
 *
 * The executor takes a block from its pool for every value it makes, unless
 * the operation may write in place, and gives a value back right after its
 * last use. The cost table and the executor both ask here, so the predicted
 * peak is the executor's peak.
 *
 * SPDX-License-Identifier: MIT */
#include "program/internal.h"

void vr_program_live_ranges(const vr_program *p, int32_t *last)
{
    for (int32_t i = 0; i < p->op_count; i++) {
        last[i] = i; /* until someone reads it */
        for (int32_t j = 0; j < vr_prog_inputs(p->op[i].kind); j++)
            last[p->op[i].in[j]] = i;
    }
    if (p->output >= 0)
        last[p->output] = p->op_count;
}

/* Element i of the result needs element i of the input only, or (group norm)
 * statistics that are complete before anything is written. */
static bool writes_in_place(vr_op_kind k)
{
    switch (k) {
    case VR_OP_GROUP_NORM:
    case VR_OP_SILU:
    case VR_OP_RELU:
    case VR_OP_TANH_CLAMP:
    case VR_OP_ADD:
    case VR_OP_SCALE_SHIFT:
    case VR_OP_CLAMP:
        return true;
    default:
        return false;
    }
}

int32_t vr_program_in_place(const vr_program *p, const int32_t *last, int32_t i)
{
    const vr_op *op = &p->op[i];
    if (!writes_in_place(op->kind))
        return -1;
    for (int32_t j = 0; j < vr_prog_inputs(op->kind); j++)
        if (op->in[j] != 0 && last[op->in[j]] == i) /* value 0 is the caller's */
            return j;
    return -1;
}
