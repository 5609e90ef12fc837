#!/usr/bin/python3
"""Makes ops.safetensors and ops_cases.json: every operation kind of
vaeref/program.h, computed by PyTorch in float64 on seeded float32 inputs.

Second witness of clause N4: nothing of this project's arithmetic is used here.
Each case carries two numbers from which the test derives its tolerances:
  terms      length of the longest sum behind one output
  magnitude  per output, the sum of the absolute values of its terms plus what a
             relative change of the inputs moves it by; stored as rms and max
so that a correct computation with unit round-off u is off by at most a small
multiple of sqrt(terms) * u * magnitude.

Run with Debian's python3-torch: /usr/bin/python3 make_ops.py
SPDX-License-Identifier: MIT
"""
import json
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

import tensorfile

SEED = 20240611
HERE = os.path.dirname(os.path.abspath(__file__))
torch.set_num_threads(1)
rng = np.random.Generator(np.random.PCG64(SEED))
cases, tensors = [], {}


def normal(*shape, mean=0.0, std=1.0):
    return (mean + std * rng.standard_normal(shape)).astype(np.float32)


def f64(array):
    return torch.from_numpy(np.asarray(array, np.float64))


def put(name, kind, x, y, terms, magnitude, params=None, w=None, b=None):
    """Records one case. x, w, b as given; y and magnitude torch float64."""
    assert name not in [c["name"] for c in cases], name
    magnitude = magnitude.abs()
    cases.append({
        "name": name, "kind": kind, "shape": list(x.shape), "params": params or {},
        "terms": int(terms),
        "magnitude_rms": float(magnitude.square().mean().sqrt()),
        "magnitude_max": float(magnitude.max()),
    })
    for key, value in (("x", x), ("w", w), ("b", b), ("y", y.numpy())):
        if value is not None:
            tensors[name + "." + key] = value


def conv(name, n, ci, co, h, w, kh, kw, pads, bias=True, x=None):
    """pads: top, bottom, left, right."""
    x = normal(n, ci, h, w) if x is None else x
    wt = normal(co, ci, kh, kw, std=(ci * kh * kw) ** -0.5)
    b = normal(co) if bias else None
    top, bottom, left, right = pads

    def run(x, wt, b):
        return F.conv2d(F.pad(x, (left, right, top, bottom)), wt, b)

    y = run(f64(x), f64(wt), None if b is None else f64(b))
    mag = run(f64(x).abs(), f64(wt).abs(), None if b is None else f64(b).abs())
    put("conv2d_" + name, "conv2d", x, y, ci * kh * kw + 1, mag,
        {"pad_top": top, "pad_bottom": bottom, "pad_left": left, "pad_right": right}, wt, b)


def group_norm(name, x, groups, eps=1e-6):
    c = x.shape[1]
    gamma, beta = normal(c, mean=1.0, std=0.3), normal(c, std=0.5)
    # Not F.group_norm: that one refuses groups of a single element.
    y = torch.group_norm(f64(x), groups, f64(gamma), f64(beta), eps)
    grouped = f64(x).reshape(x.shape[0], groups, -1)
    rstd = (grouped.var(2, unbiased=False, keepdim=True) + eps).rsqrt()
    scaled = (grouped.abs() * rstd).reshape(x.shape) * f64(gamma).abs()[None, :, None, None]
    put("group_norm_" + name, "group_norm", x, y, grouped.shape[2],
        scaled + f64(beta).abs()[None, :, None, None], {"groups": groups, "eps": eps}, gamma, beta)


def pointwise(name, kind, x, function, params=None, w=None, b=None):
    v = f64(x).requires_grad_(True)
    y = function(v)
    (slope,) = torch.autograd.grad(y.sum(), v)
    put(name, kind, x, y.detach(), 1, y.detach().abs() + (v.detach() * slope).abs(), params, w, b)


def attention(name, n, c, h, w, spread):
    """x holds q, k, v one after the other along channels; spread: std of the scores."""
    x = np.concatenate([normal(n, c, h, w, std=spread), normal(n, 2 * c, h, w)], 1)
    q, k, v = (f64(x[:, i * c : (i + 1) * c]).reshape(n, c, h * w) for i in range(3))
    scale = c ** -0.5
    p = torch.softmax(torch.einsum("nci,ncj->nij", q, k) * scale, 2)
    y = torch.einsum("nij,ncj->nci", p, v)
    # Roundings of the c products are independent, so they add in quadrature.
    moved = (torch.einsum("nci,ncj->nij", q.square(), k.square()).sqrt() * scale).amax(2)[:, None]
    mag = torch.einsum("nij,ncj->nci", p, v.abs()) * (1 + 2 * moved)
    put("attention_" + name, "attention", x, y.reshape(n, c, h, w), max(c, h * w),
        mag, {"scale": scale})


def conv_cases():
    same3 = (1, 1, 1, 1)
    conv("1x1_c1", 1, 1, 1, 3, 5, 1, 1, (0, 0, 0, 0))
    conv("1x1_c3_c17", 1, 3, 17, 4, 9, 1, 1, (0, 0, 0, 0), bias=False)
    conv("1x1_c33_c33", 1, 33, 33, 3, 11, 1, 1, (0, 0, 0, 0))
    conv("3x3_at_1x1", 1, 5, 5, 1, 1, 3, 3, same3)
    conv("3x3_at_1x7", 1, 3, 5, 1, 7, 3, 3, same3)
    conv("3x3_at_7x1", 1, 5, 3, 7, 1, 3, 3, same3)
    conv("3x3_c1_c1", 1, 1, 1, 9, 13, 3, 3, same3)
    conv("3x3_c3_c33_no_bias", 1, 3, 33, 5, 17, 3, 3, same3, bias=False)
    conv("3x3_c17_c33", 1, 17, 33, 7, 9, 3, 3, same3)
    conv("3x3_c33_c17", 1, 33, 17, 6, 19, 3, 3, same3)
    conv("3x3_c64_c4_wide", 1, 64, 4, 3, 37, 3, 3, same3)
    conv("3x3_batch3", 3, 5, 5, 4, 6, 3, 3, same3)
    conv("3x3_valid", 1, 5, 3, 6, 8, 3, 3, (0, 0, 0, 0))
    conv("3x3_pad_0101", 1, 3, 5, 7, 8, 3, 3, (0, 1, 0, 1))
    conv("3x3_pad_2013", 1, 5, 3, 5, 6, 3, 3, (2, 0, 1, 3))
    conv("3x3_pad_wider_than_kernel", 1, 3, 3, 2, 3, 3, 3, (4, 5, 5, 4))
    conv("5x3", 1, 5, 17, 7, 9, 5, 3, (2, 2, 1, 1))
    conv("5x3_asymmetric", 1, 3, 5, 8, 5, 5, 3, (4, 0, 0, 2), bias=False)
    conv("1x5", 1, 3, 3, 3, 11, 1, 5, (0, 0, 2, 2))
    # Terms that cancel: what is left is far smaller than what was added.
    conv("3x3_offset_1e4", 1, 17, 5, 5, 7, 3, 3, same3, x=normal(1, 17, 5, 7, mean=1e4))


def norm_cases():
    group_norm("g1", normal(1, 6, 5, 7), 1)
    group_norm("g2_c6_batch2", normal(2, 6, 5, 3), 2)
    group_norm("g4_c64", normal(1, 64, 3, 5), 4)
    group_norm("g32_c32_one_channel_each", normal(1, 32, 3, 9), 32)
    group_norm("g32_c64", normal(1, 64, 4, 5, std=3.0), 32)
    group_norm("g17_c17_at_1x7", normal(1, 17, 1, 7), 17)
    group_norm("g1_at_1x1", normal(1, 8, 1, 1), 1)
    group_norm("one_element_a_group", normal(1, 4, 1, 1), 4)
    group_norm("tiny_variance", normal(1, 8, 5, 9, std=1e-4), 2)
    group_norm("variance_below_eps", normal(1, 8, 5, 9, std=1e-6), 4)
    group_norm("constant", np.full((1, 4, 3, 5), 0.75, np.float32), 2)
    group_norm("eps_1e-5", normal(1, 8, 4, 6, std=2e-3), 2, 1e-5)
    group_norm("mean_1e4", normal(1, 8, 6, 11, mean=1e4), 2)
    group_norm("mean_minus_300", normal(1, 8, 6, 11, mean=-300.0, std=2.0), 4)


def pointwise_cases():
    steep = np.array([0.0, -0.0, 1e-30, -1e-30, 1e-6, -1e-6, 0.5, -0.5, 1.0, -1.0, 8.5, -8.5, 20, -20,
                      50, -50, 87, -87, 88.5, -88.5, 100, -100, 700, -700, 1e4, -1e4],
                     np.float32).reshape(1, 2, 1, 13)
    pointwise("silu_normal", "silu", normal(1, 3, 7, 9, std=3.0), F.silu)
    pointwise("silu_extremes", "silu", steep, F.silu)
    pointwise("relu_normal", "relu", normal(2, 3, 5, 7), F.relu)
    pointwise("relu_extremes", "relu", steep, F.relu)
    for name, x in (("normal", normal(1, 4, 7, 9, std=2.0)), ("extremes", steep)):
        pointwise("tanh_clamp_" + name, "tanh_clamp", x, lambda v: torch.tanh(v / 3) * 3, {"limit": 3.0})
    pointwise("clamp_pm1", "clamp", normal(1, 3, 5, 7), lambda v: v.clamp(-1, 1), {"lo": -1.0, "hi": 1.0})
    pointwise("clamp_0_1", "clamp", normal(1, 3, 5, 7), lambda v: v.clamp(0, 1), {"lo": 0.0, "hi": 1.0})
    for name, scale, shift in (
        ("uniform", np.full(4, 1 / 0.18215), np.full(4, 0.0609)),
        ("each_its_own", rng.standard_normal(17), rng.standard_normal(17)),
    ):
        x = normal(2, len(scale), 3, 5)
        a, b = (torch.from_numpy(t)[None, :, None, None] for t in (scale, shift))
        pointwise("scale_shift_" + name, "scale_shift", x, lambda v: v * a + b, w=scale, b=shift)
    for c, h, w in ((1, 1, 1), (5, 4, 7), (17, 3, 3)):
        x = normal(1, 2 * c, h, w)  # the two addends one after the other along channels
        a, b = f64(x[:, :c]), f64(x[:, c:])
        put("add_c%d" % c, "add", x, a + b, 1, a.abs() + b.abs())


def moving_cases():
    for fh, fw in ((1, 1), (2, 2), (1, 3), (3, 1), (2, 3), (3, 2)):
        x = normal(2, 3, 3, 5)
        y = f64(x).repeat_interleave(fh, 2).repeat_interleave(fw, 3)
        put("upsample_%dx%d" % (fh, fw), "upsample_nearest", x, y, 1, y, {"factor_h": fh, "factor_w": fw})
    x = normal(2, 12, 3, 5)
    y = F.pixel_shuffle(f64(x), 2)
    put("unpack_2x2", "unpack", x, y, 1, y, {"fh": 2, "fw": 2})
    for fh, fw in ((1, 3), (3, 2)):
        x = normal(1, 4 * fh * fw, 3, 2)
        n, c, h, w = 1, 4, 3, 2
        y = f64(x).reshape(n, c, fh, fw, h, w).permute(0, 1, 4, 2, 5, 3).reshape(n, c, h * fh, w * fw)
        put("unpack_%dx%d" % (fh, fw), "unpack", x, y, 1, y, {"fh": fh, "fw": fw})


def attention_cases():
    attention("c1", 1, 1, 5, 7, 1.0)
    attention("c8_one_position", 1, 8, 1, 1, 1.0)
    attention("c8_flat", 1, 8, 13, 15, 1e-3)
    attention("c8_batch2", 2, 8, 3, 5, 1.0)
    attention("c8_sharp", 1, 8, 9, 11, 30.0)
    attention("c33", 1, 33, 7, 17, 1.0)
    attention("c64", 1, 64, 8, 9, 1.0)
    attention("c64_sharp", 1, 64, 5, 7, 100.0)


def main():
    conv_cases()
    norm_cases()
    pointwise_cases()
    moving_cases()
    attention_cases()
    data = os.path.join(HERE, "ops.safetensors")
    tensorfile.write(data, tensors, {"made_by": "make_ops.py", "seed": str(SEED)})
    provenance = {
        "command": "/usr/bin/python3 ref/tests/oracle/make_ops.py",
        "seed": SEED, "torch": torch.__version__, "numpy": np.__version__,
        "python": sys.version.split()[0], "arithmetic": "float64, one thread",
        "sha256": tensorfile.sha256(data),
    }
    with open(os.path.join(HERE, "ops_cases.json"), "w") as f:
        f.write('{\n"provenance": %s,\n"rows": [\n' % json.dumps(provenance))
        f.write(",\n".join(json.dumps(c) for c in cases) + "\n]\n}\n")
    print("%d cases, %d bytes" % (len(cases), os.path.getsize(data)))


main()
