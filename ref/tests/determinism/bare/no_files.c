/* Stands where the file formats would be in a build without them: each
 * function a model opens files with says that there are none.
 *
 * SPDX-License-Identifier: MIT */
#include "vaeref/io.h"

static vr_status no_files(const char *path, vr_error *err)
{
    return vr_fail(err, VR_E_UNSUPPORTED, "%s: this build has no file formats, only seeded models",
                   path);
}

vr_status vr_safetensors_open(const char *path, vr_safetensors **out, vr_error *err)
{
    *out = NULL;
    return no_files(path, err);
}

void vr_safetensors_close(vr_safetensors *f)
{
    (void)f;
}

int64_t vr_safetensors_count(const vr_safetensors *f)
{
    (void)f;
    return 0;
}

const vr_named_tensor *vr_safetensors_at(const vr_safetensors *f, int64_t i)
{
    (void)f, (void)i;
    return NULL;
}

const vr_named_tensor *vr_safetensors_find(const vr_safetensors *f, const char *name)
{
    (void)f, (void)name;
    return NULL;
}

const char *vr_safetensors_metadata(const vr_safetensors *f, const char *key)
{
    (void)f, (void)key;
    return NULL;
}

vr_status vr_safetensors_write(const char *path, const char *const *names,
                               const vr_tensor *tensors, int64_t count, const vr_metadata *meta,
                               int64_t meta_count, vr_error *err)
{
    (void)names, (void)tensors, (void)count, (void)meta, (void)meta_count;
    return no_files(path, err);
}

vr_status vr_vae_config_read(const char *path, vr_vae_config *out, vr_error *err)
{
    (void)out;
    return no_files(path, err);
}

vr_status vr_tensor_load(const char *spec, vr_tensor *out, vr_error *err)
{
    (void)out;
    return no_files(spec, err);
}
