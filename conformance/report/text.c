/* Text that grows, and files written from it. SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vaeref/io.h"

static bool more(vc_text *t, size_t n)
{
    if (t->size + n + 1 > t->room) {
        const size_t room = (t->size + n + 1) * 2;
        char *grown = t->failed ? NULL : realloc(t->at, room);
        if (!grown) {
            t->failed = true;
            return false;
        }
        t->at = grown;
        t->room = room;
    }
    return !t->failed;
}

void vc_text_add(vc_text *t, const char *fmt, ...)
{
    va_list a, again;
    va_start(a, fmt);
    va_copy(again, a);
    const int n = vsnprintf(NULL, 0, fmt, a);
    if (n >= 0 && more(t, (size_t)n)) {
        vsnprintf(t->at + t->size, (size_t)n + 1, fmt, again);
        t->size += (size_t)n;
    }
    va_end(again);
    va_end(a);
}

void vc_text_escaped(vc_text *t, const char *s)
{
    for (; s && *s; s++)
        switch (*s) {
        case '&':
            vc_text_add(t, "&amp;");
            break;
        case '<':
            vc_text_add(t, "&lt;");
            break;
        case '>':
            vc_text_add(t, "&gt;");
            break;
        case '"':
            vc_text_add(t, "&quot;");
            break;
        default:
            vc_text_add(t, "%c", (unsigned char)*s < 32 && *s != '\n' && *s != '\t' ? ' ' : *s);
        }
}

vr_status vc_text_save(vc_text *t, const char *path, vr_error *err)
{
    vr_file_writer *w = NULL;
    vr_status s = t->failed ? vr_fail(err, VR_E_NOMEM, "no memory for %s", path) : vr_file_create(path, &w, err);
    if (s == VR_OK)
        s = vr_file_write(w, t->at, t->size, err);
    if (s == VR_OK)
        s = vr_file_commit(w, err);
    else
        vr_file_abandon(w);
    free(t->at);
    *t = (vc_text){.at = NULL};
    return s;
}
