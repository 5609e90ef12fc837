"""PyTorch as a backend: every operation of a program by torch.nn.functional.

  vaecheck --backend py:conformance/adapters/torch_backend.py
f32 as torch computes it; bf16 and f16 storage by rounding between operations. Debian's
python3-torch will do. SPDX-License-Identifier: MIT
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import vaeproof_backend as vp  # noqa: E402

try:
    import torch
    from torch.nn import functional as F
except ImportError:
    torch = None

DTYPES = {} if torch is None else {vp.F64: torch.float64, vp.F32: torch.float32, vp.F16: torch.float16, vp.BF16: torch.bfloat16}


def convolve(x, w, b):
    """As a matrix product. F.conv2d may take Winograd with large tiles (NNPACK, for 3 x 3), whose f32
    error is 3 to 4 times that of plain sums: more than clause J allows an f32 backend."""
    co, ci, kh, kw = w.shape
    h, width = x.shape[2] - kh + 1, x.shape[3] - kw + 1
    y = w.reshape(co, ci * kh * kw) @ F.unfold(x, (kh, kw))
    return (y if b is None else y + b.view(1, -1, 1)).reshape(x.shape[0], co, h, width)


class Job:
    def __init__(self, q, exchange):
        self.ops, self.storage = q["program"]["ops"], DTYPES[q["storage"]]
        self.compute = torch.float64 if q["storage"] == vp.F64 else torch.float32
        self.weights = [torch.from_numpy(w).to(self.compute) for w in exchange.weights(q)]
        self.n, self.c, self.t, self.h, self.w = q["latent"]
        torch.set_num_threads(max(1, q.get("threads", 0) or os.cpu_count()))

    def one(self, op, x):
        i, f = op["i"], op["f"]
        w = [None if k < 0 else self.weights[k] for k in op["weight"]]
        kind = vp.OPS[op["kind"]]
        if kind == "conv2d":
            return convolve(F.pad(x[0], (i[4], i[5], i[2], i[3])), w[0], w[1])
        if kind == "group_norm":
            return F.group_norm(x[0], i[0], w[0], w[1], f[0])
        if kind == "silu":
            return F.silu(x[0])
        if kind == "relu":
            return F.relu(x[0])
        if kind == "tanh_clamp":
            return f[0] * torch.tanh(x[0] / f[0])
        if kind == "upsample_nearest":
            return x[0].repeat_interleave(i[1], 2).repeat_interleave(i[2], 3)
        if kind == "attention":
            n, c, h, width = x[0].shape
            q, k, v = (y.reshape(n, c, h * width).transpose(1, 2) for y in x)
            return (torch.softmax(q @ k.transpose(1, 2) * f[0], -1) @ v).transpose(1, 2).reshape(n, c, h, width)
        if kind == "add":
            return x[0] + x[1]
        if kind == "scale_shift":
            scale, shift = (torch.tensor(t, dtype=torch.float64).view(1, -1, 1, 1) for t in op["table"])
            return (x[0].double() * scale + shift).to(self.compute)
        if kind == "unpack":
            n, c, h, width = x[0].shape
            fh, fw = i[0], i[1]
            y = x[0].reshape(n, c // (fh * fw), fh, fw, h, width).permute(0, 1, 4, 2, 5, 3)
            return y.reshape(n, c // (fh * fw), h * fh, width * fw)
        return torch.clamp(x[0], f[0], f[1])

    def run(self, first, last, feeds, wants):
        if not 1 <= first <= last < len(self.ops):
            raise ValueError("operations %d..%d; want a range within 1..%d" % (first, last, len(self.ops) - 1))
        values = {k: torch.from_numpy(v).to(self.compute).squeeze(2) for k, v in feeds.items()}
        used = {k: i for i in range(first, last + 1) for k in self.ops[i]["in"] if k >= 0}
        with torch.no_grad():
            for i in range(first, last + 1):
                y = self.one(self.ops[i], [values[k] for k in self.ops[i]["in"] if k >= 0])
                values[i] = y.to(self.storage).to(self.compute)
                for k in [k for k in values if used.get(k) == i and k not in wants]:
                    del values[k]
        return {k: values[k].unsqueeze(2).numpy() for k in wants}


class Torch(vp.Backend):
    name, vendor = "torch", "PyTorch"
    version = torch.__version__ if torch else "absent"
    caps = vp.PROGRAM | vp.RANGE | vp.TAPS | vp.BATCH | vp.STRIDES
    storage = [vp.F64, vp.F32, vp.F16, vp.BF16]

    def open(self, options):
        if torch is None:
            raise vp.Unsupported("PyTorch is not installed (apt-get install python3-torch)")

    def prepare(self, q, exchange):
        return Job(q, exchange)


if __name__ == "__main__":
    Torch().serve()
