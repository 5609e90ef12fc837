/* Properties of random programs, each checked against a slow method that
 * shares nothing with the library: shapes by extent, reach by following which
 * latent row touches which output row, memory by a pool of marks.
 * SPDX-License-Identifier: MIT */
#include "random_program.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 600, LATENT = 64, MIDDLE = 32 };

static vr_program *make(uint64_t seed)
{
    vr_error err = {0};
    vr_program *p = random_program(seed, &err);
    cr_assert_not_null(p, "seed %d: %s", (int)seed, err.text);
    return p;
}

/* ---- reach -------------------------------------------------------------- */

static int inputs(const vr_op *op)
{
    int n = 0;
    while (n < 3 && op->in[n] >= 0)
        n++;
    return n;
}

/* Bit j of the result: row (or column) y of the operation's value depends on
 * latent row j. mask[v][y] holds it for the values before. */
static uint64_t depends(const vr_op *op, int axis, uint64_t *const *mask, const int64_t *extent,
                        int64_t y)
{
    int32_t v = op->in[0];
    uint64_t m = 0;
    switch (op->kind) {
    case VR_OP_CONV2D: {
        int64_t k = axis ? op->p.conv2d.kw : op->p.conv2d.kh;
        int64_t pad = axis ? op->p.conv2d.pad_left : op->p.conv2d.pad_top;
        for (int64_t t = 0; t < k; t++)
            if (y + t - pad >= 0 && y + t - pad < extent[v])
                m |= mask[v][y + t - pad];
        return m;
    }
    case VR_OP_UPSAMPLE_NEAREST:
        return mask[v][y / (axis ? op->p.upsample.factor_w : op->p.upsample.factor_h)];
    case VR_OP_UNPACK:
        return mask[v][y / (axis ? op->p.unpack.fw : op->p.unpack.fh)];
    default:
        for (int j = 0; j < inputs(op); j++)
            m |= mask[op->in[j]][y];
        return m;
    }
}

/* Latent rows that the output rows of latent row MIDDLE depend on; 0 when the
 * output has no such rows. */
static uint64_t brute_reach(const vr_program *p, int axis, const vr_shape *shape, int64_t scale)
{
    uint64_t **mask = calloc((size_t)p->op_count, sizeof *mask);
    int64_t *extent = calloc((size_t)p->op_count, sizeof *extent);
    for (int32_t i = 0; i < p->op_count; i++) {
        extent[i] = axis ? shape[i].w : shape[i].h;
        mask[i] = calloc((size_t)extent[i], sizeof **mask);
        for (int64_t y = 0; y < extent[i]; y++)
            mask[i][y] = i ? depends(&p->op[i], axis, mask, extent, y) : UINT64_C(1) << y;
    }
    uint64_t m = 0;
    if (extent[p->output] >= scale * (MIDDLE + 1))
        for (int64_t y = scale * MIDDLE; y < scale * (MIDDLE + 1); y++)
            m |= mask[p->output][y];
    for (int32_t i = 0; i < p->op_count; i++)
        free(mask[i]);
    free(mask);
    free(extent);
    return m;
}

/* True when the block lies far enough from the borders to be compared. */
static bool check_axis(const vr_program *p, int seed, int axis, const vr_shape *shape,
                       int64_t low, int64_t high)
{
    int64_t sh, sw;
    vr_program_scale(p, &sh, &sw);
    uint64_t m = brute_reach(p, axis, shape, axis ? sw : sh);
    if (!m || (m & 1) || (m >> (LATENT - 1)))
        return false;
    int64_t first = 0, last = LATENT - 1;
    while (!(m >> first & 1))
        first++;
    while (!(m >> last & 1))
        last--;
    int64_t want_low = first < MIDDLE ? MIDDLE - first : 0;
    int64_t want_high = last > MIDDLE ? last - MIDDLE : 0;
    cr_assert(low == want_low && high == want_high,
              "seed %d axis %d: halo %lld,%lld but rows %lld..%lld of %d", seed, axis,
              (long long)low, (long long)high, (long long)first, (long long)last, MIDDLE);
    return true;
}

Test(program_random, reach_is_exactly_the_latent_rows_an_output_block_depends_on)
{
    int compared = 0, lopsided = 0;
    for (int seed = 1; seed <= SEEDS; seed++) {
        vr_program *p = make((uint64_t)seed);
        vr_shape *shape = calloc((size_t)p->op_count, sizeof *shape);
        vr_receptive_field r;
        vr_error err = {0};
        vr_shape latent = {1, p->op[0].channels, 1, LATENT, LATENT};
        cr_assert(vr_program_shapes(p, latent, shape, &err) == VR_OK, "%s", err.text);
        cr_assert(vr_program_receptive_field(p, &r, NULL) == VR_OK);
        compared += check_axis(p, seed, 0, shape, r.halo_low, r.halo_high);
        compared += check_axis(p, seed, 1, shape, r.halo_low_w, r.halo_high_w);
        lopsided += r.halo_low != r.halo_high;
        free(shape);
        vr_program_free(p);
    }
    cr_assert(compared > SEEDS, "only %d of %d could be compared", compared, 2 * SEEDS);
    cr_assert(lopsided > SEEDS / 4, "only %d programs were lopsided", lopsided);
}

/* ---- memory ------------------------------------------------------------- */

static bool reads(const vr_op *op, int32_t v)
{
    return op->in[0] == v || op->in[1] == v || op->in[2] == v;
}

static bool needed_after(const vr_program *p, int32_t i, int32_t v)
{
    if (v == p->output)
        return true;
    for (int32_t k = i + 1; k < p->op_count; k++)
        if (reads(&p->op[k], v))
            return true;
    return false;
}

static bool may_overwrite(vr_op_kind k)
{
    return k != VR_OP_INPUT && k != VR_OP_CONV2D && k != VR_OP_UPSAMPLE_NEAREST &&
           k != VR_OP_ATTENTION && k != VR_OP_UNPACK;
}

/* block[v]: which block holds value v, 0 none. A block holds one value. */
static int64_t simulate(const vr_program *p, const vr_shape *shape, int seed, int64_t *at_op)
{
    int32_t block[64] = {0}, next = 1;
    int64_t peak = 0;
    for (int32_t i = 1; i < p->op_count; i++) {
        const vr_op *op = &p->op[i];
        int32_t over = -1;
        for (int j = inputs(op) - 1; j >= 0; j--) {
            cr_assert(op->in[j] == 0 || block[op->in[j]], "seed %d: op %d reads a dead value",
                      seed, (int)i);
            if (may_overwrite(op->kind) && op->in[j] && !needed_after(p, i, op->in[j]))
                over = op->in[j];
        }
        block[i] = over > 0 ? block[over] : next++;
        if (over > 0)
            block[over] = 0;
        int64_t live = 0;
        for (int32_t v = 1; v <= i; v++)
            if (block[v])
                live += shape[v].n * shape[v].c * shape[v].t * shape[v].h * shape[v].w;
        at_op[i] = live;
        peak = live > peak ? live : peak;
        for (int32_t v = 1; v <= i; v++)
            if (block[v] && !needed_after(p, i, v))
                block[v] = 0;
    }
    return peak;
}

Test(program_random, live_and_peak_bytes_are_those_of_a_simulated_pool)
{
    int in_place = 0;
    for (int seed = 1; seed <= SEEDS; seed++) {
        vr_program *p = make((uint64_t)seed);
        vr_shape shape[64];
        vr_op_cost row[64];
        vr_program_cost c;
        int64_t at_op[64];
        int32_t last[64];
        cr_assert(p->op_count <= 64);
        vr_shape latent = {2, p->op[0].channels, 3, 40, 50};
        cr_assert(vr_program_shapes(p, latent, shape, NULL) == VR_OK);
        cr_assert(vr_program_cost_of(p, latent, 2, &c, row, NULL) == VR_OK);
        int64_t peak = simulate(p, shape, seed, at_op);
        for (int32_t i = 1; i < p->op_count; i++)
            cr_assert(row[i].live_bytes == 2 * at_op[i], "seed %d op %d: %lld, simulated %lld",
                      seed, (int)i, (long long)row[i].live_bytes, (long long)(2 * at_op[i]));
        cr_assert(c.peak_bytes == 2 * peak, "seed %d", seed);
        vr_program_live_ranges(p, last);
        for (int32_t i = 0; i < p->op_count; i++)
            in_place += vr_program_in_place(p, last, i) >= 0;
        vr_program_free(p);
    }
    cr_assert(in_place > SEEDS, "only %d operations wrote in place", in_place);
}
