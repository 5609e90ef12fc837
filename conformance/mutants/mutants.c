/* libvaebackend_mutants.so: --option variant=NAME. SPDX-License-Identifier: MIT */
#include "mutants/mutants.h"

#include <stdlib.h>

__attribute__((visibility("default"))) int32_t vp_backend_get(const vp_host *host, vp_backend *out)
{
    static ref_variant all[128] = {{.name = "none"}};
    const mutant *const list[] = {vm_ops, vm_tiles, vm_process, vm_honest};
    const int32_t count[] = {vm_ops_count, vm_tiles_count, vm_process_count, vm_honest_count};
    int32_t n = 1;
    for (int k = 0; k < 4; k++)
        for (int32_t i = 0; i < count[k]; i++)
            all[n++] = list[k][i].variant;
    return ref_backend_get(host, out, all, n);
}
