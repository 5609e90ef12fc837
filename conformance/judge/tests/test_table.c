/* The measurements the limits of J2 stand on, made again: dot products of K
 * terms in honest and faulty ways (J4).
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>

#include "judgecase.h"

TestSuite(judge_table, .fini = release_tensors);

/* rms(error) / rms(truth) */
static double relative(const vr_tensor *got, const vr_tensor *truth, int64_t n)
{
    double e = 0.0, t = 0.0;
    for (int64_t i = 0; i < n; i++) {
        e += pow(get(got, i) - get(truth, i), 2.0);
        t += pow(get(truth, i), 2.0);
    }
    return sqrt(e / t);
}

static const struct row {
    int64_t terms;
    double seq, lanes8, lanes32, pairwise, f16, bf16, acc_f16;
} table[] = {
    {288, 2.9e-7, 1.1e-7, 7.6e-8, 7.3e-8, 2.04e-4, 1.63e-3, 2.5e-3},
    {1152, 6.0e-7, 2.1e-7, 1.2e-7, 8.4e-8, 2.07e-4, 1.62e-3, 4.7e-3},
    {4608, 1.2e-6, 4.3e-7, 2.2e-7, 9.0e-8, 2.03e-4, 1.60e-3, 9.9e-3},
};

static void near(const struct row *r, const char *what, double is, double want)
{
    cr_expect(fabs(is / want - 1.0) < 0.2, "K = %lld, %s: %.3g, published %.3g", (long long)r->terms, what, is, want);
}

Test(judge_table, noise_of_the_orders_is_what_was_measured)
{
    for (int i = 0; i < 3; i++) {
        const struct row *r = &table[i];
        const int64_t n = 20 * 40;
        dots d = make_dots(r->terms, 20, 40, false, VR_F32, 5);
        near(r, "sequential", relative(&d.ideal[SUM_SEQ], &d.truth, n), r->seq);
        near(r, "8 lanes", relative(&d.ideal[SUM_LANES8], &d.truth, n), r->lanes8);
        near(r, "32 lanes", relative(&d.ideal[SUM_LANES32], &d.truth, n), r->lanes32);
        near(r, "pairwise", relative(&d.ideal[SUM_PAIRWISE], &d.truth, n), r->pairwise);
        const vr_tensor f16 = sum_dots(&d, SUM_LANES16, VR_F16), bf16 = sum_dots(&d, SUM_LANES16, VR_BF16);
        const vr_tensor acc = sum_dots(&d, SUM_ACC_F16, VR_F16);
        near(r, "f16 storage", relative(&f16, &d.truth, n), r->f16);
        near(r, "bf16 storage", relative(&bf16, &d.truth, n), r->bf16);
        near(r, "f16 accumulation", relative(&acc, &d.truth, n), r->acc_f16);
    }
}

/* Every honest way must pass and every faulty one fail, with its cap and without. */
static void judge_all(int64_t terms, vr_dtype storage, bool positive, uint64_t seed, const bool faulty[SUM_WAYS])
{
    dots d = make_dots(terms, 20, 20, positive, storage, seed);
    const vj_rules rules = rules_of(storage, VR_F32, VJ_LEVEL_OP);
    vr_tensor cap;
    vj_result r;
    cr_assert_eq(vj_cap_dot(terms, &d.magnitude, &d.truth, &rules, &cap, NULL), VR_OK);
    for (int way = 0; way < SUM_WAYS; way++) {
        if (way >= SUM_HONEST && !faulty[way])
            continue;
        const vr_tensor got = sum_dots(&d, (sum_way)way, storage);
        for (int capped = 0; capped < 2; capped++) {
            cr_assert_eq(vj_numeric(&got, &d.truth, d.ideal, SUM_IDEALS, &rules, capped ? &cap : NULL, &r, NULL),
                         VR_OK);
            const vj_status want = way < SUM_HONEST ? VJ_PASS : VJ_FAIL;
            cr_expect(r.status == want, "K = %lld %s, %s: %s, %s", (long long)terms, vr_dtype_name(storage),
                      sum_name[way], vj_status_name(r.status), r.reason);
        }
    }
    vr_tensor_free(&cap);
}

Test(judge_table, honest_orders_pass_and_faults_fail)
{
    static const int64_t terms[] = {288, 1152, 4608};
    static const bool f32[SUM_WAYS] = {[SUM_ACC_F16] = true, [SUM_ACC_BF16] = true, [SUM_IN_BF16] = true,
                                       [SUM_MISSING] = true}; /* f16 numbers fit tf32: see below */
    static const bool f16[SUM_WAYS] = {[SUM_ACC_F16] = true, [SUM_ACC_BF16] = true, [SUM_IN_BF16] = true,
                                       [SUM_MISSING] = true};
    static const bool bf16[SUM_WAYS] = {[SUM_ACC_BF16] = true, [SUM_IN_BF16] = true, [SUM_MISSING] = true};
    for (int i = 0; i < 3; i++) {
        judge_all(terms[i], VR_F32, false, 7 + (uint64_t)i, f32);
        judge_all(terms[i], VR_F16, false, 7 + (uint64_t)i, f16);
        judge_all(terms[i], VR_BF16, false, 7 + (uint64_t)i, bf16);
    }
}

Test(judge_table, all_positive_terms_stay_under_their_caps)
{
    static const bool none[SUM_WAYS] = {false};
    judge_all(288, VR_F32, true, 11, none);
    judge_all(4608, VR_F32, true, 11, none);
}

Test(judge_table, f16_accumulation_stands_out_by_the_published_factor)
{
    dots d = make_dots(288, 20, 40, false, VR_F16, 3);
    const vj_rules rules = rules_of(VR_F16, VR_F32, VJ_LEVEL_OP);
    const vr_tensor bad = sum_dots(&d, SUM_ACC_F16, VR_F16), good = sum_dots(&d, SUM_FUSED, VR_F16);
    vj_result r;
    cr_assert_eq(vj_numeric(&bad, &d.truth, d.ideal, SUM_IDEALS, &rules, NULL, &r, NULL), VR_OK);
    cr_assert(r.status == VJ_FAIL && r.numeric.ratio_rms > 10.0 && r.numeric.ratio_rms < 14.0, "%.2f",
              r.numeric.ratio_rms);
    cr_assert_eq(vj_numeric(&good, &d.truth, d.ideal, SUM_IDEALS, &rules, NULL, &r, NULL), VR_OK);
    cr_assert(r.status == VJ_PASS && fabs(r.numeric.ratio_rms - 1.0) < 0.01, "%.4f", r.numeric.ratio_rms);
}

Test(judge_table, f32_inputs_cut_to_tf32_fail)
{
    dots d = make_dots(1152, 20, 20, false, VR_F32, 9);
    vr_random_fill(d.a, d.rows * d.terms, VR_NORMAL, 9, 1, 0); /* full f32 numbers */
    for (int64_t i = 0; i < 400; i++) {
        double sum = 0.0;
        for (int64_t k = 0; k < d.terms; k++)
            sum += (double)d.a[i / 20 * d.terms + k] * (double)d.b[i % 20 * d.terms + k];
        put(&d.truth, i, sum);
    }
    vr_tensor ideal[2] = {sum_dots(&d, SUM_SEQ, VR_F32), sum_dots(&d, SUM_PAIRWISE, VR_F32)};
    const vr_tensor bad = sum_dots(&d, SUM_IN_TF32, VR_F32), good = sum_dots(&d, SUM_LANES16, VR_F32);
    const vj_rules rules = rules_of(VR_F32, VR_F32, VJ_LEVEL_OP);
    vj_result r;
    cr_assert_eq(vj_numeric(&bad, &d.truth, ideal, 2, &rules, NULL, &r, NULL), VR_OK);
    cr_assert(r.status == VJ_FAIL && r.numeric.ratio_rms > 100.0, "%s", r.reason);
    cr_assert_eq(vj_numeric(&good, &d.truth, ideal, 2, &rules, NULL, &r, NULL), VR_OK);
    cr_assert_eq(r.status, VJ_PASS, "%s", r.reason);
}

Test(judge_table, honest_orders_pass_under_200_seeds)
{
    static const vr_dtype storage[] = {VR_F32, VR_F16, VR_BF16};
    double most_rms[3] = {0}, most_max[3] = {0};
    for (uint64_t seed = 0; seed < 200; seed++)
        for (int s = 0; s < 3; s++) {
            dots d = make_dots(96, 16, 16, false, storage[s], 1000 + seed);
            const vj_rules rules = rules_of(storage[s], VR_F32, VJ_LEVEL_OP);
            vr_tensor cap;
            vj_result r;
            cr_assert_eq(vj_cap_dot(d.terms, &d.magnitude, &d.truth, &rules, &cap, NULL), VR_OK);
            for (int way = SUM_IDEALS; way < SUM_HONEST; way++) {
                const vr_tensor got = sum_dots(&d, (sum_way)way, storage[s]);
                cr_assert_eq(vj_numeric(&got, &d.truth, d.ideal, SUM_IDEALS, &rules, &cap, &r, NULL), VR_OK);
                cr_expect(r.status == VJ_PASS, "seed %d, %s %s: %s", (int)seed, vr_dtype_name(storage[s]),
                          sum_name[way], r.reason);
                most_rms[s] = fmax(most_rms[s], r.numeric.ratio_rms);
                most_max[s] = fmax(most_max[s], r.numeric.ratio_max);
            }
            vr_tensor_free(&cap);
            release_tensors();
        }
    for (int s = 0; s < 3; s++)
        cr_log_info("%s: largest ratio of 200 seeds rms %.3f, max %.3f", vr_dtype_name(storage[s]), most_rms[s],
                    most_max[s]);
}
