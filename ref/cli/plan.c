/* ref/cli/plan.c: `vaeref plan`, how a tiling scheme would cut a picture and
 * what it would cost. Nothing is decoded.
 *
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <stdio.h>
#include <string.h>

typedef struct plan_args {
    cli_model_args model;
    cli_tile_args tile;
    int64_t width, height;
    bool json, explain;
} plan_args;

enum { KEY_SIZE = CLI_KEY_COMMAND, KEY_LIMIT, KEY_JSON, KEY_EXPLAIN };

static const struct argp_option options[] = {
    CLI_MODEL_OPTION,
    {"size", KEY_SIZE, "WxH", 0, "Output size in pixels (default 1024x1024)", 0},
    CLI_TILE_MODE_OPTION,
    CLI_TILE_OPTION,
    CLI_OVERLAP_OPTION,
    CLI_COSTS_OPTION,
    {"explain", KEY_EXPLAIN, NULL, 0, "auto: say what it weighed", 0},
    {"memory-limit", KEY_LIMIT, "SIZE", 0, "Activation memory that exact and auto plan for, e.g. 256MiB", 0},
    {"json", KEY_JSON, NULL, 0, "The same as JSON on stdout, with every tile", 0},
    CLI_CONFIG_OPTION,
    CLI_ARCH_OPTION,
    CLI_SPACE_OPTION,
    {0}};

static const char doc[] =
    "Show how a tiling scheme would cut a picture, and what that costs.\n"
    "\v"
    "Examples:\n"
    "  vaeref plan --model vae.safetensors --size 1024x1024 --tile-mode comfy\n"
    "  vaeref plan --model synth:sd15 --size 504x504 --tile-mode sdcpp --json\n"
    "  vaeref plan --model synth:flux1 --tile-mode diffusers --tile 512 --overlap 128\n"
    "\n"
    "Sizes are pixels of the output. effective_overlap is the smallest overlap two "
    "neighbouring tiles really have, work_ratio the multiply-adds of all tiles over "
    "those of the undivided decode. Numbers a scheme's formulas get wrong are refused.";

static vr_status set(void *ctx, int key, const char *arg, vr_error *err)
{
    plan_args *a = ctx;
    switch (key) {
    case KEY_SIZE:
        return cli_pair("--size", arg, &a->width, &a->height, err);
    case KEY_LIMIT:
        return cli_bytes("--memory-limit", arg, &a->tile.options.memory_limit, err);
    case KEY_EXPLAIN:
        a->explain = true;
        return VR_OK;
    case KEY_JSON:
        a->json = true;
        return VR_OK;
    case CLI_KEY_TILE_MODE:
    case CLI_KEY_TILE:
    case CLI_KEY_OVERLAP:
    case CLI_KEY_COSTS:
        return cli_tile_set(&a->tile, key, arg, err);
    default:
        return cli_model_set(&a->model, key, arg, err);
    }
}

static json_t *axis_json(const vr_tile_axis *a)
{
    json_t *tiles = json_array();
    for (int64_t i = 0; i < a->count; i++) {
        const vr_axis_tile *t = &a->tile[i];
        json_array_append_new(tiles, json_pack("{s:I, s:I, s:I, s:I}", "start", (json_int_t)t->start, "length",
                                               (json_int_t)t->length, "owned", (json_int_t)t->owned, "owned_length",
                                               (json_int_t)t->owned_length));
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "cells", (json_int_t)a->cells, "scale", (json_int_t)a->scale,
                     "tiles", (json_int_t)a->count, "requested_overlap", (json_int_t)a->requested_overlap,
                     "effective_overlap", a->effective_overlap < 0 ? json_null() : json_integer(a->effective_overlap),
                     "tile", tiles);
}

static vr_status print_json(const vr_model *m, const vr_tile_plan *p, const vr_program_cost *whole, vr_error *err)
{
    json_t *root = cli_tile_json(p), *passes = json_array();
    json_object_set_new(root, "arch", json_string(m->arch));
    json_object_set_new(root, "latent_shape", cli_json_shape(p->latent));
    json_object_set_new(root, "undivided_macs", json_integer((json_int_t)whole->macs));
    json_object_set_new(root, "undivided_peak_bytes", json_integer((json_int_t)whole->peak_bytes));
    for (int g = 0; g < p->grid_count; g++)
        json_array_append_new(passes, json_pack("{s:o, s:o}", "rows", axis_json(&p->grid[g].h), "columns",
                                                axis_json(&p->grid[g].w)));
    json_object_set_new(root, "passes", passes);
    if (p->options.mode == VR_TILE_AUTO)
        json_object_set_new(root, "auto", cli_auto_json(m, p));
    vr_status s = cli_json_print(root, err);
    json_decref(root);
    return s;
}

static const char *overlap_text(int64_t pixels, char *buf, size_t size)
{
    if (pixels < 0)
        snprintf(buf, size, "none (one tile)");
    else
        snprintf(buf, size, "%lld", (long long)pixels);
    return buf;
}

static void print_text(const vr_model *m, const vr_tile_plan *p, const vr_program_cost *whole)
{
    const vr_tile_options *o = &p->options;
    char a[64], b[64];
    printf("scheme        %s over %lldx%lld pixels, %s\n", vr_tile_mode_name(o->mode),
           (long long)(p->latent.w * p->grid[0].w.scale), (long long)(p->latent.h * p->grid[0].h.scale), m->arch);
    if (o->mode == VR_TILE_AUTO)
        printf("asked         overlap %lldx%lld pixels\n", (long long)o->overlap_w, (long long)o->overlap_h);
    else if (o->mode != VR_TILE_NONE)
        printf("asked         tile %lldx%lld, overlap %lldx%lld pixels\n", (long long)o->tile_w, (long long)o->tile_h,
               (long long)o->overlap_w, (long long)o->overlap_h);
    for (int g = 0; g < p->grid_count; g++)
        printf("pass %d        %lld columns, %lld rows; effective overlap %s across, %s down\n", g + 1,
               (long long)p->grid[g].w.count, (long long)p->grid[g].h.count,
               overlap_text(p->grid[g].w.effective_overlap, a, sizeof a),
               overlap_text(p->grid[g].h.effective_overlap, b, sizeof b));
    printf("tiles         %lld of %lld shapes\n", (long long)p->tile_count, (long long)p->tile_shapes);
    printf("work          %.2f GMAC, %.3f times the undivided %.2f\n", (double)p->macs * 1e-9, p->work_ratio,
           (double)whole->macs * 1e-9);
    printf("memory        %s of activations at the peak, undivided %s\n",
           cli_bytes_text((uint64_t)p->peak_bytes, a, sizeof a),
           cli_bytes_text((uint64_t)whole->peak_bytes, b, sizeof b));
}

static int show(plan_args *a, const vr_model *m, vr_error *err)
{
    int64_t h, w;
    if (cli_cells("width", a->width, m->spatial_scale, &w, err) ||
        cli_cells("height", a->height, m->spatial_scale, &h, err))
        return cli_error(CLI_USAGE, "%s", err->text);
    const vr_shape latent = {1, m->latent_channels, 1, h, w};
    vr_program_cost whole;
    vr_tile_plan plan;
    if (vr_program_cost_of(m->program, latent, 4, &whole, NULL, err))
        return cli_fail(err);
    if (cli_costs_load(&a->tile, m, err))
        return cli_fail(err);
    if (vr_tile_plan_make(m->program, latent, &a->tile.options, &plan, err))
        return cli_tile_fail(err);
    vr_status s = VR_OK;
    if (a->json)
        s = print_json(m, &plan, &whole, err);
    else
        print_text(m, &plan, &whole);
    if (a->explain && !a->json)
        s = cli_auto_text(m, &plan, err);
    vr_tile_plan_free(&plan);
    return s ? cli_fail(err) : CLI_OK;
}

int cli_plan(int argc, char **argv)
{
    plan_args a;
    memset(&a, 0, sizeof a);
    cli_tile_init(&a.tile);
    a.width = a.height = 1024;
    const cli_spec spec = {"plan", options, doc, set};
    int code = cli_parse(&spec, argc, argv, &a);
    if (code != CLI_CONTINUE)
        return code;
    if (!a.model.model)
        return cli_error(CLI_USAGE, "plan needs --model FILE or synth:ARCH (vaeref plan --help)");
    vr_error err = {VR_OK, ""};
    const vr_tile_mode mode = a.tile.options.mode;
    if (a.explain && mode != VR_TILE_AUTO)
        return cli_error(CLI_USAGE, "--explain has no meaning with --tile-mode %s; want auto, which alone chooses",
                         vr_tile_mode_name(mode));
    if (a.tile.options.memory_limit && mode != VR_TILE_EXACT && mode != VR_TILE_AUTO)
        return cli_error(CLI_USAGE, "--memory-limit has no meaning with --tile-mode %s, whose tiles do not follow it; "
                         "want exact or auto", vr_tile_mode_name(mode));
    if (cli_tile_check(&a.tile, &err))
        return cli_error(CLI_USAGE, "%s", err.text);
    vr_model *m = NULL;
    if (cli_model_open_any(&a.model, &m, &err))
        return cli_fail(&err);
    code = show(&a, m, &err);
    vr_model_close(m);
    return code;
}
