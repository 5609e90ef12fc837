/* vaeref/costs.h: what a tile of each shape costs, for tile mode `auto`: measured on
 * a machine, or multiply-adds where nothing was measured. Specification:
 * docs/spec/tiling.md, clause T11.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_COSTS_H
#define VAEREF_COSTS_H

#include "vaeref/core.h"
#include "vaeref/program.h"
#include "vaeref/tile.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VR_COST_SIZES 16

typedef struct vr_tile_costs {
    int32_t count;                      /* sizes: 1..VR_COST_SIZES */
    int64_t size[VR_COST_SIZES];        /* latent cells, ascending; tiles are size x size */
    double cost[VR_COST_SIZES][VR_COST_SIZES]; /* [rows][columns], > 0: seconds, or multiply-adds */
    bool measured;                      /* cost is seconds */
    /* Where the seconds come from; empty when not measured. */
    char arch[32], weights_sha256[65], machine[160], isa[32], policy[16];
    int32_t threads, rounds;
} vr_tile_costs;

/* Multiply-adds of the program at the usual tile sizes (128 to 1024 pixels). */
VR_API vr_status vr_tile_costs_from_macs(const vr_program *p, vr_tile_costs *out, vr_error *err);
/* A JSON file. Strict: unknown keys, a wrong version, sizes that do not ascend,
 * costs that are not positive numbers are VR_E_FORMAT with the key. */
VR_API vr_status vr_tile_costs_read(const char *path, vr_tile_costs *out, vr_error *err);
VR_API vr_status vr_tile_costs_write(const char *path, const vr_tile_costs *c, vr_error *err); /* atomic */

/* The best cover of every length up to some length by overlapped tiles:
 * V(L) = min over tiles t of c[t] when t >= L, else c[t] + V(L - (t - overlap)).
 * Built once in O(length * tiles); then the tile to take at any length is read. */
typedef struct vr_cover {
    int64_t length, overlap;
    double *value;   /* [length + 1]; infinite: cannot be covered */
    int8_t *choice;  /* [length + 1]: index of the first tile, -1: none */
} vr_cover;

/* cost: infinite for a tile that must not be used. Tiles not longer than the overlap
 * are not used. */
VR_API vr_status vr_cover_build(const int64_t *size, const double *cost, int32_t count, int64_t overlap,
                                int64_t length, vr_cover *out, vr_error *err);
VR_API void vr_cover_free(vr_cover *c); /* NULL-safe; clears */
/* Tiles that cover `length`, as counts per size. False: it cannot be covered. */
VR_API bool vr_cover_read(const vr_cover *c, const int64_t *size, int32_t sizes, int64_t length,
                          int64_t *count_of);

/* Why `auto` chose what it chose. Costs in the table's unit. */
typedef struct vr_auto_report {
    bool measured;
    bool undivided_fits, undivided_chosen;
    int64_t undivided_peak_bytes;
    double undivided_cost;          /* in the table, else by multiply-adds from its largest tile */
    double cover_cost;              /* of the cover; infinite: none fits */
    int64_t rows[VR_COST_SIZES], columns[VR_COST_SIZES]; /* tiles of each size in the cover */
    double uniform_cost;            /* best cover by tiles of one shape; infinite: none fits */
    int64_t uniform_rows, uniform_columns;      /* its tile, cells */
    int32_t shapes, excluded;       /* tile shapes in the table; those the memory limit excludes */
    int64_t tile_peak_bytes[VR_COST_SIZES][VR_COST_SIZES]; /* with the picture; > limit: excluded */
} vr_auto_report;

/* What vr_tile_plan_make decides for mode `auto`, with its reasons. opt->costs NULL:
 * multiply-adds. */
VR_API vr_status vr_auto_explain(const vr_program *p, vr_shape latent, const vr_tile_options *opt,
                                 vr_auto_report *out, vr_error *err);

#ifdef __cplusplus
}
#endif
#endif
