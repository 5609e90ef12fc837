/* Seeded weights for every family (clause M7). Element i of a tensor depends on
 * (seed, canonical name, i) alone. Scales keep activations in range at every
 * depth: a convolution's variance is gain^2 / fan-in, the last convolution of a
 * residual branch is damped, norms are near the identity.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"

/* ---- "ARCH[,seed=N][,div=D][,dtype=T]" ---------------------------------- */

static vr_status parse_number(const char *key, const char *text, uint64_t most, uint64_t *out, vr_error *err)
{
    char *end;
    const bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    errno = 0;
    unsigned long long v = strtoull(text, &end, hex ? 16 : 10);
    if (*text < '0' || *text > '9' || *end || errno || v > most)
        return vr_fail(err, VR_E_ARGUMENT, "synth: %s=%s is not a whole number from 0 to %llu", key,
                       text, (unsigned long long)most);
    *out = v;
    return VR_OK;
}

static vr_status set_option(vr_synth *s, char *option, vr_error *err)
{
    char *value = strchr(option, '=');
    uint64_t v = 0;
    if (!value)
        return vr_fail(err, VR_E_ARGUMENT, "synth: '%s' has no value; want seed=N, div=D or dtype=T", option);
    *value++ = '\0';
    if (strcmp(option, "seed") == 0)
        return parse_number(option, value, UINT64_MAX, &s->seed, err);
    if (strcmp(option, "div") == 0) {
        vr_status st = parse_number(option, value, 64, &v, err);
        s->div = (int64_t)v;
        return st == VR_OK && v == 0 ? vr_fail(err, VR_E_ARGUMENT, "synth: div=0; want 1 or more") : st;
    }
    if (strcmp(option, "dtype") == 0) {
        s->dtype = vr_dtype_from_name(value);
        return vr_dtype_is_float(s->dtype)
                   ? VR_OK
                   : vr_fail(err, VR_E_ARGUMENT, "synth: dtype=%s; want F64, F32, F16, BF16, F8_E4M3 or F8_E5M2", value);
    }
    return vr_fail(err, VR_E_ARGUMENT, "synth: unknown option '%s'; want seed=N, div=D or dtype=T", option);
}

vr_status vr_synth_parse(const char *spec, vr_synth *out, vr_error *err)
{
    char text[200], *save = NULL;
    *out = (vr_synth){.seed = 0, .div = 1, .dtype = VR_F32};
    if (snprintf(text, sizeof text, "%s", spec) >= (int)sizeof text)
        return vr_fail(err, VR_E_ARGUMENT, "synth: specification is longer than %zu characters", sizeof text - 1);
    char *part = strtok_r(text, ",", &save);
    snprintf(out->arch, sizeof out->arch, "%s", part ? part : "");
    vr_status s = VR_OK;
    while (s == VR_OK && (part = strtok_r(NULL, ",", &save)))
        s = set_option(out, part, err);
    return s;
}

/* ---- shapes ------------------------------------------------------------- */

typedef struct recipe {
    float low, high;     /* uniform range */
} recipe;

typedef struct builder {
    vr_table *t;
    recipe *recipe;      /* per entry, in the order of adding */
    int64_t room, elements;
    vr_status status;
    vr_error *err;
} builder;

static void add(builder *b, const char *base, const char *leaf, int32_t rank, const int64_t *dim,
                double centre, double spread)
{
    char name[VR_NAME_MAX];
    if (b->status != VR_OK)
        return;
    snprintf(name, sizeof name, "%s.%s", base, leaf);
    vr_tensor x = {.dtype = VR_F32, .rank = rank};
    int64_t n = 1;
    for (int32_t i = 0; i < rank; i++)
        n *= x.dim[i] = dim[i];
    if (b->t->count == b->room) {
        b->room = b->room ? 2 * b->room : 256;
        recipe *grown = realloc(b->recipe, (size_t)b->room * sizeof *grown);
        if (!grown) {
            b->status = vr_fail(b->err, VR_E_NOMEM, "cannot allocate synthetic weights");
            return;
        }
        b->recipe = grown;
    }
    b->recipe[b->t->count] = (recipe){(float)(centre - spread), (float)(centre + spread)};
    b->status = vr_table_add(b->t, name, NULL, &x, "F32", b->err);
    b->elements += n;
}

static void add_conv(builder *b, const char *base, int64_t co, int64_t ci, int64_t k, double gain,
                     double bias)
{
    const int64_t dim[4] = {co, ci, k, k};
    add(b, base, "weight", 4, dim, 0.0, gain * sqrt(3.0 / (double)(ci * k * k)));
    if (!isnan(bias))
        add(b, base, "bias", 1, dim, bias, 0.05);
}

static void add_norm(builder *b, const char *base, int64_t c)
{
    add(b, base, "weight", 1, &c, 1.0, 0.1);
    add(b, base, "bias", 1, &c, 0.0, 0.1);
}

static const double SILU_GAIN = 1.68, RELU_GAIN = 1.41421356, DAMPED = 0.5;

static void kl_resnet(builder *b, const char *path, int64_t ci, int64_t co)
{
    char name[VR_NAME_MAX];
    snprintf(name, sizeof name, "%s.norm1", path);
    add_norm(b, name, ci);
    snprintf(name, sizeof name, "%s.conv1", path);
    add_conv(b, name, co, ci, 3, SILU_GAIN, 0.0);
    snprintf(name, sizeof name, "%s.norm2", path);
    add_norm(b, name, co);
    snprintf(name, sizeof name, "%s.conv2", path);
    add_conv(b, name, co, co, 3, SILU_GAIN * DAMPED, 0.0);
    snprintf(name, sizeof name, "%s.conv_shortcut", path);
    if (ci != co)
        add_conv(b, name, co, ci, 1, 1.0, 0.0);
}

static void kl_shapes(builder *b, const vr_arch *a, int64_t div)
{
    char name[VR_NAME_MAX - 40];
    int64_t z = a->info->latent_channels, c = a->width[0] / div;
    if (a->post_quant)
        add_conv(b, "post_quant_conv", z, z, 1, 1.0, 0.0);
    if (a->batch_norm) {
        int64_t packed = a->info->diffusion_channels;
        add(b, "bn", "running_mean", 1, &packed, 0.0, 0.2);
        add(b, "bn", "running_var", 1, &packed, 1.0, 0.5);
    }
    add_conv(b, "decoder.conv_in", c, z, 3, 1.0, 0.0);
    kl_resnet(b, "decoder.mid_block.resnets.0", c, c);
    static const char *const maps[4] = {"to_q", "to_k", "to_v", "to_out.0"};
    add_norm(b, "decoder.mid_block.attentions.0.group_norm", c);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "decoder.mid_block.attentions.0.%s", maps[i]);
        add_conv(b, name, c, c, 1, i == 3 ? DAMPED : 1.0, 0.0);
    }
    kl_resnet(b, "decoder.mid_block.resnets.1", c, c);
    for (int32_t i = 0; i < a->stages; i++) {
        int64_t co = a->width[i] / div;
        for (int32_t j = 0; j < a->blocks[i]; j++, c = co) {
            snprintf(name, sizeof name, "decoder.up_blocks.%d.resnets.%d", i, j);
            kl_resnet(b, name, c, co);
        }
        snprintf(name, sizeof name, "decoder.up_blocks.%d.upsamplers.0.conv", i);
        if (i + 1 < a->stages)
            add_conv(b, name, c, c, 3, 1.0, 0.0);
    }
    add_norm(b, "decoder.conv_norm_out", c);
    add_conv(b, "decoder.conv_out", 3, c, 3, SILU_GAIN * 0.5, 0.0);
}

static void tiny_block(builder *b, int32_t k, int64_t c, bool pool)
{
    char name[VR_NAME_MAX];
    for (int32_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "decoder.layers.%d.conv.%d", k, 2 * i);
        add_conv(b, name, c, c, 3, i == 2 ? RELU_GAIN * 0.3 : RELU_GAIN, 0.0);
    }
    if (!pool)
        return;
    snprintf(name, sizeof name, "decoder.layers.%d.pool.0", k);
    add_conv(b, name, 4 * c, c, 1, RELU_GAIN, NAN);
    snprintf(name, sizeof name, "decoder.layers.%d.pool.1", k);
    add_norm(b, name, 4 * c);
    snprintf(name, sizeof name, "decoder.layers.%d.pool.3", k);
    add_conv(b, name, c, 4 * c, 1, RELU_GAIN * 0.3, NAN);
}

static void tiny_shapes(builder *b, const vr_arch *a, int64_t div)
{
    char name[VR_NAME_MAX];
    int64_t c = a->width[0] / div;
    add_conv(b, "decoder.layers.0", c, a->info->latent_channels, 3, 1.0, 0.0);
    int32_t k = 2;
    for (int32_t i = 0; i < a->stages; i++) {
        for (int32_t j = 0; j < a->blocks[i]; j++)
            tiny_block(b, k++, c, a->pool && i == 0);
        if (i + 1 < a->stages) {
            snprintf(name, sizeof name, "decoder.layers.%d", ++k);
            int64_t co = a->width[i + 1] / div;
            add_conv(b, name, co, c, 3, 1.0, NAN);
            c = co;
            k++;
        }
    }
    snprintf(name, sizeof name, "decoder.layers.%d", k);
    add_conv(b, name, 3, c, 3, 0.5, 0.5);
}

/* ---- values ------------------------------------------------------------- */

/* Largest norm group count up to 32 that divides every width. */
static int64_t norm_groups(const vr_arch *a, int64_t div)
{
    for (int64_t g = 32; g > 1; g--) {
        bool all = true;
        for (int32_t i = 0; i < a->stages; i++)
            all = all && a->width[i] / div % g == 0;
        if (all)
            return g;
    }
    return 1;
}

static vr_status fill(const vr_entry *e, recipe r, vr_dtype dtype, uint64_t seed, char *dst, vr_error *err)
{
    enum { PART = 4096 };
    float part[PART];
    int64_t n = 1;
    for (int32_t i = 0; i < e->tensor.rank; i++)
        n *= e->tensor.dim[i];
    const uint64_t stream = vr_random_stream(e->name);
    for (int64_t first = 0; first < n; first += PART) {
        int64_t m = n - first < PART ? n - first : PART;
        vr_random_fill(part, m, VR_UNIFORM, seed, stream, (uint64_t)first);
        for (int64_t i = 0; i < m; i++)
            part[i] = r.low + (r.high - r.low) * part[i];
        vr_status s = vr_convert(dtype, dst + (size_t)first * vr_dtype_size(dtype), VR_F32, part, (uint64_t)m, err);
        if (s != VR_OK)
            return s;
    }
    return VR_OK;
}

static vr_status fill_all(builder *b, const vr_synth *s, char *data)
{
    vr_status status = VR_OK;
    size_t at = 0;
    for (int64_t i = 0; i < b->t->count; i++) {
        vr_entry *e = &b->t->entry[i];
        int64_t n = 0;
        vr_tensor_count(&e->tensor, &n, NULL);
        e->tensor.data = data + at;
        e->tensor.dtype = s->dtype;
        e->dtype_text = vr_dtype_name(s->dtype);
        at += (size_t)n * vr_dtype_size(s->dtype);
    }
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < b->t->count; i++) {
        vr_entry *e = &b->t->entry[i];
        if (fill(e, b->recipe[i], s->dtype, s->seed, e->tensor.data, NULL) != VR_OK) {
#pragma omp atomic write
            status = VR_E_INTERNAL;
        }
    }
    return status;
}

vr_status vr_synth_table(vr_synth *s, const vr_arch *a, vr_table *t, void **data, vr_error *err)
{
    for (int32_t i = 0; i < a->stages; i++)
        if (a->width[i] % s->div)
            return vr_fail(err, VR_E_ARGUMENT, "synth: div=%lld does not divide the width %d of '%s'",
                           (long long)s->div, a->width[i], a->info->name);
    builder b = {.t = t, .status = VR_OK, .err = err};
    if (a->family == VR_FAMILY_KL)
        kl_shapes(&b, a, s->div);
    else
        tiny_shapes(&b, a, s->div);
    s->groups = norm_groups(a, s->div);
    vr_status st = b.status;
    *data = NULL;
    if (st == VR_OK && !(*data = malloc((size_t)b.elements * vr_dtype_size(s->dtype))))
        st = vr_fail(err, VR_E_NOMEM, "cannot allocate %lld synthetic weights", (long long)b.elements);
    if (st == VR_OK && fill_all(&b, s, *data) != VR_OK)
        st = vr_fail(err, VR_E_INTERNAL, "synthetic weights could not be converted");
    free(b.recipe);
    vr_table_sort(t);
    for (int64_t i = 0; i < t->count; i++)
        t->entry[i].source = NULL; /* the canonical name; set once the table stays put */
    return st;
}
