/* Cost tables of tile mode `auto` (clause T11.1). SPDX-License-Identifier: MIT */
#include "vaeref/costs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "vaeref/io.h"

vr_status vr_tile_costs_from_macs(const vr_program *p, vr_tile_costs *out, vr_error *err)
{
    static const int64_t pixels[] = {128, 192, 256, 384, 512, 768, 1024};
    int64_t scale_h, scale_w;
    vr_program_scale(p, &scale_h, &scale_w);
    *out = (vr_tile_costs){.count = 0};
    for (size_t k = 0; k < sizeof pixels / sizeof *pixels; k++) {
        const int64_t cells = pixels[k] / scale_h;
        if (cells > 0 && (!out->count || cells > out->size[out->count - 1]))
            out->size[out->count++] = cells;
    }
    if (!out->count)
        out->size[out->count++] = 1;
    vr_status s = VR_OK;
    for (int32_t i = 0; s == VR_OK && i < out->count; i++)
        for (int32_t j = 0; s == VR_OK && j < out->count; j++) {
            vr_program_cost cost;
            s = vr_program_cost_of(p, (vr_shape){1, p->op[0].channels, 1, out->size[i], out->size[j]}, 4, &cost, NULL, err);
            /* A program without convolutions still costs what it writes. */
            out->cost[i][j] = s != VR_OK ? 0 : cost.macs > 0 ? (double)cost.macs : (double)(out->size[i] * out->size[j]);
        }
    return s;
}

/* ---- files ------------------------------------------------------------------- */

static vr_status bad(const char *path, const char *key, const char *want, vr_error *err)
{
    return vr_fail(err, VR_E_FORMAT, "%s: key '%s': want %s", path, key, want);
}

static vr_status text(const char *path, const json_t *root, const char *key, char *to, size_t room, vr_error *err)
{
    const char *s = json_string_value(json_object_get(root, key));
    if (!s || strlen(s) >= room)
        return bad(path, key, "a text that is not too long", err);
    snprintf(to, room, "%s", s);
    return VR_OK;
}

static vr_status whole(const char *path, const json_t *root, const char *key, int32_t *to, vr_error *err)
{
    const json_t *v = json_object_get(root, key);
    if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > 1000000)
        return bad(path, key, "a whole number from 1 to 1000000", err);
    *to = (int32_t)json_integer_value(v);
    return VR_OK;
}

static vr_status tables(const char *path, const json_t *root, vr_tile_costs *c, vr_error *err)
{
    const json_t *sizes = json_object_get(root, "sizes"), *rows = json_object_get(root, "seconds");
    const size_t n = json_array_size(sizes);
    if (n < 1 || n > VR_COST_SIZES)
        return bad(path, "sizes", "1 to 16 whole numbers of latent cells", err);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(sizes, i);
        c->size[i] = json_integer_value(v);
        if (!json_is_integer(v) || c->size[i] < 1 || c->size[i] > 65536 || (i && c->size[i] <= c->size[i - 1]))
            return bad(path, "sizes", "ascending whole numbers of latent cells from 1 to 65536", err);
    }
    c->count = (int32_t)n;
    if (json_array_size(rows) != n)
        return bad(path, "seconds", "one row for each size", err);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            const json_t *row = json_array_get(rows, i), *v = json_array_get(row, j);
            c->cost[i][j] = json_number_value(v);
            if (json_array_size(row) != n || !json_is_number(v) || !(c->cost[i][j] > 0) || !isfinite(c->cost[i][j]))
                return bad(path, "seconds", "as many positive numbers in each row as there are sizes", err);
        }
    return VR_OK;
}

vr_status vr_tile_costs_read(const char *path, vr_tile_costs *out, vr_error *err)
{
    static const char *const keys[] = {"schema", "arch", "weights_sha256", "machine", "isa", "policy", "threads", "rounds",
                                       "sizes", "seconds"};
    json_error_t je;
    const char *key;
    json_t *v, *root = json_load_file(path, JSON_REJECT_DUPLICATES, &je);
    *out = (vr_tile_costs){.measured = true};
    if (!root)
        return vr_fail(err, je.line < 0 ? VR_E_IO : VR_E_FORMAT, "%s:%d: %s", path, je.line < 0 ? 0 : je.line, je.text);
    vr_status s = json_is_object(root) ? VR_OK : bad(path, "", "an object", err);
    json_object_foreach(root, key, v) {
        bool known = false;
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            known = known || strcmp(key, keys[k]) == 0;
        if (!known && s == VR_OK)
            s = bad(path, key, "no such key in a tile cost table", err);
    }
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (s == VR_OK && (!schema || strcmp(schema, "vaeproof-tile-costs/1") != 0))
        s = bad(path, "schema", "vaeproof-tile-costs/1", err);
    if (s == VR_OK)
        s = text(path, root, "arch", out->arch, sizeof out->arch, err);
    if (s == VR_OK)
        s = text(path, root, "weights_sha256", out->weights_sha256, sizeof out->weights_sha256, err);
    if (s == VR_OK)
        s = text(path, root, "machine", out->machine, sizeof out->machine, err);
    if (s == VR_OK)
        s = text(path, root, "isa", out->isa, sizeof out->isa, err);
    if (s == VR_OK)
        s = text(path, root, "policy", out->policy, sizeof out->policy, err);
    if (s == VR_OK)
        s = whole(path, root, "threads", &out->threads, err);
    if (s == VR_OK)
        s = whole(path, root, "rounds", &out->rounds, err);
    if (s == VR_OK)
        s = tables(path, root, out, err);
    json_decref(root);
    return s;
}

vr_status vr_tile_costs_write(const char *path, const vr_tile_costs *c, vr_error *err)
{
    json_t *sizes = json_array(), *rows = json_array();
    for (int32_t i = 0; i < c->count; i++) {
        json_t *row = json_array();
        json_array_append_new(sizes, json_integer((json_int_t)c->size[i]));
        for (int32_t j = 0; j < c->count; j++)
            json_array_append_new(row, json_real(c->cost[i][j]));
        json_array_append_new(rows, row);
    }
    json_t *root = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:o, s:o}", "schema", "vaeproof-tile-costs/1", "arch", c->arch,
                             "weights_sha256", c->weights_sha256, "machine", c->machine, "isa", c->isa, "policy", c->policy,
                             "threads", (int)c->threads, "rounds", (int)c->rounds, "sizes", sizes, "seconds", rows);
    char *dump = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
    vr_file_writer *w = NULL;
    vr_status s = dump ? vr_file_create(path, &w, err) : vr_fail(err, VR_E_NOMEM, "no memory for a cost table");
    if (s == VR_OK)
        s = vr_file_write(w, dump, strlen(dump), err);
    if (s == VR_OK)
        s = vr_file_write(w, "\n", 1, err);
    if (s == VR_OK)
        s = vr_file_commit(w, err);
    else
        vr_file_abandon(w);
    free(dump);
    json_decref(root);
    return s;
}
