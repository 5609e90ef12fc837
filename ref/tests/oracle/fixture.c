/* Opening and checking the fixtures of this folder.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *oracle_path(char *buf, size_t size, const char *name)
{
    const char *root = getenv("VAEPROOF_SOURCE");
    snprintf(buf, size, "%s/ref/tests/oracle/%s", root ? root : ".", name);
    return buf;
}

double oracle_real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

int64_t oracle_integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

const char *oracle_string(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void finish_hex(vr_sha256 *s, char hex[65])
{
    uint8_t digest[32];
    vr_sha256_final(s, digest);
    vr_sha256_hex(digest, hex);
}

void oracle_sha256(const void *data, size_t n, char hex[65])
{
    vr_sha256 s;
    vr_sha256_init(&s);
    vr_sha256_update(&s, data, n);
    finish_hex(&s, hex);
}

static vr_status file_sha256(const char *path, char hex[65], vr_error *err)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return vr_fail(err, VR_E_NOTFOUND, "cannot open %s", path);
    vr_sha256 s;
    vr_sha256_init(&s);
    char block[65536];
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        vr_sha256_update(&s, block, n);
    bool bad = ferror(f) != 0;
    fclose(f);
    finish_hex(&s, hex);
    return bad ? vr_fail(err, VR_E_IO, "cannot read %s", path) : VR_OK;
}

vr_status oracle_open(const char *data, const char *list, oracle_fixture *out, vr_error *err)
{
    char path[4096], hex[65];
    json_error_t where;
    memset(out, 0, sizeof *out);
    oracle_path(path, sizeof path, list);
    out->root = json_load_file(path, 0, &where);
    if (!out->root)
        return vr_fail(err, VR_E_FORMAT, "%s line %d: %s", path, where.line, where.text);
    out->rows = json_object_get(out->root, "rows");
    out->count = json_array_size(out->rows);
    const char *want = oracle_string(json_object_get(out->root, "provenance"), "sha256");
    oracle_path(path, sizeof path, data);
    vr_status s = file_sha256(path, hex, err);
    if (s == VR_OK && (!out->count || !want || strcmp(want, hex) != 0))
        s = vr_fail(err, VR_E_FORMAT, "%s has SHA-256 %s, %s describes %s", path, hex, list,
                    want ? want : "nothing");
    if (s == VR_OK)
        s = vr_safetensors_open(path, &out->file, err);
    if (s != VR_OK)
        oracle_close(out);
    return s;
}

void oracle_close(oracle_fixture *f)
{
    json_decref(f->root);
    vr_safetensors_close(f->file);
    memset(f, 0, sizeof *f);
}

vr_status oracle_tensor(const oracle_fixture *f, const char *name, vr_dtype dtype, vr_tensor *out,
                        vr_error *err)
{
    const vr_named_tensor *t = vr_safetensors_find(f->file, name);
    int64_t n;
    if (!t)
        return vr_fail(err, VR_E_NOTFOUND, "the fixture has no tensor %s", name);
    vr_status s = vr_tensor_count(&t->tensor, &n, err);
    if (s == VR_OK)
        s = vr_tensor_new(out, dtype, t->tensor.rank, t->tensor.dim, err);
    if (s == VR_OK)
        s = vr_convert(dtype, out->data, t->tensor.dtype, t->tensor.data, (uint64_t)n, err);
    return s;
}
