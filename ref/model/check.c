/* What is refused about tensors whose place is known: scales of quantised
 * weights, tensors without a place, NaN and infinity (clauses M1.4, M1.5); and
 * the digest of the weights (clause M9).
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"

/* ---- scales ------------------------------------------------------------- */

static bool is_f8(vr_dtype t)
{
    return t == VR_F8_E4M3 || t == VR_F8_E5M2;
}

/* A marker "<stem>scaled_fp8" says that the 8-bit weights under <stem> have scales. */
static const char *scaled_marker(const vr_safetensors *f, const char *source)
{
    static const char marker[] = "scaled_fp8";
    for (int64_t i = 0; f && i < vr_safetensors_count(f); i++) {
        const char *name = vr_safetensors_at(f, i)->name;
        size_t n = strlen(name), m = sizeof marker - 1;
        if (n >= m && strcmp(name + n - m, marker) == 0 && strncmp(name, source, n - m) == 0)
            return name;
    }
    return NULL;
}

vr_status vr_refuse_scales(const vr_safetensors *f, const vr_table *t, const char *path,
                           vr_error *err)
{
    const char *marker = NULL;
    for (int64_t i = 0; i < t->count && !marker; i++) {
        const vr_entry *e = &t->entry[i];
        const char *leaf = strrchr(e->name, '.');
        if (strstr(leaf ? leaf : e->name, "scale"))
            marker = e->source;
    }
    for (int64_t i = 0; i < t->count && !marker; i++)
        if (is_f8(t->entry[i].tensor.dtype))
            marker = scaled_marker(f, t->entry[i].source);
    if (!marker)
        return VR_OK;
    return vr_fail(err, VR_E_UNSUPPORTED,
                   "%s: tensor '%s' says that weights are stored divided by a scale, which is not "
                   "applied here; convert the file to plain F16, BF16 or F32 first",
                   path, marker);
}

/* ---- extra -------------------------------------------------------------- */

vr_status vr_refuse_extra(const vr_table *t, int32_t levels, const char *path, vr_error *err)
{
    for (int64_t i = 0; i < t->count; i++) {
        const vr_entry *e = &t->entry[i];
        if (e->used || strncmp(e->name, "bn.", 3) == 0)
            continue;
        char depth[40] = "";
        if (levels > 0)
            snprintf(depth, sizeof depth, " of %d levels", levels);
        return vr_fail(err, VR_E_MODEL, "%s: extra tensor '%s': the decoder%s has no place for it",
                       path, e->source, depth);
    }
    return VR_OK;
}

/* ---- NaN and infinity --------------------------------------------------- */

int64_t vr_first_nonfinite(vr_dtype t, const void *data, int64_t count)
{
    enum { PART = 2048 };
    double part[PART];
    for (int64_t first = 0; first < count; first += PART) {
        int64_t n = count - first < PART ? count - first : PART;
        const char *src = (const char *)data + (size_t)first * vr_dtype_size(t);
        if (vr_convert(VR_F64, part, t, src, (uint64_t)n, NULL) != VR_OK)
            return first;
        double probe = 0.0;
        for (int64_t i = 0; i < n; i++)
            probe += part[i] * 0.0; /* 0 unless something is not finite */
        for (int64_t i = 0; probe != 0.0 && i < n; i++)
            if (part[i] - part[i] != 0.0)
                return first + i;
    }
    return -1;
}

vr_status vr_refuse_nonfinite(const vr_program *p, const char *path, vr_error *err)
{
    int32_t bad = -1;
    int64_t bad_at = 0;
#pragma omp parallel for schedule(dynamic)
    for (int32_t k = 0; k < p->weight_count; k++) {
        const vr_weight *w = &p->weight[k];
        int64_t at = vr_first_nonfinite(w->dtype, w->data, w->count);
        if (at < 0)
            continue;
#pragma omp critical(vr_model_nonfinite)
        if (bad < 0 || k < bad) {
            bad = k;
            bad_at = at;
        }
    }
    if (bad < 0)
        return VR_OK;
    return vr_fail(err, VR_E_NONFINITE,
                   "%s: tensor '%s' is not finite at element %lld; the file is damaged or was "
                   "trained to overflow",
                   path, p->weight[bad].source_name, (long long)bad_at);
}

/* ---- digest ------------------------------------------------------------- */

/* Attention maps are one weight whether stored [co][ci] or [co][ci][1][1]. */
static void one_line(const vr_entry *e, const uint8_t digest[32], char *line, size_t size)
{
    char shape[96], hex[65];
    vr_tensor x = e->tensor;
    if (x.rank == 4 && x.dim[2] == 1 && x.dim[3] == 1 && strstr(e->name, ".attentions.0.to_"))
        x.rank = 2;
    vr_sha256_hex(digest, hex);
    snprintf(line, size, "%s %s %s\n", e->name, vr_tensor_describe(&x, shape, sizeof shape), hex);
}

/* Weights, and FLUX.2's statistics, which a diffusion-space decode also uses. */
static bool matters(const vr_entry *e)
{
    return e->used || strcmp(e->name, "bn.running_mean") == 0 || strcmp(e->name, "bn.running_var") == 0;
}

vr_status vr_hash_weights(const vr_table *t, char hex[65], vr_error *err)
{
    uint8_t(*digest)[32] = calloc((size_t)(t->count ? t->count : 1), 32);
    if (!digest)
        return vr_fail(err, VR_E_NOMEM, "cannot allocate weight digests");
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < t->count; i++) {
        const vr_tensor *x = &t->entry[i].tensor;
        int64_t n = 0;
        vr_sha256 s;
        vr_sha256_init(&s);
        if (matters(&t->entry[i]) && vr_tensor_count(x, &n, NULL) == VR_OK)
            vr_sha256_update(&s, x->data, (size_t)n * vr_dtype_size(x->dtype));
        vr_sha256_final(&s, digest[i]);
    }
    vr_sha256 all;
    vr_sha256_init(&all);
    for (int64_t i = 0; i < t->count; i++) {
        char line[VR_NAME_MAX + 200];
        if (!matters(&t->entry[i]))
            continue;
        one_line(&t->entry[i], digest[i], line, sizeof line);
        vr_sha256_update(&all, line, strlen(line));
    }
    uint8_t sum[32];
    vr_sha256_final(&all, sum);
    vr_sha256_hex(sum, hex);
    free(digest);
    return VR_OK;
}
