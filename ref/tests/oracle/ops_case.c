/* Rows of ops_cases.json: tensors out of ops.safetensors, program from the
 * builder. A program has one latent, so attention and add get their operands
 * through 1x1 convolutions with weights 0 and 1, which are exact under every
 * policy.
 *
 * SPDX-License-Identifier: MIT */
#include "ops_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *full_name(char *buf, size_t size, const oracle_case *c, const char *suffix)
{
    snprintf(buf, size, "%s.%s", c->name, suffix);
    return buf;
}

static vr_status part(const oracle_fixture *o, const oracle_case *c, const char *suffix, vr_dtype dtype,
                      vr_tensor *out, vr_error *err)
{
    char name[128];
    return oracle_tensor(o, full_name(name, sizeof name, c, suffix), dtype, out, err);
}

static int32_t weight(const oracle_fixture *o, oracle_case *c, const char *suffix)
{
    char name[128];
    const vr_named_tensor *t = vr_safetensors_find(o->file, full_name(name, sizeof name, c, suffix));
    if (!t)
        return -1;
    return vr_program_weight(c->program, suffix, suffix, t->tensor.dtype, t->tensor.rank, t->tensor.dim,
                             t->tensor.data);
}

/* Channels [index*count, (index+1)*count) of the latent, as a value. */
static int32_t select_channels(oracle_case *c, int32_t index, int64_t count)
{
    const int64_t dim[4] = {count, c->x.dim[1], 1, 1};
    char tap[16];
    float *w = calloc((size_t)(dim[0] * dim[1]), sizeof *w);
    if (!w)
        return -1;
    c->selector[index] = w;
    for (int64_t i = 0; i < count; i++)
        w[i * dim[1] + index * count + i] = 1.0f;
    snprintf(tap, sizeof tap, "part%d", index);
    return vr_program_conv2d(c->program, tap, 0, vr_program_weight(c->program, tap, tap, VR_F32, 4, dim, w),
                             -1, 0);
}

static int32_t add_operation(const oracle_fixture *o, oracle_case *c, const json_t *q)
{
    vr_program *p = c->program;
    const char *tap = "tested";
    int64_t channels = c->x.dim[1];
    switch (c->kind) {
    case VR_OP_CONV2D:
        return vr_program_conv2d_pads(p, tap, 0, weight(o, c, "w"), weight(o, c, "b"),
                                      oracle_integer(q, "pad_top"), oracle_integer(q, "pad_bottom"),
                                      oracle_integer(q, "pad_left"), oracle_integer(q, "pad_right"));
    case VR_OP_GROUP_NORM:
        return vr_program_group_norm(p, tap, 0, weight(o, c, "w"), weight(o, c, "b"),
                                     oracle_integer(q, "groups"), oracle_real(q, "eps"));
    case VR_OP_SILU:
    case VR_OP_RELU:
        return vr_program_unary(p, tap, c->kind, 0);
    case VR_OP_TANH_CLAMP:
        return vr_program_tanh_clamp(p, tap, 0, oracle_real(q, "limit"));
    case VR_OP_UPSAMPLE_NEAREST:
        return vr_program_upsample(p, tap, 0, 1, oracle_integer(q, "factor_h"),
                                   oracle_integer(q, "factor_w"));
    case VR_OP_ATTENTION: {
        int32_t k[3];
        for (int32_t i = 0; i < 3; i++)
            k[i] = select_channels(c, i, channels / 3);
        return vr_program_attention(p, tap, k[0], k[1], k[2], oracle_real(q, "scale"));
    }
    case VR_OP_ADD: {
        int32_t a = select_channels(c, 0, channels / 2);
        int32_t b = select_channels(c, 1, channels / 2);
        return vr_program_add(p, tap, a, b);
    }
    case VR_OP_UNPACK:
        return vr_program_unpack(p, tap, 0, oracle_integer(q, "fh"), oracle_integer(q, "fw"));
    case VR_OP_CLAMP:
        return vr_program_clamp(p, tap, 0, oracle_real(q, "lo"), oracle_real(q, "hi"));
    case VR_OP_SCALE_SHIFT: {
        vr_tensor scale = {.data = NULL}, shift = {.data = NULL};
        int32_t v = -1;
        if (part(o, c, "w", VR_F64, &scale, NULL) == VR_OK &&
            part(o, c, "b", VR_F64, &shift, NULL) == VR_OK)
            v = vr_program_scale_shift(p, tap, 0, scale.data, shift.data);
        vr_tensor_free(&scale);
        vr_tensor_free(&shift);
        return v;
    }
    default:
        return -1;
    }
}

static bool parse_kind(const char *text, vr_op_kind *out)
{
    for (int k = VR_OP_INPUT + 1; k < VR_OP_KIND_COUNT; k++)
        if (text && strcmp(text, vr_op_name((vr_op_kind)k)) == 0) {
            *out = (vr_op_kind)k;
            return true;
        }
    return false;
}

vr_status oracle_case_make(const oracle_fixture *o, size_t i, oracle_case *out, vr_error *err)
{
    const json_t *row = json_array_get(o->rows, i);
    oracle_case *c = out;
    memset(c, 0, sizeof *c);
    c->name = oracle_string(row, "name");
    if (!c->name || !parse_kind(oracle_string(row, "kind"), &c->kind))
        return vr_fail(err, VR_E_FORMAT, "ops_cases.json: row %zu has no name or an unknown kind", i);
    c->terms = oracle_real(row, "terms");
    c->magnitude_rms = oracle_real(row, "magnitude_rms");
    c->magnitude_max = oracle_real(row, "magnitude_max");
    vr_status s = part(o, c, "x", VR_F32, &c->x, err);
    if (s == VR_OK)
        s = part(o, c, "y", VR_F64, &c->y, err);
    if (s == VR_OK)
        s = vr_tensor_count(&c->y, &c->count, err);
    if (s != VR_OK)
        goto fail;
    c->program = vr_program_new("oracle", c->x.dim[1]);
    int32_t v = add_operation(o, c, json_object_get(row, "params"));
    s = vr_program_finish(c->program, v, -1, 1, err);
    if (s == VR_OK)
        return VR_OK;
fail:
    oracle_case_free(c);
    return s;
}

void oracle_case_free(oracle_case *c)
{
    vr_program_free(c->program);
    vr_tensor_free(&c->x);
    vr_tensor_free(&c->y);
    for (int i = 0; i < 3; i++)
        free(c->selector[i]);
    memset(c, 0, sizeof *c);
}
