/* vaeref/core.h: what every other room stands on.
 *
 * Status codes and error text, element types and their exact conversions,
 * dense tensors, the counting memory pool, counter-based random numbers and
 * SHA-256. Nothing here knows what a decoder is. Specification: docs/spec/
 * arithmetic.md (clauses N1, N2, N3).
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_CORE_H
#define VAEREF_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define VR_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define VR_API __attribute__((visibility("default")))
#else
#define VR_PRINTF(f, a)
#define VR_API
#endif

/* ---- status ------------------------------------------------------------ */

/* Stable numbers; gaps are left so that related codes can be added. */
#define VR_STATUS_MAP(X)                                                  \
    X(VR_OK, 0, "ok")                                                     \
    X(VR_E_NOMEM, 10, "out of memory")                                    \
    X(VR_E_BUDGET, 11, "memory limit exceeded")                           \
    X(VR_E_IO, 20, "input/output error")                                  \
    X(VR_E_NOTFOUND, 21, "not found")                                     \
    X(VR_E_FORMAT, 30, "malformed file")                                  \
    X(VR_E_UNSUPPORTED, 31, "unsupported")                                \
    X(VR_E_DTYPE, 40, "wrong element type")                               \
    X(VR_E_SHAPE, 41, "wrong shape")                                      \
    X(VR_E_RANGE, 42, "value out of range")                               \
    X(VR_E_MODEL, 50, "model does not fit a known family")                \
    X(VR_E_AMBIGUOUS, 51, "ambiguous model")                              \
    X(VR_E_NONFINITE, 60, "non-finite value")                             \
    X(VR_E_CANCELLED, 70, "cancelled")                                    \
    X(VR_E_ARGUMENT, 80, "invalid argument")                              \
    X(VR_E_INTERNAL, 90, "internal error")

typedef enum vr_status {
#define VR_X(name, code, text) name = code,
    VR_STATUS_MAP(VR_X)
#undef VR_X
} vr_status;

/* One line that says what was wrong, where, and what would be right.
 * A caller passes NULL when it does not want the text. */
typedef struct vr_error {
    vr_status status;
    char text[600];
} vr_error;

/* Short text of a status code; never NULL. */
VR_API const char *vr_status_text(vr_status s);

/* Fills *err (when not NULL) and returns `s`, so that a failing function can
 * `return vr_fail(err, VR_E_..., "...")`. Control characters in the formatted
 * text are replaced by '?', so hostile names stay on one line. */
VR_API vr_status vr_fail(vr_error *err, vr_status s, const char *fmt, ...) VR_PRINTF(3, 4);

/* Puts "prefix: " in front of the text already in *err. Returns err's status. */
VR_API vr_status vr_fail_prefix(vr_error *err, const char *fmt, ...) VR_PRINTF(2, 3);

/* ---- element types (clause N2) ----------------------------------------- */

#define VR_DTYPE_MAP(X)                                                   \
    X(VR_F64, 1, "F64", 8)                                                \
    X(VR_F32, 2, "F32", 4)                                                \
    X(VR_F16, 3, "F16", 2)                                                \
    X(VR_BF16, 4, "BF16", 2)                                              \
    X(VR_F8_E4M3, 5, "F8_E4M3", 1)                                        \
    X(VR_F8_E5M2, 6, "F8_E5M2", 1)                                        \
    X(VR_I64, 10, "I64", 8)                                               \
    X(VR_I32, 11, "I32", 4)                                               \
    X(VR_I16, 12, "I16", 2)                                               \
    X(VR_I8, 13, "I8", 1)                                                 \
    X(VR_U64, 14, "U64", 8)                                               \
    X(VR_U32, 15, "U32", 4)                                               \
    X(VR_U16, 16, "U16", 2)                                               \
    X(VR_U8, 17, "U8", 1)                                                 \
    X(VR_BOOL, 18, "BOOL", 1)

typedef enum vr_dtype {
    VR_DTYPE_NONE = 0,
#define VR_X(name, code, text, bytes) name = code,
    VR_DTYPE_MAP(VR_X)
#undef VR_X
} vr_dtype;

VR_API size_t vr_dtype_size(vr_dtype t);           /* bytes; 0 for NONE */
VR_API const char *vr_dtype_name(vr_dtype t);      /* safetensors spelling; "?" if unknown */
VR_API vr_dtype vr_dtype_from_name(const char *s); /* exact spelling; NONE if unknown */
VR_API bool vr_dtype_is_float(vr_dtype t);

/* f32/f64 -> 16- and 8-bit: round to nearest, ties to even, subnormals kept.
 * Overflow: f16, bf16 and e5m2 give infinity; e4m3 (the "fn" format, no
 * infinity) gives NaN. NaN stays NaN (quiet, payload not kept). */
VR_API uint16_t vr_f16_from_f32(float x);
VR_API float vr_f32_from_f16(uint16_t h);
VR_API uint16_t vr_bf16_from_f32(float x);
VR_API float vr_f32_from_bf16(uint16_t h);
VR_API uint8_t vr_e4m3_from_f32(float x);
VR_API float vr_f32_from_e4m3(uint8_t b);
VR_API uint8_t vr_e5m2_from_f32(float x);
VR_API float vr_f32_from_e5m2(uint8_t b);
/* f64 -> f16/bf16 with ONE rounding (going through f32 would round twice). */
VR_API uint16_t vr_f16_from_f64(double x);
VR_API uint16_t vr_bf16_from_f64(double x);

/* Element-wise conversion of n elements. `src` and `dst` need no alignment
 * and must not overlap. Widening is exact; narrowing rounds to nearest even
 * with one rounding. Integers convert by value. VR_E_DTYPE for a pair that is
 * not offered (float -> integer). */
VR_API vr_status vr_convert(vr_dtype dst_type, void *dst, vr_dtype src_type, const void *src,
                            uint64_t n, vr_error *err);

/* Rounds x to the nearest value of `storage` (F32, F16, BF16), as a float. */
VR_API float vr_round_to(vr_dtype storage, float x);

/* ---- dense tensors ------------------------------------------------------ */

#define VR_MAX_RANK 8

/* Dense, C order (last index fastest). NCHW for pictures, NCTHW for video.
 * `data` is owned by whoever the function that filled the struct says. */
typedef struct vr_tensor {
    vr_dtype dtype;
    int32_t rank;                /* 0..VR_MAX_RANK */
    int64_t dim[VR_MAX_RANK];    /* elements per axis, >= 0 */
    void *data;
} vr_tensor;

/* Product of dims; VR_E_SHAPE when negative or beyond 2^62 elements. */
VR_API vr_status vr_tensor_count(const vr_tensor *t, int64_t *count, vr_error *err);

/* Text such as "F32[1,3,384,384]" into buf; always terminated. Returns buf. */
VR_API char *vr_tensor_describe(const vr_tensor *t, char *buf, size_t size);

/* Heap tensor, 64-byte aligned, contents undefined. Free with vr_tensor_free. */
VR_API vr_status vr_tensor_new(vr_tensor *t, vr_dtype dtype, int32_t rank, const int64_t *dim,
                               vr_error *err);
VR_API void vr_tensor_free(vr_tensor *t); /* NULL-safe; clears the struct */

/* ---- memory pool -------------------------------------------------------- */

/* 64-byte aligned blocks, reused by size class; counts everything; may carry
 * a hard limit. Thread-safe. This is where activations live, so its peak is
 * the peak of a decode. */
typedef struct vr_pool vr_pool;

typedef struct vr_pool_stats {
    uint64_t allocations; /* calls that returned a block */
    uint64_t hits;        /* of those, served by a block returned earlier */
    uint64_t live_bytes;  /* requested bytes in use now */
    uint64_t peak_bytes;  /* largest live_bytes so far */
    uint64_t held_bytes;  /* bytes the pool holds from the system (live + cached) */
    uint64_t peak_held_bytes;
} vr_pool_stats;

/* limit_bytes: largest live_bytes allowed; 0 = no limit. Cached blocks are given
 * back before the pool would hold more than its live bytes ever peaked at, so
 * held_bytes passes peak_bytes by rounding only. */
VR_API vr_status vr_pool_create(uint64_t limit_bytes, vr_pool **out, vr_error *err);
VR_API void vr_pool_destroy(vr_pool *p); /* NULL-safe; live blocks are freed too */
/* VR_E_BUDGET when the limit would be passed: the text names the limit, what
 * is live and what was asked for. VR_E_NOMEM when the system has none.
 * bytes = 0 gives a valid block. */
VR_API vr_status vr_pool_alloc(vr_pool *p, uint64_t bytes, void **out, vr_error *err);
VR_API void vr_pool_free(vr_pool *p, void *block); /* NULL-safe */
VR_API void vr_pool_trim(vr_pool *p);              /* gives cached blocks back */
VR_API void vr_pool_get_stats(const vr_pool *p, vr_pool_stats *out);
/* Test hook: the n-th allocation from now (1 = next) fails with VR_E_NOMEM. */
VR_API void vr_pool_fail_at(vr_pool *p, uint64_t n);

/* ---- counter-based random numbers (clause N3) --------------------------- */

/* Philox 4x32-10 (Salmon et al., SC 2011). */
VR_API void vr_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Element `index` of stream `stream` under `seed`: depends on nothing else, so
 * values do not change with order, chunking or threads. Word index mod 4 of the
 * Philox block with counter {b low, b high, stream low, stream high}, b =
 * index / 4, key {seed low, seed high}. */
VR_API uint32_t vr_random_u32(uint64_t seed, uint64_t stream, uint64_t index);
/* Uniform in (0,1): (2*top23bits+1) / 2^24, exact in f32. */
VR_API float vr_random_uniform(uint64_t seed, uint64_t stream, uint64_t index);
/* Near-normal, mean 0, variance 1 - 2^-32, |x| < 6: (sum of twelve 16-bit
 * integers - 393210) / 65536, exact in f32 (no log, no cos). The twelve are the
 * low and high halves of words 0..5 of the Philox blocks 2*index and 2*index+1
 * under key {seed low, seed high ^ 0x4e4f524d}. */
VR_API float vr_random_normal(uint64_t seed, uint64_t stream, uint64_t index);
typedef enum vr_distribution { VR_UNIFORM, VR_NORMAL } vr_distribution;
/* dst[i] = vr_random_...(seed, stream, first + i) for i < n; bit for bit. */
VR_API void vr_random_fill(float *dst, int64_t n, vr_distribution d, uint64_t seed,
                           uint64_t stream, uint64_t first);
/* Stream number of a name: first 8 bytes (little endian) of its SHA-256. */
VR_API uint64_t vr_random_stream(const char *name);

/* ---- SHA-256 (FIPS 180-4) ----------------------------------------------- */

typedef struct vr_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[64];
} vr_sha256;

VR_API void vr_sha256_init(vr_sha256 *s);
VR_API void vr_sha256_update(vr_sha256 *s, const void *data, size_t n);
VR_API void vr_sha256_final(vr_sha256 *s, uint8_t digest[32]);
/* Lower-case hex, terminated. */
VR_API void vr_sha256_hex(const uint8_t digest[32], char hex[65]);

#ifdef __cplusplus
}
#endif
#endif
