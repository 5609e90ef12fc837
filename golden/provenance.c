/* golden/provenance.c: provenance.json, what a version was made from (clause G4).
 *
 * It follows from cases.json and the records alone. Nothing in it differs
 * between machines, compilers or runs. SPDX-License-Identifier: MIT */
#include "golden.h"

#include <stdlib.h>
#include <string.h>

/* One model of the version. */
typedef struct model_line {
    const char *model, *digest;
    int64_t cases;
} model_line;

static int by_model(const void *a, const void *b)
{
    const model_line *x = a, *y = b;
    const int d = strcmp(x->model, y->model);
    return d ? d : strcmp(x->digest, y->digest);
}

/* N of "seed=N" in a synth spec, 0 when absent; false for a file. */
static bool weight_seed(const char *model, uint64_t *seed)
{
    if (strncmp(model, "synth:", 6))
        return false;
    const char *at = strstr(model, ",seed=");
    *seed = at ? strtoull(at + 6, NULL, 0) : 0;
    return true;
}

static bool latent_seed(const char *latents, uint64_t *seed)
{
    cli_latents_args a;
    if (cli_latents_set(&a, "latents", latents, NULL) || !a.seeded)
        return false;
    *seed = a.seed;
    return true;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void write_seeds(FILE *f, const char *key, uint64_t *seed, size_t n)
{
    if (n)
        qsort(seed, n, sizeof *seed, by_value);
    fprintf(f, "  \"%s\": [", key);
    for (size_t i = 0, written = 0; i < n; i++)
        if (i == 0 || seed[i] != seed[i - 1])
            fprintf(f, "%s%llu", written++ ? ", " : "", (unsigned long long)seed[i]);
    fputs("]", f);
}

/* Models in order, each once, with the number of its cases. */
static size_t gather(const vg_record *r, int64_t count, model_line *m)
{
    size_t n = 0;
    for (int64_t i = 0; i < count; i++)
        m[i] = (model_line){r[i].input.model, r[i].weights_sha256, 1};
    qsort(m, (size_t)count, sizeof *m, by_model);
    for (int64_t i = 0; i < count; i++) {
        if (n && by_model(&m[n - 1], &m[i]) == 0)
            m[n - 1].cases++;
        else
            m[n++] = m[i];
    }
    return n;
}

static void write_all(FILE *f, const vg_case_list *l, const vg_record *r, int64_t count, model_line *m, uint64_t *seed)
{
    fprintf(f, "{\n  \"schema\": \"vaegolden-provenance/1\",\n  \"suite_version\": \"%s\",\n"
            "  \"spec_version\": \"%s\",\n  \"cases\": %lld,\n  \"cases_json_sha256\": \"%s\",\n", l->suite, l->spec, (long long)count, l->sha256);
    size_t n = 0;
    for (int64_t i = 0; i < count; i++)
        n += latent_seed(r[i].input.latents, &seed[n]);
    write_seeds(f, "latent_seeds", seed, n);
    n = 0;
    for (int64_t i = 0; i < count; i++)
        n += weight_seed(r[i].input.model, &seed[n]);
    fputs(",\n", f);
    write_seeds(f, "weight_seeds", seed, n);
    fputs(",\n  \"models\": [", f);
    n = gather(r, count, m);
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%s\n    {\"model\": \"%s\", \"weights_sha256\": \"%s\", \"cases\": %lld}", i ? "," : "", m[i].model,
                m[i].digest, (long long)m[i].cases);
    fputs("\n  ]\n}\n", f);
}

char *vg_provenance_text(const vg_case_list *l, const vg_record *records, int64_t count)
{
    char *text = NULL;
    size_t size = 0;
    model_line *m = calloc((size_t)count, sizeof *m);
    uint64_t *seed = calloc((size_t)count, sizeof *seed);
    FILE *f = m && seed ? open_memstream(&text, &size) : NULL;
    if (f) {
        write_all(f, l, records, count, m, seed);
        if (!vg_close(f)) {
            free(text);
            text = NULL;
        }
    }
    free(seed);
    free(m);
    return text;
}
