/* Status texts and the one-line error record (vaeref/core.h).
 * SPDX-License-Identifier: MIT */
#include "vaeref/core.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *vr_status_text(vr_status s)
{
    switch (s) {
#define VR_X(name, code, text) \
    case name:                 \
        return text;
        VR_STATUS_MAP(VR_X)
#undef VR_X
    }
    return "unknown status";
}

static void one_line(char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            *s = '?';
}

vr_status vr_fail(vr_error *err, vr_status s, const char *fmt, ...)
{
    if (!err)
        return s;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    one_line(err->text);
    err->status = s;
    return s;
}

vr_status vr_fail_prefix(vr_error *err, const char *fmt, ...)
{
    if (!err)
        return VR_E_INTERNAL;
    char old[sizeof err->text];
    memcpy(old, err->text, sizeof old);
    char prefix[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(prefix, sizeof prefix, fmt, ap);
    va_end(ap);
    /* A long prefix may cut the old text; the front is what names the place. */
    size_t n = strlen(prefix), room = sizeof err->text - 1;
    if (n > room)
        n = room;
    memcpy(err->text, prefix, n);
    size_t m = strlen(old);
    const char *sep = ": ";
    for (size_t i = 0; i < 2 && n < room; i++)
        err->text[n++] = sep[i];
    if (m > room - n)
        m = room - n;
    memcpy(err->text + n, old, m);
    err->text[n + m] = '\0';
    one_line(err->text);
    return err->status;
}
