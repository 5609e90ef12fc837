/* Tiled decodes against other people's code in float64 (tiled.safetensors): clauses
 * T2 to T5, corners included.
 *
 * golden within 1e-5 of the expected picture everywhere. Each case is one in which
 * tiling matters (it differs from the undivided decode by more than 1e-3), and the
 * other schemes fail it.
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "vaeref/model.h"
#include "vaeref/tile.h"

#define LIMIT 1e-5

#define MUST(call, name) \
    do { \
        vr_status status_ = (call); \
        cr_assert_eq(status_, VR_OK, "%s: %s", name, status_ == VR_OK ? "" : err.text); \
    } while (0)

static double largest(const vr_tensor *a, const vr_tensor *b)
{
    int64_t n = 0;
    double most = 0.0;
    vr_tensor_count(a, &n, NULL);
    for (int64_t i = 0; i < n; i++) {
        const double d = fabs((double)((const float *)a->data)[i] - (double)((const float *)b->data)[i]);
        most = d > most || d != d ? d : most;
    }
    return most;
}

static vr_status decode(const vr_model *m, const vr_tensor *z, vr_tile_options o, vr_tensor *out, int64_t *tiles, vr_error *err)
{
    vr_tile_plan plan;
    *out = (vr_tensor){.data = NULL};
    vr_status s = vr_tile_plan_make(m->program, (vr_shape){z->dim[0], z->dim[1], 1, z->dim[2], z->dim[3]}, &o, &plan, err);
    if (s != VR_OK)
        return s;
    *tiles = plan.tile_count;
    s = vr_tile_decode(m->program, z, &plan, NULL, out, NULL, err);
    vr_tile_plan_free(&plan);
    return s;
}

static int64_t at(const json_t *row, const char *key, size_t i)
{
    return json_integer_value(json_array_get(json_object_get(row, key), i));
}

static void check_row(const oracle_fixture *f, const json_t *row)
{
    const char *name = oracle_string(row, "name");
    char sha[65];
    vr_error err = {VR_OK, ""};
    vr_model *m = NULL;
    vr_tensor z, want, got, other;
    int64_t count = 0, tiles = 0;
    MUST(vr_model_open(oracle_string(row, "model"), NULL, &m, &err), name);
    cr_assert_str_eq(m->weights_sha256, oracle_string(row, "weights_sha256"), "%s: the seeded weights have changed", name);
    MUST(vr_model_latents(m, (uint64_t)oracle_integer(row, "latent_seed"), at(row, "latent_shape", 0), at(row, "latent_shape", 2),
                          at(row, "latent_shape", 3), &z, &err), name);
    MUST(vr_tensor_count(&z, &count, &err), name);
    oracle_sha256(z.data, (size_t)count * sizeof(float), sha);
    cr_assert_str_eq(sha, oracle_string(row, "latents_sha256"), "%s: the seeded latents have changed", name);
    MUST(oracle_tensor(f, name, VR_F32, &want, &err), name);

    vr_tile_options o = {.tile_w = at(row, "tile", 0), .tile_h = at(row, "tile", 1), .overlap_w = at(row, "overlap", 0),
                         .overlap_h = at(row, "overlap", 1)};
    cr_assert(vr_tile_mode_parse(oracle_string(row, "scheme"), &o.mode), "%s: unknown scheme", name);
    MUST(decode(m, &z, o, &got, &tiles, &err), name);
    cr_assert(memcmp(got.dim, want.dim, sizeof got.dim) == 0, "%s: another size", name);
    const double d = largest(&got, &want);
    printf("%-44s %2lld tiles, max |d| %.2e\n", name, (long long)tiles, d);
    cr_assert_lt(d, LIMIT, "%s: %g from the expected picture", name, d);
    cr_assert_gt(tiles, 1, "%s: one tile shows nothing", name);
    cr_assert_gt(oracle_real(row, "max_from_undivided"), 1e-3, "%s: tiling makes no difference here", name);

    static const vr_tile_mode others[] = {VR_TILE_DIFFUSERS, VR_TILE_DIFFUSERS_TINY, VR_TILE_COMFY, VR_TILE_COMFY_3PASS};
    const vr_tile_mode mine = o.mode == VR_TILE_DIFFUSERS_STRIDE ? VR_TILE_DIFFUSERS : o.mode; /* two names of one blend */
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        o.mode = others[k];
        if (others[k] == mine || decode(m, &z, o, &other, &tiles, &err) != VR_OK)
            continue; /* another scheme may not take these sizes */
        cr_assert_gt(largest(&other, &want), 1e-3, "%s: %s passes too", name, vr_tile_mode_name(o.mode));
        vr_tensor_free(&other);
    }
    vr_tensor_free(&got);
    vr_tensor_free(&want);
    vr_tensor_free(&z);
    vr_model_close(m);
}

Test(oracle_tiled, every_row)
{
    oracle_fixture f;
    vr_error err = {VR_OK, ""};
    size_t i;
    const json_t *row;
    cr_assert_eq(oracle_open("tiled.safetensors", "tiled.json", &f, &err), VR_OK, "%s", err.text);
    cr_assert_geq(f.count, 15u);
    json_array_foreach(f.rows, i, row) {
#ifdef ORACLE_TINY_ONLY /* sanitizers make the others take minutes and see the same code */
        if (!strstr(oracle_string(row, "model"), "synth:tae"))
            continue;
#endif
        check_row(&f, row);
    }
    oracle_close(&f);
}
