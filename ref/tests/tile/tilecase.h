/* What the tests of ref/tile/ share: stand-in decoders, programs and seeded
 * parameter sets. SPDX-License-Identifier: MIT */
#ifndef TESTS_TILE_TILECASE_H
#define TESTS_TILE_TILECASE_H

#include "vaeref/tile.h"

typedef struct tc_rng {
    uint64_t state;
} tc_rng;
int64_t tc_random(tc_rng *r, int64_t lo, int64_t hi); /* lo..hi */

/* One operation: nearest upsampling of `channels` channels. */
vr_program *tc_upsampler(int64_t channels, int64_t scale_h, int64_t scale_w);
/* Upsampling between two 3x3 convolutions, seeded; weights in *data (free). */
vr_program *tc_convolver(uint64_t seed, int64_t channels, int64_t scale, float **data);

/* [1][2][h][w]: row numbers, column numbers. */
vr_tensor tc_coordinates(int64_t h, int64_t w);

typedef struct tc_decoder {
    int64_t scale_h, scale_w;
    int64_t calls;
    int64_t fail_at; /* this call (1 = first) fails with VR_E_CANCELLED; 0: never */
} tc_decoder;

/* vr_tile_decoder: 2 channels of cell numbers to the pixel's own row and
 * column: a shift by one pixel shows anywhere. */
vr_status tc_decode_pixels(void *ctx, const vr_tensor *latent, vr_tensor *out, vr_error *err);
vr_status tc_decode_one(void *ctx, const vr_tensor *latent, vr_tensor *out, vr_error *err); /* constant 1 */
/* Every tile a constant: the number of the call, from 0, through `value`. */
typedef struct tc_greys {
    tc_decoder base;
    const float *value;
} tc_greys;
vr_status tc_decode_grey(void *ctx, const vr_tensor *latent, vr_tensor *out, vr_error *err);

/* Every tile its own noise, so that a wrong weight cannot hide: pixel k of the
 * n-th call (from 0) is tc_noise(n, k). */
float tc_noise(int64_t call, int64_t k);
vr_status tc_decode_noise(void *ctx, const vr_tensor *latent, vr_tensor *out, vr_error *err);

extern const vr_tile_mode tc_blends[6];

/* A parameter set of whole cells that `mode` accepts; tiles of up to `most` cells. */
vr_tile_options tc_options(tc_rng *r, vr_tile_mode mode, int64_t scale_h, int64_t scale_w, int64_t most);

/* "comfy tile 64x32 overlap 8x16 latent 3x200": HxW throughout. */
const char *tc_name(const vr_tile_options *o, int64_t h, int64_t w, char *buf, size_t size);

#endif
