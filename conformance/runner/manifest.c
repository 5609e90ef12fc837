/* Case files, read strictly. SPDX-License-Identifier: MIT */
#include "runner/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const vc_level_name[VC_LEVELS] = {"L0", "L1", "L2", "L3", "L4", "L5", "L6", "L7"};
const char *const vc_fill_name[VC_FILLS] = {"normal", "integer", "positive"};
const char *const vc_profile_name[VC_PROFILES] = {"core", "full", "embedded"};

static const struct {
    const char *name;
    vr_dtype d;
} contracts[] = {{"f32", VR_F32}, {"f16", VR_F16}, {"bf16", VR_BF16}, {"f64", VR_F64}};

const char *vc_contract_name(vr_dtype d)
{
    for (size_t i = 0; i < sizeof contracts / sizeof *contracts; i++)
        if (contracts[i].d == d)
            return contracts[i].name;
    return "?";
}

bool vc_contract_parse(const char *s, vr_dtype *out)
{
    for (size_t i = 0; i < sizeof contracts / sizeof *contracts; i++)
        if (strcmp(contracts[i].name, s) == 0) {
            *out = contracts[i].d;
            return true;
        }
    return false;
}

/* ---- one entry --------------------------------------------------------------------- */

/* Where we are, for messages: jansson keeps no lines of values, so the line is that
 * of the entry's id in the text. */
typedef struct place {
    const char *file, *text;
    size_t size;
    const char *id;
} place;

static int line_of(const place *p, const char *word)
{
    int line = 1;
    const size_t n = word ? strlen(word) : 0;
    for (size_t i = 0; n && i + n + 2 <= p->size; i++) {
        if (p->text[i] == '"' && strncmp(p->text + i + 1, word, n) == 0 && p->text[i + 1 + n] == '"')
            return line;
        line += p->text[i] == '\n';
    }
    return 1;
}

static vr_status wrong(const place *p, const char *key, const char *want, vr_error *err)
{
    return vr_fail(err, VR_E_FORMAT, "%s:%d: entry '%s', key '%s': want %s", p->file, line_of(p, p->id ? p->id : key),
                   p->id ? p->id : "?", key, want);
}

static vr_status text_of(const place *p, json_t *v, const char *key, char *out, size_t size, vr_error *err)
{
    const char *s = json_string_value(v);
    if (!s || !*s || strlen(s) >= size)
        return wrong(p, key, "a text that is not too long", err);
    snprintf(out, size, "%s", s);
    return VR_OK;
}

static vr_status one_of(const place *p, json_t *v, const char *key, const char *const *names, int count, int *out,
                        vr_error *err)
{
    char want[300] = "one of";
    for (int i = 0; i < count; i++) {
        if (json_is_string(v) && strcmp(json_string_value(v), names[i]) == 0) {
            *out = i;
            return VR_OK;
        }
        snprintf(want + strlen(want), sizeof want - strlen(want), " %s", names[i]);
    }
    return wrong(p, key, want, err);
}

static vr_status integers(const place *p, json_t *v, const char *key, int64_t least, int64_t most, size_t lo, size_t hi,
                          int64_t *out, size_t *count, vr_error *err)
{
    char want[120];
    snprintf(want, sizeof want, "%zu to %zu integers from %lld to %lld", lo, hi, (long long)least, (long long)most);
    if (!json_is_array(v) || json_array_size(v) < lo || json_array_size(v) > hi)
        return wrong(p, key, want, err);
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *x = json_array_get(v, i);
        if (!json_is_integer(x) || json_integer_value(x) < least || json_integer_value(x) > most)
            return wrong(p, key, want, err);
        out[i] = json_integer_value(x);
    }
    if (count)
        *count = json_array_size(v);
    return VR_OK;
}

static vr_status pairs(const place *p, json_t *v, const char *key, int64_t least, vc_pair *out, int32_t *count,
                       vr_error *err)
{
    if (!json_is_array(v) || json_array_size(v) < 1 || json_array_size(v) > VC_LIST)
        return wrong(p, key, "1 to 16 pairs of integers", err);
    vr_status s = VR_OK;
    for (size_t i = 0; s == VR_OK && i < json_array_size(v); i++) {
        int64_t ab[2];
        s = integers(p, json_array_get(v, i), key, least, 65536, 2, 2, ab, NULL, err);
        out[i] = (vc_pair){ab[0], ab[1]};
    }
    *count = (int32_t)json_array_size(v);
    return s;
}

static vr_status contract_list(const place *p, json_t *v, vc_entry *e, vr_error *err)
{
    if (!json_is_array(v) || json_array_size(v) < 1 || json_array_size(v) > 4)
        return wrong(p, "contracts", "1 to 4 of f32, f16, bf16, f64", err);
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *s = json_string_value(json_array_get(v, i));
        if (!s || !vc_contract_parse(s, &e->contract[i]))
            return wrong(p, "contracts", "1 to 4 of f32, f16, bf16, f64", err);
    }
    e->contracts = (int32_t)json_array_size(v);
    return VR_OK;
}

static vr_status fill_list(const place *p, json_t *v, vc_entry *e, vr_error *err)
{
    if (!json_is_array(v) || json_array_size(v) < 1 || json_array_size(v) > VC_FILLS)
        return wrong(p, "fills", "some of normal, integer, positive", err);
    vr_status s = VR_OK;
    for (size_t i = 0; s == VR_OK && i < json_array_size(v); i++) {
        int k = 0;
        s = one_of(p, json_array_get(v, i), "fills", vc_fill_name, VC_FILLS, &k, err);
        e->fill[i] = (vc_fill)k;
    }
    e->fill_count = (int32_t)json_array_size(v);
    return s;
}

static vr_status op_kind(const place *p, json_t *v, vc_entry *e, vr_error *err)
{
    for (int k = VR_OP_INPUT + 1; k < VR_OP_KIND_COUNT; k++)
        if (json_is_string(v) && strcmp(json_string_value(v), vr_op_name((vr_op_kind)k)) == 0) {
            e->op = (vr_op_kind)k;
            return VR_OK;
        }
    return wrong(p, "op", "the name of an operation, such as conv2d", err);
}

static vr_status tiling(const place *p, json_t *v, vc_entry *e, vr_error *err)
{
    int64_t two[2];
    const char *key;
    json_t *x;
    e->tile = (vr_tile_options){.overlap_h = -1, .overlap_w = -1};
    if (!json_is_object(v))
        return wrong(p, "tile", "an object with mode, tile, overlap", err);
    vr_status s = VR_OK;
    json_object_foreach(v, key, x) {
        if (strcmp(key, "mode") == 0) {
            if (!json_is_string(x) || !vr_tile_mode_parse(json_string_value(x), &e->tile.mode))
                s = wrong(p, "tile.mode", "the name of a tile mode", err);
        } else if (strcmp(key, "tile") == 0) {
            s = integers(p, x, "tile.tile", 1, 65536, 2, 2, two, NULL, err);
            e->tile.tile_w = two[0];
            e->tile.tile_h = two[1];
        } else if (strcmp(key, "overlap") == 0) {
            s = integers(p, x, "tile.overlap", 0, 65536, 2, 2, two, NULL, err);
            e->tile.overlap_w = two[0];
            e->tile.overlap_h = two[1];
        } else {
            s = wrong(p, key, "no such key in tile (mode, tile [w, h], overlap [w, h])", err);
        }
        if (s != VR_OK)
            return s;
    }
    return s;
}

static vr_status set_key(const place *p, const char *key, json_t *v, vc_entry *e, vr_error *err)
{
    size_t n = 0;
    int k = 0;
    vr_status s;
    if (!strcmp(key, "id"))
        return text_of(p, v, key, e->id, sizeof e->id, err);
    if (!strcmp(key, "spec"))
        return text_of(p, v, key, e->spec, sizeof e->spec, err);
    if (!strcmp(key, "rationale"))
        return json_is_string(v) ? VR_OK : wrong(p, key, "a sentence", err);
    if (!strcmp(key, "level")) {
        s = one_of(p, v, key, vc_level_name, VC_LEVELS, &k, err);
        e->level = (vc_level)k;
        return s;
    }
    if (!strcmp(key, "profile")) {
        s = one_of(p, v, key, vc_profile_name, VC_PROFILES, &k, err);
        e->profile = (vc_profile)k;
        return s;
    }
    if (!strcmp(key, "check"))
        return text_of(p, v, key, e->check, sizeof e->check, err);
    if (!strcmp(key, "op"))
        return op_kind(p, v, e, err);
    if (!strcmp(key, "kernel"))
        return integers(p, v, key, 1, 31, 2, 2, e->kernel, NULL, err);
    if (!strcmp(key, "pad"))
        return integers(p, v, key, 0, 30, 4, 4, e->pad, NULL, err);
    if (!strcmp(key, "factor"))
        return integers(p, v, key, 1, 16, 3, 3, e->factor, NULL, err);
    if (!strcmp(key, "batch")) {
        s = integers(p, v, key, 1, 64, 1, VC_LIST, e->batch, &n, err);
        e->batch_count = (int32_t)n;
        return s;
    }
    if (!strcmp(key, "bias")) {
        e->bias = json_is_true(v);
        return json_is_boolean(v) ? VR_OK : wrong(p, key, "true or false", err);
    }
    if (!strcmp(key, "groups")) {
        e->groups = json_integer_value(v);
        return e->groups > 0 ? VR_OK : wrong(p, key, "a positive integer", err);
    }
    if (!strcmp(key, "real")) {
        if (!json_is_array(v) || json_array_size(v) < 1 || json_array_size(v) > 2)
            return wrong(p, key, "1 or 2 numbers", err);
        json_array_foreach(v, n, v)
            e->real[n] = json_number_value(v);
        return VR_OK;
    }
    if (!strcmp(key, "model"))
        return text_of(p, v, key, e->model, sizeof e->model, err);
    if (!strcmp(key, "from"))
        return text_of(p, v, key, e->from, sizeof e->from, err);
    if (!strcmp(key, "to"))
        return text_of(p, v, key, e->to, sizeof e->to, err);
    if (!strcmp(key, "tile"))
        return tiling(p, v, e, err);
    if (!strcmp(key, "contracts"))
        return contract_list(p, v, e, err);
    if (!strcmp(key, "fills"))
        return fill_list(p, v, e, err);
    if (!strcmp(key, "channels"))
        return pairs(p, v, key, 0, e->channels, &e->channel_count, err);
    if (!strcmp(key, "sizes"))
        return pairs(p, v, key, 1, e->size, &e->size_count, err);
    return wrong(p, key, "no such key here", err);
}

static vr_status complete(const place *p, vc_entry *e, vr_error *err)
{
    if (!e->id[0] || !e->spec[0])
        return wrong(p, e->id[0] ? "spec" : "id", "every entry to have an id, a level and the clause it enforces", err);
    const bool coded = e->check[0] != '\0', op = e->op != VR_OP_KIND_COUNT, model = e->model[0] != '\0';
    if ((e->level == VC_L1) != op)
        return wrong(p, "op", "it on level L1 and nowhere else", err);
    if ((e->level == VC_L0 || e->level == VC_L7) != coded)
        return wrong(p, "check", "it on levels L0 and L7 and nowhere else", err);
    if ((e->level >= VC_L2 && e->level <= VC_L6) && !model)
        return wrong(p, "model", "a model on levels L2 to L6", err);
    if (e->level == VC_L2 && (!e->from[0] || !e->to[0]))
        return wrong(p, "from", "from and to, two taps, on level L2", err);
    if (e->level == VC_L4 && e->tile.mode == VR_TILE_NONE)
        return wrong(p, "tile", "a tile mode on level L4", err);
    if (op && !e->channel_count)
        return wrong(p, "channels", "pairs of channels", err);
    if ((op || model) && (!e->size_count || !e->contracts))
        return wrong(p, e->contracts ? "sizes" : "contracts", "sizes and contracts", err);
    if (!e->batch_count)
        e->batch[e->batch_count++] = 1;
    if (!e->fill_count)
        e->fill[e->fill_count++] = VC_NORMAL;
    return VR_OK;
}

static vr_status parse_entry(place *p, json_t *j, vc_suite *s, vr_error *err)
{
    vc_entry e = {.op = VR_OP_KIND_COUNT};
    const char *key;
    json_t *v;
    p->id = json_string_value(json_object_get(j, "id"));
    if (!json_is_object(j))
        return wrong(p, "cases", "objects", err);
    vr_status st = VR_OK;
    json_object_foreach(j, key, v) {
        st = set_key(p, key, v, &e, err);
        if (st != VR_OK)
            return st;
    }
    st = complete(p, &e, err);
    for (int64_t k = 0; st == VR_OK && k < s->entries; k++)
        if (strcmp(s->entry[k].id, e.id) == 0)
            st = wrong(p, "id", "an id that no other entry has", err);
    if (st != VR_OK)
        return st;
    vc_entry *grown = realloc(s->entry, (size_t)(s->entries + 1) * sizeof *grown);
    if (!grown)
        return vr_fail(err, VR_E_NOMEM, "no memory for cases");
    s->entry = grown;
    s->entry[s->entries++] = e;
    return VR_OK;
}

vr_status vc_suite_parse(const char *name, const char *text, size_t size, vc_suite *s, vr_error *err)
{
    json_error_t je;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &je), *j, *v;
    if (!root)
        return vr_fail(err, VR_E_FORMAT, "%s:%d: %s", name, je.line, je.text);
    place p = {name, text, size, NULL};
    const char *schema = json_string_value(json_object_get(root, "schema")), *key;
    json_t *cases = json_object_get(root, "cases");
    vr_status st = VR_OK;
    json_object_foreach(root, key, v)
        if (strcmp(key, "schema") != 0 && strcmp(key, "cases") != 0 && st == VR_OK)
            st = wrong(&p, key, "no such key; schema and cases", err);
    if (st == VR_OK && (!schema || strcmp(schema, "vaeproof-case/1") != 0))
        st = vr_fail(err, VR_E_FORMAT, "%s:%d: schema '%s'; want vaeproof-case/1", name, line_of(&p, "schema"),
                     schema ? schema : "missing");
    if (st == VR_OK && !json_is_array(cases))
        st = wrong(&p, "cases", "an array", err);
    size_t i;
    if (st == VR_OK)
        json_array_foreach(cases, i, j)
            if (st == VR_OK)
                st = parse_entry(&p, j, s, err);
    json_decref(root);
    return st;
}
