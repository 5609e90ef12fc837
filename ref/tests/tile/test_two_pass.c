/* Two-pass group norm: the published merge loses the variance between tiles, the
 * fixed one does not (clause T9).
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "vaeref/tile.h"

enum { PX = 96 };

/* One channel, one group: left half around 0, right half around 10. */
static vr_program *norm_program(void)
{
    static const float gamma[1] = {1.0f}, beta[1] = {0.0f};
    const int64_t dim[1] = {1};
    vr_program *p = vr_program_new("test", 1);
    int32_t g = vr_program_weight(p, "g", "g", VR_F32, 1, dim, gamma);
    int32_t b = vr_program_weight(p, "b", "b", VR_F32, 1, dim, beta);
    cr_assert_eq(vr_program_finish(p, vr_program_group_norm(p, "norm", 0, g, b, 1, 1e-6), -1, 1, NULL), VR_OK);
    return p;
}

static vr_tensor decode(const vr_program *p, const vr_tensor *z, vr_tile_mode mode)
{
    vr_error err = {VR_OK, ""};
    vr_tile_plan plan;
    vr_tensor out = {.data = NULL};
    const vr_tile_options o = {.mode = mode, .tile_h = 32, .tile_w = 32, .overlap_h = -1, .overlap_w = -1};
    const vr_exec_options opt = {.policy = VR_POLICY_GOLDEN, .threads = 2};
    cr_assert_eq(vr_tile_plan_make(p, (vr_shape){1, 1, 1, z->dim[2], z->dim[3]}, &o, &plan, &err), VR_OK, "%s", err.text);
    cr_assert(mode == VR_TILE_NONE || plan.tile_count > 1, "%s must cut", vr_tile_mode_name(mode));
    cr_assert_eq(vr_tile_decode(p, z, &plan, &opt, &out, NULL, &err), VR_OK, "%s", err.text);
    vr_tile_plan_free(&plan);
    return out;
}

/* Standard deviation that the normalisation divided by, from two known inputs. */
static double divided_by(const vr_tensor *z, const vr_tensor *y)
{
    const float *x = z->data, *r = y->data;
    return ((double)x[1] - (double)x[0]) / ((double)r[1] - (double)r[0]);
}

Test(two_pass, tiles_of_high_mean_offset_need_the_variance_between_them)
{
    const int64_t dim[4] = {1, 1, PX, PX};
    vr_program *p = norm_program();
    vr_tensor z;
    cr_assert_eq(vr_tensor_new(&z, VR_F32, 4, dim, NULL), VR_OK);
    for (int64_t i = 0; i < PX * PX; i++)
        ((float *)z.data)[i] = (float)(i % 2) + (i % PX < PX / 2 ? 0.0f : 10.0f);
    vr_tensor whole = decode(p, &z, VR_TILE_NONE), fixed = decode(p, &z, VR_TILE_TWO_PASS_FIXED);
    vr_tensor published = decode(p, &z, VR_TILE_TWO_PASS);
    const double true_var = pow(divided_by(&z, &whole), 2), fixed_var = pow(divided_by(&z, &fixed), 2);
    const double published_var = pow(divided_by(&z, &published), 2);
    cr_assert(fabs(true_var - 25.25) < 1e-3, "%.6f", true_var);
    cr_assert(fabs(fixed_var - 25.25) < 1e-3, "fixed: %.6f", fixed_var);
    cr_assert(published_var < 20.0, "as published: %.6f", published_var);
    for (int64_t i = 0; i < PX * PX; i++)
        cr_assert(fabs(((float *)fixed.data)[i] - ((float *)whole.data)[i]) < 1e-6, "cell %lld", (long long)i);
    vr_tensor_free(&whole);
    vr_tensor_free(&fixed);
    vr_tensor_free(&published);
    vr_tensor_free(&z);
    vr_program_free(p);
}
