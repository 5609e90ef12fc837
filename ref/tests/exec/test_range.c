/* A range of a program gives the bits of the whole run (clause N9).
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "vaeref/exec.h"
#include "vaeref/model.h"

enum { MOST = 512 };
static vr_tensor value[MOST];

static vr_status keep(void *ctx, int32_t op, const char *tap, const vr_tensor *v, vr_error *err)
{
    (void)ctx;
    (void)tap;
    int64_t n;
    vr_status s = vr_tensor_new(&value[op], v->dtype, v->rank, v->dim, err);
    if (s == VR_OK)
        s = vr_tensor_count(v, &n, err);
    if (s == VR_OK)
        memcpy(value[op].data, v->data, (size_t)n * vr_dtype_size(v->dtype));
    return s;
}

static bool same(const vr_tensor *a, const vr_tensor *b)
{
    int64_t n = 0, m = 0;
    vr_tensor_count(a, &n, NULL);
    vr_tensor_count(b, &m, NULL);
    return n == m && a->dtype == b->dtype && memcmp(a->data, b->data, (size_t)n * vr_dtype_size(a->dtype)) == 0;
}

static const vr_policy policies[] = {VR_POLICY_GOLDEN, VR_POLICY_TRUTH, VR_POLICY_BF16};

Test(range, every_operation_alone_and_all_together)
{
    vr_error err = {VR_OK, ""};
    vr_model *m = NULL;
    vr_tensor z, out, got[2];
    cr_assert_eq(vr_model_open("synth:sd15,div=16", NULL, &m, &err), VR_OK, "%s", err.text);
    cr_assert_eq(vr_model_latents(m, 1, 2, 3, 5, &z, &err), VR_OK, "%s", err.text);
    const vr_program *p = m->program;
    const vr_shape l = {2, 4, 1, 3, 5};
    cr_assert_leq(p->op_count, MOST);
    for (int k = 0; k < 3; k++) {
        const vr_exec_options opt = {.policy = policies[k], .order = VR_ORDER_LANES8, .threads = 1, .on_value = keep};
        cr_assert_eq(vr_exec_run(p, &z, &opt, &out, NULL, &err), VR_OK, "%s", err.text);
        for (int32_t i = 1; i < p->op_count; i++) {
            vr_exec_feed feed[3];
            int32_t feeds = 0;
            for (int j = 0; j < 3; j++) {
                bool again = false;
                for (int q = 0; q < j; q++)
                    again = again || p->op[i].in[q] == p->op[i].in[j];
                if (p->op[i].in[j] >= 0 && !again)
                    feed[feeds++] = (vr_exec_feed){p->op[i].in[j], &value[p->op[i].in[j]]};
            }
            cr_assert_eq(vr_exec_range(p, l, i, i, feed, feeds, &i, 1, &opt, got, &err), VR_OK, "%s", err.text);
            cr_assert(same(&got[0], &value[i]), "operation %d (%s) alone differs", i, p->op[i].tap);
            vr_tensor_free(&got[0]);
        }
        const vr_exec_feed latent = {0, &z};
        const int32_t want[2] = {p->op_count / 2, p->output};
        cr_assert_eq(vr_exec_range(p, l, 1, p->output, &latent, 1, want, 2, &opt, got, &err), VR_OK, "%s", err.text);
        cr_assert(same(&got[1], &out), "the whole as a range differs");
        cr_assert(same(&got[0], &value[want[0]]), "an inner value differs");
        vr_tensor_free(&got[0]);
        vr_tensor_free(&got[1]);
        vr_tensor_free(&out);
        for (int i = 0; i < p->op_count; i++)
            vr_tensor_free(&value[i]);
    }
    vr_tensor_free(&z);
    vr_model_close(m);
}

Test(range, refusals)
{
    vr_error err = {VR_OK, ""};
    vr_model *m = NULL;
    vr_tensor z, out;
    cr_assert_eq(vr_model_open("synth:taesd,div=16", NULL, &m, &err), VR_OK, "%s", err.text);
    cr_assert_eq(vr_model_latents(m, 1, 1, 3, 3, &z, &err), VR_OK, "%s", err.text);
    const vr_shape l = {1, 4, 1, 3, 3}, other = {1, 4, 1, 3, 4};
    const vr_exec_feed feed[2] = {{0, &z}, {0, &z}}, late = {5, &z};
    const int32_t out_of_range = 9, three = 3;
    struct {
        vr_shape l;
        int32_t first, last;
        const vr_exec_feed *feed;
        int32_t feeds;
        const int32_t *want;
        const char *text;
    } row[] = {
        {l, 0, 3, feed, 1, &three, "within 1"}, {l, 3, 2, feed, 1, &three, "within 1"},
        {l, 1, 100000, feed, 1, &three, "within 1"}, {l, 1, 3, feed, 2, &three, "fed twice"},
        {l, 1, 3, &late, 1, &three, "before operation 1"}, {l, 1, 3, feed, 0, &three, "neither fed nor made"},
        {l, 1, 3, feed, 1, &out_of_range, "want 0 to 3"}, {l, 4, 6, feed, 1, &three, "neither fed nor made"},
        {other, 1, 3, feed, 1, &three, "want 48 elements"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        vr_status s = vr_exec_range(m->program, row[i].l, row[i].first, row[i].last, row[i].feed, row[i].feeds,
                                    row[i].want, 1, NULL, &out, &err);
        cr_assert_neq(s, VR_OK, "row %zu is accepted", i);
        cr_assert(strstr(err.text, row[i].text), "row %zu: want '%s' in '%s'", i, row[i].text, err.text);
        cr_assert_null(out.data);
    }
    vr_tensor_free(&z);
    vr_model_close(m);
}
