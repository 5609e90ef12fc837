/* golden/compute.c: everything a record holds, computed by the reference.
 *
 * golden once; then truth, and every order of every contract against it, all
 * under the case's own tile plan (clause G3). two-pass-fast has no form under
 * truth (clause T9.3); there golden stands in. Only the golden decode obeys the
 * case's memory limit: the others hold wider values or are not what is frozen.
 * A case must stay finite in all of them, or it measures nothing.
 *
 * SPDX-License-Identifier: MIT */
#include "golden.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening --------------------------------------------------------------------- */

void vg_models_close(vg_models *m)
{
    for (int64_t i = 0; i < m->count; i++)
        vr_model_close(m->entry[i].model);
    free(m->entry);
    memset(m, 0, sizeof *m);
}

static vr_status open_model(const char *golden, const vg_case *c, vg_models *m, const vr_model **out, vr_error *err)
{
    char path[PATH_MAX];
    vr_status s = VR_OK;
    for (int64_t i = 0; i < m->count; i++)
        if (m->entry[i].space == c->space && !strcmp(m->entry[i].spec, c->model)) {
            *out = m->entry[i].model;
            return VR_OK;
        }
    const bool synth = !strncmp(c->model, "synth:", 6);
    if (!synth)
        s = vg_model_path(golden, c->model, path, err);
    if (s)
        return s;
    struct vg_model_entry *grown = realloc(m->entry, (size_t)(m->count + 1) * sizeof *grown);
    if (!grown)
        return vr_fail(err, VR_E_NOMEM, "out of memory for a list of models");
    m->entry = grown;
    struct vg_model_entry *e = &grown[m->count];
    const cli_model_args a = {.model = synth ? c->model : path, .space = c->space};
    s = cli_model_open(&a, &e->model, err);
    if (s)
        return s;
    memcpy(e->spec, c->model, sizeof e->spec);
    e->space = c->space;
    m->count++;
    *out = e->model;
    return VR_OK;
}

static vr_status open_latents(const char *golden, const vg_case *c, const vr_model *m, vr_tensor *out, vr_error *err)
{
    cli_latents_args a;
    char path[PATH_MAX];
    vr_status s = cli_latents_set(&a, "latents", c->latents, err);
    if (!s && !a.seeded) {
        s = vg_model_path(golden, c->latents, path, err);
        a.spec = path;
    }
    s = s ? s : cli_latents_load(&a, out, err);
    return s ? s : cli_latents_fit(&a, m, out, err);
}

/* Over "F32[1,4,8,8]" and the bytes. */
static vr_status digest_latents(const vr_tensor *t, char hex[65], vr_error *err)
{
    char text[120];
    int64_t n;
    vr_sha256 h;
    uint8_t d[32];
    vr_status s = vr_tensor_count(t, &n, err);
    if (s)
        return s;
    vr_sha256_init(&h);
    vr_tensor_describe(t, text, sizeof text);
    vr_sha256_update(&h, text, strlen(text));
    vr_sha256_update(&h, t->data, (size_t)n * vr_dtype_size(t->dtype));
    vr_sha256_final(&h, d);
    vr_sha256_hex(d, hex);
    return VR_OK;
}

static vr_status fill_input(vg_job *j, vr_error *err)
{
    vg_record *r = &j->record;
    r->input = *j->c;
    memcpy(r->weights_sha256, j->model->weights_sha256, sizeof r->weights_sha256);
    snprintf(r->arch, sizeof r->arch, "%s", j->model->arch);
    r->range[0] = j->model->program->range_lo;
    r->range[1] = j->model->program->range_hi;
    vr_status s = digest_latents(&j->latents, r->latents_sha256, err);
    if (s)
        return s;
    char *text = vg_record_text(r); /* for the input's digest */
    free(text);
    return text ? VR_OK : vr_fail(err, VR_E_NOMEM, "out of memory for a record");
}

vr_status vg_job_open(const char *golden, const vg_case *c, vg_models *models, vg_job *out, vr_error *err)
{
    memset(out, 0, sizeof *out);
    out->c = c;
    vr_status s = open_model(golden, c, models, &out->model, err);
    s = s ? s : open_latents(golden, c, out->model, &out->latents, err);
    if (!s) {
        const int64_t *d = out->latents.dim;
        const vr_shape z = {d[0], d[1], 1, d[2], d[3]};
        s = vr_tile_plan_make(out->model->program, z, &c->tile, &out->plan, err);
    }
    if (!s && c->picture && out->latents.dim[0] != 1)
        s = vr_fail(err, VR_E_SHAPE, "a picture is made of a batch of 1, this one has %lld",
                    (long long)out->latents.dim[0]);
    s = s ? s : fill_input(out, err);
    if (s) {
        vr_fail_prefix(err, "case '%s'", c->id);
        vg_job_close(out);
        return s;
    }
    out->cost = out->plan.macs > 0 ? out->plan.macs : 1;
    return VR_OK;
}

void vg_job_close(vg_job *j)
{
    free(j->pixels);
    vr_tensor_free(&j->latents);
    vr_tile_plan_free(&j->plan);
    memset(j, 0, sizeof *j);
}

/* ---- one run ------------------------------------------------------------------------ */

enum { RUNS = 2 + VG_CONTRACTS * VR_ORDER_COUNT };

typedef struct runner {
    vg_job *j;
    int32_t threads;
    vg_progress *progress;
    void *ctx;
    int64_t run; /* 0..RUNS-1 */
} runner;

static bool on_progress(void *ctx, int64_t done, int64_t total)
{
    const runner *x = ctx;
    const double part = total > 0 ? (double)done / (double)total : 1;
    return !x->progress || x->progress(x->ctx, (int64_t)(1000 * ((double)x->run + part)), 1000 * RUNS);
}

/* One decode. out: F32, or F64 under truth. */
static vr_status decode(runner *x, vr_policy policy, vr_order order, vr_tensor *out, vr_error *err)
{
    const vg_job *j = x->j;
    const vr_exec_options opt = {.policy = policy, .order = order, .threads = x->threads,
                                 .memory_limit = policy == VR_POLICY_GOLDEN ? j->c->tile.memory_limit : 0,
                                 .on_progress = on_progress, .ctx = x};
    const bool ordered = policy != VR_POLICY_GOLDEN && policy != VR_POLICY_TRUTH;
    vr_tile_stats stats = {.exec.nonfinite.op = -1};
    memset(out, 0, sizeof *out);
    vr_status s = vr_tile_decode(j->model->program, &j->latents, &j->plan, &opt, out, &stats, err);
    const vr_nonfinite *n = &stats.exec.nonfinite;
    if (!s && n->op >= 0)
        s = vr_fail(err, VR_E_NONFINITE, "'%s' is not finite; a case must be finite under every policy",
                    j->model->program->op[n->op].tap);
    if (s)
        vr_fail_prefix(err, "policy %s%s%s", vr_policy_name(policy), ordered ? "/" : "",
                       ordered ? vr_order_name(order) : "");
    x->run++;
    return s;
}

static double element(const vr_tensor *t, int64_t i)
{
    return t->dtype == VR_F64 ? ((const double *)t->data)[i] : (double)((const float *)t->data)[i];
}

/* Sums in order of elements, f64: the same bits everywhere. */
static vg_deviation deviation(const vr_tensor *got, const vr_tensor *truth, int64_t n)
{
    double sum = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double e = fabs(element(got, i) - element(truth, i));
        sum += e * e;
        most = e > most ? e : most;
    }
    return (vg_deviation){sqrt(sum / (double)n), most};
}

static double root_mean_square(const vr_tensor *t, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += element(t, i) * element(t, i);
    return sqrt(sum / (double)n);
}

/* ---- the whole case ------------------------------------------------------------------ */

/* Digests of the output and of its 8-bit samples. */
static vr_status digest_output(vg_job *j, const vr_tensor *out, int64_t count, vr_error *err)
{
    vg_record *r = &j->record;
    for (int i = 0; i < 4; i++)
        r->shape[i] = out->dim[i];
    r->tiles = j->plan.tile_count;
    vg_digest(out->data, (size_t)count * sizeof(float), r->output_sha256);
    const int64_t c = out->dim[1], h = out->dim[2], w = out->dim[3], n = c * h * w;
    uint8_t *u8 = malloc((size_t)count), d[32];
    if (!u8)
        return vr_fail(err, VR_E_NOMEM, "out of memory for a picture of %lldx%lld", (long long)w, (long long)h);
    for (int64_t i = 0; i < out->dim[0]; i++)
        vr_to_u8((const float *)out->data + i * n, c, h, w, r->range[0], r->range[1], u8 + i * n);
    vr_sha256 s;
    vr_sha256_init(&s);
    vr_sha256_update(&s, u8, (size_t)count);
    vr_sha256_final(&s, d);
    vr_sha256_hex(d, r->pixels_sha256);
    free(j->pixels);
    j->pixels = u8;
    return VR_OK;
}

static vr_status measure_noise(runner *x, const vr_tensor *truth, int64_t count, vr_error *err)
{
    for (int k = 0; k < VG_CONTRACTS; k++) {
        vg_noise *n = &x->j->record.noise[k];
        *n = (vg_noise){{-1, -1}, VR_ORDER_SEQ, VR_ORDER_SEQ};
        for (int o = 0; o < VR_ORDER_COUNT; o++) {
            vr_tensor out;
            vr_status s = decode(x, vg_contract(k), (vr_order)o, &out, err);
            if (s)
                return s;
            const vg_deviation d = deviation(&out, truth, count);
            vr_tensor_free(&out);
            if (d.rms > n->d.rms) {
                n->d.rms = d.rms;
                n->rms_order = (vr_order)o;
            }
            if (d.max > n->d.max) {
                n->d.max = d.max;
                n->max_order = (vr_order)o;
            }
        }
    }
    return VR_OK;
}

vr_status vg_job_run(vg_job *j, int32_t threads, vg_progress *progress, void *ctx, vr_error *err)
{
    runner x = {j, threads, progress, ctx, 0};
    vr_tensor golden = {0}, truth = {0};
    int64_t count = 0;
    vr_status s = decode(&x, VR_POLICY_GOLDEN, VR_ORDER_SEQ, &golden, err);
    s = s ? s : vr_tensor_count(&golden, &count, err);
    s = s ? s : digest_output(j, &golden, count, err);
    j->record.no_truth = j->plan.options.mode == VR_TILE_TWO_PASS_FAST && j->plan.tile_count > 1;
    if (!s && !j->record.no_truth)
        s = decode(&x, VR_POLICY_TRUTH, VR_ORDER_SEQ, &truth, err);
    if (!s) {
        const vr_tensor *base = j->record.no_truth ? &golden : &truth;
        j->record.truth_rms = root_mean_square(base, count);
        j->record.golden = deviation(&golden, base, count);
        s = measure_noise(&x, base, count, err);
    }
    vr_tensor_free(&golden);
    vr_tensor_free(&truth);
    return s ? vr_fail_prefix(err, "case '%s'", j->c->id) : VR_OK;
}
