/* ref/cli/tile_arg.c: --tile-mode, --tile and --overlap, and a plan as JSON.
 *
 * Only the form is checked here; whether the numbers make sense depends on the
 * scheme and the model's scale, which vr_tile_plan_make knows.
 *
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "A" or "AxB", whole numbers from `least` to 1000000. */
static vr_status pixels(const char *what, const char *s, int64_t least, int64_t *w, int64_t *h, vr_error *err)
{
    int64_t v[2] = {-1, -1};
    const char *at = s;
    int n = 0;
    for (; n < 2 && isdigit((unsigned char)*at); n++) {
        char *end;
        errno = 0;
        v[n] = strtoll(at, &end, 10);
        if (errno || v[n] < least || v[n] > 1000000 || (*end && (*end != 'x' || n == 1)))
            break;
        at = *end ? end + 1 : end;
        if (!*end) {
            *w = v[0];
            *h = n ? v[1] : v[0];
            return VR_OK;
        }
    }
    return vr_fail(err, VR_E_ARGUMENT, "%s '%s': want pixels, W or WxH, each from %lld to 1000000, such as 512 or 512x256",
                   what, s, (long long)least);
}

static vr_status set_mode(cli_tile_args *a, const char *arg, vr_error *err)
{
    char list[300] = "";
    if (vr_tile_mode_parse(arg, &a->options.mode))
        return VR_OK;
    for (int m = 0; m < VR_TILE_MODE_COUNT; m++) {
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", m ? ", " : "", vr_tile_mode_name((vr_tile_mode)m));
    }
    return vr_fail(err, VR_E_ARGUMENT, "--tile-mode '%s': want one of %s", arg, list);
}

void cli_tile_init(cli_tile_args *a)
{
    memset(a, 0, sizeof *a);
    a->options.mode = VR_TILE_NONE;
    a->options.overlap_h = a->options.overlap_w = -1;
}

vr_status cli_tile_set(cli_tile_args *a, int key, const char *arg, vr_error *err)
{
    switch (key) {
    case CLI_KEY_TILE_MODE:
        return set_mode(a, arg, err);
    case CLI_KEY_TILE:
        a->sized = "--tile";
        return pixels("--tile", arg, 1, &a->options.tile_w, &a->options.tile_h, err);
    case CLI_KEY_OVERLAP:
        a->sized = "--overlap";
        return pixels("--overlap", arg, 0, &a->options.overlap_w, &a->options.overlap_h, err);
    case CLI_KEY_COSTS:
        a->costs = arg;
        return *arg ? VR_OK : vr_fail(err, VR_E_ARGUMENT, "--tile-costs '': want a file");
    case CLI_KEY_SPILL:
        a->options.spill_dir = arg;
        return *arg ? VR_OK : vr_fail(err, VR_E_ARGUMENT, "--spill-dir '': want a folder");
    default:
        return VR_E_UNSUPPORTED;
    }
}

vr_status cli_tile_check(const cli_tile_args *a, vr_error *err)
{
    if (a->options.mode == VR_TILE_NONE && a->sized)
        return vr_fail(err, VR_E_ARGUMENT, "%s has no meaning without tiling; want --tile-mode with it", a->sized);
    if (a->costs && a->options.mode != VR_TILE_AUTO)
        return vr_fail(err, VR_E_ARGUMENT, "--tile-costs has no meaning with --tile-mode %s; want auto, which alone weighs costs",
                       vr_tile_mode_name(a->options.mode));
    if (a->options.spill_dir && a->options.mode != VR_TILE_EXACT)
        return vr_fail(err, VR_E_ARGUMENT, "--spill-dir has no meaning with --tile-mode %s; want exact, which alone "
                       "keeps values outside the pool", vr_tile_mode_name(a->options.mode));
    return VR_OK;
}

int cli_tile_fail(const vr_error *err)
{
    return err->status == VR_E_RANGE ? cli_error(CLI_USAGE, "%s", err->text) : cli_fail(err);
}

json_t *cli_tile_json(const vr_tile_plan *p)
{
    const vr_tile_options *o = &p->options;
    int64_t h = -1, w = -1; /* smallest over the passes */
    for (int g = 0; g < p->grid_count; g++) {
        const int64_t a = p->grid[g].h.effective_overlap, b = p->grid[g].w.effective_overlap;
        h = h < 0 || (a >= 0 && a < h) ? a : h;
        w = w < 0 || (b >= 0 && b < w) ? b : w;
    }
    return json_pack("{s:s, s:[I, I], s:[I, I], s:[o, o], s:I, s:I, s:I, s:f, s:f, s:I}", "tile_mode",
                     vr_tile_mode_name(o->mode), "tile", (json_int_t)o->tile_w, (json_int_t)o->tile_h, "overlap",
                     (json_int_t)o->overlap_w, (json_int_t)o->overlap_h, "effective_overlap",
                     w < 0 ? json_null() : json_integer(w), h < 0 ? json_null() : json_integer(h), "tiles",
                     (json_int_t)p->tile_count, "tile_shapes", (json_int_t)p->tile_shapes, "macs", (json_int_t)p->macs,
                     "gmacs", (double)p->macs * 1e-9, "work_ratio", p->work_ratio, "peak_bytes",
                     (json_int_t)p->peak_bytes);
}
