/* What the files of ref/program/ share with each other and nobody else.
 * A finished program keeps these: every input number is smaller than the
 * operation's own, every value but the output is read, so the output is the
 * value of the last operation and every value lies on a path to it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_PROGRAM_INTERNAL_H
#define VAEREF_PROGRAM_INTERNAL_H

#include "vaeref/program.h"

/* Bounds that keep the arithmetic on extents inside int64_t. */
#define VR_PROG_MAX_ELEMENTS (INT64_C(1) << 46)
#define VR_PROG_MAX_KERNEL (INT64_C(1) << 20) /* kernel extent, padding */
#define VR_PROG_MAX_FACTOR (INT64_C(1) << 16) /* one upsampling or unpacking */
#define VR_PROG_MAX_SCALE (INT64_C(1) << 20)  /* all of them together */

struct vr_prog_block;

struct vr_program_memory {
    struct vr_prog_block *blocks; /* everything the program owns but the two lists */
    int32_t op_capacity, weight_capacity;
    bool finished;
    vr_error failure; /* the first one; status VR_OK while there is none */
};

/* How many of in[] an operation of this kind uses. */
int32_t vr_prog_inputs(vr_op_kind k);

/* True when in[j] is a value that no earlier in[] of the operation names. */
bool vr_prog_distinct_input(const vr_op *op, int32_t j);

/* What the operation multiplies rows and columns by. */
void vr_prog_factors(const vr_op *op, int64_t *t, int64_t *h, int64_t *w);

/* Fills *err with "kind 'tap': text". Returns s. */
vr_status vr_prog_fail(const vr_op *op, vr_error *err, vr_status s, const char *fmt, ...)
    VR_PRINTF(4, 5);

/* The checks of vr_program_finish; p->output and the range are set. */
vr_status vr_prog_validate(const vr_program *p, vr_error *err);

/* VR_E_ARGUMENT unless p is a finished program. */
vr_status vr_prog_need_finished(const vr_program *p, vr_error *err);

#endif
