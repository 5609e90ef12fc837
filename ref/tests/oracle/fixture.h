/* A fixture of this folder: tensors and the list that describes them, bound
 * together by the data file's SHA-256 in the list's provenance.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_TESTS_ORACLE_FIXTURE_H
#define VAEREF_TESTS_ORACLE_FIXTURE_H

#include <jansson.h>

#include "vaeref/core.h"
#include "vaeref/io.h"

typedef struct oracle_fixture {
    json_t *root;
    const json_t *rows;   /* array, owned by root */
    vr_safetensors *file;
    size_t count;         /* rows, at least 1 */
} oracle_fixture;

/* Path of a file beside this one, into buf. Returns buf. */
const char *oracle_path(char *buf, size_t size, const char *name);
/* Refuses data that is not what the list says, and an empty list. */
vr_status oracle_open(const char *data, const char *list, oracle_fixture *out, vr_error *err);
void oracle_close(oracle_fixture *f);
/* Tensor `name` as an aligned copy in `dtype`; VR_E_NOTFOUND when absent. */
vr_status oracle_tensor(const oracle_fixture *f, const char *name, vr_dtype dtype, vr_tensor *out,
                        vr_error *err);

double oracle_real(const json_t *object, const char *key);
int64_t oracle_integer(const json_t *object, const char *key);
const char *oracle_string(const json_t *object, const char *key); /* NULL when absent or null */
/* Hex SHA-256 of n bytes. */
void oracle_sha256(const void *data, size_t n, char hex[65]);

#endif
