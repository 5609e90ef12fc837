/* The event log: one line for each case, flushed before the next begins, so that a
 * crash loses nothing (format: conformance/README.md).
 *
 * SPDX-License-Identifier: MIT */
#include "runner/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vaeref/io.h"
#include "vaeref/metrics.h"

static void line(vc_run *r, json_t *j)
{
    char *text = r->log && j ? json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
    if (text) {
        fprintf(r->log, "%s\n", text);
        fflush(r->log);
    }
    free(text);
    json_decref(j);
}

static void real(json_t *o, const char *key, double v)
{
    if (isfinite(v))
        json_object_set_new(o, key, json_real(v));
    else if (!isnan(v))
        json_object_set_new(o, key, json_string(v > 0 ? "inf" : "-inf"));
}

static json_t *names(uint64_t mask, const char *const *name, int count)
{
    json_t *a = json_array();
    for (int k = 0; k < count; k++)
        if ((mask >> k & 1) && name[k])
            json_array_append_new(a, json_string(name[k]));
    return a;
}

void vc_log_run(vc_run *r, int argc, char **argv, const vc_case *const *cases, int64_t count, int shard, int shards)
{
    static const char *const storage[] = {NULL, "f64", "f32", "f16", "bf16"};
    const char *tiles[VR_TILE_MODE_COUNT];
    char seed[32], when[32];
    const time_t t = time(NULL);
    struct tm tm;
    if (!r->log)
        return;
    for (int m = 0; m < VR_TILE_MODE_COUNT; m++)
        tiles[m] = vr_tile_mode_name((vr_tile_mode)m);
    snprintf(seed, sizeof seed, "0x%016llx", (unsigned long long)r->seed);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
    json_t *command = json_array(), *required = json_array();
    for (int k = 0; k < argc; k++)
        json_array_append_new(command, json_string(argv[k]));
    for (int64_t k = 0; k < count; k++)
        json_array_append_new(required, json_string(cases[k]->id));
    json_t *backend = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:o, s:o}", "spec", r->spec.text, "name", r->caps.name, "version",
                                r->caps.version, "vendor", r->caps.vendor, "device", r->caps.device, "caps",
                                (json_int_t)r->caps.caps, "storage", names(r->caps.storage, storage, 5), "tiles",
                                names(r->caps.tiles, tiles, VR_TILE_MODE_COUNT));
    line(r, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:[i, i], s:s, s:o, s:o, s:o}", "event", "run", "schema", "vaeproof-log/1",
                      "suite_version", VAEPROOF_VERSION, "suite_digest", r->suite->digest, "profile",
                      vc_profile_name[r->profile], "seed", seed, "partial", (int)r->partial, "shard", shard, shards, "time", when, "command", command,
                      "backend", backend, "required", required));
}

static json_t *judge_json(const vc_result *res)
{
    const vj_result *j = &res->judge;
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(res->judge_name));
    json_object_set_new(o, "elements", json_integer(j->elements));
    json_object_set_new(o, "wrong", json_integer(j->wrong));
    if (strcmp(res->judge_name, "numeric") == 0) {
        real(o, "ratio_rms", j->numeric.ratio_rms);
        real(o, "limit_rms", j->numeric.limit_rms);
        real(o, "ratio_max", j->numeric.ratio_max);
        real(o, "limit_max", j->numeric.limit_max);
        real(o, "error_rms", j->numeric.error_rms);
        real(o, "error_max", j->numeric.error_max);
        real(o, "noise_rms", j->numeric.noise_rms);
        real(o, "noise_max", j->numeric.noise_max);
        real(o, "ideal_spread", j->numeric.ideal_spread);
    }
    if (strcmp(res->judge_name, "ulp") == 0) {
        real(o, "ulp_max", j->ulp.max);
        real(o, "ulp_mean", j->ulp.mean);
        real(o, "ulp_limit", j->ulp.limit);
    }
    return o;
}

static json_t *worst_json(const vc_result *res)
{
    json_t *list = json_array();
    for (int32_t k = 0; k < res->judge.worst_count; k++) {
        const vj_element *e = &res->judge.worst[k];
        json_t *o = json_object(), *index = json_array();
        int64_t at[5], rest = e->index;
        for (int d = 4; d >= 0; d--) {
            const int64_t n = res->index_dims[d] > 0 ? res->index_dims[d] : 1;
            at[d] = rest % n;
            rest /= n;
        }
        for (int d = 0; d < 5; d++)
            if (d != 2)
                json_array_append_new(index, json_integer(at[d]));
        json_object_set_new(o, "index", index);
        real(o, "truth", e->truth);
        real(o, "ideal", e->ideal);
        real(o, "got", e->got);
        real(o, "ratio", e->ratio);
        json_array_append_new(list, o);
    }
    return list;
}

/* Golden, got and difference of a failed decode as pictures beside the log. */
static json_t *write_pictures(const vc_run *r, const vc_case *c, const vc_result *res)
{
    vr_error err = {VR_OK, ""};
    const vr_tensor *side[2] = {&res->want, &res->got};
    static const char *const what[] = {"golden", "got", "difference", "heat"};
    if (!r->log_dir[0] || !res->got.data || !res->want.data || (res->got.dim[1] != 3 && res->got.dim[1] != 1))
        return NULL;
    const int64_t h = res->got.dim[2], w = res->got.dim[3], ch = res->got.dim[1];
    vr_image img = {(int32_t)w, (int32_t)h, (int32_t)ch, 8, malloc((size_t)(h * w * ch))};
    json_t *files = json_object();
    for (int k = 0; k < (res->heat.data ? 4 : 3) && img.data; k++) {
        char name[200], path[4400];
        snprintf(name, sizeof name, "%s.%s.png", c->id, what[k]);
        snprintf(path, sizeof path, "%s/%s", r->log_dir, name);
        vr_status s;
        if (k < 2) {
            vr_to_u8(side[k]->data, ch, h, w, res->range_lo, res->range_hi, img.data);
            s = vr_png_write(path, &img, &err);
        } else if (k == 3) {
            s = vr_png_write(path, &res->heat, &err);
        } else {
            vr_image d = {.data = NULL};
            double gain = 0;
            s = vr_difference_picture(&res->got, &res->want, 0, res->range_lo, res->range_hi, NULL, &gain, &d, &err);
            if (s == VR_OK)
                s = vr_png_write(path, &d, &err);
            free(d.data);
        }
        if (s == VR_OK)
            json_object_set_new(files, what[k], json_string(name));
    }
    free(img.data);
    return files;
}

void vc_log_case(vc_run *r, const vc_case *c, vc_result *res, bool required)
{
    char repro[900];
    if (!r->log)
        return;
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:f, s:b}", "event", "case", "id", c->id, "level",
                          vc_level_name[c->entry->level], "spec", c->entry->spec, "profile", vc_profile_name[c->entry->profile],
                          "status", vc_status_name(res->status), "reason", res->reason, "seconds", res->seconds, "required",
                          (int)required);
    if (c->entry->contracts)
        json_object_set_new(o, "contract", json_string(vc_contract_name(c->storage)));
    if (res->judged)
        json_object_set_new(o, "judge", judge_json(res));
    if (res->status != VC_PASS && res->status != VC_UNSUPPORTED) {
        snprintf(repro, sizeof repro, "vaecheck --backend %s%s%s --case '%s' --seed 0x%016llx", r->spec.text,
                 r->spec.options ? " --option " : "", r->spec.options ? r->spec.options : "", c->id, (unsigned long long)r->seed);
        json_object_set_new(o, "repro", json_string(repro));
        if (res->judged && res->judge.worst_count)
            json_object_set_new(o, "worst", worst_json(res));
        if (res->fingerprint[0])
            json_object_set_new(o, "fingerprint", json_string(res->fingerprint));
        if (res->log_tail[0]) {
            json_t *tail = json_string(res->log_tail); /* NULL when it is no UTF-8 */
            json_object_set_new(o, "log", tail ? tail : json_string("(bytes that are no text)"));
        }
        if (res->culprit >= 0) {
            json_t *u = json_pack("{s:i, s:s, s:s}", "op", (int)res->culprit, "tap", res->culprit_tap, "kind", res->culprit_kind);
            real(u, "ratio", res->culprit_ratio);
            json_object_set_new(o, "culprit", u);
        }
        json_t *files = write_pictures(r, c, res);
        if (files && json_object_size(files))
            json_object_set_new(o, "files", files);
        else
            json_decref(files);
    }
    line(r, o);
}

void vc_log_end(vc_run *r, int code, double seconds)
{
    json_t *counts = json_object();
    for (int k = 0; k < VC_STATUS_COUNT; k++)
        if (r->counts[k])
            json_object_set_new(counts, vc_status_name((vc_status)k), json_integer(r->counts[k]));
    json_t *o = json_pack("{s:s, s:o, s:i, s:f}", "event", "end", "counts", counts, "exit", code, "seconds", seconds);
    if (r->d1_tried)
        json_object_set_new(o, "D1", json_boolean(r->deterministic));
    if (r->d2_tried)
        json_object_set_new(o, "D2", json_boolean(r->order_free));
    line(r, o);
}
