/* Short, safe pieces of text for messages (used by every clause F).
 *
 * Paths and names come from files and may be hostile or very long; a message
 * has room for 600 bytes and must still say what was wrong at its end.
 * vr_fail removes control characters; here only lengths are cut.
 *
 * SPDX-License-Identifier: MIT */
#include "io/io_internal.h"

#include <stdio.h>
#include <string.h>

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

const char *vr_io_show_path(char *buf, const char *path)
{
    size_t n = strlen(path);
    if (n < VR_IO_SHOWN)
        return memcpy(buf, path, n + 1);
    const char *tail = path + n - (VR_IO_SHOWN - 4);
    while (is_continuation(*tail))
        tail++;
    snprintf(buf, VR_IO_SHOWN, "...%s", tail);
    return buf;
}

const char *vr_io_show_name(char *buf, const char *name)
{
    size_t n = strlen(name);
    if (n < VR_IO_SHOWN)
        return memcpy(buf, name, n + 1);
    n = VR_IO_SHOWN - 4;
    while (n > 0 && is_continuation(name[n]))
        n--;
    memcpy(buf, name, n);
    memcpy(buf + n, "...", 4);
    return buf;
}

bool vr_io_is_utf8(const char *text)
{
    const uint8_t *p = (const uint8_t *)text;
    while (*p) {
        int more = *p < 0x80 ? 0 : *p < 0xe0 ? 1 : *p < 0xf0 ? 2 : 3; /* bytes that follow */
        if ((*p >= 0x80 && *p < 0xc2) || *p > 0xf4)
            return false;
        /* Second byte: no overlong form, no surrogate, nothing above U+10FFFF. */
        uint8_t low = *p == 0xe0 ? 0xa0 : *p == 0xf0 ? 0x90 : 0x80;
        uint8_t high = *p == 0xed ? 0x9f : *p == 0xf4 ? 0x8f : 0xbf;
        for (p++; more > 0; more--, p++) {
            if (*p < low || *p > high)
                return false;
            low = 0x80;
            high = 0xbf;
        }
    }
    return true;
}

const char *vr_io_errno_text(char *buf, size_t size, int number)
{
    return strerror_r(number, buf, size); /* the GNU variant: returns the text */
}

typedef struct kind {
    const char *start;
    size_t size;
    const char *note;
} kind;

static const kind kinds[] = {
    {"version https://git-lfs", 23,
     "; it looks like a Git LFS pointer (fetch the real file with 'git lfs pull')"},
    {"<!DOCTYPE", 9, "; it looks like an HTML page (a failed download?)"},
    {"<!doctype", 9, "; it looks like an HTML page (a failed download?)"},
    {"<html", 5, "; it looks like an HTML page (a failed download?)"},
    {"<HTML", 5, "; it looks like an HTML page (a failed download?)"},
    {"PK\x03\x04", 4,
     "; it looks like a zip archive (a PyTorch .pt or .ckpt checkpoint, or .npz)"},
    {"GGUF", 4, "; it looks like a GGUF model"},
    {"\x80\x02", 2, "; it looks like a Python pickle (an old PyTorch checkpoint)"},
    {"\x80\x03", 2, "; it looks like a Python pickle (an old PyTorch checkpoint)"},
    {"\x80\x04", 2, "; it looks like a Python pickle (an old PyTorch checkpoint)"},
    {"\x80\x05", 2, "; it looks like a Python pickle (an old PyTorch checkpoint)"},
    {"\x1f\x8b", 2, "; it looks like a gzip archive"},
    {"\x93NUMPY", 6, "; it looks like a NumPy .npy array"},
    {"\x89PNG", 4, "; it looks like a PNG picture"},
    {"\xff\xd8\xff", 3, "; it looks like a JPEG picture"},
    {"{", 1, "; it looks like JSON text (a sharded model is opened by its .index.json)"},
    {"[", 1, "; it looks like JSON text"},
};

static bool is_text(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size && i < 64; i++)
        if ((data[i] < 0x20 && data[i] != '\t' && data[i] != '\n' && data[i] != '\r') ||
            data[i] == 0x7f)
            return false;
    return size > 0;
}

const char *vr_io_kind_note(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (size >= kinds[i].size && memcmp(data, kinds[i].start, kinds[i].size) == 0)
            return kinds[i].note;
    /* The second field of a safetensors file is its JSON header. */
    if (size > 9 && data[8] == '{' && data[6] == 0 && data[7] == 0)
        return "; it looks like a safetensors file";
    if (is_text(data, size))
        return "; it looks like plain text";
    return "";
}
