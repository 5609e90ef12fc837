/* libvaebackend_ref.so: the reference as a backend, proof that the boundary
 * carries everything. SPDX-License-Identifier: MIT */
#include "backends/ref_backend.h"

__attribute__((visibility("default"))) int32_t vp_backend_get(const vp_host *host, vp_backend *out)
{
    static const ref_variant plain[] = {{.name = "ref"}};
    return ref_backend_get(host, out, plain, 1);
}
