/* ref/cli/decode_compare.c: --compare-to-untiled and --diff-png, how far a tiled
 * decode is from the undivided one of the same latents under the same policy.
 *
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const vr_tile_grid *grid_of(const cli_decode_result *r)
{
    return r->plan.tile_count > 1 ? &r->plan.grid[0] : NULL;
}

vr_status cli_decode_compare(const vr_tensor *latents, const vr_exec_options *opt, cli_decode_result *r,
                             vr_error *err)
{
    const vr_program *p = r->model->program;
    vr_exec_options whole = *opt;
    vr_exec_stats stats = {.op_seconds = NULL};
    whole.memory_limit = 0; /* the limit is the tiled decode's; this is the measure it is held against */
    whole.on_value = NULL;
    vr_status s = vr_exec_run(p, latents, &whole, &r->untiled, &stats, err);
    if (s)
        return s == VR_E_CANCELLED ? s : vr_fail_prefix(err, "the undivided decode of --compare-to-untiled");
    s = vr_compare_pictures(&r->out, &r->untiled, p->range_lo, p->range_hi, grid_of(r), r->model->spatial_scale,
                            &r->comparison, err);
    r->compared = !s;
    r->untiled_seconds = stats.seconds;
    r->untiled_peak_bytes = stats.pool.peak_bytes;
    return s;
}

vr_status cli_decode_diff(const cli_decode_args *a, cli_decode_result *r, vr_error *err)
{
    const vr_program *p = r->model->program;
    vr_status s = VR_OK;
    r->diff_gain = a->diff_gain;
    for (int64_t i = 0; !s && i < r->out.dim[0]; i++) {
        char path[PATH_MAX];
        vr_image img = {.data = NULL};
        const char *name = a->diff;
        if (r->out.dim[0] > 1) {
            s = cli_numbered(a->diff, i, path, sizeof path, err);
            name = path;
        }
        double gain = r->diff_gain; /* chosen once, from the largest difference of the batch */
        if (!s)
            s = vr_difference_picture(&r->out, &r->untiled, i, p->range_lo, p->range_hi, grid_of(r), &gain, &img, err);
        if (!s)
            s = vr_png_write(name, &img, err);
        if (!s)
            json_array_append_new(r->files, json_string(name));
        r->diff_gain = gain;
        free(img.data);
    }
    return s;
}

static const char *number(double v, char *buf, size_t size)
{
    if (isnan(v))
        snprintf(buf, size, "undefined");
    else
        snprintf(buf, size, "%.4g", v);
    return buf;
}

void cli_comparison_text(const cli_decode_args *a, const cli_decode_result *r)
{
    const vr_comparison *c = &r->comparison;
    char psnr[32], ssim[32], tone[32], border[32], corner[32], bytes[40];
    if (c->identical)
        printf("against the undivided decode: identical, bit for bit");
    else if (c->nonfinite)
        printf("against the undivided decode: %lld elements are not finite in one of the two", (long long)c->nonfinite);
    else
        printf("against the undivided decode: max %.4g at [%lld, %lld, %lld, %lld], rms %.4g, PSNR %s dB, SSIM %s; "
               "tone step %s, border score %s, corner score %s",
               c->max_abs, (long long)c->max_at[0], (long long)c->max_at[1], (long long)c->max_at[2],
               (long long)c->max_at[3], c->rms, number(c->psnr, psnr, sizeof psnr), number(c->ssim, ssim, sizeof ssim),
               number(c->tone_step, tone, sizeof tone), number(c->border_score, border, sizeof border),
               number(c->corner_score, corner, sizeof corner));
    printf("; it took %.2f s and %s of activations\n", r->untiled_seconds,
           cli_bytes_text(r->untiled_peak_bytes, bytes, sizeof bytes));
    if (a->diff)
        printf("difference, times %.4g -> %s\n", r->diff_gain, a->diff);
}

/* JSON has neither infinity nor NaN: both are null. */
static json_t *real(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

json_t *cli_comparison_json(const cli_decode_result *r)
{
    const vr_comparison *c = &r->comparison;
    if (!r->compared)
        return json_null();
    return json_pack("{s:b, s:I, s:o, s:[I, I, I, I], s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:I}", "identical",
                     (int)c->identical, "nonfinite", (json_int_t)c->nonfinite, "max_abs", real(c->max_abs), "max_at",
                     (json_int_t)c->max_at[0], (json_int_t)c->max_at[1], (json_int_t)c->max_at[2],
                     (json_int_t)c->max_at[3], "rms", real(c->rms), "psnr", real(c->psnr), "ssim", real(c->ssim),
                     "tone_step", real(c->tone_step), "border_score", real(c->border_score), "corner_score",
                     real(c->corner_score), "untiled_seconds", r->untiled_seconds, "untiled_peak_bytes",
                     (json_int_t)r->untiled_peak_bytes);
}
