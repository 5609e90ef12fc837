/* The exact executor's decisions (clause T10.2): which values are stored, until
 * when, where they lie, and how large the parts are. They follow from shapes and
 * the limit alone, so a dry run takes the same ones.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "tile/exact.h"

/* ---- what is stored, and until when ------------------------------------- */

static bool needs_whole(vr_op_kind k)
{
    return k == VR_OP_GROUP_NORM || k == VR_OP_ATTENTION;
}

static bool moves_cells(vr_op_kind k)
{
    return k == VR_OP_CONV2D || k == VR_OP_UPSAMPLE_NEAREST || k == VR_OP_UNPACK;
}

static void mark_stored(ex_state *s, bool *heavy)
{
    const vr_program *p = s->p;
    for (int32_t v = 1; v < p->op_count; v++) {
        const vr_op *op = &p->op[v];
        heavy[v] = op->kind == VR_OP_CONV2D;
        for (int k = 0; k < 3; k++)
            if (op->in[k] > 0)
                heavy[v] = heavy[v] || (heavy[op->in[k]] && !s->value[op->in[k]].stored);
        int readers = 0;
        bool whole = false, moved = false;
        for (int32_t u = v + 1; u < p->op_count; u++)
            for (int k = 0; k < 3; k++)
                if (p->op[u].in[k] == v) {
                    readers++;
                    whole = whole || needs_whole(p->op[u].kind);
                    moved = moved || moves_cells(p->op[u].kind);
                }
        s->value[v].stored = v == p->output || op->kind == VR_OP_ATTENTION || whole || readers > 1 ||
                             (heavy[v] && moved);
    }
}

/* Operation i reads the stored values below v. */
static void mark_reads(ex_state *s, int32_t v, int32_t i)
{
    if (v < 0)
        return;
    if (v == 0 || s->value[v].stored) {
        s->value[v].last = i;
        return;
    }
    for (int k = 0; k < 3; k++)
        mark_reads(s, s->p->op[v].in[k], i);
}

static void find_last_reads(ex_state *s)
{
    for (int32_t i = 1; i < s->p->op_count; i++)
        if (s->value[i].stored || s->p->op[i].kind == VR_OP_GROUP_NORM)
            for (int k = 0; k < 3; k++)
                mark_reads(s, s->p->op[i].in[k], i);
    s->value[s->p->output].last = s->p->op_count;
}

void ex_choose_stored(ex_state *s, bool *heavy)
{
    mark_stored(s, heavy);
    find_last_reads(s);
}

/* ---- where a value goes, and how large its parts are --------------------- */

uint64_t ex_limit(const ex_state *s)
{
    return s->opt->memory_limit ? s->opt->memory_limit : UINT64_MAX;
}

/* A part of th x tw cells in the middle, where it has neighbours on all sides. */
static vr_status part_need(ex_state *s, int32_t v, int64_t th, int64_t tw, uint64_t *bytes, vr_error *err)
{
    const vr_shape q = s->shape[v];
    int64_t y = (q.h - th) / 2, x = (q.w - tw) / 2;
    return ex_need(s, v, (ex_region){y, y + th, x, x + tw}, bytes, err);
}

/* Largest part, whole rows first, that fits beside `held` bytes; rows are not
 * cut below `least` while columns are whole. Zero rows when none fits. */
static vr_status fit_part(ex_state *s, int32_t v, uint64_t held, int64_t least, int64_t *th, int64_t *tw,
                          uint64_t *need, vr_error *err)
{
    const vr_shape q = s->shape[v];
    const int64_t ph = s->out_h / q.h, pw = s->out_w / q.w; /* pixels per cell */
    int64_t cap_h = s->tile_h && ph ? s->tile_h / ph : q.h, cap_w = s->tile_w && pw ? s->tile_w / pw : q.w;
    cap_h = cap_h < 1 ? 1 : cap_h > q.h ? q.h : cap_h;
    cap_w = cap_w < 1 ? 1 : cap_w > q.w ? q.w : cap_w;
    *th = cap_h;
    *tw = cap_w;
    if (least > cap_h)
        least = cap_h;
    for (;;) {
        vr_status st = part_need(s, v, *th, *tw, need, err);
        if (st != VR_OK)
            return st;
        if (held + *need <= ex_limit(s))
            return VR_OK;
        if (*th > least)
            *th = (*th + 1) / 2 > least ? (*th + 1) / 2 : least;
        else if (least == 1 && *tw > 1)
            *tw = (*tw + 1) / 2;
        else
            break;
    }
    *th = 0;
    return VR_OK;
}

/* The largest value that lies in the pool goes to the host store. */
static vr_status evict_one(ex_state *s, int32_t reader, bool *done, vr_error *err)
{
    int32_t victim = -1;
    for (int32_t v = 1; v < s->p->op_count; v++)
        if (v != reader && s->value[v].place == EX_POOL && (victim < 0 || s->value[v].bytes > s->value[victim].bytes))
            victim = v;
    *done = victim >= 0;
    if (victim < 0)
        return VR_OK;
    ex_value *e = &s->value[victim];
    void *there;
    vr_status st = ex_store_get(s, e->bytes, &there, err);
    if (st != VR_OK)
        return st;
    if (!s->dry)
        memcpy(there, e->data, e->bytes);
    ex_free(s, e->bytes, e->data);
    e->data = there;
    e->place = EX_STORE;
    return VR_OK;
}

enum { COMFORTABLE_ROWS = 8 };

vr_status ex_choose(ex_state *s, int32_t v, ex_choice *c, vr_error *err)
{
    const uint64_t bytes = s->value[v].bytes;
    uint64_t need = 0;
    for (;;) {
        for (int spill = 0; spill < 2; spill++) {
            uint64_t held = s->live + (spill ? 0 : bytes);
            c->place = spill ? EX_STORE : EX_POOL;
            vr_status st = fit_part(s, v, held, COMFORTABLE_ROWS, &c->th, &c->tw, &need, err);
            if (st != VR_OK || c->th)
                return st;
        }
        bool evicted;
        vr_status st = evict_one(s, v, &evicted, err);
        if (st != VR_OK)
            return st;
        if (!evicted)
            break;
    }
    vr_status st = fit_part(s, v, s->live, 1, &c->th, &c->tw, &need, err);
    if (st != VR_OK || c->th)
        return st;
    return vr_fail(err, VR_E_BUDGET,
                   "memory limit of %llu bytes: operation %d (%s) needs at least %llu bytes for its smallest part",
                   (unsigned long long)ex_limit(s), v, s->p->op[v].tap, (unsigned long long)(s->live + need));
}
