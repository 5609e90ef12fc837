/* Covering a length by overlapped tiles of several sizes at the least cost (clause
 * T11.2): dynamic programming, then look-up.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vaeref/costs.h"

vr_status vr_cover_build(const int64_t *size, const double *cost, int32_t count, int64_t overlap, int64_t length,
                         vr_cover *out, vr_error *err)
{
    *out = (vr_cover){.length = length, .overlap = overlap};
    if (count < 1 || count > VR_COST_SIZES || length < 0 || length > 1 << 24 || overlap < 0)
        return vr_fail(err, VR_E_RANGE, "a cover of length %lld by %d tiles with overlap %lld; want 0 to 2^24, 1 to 16, >= 0",
                       (long long)length, (int)count, (long long)overlap);
    out->value = malloc((size_t)(length + 1) * sizeof *out->value);
    out->choice = malloc((size_t)(length + 1));
    if (!out->value || !out->choice) {
        vr_cover_free(out);
        return vr_fail(err, VR_E_NOMEM, "no memory for a cover of %lld", (long long)length);
    }
    out->value[0] = 0;
    out->choice[0] = -1;
    for (int64_t n = 1; n <= length; n++) {
        out->value[n] = INFINITY;
        out->choice[n] = -1;
        for (int32_t k = 0; k < count; k++) {
            if (size[k] <= overlap && size[k] < n)
                continue;
            const double v = size[k] >= n ? cost[k] : cost[k] + out->value[n - (size[k] - overlap)];
            if (v < out->value[n]) {
                out->value[n] = v;
                out->choice[n] = (int8_t)k;
            }
        }
    }
    return VR_OK;
}

void vr_cover_free(vr_cover *c)
{
    if (!c)
        return;
    free(c->value);
    free(c->choice);
    *c = (vr_cover){.value = NULL};
}

bool vr_cover_read(const vr_cover *c, const int64_t *size, int32_t sizes, int64_t length, int64_t *count_of)
{
    memset(count_of, 0, (size_t)sizes * sizeof *count_of);
    if (length < 1 || length > c->length || !isfinite(c->value[length]))
        return false;
    for (int64_t n = length;;) {
        const int32_t k = c->choice[n];
        count_of[k]++;
        if (size[k] >= n)
            return true;
        n -= size[k] - c->overlap;
    }
}
