/* ref/cli/decode_run.c: one decode, from checked arguments to written files.
 *
 * All that can be refused is refused before the long part. After it either
 * every output is written or none is: numbered pictures already written are
 * removed when a later one fails. A non-finite value anywhere is a failure
 * unless --allow-nonfinite; it never becomes a silent black pixel.
 *
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct run {
    const cli_decode_args *a;
    cli_decode_result r;
    vr_model *model;
    vr_tensor latents;
    cli_taps taps;
    bool tapping;
    cli_progress progress;
} run;

static vr_status on_value(void *ctx, int32_t op, const char *tap, const vr_tensor *value,
                          vr_error *err)
{
    run *x = ctx;
    return cli_taps_value(&x->taps, op, tap, value, err);
}

static bool on_progress(void *ctx, int64_t done, int64_t total)
{
    run *x = ctx;
    return cli_progress_update(&x->progress, done, total);
}

/* ---- before ------------------------------------------------------------------ */

static vr_status check_outputs(const cli_decode_args *a, vr_error *err)
{
    vr_status s = a->output ? cli_output_check(a->output, err) : VR_OK;
    if (!s && a->stats)
        s = cli_output_check(a->stats, err);
    if (!s && a->diff)
        s = cli_output_check(a->diff, err);
    return s;
}

static vr_status check_picture(const cli_decode_args *a, vr_shape out, vr_error *err)
{
    if (!a->output || a->format != CLI_PNG)
        return VR_OK;
    if (out.c != 1 && out.c != 3 && out.c != 4)
        return vr_fail(err, VR_E_SHAPE,
                       "%s: the decoder makes %lld channels, a PNG has 1, 3 or 4; want .npy or "
                       ".safetensors", a->output, (long long)out.c);
    if (out.h > 65535 || out.w > 65535)
        return vr_fail(err, VR_E_SHAPE,
                       "%s: the picture would be %lldx%lld, beyond 65535 a side; want .npy or "
                       ".safetensors", a->output, (long long)out.w, (long long)out.h);
    return VR_OK;
}

/* Memory the decode must have; `exact` makes do with what there is. */
static vr_status check_limit(const cli_decode_args *a, const cli_decode_result *r, vr_error *err)
{
    const vr_program *p = r->model->program;
    const bool whole = r->plan.tile_count == 1;
    const int64_t peak = whole ? r->cost.peak_bytes : r->plan.peak_bytes;
    char need[40], have[40], where[300] = "";
    if (!a->memory_limit || (uint64_t)peak <= a->memory_limit || a->tile.options.mode == VR_TILE_EXACT)
        return VR_OK;
    if (whole)
        snprintf(where, sizeof where, " (at '%s')", p->op[r->cost.peak_op].tap);
    return vr_fail(err, VR_E_BUDGET,
                   "this decode needs %s of activations%s, --memory-limit allows %s; want smaller %s or a higher limit",
                   cli_bytes_text((uint64_t)peak, need, sizeof need), where,
                   cli_bytes_text(a->memory_limit, have, sizeof have), whole ? "latents" : "tiles");
}

/* Shapes, cost and the memory this decode needs. */
static vr_status plan(run *x, vr_error *err)
{
    const cli_decode_args *a = x->a;
    const vr_program *p = x->model->program;
    cli_decode_result *r = &x->r;
    size_t n = (size_t)p->op_count;
    r->model = x->model;
    r->latent = (vr_shape){x->latents.dim[0], x->latents.dim[1], 1, x->latents.dim[2],
                           x->latents.dim[3]};
    r->shape = calloc(n, sizeof *r->shape);
    r->op_cost = calloc(n, sizeof *r->op_cost);
    r->stats.op_seconds = calloc(n, sizeof *r->stats.op_seconds);
    r->files = json_array();
    if (!r->shape || !r->op_cost || !r->stats.op_seconds || !r->files)
        return vr_fail(err, VR_E_NOMEM, "out of memory");
    vr_status s = vr_program_shapes(p, r->latent, r->shape, err);
    if (s)
        return vr_fail_prefix(err, "%s", a->latents.spec);
    r->out_shape = r->shape[p->output];
    int64_t bytes = a->policy == VR_POLICY_TRUTH ? 8 : 4; /* 16-bit values lie in floats */
    s = vr_program_cost_of(p, r->latent, bytes, &r->cost, r->op_cost, err);
    if (!s)
        s = check_picture(a, r->out_shape, err);
    if (s)
        return s;
    cli_tile_args tile = a->tile;
    if (tile.options.mode == VR_TILE_AUTO)
        tile.options.memory_limit = a->memory_limit;
    s = cli_costs_load(&tile, r->model, err);
    if (!s)
        s = vr_tile_plan_make(p, r->latent, &tile.options, &r->plan, err);
    return s ? s : check_limit(a, r, err);
}

/* ---- after ------------------------------------------------------------------- */

static void digest(cli_decode_result *r)
{
    vr_sha256 h;
    uint8_t d[32];
    int64_t count = 0;
    vr_tensor_count(&r->out, &count, NULL);
    vr_sha256_init(&h);
    vr_sha256_update(&h, r->out.data, (size_t)count * vr_dtype_size(r->out.dtype));
    vr_sha256_final(&h, d);
    vr_sha256_hex(d, r->sha256);
}

static vr_status write_picture(const run *x, const char *path, int64_t i, float *plane,
                               uint8_t *pixels, vr_error *err)
{
    const vr_program *p = x->model->program;
    vr_shape o = x->r.out_shape;
    int64_t count = o.c * o.h * o.w;
    const char *src = (const char *)x->r.out.data;
    vr_status s = vr_convert(VR_F32, plane, x->r.out.dtype,
                             src + (size_t)(i * count) * vr_dtype_size(x->r.out.dtype),
                             (uint64_t)count, err);
    if (s)
        return s;
    vr_to_u8(plane, o.c, o.h, o.w, p->range_lo, p->range_hi, pixels);
    vr_image img = {(int32_t)o.w, (int32_t)o.h, (int32_t)o.c, 8, pixels};
    return vr_png_write(path, &img, err);
}

static vr_status write_pictures(run *x, vr_error *err)
{
    vr_shape o = x->r.out_shape;
    size_t count = (size_t)(o.c * o.h * o.w);
    float *plane = malloc(count * sizeof *plane);
    uint8_t *pixels = malloc(count);
    vr_status s = VR_OK;
    if (!plane || !pixels)
        s = vr_fail(err, VR_E_NOMEM, "out of memory for a picture of %lldx%lld", (long long)o.w,
                    (long long)o.h);
    for (int64_t i = 0; !s && i < o.n; i++) {
        char path[PATH_MAX];
        if (o.n > 1)
            s = cli_numbered(x->a->output, i, path, sizeof path, err);
        if (!s && cli_interrupted())
            s = vr_fail(err, VR_E_CANCELLED, "interrupted");
        const char *name = o.n > 1 ? path : x->a->output;
        if (!s)
            s = write_picture(x, name, i, plane, pixels, err);
        if (!s)
            json_array_append_new(x->r.files, json_string(name));
    }
    free(pixels);
    free(plane);
    return s;
}

static vr_status write_tensor(run *x, vr_error *err)
{
    const cli_decode_args *a = x->a;
    const vr_model *m = x->model;
    bool ordered = a->policy != VR_POLICY_GOLDEN && a->policy != VR_POLICY_TRUTH;
    char range[64];
    snprintf(range, sizeof range, "%g %g", m->program->range_lo, m->program->range_hi);
    const vr_metadata meta[] = {
        {"vaeproof.arch", m->arch},
        {"vaeproof.weights_sha256", m->weights_sha256},
        {"vaeproof.policy", vr_policy_name(a->policy)},
        {"vaeproof.order", ordered ? vr_order_name(a->order) : "fixed"},
        {"vaeproof.range", range},
        {"vaeproof.output_sha256", x->r.sha256},
        {"vaeproof.version", VAEREF_VERSION},
    };
    vr_status s = cli_tensor_write(a->output, a->format, "decoded", &x->r.out, meta,
                                   (int64_t)(sizeof meta / sizeof *meta), err);
    if (!s)
        json_array_append_new(x->r.files, json_string(a->output));
    return s;
}

static void remove_outputs(run *x)
{
    size_t i;
    json_t *f;
    json_array_foreach(x->r.files, i, f)
        cli_output_remove(json_string_value(f));
    json_array_clear(x->r.files);
}

static vr_status write_outputs(run *x, vr_error *err)
{
    vr_status s = VR_OK;
    if (x->a->output)
        s = x->a->format == CLI_PNG ? write_pictures(x, err) : write_tensor(x, err);
    if (!s && x->a->diff)
        s = cli_decode_diff(x->a, &x->r, err);
    if (s)
        remove_outputs(x);
    return s;
}

/* What to say about the first NaN or infinity. */
static void describe_nonfinite(const run *x, char *buf, size_t size)
{
    const vr_nonfinite *n = &x->r.stats.nonfinite;
    vr_policy p = x->a->policy;
    const char *advice = p == VR_POLICY_F16    ? "--policy bf16 or f32 has the range this needs"
                         : p == VR_POLICY_BF16 ? "try --policy f32 or golden"
                         : p == VR_POLICY_TRUTH
                             ? "the weights or latents are out of any range; check them"
                             : "check the weights and latents, or try --policy truth";
    snprintf(buf, size,
             "policy %s: '%s' (operation %d) is the first value that is not finite: %lld NaN, "
             "%lld infinite, first at element %lld; %s", vr_policy_name(p),
             x->model->program->op[n->op].tap, (int)n->op, (long long)n->nan_count,
             (long long)n->inf_count, (long long)n->first_index, advice);
}

static void summary(const run *x)
{
    const cli_decode_args *a = x->a;
    const cli_decode_result *r = &x->r;
    const vr_model *m = x->model;
    bool ordered = a->policy != VR_POLICY_GOLDEN && a->policy != VR_POLICY_TRUTH;
    char shape[120], norm[120];
    printf("decoded %s %s with %s to %lldx%lld pixels; normalisation: %s; policy %s%s%s; %.2f s; ",
           a->latents.spec, cli_shape_text(r->latent, shape, sizeof shape), m->arch,
           (long long)r->out_shape.w, (long long)r->out_shape.h,
           cli_normalisation_text(m, norm, sizeof norm), vr_policy_name(a->policy),
           ordered ? "/" : "", ordered ? vr_order_name(a->order) : "", r->stats.seconds);
    if (a->tile.options.mode != VR_TILE_NONE)
        printf("%s, %lld tile%s; ", vr_tile_mode_name(a->tile.options.mode), (long long)r->plan.tile_count,
               r->plan.tile_count == 1 ? "" : "s");
    size_t n = a->output ? (size_t)r->out_shape.n : 0;
    if (!n || a->format != CLI_PNG)
        n = a->output != NULL;
    if (!n)
        printf("sha256 %s (no -o: nothing written)\n", r->sha256);
    else if (n == 1)
        printf("-> %s\n", a->output);
    else
        printf("-> %s to %s\n", json_string_value(json_array_get(r->files, 0)),
               json_string_value(json_array_get(r->files, n - 1)));
    if (r->compared)
        cli_comparison_text(a, r);
}

/* The decode is done; write what is to be written and say so. */
static int finish(run *x, vr_error *err)
{
    const cli_decode_args *a = x->a;
    bool bad = x->r.stats.nonfinite.op >= 0, write = !bad || a->allow_nonfinite;
    char what[500];
    digest(&x->r);
    if (bad)
        describe_nonfinite(x, what, sizeof what);
    if (x->tapping && cli_taps_finish(&x->taps, err))
        return cli_fail(err);
    if (write && write_outputs(x, err))
        return err->status == VR_E_CANCELLED ? CLI_INTERRUPTED : cli_fail(err);
    if (a->stats && cli_stats_write(a->stats, a, &x->r, err)) {
        remove_outputs(x);
        return cli_fail(err);
    }
    if (bad && !write)
        return cli_error(CLI_FAILURE, "%s; nothing written (--allow-nonfinite would)", what);
    if (bad)
        cli_warn("%s", what);
    if (!a->quiet)
        summary(x);
    return CLI_OK;
}

static int decode(run *x, vr_error *err)
{
    const cli_decode_args *a = x->a;
    const char *isa;
    if (check_outputs(a, err) || vr_exec_isa(&isa, err) ||
        cli_latents_load(&a->latents, &x->latents, err) ||
        cli_model_open(&a->model, &x->model, err) ||
        cli_latents_fit(&a->latents, x->model, &x->latents, err))
        return cli_fail(err);
    if (plan(x, err))
        return cli_tile_fail(err);
    if (a->taps) {
        x->tapping = true;
        if (cli_taps_start(&x->taps, a->taps, x->model->program, err))
            return cli_fail(err);
    }
    vr_exec_options opt = {0};
    opt.policy = a->policy;
    opt.order = a->order;
    opt.threads = a->threads;
    opt.memory_limit = a->memory_limit;
    opt.on_value = x->tapping ? on_value : NULL;
    opt.on_progress = on_progress;
    opt.ctx = x;
    cli_interrupt_catch();
    cli_progress_start(&x->progress, a->quiet);
    x->r.tile_stats.exec.op_seconds = x->r.stats.op_seconds;
    vr_status s = vr_tile_decode(x->model->program, &x->latents, &x->r.plan, &opt, &x->r.out,
                                 &x->r.tile_stats, err);
    x->r.stats = x->r.tile_stats.exec;
    if (!s && a->compare)
        s = cli_decode_compare(&x->latents, &opt, &x->r, err);
    cli_progress_end(&x->progress);
    if (s == VR_E_CANCELLED || cli_interrupted())
        return CLI_INTERRUPTED;
    if (s)
        return cli_fail(err);
    return finish(x, err);
}

int cli_decode_run(const cli_decode_args *a)
{
    run x;
    vr_error err = {VR_OK, ""};
    memset(&x, 0, sizeof x);
    x.a = a;
    x.r.stats.nonfinite.op = -1;
    int code = decode(&x, &err);
    if (code == CLI_INTERRUPTED)
        cli_error(code, "interrupted; nothing was written");
    /* Taps of a finished run with NaN are kept: they are what one looks at. */
    if (x.tapping && code != CLI_OK && !(code == CLI_FAILURE && x.r.stats.nonfinite.op >= 0))
        cli_taps_discard(&x.taps);
    cli_taps_free(&x.taps);
    json_decref(x.r.files);
    vr_tensor_free(&x.r.out);
    vr_tensor_free(&x.r.untiled);
    vr_tensor_free(&x.latents);
    free(x.r.stats.op_seconds);
    free(x.r.op_cost);
    free(x.r.shape);
    vr_tile_plan_free(&x.r.plan);
    vr_model_close(x.model);
    return code;
}
