/* Building a program: the sticky builder of vaeref/program.h.
 *
 * A call copies what it is given into memory the program owns and appends one
 * operation or weight. Only what must hold for that is checked here; whether
 * the whole makes sense is decided once, in validate.c. The first failure is
 * kept and every later call does nothing, so a model file can be written as a
 * straight list of calls with one check at its end.
 *
 * SPDX-License-Identifier: MIT */
#include "program/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct vr_prog_block {
    struct vr_prog_block *next;
    max_align_t data[];
};

/* Keeps the failure, the first: open_for_building lets no call come here after
 * it. Always -1, so builders can return it. */
VR_PRINTF(3, 4) static int32_t stick(vr_program *p, vr_status s, const char *fmt, ...)
{
    vr_error *f = &p->memory->failure;
    char text[sizeof f->text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    vr_fail(f, s, "%s", text);
    return -1;
}

static int32_t stick_nomem(vr_program *p)
{
    return stick(p, VR_E_NOMEM, "program '%s': no memory for operation %d", p->family,
                 (int)p->op_count);
}

/* Ready for another call: exists, has not failed, is not finished. */
static bool open_for_building(vr_program *p)
{
    if (!p || p->memory->failure.status != VR_OK)
        return false;
    if (p->memory->finished)
        stick(p, VR_E_ARGUMENT, "program '%s' is finished and cannot be added to", p->family);
    return !p->memory->finished;
}

static void *own(vr_program *p, const void *src, size_t bytes)
{
    struct vr_prog_block *b = malloc(sizeof *b + bytes);
    if (!b)
        return NULL;
    b->next = p->memory->blocks;
    p->memory->blocks = b;
    memcpy(b->data, src, bytes);
    return b->data;
}

static const char *own_text(vr_program *p, const char *s)
{
    return own(p, s, strlen(s) + 1);
}

/* Room for one more element of a list; the list itself is the program's. */
static bool grow(void **list, int32_t count, int32_t *capacity, size_t size)
{
    if (count < *capacity)
        return true;
    int32_t n = *capacity ? *capacity * 2 : 32;
    void *more = realloc(*list, (size_t)n * size);
    if (!more)
        return false;
    *list = more;
    *capacity = n;
    return true;
}

static int32_t push(vr_program *p, const vr_op *op)
{
    if (!op->tap || !*op->tap)
        return stick(p, VR_E_ARGUMENT, "operation %d (%s) has no tap id", (int)p->op_count,
                     vr_op_name(op->kind));
    int32_t other = vr_program_find_tap(p, op->tap);
    if (other >= 0)
        return stick(p, VR_E_ARGUMENT,
                     "%s '%s': operation %d (%s) has the same tap id; ids must differ",
                     vr_op_name(op->kind), op->tap, (int)other, vr_op_name(p->op[other].kind));
    for (int32_t j = 0; j < vr_prog_inputs(op->kind); j++)
        if (op->in[j] < 0 || op->in[j] >= p->op_count)
            return stick(p, VR_E_ARGUMENT,
                         "%s '%s': input %d is value %d, wanted 0..%d, made earlier",
                         vr_op_name(op->kind), op->tap, (int)j, (int)op->in[j],
                         (int)p->op_count - 1);
    for (int32_t j = 0; j < 2; j++)
        if (op->weight[j] < -1 || op->weight[j] >= p->weight_count)
            return stick(p, VR_E_ARGUMENT,
                         "%s '%s': weight number %d, but the program has %d weights",
                         vr_op_name(op->kind), op->tap, (int)op->weight[j], (int)p->weight_count);
    void *list = p->op;
    bool room = grow(&list, p->op_count, &p->memory->op_capacity, sizeof *p->op);
    p->op = list;
    const char *tap = room ? own_text(p, op->tap) : NULL;
    if (!tap)
        return stick_nomem(p);
    p->op[p->op_count] = *op;
    p->op[p->op_count].tap = tap;
    return p->op_count++;
}

/* An operation on x that keeps x's channels. Channels of a value that does not
 * exist are 0; push refuses the operation anyway. */
static vr_op op_on(const vr_program *p, vr_op_kind kind, const char *tap, int32_t x)
{
    vr_op op = {.kind = kind, .tap = tap, .in = {x, -1, -1}, .weight = {-1, -1}};
    if (x >= 0 && x < p->op_count)
        op.channels = p->op[x].channels;
    return op;
}

vr_program *vr_program_new(const char *family, int64_t channels)
{
    vr_program *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->memory = calloc(1, sizeof *p->memory);
    if (!p->memory) {
        free(p);
        return NULL;
    }
    p->output = -1;
    snprintf(p->family, sizeof p->family, "%s", family ? family : "");
    if (channels < 1 || channels > VR_PROG_MAX_ELEMENTS) {
        stick(p, VR_E_ARGUMENT, "program '%s': a latent of %lld channels, wanted at least 1",
              p->family, (long long)channels);
        return p;
    }
    vr_op op = op_on(p, VR_OP_INPUT, "latent", -1);
    op.channels = channels;
    push(p, &op);
    return p;
}

void vr_program_free(vr_program *p)
{
    if (!p)
        return;
    for (struct vr_prog_block *b = p->memory->blocks; b;) {
        struct vr_prog_block *next = b->next;
        free(b);
        b = next;
    }
    free(p->memory);
    free(p->op);
    free(p->weight);
    free(p);
}

int32_t vr_program_weight(vr_program *p, const char *name, const char *source_name,
                          vr_dtype dtype, int32_t rank, const int64_t *dim, const void *data)
{
    if (!open_for_building(p))
        return -1;
    if (!name || !*name)
        return stick(p, VR_E_ARGUMENT, "weight %d has no name", (int)p->weight_count);
    vr_weight w = {.dtype = dtype, .rank = rank, .count = 1, .data = data};
    if (!vr_dtype_is_float(dtype))
        return stick(p, VR_E_DTYPE, "weight '%s' is %s, wanted a float type", name,
                     vr_dtype_name(dtype));
    if (rank < 1 || rank > 5)
        return stick(p, VR_E_SHAPE, "weight '%s' has rank %d, wanted 1..5", name, (int)rank);
    for (int32_t i = 0; i < rank; i++) {
        if (dim[i] < 1 || dim[i] > VR_PROG_MAX_ELEMENTS / w.count)
            return stick(p, VR_E_SHAPE, "weight '%s': dimension %d is %lld, wanted at least 1 and "
                         "at most 2^46 elements in all", name, (int)i, (long long)dim[i]);
        w.dim[i] = dim[i];
        w.count *= dim[i];
    }
    if (!data)
        return stick(p, VR_E_ARGUMENT, "weight '%s' has no data", name);
    void *list = p->weight;
    bool room = grow(&list, p->weight_count, &p->memory->weight_capacity, sizeof *p->weight);
    p->weight = list;
    w.name = room ? own_text(p, name) : NULL;
    w.source_name = room ? own_text(p, source_name ? source_name : name) : NULL;
    if (!w.name || !w.source_name)
        return stick_nomem(p);
    p->weight[p->weight_count] = w;
    return p->weight_count++;
}

int32_t vr_program_conv2d(vr_program *p, const char *tap, int32_t x, int32_t weight, int32_t bias,
                          int64_t pad)
{
    return vr_program_conv2d_pads(p, tap, x, weight, bias, pad, pad, pad, pad);
}

int32_t vr_program_conv2d_pads(vr_program *p, const char *tap, int32_t x, int32_t weight,
                               int32_t bias, int64_t top, int64_t bottom, int64_t left,
                               int64_t right)
{
    if (!open_for_building(p))
        return -1;
    vr_op op = op_on(p, VR_OP_CONV2D, tap, x);
    op.weight[0] = weight;
    op.weight[1] = bias;
    op.p.conv2d.pad_top = top;
    op.p.conv2d.pad_bottom = bottom;
    op.p.conv2d.pad_left = left;
    op.p.conv2d.pad_right = right;
    if (weight >= 0 && weight < p->weight_count) {
        /* A weight of another rank is refused by validate.c. */
        const vr_weight *w = &p->weight[weight];
        op.channels = w->dim[0];
        op.p.conv2d.kh = w->dim[2];
        op.p.conv2d.kw = w->dim[3];
    }
    return push(p, &op);
}

int32_t vr_program_group_norm(vr_program *p, const char *tap, int32_t x, int32_t gamma,
                              int32_t beta, int64_t groups, double eps)
{
    if (!open_for_building(p))
        return -1;
    vr_op op = op_on(p, VR_OP_GROUP_NORM, tap, x);
    op.weight[0] = gamma;
    op.weight[1] = beta;
    op.p.group_norm.groups = groups;
    op.p.group_norm.eps = eps;
    return push(p, &op);
}

int32_t vr_program_unary(vr_program *p, const char *tap, vr_op_kind silu_or_relu, int32_t x)
{
    if (!open_for_building(p))
        return -1;
    if (silu_or_relu != VR_OP_SILU && silu_or_relu != VR_OP_RELU)
        return stick(p, VR_E_ARGUMENT, "'%s': %s is not a parameterless operation on one value, "
                     "wanted silu or relu", tap ? tap : "", vr_op_name(silu_or_relu));
    vr_op op = op_on(p, silu_or_relu, tap, x);
    return push(p, &op);
}

int32_t vr_program_tanh_clamp(vr_program *p, const char *tap, int32_t x, double limit)
{
    if (!open_for_building(p))
        return -1;
    vr_op op = op_on(p, VR_OP_TANH_CLAMP, tap, x);
    op.p.tanh_clamp.limit = limit;
    return push(p, &op);
}

int32_t vr_program_upsample(vr_program *p, const char *tap, int32_t x, int64_t ft, int64_t fh,
                            int64_t fw)
{
    if (!open_for_building(p))
        return -1;
    vr_op op = op_on(p, VR_OP_UPSAMPLE_NEAREST, tap, x);
    op.p.upsample.factor_t = ft;
    op.p.upsample.factor_h = fh;
    op.p.upsample.factor_w = fw;
    return push(p, &op);
}

int32_t vr_program_attention(vr_program *p, const char *tap, int32_t q, int32_t k, int32_t v,
                             double scale)
{
    if (!open_for_building(p))
        return -1;
    vr_op op = op_on(p, VR_OP_ATTENTION, tap, q);
    op.in[1] = k;
    op.in[2] = v;
    op.p.attention.scale = scale;
    return push(p, &op);
}

int32_t vr_program_add(vr_program *p, const char *tap, int32_t a, int32_t b)
{
    if (!open_for_building(p))
        return -1;
    vr_op op = op_on(p, VR_OP_ADD, tap, a);
    op.in[1] = b;
    return push(p, &op);
}

int32_t vr_program_scale_shift(vr_program *p, const char *tap, int32_t x, const double *scale,
                               const double *shift)
{
    if (!open_for_building(p))
        return -1;
    vr_op op = op_on(p, VR_OP_SCALE_SHIFT, tap, x);
    if (!scale || !shift)
        return stick(p, VR_E_ARGUMENT,
                     "scale_shift '%s' wants both a scale and a shift per channel",
                     tap ? tap : "");
    size_t bytes = (size_t)op.channels * sizeof(double);
    op.p.scale_shift.scale = own(p, scale, bytes);
    op.p.scale_shift.shift = own(p, shift, bytes);
    if (!op.p.scale_shift.scale || !op.p.scale_shift.shift)
        return stick_nomem(p);
    return push(p, &op);
}

int32_t vr_program_unpack(vr_program *p, const char *tap, int32_t x, int64_t fh, int64_t fw)
{
    if (!open_for_building(p))
        return -1;
    vr_op op = op_on(p, VR_OP_UNPACK, tap, x);
    op.p.unpack.fh = fh;
    op.p.unpack.fw = fw;
    /* A remainder, or a factor out of range, is refused by validate.c. */
    if (fh >= 1 && fw >= 1 && fh <= VR_PROG_MAX_FACTOR && fw <= VR_PROG_MAX_FACTOR)
        op.channels /= fh * fw;
    return push(p, &op);
}

int32_t vr_program_clamp(vr_program *p, const char *tap, int32_t x, double lo, double hi)
{
    if (!open_for_building(p))
        return -1;
    vr_op op = op_on(p, VR_OP_CLAMP, tap, x);
    op.p.clamp.lo = lo;
    op.p.clamp.hi = hi;
    return push(p, &op);
}

vr_status vr_program_finish(vr_program *p, int32_t output, double range_lo, double range_hi,
                            vr_error *err)
{
    if (!p)
        return vr_fail(err, VR_E_NOMEM, "no memory to begin a program");
    if (open_for_building(p)) {
        p->output = output;
        p->range_lo = range_lo;
        p->range_hi = range_hi;
        p->memory->finished = vr_prog_validate(p, &p->memory->failure) == VR_OK;
    }
    if (err)
        *err = p->memory->failure;
    return p->memory->failure.status;
}
