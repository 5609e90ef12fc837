/* Seeded latents (clause M8). SPDX-License-Identifier: MIT */
#include "model/internal.h"

/* About what an encoder would make: unit variance, brought into raw space. */
static void to_raw(float *x, const vr_numbers *k, int64_t n, int64_t channels, int64_t cells)
{
    for (int64_t i = 0; i < n * channels; i++) {
        const int64_t c = i % channels;
        const double scale = k->stats ? k->std[c] / k->scaling : 1.0 / k->scaling;
        const double shift = k->stats ? k->mean[c] : k->shift;
        for (int64_t j = 0; j < cells; j++) /* x[n][c][h*w] */
            x[i * cells + j] = (float)((double)x[i * cells + j] * scale + shift);
    }
}

vr_status vr_model_latents(const vr_model *m, uint64_t seed, int64_t n, int64_t h, int64_t w,
                           vr_tensor *out, vr_error *err)
{
    const vr_numbers *k = &m->memory->numbers;
    const int64_t dim[4] = {n, m->latent_channels, h, w};
    if (n < 1 || h < 1 || w < 1)
        return vr_fail(err, VR_E_SHAPE, "latents of %lld x %lld x %lld; want at least 1 each",
                       (long long)n, (long long)h, (long long)w);
    vr_status s = vr_tensor_new(out, VR_F32, 4, dim, err);
    if (s != VR_OK)
        return s;
    const int64_t count = n * m->latent_channels * h * w;
    vr_random_fill(out->data, count, VR_NORMAL, seed, vr_random_stream("latents"), 0);
    if (m->latent_space == VR_LATENT_RAW && k->known)
        to_raw(out->data, k, n, m->latent_channels, h * w);
    return VR_OK;
}
