/* ref/cli/costs_arg.c: the cost table of --tile-mode auto, from --tile-costs or from the
 * cache of `vaeref tune`, and why auto chose what it chose.
 *
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vaeref/costs.h"

void cli_machine(char *buf, size_t size)
{
    char cpu[120];
    const char *isa = "";
    cli_probe_cpu(cpu, sizeof cpu);
    vr_exec_isa(&isa, NULL);
    snprintf(buf, size, "%.110s, %s", cpu, isa);
}

vr_status cli_costs_path(const vr_model *m, bool make, char *path, size_t size, vr_error *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char dir[PATH_MAX - 200], machine[160], hex[65];
    vr_sha256 h;
    uint8_t d[32];
    if (cache && *cache)
        snprintf(dir, sizeof dir, "%s", cache);
    else if (home && *home)
        snprintf(dir, sizeof dir, "%s/.cache", home);
    else
        return vr_fail(err, VR_E_IO, "neither XDG_CACHE_HOME nor HOME is set; want --output FILE or --tile-costs FILE");
    if (make && mkdir(dir, 0777) != 0 && errno != EEXIST)
        return vr_fail(err, VR_E_IO, "cannot make %s: %s", dir, strerror(errno));
    strncat(dir, "/vaeproof", sizeof dir - strlen(dir) - 1);
    if (make && mkdir(dir, 0777) != 0 && errno != EEXIST)
        return vr_fail(err, VR_E_IO, "cannot make %s: %s", dir, strerror(errno));
    cli_machine(machine, sizeof machine);
    vr_sha256_init(&h);
    vr_sha256_update(&h, machine, strlen(machine));
    vr_sha256_final(&h, d);
    vr_sha256_hex(d, hex);
    snprintf(path, size, "%s/tile-costs-%.16s-%.8s.json", dir, m->weights_sha256, hex);
    return VR_OK;
}

/* A table is only good for the model and the machine it was measured with. */
static vr_status check(const char *path, const vr_model *m, const vr_tile_costs *c, vr_error *err)
{
    char machine[160];
    cli_machine(machine, sizeof machine);
    if (strcmp(c->weights_sha256, m->weights_sha256) != 0)
        return vr_fail(err, VR_E_MODEL, "%s was measured with other weights (%s, %.12s...); want vaeref tune with this model (%.12s...)",
                       path, c->arch, c->weights_sha256, m->weights_sha256);
    if (strcmp(c->machine, machine) != 0)
        return vr_fail(err, VR_E_MODEL, "%s was measured on '%s'; this is '%s': want vaeref tune here", path, c->machine, machine);
    return VR_OK;
}

vr_status cli_costs_load(cli_tile_args *a, const vr_model *m, vr_error *err)
{
    static vr_tile_costs table; /* lives as long as the options that name it */
    char path[PATH_MAX];
    if (a->options.mode != VR_TILE_AUTO)
        return VR_OK;
    snprintf(path, sizeof path, "%s", a->costs ? a->costs : "");
    if (!a->costs && (cli_costs_path(m, false, path, sizeof path, err) || access(path, R_OK) != 0))
        return VR_OK; /* multiply-adds */
    vr_status s = vr_tile_costs_read(path, &table, err);
    if (!s)
        s = check(path, m, &table, err);
    if (!s)
        a->options.costs = &table;
    return s;
}

/* ---- why -------------------------------------------------------------------------- */

static const char *cost_text(bool measured, double v, char *buf, size_t size)
{
    if (!isfinite(v))
        snprintf(buf, size, "impossible");
    else if (measured)
        snprintf(buf, size, "%.4g s", v);
    else
        snprintf(buf, size, "%.2f GMAC", v * 1e-9);
    return buf;
}

static void print_axis(const char *name, const vr_tile_axis *a)
{
    printf("  %-8s", name);
    for (int64_t i = 0; i < a->count; i++)
        printf("%s%lld", i ? " + " : " ", (long long)(a->tile[i].length * a->scale));
    printf(" pixels\n");
}

vr_status cli_auto_text(const vr_model *m, const vr_tile_plan *p, vr_error *err)
{
    vr_auto_report r;
    char a[40], b[40];
    vr_status s = vr_auto_explain(m->program, p->latent, &p->options, &r, err);
    if (s)
        return s;
    printf("costs         %s\n", r.measured ? "seconds, measured by vaeref tune" : "multiply-adds (an estimate; vaeref tune measures)");
    printf("undivided     %s, %s of activations: %s\n", cost_text(r.measured, r.undivided_cost, a, sizeof a),
           cli_bytes_text((uint64_t)r.undivided_peak_bytes, b, sizeof b),
           r.undivided_chosen ? "chosen: it fits and nothing is cheaper"
                              : r.undivided_fits ? "fits, and tiles are cheaper" : "does not fit the memory limit");
    printf("tiles         %d shapes, %d do not fit the memory limit beside the picture\n", (int)r.shapes, (int)r.excluded);
    printf("cover         %s", cost_text(r.measured, r.cover_cost, a, sizeof a));
    if (isfinite(r.uniform_cost))
        printf("; the best tiling by one shape (%lldx%lld cells) %s", (long long)r.uniform_columns, (long long)r.uniform_rows,
               cost_text(r.measured, r.uniform_cost, b, sizeof b));
    printf("\n");
    if (!r.undivided_chosen) {
        print_axis("columns", &p->grid[0].w);
        print_axis("rows", &p->grid[0].h);
    }
    return VR_OK;
}

static json_t *real(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

json_t *cli_auto_json(const vr_model *m, const vr_tile_plan *p)
{
    vr_auto_report r;
    if (vr_auto_explain(m->program, p->latent, &p->options, &r, NULL))
        return json_null();
    return json_pack("{s:s, s:o, s:o, s:o, s:b, s:b, s:I, s:i, s:i}", "unit", r.measured ? "seconds" : "multiply-adds", "undivided_cost",
                     real(r.undivided_cost), "cover_cost", real(r.cover_cost), "uniform_cost", real(r.uniform_cost),
                     "undivided_fits", (int)r.undivided_fits, "undivided_chosen", (int)r.undivided_chosen, "undivided_peak_bytes",
                     (json_int_t)r.undivided_peak_bytes, "shapes", (int)r.shapes, "excluded", (int)r.excluded);
}
