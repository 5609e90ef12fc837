"""Makes decoders.safetensors and decoders.json: whole decoders computed in
float64 by diffusers on seeded weights and latents written by vaeref.

Only the numbers in the weight and latent files come from this project; the
networks are diffusers' own classes, the un-normalisation of latents is what its
pipelines do (in float64 here). Latents are in diffusion space. AutoencoderTiny
maps its network's output y to 2y - 1; the fixture holds y, as vaeref writes it.

Needs torch and diffusers >= 0.42 in a virtual environment:
  python make_decoders.py --vaeref build/release/bin/vaeref
SPDX-License-Identifier: MIT
"""
import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile

import diffusers
import numpy as np
import torch
from diffusers import AutoencoderKL, AutoencoderKLFlux2, AutoencoderTiny
from diffusers.pipelines.flux2.pipeline_flux2 import Flux2Pipeline

import tensorfile
import tiny_reference

HERE = os.path.dirname(os.path.abspath(__file__))
PLAYGROUND = "config_playground25.json"

# scaling_factor, shift_factor, post_quant_conv: the published config.json files.
KL = {"sd15": (0.18215, 0.0, True), "sdxl": (0.13025, 0.0, True),
      "sd3": (1.5305, 0.0609, False), "flux1": (0.3611, 0.1159, False)}

# name, arch, weight seed, width divisor, config, latent seed, batch, rows, columns
ROWS = [
    ("sd15_8x8", "sd15", 11, 1, None, 1, 1, 8, 8),
    ("sd15_div4_5x7", "sd15", 12, 4, None, 2, 1, 5, 7),
    ("sd15_div4_1x1", "sd15", 12, 4, None, 3, 1, 1, 1),
    ("sd15_div4_batch2_4x6", "sd15", 13, 4, None, 4, 2, 4, 6),
    ("sdxl_div4_6x10", "sdxl", 21, 4, None, 5, 1, 6, 10),
    ("sdxl_mean_std_div4_6x10", "sdxl", 22, 4, PLAYGROUND, 6, 1, 6, 10),
    ("sd3_5x7", "sd3", 31, 1, None, 7, 1, 5, 7),
    ("flux1_div4_6x10", "flux1", 41, 4, None, 8, 1, 6, 10),
    ("flux1_div2_7x3", "flux1", 42, 2, None, 9, 1, 7, 3),
    ("flux2_3x5", "flux2", 51, 1, None, 10, 1, 3, 5),
    ("flux2_div4_batch2_2x1", "flux2", 52, 4, None, 11, 2, 2, 1),
    ("taesd_6x10", "taesd", 61, 1, None, 12, 1, 6, 10),
    ("taesd_div4_5x7", "taesd", 62, 4, None, 13, 1, 5, 7),
    ("taesdxl_5x7", "taesdxl", 63, 1, None, 14, 1, 5, 7),
    ("taesd3_5x7", "taesd3", 64, 1, None, 15, 1, 5, 7),
    ("taef1_batch2_4x3", "taef1", 65, 1, None, 16, 2, 4, 3),
    ("taef2_5x7", "taef2", 66, 1, None, 17, 1, 5, 7),
    ("taesana_2x3", "taesana", 67, 1, None, 18, 1, 2, 3),
]


def load_strictly(module, tensors, may_miss=()):
    """Every tensor is used; what is missing starts with one of `may_miss`."""
    own = module.state_dict()
    state = {}
    for name, array in tensors.items():
        value = torch.from_numpy(array.astype(np.float64))
        if name in own and value.shape != own[name].shape:
            raise SystemExit("%s: %s, the class wants %s" % (name, value.shape, own[name].shape))
        state[name] = value
    result = module.double().eval().load_state_dict(state, strict=False)
    missing = [k for k in result.missing_keys if not k.startswith(may_miss)]
    if missing or result.unexpected_keys:
        raise SystemExit("missing %s, unexpected %s" % (missing, result.unexpected_keys))
    return module


def level_widths(tensors):
    """block_out_channels: the encoder's order, narrowest first."""
    return [tensors["decoder.up_blocks.%d.resnets.0.conv2.weight" % i].shape[0] for i in (3, 2, 1, 0)]


def kl(arch, tensors, latent, config):
    scaling, shift, post_quant = KL[arch]
    extra = {}
    if config:
        with open(os.path.join(HERE, config)) as f:
            stats = json.load(f)
        scaling = stats["scaling_factor"]
        extra = {"latents_mean": stats["latents_mean"], "latents_std": stats["latents_std"]}
    vae = AutoencoderKL(
        block_out_channels=level_widths(tensors), layers_per_block=2,
        latent_channels=tensors["decoder.conv_in.weight"].shape[1],
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
        scaling_factor=scaling, shift_factor=shift or None,
        use_quant_conv=post_quant, use_post_quant_conv=post_quant, **extra)
    load_strictly(vae, tensors, ("encoder.", "quant_conv."))
    if config:
        mean, std = (torch.tensor(extra[k], dtype=torch.float64).view(1, -1, 1, 1)
                     for k in ("latents_mean", "latents_std"))
        z = latent * std / scaling + mean
    else:
        z = latent / scaling + shift
    return vae, z


def flux2(tensors, latent):
    widths = level_widths(tensors)
    vae = AutoencoderKLFlux2(block_out_channels=widths, layers_per_block=2,
                             latent_channels=tensors["decoder.conv_in.weight"].shape[1])
    load_strictly(vae, tensors, ("encoder.", "quant_conv.", "bn.num_batches_tracked"))
    mean = vae.bn.running_mean.view(1, -1, 1, 1)
    std = torch.sqrt(vae.bn.running_var.view(1, -1, 1, 1) + vae.config.batch_norm_eps)
    return vae, Flux2Pipeline._unpatchify_latents(latent * std + mean)


def tiny(tensors):
    width = tensors["decoder.layers.0.weight"].shape[0]
    vae = AutoencoderTiny(latent_channels=tensors["decoder.layers.0.weight"].shape[1],
                          encoder_block_out_channels=(width,) * 4, decoder_block_out_channels=(width,) * 4)
    return load_strictly(vae, tensors, ("encoder.",))


def own_tiny(arch, tensors):
    """From the original key layout."""
    stages = (1, 7, 12, 17) if arch == "taef2" else (1, 7, 12, 17, 22, 27)
    widths = [tensors["%d.weight" % i].shape[0] for i in stages]
    net = tiny_reference.decoder(tensors["1.weight"].shape[1], widths, arch == "taef2")
    return load_strictly(net, tensors)


def expected(arch, tensors, latent, config):
    """The picture in float64 and what computed it."""
    with torch.no_grad():
        if arch in ("taef2", "taesana"):
            return own_tiny(arch, tensors)(latent), "tiny_reference.py"
        if arch.startswith("tae"):
            return (tiny(tensors).decode(latent).sample + 1) / 2, "AutoencoderTiny, (sample + 1) / 2"
        vae, z = flux2(tensors, latent) if arch == "flux2" else kl(arch, tensors, latent, config)
        return vae.decode(z).sample, type(vae).__name__


def vaeref(tool, *words):
    return subprocess.run([tool, *map(str, words)], check=True, stdout=subprocess.PIPE).stdout


def make_row(tool, folder, row):
    name, arch, seed, div, config, latent_seed, n, h, w = row
    spec = "synth:%s,seed=%d,div=%d" % (arch, seed, div)
    weights, latents = (os.path.join(folder, f) for f in ("w.safetensors", "l.npy"))
    layout = "original" if arch in ("taef2", "taesana") else "diffusers"
    vaeref(tool, "synth", "--arch", arch, "--seed", seed, "--div", div, "--layout", layout, "-o", weights)
    vaeref(tool, "latents", "--model", spec, "--latent-size", "%dx%d" % (h, w), "--n", n,
           "--seed", latent_seed, "-o", latents)
    sha = json.loads(vaeref(tool, "inspect", "--model", spec, "--json"))["weights_sha256"]
    tensors, _ = tensorfile.read(weights)
    latent = np.load(latents)
    y, made_by = expected(arch, tensors, torch.from_numpy(latent.astype(np.float64)), config)
    y = y.numpy()
    assert y.dtype == np.float64 and np.isfinite(y).all()
    return y, {
        "name": name, "model": spec, "config": config, "weights_sha256": sha,
        "parameters": sum(t.size for t in tensors.values()),
        "latent_seed": latent_seed, "latent_shape": list(latent.shape),
        "latents_sha256": hashlib.sha256(latent.tobytes()).hexdigest(),
        "made_by": made_by, "rms": float(np.sqrt(np.mean(y * y))),
    }


def main():
    p = argparse.ArgumentParser(description="Makes decoders.safetensors and decoders.json")
    p.add_argument("--vaeref", default="build/release/bin/vaeref")
    a = p.parse_args()
    torch.set_num_threads(2)
    tensors, rows = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for row in ROWS:
            y, entry = make_row(a.vaeref, folder, row)
            tensors[row[0]] = y
            rows.append(entry)
            print(row[0], y.shape, "rms %.4g" % entry["rms"], flush=True)
    data = os.path.join(HERE, "decoders.safetensors")
    tensorfile.write(data, tensors, {"made_by": "make_decoders.py"})
    provenance = {
        "command": "python ref/tests/oracle/make_decoders.py --vaeref build/release/bin/vaeref",
        "diffusers": diffusers.__version__, "torch": torch.__version__, "numpy": np.__version__,
        "python": sys.version.split()[0], "arithmetic": "float64", "latent_space": "diffusion",
        "tiny_output": "the network's y (black 0, white 1), not diffusers' 2y - 1",
        "sha256": tensorfile.sha256(data),
    }
    with open(os.path.join(HERE, "decoders.json"), "w") as f:
        f.write('{\n"provenance": %s,\n"rows": [\n' % json.dumps(provenance))
        f.write(",\n".join(json.dumps(r) for r in rows) + "\n]\n}\n")
    print("%d decoders, %d bytes" % (len(rows), os.path.getsize(data)))


if __name__ == "__main__":
    main()
