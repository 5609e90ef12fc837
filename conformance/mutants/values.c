/* What the mutants share. SPDX-License-Identifier: MIT */
#include "mutants/mutants.h"

#include <stdlib.h>
#include <string.h>

double vm_get(const vr_tensor *t, int64_t i)
{
    return t->dtype == VR_F64 ? ((const double *)t->data)[i] : (double)((const float *)t->data)[i];
}

void vm_set(vr_tensor *t, int64_t i, double v)
{
    if (t->dtype == VR_F64)
        ((double *)t->data)[i] = v;
    else
        ((float *)t->data)[i] = (float)v;
}

int64_t vm_count(const vr_tensor *t)
{
    int64_t n = 0;
    vr_tensor_count(t, &n, NULL);
    return n;
}

void vm_dims(const vr_tensor *t, int64_t dim[4])
{
    dim[0] = t->dim[0];
    dim[1] = t->dim[1];
    dim[2] = t->dim[t->rank - 2];
    dim[3] = t->dim[t->rank - 1];
}

double *vm_weight(const vr_program *p, const vr_op *op, int k)
{
    if (op->weight[k] < 0)
        return NULL;
    const vr_weight *w = &p->weight[op->weight[k]];
    double *d = malloc((size_t)w->count * sizeof *d);
    if (d)
        vr_convert(VR_F64, d, w->dtype, w->data, (uint64_t)w->count, NULL);
    return d;
}

vr_dtype vm_storage(const ref_job *j)
{
    return j->storage;
}

double vm_round(const ref_job *j, double v)
{
    return j->storage == VR_F64 ? v : (double)vr_round_to(j->storage, (float)v);
}
