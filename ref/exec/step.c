/* One operation of a program. SPDX-License-Identifier: MIT */
#include "exec/step.h"

#include <math.h>
#include <time.h>

const vr_weight *vr_op_weight(const vr_program *p, const vr_op *op, int k)
{
    return op->weight[k] < 0 ? NULL : &p->weight[op->weight[k]];
}

vr_status vr_exec_op(vr_arith *a, const vr_program *p, int32_t i, const vr_view in[3], vr_view out,
                     vr_error *err)
{
    const vr_op *op = &p->op[i];
    switch (op->kind) {
    case VR_OP_CONV2D:
        return vr_op_conv2d(a, op, vr_op_weight(p, op, 0), vr_op_weight(p, op, 1), in[0], out, err);
    case VR_OP_GROUP_NORM:
        return vr_op_group_norm(a, op, vr_op_weight(p, op, 0), vr_op_weight(p, op, 1), in[0], out, err);
    case VR_OP_ATTENTION:
        return vr_op_attention(a, op, in[0], in[1], in[2], out, err);
    case VR_OP_SILU:
    case VR_OP_RELU:
    case VR_OP_TANH_CLAMP:
    case VR_OP_SCALE_SHIFT:
    case VR_OP_CLAMP:
        vr_op_unary(a, op, in[0], out);
        return VR_OK;
    case VR_OP_ADD:
        vr_op_add(a, in[0], in[1], out);
        return VR_OK;
    case VR_OP_UPSAMPLE_NEAREST:
        vr_op_upsample(a, op, in[0], out);
        return VR_OK;
    case VR_OP_UNPACK:
        vr_op_unpack(a, op, in[0], out);
        return VR_OK;
    case VR_OP_INPUT:
    case VR_OP_KIND_COUNT:
        break;
    }
    return vr_fail(err, VR_E_INTERNAL, "operation %d (%s) cannot be executed", i, op->tap);
}

double vr_seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void vr_fill_stats(vr_exec_stats *stats, const vr_arith *a, const vr_pool *pool, double start,
                   const vr_nonfinite *nonfinite)
{
    stats->nonfinite = *nonfinite;
    stats->seconds = vr_seconds_now() - start;
    stats->threads = a->threads;
    stats->isa = a->k ? a->k->name : "";
    stats->weight_scratch_bytes = a->scratch_peak;
    stats->pool = (vr_pool_stats){.allocations = 0};
    if (pool)
        vr_pool_get_stats(pool, &stats->pool);
}

/* ---- non-finite values -------------------------------------------------- */

static bool span_finite(const vr_arith *a, const void *data, int64_t first, int64_t n)
{
    return vr_arith_is_f64(a) ? a->k->all_finite_f64((const double *)data + first, n)
                              : a->k->all_finite_f32((const float *)data + first, n);
}

bool vr_find_nonfinite(const vr_arith *a, int32_t op, const void *data, int64_t count, vr_nonfinite *out)
{
    const int64_t span = 1 << 16;
    int bad = 0;
#pragma omp parallel for schedule(static) num_threads(a->threads) reduction(|| : bad)
    for (int64_t j = 0; j < (count + span - 1) / span; j++)
        bad = bad || !span_finite(a, data, j * span, count - j * span < span ? count - j * span : span);
    if (!bad)
        return false;
    *out = (vr_nonfinite){.op = op, .first_index = -1};
    for (int64_t j = 0; j < count; j++) {
        double v = vr_arith_is_f64(a) ? ((const double *)data)[j] : (double)((const float *)data)[j];
        if (isfinite(v))
            continue;
        if (out->first_index < 0)
            out->first_index = j;
        if (isnan(v))
            out->nan_count++;
        else
            out->inf_count++;
    }
    return true;
}
