/* The table of tensors under canonical names. SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"

void vr_table_free(vr_table *t)
{
    free(t->entry);
    *t = (vr_table){.entry = NULL};
}

vr_status vr_table_add(vr_table *t, const char *name, const char *source, const vr_tensor *tensor,
                       const char *dtype_text, vr_error *err)
{
    if (t->count == t->room) {
        int64_t room = t->room ? 2 * t->room : 256;
        vr_entry *grown = realloc(t->entry, (size_t)room * sizeof *grown);
        if (!grown)
            return vr_fail(err, VR_E_NOMEM, "cannot allocate a table of %lld tensors", (long long)room);
        t->entry = grown;
        t->room = room;
    }
    vr_entry *e = &t->entry[t->count++];
    *e = (vr_entry){.source = source, .tensor = *tensor, .dtype_text = dtype_text};
    snprintf(e->name, sizeof e->name, "%s", name);
    return VR_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const vr_entry *)a)->name, ((const vr_entry *)b)->name);
}

void vr_table_sort(vr_table *t)
{
    if (t->count)
        qsort(t->entry, (size_t)t->count, sizeof *t->entry, by_name);
}

/* First entry whose name is not below `name`. */
static int64_t lower_bound(const vr_table *t, const char *name)
{
    int64_t lo = 0, hi = t->count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (strcmp(t->entry[mid].name, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

vr_entry *vr_table_find(const vr_table *t, const char *name)
{
    int64_t i = lower_bound(t, name);
    return i < t->count && strcmp(t->entry[i].name, name) == 0 ? &t->entry[i] : NULL;
}

vr_entry *vr_table_findf(const vr_table *t, const char *fmt, ...)
{
    char name[VR_NAME_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    return vr_table_find(t, name);
}

bool vr_table_has(const vr_table *t, const char *fmt, ...)
{
    char name[VR_NAME_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    int64_t i = lower_bound(t, name);
    return i < t->count && strncmp(t->entry[i].name, name, strlen(name)) == 0;
}

int32_t vr_table_indices(const vr_table *t, const char *fmt, ...)
{
    enum { MOST = 64 };
    char start[VR_NAME_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(start, sizeof start, fmt, ap);
    va_end(ap);
    const size_t n = strlen(start);
    int32_t count = 0;
    for (int64_t i = lower_bound(t, start); i < t->count; i++) {
        const char *name = t->entry[i].name;
        if (strncmp(name, start, n) != 0)
            break;
        char *end;
        long v = name[n] >= '0' && name[n] <= '9' ? strtol(name + n, &end, 10) : MOST;
        if (v < MOST && *end == '.' && v >= count)
            count = (int32_t)v + 1;
    }
    return count;
}

int64_t vr_dim_of(const vr_table *t, const char *name, int32_t d, int64_t otherwise)
{
    const vr_entry *e = vr_table_find(t, name);
    return e && d < e->tensor.rank ? e->tensor.dim[d] : otherwise;
}
