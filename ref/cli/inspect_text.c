/* ref/cli/inspect_text.c: an inspection for people and as JSON.
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <stdio.h>

static const char *space_name(vr_latent_space s)
{
    return s == VR_LATENT_RAW ? "raw" : "diffusion";
}

json_t *cli_op_json(const vr_program *p, int32_t i, vr_shape s, const vr_op_cost *c)
{
    const vr_op *op = &p->op[i];
    json_t *o = json_pack("{s:i, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I}", "index", (int)i, "tap",
                          op->tap, "kind", vr_op_name(op->kind), "shape", cli_json_shape(s),
                          "macs", (json_int_t)c->macs, "weight_bytes",
                          (json_int_t)c->weight_bytes, "read_bytes", (json_int_t)c->read_bytes,
                          "written_bytes", (json_int_t)c->written_bytes, "live_bytes",
                          (json_int_t)c->live_bytes);
    json_t *in = json_array();
    for (int k = 0; k < 3; k++)
        if (op->in[k] >= 0)
            json_array_append_new(in, json_integer(op->in[k]));
    json_object_set_new(o, "inputs", in);
    return o;
}

json_t *cli_inspect_json(const cli_inspection *x)
{
    const vr_model *m = x->model;
    const vr_program *p = m->program;
    json_t *r = json_pack("{s:s, s:s, s:s, s:s, s:s}", "arch", m->arch, "description",
                          m->description, "family", p->family, "layout",
                          cli_layout_name(m->layout), "prefix", m->prefix);
    json_object_set_new(r, "parameters", json_integer(x->cost.parameters));
    json_object_set_new(r, "tensors", json_integer(p->weight_count));
    json_object_set_new(r, "ignored_tensors", json_integer(m->ignored_tensors));
    json_object_set_new(r, "weight_bytes", json_integer(x->cost.weight_bytes));
    json_object_set_new(r, "weights_sha256", json_string(m->weights_sha256));
    json_object_set_new(r, "latent_space", json_string(space_name(m->latent_space)));
    json_object_set_new(r, "latent_channels", json_integer(m->latent_channels));
    json_object_set_new(r, "spatial_scale", json_integer(m->spatial_scale));
    cli_normalisation_json(m, r);
    json_object_set_new(r, "range", json_pack("[f, f]", p->range_lo, p->range_hi));
    json_object_set_new(r, "latent_shape", cli_json_shape(x->latent));
    json_object_set_new(r, "output_shape", cli_json_shape(x->shape[p->output]));
    json_object_set_new(r, "macs", json_integer(x->cost.macs));
    json_object_set_new(r, "gmacs", json_real((double)x->cost.macs * 1e-9));
    json_object_set_new(r, "conv_macs", json_integer(x->cost.conv_macs));
    json_object_set_new(r, "attention_projection_macs",
                        json_integer(x->cost.attention_projection_macs));
    json_object_set_new(r, "attention_macs", json_integer(x->cost.attention_macs));
    json_object_set_new(r, "peak_bytes", json_integer(x->cost.peak_bytes));
    json_object_set_new(r, "peak_operation", json_string(p->op[x->cost.peak_op].tap));
    json_object_set_new(r, "halo",
                        json_pack("{s:I, s:I, s:I, s:I, s:i}", "low",
                                  (json_int_t)x->field.halo_low, "high",
                                  (json_int_t)x->field.halo_high, "low_w",
                                  (json_int_t)x->field.halo_low_w, "high_w",
                                  (json_int_t)x->field.halo_high_w, "global_operations",
                                  (int)x->field.global_ops));
    json_t *ops = json_array();
    for (int32_t i = 0; i < p->op_count; i++)
        json_array_append_new(ops, cli_op_json(p, i, x->shape[i], &x->op_cost[i]));
    json_object_set_new(r, "operations", ops);
    return r;
}

static void print_head(const cli_inspection *x)
{
    const vr_model *m = x->model;
    const vr_program *p = m->program;
    char bytes[40];
    printf("architecture  %s: %s\n", m->arch, m->description);
    printf("family        %s, %s key layout, prefix '%s'\n", p->family,
           cli_layout_name(m->layout), m->prefix);
    printf("weights       %lld parameters in %d tensors, %s as stored; %lld other tensors ignored\n",
           (long long)x->cost.parameters, (int)p->weight_count,
           cli_bytes_text((uint64_t)x->cost.weight_bytes, bytes, sizeof bytes),
           (long long)m->ignored_tensors);
    printf("sha256        %s\n", m->weights_sha256);
    char norm[120];
    printf("latents       %lld channels, %s space, %lld pixels a cell; normalisation: %s\n",
           (long long)m->latent_channels, space_name(m->latent_space),
           (long long)m->spatial_scale, cli_normalisation_text(m, norm, sizeof norm));
    printf("output        black %g, white %g\n", p->range_lo, p->range_hi);
}

static void print_cost(const cli_inspection *x)
{
    const vr_program *p = x->model->program;
    char a[120], b[120], bytes[40];
    printf("\nfor latents %s to pictures %s\n", cli_shape_text(x->latent, a, sizeof a),
           cli_shape_text(x->shape[p->output], b, sizeof b));
    printf("work          %.2f GMAC: convolutions %.2f, attention projections %.2f, attention %.2f\n",
           (double)x->cost.macs * 1e-9, (double)x->cost.conv_macs * 1e-9,
           (double)x->cost.attention_projection_macs * 1e-9,
           (double)x->cost.attention_macs * 1e-9);
    printf("memory        %s of activations at the peak, in '%s'\n",
           cli_bytes_text((uint64_t)x->cost.peak_bytes, bytes, sizeof bytes),
           p->op[x->cost.peak_op].tap);
    printf("halo          %lld up, %lld down, %lld left, %lld right (latent cells); "
           "%d operations need the whole picture\n",
           (long long)x->field.halo_low, (long long)x->field.halo_high,
           (long long)x->field.halo_low_w, (long long)x->field.halo_high_w,
           (int)x->field.global_ops);
}

static void print_inputs(const vr_op *op, char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = '\0';
    for (int k = 0; k < 3; k++)
        if (op->in[k] >= 0 && n < size)
            n += (size_t)snprintf(buf + n, size - n, "%s%d", n ? "," : "", (int)op->in[k]);
}

void cli_inspect_text(const cli_inspection *x)
{
    const vr_program *p = x->model->program;
    print_head(x);
    print_cost(x);
    printf("\n%4s %-16s %-10s %-20s %10s %10s  %s\n", "op", "kind", "from", "shape", "MMAC",
           "weights", "tap");
    for (int32_t i = 0; i < p->op_count; i++) {
        char from[40], shape[120], bytes[40];
        print_inputs(&p->op[i], from, sizeof from);
        printf("%4d %-16s %-10s %-20s %10.1f %10s  %s\n", (int)i, vr_op_name(p->op[i].kind), from,
               cli_shape_text(x->shape[i], shape, sizeof shape),
               (double)x->op_cost[i].macs * 1e-6,
               cli_bytes_text((uint64_t)x->op_cost[i].weight_bytes, bytes, sizeof bytes),
               p->op[i].tap);
    }
}
