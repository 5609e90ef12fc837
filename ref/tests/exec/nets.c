/* SPDX-License-Identifier: MIT */
#include "nets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CH = 12, ZC = 3, BUDGET = 40000 };

typedef struct maker {
    vr_program *p;
    float *w;
    int64_t used;
    uint64_t seed;
} maker;

static int32_t weight(maker *m, const char *name, int32_t rank, const int64_t *dim, float centre,
                      float spread)
{
    int64_t count = 1;
    for (int32_t i = 0; i < rank; i++)
        count *= dim[i];
    float *data = m->w + m->used;
    m->used += count;
    uint64_t stream = vr_random_stream(name);
    for (int64_t i = 0; i < count; i++)
        data[i] = centre + spread * (2.0f * vr_random_uniform(m->seed, stream, (uint64_t)i) - 1.0f);
    return vr_program_weight(m->p, name, name, VR_F32, rank, dim, data);
}

static int32_t conv(maker *m, const char *tap, int32_t x, int64_t ci, int64_t co, int64_t k)
{
    char name[64];
    int64_t dim[4] = {co, ci, k, k};
    strcpy(name, tap);
    strcat(name, ".weight");
    int32_t w = weight(m, name, 4, dim, 0.0f, (float)sqrt(3.0 / (double)(ci * k * k)));
    strcpy(name, tap);
    strcat(name, ".bias");
    int32_t b = weight(m, name, 1, dim, 0.0f, 0.1f);
    return vr_program_conv2d(m->p, tap, x, w, b, k / 2);
}

static int32_t norm(maker *m, const char *tap, int32_t x)
{
    char name[64];
    int64_t dim[1] = {CH};
    strcpy(name, tap);
    strcat(name, ".gamma");
    int32_t g = weight(m, name, 1, dim, 1.0f, 0.2f);
    strcpy(name, tap);
    strcat(name, ".beta");
    int32_t b = weight(m, name, 1, dim, 0.0f, 0.2f);
    return vr_program_group_norm(m->p, tap, x, g, b, 4, 1e-6);
}

test_net test_net_make(uint64_t seed, int64_t n, int64_t h, int64_t w)
{
    test_net t = {.program = vr_program_new("test", ZC), .weights = calloc(BUDGET, sizeof(float))};
    maker m = {t.program, t.weights, 0, seed};
    vr_program *p = t.program;
    int32_t x = conv(&m, "in", 0, ZC, CH, 3);
    int32_t y = vr_program_unary(p, "act1", VR_OP_SILU, norm(&m, "norm1", x));
    x = vr_program_add(p, "res", conv(&m, "conv1", y, CH, CH, 3), x);
    y = norm(&m, "norm2", x);
    int32_t q = conv(&m, "q", y, CH, CH, 1), k = conv(&m, "k", y, CH, CH, 1);
    int32_t v = conv(&m, "v", y, CH, CH, 1);
    y = vr_program_attention(p, "attention", q, k, v, 1.0 / sqrt(CH));
    x = vr_program_add(p, "att_res", conv(&m, "proj", y, CH, CH, 1), x);
    x = conv(&m, "up_conv", vr_program_upsample(p, "up", x, 1, 2, 2), CH, CH, 3);
    y = vr_program_tanh_clamp(p, "squash", x, 3.0);
    x = vr_program_unary(p, "relu", VR_OP_RELU, vr_program_add(p, "mix", x, y));
    x = conv(&m, "out", vr_program_clamp(p, "clamp", x, -2.0, 2.0), CH, 3, 3);
    vr_error err;
    if (vr_program_finish(p, x, -1.0, 1.0, &err) != VR_OK) {
        vr_program_free(p);
        t.program = NULL;
    }
    const int64_t dim[4] = {n, ZC, h, w};
    if (vr_tensor_new(&t.latent, VR_F32, 4, dim, &err) == VR_OK)
        for (int64_t i = 0; i < n * ZC * h * w; i++)
            ((float *)t.latent.data)[i] = vr_random_normal(seed, 99, (uint64_t)i);
    return t;
}

void test_net_free(test_net *t)
{
    vr_program_free(t->program);
    free(t->weights);
    vr_tensor_free(&t->latent);
}

void test_net_digest(const test_net *t, const vr_exec_options *opt, char hex[65])
{
    vr_tensor out;
    vr_error err;
    hex[0] = '\0';
    if (vr_exec_run(t->program, &t->latent, opt, &out, NULL, &err) != VR_OK)
        return;
    int64_t count = 0;
    vr_tensor_count(&out, &count, &err);
    vr_sha256 s;
    uint8_t digest[32];
    vr_sha256_init(&s);
    vr_sha256_update(&s, out.data, (size_t)count * vr_dtype_size(out.dtype));
    vr_sha256_final(&s, digest);
    vr_sha256_hex(digest, hex);
    vr_tensor_free(&out);
}
