/* ref/io/io_internal.h: what the format files share and callers never see.
 *
 * A blob is the whole content of one input file. Format parsers work on blobs,
 * not on paths, so a test can hand them an exact-size heap copy in which one
 * byte too far is caught. Parsers compare every size with blob.size before
 * they use it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_IO_INTERNAL_H
#define VAEREF_IO_INTERNAL_H

#include "vaeref/io.h"

#include <jansson.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the file formats are little endian and copied as bytes: a little-endian host is needed"
#endif

/* ---- input (blob.c) ------------------------------------------------------ */

typedef struct vr_io_blob {
    const uint8_t *data; /* NULL when size is 0 */
    size_t size;
    bool mapped; /* a mapping, otherwise heap */
} vr_io_blob;

/* Regular files are mapped read-only; pipes and devices are read to memory. */
vr_status vr_io_blob_open(const char *path, vr_io_blob *out, vr_error *err);
void vr_io_blob_close(vr_io_blob *b); /* clears the struct */

/* ---- text for messages (text.c) ------------------------------------------ */

#define VR_IO_SHOWN 192

/* Shortens for a message: a path keeps its end, a name its start. */
const char *vr_io_show_path(char *buf, const char *path);
const char *vr_io_show_name(char *buf, const char *name);
#define SHOW_PATH(p) vr_io_show_path((char[VR_IO_SHOWN]){0}, (p))
#define SHOW_NAME(n) vr_io_show_name((char[VR_IO_SHOWN]){0}, (n))

/* Whether text is well-formed UTF-8 (RFC 3629). */
bool vr_io_is_utf8(const char *text);

/* Text of an errno value; thread-safe. */
const char *vr_io_errno_text(char *buf, size_t size, int number);
#define ERRNO_TEXT(e) vr_io_errno_text((char[96]){0}, 96, (e))

/* "" or "; it looks like a ..." from the first bytes of a file that turned out
 * not to be what was asked for. */
const char *vr_io_kind_note(const uint8_t *data, size_t size);

/* ---- JSON (json.c) ------------------------------------------------------- */

/* Strict: duplicate keys, NUL and invalid UTF-8 are refused; the root must be
 * an object. base: offset of the text in the file; lines: say FILE:LINE:COLUMN
 * (a text file) rather than a byte offset (a header). */
vr_status vr_io_json_parse(const char *path, const uint8_t *text, size_t size, uint64_t base,
                           bool lines, json_t **root, vr_error *err);
/* Line (from 1) on which a key of the outermost object stands; 0 if none. */
int vr_io_json_line(const uint8_t *text, size_t size, const char *key);
/* Short name of a JSON type: "a string", "an integer", ... */
const char *vr_io_json_kind(const json_t *v);

/* ---- safetensors (safetensors_shard.c) ----------------------------------- */

typedef struct vr_io_shard {
    char *path;
    vr_io_blob blob;
    json_t *header;          /* owns the strings the tensors point to */
    vr_named_tensor *tensor; /* [count], ascending by name */
    int64_t count;
} vr_io_shard;

struct vr_safetensors {
    vr_io_shard *shard;
    int64_t shard_count;
    vr_named_tensor *tensor; /* [count], ascending by name, from all shards */
    int64_t count;
};

/* Validates one file. Takes blob over whether it succeeds or not. */
vr_status vr_io_shard_parse(const char *path, vr_io_blob blob, vr_io_shard *out, vr_error *err);
void vr_io_shard_close(vr_io_shard *s);
int vr_io_by_name(const void *a, const void *b); /* order of two vr_named_tensor */
const vr_named_tensor *vr_io_shard_find(const vr_io_shard *s, const char *name);

/* Fills f->shard from an index file (safetensors_index.c). */
vr_status vr_io_index_parse(const char *path, const vr_io_blob *b, vr_safetensors *f,
                            vr_error *err);

/* As vr_safetensors_open, of a blob it takes over (safetensors.c). */
vr_status vr_io_safetensors_from(const char *path, vr_io_blob blob, vr_safetensors **out,
                                 vr_error *err);

/* ---- the other formats, from memory -------------------------------------- */

vr_status vr_io_npy_parse(const char *path, const vr_io_blob *b, vr_tensor *out, vr_error *err);
bool vr_io_is_npy(const vr_io_blob *b);
vr_status vr_io_png_decode(const char *path, const vr_io_blob *b, vr_image *out, vr_error *err);
vr_status vr_io_config_parse(const char *path, const vr_io_blob *b, vr_vae_config *out,
                             vr_error *err);

/* What png_chunks.c proves about a file before anything is allocated. */
typedef struct vr_io_png_head {
    uint32_t width, height;
    uint8_t bits, colour, interlace; /* as in IHDR */
    bool has_trns;
    uint64_t idat_bytes; /* compressed bytes in all IDAT chunks */
} vr_io_png_head;

vr_status vr_io_png_scan(const char *path, const vr_io_blob *b, vr_io_png_head *out,
                         vr_error *err);

#endif
