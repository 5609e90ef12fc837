/* The smallest backend: one operation, in f32 (docs/abi.md). SPDX-License-Identifier: MIT */
#include "vaeproof/backend.h"

#include <string.h>

struct vp_device { const char *error; };
struct vp_job { vp_device *device; int32_t ops; };

static const vp_host *host;

static int32_t info(vp_info *out) {
    vp_info i = {.size = out->size, .abi_major = VP_ABI_MAJOR, .name = "minimal", .version = "1", .device = "CPU",
                 .caps = VP_CAP_PROGRAM | VP_CAP_RANGE | VP_CAP_BATCH, .storage_mask = 1u << VP_F32,
                 .op_mask = 1u << VP_OP_INPUT | 1u << VP_OP_RELU};
    memcpy(out, &i, out->size < sizeof i ? out->size : sizeof i);
    return VP_OK;
}
static int32_t open_device(const char *options, vp_device **out) {
    (void)options;
    *out = host->alloc(host->ctx, sizeof **out, 16);
    if (!*out) return VP_E_MEMORY;
    (*out)->error = "";
    return VP_OK;
}
static void close_device(vp_device *d) { host->free(host->ctx, d); }
static int32_t refuse(vp_device *d, int32_t code, const char *why) { d->error = why; return code; }

static int32_t prepare(vp_device *d, const vp_job_desc *desc, vp_job **out) {
    *out = NULL;
    if (desc->storage != VP_F32 || desc->tiling.mode != VP_TILE_NONE || !desc->program)
        return refuse(d, VP_E_UNSUPPORTED, "want a program in f32 without tiles");
    for (uint32_t i = 1; i < desc->program->op_count; i++)
        if (vp_program_op(desc->program, i)->kind != VP_OP_RELU)
            return refuse(d, VP_E_UNSUPPORTED, "relu is all there is");
    if (desc->latent[1] != vp_program_op(desc->program, 0)->channels)
        return refuse(d, VP_E_ARGUMENT, "the latent has other channels than the program's input");
    *out = host->alloc(host->ctx, sizeof **out, 16);
    if (!*out) return refuse(d, VP_E_MEMORY, "no memory for a job");
    **out = (vp_job){d, (int32_t)desc->program->op_count};
    return VP_OK;
}
static int32_t run(vp_job *j, const vp_run_args *a) {
    if (a->first < 1 || a->last < a->first || a->last >= j->ops || a->feed_count != 1 || a->want_count != 1)
        return refuse(j->device, VP_E_ARGUMENT, "want a range within the program, one value in, one out");
    const vp_tensor *x = &vp_feed_at(a, 0)->tensor;
    vp_tensor *y = &vp_want_at(a, 0)->tensor;
    for (uint64_t k = 0; k < x->bytes / sizeof(float); k++) { /* dense: VP_CAP_STRIDES is not claimed */
        const float v = ((const float *)x->data)[k];
        ((float *)y->data)[k] = v < 0 ? 0 : v;
    }
    return VP_OK;
}
static void release(vp_job *j) { host->free(host->ctx, j); }
static const char *last_error(vp_device *d) { return d ? d->error : "no memory for a device"; }

__attribute__((visibility("default"))) int32_t vp_backend_get(const vp_host *h, vp_backend *out) {
    const vp_backend b = {.size = out->size, .abi_major = VP_ABI_MAJOR, .info = info, .open = open_device, .close = close_device,
                          .prepare = prepare, .run = run, .release = release, .last_error = last_error};
    if (h->abi_major != VP_ABI_MAJOR) return VP_E_UNSUPPORTED;
    host = h;
    memcpy(out, &b, out->size < sizeof b ? out->size : sizeof b);
    return VP_OK;
}
