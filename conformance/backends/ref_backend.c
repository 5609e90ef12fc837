/* The reference behind the plug-in boundary. SPDX-License-Identifier: MIT */
#include "backends/ref_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common.h"

struct vp_device {
    const ref_variant *variant;
    vr_order order;
    vr_policy f32_policy; /* f32, or golden by option */
    char error[sizeof((vr_error *)0)->text];
};

static const vp_host *host;
static const ref_variant *variant_list;
static int32_t variant_count;
static char open_error[256];

static int32_t fail(vp_device *d, vr_status s, const vr_error *err)
{
    snprintf(d->error, sizeof d->error, "%s", err->text);
    return vp_code_of(s);
}

static int32_t say(vp_device *d, int32_t code, const char *text)
{
    snprintf(d->error, sizeof d->error, "%s", text);
    return code;
}

/* Options: "variant=NAME,order=lanes8,policy=golden". */
static int32_t ref_open(const char *options, vp_device **out)
{
    char v[64];
    vp_device *d = host->alloc(host->ctx, sizeof *d, 16);
    *out = NULL;
    if (!d) {
        snprintf(open_error, sizeof open_error, "no memory for the device");
        return VP_E_MEMORY;
    }
    *d = (vp_device){.variant = &variant_list[0], .order = VR_ORDER_LANES8, .f32_policy = VR_POLICY_F32};
    if (vp_option(options, "variant", v, sizeof v)) {
        d->variant = NULL;
        for (int32_t i = 0; i < variant_count; i++)
            if (strcmp(v, variant_list[i].name) == 0)
                d->variant = &variant_list[i];
    }
    bool ok = d->variant != NULL;
    open_error[0] = '\0';
    if (!ok)
        snprintf(open_error, sizeof open_error, "no variant '%s'", v);
    if (ok && d->variant->fixed_order)
        d->order = d->variant->order;
    if (ok && vp_option(options, "order", v, sizeof v) && !vr_order_parse(v, &d->order)) {
        snprintf(open_error, sizeof open_error, "order '%s': want seq, lanes8, lanes32, pairwise or kblock64", v);
        ok = false;
    }
    if (ok && vp_option(options, "policy", v, sizeof v)) {
        if (strcmp(v, "golden") == 0)
            d->f32_policy = VR_POLICY_GOLDEN;
        else if (strcmp(v, "f32") != 0) {
            snprintf(open_error, sizeof open_error, "policy '%s': want f32 or golden", v);
            ok = false;
        }
    }
    if (!ok) {
        host->free(host->ctx, d);
        return VP_E_ARGUMENT;
    }
    *out = d;
    return VP_OK;
}

static void ref_close(vp_device *d)
{
    host->free(host->ctx, d);
}

static int32_t ref_info(vp_info *out)
{
    const uint32_t room = out->size;
    vp_info i = {.size = sizeof i, .abi_major = VP_ABI_MAJOR, .abi_minor = VP_ABI_MINOR,
                 .name = "ref", .version = VAEPROOF_VERSION, .vendor = "vaeproof", .device = "CPU",
                 .caps = VP_CAP_PROGRAM | VP_CAP_RANGE | VP_CAP_TAPS | VP_CAP_STRIDES | VP_CAP_BATCH | VP_CAP_PLAN |
                         VP_CAP_MEMORY_LIMIT | VP_CAP_DETERMINISTIC,
                 .storage_mask = 1u << VP_F64 | 1u << VP_F32 | 1u << VP_F16 | 1u << VP_BF16,
                 .tile_mask = (1u << VP_TILE_AUTO) - 1, .op_mask = (1ull << (VP_OP_CLAMP + 1)) - 1};
    i.caps &= ~variant_list[0].without_caps;
    memcpy(out, &i, room < sizeof i ? room : sizeof i);
    out->size = room < sizeof i ? room : (uint32_t)sizeof i;
    return VP_OK;
}

/* ---- jobs ------------------------------------------------------------------------ */

static void ref_release(vp_job *opaque)
{
    ref_job *j = (ref_job *)opaque;
    vr_tile_plan_free(&j->plan);
    vr_program_free(j->program);
    free(j->own);
    host->free(host->ctx, j);
}

static vr_status plan_tiles(ref_job *j, const vp_job_desc *d, vr_error *err)
{
    static const vr_tile_mode mode[] = {VR_TILE_NONE, VR_TILE_DIFFUSERS, VR_TILE_DIFFUSERS_STRIDE, VR_TILE_DIFFUSERS_TINY,
                                        VR_TILE_COMFY, VR_TILE_COMFY_3PASS, VR_TILE_SDCPP, VR_TILE_TWO_PASS,
                                        VR_TILE_TWO_PASS_FAST, VR_TILE_TWO_PASS_FIXED, VR_TILE_EXACT};
    const vp_tiling *t = &d->tiling;
    if (t->mode >= sizeof mode / sizeof *mode)
        return vr_fail(err, VR_E_UNSUPPORTED, "tile mode %u", t->mode);
    const vr_tile_options o = {.mode = mode[t->mode], .tile_h = t->tile_h, .tile_w = t->tile_w,
                               .overlap_h = t->mode ? t->overlap_h : -1, .overlap_w = t->mode ? t->overlap_w : -1,
                               .memory_limit = d->memory_limit};
    j->tiled = t->mode != VP_TILE_NONE;
    return vr_tile_plan_make(j->program, j->latent, &o, &j->plan, err);
}

static vr_status build(ref_job *j, const vp_job_desc *d, vr_error *err)
{
    const int64_t *l = d->latent;
    vr_status s = vp_program_of(d->program, &j->program, err);
    if (s != VR_OK)
        return s;
    j->latent = (vr_shape){l[0], l[1], l[2], l[3], l[4]};
    if (j->latent.c != j->program->op[0].channels || j->latent.n < 1 || j->latent.t < 1 || j->latent.h < 1 || j->latent.w < 1)
        return vr_fail(err, VR_E_SHAPE, "latent of %lld channels, %lldx%lld cells; this program wants %lld channels",
                       (long long)l[1], (long long)l[3], (long long)l[4], (long long)j->program->op[0].channels);
    s = plan_tiles(j, d, err);
    if (s == VR_OK && j->variant->change_program)
        j->variant->change_program(j->program);
    if (s == VR_OK && j->variant->change_plan)
        j->variant->change_plan(&j->plan);
    return s;
}

static int32_t ref_prepare(vp_device *d, const vp_job_desc *desc, vp_job **out)
{
    vr_error err = {VR_OK, ""};
    *out = NULL;
    if (!desc->program)
        return say(d, VP_E_UNSUPPORTED, "model files are not taken, programs are");
    ref_job *j = host->alloc(host->ctx, sizeof *j, 16);
    if (!j)
        return say(d, VP_E_MEMORY, "no memory for a job");
    *j = (ref_job){.variant = d->variant, .device = d};
    j->exec = (vr_exec_options){.order = d->order, .memory_limit = desc->memory_limit,
                                .threads = d->variant->threads ? d->variant->threads : desc->threads};
    if (!vp_dtype_of(desc->storage, &j->storage) ||
        desc->accumulate != (desc->storage == VP_F64 ? (uint32_t)VP_F64 : (uint32_t)VP_F32)) {
        host->free(host->ctx, j);
        return say(d, VP_E_UNSUPPORTED, "contract: want storage f64, f32, f16 or bf16 with sums in f32 (f64 for f64)");
    }
    j->exec.policy = j->storage == VR_F64    ? VR_POLICY_TRUTH
                     : j->storage == VR_F16  ? VR_POLICY_F16
                     : j->storage == VR_BF16 ? VR_POLICY_BF16
                                             : d->f32_policy;
    const vr_status s = build(j, desc, &err);
    int32_t code = s == VR_OK ? VP_OK : fail(d, s, &err);
    if (code == VP_OK && j->variant->on_prepare)
        code = j->variant->on_prepare(j, desc);
    if (code != VP_OK)
        ref_release((vp_job *)j);
    else
        *out = (vp_job *)j;
    return code;
}

/* ---- runs ---------------------------------------------------------------------------- */

enum { MOST_VALUES = 64 };

/* Every operation by itself, for variants that change values in between. */
static vr_status run_stepwise(ref_job *j, const vp_run_args *a, vr_exec_feed *feed, const int32_t *want, vr_tensor *out,
                              vr_error *err)
{
    const vr_program *p = j->program;
    vr_tensor *value = calloc((size_t)p->op_count, sizeof *value);
    vr_status s = value ? VR_OK : vr_fail(err, VR_E_NOMEM, "no memory for values");
    for (int32_t i = a->first; s == VR_OK && i <= a->last; i++) {
        vr_exec_feed in[3];
        const vr_tensor *read[3] = {NULL, NULL, NULL};
        int32_t n = 0;
        for (int k = 0; k < 3; k++) {
            const int32_t v = p->op[i].in[k];
            if (v < 0)
                continue;
            read[k] = value[v].data ? &value[v] : NULL;
            for (uint32_t f = 0; !read[k] && f < a->feed_count; f++)
                if (feed[f].value == v)
                    read[k] = feed[f].tensor;
            bool again = false;
            for (int q = 0; q < k; q++)
                again = again || p->op[i].in[q] == v;
            if (read[k] && !again)
                in[n++] = (vr_exec_feed){v, read[k]};
        }
        s = vr_exec_range(p, j->latent, i, i, in, n, &i, 1, &j->exec, &value[i], err);
        if (s == VR_OK)
            j->variant->after_op(j, p, i, read, &value[i]);
    }
    for (uint32_t k = 0; s == VR_OK && k < a->want_count; k++) {
        out[k] = value[want[k]]; /* each wanted once: see check_wants */
        value[want[k]] = (vr_tensor){.data = NULL};
        if (!out[k].data)
            s = vr_fail(err, VR_E_ARGUMENT, "value %d is wanted, but not made", want[k]);
    }
    for (int32_t i = 0; value && i < p->op_count; i++)
        vr_tensor_free(&value[i]);
    free(value);
    return s;
}

static vr_status compute(ref_job *j, const vp_run_args *a, vr_exec_feed *feed, vr_tensor *out, vr_error *err)
{
    int32_t want[MOST_VALUES];
    for (uint32_t k = 0; k < a->want_count; k++)
        want[k] = vp_want_at(a, k)->value;
    const bool whole = a->first == 1 && a->last == j->program->output && a->feed_count == 1 && a->want_count == 1 &&
                       want[0] == j->program->output;
    if (j->tiled && !whole)
        return vr_fail(err, VR_E_ARGUMENT, "a tiled job runs the whole program only");
    if (whole && (j->tiled || !j->variant->after_op)) {
        vr_tile_stats st = {.tiles_done = 0};
        vr_status s = vr_tile_decode(j->program, feed[0].tensor, &j->plan, &j->exec, &out[0], &st, err);
        j->stats.peak_bytes = st.exec.pool.peak_bytes;
        j->stats.pool_allocations = st.exec.pool.allocations;
        j->stats.pool_hits = st.exec.pool.hits;
        j->stats.spilled_bytes = st.spilled_bytes;
        j->stats.seconds = st.exec.seconds;
        return s;
    }
    if (j->variant->after_op)
        return run_stepwise(j, a, feed, want, out, err);
    return vr_exec_range(j->program, j->latent, a->first, a->last, feed, (int32_t)a->feed_count, want,
                         (int32_t)a->want_count, &j->exec, out, err);
}

static int32_t ref_run(vp_job *opaque, const vp_run_args *a)
{
    ref_job *j = (ref_job *)opaque;
    vr_error err = {VR_OK, ""};
    vr_tensor in[MOST_VALUES], out[MOST_VALUES];
    vr_exec_feed feed[MOST_VALUES];
    memset(in, 0, sizeof in);
    memset(out, 0, sizeof out);
    if (a->feed_count > MOST_VALUES || a->want_count > MOST_VALUES || a->feed_count < 1 || a->want_count < 1 ||
        a->first < 1 || a->last < a->first || a->last >= j->program->op_count)
        return say(j->device, VP_E_ARGUMENT, "a run wants 1 to 64 values in and out, and a range within the program");
    int32_t code = j->variant->before_run ? j->variant->before_run(j, a) : VP_OK;
    if (code != VP_OK)
        return code;
    vr_status s = VR_OK;
    for (uint32_t k = 0; s == VR_OK && k < a->feed_count; k++) {
        s = vp_take_in(&vp_feed_at(a, k)->tensor, &in[k], &err);
        feed[k] = (vr_exec_feed){vp_feed_at(a, k)->value, &in[k]};
    }
    if (s == VR_OK)
        s = compute(j, a, feed, out, &err);
    for (uint32_t k = 0; s == VR_OK && k < a->want_count; k++)
        s = vp_give_out(host, &out[k], &vp_want_at(a, k)->tensor, &err);
    for (int k = 0; k < MOST_VALUES; k++) {
        vr_tensor_free(&in[k]);
        vr_tensor_free(&out[k]);
    }
    if (s != VR_OK)
        return fail(j->device, s, &err);
    j->stats.executions++;
    j->stats.total_seconds += j->stats.seconds;
    return j->variant->after_run ? j->variant->after_run(j, a) : VP_OK;
}

static int32_t ref_stats(vp_job *opaque, vp_stats *out)
{
    const ref_job *j = (const ref_job *)opaque;
    const uint32_t room = out->size < sizeof j->stats ? out->size : (uint32_t)sizeof j->stats;
    memcpy(out, &j->stats, room);
    out->size = room;
    return VP_OK;
}

static int32_t ref_plan(vp_job *opaque, vp_tile *tiles, uint32_t room, uint32_t *count)
{
    vp_fill_plan(&((const ref_job *)opaque)->plan, tiles, room, count);
    return VP_OK;
}

static const char *ref_last_error(vp_device *d)
{
    return d ? d->error : open_error;
}

int32_t ref_backend_get(const vp_host *h, vp_backend *out, const ref_variant *variants, int32_t count)
{
    if (h->abi_major != VP_ABI_MAJOR || out->abi_major != VP_ABI_MAJOR)
        return VP_E_UNSUPPORTED;
    const vp_backend b = {.size = sizeof b, .abi_major = VP_ABI_MAJOR, .info = ref_info, .open = ref_open,
                          .close = ref_close, .prepare = ref_prepare, .run = ref_run, .release = ref_release,
                          .stats = ref_stats, .plan = ref_plan, .last_error = ref_last_error};
    const uint32_t room = out->size < sizeof b ? out->size : (uint32_t)sizeof b;
    host = h;
    variant_list = variants;
    variant_count = count;
    memcpy(out, &b, room);
    out->size = room;
    return VP_OK;
}
