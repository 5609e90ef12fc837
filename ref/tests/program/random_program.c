/* Generator of random_program.h: one growing chain; a step may reach back to
 * any earlier value of the same geometry. The previous end of the chain is
 * always read, so every value is used.
 * SPDX-License-Identifier: MIT */
#include "random_program.h"

#include "topology.h"

#include <stdio.h>

enum { MAX_VALUES = 64 };

struct gen {
    vr_program *p;
    uint64_t state;
    int serial; /* for unique names */
    int64_t scale[2][MAX_VALUES], offset[2][MAX_VALUES];
    char name[32];
};

/* splitmix64 */
static int64_t draw(struct gen *g, int64_t n)
{
    uint64_t z = g->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int64_t)((z ^ (z >> 31)) >> 33) % n;
}

static const char *name(struct gen *g)
{
    snprintf(g->name, sizeof g->name, "v%d", g->serial++);
    return g->name;
}

static int32_t note(struct gen *g, int32_t from, int32_t made, const int64_t factor[2],
                    const int64_t grow[2])
{
    for (int a = 0; a < 2 && made >= 0; a++) {
        g->scale[a][made] = g->scale[a][from] * factor[a];
        g->offset[a][made] = g->offset[a][from] * factor[a] + grow[a];
    }
    return made;
}

static int32_t same(struct gen *g, int32_t from, int32_t made)
{
    return note(g, from, made, (const int64_t[2]){1, 1}, (const int64_t[2]){0, 0});
}

static int32_t conv(struct gen *g, int32_t x, int64_t co, bool keep_extent)
{
    int64_t k[2], before[2], after[2], grow[2];
    for (int a = 0; a < 2; a++) {
        k[a] = 1 + draw(g, 4);
        before[a] = draw(g, k[a]);
        after[a] = k[a] - 1 - before[a];
        if (!keep_extent) {
            before[a] = draw(g, 4);
            after[a] = draw(g, 4);
        }
        grow[a] = before[a] + after[a] - k[a] + 1;
    }
    int32_t w = topo_weight4(g->p, name(g), co, g->p->op[x].channels, k[0], k[1]);
    int32_t y = vr_program_conv2d_pads(g->p, name(g), x, w, -1, before[0], after[0], before[1],
                                       after[1]);
    return note(g, x, y, (const int64_t[2]){1, 1}, grow);
}

/* An earlier value (or x itself) that can be added to x. */
static int32_t alike(struct gen *g, int32_t x)
{
    int32_t found[MAX_VALUES], n = 0;
    for (int32_t v = 0; v <= x; v++)
        if (g->p->op[v].channels == g->p->op[x].channels &&
            g->scale[0][v] == g->scale[0][x] && g->scale[1][v] == g->scale[1][x] &&
            g->offset[0][v] == g->offset[0][x] && g->offset[1][v] == g->offset[1][x])
            found[n++] = v;
    return found[draw(g, n)];
}

static int32_t elementwise(struct gen *g, int32_t x)
{
    static const double ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    vr_program *p = g->p;
    switch (draw(g, 6)) {
    case 0: return same(g, x, vr_program_unary(p, name(g), VR_OP_SILU, x));
    case 1: return same(g, x, vr_program_unary(p, name(g), VR_OP_RELU, x));
    case 2: return same(g, x, vr_program_tanh_clamp(p, name(g), x, 3));
    case 3: return same(g, x, vr_program_scale_shift(p, name(g), x, ones, ones));
    case 4: return same(g, x, vr_program_clamp(p, name(g), x, 0, 1));
    default: return same(g, x, topo_norm(p, name(g), x, 1));
    }
}

static int32_t resize(struct gen *g, int32_t x)
{
    int64_t f[2] = {1 + draw(g, 3), 1 + draw(g, 3)};
    for (int a = 0; a < 2; a++)
        if (g->scale[a][x] * f[a] > 8)
            f[a] = 1;
    if (draw(g, 2)) {
        int32_t y = vr_program_upsample(g->p, name(g), x, 1, f[0], f[1]);
        return note(g, x, y, f, (const int64_t[2]){0, 0});
    }
    x = conv(g, x, f[0] * f[1] * (1 + draw(g, 3)), true);
    int32_t y = vr_program_unpack(g->p, name(g), x, f[0], f[1]);
    return note(g, x, y, f, (const int64_t[2]){0, 0});
}

/* Two branches from x, their operations interleaved, added at the end. */
static int32_t fork(struct gen *g, int32_t x)
{
    int32_t end[2] = {x, x};
    int steps = 1 + (int)draw(g, 4);
    while (steps--) {
        int b = (int)draw(g, 2);
        end[b] = draw(g, 2) ? conv(g, end[b], g->p->op[x].channels, true) : elementwise(g, end[b]);
    }
    return same(g, end[0], vr_program_add(g->p, name(g), end[0], end[1]));
}

static int32_t step(struct gen *g, int32_t x)
{
    switch (draw(g, 8)) {
    case 0: return conv(g, x, 1 + draw(g, 4), draw(g, 4) != 0);
    case 1: return resize(g, x);
    case 2: return same(g, x, vr_program_add(g->p, name(g), alike(g, x), x));
    case 3: return same(g, x, vr_program_add(g->p, name(g), x, alike(g, x)));
    case 4: {
        int32_t k = alike(g, x), v = alike(g, x);
        return same(g, x, vr_program_attention(g->p, name(g), x, k, v, 1));
    }
    case 5: return fork(g, x);
    default: return elementwise(g, x);
    }
}

vr_program *random_program(uint64_t seed, vr_error *err)
{
    struct gen g = {.state = seed};
    g.scale[0][0] = g.scale[1][0] = 1;
    g.p = vr_program_new("random", 1 + draw(&g, 4));
    int32_t x = elementwise(&g, 0); /* an output that is not the latent */
    for (int n = 2 + (int)draw(&g, 14); n > 0 && x < MAX_VALUES - 8; n--)
        x = step(&g, x);
    if (vr_program_finish(g.p, x, 0, 1, err) == VR_OK)
        return g.p;
    vr_program_free(g.p);
    return NULL;
}
