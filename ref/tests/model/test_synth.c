/* Seeded weights (clause M7): what they depend on, and that activations stay in
 * range through every depth.
 *
 * SPDX-License-Identifier: MIT */
#include "model_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void digest(const char *spec, char out[65])
{
    vr_model *m = must_open(spec, spec, NULL);
    memcpy(out, m->weights_sha256, 65);
    vr_model_close(m);
}

Test(model_synth, weights_depend_on_the_seed_and_the_name_alone)
{
    char a[65], b[65], c[65];
    digest("synth:sd15,div=32,seed=5", a);
    digest("synth:sd15,seed=5,div=32", b);
    digest("synth:sd15,div=32,seed=6", c);
    cr_assert_str_eq(a, b);
    cr_assert_str_neq(a, c);
    digest("synth:sdxl,div=32,seed=5", b);
    cr_assert_str_eq(a, b, "the same tensors under the same names");
    digest("synth:sd15,div=32,seed=0x5", b);
    cr_assert_str_eq(a, b, "hexadecimal");
    digest("synth:sd15,div=32,seed=010", b);
    digest("synth:sd15,div=32,seed=10", c);
    cr_assert_str_eq(b, c, "a leading zero is not octal");
    digest("synth:taesd,div=32", b);
    digest("synth:taesd,seed=0,div=32,dtype=F32", c);
    cr_assert_str_eq(b, c, "defaults");
}

Test(model_synth, an_element_is_its_random_number_whatever_comes_before_it)
{
    vr_model *m = must_open("taesd", "synth:taesd,div=2,seed=77", NULL);
    const vr_entry *e = vr_table_find(&m->memory->table, "decoder.layers.6.weight");
    const uint64_t stream = vr_random_stream("decoder.layers.6.weight");
    const float *w = e->tensor.data;
    const double spread = sqrt(3.0 / (32 * 9));
    for (int64_t i = 0; i < 32 * 32 * 9; i += 61) {
        double u = vr_random_uniform(77, stream, (uint64_t)i);
        cr_assert(fabs(w[i] - spread * (2 * u - 1)) < 1e-7, "element %d", (int)i);
    }
    vr_model_close(m);
}

Test(model_synth, another_type_holds_the_same_weights_rounded_once)
{
    vr_model *w = must_open("F32", "synth:taef2,div=16,seed=2", NULL);
    static const vr_dtype types[] = {VR_F64, VR_F16, VR_BF16, VR_F8_E4M3, VR_F8_E5M2};
    for (int k = 0; k < 5; k++) {
        char spec[64];
        snprintf(spec, sizeof spec, "synth:taef2,div=16,seed=2,dtype=%s", vr_dtype_name(types[k]));
        vr_model *m = must_open(spec, spec, NULL);
        cr_assert_eq(m->program->weight_count, w->program->weight_count);
        for (int32_t i = 0; i < m->program->weight_count; i++) {
            const vr_weight *x = &m->program->weight[i], *y = &w->program->weight[i];
            size_t bytes = (size_t)x->count * vr_dtype_size(types[k]);
            void *want = malloc(bytes);
            cr_assert_eq((int)x->dtype, (int)types[k]);
            cr_assert_eq(vr_convert(types[k], want, VR_F32, y->data, (uint64_t)y->count, NULL), VR_OK);
            cr_assert(memcmp(want, x->data, bytes) == 0, "%s: %s", spec, x->name);
            free(want);
        }
        vr_model_close(m);
    }
    vr_model_close(w);
}

Test(model_synth, wrong_specifications_say_what_they_want)
{
    static const struct {
        const char *spec, *part;
    } rows[] = {
        {"synth:", "want one of sd15"},
        {"synth:sd9", "'sd9' is unknown; want one of sd15"},
        {"synth:SD15", "'SD15' is unknown"},
        {"synth:sd15,div=0", "div=0"},
        {"synth:sd15,div=3", "div=3 does not divide the width"},
        {"synth:sd15,div=65", "div=65"},
        {"synth:sd15,div=", "div="},
        {"synth:sd15,div=2x", "div=2x"},
        {"synth:sd15,seed=-1", "seed=-1"},
        {"synth:sd15,seed= 1", "seed= 1"},
        {"synth:sd15,seed=18446744073709551616", "seed=18446744073709551616"},
        {"synth:sd15,seed", "'seed' has no value"},
        {"synth:sd15,dtype=I8", "dtype=I8; want F64"},
        {"synth:sd15,dtype=f32", "dtype=f32; want F64"},
        {"synth:sd15,colour=2", "unknown option 'colour'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_refused(rows[i].spec, rows[i].spec, NULL, VR_E_ARGUMENT, PARTS("synth:", rows[i].part));
}

typedef struct range {
    double least, most; /* rms over values, but for the latent */
    const char *least_tap, *most_tap;
} range;

static vr_status note_rms(void *ctx, int32_t op, const char *tap, const vr_tensor *v, vr_error *err)
{
    range *r = ctx;
    int64_t n = 0;
    vr_status s = vr_tensor_count(v, &n, err);
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)((float *)v->data)[i] * ((float *)v->data)[i];
    const double rms = sqrt(sum / (double)n);
    if (op > 0 && rms < r->least) {
        r->least = rms;
        r->least_tap = tap;
    }
    if (rms > r->most) {
        r->most = rms;
        r->most_tap = tap;
    }
    return s;
}

/* Neither vanishing nor exploding, within F16's range by far; the picture spans
 * its range without leaving it far. */
static void check_range(const char *spec, bool kl)
{
    vr_error err = {VR_OK, ""};
    range r = {.least = INFINITY, .least_tap = "", .most_tap = ""};
    const vr_exec_options opt = {.policy = VR_POLICY_F32, .on_value = note_rms, .ctx = &r,
                                 .threads = 1};
    vr_model *m = must_open(spec, spec, NULL);
    vr_tensor z, y;
    cr_assert_eq(vr_model_latents(m, 1, 1, 4, 4, &z, &err), VR_OK);
    cr_assert_eq(vr_exec_run(m->program, &z, &opt, &y, NULL, &err), VR_OK, "%s", err.text);
    cr_assert(r.least > 0.01, "%s: rms %g at %s", spec, r.least, r.least_tap);
    cr_assert(r.most < 50, "%s: rms %g at %s", spec, r.most, r.most_tap);
    double sum = 0, squares = 0;
    int64_t n = 0;
    vr_tensor_count(&y, &n, NULL);
    for (int64_t i = 0; i < n; i++) {
        sum += ((float *)y.data)[i];
        squares += (double)((float *)y.data)[i] * ((float *)y.data)[i];
    }
    const double mean = sum / (double)n, spread = sqrt(squares / (double)n - mean * mean);
    const double centre = kl ? 0.0 : 0.5;
    cr_assert(fabs(mean - centre) < 0.4, "%s: mean %g", spec, mean);
    cr_assert(spread > 0.01 && spread < 1.0, "%s: standard deviation %g", spec, spread);
    vr_tensor_free(&z);
    vr_tensor_free(&y);
    vr_model_close(m);
}

Test(model_synth, activations_stay_in_range_at_every_depth)
{
    char spec[64];
    for (const vr_arch_info *a = vr_arch_list(); a->name; a++)
        for (int div = 4; div <= 8; div *= 2) {
            snprintf(spec, sizeof spec, "synth:%s,div=%d,seed=%d", a->name, div, div);
            check_range(spec, strncmp(a->name, "tae", 3) != 0);
        }
    check_range("synth:taesd", false);
    check_range("synth:taef2", false);
}
