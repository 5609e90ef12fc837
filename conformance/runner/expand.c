/* Entries to cases: every contract, channel pair, size, batch and fill. The id says
 * all of it and never changes.
 *
 * SPDX-License-Identifier: MIT */
#include "runner/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void name_case(vc_case *c)
{
    const vc_entry *e = c->entry;
    size_t n = (size_t)snprintf(c->id, sizeof c->id, "%s", e->id);
    if (e->contracts)
        n += (size_t)snprintf(c->id + n, sizeof c->id - n, ".%s", vc_contract_name(c->storage));
    if (e->channel_count && c->co)
        n += (size_t)snprintf(c->id + n, sizeof c->id - n, ".c%lld-%lld", (long long)c->ci, (long long)c->co);
    else if (e->channel_count)
        n += (size_t)snprintf(c->id + n, sizeof c->id - n, ".c%lld", (long long)c->ci);
    if (e->size_count)
        n += (size_t)snprintf(c->id + n, sizeof c->id - n, ".%lldx%lld", (long long)c->h, (long long)c->w);
    if (c->n > 1)
        n += (size_t)snprintf(c->id + n, sizeof c->id - n, ".n%lld", (long long)c->n);
    if (c->fill != VC_NORMAL)
        snprintf(c->id + n, sizeof c->id - n, ".%s", vc_fill_name[c->fill]);
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const vc_case *)a)->id, ((const vc_case *)b)->id);
}

static int64_t at_least_one(int32_t n)
{
    return n > 0 ? n : 1;
}

static void expand_entry(const vc_entry *e, vc_case *out, int64_t *at)
{
    for (int64_t k = 0; k < at_least_one(e->contracts); k++)
        for (int64_t c = 0; c < at_least_one(e->channel_count); c++)
            for (int64_t s = 0; s < at_least_one(e->size_count); s++)
                for (int64_t b = 0; b < e->batch_count; b++)
                    for (int64_t f = 0; f < e->fill_count; f++) {
                        vc_case *x = &out[(*at)++];
                        *x = (vc_case){.entry = e, .storage = e->contracts ? e->contract[k] : VR_F32,
                                       .ci = e->channels[c].a, .co = e->channels[c].b, .h = e->size[s].a,
                                       .w = e->size[s].b, .n = e->batch[b], .fill = e->fill[f]};
                        name_case(x);
                    }
}

vr_status vc_suite_expand(vc_suite *s, vr_error *err)
{
    int64_t total = 0, at = 0;
    for (int64_t k = 0; k < s->entries; k++) {
        const vc_entry *e = &s->entry[k];
        total += at_least_one(e->contracts) * at_least_one(e->channel_count) * at_least_one(e->size_count) *
                 e->batch_count * e->fill_count;
    }
    free(s->item);
    s->item = calloc((size_t)(total ? total : 1), sizeof *s->item);
    if (!s->item)
        return vr_fail(err, VR_E_NOMEM, "no memory for %lld cases", (long long)total);
    for (int64_t k = 0; k < s->entries; k++)
        expand_entry(&s->entry[k], s->item, &at);
    s->count = total;
    /* Within an entry ids differ by construction unless a list repeats itself. */
    vc_case *sorted = malloc((size_t)(total ? total : 1) * sizeof *sorted);
    if (!sorted)
        return vr_fail(err, VR_E_NOMEM, "no memory for %lld cases", (long long)total);
    memcpy(sorted, s->item, (size_t)total * sizeof *sorted);
    qsort(sorted, (size_t)total, sizeof *sorted, by_id);
    vr_status st = VR_OK;
    for (int64_t k = 1; st == VR_OK && k < total; k++)
        if (strcmp(sorted[k - 1].id, sorted[k].id) == 0)
            st = vr_fail(err, VR_E_FORMAT, "case '%s' is there twice; want lists that do not repeat themselves", sorted[k].id);
    free(sorted);
    return st;
}
