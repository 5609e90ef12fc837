/* Which cases of a suite are run. SPDX-License-Identifier: MIT */
#include "runner/select.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool in_profile(const vc_case *c, vc_profile p)
{
    return c->entry->profile <= p;
}

static bool asked(const vc_case *c, const vc_options *o)
{
    static const vr_dtype contract[] = {VR_F32, VR_F16, VR_BF16, VR_F64};
    if (!in_profile(c, o->profile) || (o->any_level && !o->level[c->entry->level]) ||
        (o->pattern && fnmatch(o->pattern, c->id, 0) != 0))
        return false;
    for (int k = 0; o->any_contract && c->entry->contracts && k < 4; k++)
        if (c->storage == contract[k])
            return o->contract[k];
    return true;
}

/* The committed list against what the case files give. */
static vr_status check_list(const vc_suite *s, const vc_options *o, const char *path, vr_error *err)
{
    FILE *f = fopen(path, "r");
    char line[256];
    int64_t n = 0, listed = 0;
    if (!f)
        return vr_fail(err, VR_E_IO, "cannot read the list of required ids %s: %s", path, strerror(errno));
    for (int64_t k = 0; k < s->count; k++)
        n += in_profile(&s->item[k], o->profile);
    vr_status st = VR_OK;
    while (st == VR_OK && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        bool found = false;
        for (int64_t k = 0; k < s->count && !found; k++)
            found = in_profile(&s->item[k], o->profile) && strcmp(s->item[k].id, line) == 0;
        listed++;
        if (!found)
            st = vr_fail(err, VR_E_FORMAT, "%s:%lld: case '%s' is required, and the case files do not have it", path,
                         (long long)listed, line);
    }
    if (st == VR_OK && listed != n)
        st = vr_fail(err, VR_E_FORMAT, "%s lists %lld ids, the case files give %lld for this profile; want the list made again "
                     "(vaecheck --list --profile %s)", path, (long long)listed, (long long)n, vc_profile_name[o->profile]);
    fclose(f);
    return st;
}

vr_status vc_select(const vc_suite *s, const vc_options *o, vc_selection *out, vr_error *err)
{
    char path[PATH_MAX];
    *out = (vc_selection){.item = calloc((size_t)s->count + 1, sizeof *out->item),
                          .required = calloc((size_t)s->count + 1, sizeof *out->required)};
    if (!out->item || !out->required)
        return vr_fail(err, VR_E_NOMEM, "no memory for %lld cases", (long long)s->count);
    snprintf(path, sizeof path, "%s/%s.txt", VAEPROOF_MUSTPASS_DIR, vc_profile_name[o->profile]);
    vr_status st = VR_OK;
    if (!o->list && !o->cases && !o->model)
        st = check_list(s, o, o->mustpass ? o->mustpass : path, err);
    int64_t matched = 0;
    for (int64_t k = 0; st == VR_OK && k < s->count; k++) {
        if (!asked(&s->item[k], o))
            continue;
        if (matched++ % o->shards == o->shard - 1) {
            out->required[out->count] = true;
            out->item[out->count++] = &s->item[k];
        }
    }
    if (st == VR_OK && !out->count)
        st = vr_fail(err, VR_E_ARGUMENT, "no case is left to run; want other --profile, --level, --contract, --case or --shard");
    if (st != VR_OK)
        vc_selection_free(out);
    return st;
}

void vc_selection_free(vc_selection *s)
{
    free(s->item);
    free(s->required);
    *s = (vc_selection){.item = NULL};
}
