/* vaeref/exec.h: run a program on the CPU under an arithmetic policy.
 *
 * Under `golden` this defines the correct output, bit for bit (clauses N1, N4):
 * the result does not depend on compiler, optimisation, instruction set or
 * thread count.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_EXEC_H
#define VAEREF_EXEC_H

#include "vaeref/core.h"
#include "vaeref/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Arithmetic policies (clause N1). GOLDEN: f32 storage, f64 accumulation,
 * fixed order, one rounding per operation. TRUTH: f64 throughout. F32, F16,
 * BF16: that storage, f32 accumulation in the given order. */
#define VR_POLICY_MAP(X)         \
    X(VR_POLICY_GOLDEN, "golden") \
    X(VR_POLICY_TRUTH, "truth")   \
    X(VR_POLICY_F32, "f32")       \
    X(VR_POLICY_F16, "f16")       \
    X(VR_POLICY_BF16, "bf16")
typedef enum vr_policy {
#define VR_X(name, text) name,
    VR_POLICY_MAP(VR_X)
#undef VR_X
    VR_POLICY_COUNT
} vr_policy;

/* Legitimate summation orders of the f32-accumulating policies (clause N6). */
#define VR_ORDER_MAP(X)           \
    X(VR_ORDER_SEQ, "seq")         \
    X(VR_ORDER_LANES8, "lanes8")   \
    X(VR_ORDER_LANES32, "lanes32") \
    X(VR_ORDER_PAIRWISE, "pairwise") \
    X(VR_ORDER_KBLOCK64, "kblock64")
typedef enum vr_order {
#define VR_X(name, text) name,
    VR_ORDER_MAP(VR_X)
#undef VR_X
    VR_ORDER_COUNT
} vr_order;

VR_API const char *vr_policy_name(vr_policy p);
VR_API bool vr_policy_parse(const char *s, vr_policy *out); /* false: unknown */
VR_API const char *vr_order_name(vr_order o);
VR_API bool vr_order_parse(const char *s, vr_order *out);

/* First value (in execution order) that holds a NaN or an infinity. */
typedef struct vr_nonfinite {
    int32_t op;                  /* -1: everything was finite */
    int64_t nan_count, inf_count;/* in that value */
    int64_t first_index;         /* flat NCTHW index of the first one */
} vr_nonfinite;

typedef struct vr_exec_stats {
    vr_nonfinite nonfinite;
    vr_pool_stats pool;
    uint64_t weight_scratch_bytes; /* largest packed weights of one operation, outside the pool */
    double seconds;                /* wall clock of the run */
    int32_t threads;               /* used */
    const char *isa;               /* instruction set of the kernels used, e.g. "x86-64-v4" */
    double *op_seconds;            /* in: the caller's array of op_count, or NULL; set it
                                      before the call, the rest is written */
} vr_exec_stats;

typedef struct vr_exec_options {
    vr_policy policy;
    vr_order order;                /* ignored by golden and truth */
    int32_t threads;               /* 0: OMP_NUM_THREADS or the CPUs this process may use */
    uint64_t memory_limit;         /* bytes of activations; 0 = none */
    /* Every value as it is made: F32 (F64 under truth), NC[T]HW, valid during
     * the call only. A status other than VR_OK stops the run with it. */
    vr_status (*on_value)(void *ctx, int32_t op, const char *tap, const vr_tensor *value,
                          vr_error *err);
    /* done and total in multiply-adds; return false to cancel. */
    bool (*on_progress)(void *ctx, int64_t done, int64_t total);
    void *ctx;
} vr_exec_options;

/* Runs the whole program. latent: F64, F32, F16 or BF16, rank 4 (NCHW) or 5
 * (NCTHW), channels as the program's input. out: rank of the latent, F32 (F64
 * under truth), owned by the caller (vr_tensor_free). Non-finite values do not
 * stop the run; they are reported in stats->nonfinite (stats may be NULL only
 * if the caller does not care). opt NULL: golden, all threads. */
VR_API vr_status vr_exec_run(const vr_program *p, const vr_tensor *latent,
                             const vr_exec_options *opt, vr_tensor *out, vr_exec_stats *stats,
                             vr_error *err);

/* One value given to a range: F64, F32, F16 or BF16, as many elements as the
 * value has, NC[T]HW, dense. */
typedef struct vr_exec_feed {
    int32_t value;
    const vr_tensor *tensor;
} vr_exec_feed;

/* Runs operations first..last (inclusive, first >= 1) of the program for a latent
 * of that shape, from fed values, and hands out the values wanted (made in the
 * range, or fed) in out[wants], owned by the caller: F32, F64 under truth. Of
 * opt, policy, order and threads count. One operation: first = last, its inputs
 * fed. VR_E_ARGUMENT when something read is neither fed nor made. */
VR_API vr_status vr_exec_range(const vr_program *p, vr_shape latent, int32_t first, int32_t last,
                               const vr_exec_feed *feed, int32_t feeds, const int32_t *want, int32_t wants,
                               const vr_exec_options *opt, vr_tensor *out, vr_error *err);

/* Maps decoder output to 8-bit RGB (clause F4): range -> [0,1], clamp, times
 * 255, round half to even; +inf 255, -inf 0. Returns the number of NaN values
 * (written as 0; the caller decides whether that is an error). dst: [h][w][c],
 * src: one sample [c][h][w]. */
VR_API int64_t vr_to_u8(const float *src, int64_t c, int64_t h, int64_t w, double range_lo,
                        double range_hi, uint8_t *dst);

/* The instruction set the golden kernels will use ("portable", "x86-64-v2",
 * "-v3", "-v4"), honouring VAEREF_ISA; VR_E_ARGUMENT when that names one this
 * machine lacks or that is unknown. */
VR_API vr_status vr_exec_isa(const char **name, vr_error *err);

#ifdef __cplusplus
}
#endif
#endif
