"""Makes tiled.safetensors and tiled.json: tiled decodes by other people's code, in
float64, on seeded decoders and latents written by vaeref (T2 to T5).

  diffusers         AutoencoderKL.tiled_decode
  diffusers-stride  AutoencoderDC.tiled_decode, the smallest class of that form, with
                    the decoder of an AutoencoderKL in its place
  diffusers-tiny    AutoencoderTiny._tiled_decode
  comfy, comfy-3pass  comfy() below: plain float64 torch, written from a description of
                    the rules (feathered tiles, normalised by the sum of weights; three
                    passes, averaged), not from this project's C

Numbers are stored as float32, 1.2e-7 of the largest value at most.

Needs the environment of make_decoders.py:
  python make_tiled.py --vaeref build/release/bin/vaeref
SPDX-License-Identifier: MIT
"""
import argparse
import hashlib
import json
import os
import sys
import tempfile
import types

import diffusers
import numpy as np
import torch
from diffusers import AutoencoderDC

import make_decoders as md
import tensorfile

HERE = os.path.dirname(os.path.abspath(__file__))
SCALE = 8

# scheme, arch, weight seed, width divisor, latent seed, batch, rows, columns, tile w, h, overlap w, h (pixels)
ROWS = [
    ("diffusers", "sd15", 101, 4, 1, 1, 9, 13, 32, 32, 8, 8),
    ("diffusers", "sd15", 102, 4, 2, 1, 11, 10, 64, 64, 16, 16),
    ("diffusers", "flux1", 103, 4, 3, 1, 10, 7, 48, 48, 24, 24),
    ("diffusers-stride", "sd15", 101, 4, 1, 1, 9, 13, 32, 32, 8, 8),
    ("diffusers-stride", "sd15", 104, 4, 4, 1, 10, 11, 48, 40, 8, 16),
    ("diffusers-stride", "sd3", 105, 4, 5, 1, 7, 12, 64, 32, 40, 16),
    ("diffusers-tiny", "taesd", 106, 4, 6, 1, 9, 13, 32, 32, 8, 8),
    ("diffusers-tiny", "taesd", 107, 4, 7, 1, 11, 10, 40, 40, 8, 8),
    ("diffusers-tiny", "taef1", 108, 4, 8, 2, 7, 8, 32, 32, 16, 16),
    ("comfy", "sd15", 101, 4, 1, 1, 9, 13, 32, 32, 8, 8),
    ("comfy", "taesd", 109, 4, 9, 1, 10, 11, 48, 40, 16, 8),
    ("comfy", "flux1", 110, 4, 10, 1, 7, 12, 64, 32, 24, 16),
    ("comfy-3pass", "sd15", 101, 4, 1, 1, 9, 13, 32, 32, 8, 8),
    ("comfy-3pass", "taesd", 111, 4, 11, 1, 11, 9, 48, 48, 16, 16),
    ("comfy-3pass", "sdxl", 112, 4, 12, 1, 12, 7, 64, 64, 16, 16),
]


def comfy_pass(decode, z, tile, overlap):
    """One pass over rows x columns of cells; tile and overlap are (rows, columns)."""
    size, starts = z.shape[2:], []
    for n, t, o in zip(size, tile, overlap):
        starts.append(list(range(0, n - o, t - o)) if n > t else [0])
    total, weight = None, None
    for y in starts[0]:
        for x in starts[1]:
            place, length = [], []
            for start, n, t, o in zip((y, x), size, tile, overlap):
                p = max(0, min(n - o, start))
                place.append(p)
                length.append(min(t, n - p))
            part = decode(z[:, :, place[0]:place[0] + length[0], place[1]:place[1] + length[1]])
            mask = torch.ones_like(part)
            for axis, o in ((2, overlap[0]), (3, overlap[1])):
                feather, last = o * SCALE, part.shape[axis]
                if feather >= last:
                    continue
                for k in range(feather):
                    ramp = (k + 1.0) / feather
                    mask.narrow(axis, k, 1).mul_(ramp)
                    mask.narrow(axis, last - 1 - k, 1).mul_(ramp)
            if total is None:
                shape = (z.shape[0], part.shape[1], size[0] * SCALE, size[1] * SCALE)
                total, weight = torch.zeros(shape), torch.zeros(shape)
            top, left = place[0] * SCALE, place[1] * SCALE
            window = (slice(None), slice(None), slice(top, top + part.shape[2]), slice(left, left + part.shape[3]))
            total[window] += part * mask
            weight[window] += mask
    return total / weight


def comfy(decode, z, tile, overlap, three):
    if not three:
        return comfy_pass(decode, z, tile, overlap)
    rows, columns = tile
    passes = ((rows * 2, columns // 2), (rows // 2, columns * 2), (rows, columns))
    return sum(comfy_pass(decode, z, t, overlap) for t in passes) / 3.0


def one_side(pair, what):
    if pair[0] != pair[1]:
        raise SystemExit("%s must be square: %s" % (what, pair))
    return pair[0]


def kl_tiled(vae, z, tile, overlap):
    side, over = one_side(tile, "tile"), one_side(overlap, "overlap")
    vae.tile_sample_min_size, vae.tile_latent_min_size = side, side // SCALE
    vae.tile_overlap_factor = over / side
    return vae.tiled_decode(z).sample


def stride_tiled(vae, z, tile, overlap):
    self = types.SimpleNamespace(
        spatial_compression_ratio=SCALE, decoder=lambda t: vae.decode(t).sample,
        tile_sample_min_height=tile[0], tile_sample_min_width=tile[1],
        tile_sample_stride_height=tile[0] - overlap[0], tile_sample_stride_width=tile[1] - overlap[1])
    self.blend_v = types.MethodType(AutoencoderDC.blend_v, self)
    self.blend_h = types.MethodType(AutoencoderDC.blend_h, self)
    whole = AutoencoderDC.tiled_decode(self, z).sample
    return whole[:, :, : z.shape[2] * SCALE, : z.shape[3] * SCALE]


def tiny_tiled(vae, z, tile, overlap):
    side, over = one_side(tile, "tile"), one_side(overlap, "overlap")
    vae.tile_latent_min_size, vae.tile_overlap_factor = side // SCALE, over / side
    return torch.cat([vae._tiled_decode(part) for part in z.split(1)])


def tiled(scheme, arch, tensors, latent, tile, overlap):
    cells = tuple(t // SCALE for t in tile), tuple(o // SCALE for o in overlap)
    if arch.startswith("tae"):
        vae, z = md.tiny(tensors), latent
        if scheme == "diffusers-tiny":
            return (tiny_tiled(vae, z, tile, overlap) + 1) / 2, "AutoencoderTiny._tiled_decode, (sample + 1) / 2"
        decode = lambda t: (vae.decode(t).sample + 1) / 2
    else:
        vae, z = md.kl(arch, tensors, latent, None)
        if scheme == "diffusers":
            return kl_tiled(vae, z, tile, overlap), "AutoencoderKL.tiled_decode"
        if scheme == "diffusers-stride":
            return stride_tiled(vae, z, tile, overlap), "AutoencoderDC.tiled_decode"
        decode = lambda t: vae.decode(t).sample
    return comfy(decode, z, *cells, scheme == "comfy-3pass"), "comfy() of make_tiled.py"


def make_row(tool, folder, row):
    scheme, arch, seed, div, latent_seed, n, h, w, tw, th, ow, oh = row
    spec = "synth:%s,seed=%d,div=%d" % (arch, seed, div)
    weights, latents = (os.path.join(folder, f) for f in ("w.safetensors", "l.npy"))
    md.vaeref(tool, "synth", "--arch", arch, "--seed", seed, "--div", div, "--layout", "diffusers", "-o", weights)
    md.vaeref(tool, "latents", "--model", spec, "--latent-size", "%dx%d" % (h, w), "--n", n, "--seed", latent_seed,
              "-o", latents)
    sha = json.loads(md.vaeref(tool, "inspect", "--model", spec, "--json"))["weights_sha256"]
    tensors, _ = tensorfile.read(weights)
    latent = np.load(latents)
    z = torch.from_numpy(latent.astype(np.float64))
    with torch.no_grad():
        y, made_by = tiled(scheme, arch, tensors, z, (th, tw), (oh, ow))
        whole, _ = md.expected(arch, tensors, z, None)
    y = y.numpy()
    assert y.dtype == np.float64 and np.isfinite(y).all() and y.shape == tuple(whole.shape), (y.dtype, y.shape)
    name = "%s_%s_%dx%d_t%dx%d_o%dx%d" % (scheme, arch, h, w, tw, th, ow, oh)
    return name, y.astype(np.float32), {
        "name": name, "scheme": scheme, "model": spec, "weights_sha256": sha, "latent_seed": latent_seed,
        "latent_shape": list(latent.shape), "latents_sha256": hashlib.sha256(latent.tobytes()).hexdigest(),
        "tile": [tw, th], "overlap": [ow, oh], "made_by": made_by,
        "rms": float(np.sqrt(np.mean(y * y))), "max_from_undivided": float(np.abs(y - whole.numpy()).max()),
    }


def main():
    p = argparse.ArgumentParser(description="Makes tiled.safetensors and tiled.json")
    p.add_argument("--vaeref", default="build/release/bin/vaeref")
    a = p.parse_args()
    torch.set_num_threads(2)
    torch.set_default_dtype(torch.float64)  # AutoencoderTiny makes its output in the default type
    tensors, rows = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for row in ROWS:
            name, y, entry = make_row(a.vaeref, folder, row)
            tensors[name] = y
            rows.append(entry)
            print(name, y.shape, "rms %.4g, from undivided %.4g" % (entry["rms"], entry["max_from_undivided"]), flush=True)
    data = os.path.join(HERE, "tiled.safetensors")
    tensorfile.write(data, tensors, {"made_by": "make_tiled.py"})
    provenance = {
        "command": "python ref/tests/oracle/make_tiled.py --vaeref build/release/bin/vaeref",
        "diffusers": diffusers.__version__, "torch": torch.__version__, "numpy": np.__version__,
        "python": sys.version.split()[0], "arithmetic": "float64, stored as float32", "sha256": tensorfile.sha256(data),
    }
    with open(os.path.join(HERE, "tiled.json"), "w") as f:
        f.write('{\n"provenance": %s,\n"rows": [\n' % json.dumps(provenance))
        f.write(",\n".join(json.dumps(r) for r in rows))
        f.write("\n]\n}\n")


if __name__ == "__main__":
    main()
