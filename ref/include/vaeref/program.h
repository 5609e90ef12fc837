/* vaeref/program.h: a decoder as a flat list of primitive operations.
 *
 * A program is built once (by ref/model/) and then only read: by the executor,
 * the planners, backends, the judge and the cost tables. It knows no spatial
 * size: shapes follow from the latent shape by vr_program_shapes. Values are
 * numbered; value i is produced by operation i, and operation 0 is the input.
 * The list is in execution order. Specification: docs/spec/arithmetic.md N4,
 * docs/architecture.md.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_PROGRAM_H
#define VAEREF_PROGRAM_H

#include "vaeref/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Shape of a value: batch, channels, frames, rows, columns. Pictures have t = 1.
 * In memory NCTHW, which for t = 1 is NCHW. */
typedef struct vr_shape {
    int64_t n, c, t, h, w;
} vr_shape;

/* Elements; VR_E_SHAPE when an extent is < 1 or the product passes 2^46. */
VR_API vr_status vr_shape_count(vr_shape s, int64_t *count, vr_error *err);

/* Operation kinds. Formulas: clause N4. `local` operations need a bounded
 * neighbourhood; `global` ones need their whole input (statistics, attention). */
#define VR_OP_MAP(X)                                                      \
    X(VR_OP_INPUT, "input")                 /* the latent */              \
    X(VR_OP_CONV2D, "conv2d")               /* stride 1, zero padding */  \
    X(VR_OP_GROUP_NORM, "group_norm")       /* global */                  \
    X(VR_OP_SILU, "silu")                   /* x * sigmoid(x) */          \
    X(VR_OP_RELU, "relu")                                                 \
    X(VR_OP_TANH_CLAMP, "tanh_clamp")       /* limit * tanh(x / limit) */ \
    X(VR_OP_UPSAMPLE_NEAREST, "upsample_nearest")                         \
    X(VR_OP_ATTENTION, "attention")         /* global; single head */     \
    X(VR_OP_ADD, "add")                                                   \
    X(VR_OP_SCALE_SHIFT, "scale_shift")     /* x * scale[c] + shift[c] */ \
    X(VR_OP_UNPACK, "unpack")               /* channels to 2-D positions */ \
    X(VR_OP_CLAMP, "clamp")                 /* min(max(x, lo), hi) */

typedef enum vr_op_kind {
#define VR_X(name, text) name,
    VR_OP_MAP(VR_X)
#undef VR_X
    VR_OP_KIND_COUNT
} vr_op_kind;

VR_API const char *vr_op_name(vr_op_kind k); /* "conv2d"; "?" if unknown */

/* A weight as it lies in its file; converted when an operation needs it. */
typedef struct vr_weight {
    const char *name;        /* canonical (diffusers) name, owned by the program */
    const char *source_name; /* name in the file it came from, owned by the program */
    vr_dtype dtype;          /* a float type */
    int32_t rank;
    int64_t dim[5];          /* as the operation wants it, e.g. [co][ci][kh][kw] */
    int64_t count;           /* product of dim */
    const void *data;        /* NOT necessarily aligned; owned by the model */
} vr_weight;

typedef struct vr_op {
    vr_op_kind kind;
    const char *tap;      /* stable dotted id of the value it makes, owned by the program */
    int32_t in[3];        /* value numbers; -1 = unused. Attention: q, k, v */
    int32_t weight[2];    /* indices into the weight list; -1 = absent */
    int64_t channels;     /* channels of the value it makes */
    union {
        struct {          /* weight[0] [co][ci][kh][kw], weight[1] bias [co] */
            int64_t kh, kw;
            int64_t pad_top, pad_bottom, pad_left, pad_right;
        } conv2d;
        struct {          /* weight[0] gamma [c], weight[1] beta [c] */
            int64_t groups;
            double eps;
        } group_norm;
        struct {
            double limit;
        } tanh_clamp;
        struct {
            int64_t factor_t, factor_h, factor_w;
        } upsample;
        struct {
            double scale; /* of the scores: channels^-1/2 */
        } attention;
        struct {          /* arrays of `channels` doubles, owned by the program */
            const double *scale, *shift;
        } scale_shift;
        struct {          /* channel (c*fh + i)*fw + j -> row y*fh+i, column x*fw+j */
            int64_t fh, fw;
        } unpack;
        struct {
            double lo, hi;
        } clamp;
    } p;
} vr_op;

typedef struct vr_program {
    int32_t op_count;
    vr_op *op;
    int32_t weight_count;
    vr_weight *weight;
    int32_t output;          /* value that is the picture */
    double range_lo, range_hi; /* what black and white are in the output: -1..1 or 0..1 */
    char family[32];         /* e.g. "kl", "tiny"; for people, never for decisions */
    struct vr_program_memory *memory; /* names, arrays; private */
} vr_program;

/* ---- building (used by ref/model/ and by tests) ------------------------- */

/* An empty program whose value 0 is a latent of `channels` channels, tap
 * "latent". The builder is sticky: after the first failure every call returns
 * -1 and vr_program_finish reports it. NULL (no memory) is taken by every
 * builder call likewise. */
VR_API vr_program *vr_program_new(const char *family, int64_t channels);
VR_API void vr_program_free(vr_program *p); /* NULL-safe */

/* Registers a weight (float type, rank 1..5); returns its index. Names are
 * copied, source_name NULL means the same as name; `data` must outlive the
 * program. */
VR_API int32_t vr_program_weight(vr_program *p, const char *name, const char *source_name,
                                 vr_dtype dtype, int32_t rank, const int64_t *dim,
                                 const void *data);
/* Each returns the number of the value made. `tap` is copied and must be new in
 * the program. bias -1: none; gamma and beta are both needed. */
VR_API int32_t vr_program_conv2d(vr_program *p, const char *tap, int32_t x, int32_t weight,
                                 int32_t bias, int64_t pad); /* pad: all four sides */
VR_API int32_t vr_program_conv2d_pads(vr_program *p, const char *tap, int32_t x, int32_t weight,
                                      int32_t bias, int64_t top, int64_t bottom, int64_t left,
                                      int64_t right);
VR_API int32_t vr_program_group_norm(vr_program *p, const char *tap, int32_t x, int32_t gamma,
                                     int32_t beta, int64_t groups, double eps);
VR_API int32_t vr_program_unary(vr_program *p, const char *tap, vr_op_kind silu_or_relu, int32_t x);
VR_API int32_t vr_program_tanh_clamp(vr_program *p, const char *tap, int32_t x, double limit);
VR_API int32_t vr_program_upsample(vr_program *p, const char *tap, int32_t x, int64_t ft,
                                   int64_t fh, int64_t fw);
VR_API int32_t vr_program_attention(vr_program *p, const char *tap, int32_t q, int32_t k,
                                    int32_t v, double scale);
VR_API int32_t vr_program_add(vr_program *p, const char *tap, int32_t a, int32_t b);
/* scale, shift: one double per channel, copied. */
VR_API int32_t vr_program_scale_shift(vr_program *p, const char *tap, int32_t x,
                                      const double *scale, const double *shift);
VR_API int32_t vr_program_unpack(vr_program *p, const char *tap, int32_t x, int64_t fh, int64_t fw);
VR_API int32_t vr_program_clamp(vr_program *p, const char *tap, int32_t x, double lo, double hi);
/* Marks the output and validates the whole: inputs before uses, channel and
 * weight shapes, unique taps, every value but the output used (so the output
 * is the last value), and that values added or attended to have equal extents
 * whatever the latent's size. A finished program cannot be added to. */
VR_API vr_status vr_program_finish(vr_program *p, int32_t output, double range_lo,
                                   double range_hi, vr_error *err);

/* ---- reading (of a finished program) ------------------------------------ */

/* Value number of a tap id, or -1. */
VR_API int32_t vr_program_find_tap(const vr_program *p, const char *tap);

/* Shape of every value for a latent of shape `latent`; `out` has op_count
 * entries. VR_E_SHAPE names the operation that cannot take its input. */
VR_API vr_status vr_program_shapes(const vr_program *p, vr_shape latent, vr_shape *out,
                                   vr_error *err);

/* Upscaling from latent to output cells, e.g. 8 (unpack counts: FLUX.2 packed = 16). */
VR_API void vr_program_scale(const vr_program *p, int64_t *scale_h, int64_t *scale_w);

/* Last operation that reads value v (op_count for the output). `last` has
 * op_count entries. */
VR_API void vr_program_live_ranges(const vr_program *p, int32_t *last);

/* Which input (0, or 1 of an add) operation i may write its result over, or -1.
 * It must be element-wise (silu, relu, tanh_clamp, add, scale_shift, clamp) or
 * a group norm, whose statistics are complete before it writes, and the input
 * must die there. Never value 0: the latent belongs to the caller, so the first
 * operation always gets a block of its own. `last` from vr_program_live_ranges. */
VR_API int32_t vr_program_in_place(const vr_program *p, const int32_t *last, int32_t i);

typedef struct vr_op_cost {
    int64_t macs;          /* multiply-adds of convolutions and attention */
    int64_t weight_bytes;  /* as stored in the model file */
    int64_t read_bytes;    /* activations read, at `element_bytes` each */
    int64_t written_bytes; /* activations written */
    int64_t live_bytes;    /* all values alive while it runs, in-place rule applied */
} vr_op_cost;
/* Live are the values made and not yet read for the last time, this operation's
 * inputs and result among them; the latent is the caller's and never counts.
 * Bytes are elements * element_bytes, not rounded up. Scratch memory of the
 * operation itself (attention needs some for each thread) is not counted. A
 * value read twice by one operation is read once in read_bytes. */

typedef struct vr_program_cost {
    int64_t parameters;       /* weight elements */
    int64_t weight_bytes;
    int64_t macs;             /* sum over operations: of the next three */
    int64_t conv_macs;        /* all convolutions but those of the next line */
    int64_t attention_projection_macs; /* 1x1 convolutions feeding or following attention */
    int64_t attention_macs;   /* QK^T and PV: 2 * n * t * (h*w)^2 * c */
    int64_t peak_bytes;       /* largest live_bytes: exactly what the executor's pool peaks at */
    int32_t peak_op;          /* the first that reaches it */
} vr_program_cost;

/* Exact cost for a latent shape. element_bytes: 4 for f32 storage, 2 for f16, 8
 * for f64. per_op may be NULL, else op_count entries. VR_E_RANGE when a count
 * passes 2^63. */
VR_API vr_status vr_program_cost_of(const vr_program *p, vr_shape latent, int64_t element_bytes,
                                    vr_program_cost *total, vr_op_cost *per_op, vr_error *err);

/* Receptive field: the output cells of one latent cell (scale_h x scale_w of
 * them) depend on the latent cells from `halo_low` before it to `halo_high`
 * after it, exactly, away from the borders; so do the cells of a larger block
 * of latent cells, counted from its first and last. Global operations are
 * passed through as if they were local, and counted: the halo bounds the rest. */
typedef struct vr_receptive_field {
    int64_t halo_low, halo_high;     /* along rows: latent cells above, below; >= 0 */
    int64_t halo_low_w, halo_high_w; /* along columns: left, right */
    int32_t global_ops;              /* group norms + attentions */
} vr_receptive_field;

VR_API vr_status vr_program_receptive_field(const vr_program *p, vr_receptive_field *out,
                                            vr_error *err);

#ifdef __cplusplus
}
#endif
#endif
