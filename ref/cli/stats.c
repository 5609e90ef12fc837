/* ref/cli/stats.c: --stats FILE.json, what a decode did and what it cost.
 * SPDX-License-Identifier: MIT */
#include "cli.h"

static json_t *pool_json(const vr_pool_stats *p)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "allocations", (json_int_t)p->allocations,
                     "hits", (json_int_t)p->hits, "live_bytes", (json_int_t)p->live_bytes,
                     "peak_bytes", (json_int_t)p->peak_bytes, "held_bytes",
                     (json_int_t)p->held_bytes, "peak_held_bytes",
                     (json_int_t)p->peak_held_bytes);
}

static json_t *nonfinite_json(const vr_program *p, const vr_nonfinite *n)
{
    if (n->op < 0)
        return json_null();
    return json_pack("{s:i, s:s, s:I, s:I, s:I}", "op", (int)n->op, "tap", p->op[n->op].tap,
                     "nan_count", (json_int_t)n->nan_count, "inf_count", (json_int_t)n->inf_count,
                     "first_index", (json_int_t)n->first_index);
}

static json_t *operations_json(const cli_decode_result *r)
{
    const vr_program *p = r->model->program;
    json_t *ops = json_array();
    for (int32_t i = 0; i < p->op_count; i++) {
        json_t *o = cli_op_json(p, i, r->shape[i], &r->op_cost[i]);
        json_object_set_new(o, "seconds", json_real(r->stats.op_seconds[i]));
        json_array_append_new(ops, o);
    }
    return ops;
}

static json_t *tiling_json(const cli_decode_args *a, const cli_decode_result *r)
{
    if (a->tile.options.mode == VR_TILE_NONE)
        return json_null();
    json_t *t = cli_tile_json(&r->plan);
    json_object_set_new(t, "tiles_done", json_integer(r->tile_stats.tiles_done));
    json_object_set_new(t, "recomputed_elements", json_integer(r->tile_stats.recomputed_elements));
    json_object_set_new(t, "spilled_bytes", json_integer((json_int_t)r->tile_stats.spilled_bytes));
    json_object_set_new(t, "spill_peak_bytes", json_integer((json_int_t)r->tile_stats.spill_peak_bytes));
    return t;
}

vr_status cli_stats_write(const char *path, const cli_decode_args *a, const cli_decode_result *r,
                          vr_error *err)
{
    const vr_model *m = r->model;
    const vr_exec_stats *st = &r->stats;
    bool ordered = a->policy != VR_POLICY_GOLDEN && a->policy != VR_POLICY_TRUTH;
    double gmacs = (double)r->plan.macs * 1e-9;
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s?, s:s, s:i}", "version", VAEREF_VERSION, "model",
        a->model.model, "arch", m->arch, "family", m->program->family, "weights_sha256",
        m->weights_sha256, "latents", a->latents.spec, "policy", vr_policy_name(a->policy),
        "order", ordered ? vr_order_name(a->order) : NULL, "isa", st->isa ? st->isa : "",
        "threads", (int)st->threads);
    json_object_set_new(root, "latent_space",
                        json_string(m->latent_space == VR_LATENT_RAW ? "raw" : "diffusion"));
    cli_normalisation_json(m, root);
    json_object_set_new(root, "latent_shape", cli_json_shape(r->latent));
    json_object_set_new(root, "output_shape", cli_json_shape(r->out_shape));
    json_object_set_new(root, "output_dtype", json_string(vr_dtype_name(r->out.dtype)));
    json_object_set_new(root, "output_sha256", json_string(r->sha256));
    json_object_set(root, "outputs", r->files);
    json_object_set_new(root, "nonfinite", nonfinite_json(m->program, &st->nonfinite));
    json_object_set_new(root, "seconds", json_real(st->seconds));
    json_object_set_new(root, "macs", json_integer(r->plan.macs));
    json_object_set_new(root, "gmacs", json_real(gmacs));
    json_object_set_new(root, "gmacs_per_second",
                        json_real(st->seconds > 0 ? gmacs / st->seconds : 0));
    json_object_set_new(root, "peak_bytes", json_integer((json_int_t)st->pool.peak_bytes));
    json_object_set_new(root, "weight_scratch_bytes",
                        json_integer((json_int_t)st->weight_scratch_bytes));
    json_object_set_new(root, "pool", pool_json(&st->pool));
    json_object_set_new(root, "tiling", tiling_json(a, r));
    json_object_set_new(root, "against_untiled", cli_comparison_json(r));
    json_object_set_new(root, "operations", operations_json(r));
    vr_status s = cli_json_write(path, root, err);
    json_decref(root);
    return s;
}
