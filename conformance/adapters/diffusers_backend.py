"""diffusers as a backend: whole decodes and diffusers' own tiling, from model files.

  VAEPROOF_PYTHON=venv/bin/python vaecheck --backend py:conformance/adapters/diffusers_backend.py
Its decode uses torch's own convolutions, in f32 or bf16. SPDX-License-Identifier: MIT
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import vaeproof_backend as vp  # noqa: E402

try:
    import diffusers
    import torch
    from safetensors.torch import load_file
    WHY = ""
except ImportError as e:
    diffusers, WHY = None, "%s is not installed (pip install diffusers torch safetensors)" % e.name

TILE_DIFFUSERS, TILE_TINY = 1, 3
SCALE = 8


def widths(w):
    return [w["decoder.up_blocks.%d.resnets.0.conv2.weight" % i].shape[0] for i in (3, 2, 1, 0)]


def build(q, w):
    arch = q["arch"]
    if arch in ("taesd", "taesdxl", "taesd3", "taef1"):
        c = w["decoder.layers.0.weight"].shape[0]
        return diffusers.AutoencoderTiny(latent_channels=w["decoder.layers.0.weight"].shape[1],
                                         encoder_block_out_channels=(c,) * 4, decoder_block_out_channels=(c,) * 4)
    if arch not in ("sd15", "sdxl", "sd3", "flux1"):
        raise vp.Unsupported("diffusers has no class here for '%s'" % arch)
    post = "post_quant_conv.weight" in w
    return diffusers.AutoencoderKL(
        block_out_channels=widths(w), layers_per_block=2, latent_channels=w["decoder.conv_in.weight"].shape[1],
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
        norm_num_groups=q["norm_num_groups"], use_quant_conv=post, use_post_quant_conv=post)


class Job:
    def __init__(self, q):
        w = load_file(q["model"])
        self.dtype = torch.bfloat16 if q["storage"] == vp.BF16 else torch.float32
        self.tiny = q["arch"].startswith("tae")
        vae = build(q, w)
        missing, unexpected = vae.load_state_dict(w, strict=False)
        missing = [k for k in missing if not k.startswith(("encoder.", "quant_conv."))]
        if missing or unexpected:
            raise ValueError("missing %s, unexpected %s" % (missing[:3], list(unexpected)[:3]))
        self.vae = vae.to(self.dtype).eval()
        self.scaling, self.shift = q["scaling_factor"], q["shift_factor"]
        self.tile(q["tile"])
        torch.set_num_threads(max(1, q.get("threads", 0) or os.cpu_count()))

    def tile(self, t):
        if t["mode"] == 0:
            return
        if (t["mode"] == TILE_TINY) != self.tiny:
            raise vp.Unsupported("this class does not tile in that way")
        default = 512
        side = t["tile_h"] or default
        overlap = t["overlap_h"] if t["overlap_h"] >= 0 else side // (8 if self.tiny else 4)
        self.vae.enable_tiling()
        self.vae.tile_sample_min_size, self.vae.tile_latent_min_size = side, side // SCALE
        self.vae.tile_overlap_factor = overlap / side

    def run(self, first, last, feeds, wants):
        z = torch.from_numpy(feeds[0]).squeeze(2)
        if not self.tiny:
            z = z.double() / self.scaling + self.shift
        with torch.no_grad():
            y = self.vae.decode(z.to(self.dtype)).sample.float()
        return {wants[0]: ((y + 1) / 2 if self.tiny else y).unsqueeze(2).numpy()}


class Diffusers(vp.Backend):
    name, vendor = "diffusers", "Hugging Face"
    version = diffusers.__version__ if diffusers else "absent"
    caps, storage = vp.MODEL | vp.BATCH, [vp.F32]
    tiles = 1 | 1 << TILE_DIFFUSERS | 1 << TILE_TINY

    def open(self, options):
        if diffusers is None:
            raise vp.Unsupported(WHY)

    def prepare(self, q, exchange):
        if "model" not in q:
            raise vp.Unsupported("programs are not taken, model files are")
        return Job(q)


if __name__ == "__main__":
    Diffusers().serve()
