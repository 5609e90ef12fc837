/* The largest error an element may have, from the sizes of the terms it is the sum
 * of (J5). The square root is the probabilistic growth of rounding errors; the
 * worst case would have the count itself.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "judge/internal.h"
#include "vaeref/exec.h"
#include "vaeref/program.h"

vr_status vj_cap_dot(int64_t terms, const vr_tensor *magnitude, const vr_tensor *truth, const vj_rules *rules,
                     vr_tensor *cap, vr_error *err)
{
    int64_t count = 0;
    vr_status s = vj_check_rules(rules, err);
    if (s == VR_OK && terms < 1)
        s = vr_fail(err, VR_E_RANGE, "%lld terms; want 1 or more", (long long)terms);
    if (s == VR_OK)
        s = vj_check_f64("truth", truth, err);
    if (s == VR_OK)
        s = vj_check_f64("magnitude", magnitude, err);
    if (s == VR_OK)
        s = vj_check_shape("magnitude", magnitude, truth, err);
    if (s == VR_OK)
        s = vj_count("truth", truth, &count, err);
    if (s == VR_OK)
        s = vr_tensor_new(cap, VR_F64, truth->rank, truth->dim, err);
    if (s != VR_OK)
        return s;
    const vj_type *storage = vj_type_of(rules->limits->contract.storage);
    const double sum = 4.0 * sqrt((double)terms) * vj_type_of(rules->limits->contract.accumulate)->u;
    const double tiny = rules->flush_subnormals ? storage->smallest_normal : storage->smallest_subnormal;
    double *c = cap->data;
    s = vj_read(truth, 0, count, c, err);
    for (int64_t i = 0; s == VR_OK && i < count; i++)
        c[i] = isfinite(c[i]) ? sum * vj_at(magnitude, i) + 1.01 * storage->u * fabs(c[i]) + tiny : 0.0;
    return s;
}

/* |t| as F64, owned by the caller. */
static vr_status absolute(const char *what, const vr_tensor *t, vr_tensor *out, vr_error *err)
{
    int64_t count = 0;
    vr_status s = vj_check_float(what, t, err);
    if (s == VR_OK)
        s = vj_count(what, t, &count, err);
    if (s == VR_OK)
        s = vr_tensor_new(out, VR_F64, t->rank, t->dim, err);
    if (s == VR_OK)
        s = vj_read(t, 0, count, out->data, err);
    for (int64_t i = 0; s == VR_OK && i < count; i++)
        ((double *)out->data)[i] = fabs(((double *)out->data)[i]);
    return s;
}

vr_status vj_conv2d_magnitude(const vr_tensor *x, const vr_tensor *weight, const vr_tensor *bias,
                              const int64_t pad[4], vr_tensor *out, vr_error *err)
{
    vr_tensor ax = {0}, aw = {0}, ab = {0};
    vr_program *p = NULL;
    vr_status s = absolute("x", x, &ax, err);
    if (s == VR_OK && x->rank != 4 && x->rank != 5)
        s = vr_fail(err, VR_E_SHAPE, "x has rank %d; want 4 or 5", (int)x->rank);
    if (s == VR_OK)
        s = absolute("weight", weight, &aw, err);
    if (s == VR_OK && bias)
        s = absolute("bias", bias, &ab, err);
    if (s == VR_OK) {
        p = vr_program_new("magnitude", x->dim[1]);
        const int32_t w = vr_program_weight(p, "weight", NULL, VR_F64, aw.rank, aw.dim, aw.data);
        const int32_t b = bias ? vr_program_weight(p, "bias", NULL, VR_F64, ab.rank, ab.dim, ab.data) : -1;
        const int32_t y = vr_program_conv2d_pads(p, "conv", 0, w, b, pad[0], pad[1], pad[2], pad[3]);
        const vr_exec_options opt = {.policy = VR_POLICY_TRUTH};
        s = vr_program_finish(p, y, -1.0, 1.0, err);
        if (s == VR_OK)
            s = vr_exec_run(p, &ax, &opt, out, NULL, err);
    }
    vr_program_free(p);
    vr_tensor_free(&ax);
    vr_tensor_free(&aw);
    vr_tensor_free(&ab);
    return s;
}
