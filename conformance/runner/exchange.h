/* Memory that runner and child share: one file for each tensor, with guard bytes
 * around it and poison in it (clause A5).
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_EXCHANGE_H
#define VAEPROOF_EXCHANGE_H

#include "wire/wire.h"

typedef struct vc_slot {
    char name[32];    /* file in the folder */
    vp_tensor tensor; /* data: this process's mapping */
    void *map;
    uint64_t map_bytes, offset; /* of data in the file */
    uint8_t poison;   /* pattern outputs were filled with */
} vc_slot;

enum { VC_GUARD = 4096 };

/* A file `name` for a tensor of that type and those five extents. pad: extra
 * elements at the end of every row (strided when > 0). The whole file is filled
 * with guard bytes. VR_E_IO, VR_E_RANGE. */
vr_status vc_slot_make(vc_slot *s, const char *dir, const char *name, uint32_t dtype, const int64_t dim[5], int64_t pad,
                       vr_error *err);
/* A file of plain bytes, no guards: weights. */
vr_status vc_slot_bytes(vc_slot *s, const char *dir, const char *name, uint64_t bytes, vr_error *err);
void vc_slot_free(vc_slot *s); /* unmaps; the file stays until the folder goes */

/* Dense elements in, out. */
void vc_slot_put(vc_slot *s, const void *dense);
void vc_slot_get(const vc_slot *s, void *dense);
/* Fills the elements with a NaN pattern made of `poison` (1 or 2). */
void vc_slot_poison(vc_slot *s, uint8_t poison);
/* Elements that still hold their poison. */
int64_t vc_slot_untouched(const vc_slot *s);
/* Bytes written where none may be (guards, gaps between rows); where the first
 * lies, relative to the first element, in *first. */
int64_t vc_slot_trespass(const vc_slot *s, int64_t *first);
json_t *vc_slot_json(const vc_slot *s);

#endif
