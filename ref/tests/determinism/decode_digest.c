/* decode_digest: the bits of a decode, under every instruction set this machine
 * has and with one and two threads, as one line per decode:
 *
 *     CASE ISA THREADS SHA256
 *
 * The digest is taken over the raw output: f32 under golden, f64 under truth
 * (cases named .../truth), where no rounding to f32 hides a difference in the
 * last place and a stray contraction is seen at once. Exit 1 when two lines of a case
 * differ (clause N4: they may not). ci/determinism runs this program from
 * several compilers and optimisation levels and compares across them.
 *
 * Three cases: kl and tiny (seeded weights), taef2 (real weights and latents,
 * when given). For a build without the file formats (aarch64), --dump writes
 * the taef2 weights and latent as plain bytes, --raw reads them back.
 *
 * SPDX-License-Identifier: MIT */
#include "vaeref/exec.h"
#include "vaeref/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Latent cells. Small, but pictures are wider than the widest tile of a kernel. */
enum { KL_H = 3, KL_W = 5, TINY_H = 2, TINY_W = 5, TAEF2_H = 1, TAEF2_W = 5 };
static const char *const taef2_like = "synth:taef2,dtype=F16"; /* same weight list as the file */
static const char *const isas[] = {"portable", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

static bool cpu_has(const char *isa)
{
    if (strcmp(isa, "portable") == 0)
        return true;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (strcmp(isa, "x86-64-v2") == 0)
        return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("ssse3");
    if (strcmp(isa, "x86-64-v3") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

static int complain(const vr_error *err)
{
    fprintf(stderr, "decode_digest: %s\n", err->text);
    return 1;
}

/* One decode; its digest as hex. */
static vr_status digest_of(const vr_model *m, const vr_tensor *latent, vr_policy policy,
                           const char *isa, int32_t threads, char hex[65], vr_error *err)
{
    if (setenv("VAEREF_ISA", isa, 1) != 0)
        return vr_fail(err, VR_E_NOMEM, "cannot set VAEREF_ISA");
    vr_exec_options opt = {.policy = policy, .threads = threads};
    vr_exec_stats stats = {0};
    vr_tensor out = {0};
    int64_t count = 0;
    vr_status s = vr_exec_run(m->program, latent, &opt, &out, &stats, err);
    if (s == VR_OK)
        s = vr_tensor_count(&out, &count, err);
    if (s == VR_OK && strcmp(stats.isa, isa) != 0)
        s = vr_fail(err, VR_E_INTERNAL, "asked for %s, decoded with %s", isa, stats.isa);
    if (s == VR_OK && stats.nonfinite.op >= 0)
        s = vr_fail(err, VR_E_NONFINITE, "the decode holds a non-finite value");
    if (s == VR_OK) {
        uint8_t digest[32];
        vr_sha256 h;
        vr_sha256_init(&h);
        vr_sha256_update(&h, out.data, (size_t)count * vr_dtype_size(out.dtype));
        vr_sha256_final(&h, digest);
        vr_sha256_hex(digest, hex);
    }
    vr_tensor_free(&out);
    return s;
}

/* Every instruction set and thread count; 0 when all digests agree. */
static int sweep(const char *name, const vr_model *m, const vr_tensor *latent, vr_policy policy)
{
    char first[65] = "";
    int differ = 0;
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        if (!cpu_has(isas[i])) {
            printf("%s %s - skipped:this-CPU-lacks-it\n", name, isas[i]);
            continue;
        }
        for (int32_t threads = 1; threads <= 2; threads++) {
            char hex[65];
            vr_error err = {0};
            if (digest_of(m, latent, policy, isas[i], threads, hex, &err) != VR_OK)
                return complain(&err);
            printf("%s %s %d %s\n", name, isas[i], (int)threads, hex);
            fflush(stdout);
            if (first[0] == '\0')
                memcpy(first, hex, sizeof first);
            differ |= strcmp(first, hex) != 0;
        }
    }
    if (differ)
        fprintf(stderr, "decode_digest: the digests of %s differ\n", name);
    return differ;
}

static int seeded_case(const char *name, const char *spec, int64_t h, int64_t w, vr_policy policy)
{
    vr_error err = {0};
    vr_model *m = NULL;
    vr_tensor latent = {0};
    int rc;
    if (vr_model_open(spec, NULL, &m, &err) != VR_OK ||
        vr_model_latents(m, 1, 1, h, w, &latent, &err) != VR_OK)
        rc = complain(&err);
    else
        rc = sweep(name, m, &latent, policy);
    vr_tensor_free(&latent);
    vr_model_close(m);
    return rc;
}

/* Upper left corner of sample 0 of an F32 NCHW tensor. */
static vr_status crop(const vr_tensor *t, int64_t h, int64_t w, vr_tensor *out, vr_error *err)
{
    if (t->rank != 4 || t->dtype != VR_F32 || t->dim[0] < 1 || t->dim[2] < h || t->dim[3] < w)
        return vr_fail(err, VR_E_SHAPE, "taef2 latents: need F32 NCHW of at least %dx%d", (int)h,
                       (int)w);
    int64_t dim[4] = {1, t->dim[1], h, w};
    vr_status s = vr_tensor_new(out, VR_F32, 4, dim, err);
    if (s != VR_OK)
        return s;
    const float *src = t->data;
    float *dst = out->data;
    for (int64_t row = 0; row < t->dim[1] * h; row++) { /* row = channel * h + y */
        int64_t c = row / h, y = row % h;
        memcpy(dst + row * w, src + (c * t->dim[2] + y) * t->dim[3], (size_t)w * sizeof *dst);
    }
    return VR_OK;
}

/* The weight that follows `last` in name order, or NULL after the last one. A
 * program's own order may depend on the compiler: C leaves open in which order
 * the arguments of a call, and so weights registered there, are evaluated. */
static vr_weight *next_weight(const vr_program *p, const vr_weight *last)
{
    vr_weight *best = NULL;
    for (int32_t i = 0; i < p->weight_count; i++) {
        vr_weight *w = &p->weight[i];
        if ((last == NULL || strcmp(w->name, last->name) > 0) &&
            (best == NULL || strcmp(w->name, best->name) < 0))
            best = w;
    }
    return best;
}

/* Plain bytes: each weight as stored, in name order, then the latent. */
static int dump(const char *path, const vr_model *m, const vr_tensor *latent)
{
    FILE *f = fopen(path, "wb");
    if (f == NULL) {
        perror(path);
        return 1;
    }
    bool ok = true;
    for (vr_weight *w = NULL; (w = next_weight(m->program, w)) != NULL;) {
        size_t n = (size_t)w->count * vr_dtype_size(w->dtype);
        ok = ok && fwrite(w->data, 1, n, f) == n;
    }
    size_t n = (size_t)(latent->dim[1] * latent->dim[2] * latent->dim[3]) * sizeof(float);
    ok = ok && fwrite(latent->data, 1, n, f) == n;
    if (fclose(f) != 0 || !ok) {
        fprintf(stderr, "%s: cannot write\n", path);
        return 1;
    }
    return 0;
}

static int file_case(const char *model, const char *latents, const char *dump_path)
{
    vr_error err = {0};
    vr_model *m = NULL;
    vr_tensor whole = {0}, latent = {0};
    int rc;
    if (vr_model_open(model, NULL, &m, &err) != VR_OK ||
        vr_tensor_load(latents, &whole, &err) != VR_OK ||
        crop(&whole, TAEF2_H, TAEF2_W, &latent, &err) != VR_OK)
        rc = complain(&err);
    else
        rc = dump_path != NULL ? dump(dump_path, m, &latent)
                               : sweep("taef2", m, &latent, VR_POLICY_GOLDEN);
    vr_tensor_free(&latent);
    vr_tensor_free(&whole);
    vr_model_close(m);
    return rc;
}

/* A seeded model whose weights are replaced by the dumped ones. */
static int raw_case(const char *path)
{
    vr_error err = {0};
    vr_model *m = NULL;
    vr_tensor latent = {0};
    FILE *f = NULL;
    char *bytes = NULL;
    int rc = 1;
    if (vr_model_open(taef2_like, NULL, &m, &err) != VR_OK ||
        vr_model_latents(m, 1, 1, TAEF2_H, TAEF2_W, &latent, &err) != VR_OK) {
        complain(&err);
        goto done;
    }
    size_t latent_bytes = (size_t)(m->latent_channels * TAEF2_H * TAEF2_W) * sizeof(float);
    size_t need = latent_bytes;
    for (int32_t i = 0; i < m->program->weight_count; i++)
        need += (size_t)m->program->weight[i].count * vr_dtype_size(m->program->weight[i].dtype);
    bytes = malloc(need + 1);
    f = fopen(path, "rb");
    if (bytes == NULL || f == NULL || fread(bytes, 1, need + 1, f) != need) {
        fprintf(stderr, "%s: expected a dump of exactly %zu bytes\n", path, need);
        goto done;
    }
    char *at = bytes;
    for (vr_weight *w = NULL; (w = next_weight(m->program, w)) != NULL;) {
        w->data = at;
        at += (size_t)w->count * vr_dtype_size(w->dtype);
    }
    memcpy(latent.data, at, latent_bytes);
    rc = sweep("taef2", m, &latent, VR_POLICY_GOLDEN);
done:
    if (f != NULL)
        fclose(f);
    vr_tensor_free(&latent);
    vr_model_close(m);
    free(bytes);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--dump") == 0)
        return file_case(argv[3], argv[4], argv[2]);
    bool files = argc == 4 && strcmp(argv[1], "--taef2") == 0;
    bool raw = argc == 3 && strcmp(argv[1], "--raw") == 0;
    if (argc != 1 && !files && !raw) {
        fputs("usage: decode_digest [--taef2 MODEL LATENTS | --raw FILE]\n"
              "       decode_digest --dump FILE MODEL LATENTS\n",
              stderr);
        return 2;
    }
    const char *kl = "synth:sd15,div=8", *tiny = "synth:taesd,div=2";
    int rc = seeded_case("kl", kl, KL_H, KL_W, VR_POLICY_GOLDEN);
    rc |= seeded_case("tiny", tiny, TINY_H, TINY_W, VR_POLICY_GOLDEN);
    rc |= seeded_case("kl/truth", kl, KL_H, KL_W, VR_POLICY_TRUTH);
    rc |= seeded_case("tiny/truth", tiny, TINY_H, TINY_W, VR_POLICY_TRUTH);
    if (files)
        rc |= file_case(argv[2], argv[3], NULL);
    if (raw)
        rc |= raw_case(argv[2]);
    return rc;
}
