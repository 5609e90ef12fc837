"""Trains the small autoencoder of golden/models/drawings on drawings made by this script, and
writes decoder.safetensors (f16, keys of a diffusers AutoencoderKL), config.json,
latents.safetensors (encodings of held-out drawings) and TRAINING.json (what was measured).

  /usr/bin/python3 golden/models/train.py --minutes 10     # Debian's python3-torch, numpy

The decoder has what the large ones have: residual blocks with group norm and silu,
attention in its middle, nearest upsampling. Times and threads decide how many steps are
made, so another run gives another model of the same kind; the committed files are one run.
SPDX-License-Identifier: MIT
"""
import argparse
import hashlib
import json
import math
import os
import struct
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTHS, LATENT, GROUPS, EPS = (8, 16, 32), 8, 8, 1e-6


# ---- drawings --------------------------------------------------------------------------

def drawing(rng, height, width):
    """[3][height][width] in -1..1: gradients, discs, boxes, strokes, a texture."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    a, b = rng.uniform(-1, 1, (2, 3)).astype(np.float32)
    angle = rng.uniform(0, 2 * np.pi)
    t = (np.cos(angle) * x / width + np.sin(angle) * y / height + 1) / 2
    image = a[:, None, None] * (1 - t) + b[:, None, None] * t
    for _ in range(rng.integers(3, 8)):
        colour = rng.uniform(-1, 1, 3).astype(np.float32)[:, None, None]
        kind, soft = rng.integers(0, 4), rng.uniform(0.7, 2.5)
        cy, cx = rng.uniform(0, height), rng.uniform(0, width)
        r = rng.uniform(0.08, 0.35) * min(height, width)
        if kind == 0:
            d = r - np.hypot(y - cy, x - cx)
        elif kind == 1:
            d = np.minimum(r - abs(y - cy), r * rng.uniform(0.4, 1.6) - abs(x - cx))
        elif kind == 2:  # a stroke, as of a letter
            s, c = np.sin(angle + kind), np.cos(angle + kind)
            along, across = (x - cx) * c + (y - cy) * s, -(x - cx) * s + (y - cy) * c
            d = np.minimum(rng.uniform(1.5, 4) - abs(across), r - abs(along))
        else:  # a textured disc
            d = r - np.hypot(y - cy, x - cx)
            wave = np.sin(rng.uniform(0.3, 0.8) * x + rng.uniform(-0.5, 0.5) * y)
            colour = np.clip(colour + 0.4 * wave, -1, 1)
        alpha = 1 / (1 + np.exp(-np.clip(d * soft, -30, 30)))
        image = image * (1 - alpha) + colour * alpha
    return image.astype(np.float32)


# ---- the networks ----------------------------------------------------------------------

class Resnet(nn.Module):
    def __init__(self, ci, co):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(GROUPS, ci, EPS), nn.Conv2d(ci, co, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(GROUPS, co, EPS), nn.Conv2d(co, co, 3, padding=1)
        if ci != co:
            self.conv_shortcut = nn.Conv2d(ci, co, 1)

    def forward(self, x):
        h = self.conv2(F.silu(self.norm2(self.conv1(F.silu(self.norm1(x))))))
        return (self.conv_shortcut(x) if hasattr(self, "conv_shortcut") else x) + h


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.group_norm = nn.GroupNorm(GROUPS, c, EPS)
        self.to_q, self.to_k, self.to_v = nn.Linear(c, c), nn.Linear(c, c), nn.Linear(c, c)
        self.to_out = nn.ModuleList([nn.Linear(c, c)])

    def forward(self, x):
        n, c, h, w = x.shape
        y = self.group_norm(x).reshape(n, c, h * w).transpose(1, 2)
        p = torch.softmax(self.to_q(y) @ self.to_k(y).transpose(1, 2) / math.sqrt(c), -1)
        return x + self.to_out[0](p @ self.to_v(y)).transpose(1, 2).reshape(n, c, h, w)


class Upsampler(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return self.conv(F.interpolate(x, scale_factor=2, mode="nearest"))


class Mid(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.resnets = nn.ModuleList([Resnet(c, c), Resnet(c, c)])
        self.attentions = nn.ModuleList([Attention(c)])

    def forward(self, x):
        return self.resnets[1](self.attentions[0](self.resnets[0](x)))


class Up(nn.Module):
    def __init__(self, ci, co, last):
        super().__init__()
        self.resnets = nn.ModuleList([Resnet(ci if i == 0 else co, co) for i in range(3)])
        if not last:
            self.upsamplers = nn.ModuleList([Upsampler(co)])

    def forward(self, x):
        for r in self.resnets:
            x = r(x)
        return self.upsamplers[0](x) if hasattr(self, "upsamplers") else x


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        top = WIDTHS[::-1]
        self.conv_in, self.mid_block = nn.Conv2d(LATENT, top[0], 3, padding=1), Mid(top[0])
        self.up_blocks = nn.ModuleList(
            [Up(top[max(i - 1, 0)], c, i == len(top) - 1) for i, c in enumerate(top)])
        self.conv_norm_out, self.conv_out = nn.GroupNorm(GROUPS, top[-1], EPS), nn.Conv2d(top[-1], 3, 3, padding=1)

    def forward(self, z):
        x = self.mid_block(self.conv_in(z))
        for up in self.up_blocks:
            x = up(x)
        return self.conv_out(F.silu(self.conv_norm_out(x)))


class Encoder(nn.Module):
    """Only to make latents: it is not committed."""

    def __init__(self):
        super().__init__()
        layers, c = [nn.Conv2d(3, 16, 3, padding=1)], 16
        for width in (32, 48):
            layers += [Resnet(c, width), nn.Conv2d(width, width, 3, 2, 1)]
            c = width
        layers += [Resnet(c, c), nn.GroupNorm(GROUPS, c, EPS), nn.SiLU(), nn.Conv2d(c, LATENT, 3, padding=1)]
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        z = self.net(x)
        return 3 * torch.tanh(z / 3)  # bounded, near unit scale


# ---- files -------------------------------------------------------------------------------

def write_safetensors(path, tensors, meta):
    header, offset, parts = {"__metadata__": meta}, 0, []
    for name, array in sorted(tensors.items()):
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": {"float16": "F16", "float32": "F32"}[str(array.dtype)], "shape": list(array.shape),
                        "data_offsets": [offset, offset + len(raw)]}
        offset += len(raw)
        parts.append(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".tmp", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))
        f.flush()
        os.fsync(f.fileno())
    os.replace(path + ".tmp", path)


def psnr(a, b):
    return 10 * math.log10(4 / float(((a - b) ** 2).mean()))


def train(encoder, decoder, seed, minutes, batch):
    rng = np.random.default_rng(seed)
    parameters = list(encoder.parameters()) + list(decoder.parameters())
    optimiser = torch.optim.Adam(parameters, 2e-3)
    start, step, smooth = time.time(), 0, None
    while time.time() - start < minutes * 60:
        done = (time.time() - start) / (minutes * 60)
        for g in optimiser.param_groups:
            g["lr"] = 2e-3 * 0.5 * (1 + math.cos(math.pi * min(done, 1))) + 2e-5
        x = torch.from_numpy(np.stack([drawing(rng, 48, 48) for _ in range(batch)]))
        y = decoder(encoder(x))
        dx, dy = (y - x)[..., 1:] - (y - x)[..., :-1], (y - x)[..., 1:, :] - (y - x)[..., :-1, :]
        loss = (y - x).abs().mean() + 2 * ((y - x) ** 2).mean() + 0.5 * (dx.abs().mean() + dy.abs().mean())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        step += 1
        smooth = loss.item() if smooth is None else 0.98 * smooth + 0.02 * loss.item()
        if step % 100 == 0:
            print("step %d, loss %.4f, batch PSNR %.2f dB" % (step, smooth, psnr(y.detach(), x)), flush=True)
    return step, smooth


HELD_OUT = {"square": (64, 64), "wide": (80, 128), "tall": (144, 96), "large": (192, 192), "odd": (52, 76)}


def main():
    p = argparse.ArgumentParser(description="Trains the small autoencoder and writes its files")
    p.add_argument("--minutes", type=float, default=10)
    p.add_argument("--seed", type=int, default=20261201)
    p.add_argument("--batch", type=int, default=12)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--output", default=os.path.join(HERE, "drawings"))
    a = p.parse_args()
    torch.manual_seed(a.seed)
    torch.set_num_threads(a.threads)
    encoder, decoder = Encoder(), Decoder()
    steps, loss = train(encoder, decoder, a.seed, a.minutes, a.batch)
    decoder.half().float()  # what the file will hold
    latents, scores = {}, {}
    rng = np.random.default_rng(a.seed + 1)  # drawings the training never saw
    with torch.no_grad():
        for name, (h, w) in HELD_OUT.items():
            x = torch.from_numpy(drawing(rng, h, w)[None])
            z = encoder(x)
            latents[name] = z.numpy()
            scores[name] = psnr(decoder(z), x)
        many = [torch.from_numpy(drawing(rng, 64, 64)[None]) for _ in range(200)]
        held_out = 10 * math.log10(4 / np.mean([float(((decoder(encoder(x)) - x) ** 2).mean()) for x in many]))
    tensors = {}
    for name, value in decoder.state_dict().items():
        tensors["decoder." + name] = value.numpy().astype(np.float16)
    config = {"_class_name": "AutoencoderKL", "act_fn": "silu", "block_out_channels": list(WIDTHS), "in_channels": 3,
              "latent_channels": LATENT, "layers_per_block": 2, "norm_num_groups": GROUPS, "out_channels": 3,
              "sample_size": 64, "scaling_factor": 1.0, "shift_factor": 0.0, "use_post_quant_conv": False,
              "use_quant_conv": False, "up_block_types": ["UpDecoderBlock2D"] * 3,
              "down_block_types": ["DownEncoderBlock2D"] * 3}
    write_safetensors(os.path.join(a.output, "decoder.safetensors"), tensors, {"format": "pt"})
    write_safetensors(os.path.join(a.output, "latents.safetensors"), latents, {"made_by": "train.py"})
    record = {"seed": a.seed, "steps": steps, "batch": a.batch, "minutes": a.minutes, "threads": a.threads, "final_loss": loss,
              "parameters": int(sum(t.size for t in tensors.values())), "psnr_held_out_db": held_out,
              "psnr_of_latents_db": scores, "torch": torch.__version__, "numpy": np.__version__,
              "sha256": {f: hashlib.sha256(open(os.path.join(a.output, f), "rb").read()).hexdigest()
                         for f in ("decoder.safetensors", "latents.safetensors")}}
    for name, value in (("config.json", config), ("TRAINING.json", record)):
        with open(os.path.join(a.output, name), "w") as f:
            json.dump(value, f, indent=1)
            f.write("\n")
    print("held-out PSNR %.2f dB over 200 drawings, %d parameters" % (held_out, record["parameters"]))


if __name__ == "__main__":
    main()
