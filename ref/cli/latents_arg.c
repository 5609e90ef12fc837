/* ref/cli/latents_arg.c: --latents, from a file or seeded.
 *
 * All that can be said about latents is said before any model work: type,
 * rank, emptiness, NaN. Channels are checked once the model is known.
 *
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 80 };

vr_status cli_latents_set(cli_latents_args *a, const char *what, const char *arg, vr_error *err)
{
    memset(a, 0, sizeof *a);
    a->spec = arg;
    if (strncmp(arg, "seed:", 5))
        return VR_OK;
    a->seeded = true;
    a->n = 1;
    char part[3][NAME] = {"", "", ""};
    int parts = 0;
    for (const char *at = arg + 5; parts < 3;) {
        size_t n = strcspn(at, ",");
        if (n >= NAME)
            break;
        memcpy(part[parts++], at, n);
        if (!at[n])
            break;
        at += n + 1;
        if (parts == 3)
            parts = 4; /* more than three parts */
    }
    if (parts < 2 || parts > 3 || (parts == 3 && strncmp(part[2], "n=", 2)))
        return vr_fail(err, VR_E_ARGUMENT,
                       "%s '%s': want seed:N,HxW[,n=B] in latent cells, such as seed:1,64x64",
                       what, arg);
    char name[NAME];
    snprintf(name, sizeof name, "%s seed", what);
    vr_status s = cli_u64(name, part[0], &a->seed, err);
    snprintf(name, sizeof name, "%s seed:N, size", what);
    if (!s)
        s = cli_pair(name, part[1], &a->h, &a->w, err);
    snprintf(name, sizeof name, "%s seed:N, batch", what);
    if (!s && parts == 3)
        s = cli_integer(name, part[2] + 2, 1, 100000, &a->n, err);
    return s;
}

static vr_status refuse_rank(const char *spec, const vr_tensor *t, vr_error *err)
{
    char is[120];
    vr_tensor_describe(t, is, sizeof is);
    if (t->rank == 3)
        return vr_fail(err, VR_E_SHAPE,
                       "%s: latents are %s; want rank 4 [N,C,H,W]: add a batch axis, "
                       "[1,%lld,%lld,%lld] (numpy: latents[None])", spec, is,
                       (long long)t->dim[0], (long long)t->dim[1], (long long)t->dim[2]);
    if (t->rank == 5)
        return vr_fail(err, VR_E_SHAPE,
                       "%s: latents are %s, a video; want rank 4 [N,C,H,W] for a picture decoder "
                       "(one frame of it, numpy: latents[:, :, 0])", spec, is);
    return vr_fail(err, VR_E_SHAPE, "%s: latents are %s; want rank 4 [N,C,H,W]", spec, is);
}

static vr_status check_finite(const char *spec, const vr_tensor *t, int64_t count, vr_error *err)
{
    size_t step = vr_dtype_size(t->dtype);
    double v[1024];
    for (int64_t i = 0; i < count; i += 1024) {
        int64_t n = count - i < 1024 ? count - i : 1024;
        vr_status s = vr_convert(VR_F64, v, t->dtype, (const char *)t->data + (size_t)i * step,
                                 (uint64_t)n, err);
        if (s)
            return s;
        for (int64_t k = 0; k < n; k++) {
            if (isfinite(v[k]))
                continue;
            int64_t at = i + k, w = t->dim[3], h = t->dim[2], c = t->dim[1];
            return vr_fail(err, VR_E_NONFINITE,
                           "%s: latents hold %s at [%lld,%lld,%lld,%lld] (element %lld); want "
                           "finite numbers", spec, isnan(v[k]) ? "NaN" : "infinity",
                           (long long)(at / w / h / c), (long long)(at / w / h % c),
                           (long long)(at / w % h), (long long)(at % w), (long long)at);
        }
    }
    return VR_OK;
}

vr_status cli_latents_load(const cli_latents_args *a, vr_tensor *t, vr_error *err)
{
    if (a->seeded)
        return VR_OK;
    vr_status s = vr_tensor_load(a->spec, t, err);
    if (s)
        return s;
    int64_t count;
    s = vr_tensor_count(t, &count, err);
    if (s)
        return s;
    if (!vr_dtype_is_float(t->dtype))
        return vr_fail(err, VR_E_DTYPE,
                       "%s: latents are of type %s; want a float type (F32, F16, BF16, F64)",
                       a->spec, vr_dtype_name(t->dtype));
    if (t->rank != 4)
        return refuse_rank(a->spec, t, err);
    if (count == 0) {
        char is[120];
        return vr_fail(err, VR_E_SHAPE, "%s: latents are %s, which is empty; want every axis >= 1",
                       a->spec, vr_tensor_describe(t, is, sizeof is));
    }
    s = check_finite(a->spec, t, count, err);
    if (s || (t->dtype != VR_F8_E4M3 && t->dtype != VR_F8_E5M2))
        return s;
    vr_tensor wide; /* the executor takes 16 bits and up; widening is exact */
    s = vr_tensor_new(&wide, VR_F32, t->rank, t->dim, err);
    if (s)
        return s;
    s = vr_convert(VR_F32, wide.data, t->dtype, t->data, (uint64_t)count, err);
    vr_tensor_free(t);
    *t = wide;
    return s;
}

vr_status cli_latents_fit(const cli_latents_args *a, const vr_model *m, vr_tensor *t,
                          vr_error *err)
{
    if (a->seeded)
        return vr_model_latents(m, a->seed, a->n, a->h, a->w, t, err);
    if (t->dim[1] != m->latent_channels)
        return vr_fail(err, VR_E_SHAPE, "%s: model needs %lld latent channels, latents have %lld",
                       a->spec, (long long)m->latent_channels, (long long)t->dim[1]);
    return VR_OK;
}
