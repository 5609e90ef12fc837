/* SPDX-License-Identifier: MIT */
#include "tilecase.h"

#include <stdio.h>
#include <stdlib.h>

const vr_tile_mode tc_blends[6] = {VR_TILE_DIFFUSERS, VR_TILE_DIFFUSERS_STRIDE, VR_TILE_DIFFUSERS_TINY,
                                   VR_TILE_COMFY, VR_TILE_COMFY_3PASS, VR_TILE_SDCPP};

int64_t tc_random(tc_rng *r, int64_t lo, int64_t hi)
{
    const uint32_t key[2] = {(uint32_t)0x7469, 0}, counter[4] = {(uint32_t)r->state, (uint32_t)(r->state >> 32), 0, 0};
    uint32_t word[4];
    r->state++;
    vr_philox4x32(counter, key, word);
    return lo + (int64_t)(((uint64_t)word[0] | (uint64_t)word[1] << 32) % (uint64_t)(hi - lo + 1));
}

vr_program *tc_upsampler(int64_t channels, int64_t scale_h, int64_t scale_w)
{
    vr_error err;
    vr_program *p = vr_program_new("identity", channels);
    int32_t y = vr_program_upsample(p, "up", 0, 1, scale_h, scale_w);
    if (vr_program_finish(p, y, 0, 1, &err) != VR_OK)
        abort();
    return p;
}

vr_program *tc_convolver(uint64_t seed, int64_t channels, int64_t scale, float **data)
{
    const int64_t dim[4] = {channels, channels, 3, 3}, n = channels * channels * 9;
    float *w = malloc((size_t)(2 * n) * sizeof *w);
    tc_rng r = {seed};
    vr_error err;
    if (!w)
        abort();
    for (int64_t k = 0; k < 2 * n; k++)
        w[k] = (float)tc_random(&r, -1000, 1000) / 3000.0F;
    vr_program *p = vr_program_new("convolver", channels);
    int32_t a = vr_program_weight(p, "a", NULL, VR_F32, 4, dim, w);
    int32_t b = vr_program_weight(p, "b", NULL, VR_F32, 4, dim, w + n);
    int32_t x = vr_program_conv2d(p, "first", 0, a, -1, 1);
    x = vr_program_upsample(p, "up", x, 1, scale, scale);
    x = vr_program_conv2d(p, "second", x, b, -1, 1);
    if (vr_program_finish(p, x, -1, 1, &err) != VR_OK)
        abort();
    *data = w;
    return p;
}

vr_tensor tc_coordinates(int64_t h, int64_t w)
{
    vr_tensor t;
    const int64_t dim[4] = {1, 2, h, w};
    if (vr_tensor_new(&t, VR_F32, 4, dim, NULL) != VR_OK)
        abort();
    float *v = t.data;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            v[y * w + x] = (float)y;
            v[(h + y) * w + x] = (float)x;
        }
    return t;
}

static vr_status enlarged(tc_decoder *d, const vr_tensor *z, vr_tensor *out, vr_error *err)
{
    const int64_t dim[4] = {z->dim[0], z->dim[1], z->dim[2] * d->scale_h, z->dim[3] * d->scale_w};
    d->calls++;
    if (d->calls == d->fail_at)
        return vr_fail(err, VR_E_CANCELLED, "stopped at call %lld", (long long)d->calls);
    return vr_tensor_new(out, VR_F32, 4, dim, err);
}

vr_status tc_decode_pixels(void *ctx, const vr_tensor *z, vr_tensor *out, vr_error *err)
{
    tc_decoder *d = ctx;
    vr_status s = enlarged(d, z, out, err);
    if (s != VR_OK)
        return s;
    const int64_t h = out->dim[2], w = out->dim[3];
    const float *cell = z->data;
    float *v = out->data;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            const int64_t at = y / d->scale_h * z->dim[3] + x / d->scale_w;
            v[y * w + x] = cell[at] * (float)d->scale_h + (float)(y % d->scale_h);
            v[(h + y) * w + x] = cell[z->dim[2] * z->dim[3] + at] * (float)d->scale_w + (float)(x % d->scale_w);
        }
    return VR_OK;
}

static vr_status filled(tc_decoder *d, const vr_tensor *z, float value, vr_tensor *out, vr_error *err)
{
    vr_status s = enlarged(d, z, out, err);
    for (int64_t k = 0; s == VR_OK && k < out->dim[0] * out->dim[1] * out->dim[2] * out->dim[3]; k++)
        ((float *)out->data)[k] = value;
    return s;
}

vr_status tc_decode_one(void *ctx, const vr_tensor *z, vr_tensor *out, vr_error *err)
{
    return filled(ctx, z, 1.0F, out, err);
}

vr_status tc_decode_grey(void *ctx, const vr_tensor *z, vr_tensor *out, vr_error *err)
{
    tc_greys *g = ctx;
    return filled(&g->base, z, g->value[g->base.calls], out, err);
}

float tc_noise(int64_t call, int64_t k)
{
    uint64_t x = (uint64_t)call * 0x9E3779B97F4A7C15U + (uint64_t)k * 0xD1B54A32D192ED03U + 1;
    x ^= x >> 31;
    x *= 0x94D049BB133111EBU;
    x ^= x >> 29;
    return (float)(x & 0xFFFF) / 32768.0F - 1.0F;
}

vr_status tc_decode_noise(void *ctx, const vr_tensor *z, vr_tensor *out, vr_error *err)
{
    tc_decoder *d = ctx;
    const int64_t call = d->calls;
    vr_status s = enlarged(d, z, out, err);
    for (int64_t k = 0; s == VR_OK && k < out->dim[0] * out->dim[1] * out->dim[2] * out->dim[3]; k++)
        ((float *)out->data)[k] = tc_noise(call, k);
    return s;
}

/* One side: cells of tile and overlap, then pixels. */
static void side(tc_rng *r, vr_tile_mode mode, int64_t scale, int64_t most, int64_t *tile, int64_t *overlap)
{
    int64_t least = mode == VR_TILE_SDCPP ? 4 : mode == VR_TILE_COMFY || mode <= VR_TILE_DIFFUSERS_STRIDE ? 1 : 2;
    while (least * scale < 8)
        least++;
    const int64_t t = tc_random(r, least, most > least ? most : least);
    int64_t lo = 0, hi = t - 1;
    if (mode == VR_TILE_SDCPP)
        hi = t / 2;
    if (mode == VR_TILE_COMFY_3PASS)
        hi = t / 2 - 1;
    if (mode == VR_TILE_DIFFUSERS_TINY)
        lo = scale > 1 ? 1 : 2;
    *tile = t * scale;
    *overlap = tc_random(r, lo, hi) * scale;
}

vr_tile_options tc_options(tc_rng *r, vr_tile_mode mode, int64_t scale_h, int64_t scale_w, int64_t most)
{
    vr_tile_options o = {.mode = mode};
    side(r, mode, scale_h, most, &o.tile_h, &o.overlap_h);
    side(r, mode, scale_w, most, &o.tile_w, &o.overlap_w);
    return o;
}

const char *tc_name(const vr_tile_options *o, int64_t h, int64_t w, char *buf, size_t size)
{
    snprintf(buf, size, "%s tile %lldx%lld overlap %lldx%lld latent %lldx%lld (HxW)", vr_tile_mode_name(o->mode),
             (long long)o->tile_h, (long long)o->tile_w, (long long)o->overlap_h, (long long)o->overlap_w,
             (long long)h, (long long)w);
    return buf;
}
