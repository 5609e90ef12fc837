/* The multiply-add tile of convolution and attention, included by two
 * translation units per instruction set: once where contraction is allowed
 * (both factors hold f32 values, so the product is exact and fused equals
 * unfused) and once where it is not. Needs VR_VEC_BYTES, MR, NV.
 *
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

#define VL ((int64_t)(VR_VEC_BYTES / 8))
#define NR (NV * VL)

typedef double vr_vec __attribute__((vector_size(VR_VEC_BYTES)));
typedef double vr_vec_u __attribute__((vector_size(VR_VEC_BYTES), aligned(8), may_alias));

/* One load that broadcasts, kept in a register for all NV vectors. Written as
 * an instruction because compilers otherwise either repeat the load per
 * multiply-add or gather eight weights and permute them, which occupies the
 * port of the second 512-bit multiply-add. */
#if defined(__x86_64__) && defined(__AVX__)
#define VR_BROADCAST(v, p) __asm__("vbroadcastsd %1, %0" : "=v"(v) : "m"(*(p)))
#else
#define VR_BROADCAST(v, p) ((v) = vr_splat(*(p)))
#endif

static inline vr_vec vr_splat(double d)
{
    vr_vec v = {0};
    for (int64_t i = 0; i < VL; i++)
        v[i] = d;
    return v;
}

static inline __attribute__((always_inline)) void vr_tap(vr_vec acc[MR][NV], const double *w,
                                                         const double *x)
{
    vr_vec v[NV];
#pragma GCC unroll 16
    for (int j = 0; j < NV; j++)
        v[j] = *(const vr_vec_u *)(x + j * VL);
#pragma GCC unroll 16
    for (int m = 0; m < MR; m++) {
        vr_vec b;
        VR_BROADCAST(b, w + m);
#pragma GCC unroll 16
        for (int j = 0; j < NV; j++)
            acc[m][j] += b * v[j];
    }
}

static inline __attribute__((always_inline)) void
vr_micro_body(const double *w, const double *x, int64_t ci, int64_t kh, int64_t kw, int64_t x_c,
              int64_t x_r, const double *init, double *out)
{
    vr_vec acc[MR][NV];
#pragma GCC unroll 16
    for (int m = 0; m < MR; m++)
#pragma GCC unroll 16
        for (int j = 0; j < NV; j++)
            acc[m][j] = vr_splat(init[m]);
    if (kw == 3) {
        for (int64_t c = 0; c < ci; c++)
            for (int64_t ky = 0; ky < kh; ky++) {
                const double *row = x + c * x_c + ky * x_r;
                vr_tap(acc, w, row);
                vr_tap(acc, w + MR, row + 1);
                vr_tap(acc, w + 2 * MR, row + 2);
                w += 3 * MR;
            }
    } else {
        for (int64_t c = 0; c < ci; c++)
            for (int64_t ky = 0; ky < kh; ky++)
                for (int64_t kx = 0; kx < kw; kx++) {
                    vr_tap(acc, w, x + c * x_c + ky * x_r + kx);
                    w += MR;
                }
    }
#pragma GCC unroll 16
    for (int m = 0; m < MR; m++)
#pragma GCC unroll 16
        for (int j = 0; j < NV; j++)
            *(vr_vec_u *)(out + m * NR + j * VL) = acc[m][j];
}
