/* Material for the judge's tests: tensors, and dot products summed in honest and
 * in faulty ways. SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_JUDGE_TESTS_JUDGECASE_H
#define VAEPROOF_JUDGE_TESTS_JUDGECASE_H

#include "judge/judge.h"
#include "vaeref/exec.h"

/* A tensor of the running test, all zero; freed by release_tensors. dims end with -1. */
vr_tensor make_tensor(vr_dtype t, ...);
/* A copy in another type, released likewise. */
vr_tensor copy_as(vr_dtype t, const vr_tensor *x);
/* Takes over a tensor that some function made. */
vr_tensor keep(vr_tensor t);
void release_tensors(void);

double get(const vr_tensor *t, int64_t i);
void put(vr_tensor *t, int64_t i, double x); /* rounded once to the type */

vj_rules rules_of(vr_dtype storage, vr_dtype accumulate, vj_level level);

/* Ways of forming sum a[k]*b[k]. The first five are the reference's orders. */
typedef enum sum_way {
    SUM_SEQ, SUM_LANES8, SUM_LANES32, SUM_PAIRWISE, SUM_KBLOCK64, SUM_IDEALS,
    SUM_REVERSED = SUM_IDEALS, SUM_LANES16, SUM_KBLOCK128, SUM_FUSED, SUM_HONEST,
    SUM_ACC_F16 = SUM_HONEST, SUM_ACC_BF16, SUM_IN_TF32, SUM_IN_BF16, SUM_MISSING, SUM_WAYS
} sum_way;
extern const char *const sum_name[SUM_WAYS];

/* rows x columns dot products of `terms` near-normal f16 numbers; released with the tensors. */
typedef struct dots {
    int64_t terms, rows, columns;
    float *a, *b;               /* [rows][terms], [columns][terms] */
    vr_tensor truth, magnitude; /* F64 [rows][columns] */
    vr_tensor ideal[SUM_IDEALS];/* of the storage type */
} dots;
/* positive: all terms > 0, the bad case of long chains. */
dots make_dots(int64_t terms, int64_t rows, int64_t columns, bool positive, vr_dtype storage, uint64_t seed);
/* The products summed in some way, stored as `storage`. */
vr_tensor sum_dots(const dots *d, sum_way way, vr_dtype storage);

#endif
