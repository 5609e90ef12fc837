/* Backends that misbehave as processes, or with memory. SPDX-License-Identifier: MIT */
#include "mutants/mutants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool holds(const ref_job *j, const vp_run_args *a, vr_op_kind k)
{
    for (int32_t i = a->first; i <= a->last; i++)
        if (j->program->op[i].kind == k)
            return true;
    return false;
}

static int32_t crash(ref_job *j, const vp_run_args *a)
{
    if (holds(j, a, VR_OP_ATTENTION))
        abort();
    return VP_OK;
}

static int32_t hang(ref_job *j, const vp_run_args *a)
{
    while (holds(j, a, VR_OP_ATTENTION))
        sleep(1000);
    return VP_OK;
}

/* 4 GiB that are never given back. */
static int32_t leak(ref_job *j, const vp_run_args *a)
{
    if (!holds(j, a, VR_OP_TANH_CLAMP))
        return VP_OK;
    for (int k = 0; k < 64; k++) {
        char *p = mmap(NULL, (size_t)64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            abort();
        p[0] = 1; /* a page of each: the limit is on address space */
    }
    return VP_OK;
}

static int32_t chatter(ref_job *j, const vp_run_args *a)
{
    (void)j;
    (void)a;
    for (int k = 0; k < 100; k++)
        printf("\001\002\003{\"verb\": \"no\"}garbage %d\n", k);
    fflush(stdout);
    return VP_OK;
}

/* Forks; the parent, which was asked, ends. */
static int32_t fork_and_exit(ref_job *j, const vp_run_args *a)
{
    if (holds(j, a, VR_OP_ATTENTION) && fork() > 0)
        _exit(0);
    return VP_OK;
}

static int32_t fails_once(ref_job *j, const vp_run_args *a)
{
    static bool done;
    if (!done && holds(j, a, VR_OP_RELU)) {
        done = true;
        return VP_E_INTERNAL;
    }
    return VP_OK;
}

static int32_t refuses_bf16(ref_job *j, const vp_job_desc *d)
{
    (void)j;
    return d->storage == VP_BF16 ? VP_E_UNSUPPORTED : VP_OK;
}

/* ---- memory of the output -------------------------------------------------------------------- */

static size_t element(const vp_tensor *t)
{
    return t->dtype == VP_F64 ? 8 : t->dtype == VP_F32 ? 4 : 2;
}

static int32_t past_the_end(ref_job *j, const vp_run_args *a)
{
    (void)j;
    const vp_tensor *t = &vp_want_at(a, 0)->tensor;
    memset((char *)t->data + t->bytes, 0x11, element(t));
    return VP_OK;
}

static int32_t far_past_the_end(ref_job *j, const vp_run_args *a)
{
    (void)j;
    const vp_tensor *t = &vp_want_at(a, 0)->tensor;
    memset((char *)t->data + t->bytes + 1000, 0x11, 64);
    return VP_OK;
}

static int32_t before_the_start(ref_job *j, const vp_run_args *a)
{
    (void)j;
    memset((char *)vp_want_at(a, 0)->tensor.data - 4, 0x11, 4);
    return VP_OK;
}

/* The gaps between rows are written as if the tensor were dense. */
static int32_t writes_gaps(ref_job *j, const vp_run_args *a)
{
    (void)j;
    const vp_tensor *t = &vp_want_at(a, 0)->tensor;
    if (t->stride[3] > t->dim[4] && t->dim[3] * t->dim[1] > 1)
        memset((char *)t->data + (size_t)t->dim[4] * element(t), 0x11, element(t));
    return VP_OK;
}

static int32_t changes_input(ref_job *j, const vp_run_args *a)
{
    (void)j;
    memset(vp_feed_at(a, 0)->tensor.data, 0, element(&vp_feed_at(a, 0)->tensor));
    ((unsigned char *)vp_feed_at(a, 0)->tensor.data)[0] = 1;
    return VP_OK;
}

/* The output of the first run of a job, for every run of it. */
static int32_t cached_result(ref_job *j, const vp_run_args *a)
{
    const vp_tensor *t = &vp_want_at(a, 0)->tensor;
    int64_t n = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        n *= t->dim[d];
    const size_t e = element(t), row = (size_t)t->dim[4] * e, rows = (size_t)(n / t->dim[4]), gap = (size_t)t->stride[3] * e;
    const bool first = !j->own;
    if (first)
        j->own = malloc((size_t)n * e);
    for (size_t r = 0; j->own && r < rows; r++) {
        char *there = (char *)t->data + r * gap, *kept = (char *)j->own + r * row;
        memcpy(first ? kept : there, first ? there : kept, row);
    }
    return VP_OK;
}

static unsigned random_state = 12345;

/* A race: now and then the last bits of one element differ from run to run. */
static int32_t race(ref_job *j, const vp_run_args *a)
{
    (void)j;
    const vp_tensor *t = &vp_want_at(a, 0)->tensor;
    random_state = random_state * 1664525u + 1013904223u;
    ((unsigned char *)t->data)[0] ^= (unsigned char)(random_state >> 30 & 1);
    return VP_OK;
}

/* Keeps what the output held before the run, to put it back: unwritten(_tail). */
static int32_t keep_before(ref_job *j, const vp_run_args *a)
{
    const vp_tensor *t = &vp_want_at(a, 0)->tensor;
    free(j->own);
    j->own = malloc(t->bytes);
    if (j->own)
        memcpy(j->own, t->data, t->bytes);
    return VP_OK;
}

static int32_t unwritten(ref_job *j, const vp_run_args *a)
{
    const vp_tensor *t = &vp_want_at(a, 0)->tensor;
    if (j->own)
        memcpy(t->data, j->own, t->bytes);
    return VP_OK;
}

static int32_t unwritten_tail(ref_job *j, const vp_run_args *a)
{
    const vp_tensor *t = &vp_want_at(a, 0)->tensor;
    const size_t tail = element(t) * (t->dim[4] < 3 ? (size_t)t->dim[4] : 3);
    if (j->own)
        memcpy((char *)t->data + t->bytes - tail, (char *)j->own + t->bytes - tail, tail);
    return VP_OK;
}

static int32_t doubled(ref_job *j, const vp_run_args *a)
{
    const vp_tensor *t = &vp_want_at(a, 0)->tensor;
    if (a->last != j->program->output || t->dtype != VP_F32)
        return VP_OK;
    for (uint64_t k = 0; k < t->bytes / 4; k++)
        if ((int64_t)k % t->stride[3] < t->dim[4])
            ((float *)t->data)[k] *= 2;
    return VP_OK;
}

#define BEFORE(fn, status, glob, text) {{.name = #fn, .before_run = fn}, status, "L1", glob, NULL, text}
#define AFTER(fn, level, glob, text) {{.name = #fn, .after_run = fn}, "fail", level, glob, NULL, text}
const mutant vm_process[] = {
    BEFORE(crash, "crash", "op.[ar]*.f32.*", "aborts in attention"),
    BEFORE(hang, "timeout", "op.[ar]*.f32.*", "never returns from attention"),
    BEFORE(leak, "crash", "op.[tr]*.f32.*", "takes 4 GiB and dies of it"),
    BEFORE(fork_and_exit, "crash", "op.[ar]*.f32.*", "forks, and the process that was asked ends"),
    BEFORE(fails_once, "fail", "op.relu.*", "an error in its first run"),
    {{.name = "refuses_bf16", .on_prepare = refuses_bf16}, "fail", "L0", "abi.claims", NULL, "claims bf16 and refuses it"},
    AFTER(past_the_end, "L1", "op.relu.*", "writes one element past the end"),
    AFTER(far_past_the_end, "L1", "op.relu.*", "writes 64 bytes far past the end"),
    AFTER(before_the_start, "L1", "op.relu.*", "writes before the start"),
    AFTER(writes_gaps, "L1", "op.relu.*", "writes the gaps of a strided output"),
    AFTER(changes_input, "L1", "op.relu.*", "uses its input as scratch"),
    AFTER(cached_result, "L1", "op.silu.*", "a result kept by shape"),
    AFTER(race, "L7", "stress.repeat", "other bits from run to run"),
    {{.name = "unwritten", .before_run = keep_before, .after_run = unwritten}, "fail", "L1", "op.relu.*", NULL, "writes nothing and says all is well"},
    {{.name = "unwritten_tail", .before_run = keep_before, .after_run = unwritten_tail}, "fail", "L1", "op.relu.*", NULL, "last elements not written"},
    AFTER(doubled, "L3", "decode.tae*.f32.*", "output in another range"),
};
const int32_t vm_process_count = sizeof vm_process / sizeof *vm_process;

/* Harmless, and so an honest variant: see honest.c. */
int32_t vm_chatter(ref_job *j, const vp_run_args *a);
int32_t vm_chatter(ref_job *j, const vp_run_args *a)
{
    return chatter(j, a);
}
