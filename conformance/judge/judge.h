/* judge.h: is this output right? Verdicts on tensors, and nothing else.
 *
 * Each judge compares what a backend returned with the truth (the reference in
 * f64 on the stored inputs) and says pass, fail or mistrusted, with one sentence
 * of reason and every number on pass as well. What error is allowed is measured:
 * the reference under the case's contract in several legitimate orders of
 * summation (the "ideals") gives the noise, and a backend is judged by the ratio
 * of its error to that noise. No input or output, no knowledge of backends or
 * cases. Specification: docs/spec/judge.md (clauses J1..).
 *
 * Every function here returns VR_OK when a verdict was reached, whatever it is,
 * and otherwise an error of use (shapes that do not match, a wrong element type,
 * no memory), which is never the backend's fault. Tensors are dense and belong to
 * the caller; none is changed. A verdict depends on the values alone.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_JUDGE_H
#define VAEPROOF_JUDGE_H

#include "vaeref/core.h"
#include "vaeref/tile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- contracts and limits (J2) ------------------------------------------ */

/* How values are kept and how sums are formed: VR_F64, F32, F16 or BF16. */
typedef struct vj_contract {
    vr_dtype storage, accumulate;
} vj_contract;

/* How deep the judged output lies: one operation, a block, a whole decode. */
typedef enum vj_level { VJ_LEVEL_OP, VJ_LEVEL_BLOCK, VJ_LEVEL_DECODE, VJ_LEVEL_COUNT } vj_level;

typedef struct vj_limits {
    vj_contract contract;
    double rms[VJ_LEVEL_COUNT]; /* largest rms error ratio */
    double max[VJ_LEVEL_COUNT]; /* largest ratio of the largest errors */
    double ulp;                 /* element-wise functions, units in the last place of storage */
    int32_t u8_lsb;             /* largest difference of an 8-bit sample */
} vj_limits;

/* The row of a contract; NULL when the suite knows no such contract. */
const vj_limits *vj_limits_find(vj_contract c);
/* All rows. Returns how many. */
int32_t vj_limits_all(const vj_limits **rows);

/* Limits that do not depend on the contract. */
#define VJ_PSNR_SLACK_DB 6.0       /* below the noise's PSNR */
#define VJ_SSIM_LOSS 1e-4          /* 1 - SSIM that is always allowed */
#define VJ_SEAM_LIMIT 1.0          /* border step over p99 of placebos */
#define VJ_SEAM_MANY 4             /* with fewer borders or corners, chance alone passes 1 too often: */
#define VJ_BORDER_LIMIT_FEW 1.5
#define VJ_CORNER_LIMIT_FEW 2.0
#define VJ_FLICKER_LIMIT 1.0       /* the same between frames */
#define VJ_FLICKER_MANY 3
#define VJ_FLICKER_LIMIT_FEW 1.5   /* with fewer borders */
#define VJ_MIN_ELEMENTS 256        /* below: mistrusted */
#define VJ_POOL_ELEMENTS 4096      /* callers pool seeds up to this many (J6) */
#define VJ_MAX_IDEALS 16

/* What a case is judged by. `limits` must outlive the call. */
typedef struct vj_rules {
    const vj_limits *limits;
    vj_level level;
    bool flush_subnormals;  /* the contract lets a subnormal result become 0 */
    double expected_rms;    /* rms the case was designed to have; 0: unknown, not checked */
    double explained_zeros; /* share of zeros (8-bit: of clipped samples) the case explains, 0..1 */
} vj_rules;

/* ---- verdicts (J1) ------------------------------------------------------- */

/* MISTRUSTED: the case cannot tell right from wrong; it is no pass. */
typedef enum vj_status { VJ_PASS, VJ_FAIL, VJ_MISTRUSTED } vj_status;
const char *vj_status_name(vj_status s); /* "pass", "fail", "mistrusted" */

typedef struct vj_element {
    int64_t index;             /* flat */
    double truth, ideal, got;  /* ideal: of the first one; NaN where a judge has none */
    double ratio;              /* error over noise; ULP; 8 bits: distance to the truth over what is
                                  allowed; exact judges: the error; infinite: only one is finite */
} vj_element;

/* Numbers of parts a judge does not fill are NaN (0 for counts). */
typedef struct vj_result {
    vj_status status;
    char reason[400];          /* one sentence: what, where, which limit */
    int64_t elements;          /* compared */
    int64_t wrong;             /* elements that break a rule of their own */
    int64_t first_wrong;       /* the lowest of them, -1: none */
    double wrong_above;        /* error from which vj_fingerprint_make should call an element wrong;
                                  NaN where it depends on the element (vj_ulp: use vj_cap_ulp) */
    int32_t worst_count;
    vj_element worst[5];       /* largest ratio first; only elements with an error */
    struct {
        double truth_rms, zero_share;
        double error_rms, error_max, noise_rms, noise_max, floor;
        double ideal_spread;   /* largest / smallest rms error of the ideals */
        double ratio_rms, limit_rms, ratio_max, limit_max;
        double cap_ratio;      /* largest |error| / cap; NaN without caps */
    } numeric;
    struct {
        double max, mean, limit; /* mean over all elements */
    } ulp;
    struct {
        double share, predicted, limit; /* samples that differ: found, expected, allowed */
        int64_t illegal;                /* differ where truth is not near a half-integer */
        int32_t lsb, lsb_limit;         /* largest difference */
        double delta;                   /* largest distance to a half-integer allowed, LSB */
    } u8;
    struct {
        double psnr, psnr_noise, psnr_limit; /* dB */
        double psnr_u8;                      /* of the two 8-bit pictures; reported only */
        double ssim, ssim_noise, ssim_limit;
        double border_score, border_limit, corner_score, corner_limit, tone_step;
    } picture;
    struct {
        double change_score, level_score, limit;
        int64_t borders, placebos;
    } flicker;
} vj_result;

/* ---- judges -------------------------------------------------------------- */

/* Error ratio against the envelope of legitimate orders (J3 to J6). got: F64,
 * F32, F16 or BF16. truth: F64. ideals: 1..VJ_MAX_IDEALS float tensors. cap: F64,
 * largest |got - truth| per element, or NULL. All of one shape. */
vr_status vj_numeric(const vr_tensor *got, const vr_tensor *truth, const vr_tensor *ideals, int32_t n_ideals,
                     const vj_rules *rules, const vr_tensor *cap, vj_result *out, vr_error *err);

/* Bytes (J7.1): any type, the same in both. */
vr_status vj_exact(const vr_tensor *got, const vr_tensor *want, vj_result *out, vr_error *err);

/* Values, for sums of small integers that no order can round (J7.2). got: any
 * type; truth: F64. magnitude: F64, sum |a||b| of every element, shows that each
 * partial sum is exact in the accumulator; NULL: the caller vouches for it. */
vr_status vj_integer_exact(const vr_tensor *got, const vr_tensor *truth, const vr_tensor *magnitude,
                           const vj_rules *rules, vj_result *out, vr_error *err);

/* Element-wise functions, in units in the last place of the storage type (J8). */
vr_status vj_ulp(const vr_tensor *got, const vr_tensor *truth, const vj_rules *rules, vj_result *out, vr_error *err);

/* 8-bit pictures (J9). got: U8 [n][h][w][c] (order of vr_to_u8 and of PNG). truth:
 * F64 [n][c][h][w], black and white at range_lo and range_hi. ideals, cap: as for
 * vj_numeric, shape of the truth. result.worst: index into truth, 8-bit values. */
vr_status vj_u8(const vr_tensor *got, const vr_tensor *truth, const vr_tensor *ideals, int32_t n_ideals,
                double range_lo, double range_hi, const vj_rules *rules, const vr_tensor *cap, vj_result *out,
                vr_error *err);

/* Whole pictures against the reference under the same tile plan (J10). got, want,
 * ideals: float [n][c][h][w]. grid: the plan's tiles, NULL: undivided. phase:
 * pixels of a latent cell. */
vr_status vj_picture(const vr_tensor *got, const vr_tensor *want, const vr_tensor *ideals, int32_t n_ideals,
                     double range_lo, double range_hi, const vr_tile_grid *grid, int64_t phase, vj_result *out,
                     vr_error *err);

/* Video at the borders of temporal chunks (J11). got, want: float [n][c][t][h][w].
 * border[i]: first frame of a chunk, ascending, 1..t-1. stride: frames of a latent
 * frame; placebo transitions share a border's phase modulo it. */
vr_status vj_flicker(const vr_tensor *got, const vr_tensor *want, const int64_t *border, int64_t borders,
                     int64_t stride, vj_result *out, vr_error *err);

/* ---- caps (J5) ----------------------------------------------------------- */

/* cap = 4 sqrt(terms) u_A magnitude + 1.01 u_S |truth| + tiny. magnitude, truth:
 * F64 of one shape. cap: F64, owned by the caller (vr_tensor_free). */
vr_status vj_cap_dot(int64_t terms, const vr_tensor *magnitude, const vr_tensor *truth, const vj_rules *rules,
                     vr_tensor *cap, vr_error *err);

/* sum |w||x| + |bias| of a convolution (stride 1, zero padding), by the reference
 * in f64. x: float [n][c][(t)][h][w]; weight: float [co][ci][kh][kw]; bias: float
 * [co] or NULL; pad: top, bottom, left, right. out: F64, owned by the caller. Its
 * terms are ci*kh*kw, one more with a bias. */
vr_status vj_conv2d_magnitude(const vr_tensor *x, const vr_tensor *weight, const vr_tensor *bias,
                              const int64_t pad[4], vr_tensor *out, vr_error *err);

/* The error vj_ulp accepts at each element, for vj_fingerprint_make. cap: F64, owned
 * by the caller. */
vr_status vj_cap_ulp(const vr_tensor *truth, const vj_rules *rules, vr_tensor *cap, vr_error *err);

/* ---- where the error lies (J12) ------------------------------------------ */

enum { VJ_AXIS_N, VJ_AXIS_C, VJ_AXIS_T, VJ_AXIS_Y, VJ_AXIS_X, VJ_AXES };

typedef struct vj_fingerprint {
    int64_t extent[VJ_AXES];          /* the tensor seen as [n][c][t][y][x] */
    int64_t elements, wrong;
    double share;                     /* wrong / elements */
    int64_t low[VJ_AXES], high[VJ_AXES]; /* bounding box, both ends included; -1 when nothing is wrong */
    int64_t first_flat, last_flat;    /* lowest and highest flat index; -1 likewise */
    int64_t frame_width;              /* all wrong elements lie this near (pixels) to the picture's border */
    int64_t tile_row, tile_column;    /* the tile that holds them all, -1: more than one, or no grid */
    int64_t seam_width;               /* all lie this near to a tile border; 0: no grid */
    int64_t fold_x[64], fold_y[64], fold_flat[64]; /* wrong elements by coordinate modulo 64 */
    char text[480];                   /* e.g. "34 of 4096 elements (0.83 %) are wrong: only the last 3 columns" */
} vj_fingerprint;

/* An element is wrong when |got - truth| > cap (or > above, where cap is NULL), or
 * when only one is finite. got: any type; truth: any; cap: F64 or NULL; one
 * shape: [n][c][t][h][w], [n][c][h][w], [c][h][w], [h][w] or [w]. grid: tiles of the
 * picture, or NULL. */
vr_status vj_fingerprint_make(const vr_tensor *got, const vr_tensor *truth, const vr_tensor *cap, double above,
                              const vr_tile_grid *grid, vj_fingerprint *out, vr_error *err);

#ifdef __cplusplus
}
#endif
#endif
