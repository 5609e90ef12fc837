/* One case from start to status, and the child around it. SPDX-License-Identifier: MIT */
#include "runner/run.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <time.h>

const char *vc_status_name(vc_status s)
{
    static const char *const name[] = {
#define VC_X(name, text) text,
        VC_STATUS_MAP(VC_X)
#undef VC_X
    };
    return (unsigned)s < VC_STATUS_COUNT ? name[s] : "?";
}

void vc_say(vc_result *res, vc_status s, const char *fmt, ...)
{
    va_list a;
    va_start(a, fmt);
    res->status = s;
    vsnprintf(res->reason, sizeof res->reason, fmt, a);
    va_end(a);
}

void vc_from_outcome(const vc_run *r, vc_outcome o, const char *verb, vc_result *res)
{
    char earlier[400];
    snprintf(earlier, sizeof earlier, "%.399s", res->status == VC_FAIL ? res->reason : "");
    switch (o) {
    case VC_ANSWER:
        return;
    case VC_REFUSED:
        vc_say(res, VC_FAIL, "%s was refused although it is claimed: %s", verb, r->child.text);
        break;
    case VC_CRASH:
        vc_say(res, VC_STATUS_CRASH, "%s", r->child.text);
        break;
    case VC_TIMEOUT:
        vc_say(res, VC_STATUS_TIMEOUT, "%s", r->child.text);
        break;
    }
    if (*earlier)
        snprintf(res->reason + strlen(res->reason), sizeof res->reason - strlen(res->reason), "; before that, %s", earlier);
}

/* ---- the child ------------------------------------------------------------------------ */

vr_status vc_read_caps(json_t *hello, vc_caps *out, vr_error *err)
{
    *out = (vc_caps){.caps = 0};
    const json_int_t major = json_integer_value(json_object_get(hello, "abi_major"));
    static const char *const text[] = {"name", "version", "vendor", "device"};
    char *const to[] = {out->name, out->version, out->vendor, out->device};
    const size_t room[] = {sizeof out->name, sizeof out->version, sizeof out->vendor, sizeof out->device};
    if (major != VP_ABI_MAJOR)
        return vr_fail(err, VR_E_FORMAT, "the backend speaks ABI %lld; this is ABI %u", (long long)major, VP_ABI_MAJOR);
    for (int i = 0; i < 4; i++) {
        const char *s = json_string_value(json_object_get(hello, text[i]));
        snprintf(to[i], room[i], "%s", s ? s : "");
    }
    out->caps = (uint64_t)json_integer_value(json_object_get(hello, "caps"));
    out->ops = (uint64_t)json_integer_value(json_object_get(hello, "ops"));
    out->storage = (uint32_t)json_integer_value(json_object_get(hello, "storage"));
    out->tiles = (uint32_t)json_integer_value(json_object_get(hello, "tiles")) | 1u;
    return VR_OK;
}

vc_outcome vc_run_open(vc_run *r)
{
    vr_error err = {VR_OK, ""};
    json_t *hello = NULL;
    r->opened = false;
    vc_outcome o = vc_child_start(&r->child, 60);
    if (o == VC_ANSWER)
        o = vc_child_call(&r->child, "hello", NULL, 30, &hello);
    if (o == VC_ANSWER) {
        vc_caps now;
        if (vc_read_caps(hello, &now, &err) != VR_OK) {
            snprintf(r->child.text, sizeof r->child.text, "%s", err.text);
            o = VC_REFUSED;
        } else if (!r->caps.name[0]) {
            r->caps = now; /* claims are frozen before the first case */
        }
    }
    json_decref(hello);
    if (o == VC_ANSWER)
        o = vc_child_call(&r->child, "open", r->spec.options ? json_pack("{s:s}", "options", r->spec.options) : NULL, 120, NULL);
    r->opened = o == VC_ANSWER;
    return o;
}

/* ---- one case ---------------------------------------------------------------------------- */

static void attempt(vc_run *r, const vc_case *c, vc_result *res)
{
    *res = (vc_result){.status = VC_PASS, .culprit = -1};
    if (!r->opened && vc_run_open(r) != VC_ANSWER) {
        vc_say(res, VC_STATUS_CRASH, "the backend does not start again: %s", r->child.text);
        return;
    }
    if (c->entry->level == VC_L0)
        vc_abi_case(r, c, res);
    else if (c->entry->level == VC_L7)
        vc_stress_case(r, c, res);
    else if (c->entry->level == VC_L5 || c->entry->level == VC_L6)
        vc_say(res, VC_UNSUPPORTED, "this level is declared and has no cases yet in this version of the suite");
    else
        vc_numeric_case(r, c, res);
    r->opened = r->opened && r->child.pid != 0;
}

void vc_result_free(vc_result *res)
{
    vr_tensor_free(&res->got);
    vr_tensor_free(&res->want);
    vr_image_free(&res->heat);
}

void vc_case_run(vc_run *r, const vc_case *c, vc_result *res)
{
    const double start = wire_now();
    const bool fresh = !r->opened;
    attempt(r, c, res);
    if (res->status == VC_STATUS_CRASH || res->status == VC_STATUS_TIMEOUT)
        snprintf(res->log_tail, sizeof res->log_tail, "%.*s", (int)sizeof res->log_tail - 1,
                 r->child.log + (r->child.log_size > sizeof res->log_tail - 1 ? r->child.log_size - (sizeof res->log_tail - 1) : 0));
    if (res->status == VC_STATUS_CRASH && !fresh) { /* alone, to tell a bad case from dirty state */
        vc_result again;
        attempt(r, c, &again);
        snprintf(res->reason + strlen(res->reason), sizeof res->reason - strlen(res->reason), "; alone in a new process: %s",
                 vc_status_name(again.status));
        vc_result_free(&again);
    }
    res->seconds = wire_now() - start;
}
