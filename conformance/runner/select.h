/* Which cases of a suite are run. SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_SELECT_H
#define VAEPROOF_SELECT_H

#include "runner/options.h"

typedef struct vc_selection {
    const vc_case **item;
    bool *required;
    int64_t count;
} vc_selection;

/* By profile, level, contract, pattern and shard. The whole of a profile must be what
 * its committed list of required ids says: VR_E_FORMAT names the first id that is
 * missing here or there. VR_E_ARGUMENT when nothing is left. */
vr_status vc_select(const vc_suite *s, const vc_options *o, vc_selection *out, vr_error *err);
void vc_selection_free(vc_selection *s);

#endif
