#!/usr/bin/python3
"""The peer `vaebench decode` measures against: the SD1.5-shaped AutoencoderKL
decoder as a person would write it in plain PyTorch, float32, on the CPU.

Runs on Debian's python3-torch (1.13) and on newer ones; needs numpy, nothing
else. Activations are overwritten in place and freed as early as Python allows,
so that neither the time nor the memory is made to look worse than it is. The
kernels are warmed up on a small latent first; loading is not timed.

  /usr/bin/python3 bench/peers/torch_decode.py --size 512 --repeats 2 --json
  ... --weights sd15.safetensors --latents l.npy --output y.npy   # to compare results

SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import resource
import struct
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def peak_rss_bytes():
    """High-water mark of this program alone: ru_maxrss also remembers whatever
    process was replaced by it, so it is only the fallback."""
    try:
        with open("/proc/self/status") as f:
            for line in f:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


BASELINE_RSS = peak_rss_bytes()


class ResBlock(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, a, eps=1e-6), nn.Conv2d(a, b, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(32, b, eps=1e-6), nn.Conv2d(b, b, 3, padding=1)
        self.conv_shortcut = nn.Conv2d(a, b, 1) if a != b else None

    def forward(self, x):
        t = self.conv1(F.silu(self.norm1(x), inplace=True))
        t = self.conv2(F.silu(self.norm2(t), inplace=True))
        return t.add_(x if self.conv_shortcut is None else self.conv_shortcut(x))


class Attention(nn.Module):
    """One head over all positions."""

    def __init__(self, c):
        super().__init__()
        self.group_norm = nn.GroupNorm(32, c, eps=1e-6)
        self.to_q, self.to_k, self.to_v = (nn.Linear(c, c) for _ in range(3))
        self.to_out = nn.ModuleList([nn.Linear(c, c)])

    def forward(self, x):
        n, c, h, w = x.shape
        t = self.group_norm(x).reshape(n, c, h * w).transpose(1, 2)
        q, k, v = self.to_q(t), self.to_k(t), self.to_v(t)
        if hasattr(F, "scaled_dot_product_attention"):
            t = F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0]
        else:
            scores = torch.baddbmm(q.new_empty(1, 1, 1), q, k.transpose(1, 2), beta=0, alpha=c ** -0.5)
            t = torch.bmm(scores.softmax(-1), v)
        return self.to_out[0](t).transpose(1, 2).reshape(n, c, h, w).add_(x)


class Upsample(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return self.conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))


class Level(nn.Module):
    def __init__(self, a, b, up):
        super().__init__()
        self.resnets = nn.ModuleList([ResBlock(a, b), ResBlock(b, b), ResBlock(b, b)])
        self.upsamplers = nn.ModuleList([Upsample(b)] if up else [])

    def forward(self, x):
        for block in [*self.resnets, *self.upsamplers]:
            x = block(x)
        return x


class Mid(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.resnets = nn.ModuleList([ResBlock(c, c), ResBlock(c, c)])
        self.attentions = nn.ModuleList([Attention(c)])

    def forward(self, x):
        return self.resnets[1](self.attentions[0](self.resnets[0](x)))


class Decoder(nn.Module):
    """Modules are named as diffusers names them, so its files load strictly."""

    def __init__(self):
        super().__init__()
        self.conv_in = nn.Conv2d(4, 512, 3, padding=1)
        self.mid_block = Mid(512)
        self.up_blocks = nn.ModuleList(
            [Level(512, 512, True), Level(512, 512, True), Level(512, 256, True), Level(256, 128, False)])
        self.conv_norm_out = nn.GroupNorm(32, 128, eps=1e-6)
        self.conv_out = nn.Conv2d(128, 3, 3, padding=1)

    def forward(self, x):
        x = self.mid_block(self.conv_in(x))
        for level in self.up_blocks:
            x = level(x)
        return self.conv_out(F.silu(self.conv_norm_out(x), inplace=True))


class Vae(nn.Module):
    scaling_factor = 0.18215

    def __init__(self):
        super().__init__()
        self.post_quant_conv = nn.Conv2d(4, 4, 1)
        self.decoder = Decoder()

    def forward(self, latent):
        return self.decoder(self.post_quant_conv(latent / self.scaling_factor))


def load(vae, path):
    """Decoder tensors of a safetensors file in diffusers layout, strictly."""
    kinds = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
    state = {}
    with open(path, "rb") as f:
        (size,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
        for name, entry in header.items():
            if not name.startswith(("decoder.", "post_quant_conv.")):
                continue
            begin, end = entry["data_offsets"]
            f.seek(8 + size + begin)
            raw = bytearray(f.read(end - begin))
            if entry["dtype"] == "BF16":
                array = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
            else:
                array = np.frombuffer(raw, kinds[entry["dtype"]]).astype(np.float32)
            shape = entry["shape"]
            if ".attentions." in name and len(shape) == 4:
                shape = shape[:2]
            state[name] = torch.from_numpy(array.reshape(shape))
    vae.load_state_dict(state, strict=True)


def arguments():
    p = argparse.ArgumentParser(description="SD1.5-shaped VAE decode in PyTorch float32")
    p.add_argument("--size", type=int, default=512, help="picture side in pixels (default 512)")
    p.add_argument("--repeats", type=int, default=2, help="timed decodes; the fastest counts")
    p.add_argument("--threads", type=int, default=0, help="0: the CPUs this process may use")
    p.add_argument("--weights", help="safetensors in diffusers layout (default: random)")
    p.add_argument("--latents", help=".npy, N4HW, diffusion space (default: random)")
    p.add_argument("--output", help="write the last picture, raw float32 NCHW, as .npy")
    p.add_argument("--json", action="store_true", help="print one JSON object")
    a = p.parse_args()
    if a.size < 8 or a.size % 8 or a.repeats < 1 or a.threads < 0:
        p.error("--size must be a multiple of 8, --repeats at least 1, --threads not negative")
    return a


def main():
    a = arguments()
    torch.set_num_threads(a.threads or len(os.sched_getaffinity(0)))
    torch.manual_seed(1)
    vae = Vae().eval()
    if a.weights:
        load(vae, a.weights)
    if a.latents:
        latent = torch.from_numpy(np.load(a.latents).astype(np.float32))
    else:
        latent = torch.randn(1, 4, a.size // 8, a.size // 8)
    seconds = []
    with torch.inference_mode():
        vae(latent[:, :, :8, :8])
        for _ in range(a.repeats):
            picture = None
            start = time.perf_counter()
            picture = vae(latent)
            seconds.append(time.perf_counter() - start)
    if a.output:
        np.save(a.output, picture.numpy())
    result = {
        "seconds": min(seconds), "all_seconds": seconds,
        "peak_rss_bytes": peak_rss_bytes(), "baseline_rss_bytes": BASELINE_RSS,
        "torch": torch.__version__, "threads": torch.get_num_threads(),
        "mkldnn": torch.backends.mkldnn.is_available(),
        "size": [latent.shape[3] * 8, latent.shape[2] * 8], "dtype": "float32",
        "weights": a.weights or "random",
    }
    if a.json:
        print(json.dumps(result))
    else:
        print("%.3f s, peak %.1f MiB resident (%.1f after import), torch %s, %d threads" % (
            result["seconds"], result["peak_rss_bytes"] / 2**20, BASELINE_RSS / 2**20,
            result["torch"], result["threads"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
