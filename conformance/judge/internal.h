/* What the judges share: facts about element types, reading tensors as f64,
 * the rule for non-finite values, results. SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_JUDGE_INTERNAL_H
#define VAEPROOF_JUDGE_INTERNAL_H

#include <math.h>

#include "judge/judge.h"

enum { VJ_BLOCK = 1024 }; /* elements read at a time */

typedef struct vj_type {
    vr_dtype dtype;
    int precision;      /* bits of the significand, the hidden one included */
    int emin;           /* exponent of the smallest normal */
    double u;           /* unit roundoff, 2^-precision */
    double smallest_normal, smallest_subnormal;
} vj_type;

/* NULL unless F64, F32, F16 or BF16. */
const vj_type *vj_type_of(vr_dtype t);
/* x rounded once to the type, as f64 (may be infinite). */
double vj_round(vr_dtype t, double x);

/* ---- checks; each names what it refuses ---- */
vr_status vj_check_rules(const vj_rules *r, vr_error *err);
vr_status vj_check_float(const char *what, const vr_tensor *t, vr_error *err);
vr_status vj_check_f64(const char *what, const vr_tensor *t, vr_error *err);
vr_status vj_check_shape(const char *what, const vr_tensor *t, const vr_tensor *like, vr_error *err);
/* 1..VJ_MAX_IDEALS float tensors of like's shape. */
vr_status vj_check_ideals(const vr_tensor *ideals, int32_t n, const vr_tensor *like, vr_error *err);
/* Every border of the grid lies inside h x w pixels. */
vr_status vj_check_grid(const vr_tile_grid *g, int64_t h, int64_t w, vr_error *err);
/* Elements, at least one. */
vr_status vj_count(const char *what, const vr_tensor *t, int64_t *count, vr_error *err);

/* ---- reading ---- */

/* dst[i] = t[first + i] for i < n, exactly (integers beyond 2^53 rounded). */
vr_status vj_read(const vr_tensor *t, int64_t first, int64_t n, double *dst, vr_error *err);
double vj_at(const vr_tensor *t, int64_t index);
/* A copy as F32, owned by the caller. */
vr_status vj_as_f32(const vr_tensor *t, vr_tensor *out, vr_error *err);

/* One F32 tensor [n][c][h][w] as 8-bit [n][h][w][c] by vr_to_u8; free(). */
vr_status vj_as_u8(const vr_tensor *f32, double range_lo, double range_hi, uint8_t **out, vr_error *err);
vr_status vj_check_picture(const char *what, const vr_tensor *t, double range_lo, double range_hi, vr_error *err);

/* Non-finite values first (J3): do both have an error to measure, is the value
 * the same non-finite one, or do they contradict? */
typedef enum vj_pair { VJ_MEASURE, VJ_SAME, VJ_CONTRADICT } vj_pair;
static inline vj_pair vj_pair_of(double got, double truth)
{
    if (isfinite(truth))
        return isfinite(got) ? VJ_MEASURE : VJ_CONTRADICT;
    if (isnan(truth))
        return isnan(got) ? VJ_SAME : VJ_CONTRADICT;
    return got == truth ? VJ_SAME : VJ_CONTRADICT;
}

/* |got - truth|; 0 where the contract lets a subnormal become 0. */
static inline double vj_error_of(double got, double truth, const vj_rules *r, const vj_type *storage)
{
    if (r->flush_subnormals && got == 0.0 && fabs(truth) < storage->smallest_normal)
        return 0.0;
    return fabs(got - truth);
}

/* ---- results ---- */
void vj_start(vj_result *r); /* all numbers NaN, counts 0, pass */
void vj_verdict(vj_result *r, vj_status s, const char *fmt, ...) VR_PRINTF(3, 4);
/* Counts an element that breaks a rule of its own. */
void vj_count_wrong(vj_result *r, int64_t index);
/* Keeps the five largest ratios; zero and NaN are not kept. */
void vj_keep_worst(vj_result *r, int64_t index, double truth, double got, double ratio);
/* "[0,1,3,5]"; returns buf. */
char *vj_place(const vr_tensor *t, int64_t index, char *buf, size_t size);
enum { VJ_PLACE = 96 };

/* Noise of the honest orders: shared by the numeric and the 8-bit judge (J4). */
typedef struct vj_tally {
    int64_t measured, zeros;            /* elements with finite truth; of those, truth 0 */
    double truth_sq, error_sq, error_max;
    double ideal_sq[VJ_MAX_IDEALS], ideal_max[VJ_MAX_IDEALS];
    int64_t bad_ideal_at, over_ideal_at; /* an ideal contradicts the truth, passes its cap; -1: none */
    int32_t bad_ideal, over_ideal;
    int64_t contradictions, first_contradiction;
    int64_t over_cap;
    int64_t worst_cap_at;
    double worst_cap;                    /* largest error / cap */
} vj_tally;

/* got may be NULL: the ideals alone. Fills tally and the numbers of r->numeric. */
vr_status vj_tally_make(const vr_tensor *got, const vr_tensor *truth, const vr_tensor *ideals, int32_t n_ideals,
                        const vj_rules *rules, const vr_tensor *cap, vj_tally *t, vj_result *r, vr_error *err);
/* The rules of J6 that concern the truth and the ideals. True: r holds the verdict. */
bool vj_mistrust_ideals(const vr_tensor *truth, const vr_tensor *ideals, const vj_tally *t, vj_result *r);
bool vj_mistrust_statistics(const vj_tally *t, const vj_rules *rules, int32_t n_ideals, vj_result *r);
/* Share of zeros above what is explained + 30 %. */
bool vj_mistrust_zeros(double share, const vj_rules *rules, const char *what, vj_result *r);

#endif
