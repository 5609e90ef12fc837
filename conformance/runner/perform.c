/* A problem handed to the child. SPDX-License-Identifier: MIT */
#include "runner/run.h"

#include <stdlib.h>
#include <string.h>

static json_t *tile_json(const vc_problem *p)
{
    const vr_tile_options *o = &p->c->entry->tile;
    if (!p->tiled)
        return json_pack("{s:i}", "mode", VP_TILE_NONE);
    static const int mode[] = {VP_TILE_NONE, VP_TILE_DIFFUSERS, VP_TILE_DIFFUSERS_STRIDE, VP_TILE_DIFFUSERS_TINY,
                               VP_TILE_COMFY, VP_TILE_COMFY_3PASS, VP_TILE_SDCPP, VP_TILE_TWO_PASS,
                               VP_TILE_TWO_PASS_FAST, VP_TILE_TWO_PASS_FIXED, VP_TILE_EXACT, VP_TILE_AUTO};
    return json_pack("{s:i, s:I, s:I, s:I, s:I}", "mode", mode[o->mode], "tile_h", (json_int_t)o->tile_h, "tile_w",
                     (json_int_t)o->tile_w, "overlap_h", (json_int_t)o->overlap_h, "overlap_w", (json_int_t)o->overlap_w);
}

/* For a backend that knows model files only: the model written as diffusers would have it. */
static json_t *model_request(vc_run *r, const vc_problem *p, vr_error *err)
{
    char path[300];
    int64_t groups = 0;
    snprintf(path, sizeof path, "%s/model.safetensors", r->child.dir);
    if (vr_model_write(p->model, path, VR_LAYOUT_DIFFUSERS, VR_DTYPE_NONE, err) != VR_OK)
        return NULL;
    for (int32_t i = 0; i < p->program->op_count; i++)
        if (p->program->op[i].kind == VR_OP_GROUP_NORM)
            groups = p->program->op[i].p.group_norm.groups;
    return json_pack("{s:s, s:s, s:I, s:f, s:f}", "model", path, "arch", p->model->arch, "norm_num_groups", (json_int_t)groups,
                     "scaling_factor", p->model->scaling_factor, "shift_factor", p->model->shift_factor);
}

static vc_outcome prepare_model(vc_run *r, const vc_problem *p, int32_t threads, vr_error *err)
{
    json_t *q = p->model ? model_request(r, p, err) : NULL;
    const vr_shape l = p->latent;
    const uint32_t storage = wire_dtype(p->c->storage);
    if (!q) {
        snprintf(r->child.text, sizeof r->child.text, "%.400s", p->model ? err->text : "no model of its own");
        return VC_CRASH;
    }
    json_t *rest = json_pack("{s:i, s:i, s:i, s:[I, I, I, I, I], s:o}", "storage", (int)storage, "accumulate",
                             (int)(storage == VP_F64 ? VP_F64 : VP_F32), "threads", (int)threads, "latent", (json_int_t)l.n,
                             (json_int_t)l.c, (json_int_t)l.t, (json_int_t)l.h, (json_int_t)l.w, "tile", tile_json(p));
    json_object_update(q, rest);
    json_decref(rest);
    return vc_child_call(&r->child, "prepare", q, r->timeout, NULL);
}

vc_outcome vc_prepare(vc_run *r, const vc_problem *p, int32_t threads, json_t *extra, vr_error *err)
{
    if (!(r->caps.caps & VP_CAP_PROGRAM) && !extra)
        return prepare_model(r, p, threads, err);
    uint64_t bytes = 0;
    vc_slot weights;
    json_t *program = wire_program(p->program, &bytes);
    err->status = VR_OK;
    if (vc_slot_bytes(&weights, r->child.dir, "weights", bytes, err) != VR_OK) {
        json_decref(program);
        json_decref(extra);
        return VC_CRASH;
    }
    wire_copy_weights(p->program, weights.map);
    vc_slot_free(&weights);
    const uint32_t storage = wire_dtype(p->c->storage);
    const vr_shape l = p->latent;
    json_t *q = json_pack("{s:o, s:s, s:i, s:i, s:i, s:[I, I, I, I, I], s:o}", "program", program, "weights", "weights",
                          "storage", (int)storage, "accumulate", (int)(storage == VP_F64 ? VP_F64 : VP_F32), "threads",
                          (int)threads, "latent", (json_int_t)l.n, (json_int_t)l.c, (json_int_t)l.t, (json_int_t)l.h,
                          (json_int_t)l.w, "tile", tile_json(p));
    if (extra) {
        json_object_update(q, extra);
        json_decref(extra);
    }
    return vc_child_call(&r->child, "prepare", q, r->timeout, NULL);
}

static void check_output(const vc_slot *s, vc_result *res)
{
    int64_t first = 0;
    const int64_t trespass = vc_slot_trespass(s, &first), untouched = vc_slot_untouched(s);
    if (trespass)
        vc_say(res, VC_FAIL, "%lld bytes were written outside the output, the first at byte %lld of %llu",
               (long long)trespass, (long long)first, (unsigned long long)s->tensor.bytes);
    else if (untouched)
        vc_say(res, VC_FAIL, "%lld elements of the output were never written", (long long)untouched);
}

vc_outcome vc_perform(vc_run *r, const vc_problem *p, int32_t first, int32_t last, const int32_t *feed_value,
                      const vr_tensor *feed, int32_t feeds, vr_dtype want_dtype, int64_t pad, vr_tensor *got,
                      vc_result *res, vr_error *err)
{
    vc_slot in[VC_FEEDS], out;
    int64_t dim[5];
    memset(in, 0, sizeof in);
    memset(&out, 0, sizeof out);
    *got = (vr_tensor){.data = NULL};
    vr_status s = VR_OK;
    json_t *list = json_array();
    for (int32_t k = 0; s == VR_OK && k < feeds; k++) {
        char name[16];
        snprintf(name, sizeof name, "in%d", (int)k);
        vc_dims(p->shape[feed_value[k]], dim);
        s = vc_slot_make(&in[k], r->child.dir, name, wire_dtype(feed[k].dtype), dim, pad, err);
        if (s == VR_OK) {
            vc_slot_put(&in[k], feed[k].data);
            json_array_append_new(list, json_pack("{s:i, s:o}", "value", (int)feed_value[k], "tensor", vc_slot_json(&in[k])));
        }
    }
    vc_dims(p->shape[last], dim);
    if (s == VR_OK)
        s = vc_slot_make(&out, r->child.dir, "out", wire_dtype(want_dtype), dim, pad, err);
    vc_outcome o = VC_CRASH;
    if (s == VR_OK) {
        vc_slot_poison(&out, (uint8_t)(1 + (pad > 0)));
        json_t *q = json_pack("{s:i, s:i, s:O, s:[{s:i, s:o}]}", "first", (int)first, "last", (int)last, "feed", list, "want",
                              "value", (int)last, "tensor", vc_slot_json(&out));
        o = vc_child_call(&r->child, "run", q, r->timeout, NULL);
        check_output(&out, res);
        if (o == VC_ANSWER)
            s = vr_tensor_new(got, want_dtype, 5, dim, err);
        if (got->data)
            vc_slot_get(&out, got->data);
        int64_t at;
        for (int32_t k = 0; o == VC_ANSWER && k < feeds; k++) {
            vr_tensor again;
            if (vc_slot_trespass(&in[k], &at))
                vc_say(res, VC_FAIL, "bytes were written outside input %d, the first at byte %lld", (int)k, (long long)at);
            if (vr_tensor_new(&again, feed[k].dtype, feed[k].rank, feed[k].dim, err) == VR_OK) {
                int64_t n = 0;
                vr_tensor_count(&again, &n, NULL);
                vc_slot_get(&in[k], again.data);
                if (memcmp(again.data, feed[k].data, (size_t)n * vr_dtype_size(again.dtype)) != 0)
                    vc_say(res, VC_FAIL, "input %d was changed", (int)k);
                vr_tensor_free(&again);
            }
        }
        /* When it did not answer, the outcome says more than what it left behind. */
        if (o != VC_ANSWER && res->status == VC_FAIL && !strstr(res->reason, "outside"))
            res->status = VC_PASS;
    }
    if (s != VR_OK)
        vc_say(res, VC_HARNESS_ERROR, "%s", err->text);
    json_decref(list);
    for (int32_t k = 0; k < feeds; k++)
        vc_slot_free(&in[k]);
    vc_slot_free(&out);
    return o;
}
