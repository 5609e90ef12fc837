/* The protocol between vaecheck and a child that holds a backend (clause A4).
 *
 * Frames on one socket: 4 bytes of length (little endian), one byte of kind ('Q'
 * request, 'A' answer, 'E' error), a JSON object of that length. Tensors lie in
 * files of a private folder that both map; frames name file, offset, type, extents
 * and strides. Children find the socket as descriptor VAEPROOF_FD and the folder
 * as VAEPROOF_DIR.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_WIRE_H
#define VAEPROOF_WIRE_H

#include <stdint.h>

#include <jansson.h>

#include "vaeproof/backend.h"
#include "vaeref/program.h"

enum { WIRE_LIMIT = 16 << 20 }; /* bytes of one body */

typedef enum wire_result { WIRE_OK, WIRE_CLOSED, WIRE_TIMEOUT, WIRE_GARBAGE, WIRE_IO } wire_result;

double wire_now(void); /* seconds, monotonic */
const char *wire_result_text(wire_result r);
/* Sends one frame; takes no reference of body. */
wire_result wire_send(int fd, char kind, const json_t *body);
/* Receives one frame within `seconds` (< 0: waits for ever). *body: a new reference. */
wire_result wire_receive(int fd, double seconds, char *kind, json_t **body);
/* The same from a buffer; what a fuzzer feeds. Bytes used, 0 when more are
 * needed, -1 when they are no frame. */
int64_t wire_parse(const uint8_t *data, uint64_t size, char *kind, json_t **body);

/* ---- programs and tensors as JSON ---------------------------------------- */

/* Ops with their parameters; weights as name, dtype, dims and an offset into one
 * file of all weights (64-byte aligned), whose bytes *weight_bytes counts. */
json_t *wire_program(const vr_program *p, uint64_t *weight_bytes);
/* Copies the weights to where wire_program's offsets say. */
void wire_copy_weights(const vr_program *p, void *to);

/* What a child makes of it; weights borrow the mapping `weights`. */
typedef struct wire_program_copy {
    vp_program program;
    vp_op *op;
    vp_weight *weight;
    json_t *source; /* names */
    double *table;
} wire_program_copy;
vr_status wire_program_read(json_t *json, void *weights, uint64_t weight_bytes, wire_program_copy *out, vr_error *err);
void wire_program_free(wire_program_copy *p);

json_t *wire_tensor(const char *file, uint64_t offset, const vp_tensor *t);
/* Everything but data; file and offset go to *file (borrowed) and *offset.
 * VR_E_FORMAT unless extents, strides and bytes agree. */
vr_status wire_tensor_read(json_t *json, vp_tensor *t, const char **file, uint64_t *offset, vr_error *err);

uint32_t wire_dtype(vr_dtype d);       /* VP_F32 of VR_F32; 0: none */
uint64_t wire_dtype_size(uint32_t d);  /* bytes; 0: unknown */
void wire_dense(vp_tensor *t);         /* strides and bytes from dims */

#endif
