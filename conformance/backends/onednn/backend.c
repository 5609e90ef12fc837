/* libvaebackend_onednn.so: a whole decoder on oneDNN's primitives, an implementation that
 * shares no arithmetic with the reference. Tiles: the reference's plans and blends around
 * this decoder.
 *
 * SPDX-License-Identifier: MIT */
#include "backends/onednn/onednn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <omp.h>

#include "vaeref/tile.h"

enum { MOST_VALUES = 64 };

struct vp_device {
    char error[512];
};

struct vp_job {
    vp_device *device;
    vr_program *program;
    on_net net;
    vr_shape latent;
    vr_tile_plan plan;
    bool tiled;
    int32_t threads;
    uint64_t live; /* bytes of activations */
    vp_stats stats;
};

static const vp_host *host;
static char open_error[128] = "no memory for a device";

static int32_t fail(vp_device *d, vr_status s, const vr_error *err)
{
    snprintf(d->error, sizeof d->error, "%s", err->text);
    return vp_code_of(s);
}

static int32_t on_info(vp_info *out)
{
    const dnnl_version_t *v = dnnl_version();
    const uint32_t room = out->size;
    const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    const bool bf16 = (isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
    vp_info i = {.size = sizeof i, .abi_major = VP_ABI_MAJOR, .abi_minor = VP_ABI_MINOR, .name = "onednn", .vendor = "oneAPI", .device = "CPU",
                 .caps = VP_CAP_PROGRAM | VP_CAP_RANGE | VP_CAP_TAPS | VP_CAP_STRIDES | VP_CAP_BATCH | VP_CAP_PLAN | VP_CAP_DETERMINISTIC,
                 .storage_mask = 1u << VP_F32 | (bf16 ? 1u << VP_BF16 : 0),
                 .tile_mask = 1u << VP_TILE_NONE | 1u << VP_TILE_DIFFUSERS | 1u << VP_TILE_DIFFUSERS_STRIDE | 1u << VP_TILE_DIFFUSERS_TINY |
                              1u << VP_TILE_COMFY | 1u << VP_TILE_COMFY_3PASS | 1u << VP_TILE_SDCPP,
                 .op_mask = (1ull << (VP_OP_CLAMP + 1)) - 1};
    snprintf(i.version, sizeof i.version, "%d.%d.%d", v->major, v->minor, v->patch);
    memcpy(out, &i, room < sizeof i ? room : sizeof i);
    out->size = room < sizeof i ? room : (uint32_t)sizeof i;
    return VP_OK;
}

static int32_t on_open(const char *options, vp_device **out)
{
    (void)options;
    *out = host->alloc(host->ctx, sizeof **out, 16);
    if (!*out)
        return VP_E_MEMORY;
    (*out)->error[0] = '\0';
    return VP_OK;
}

static void on_close(vp_device *d)
{
    host->free(host->ctx, d);
}

static void on_release(vp_job *j)
{
    on_net_free(&j->net);
    vr_tile_plan_free(&j->plan);
    vr_program_free(j->program);
    host->free(host->ctx, j);
}

/* ---- jobs ---------------------------------------------------------------------------------- */

static vr_status plan_tiles(vp_job *j, const vp_tiling *t, vr_error *err)
{
    static const vr_tile_mode mode[] = {VR_TILE_NONE, VR_TILE_DIFFUSERS, VR_TILE_DIFFUSERS_STRIDE, VR_TILE_DIFFUSERS_TINY,
                                        VR_TILE_COMFY, VR_TILE_COMFY_3PASS, VR_TILE_SDCPP};
    if (t->mode >= sizeof mode / sizeof *mode)
        return vr_fail(err, VR_E_UNSUPPORTED, "tile mode %u is not claimed", t->mode);
    const vr_tile_options o = {.mode = mode[t->mode], .tile_h = t->tile_h, .tile_w = t->tile_w,
                               .overlap_h = t->mode ? t->overlap_h : -1, .overlap_w = t->mode ? t->overlap_w : -1};
    j->tiled = t->mode != VP_TILE_NONE;
    return vr_tile_plan_make(j->program, j->latent, &o, &j->plan, err);
}

static vr_status build(vp_job *j, const vp_job_desc *d, vr_error *err)
{
    const int64_t *l = d->latent;
    if (!d->program)
        return vr_fail(err, VR_E_UNSUPPORTED, "model files are not taken, programs are");
    if ((d->storage != VP_F32 && d->storage != VP_BF16) || d->accumulate != VP_F32)
        return vr_fail(err, VR_E_UNSUPPORTED, "contract: want storage f32 or bf16 with sums in f32");
    vr_status s = vp_program_of(d->program, &j->program, err);
    if (s != VR_OK)
        return s;
    j->latent = (vr_shape){l[0], l[1], l[2], l[3], l[4]};
    if (j->latent.c != j->program->op[0].channels || j->latent.t != 1 || j->latent.n < 1 || j->latent.h < 1 || j->latent.w < 1)
        return vr_fail(err, VR_E_SHAPE, "latent of %lld channels and %lld frames; want %lld channels of a picture", (long long)l[1],
                       (long long)l[2], (long long)j->program->op[0].channels);
    j->net.p = j->program;
    j->net.bf16 = d->storage == VP_BF16;
    j->net.weight = calloc((size_t)j->program->weight_count + 1, sizeof *j->net.weight);
    if (!j->net.weight)
        return vr_fail(err, VR_E_NOMEM, "no memory for weights");
    s = on_check(dnnl_engine_create(&j->net.engine, dnnl_cpu, 0), "engine", err);
    if (s == VR_OK)
        s = on_check(dnnl_stream_create(&j->net.stream, j->net.engine, dnnl_stream_default_flags), "stream", err);
    return s == VR_OK ? plan_tiles(j, &d->tiling, err) : s;
}

static int32_t on_prepare(vp_device *d, const vp_job_desc *desc, vp_job **out)
{
    vr_error err = {VR_OK, ""};
    *out = NULL;
    vp_job *j = host->alloc(host->ctx, sizeof *j, 16);
    if (!j) {
        snprintf(d->error, sizeof d->error, "no memory for a job");
        return VP_E_MEMORY;
    }
    *j = (vp_job){.device = d, .threads = desc->threads > 0 ? desc->threads : omp_get_num_procs()};
    const vr_status s = build(j, desc, &err);
    if (s == VR_OK) {
        *out = j;
        return VP_OK;
    }
    on_release(j);
    return fail(d, s, &err);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void drop(vp_job *j, on_value *v)
{
    if (v->data)
        j->live -= (uint64_t)on_count(v->shape) * on_size(&j->net);
    free(v->data);
    v->data = NULL;
}

/* Runs first..last; value[] holds the fed values and keeps the wanted ones (`keep`). */
static vr_status walk(vp_job *j, int32_t first, int32_t last, on_value *value, const bool *keep, vr_error *err)
{
    const vr_program *p = j->program;
    int32_t *used = calloc((size_t)p->op_count, sizeof *used);
    vr_status s = used ? VR_OK : vr_fail(err, VR_E_NOMEM, "no memory for live ranges");
    for (int32_t i = first; s == VR_OK && i <= last; i++)
        for (int k = 0; k < 3; k++)
            if (p->op[i].in[k] >= 0)
                used[p->op[i].in[k]] = i;
    for (int32_t i = first; s == VR_OK && i <= last; i++) {
        const on_value *in[3] = {NULL, NULL, NULL};
        for (int k = 0; k < 3 && p->op[i].in[k] >= 0; k++) {
            in[k] = &value[p->op[i].in[k]];
            if (!in[k]->data)
                s = vr_fail(err, VR_E_ARGUMENT, "operation %d reads value %d, which is neither fed nor made", (int)i, (int)p->op[i].in[k]);
        }
        if (s == VR_OK)
            s = on_operation(&j->net, i, in, &value[i], err);
        j->live += value[i].data ? (uint64_t)on_count(value[i].shape) * on_size(&j->net) : 0;
        j->stats.peak_bytes = j->live > j->stats.peak_bytes ? j->live : j->stats.peak_bytes;
        for (int k = 0; s == VR_OK && k < 3; k++) {
            const int32_t v = p->op[i].in[k];
            if (v >= 0 && used[v] == i && !keep[v])
                drop(j, &value[v]);
        }
    }
    free(used);
    return s;
}

static vr_status shapes(const vp_job *j, vr_shape latent, on_value **out, bool **keep, vr_error *err)
{
    const size_t n = (size_t)j->program->op_count;
    vr_shape *shape = calloc(n, sizeof *shape);
    *out = calloc(n, sizeof **out);
    *keep = calloc(n, sizeof **keep);
    vr_status s = shape && *out && *keep ? vr_program_shapes(j->program, latent, shape, err) : vr_fail(err, VR_E_NOMEM, "no memory for values");
    for (size_t i = 0; s == VR_OK && i < n; i++)
        (*out)[i].shape = shape[i];
    free(shape);
    return s;
}

static vr_status put(vp_job *j, const vr_tensor *t, on_value *v, vr_error *err)
{
    int64_t n = 0;
    vr_status s = vr_tensor_count(t, &n, err);
    if (s == VR_OK && n != on_count(v->shape))
        return vr_fail(err, VR_E_SHAPE, "a value of %lld elements is fed; want %lld", (long long)n, (long long)on_count(v->shape));
    v->data = malloc((size_t)n * on_size(&j->net));
    if (!v->data)
        return vr_fail(err, VR_E_NOMEM, "no memory for a fed value");
    j->live += (uint64_t)n * on_size(&j->net);
    return vr_convert(j->net.bf16 ? VR_BF16 : VR_F32, v->data, t->dtype, t->data, (uint64_t)n, err);
}

static vr_status take(const vp_job *j, const on_value *v, vr_tensor *out, vr_error *err)
{
    const vr_shape s = v->shape;
    const int64_t dim[4] = {s.n, s.c, s.h, s.w};
    if (!v->data)
        return vr_fail(err, VR_E_ARGUMENT, "a value is wanted that is not made");
    vr_status st = vr_tensor_new(out, j->net.bf16 ? VR_BF16 : VR_F32, 4, dim, err);
    if (st == VR_OK)
        memcpy(out->data, v->data, (size_t)on_count(s) * on_size(&j->net));
    return st;
}

static vr_status decode_tile(void *ctx, const vr_tensor *latent, vr_tensor *out, vr_error *err)
{
    vp_job *j = ctx;
    on_value *value = NULL;
    bool *keep = NULL;
    vr_status s = shapes(j, (vr_shape){latent->dim[0], latent->dim[1], 1, latent->dim[2], latent->dim[3]}, &value, &keep, err);
    if (s == VR_OK)
        s = put(j, latent, &value[0], err);
    if (s == VR_OK) {
        keep[j->program->output] = true;
        s = walk(j, 1, j->program->output, value, keep, err);
    }
    if (s == VR_OK)
        s = take(j, &value[j->program->output], out, err);
    for (int32_t i = 0; value && i < j->program->op_count; i++)
        drop(j, &value[i]);
    free(value);
    free(keep);
    return s;
}

static vr_status compute(vp_job *j, const vp_run_args *a, const vr_tensor *in, vr_tensor *out, vr_error *err)
{
    on_value *value = NULL;
    bool *keep = NULL;
    if (j->tiled) {
        if (a->first != 1 || a->last != j->program->output || a->feed_count != 1 || a->want_count != 1)
            return vr_fail(err, VR_E_ARGUMENT, "a tiled job runs the whole program only");
        return vr_tile_blend_run(&j->plan, &in[0], decode_tile, j, &out[0], err);
    }
    vr_status s = shapes(j, j->latent, &value, &keep, err);
    for (uint32_t k = 0; s == VR_OK && k < a->feed_count; k++) {
        const int32_t v = vp_feed_at(a, k)->value;
        s = v < 0 || v >= a->first || value[v].data ? vr_fail(err, VR_E_ARGUMENT, "value %d cannot be fed", (int)v)
                                                    : put(j, &in[k], &value[v], err);
    }
    for (uint32_t k = 0; s == VR_OK && k < a->want_count; k++) {
        const int32_t v = vp_want_at(a, k)->value;
        if (v < 0 || v > a->last)
            s = vr_fail(err, VR_E_ARGUMENT, "value %d cannot be wanted", (int)v);
        else
            keep[v] = true;
    }
    if (s == VR_OK)
        s = walk(j, a->first, a->last, value, keep, err);
    for (uint32_t k = 0; s == VR_OK && k < a->want_count; k++)
        s = take(j, &value[vp_want_at(a, k)->value], &out[k], err);
    for (int32_t i = 0; value && i < j->program->op_count; i++)
        drop(j, &value[i]);
    free(value);
    free(keep);
    return s;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int32_t on_run(vp_job *j, const vp_run_args *a)
{
    vr_error err = {VR_OK, ""};
    vr_tensor in[MOST_VALUES], out[MOST_VALUES];
    memset(in, 0, sizeof in);
    memset(out, 0, sizeof out);
    if (a->feed_count > MOST_VALUES || a->want_count > MOST_VALUES || a->feed_count < 1 || a->want_count < 1 || a->first < 1 ||
        a->last < a->first || a->last >= j->program->op_count) {
        snprintf(j->device->error, sizeof j->device->error, "a run wants 1 to 64 values in and out, and a range within the program");
        return VP_E_ARGUMENT;
    }
    omp_set_num_threads(j->threads);
    vr_status s = VR_OK;
    for (uint32_t k = 0; s == VR_OK && k < a->feed_count; k++)
        s = vp_take_in(&vp_feed_at(a, k)->tensor, &in[k], &err);
    const double start = now();
    j->live = j->stats.peak_bytes = 0;
    const uint64_t before = j->net.hits;
    if (s == VR_OK)
        s = compute(j, a, in, out, &err);
    j->stats.seconds = now() - start;
    j->stats.pool_hits += j->net.hits - before;
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
    return VP_OK;
}

static int32_t on_stats(vp_job *j, vp_stats *out)
{
    const uint32_t room = out->size < sizeof j->stats ? out->size : (uint32_t)sizeof j->stats;
    memcpy(out, &j->stats, room);
    out->size = room;
    return VP_OK;
}

static int32_t on_plan(vp_job *j, vp_tile *tiles, uint32_t room, uint32_t *count)
{
    vp_fill_plan(&j->plan, tiles, room, count);
    return VP_OK;
}

static const char *on_last_error(vp_device *d)
{
    return d ? d->error : open_error;
}

__attribute__((visibility("default"))) int32_t vp_backend_get(const vp_host *h, vp_backend *out)
{
    if (h->abi_major != VP_ABI_MAJOR || out->abi_major != VP_ABI_MAJOR)
        return VP_E_UNSUPPORTED;
    const vp_backend b = {.size = sizeof b, .abi_major = VP_ABI_MAJOR, .info = on_info, .open = on_open, .close = on_close,
                          .prepare = on_prepare, .run = on_run, .release = on_release, .stats = on_stats, .plan = on_plan,
                          .last_error = on_last_error};
    const uint32_t room = out->size < sizeof b ? out->size : (uint32_t)sizeof b;
    host = h;
    memcpy(out, &b, room);
    out->size = room;
    return VP_OK;
}
