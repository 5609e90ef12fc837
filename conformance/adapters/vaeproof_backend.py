"""The vaecheck protocol in Python (docs/spec/plugin.md, A4): subclass Backend, call serve().

numpy alone. A backend implements prepare(job) -> object with run(first, last, feeds, wants)
and raises Unsupported for what it cannot do. Arrays are float32 or float64; 16-bit floats are
converted here, so that bfloat16 needs no type of its own.
SPDX-License-Identifier: MIT
"""
import json
import os
import socket
import struct
import sys

import numpy as np

F64, F32, F16, BF16 = 1, 2, 3, 4
OPS = ["input", "conv2d", "group_norm", "silu", "relu", "tanh_clamp", "upsample_nearest", "attention", "add", "scale_shift",
       "unpack", "clamp"]
PROGRAM, RANGE, TAPS, MODEL, STRIDES, BATCH, DETERMINISTIC = (1 << k for k in (0, 1, 2, 3, 4, 5, 10))
RAW = {F64: np.float64, F32: np.float32, F16: np.float16, BF16: np.uint16}


class Unsupported(Exception):
    """Right, but not by this backend (code -2)."""


def to_float(raw, dtype):
    if dtype == BF16:
        return (raw.astype(np.uint32) << 16).view(np.float32)
    return np.array(raw, dtype=np.float64 if dtype == F64 else np.float32)


def from_float(x, dtype):
    if dtype != BF16:
        return np.asarray(x).astype(RAW[dtype])
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    up = ((bits >> 16) & 1) + 0x7FFF  # to nearest, ties to even
    return np.where(np.isnan(x), 0x7FC0, (bits + up) >> 16).astype(np.uint16)


class Exchange:
    def __init__(self):
        self.folder = os.environ["VAEPROOF_DIR"]

    def view(self, t):
        """The elements of a tensor in its shared file, writable."""
        size = np.dtype(RAW[t["dtype"]]).itemsize
        flat = np.memmap(os.path.join(self.folder, t["file"]), dtype=np.uint8, mode="r+")
        part = flat[t["offset"]:t["offset"] + t["bytes"]].view(RAW[t["dtype"]])
        return np.lib.stride_tricks.as_strided(part, t["dim"], [s * size for s in t["stride"]])

    def weights(self, q):
        path = os.path.join(self.folder, q.get("weights", "weights"))
        blob = np.fromfile(path, dtype=np.uint8) if q["program"]["weights"] else np.zeros(0, np.uint8)
        out = []
        for w in q["program"]["weights"]:
            n = int(np.prod(w["dim"])) * np.dtype(RAW[w["dtype"]]).itemsize
            raw = blob[w["offset"]:w["offset"] + n].view(RAW[w["dtype"]])
            out.append(to_float(raw, w["dtype"]).reshape(w["dim"]))
        return out


class Backend:
    name, version, vendor, device = "python", "1", "", "CPU"
    caps, storage, ops, tiles = PROGRAM, [F32], OPS, 1

    def open(self, options):
        pass

    def prepare(self, q, exchange):
        raise Unsupported("nothing is implemented")

    def hello(self):
        return {"abi_major": 1, "abi_minor": 0, "name": self.name, "version": self.version, "vendor": self.vendor,
                "device": self.device, "caps": self.caps, "storage": sum(1 << s for s in self.storage), "tiles": self.tiles,
                "ops": sum(1 << OPS.index(o) for o in self.ops), "half_sums": 0}

    def check(self, q):
        """What every backend refuses."""
        if q["storage"] not in self.storage:
            raise Unsupported("storage %s is not claimed" % q["storage"])
        if not self.tiles >> q["tile"]["mode"] & 1:
            raise Unsupported("tile mode %d is not claimed" % q["tile"]["mode"])
        for op in q.get("program", {}).get("ops", []):
            if op["kind"] >= len(OPS) or OPS[op["kind"]] not in self.ops + ["input"]:
                raise Unsupported("operation kind %d is not claimed" % op["kind"])
        if "program" in q and q["latent"][1] != q["program"]["ops"][0]["channels"]:
            raise ValueError("latent of %d channels; want %d" % (q["latent"][1], q["program"]["ops"][0]["channels"]))

    def answer(self, q, state):
        verb = q["verb"]
        if verb == "hello":
            return self.hello()
        if verb == "open":
            self.open(q.get("options"))
        elif verb == "prepare":
            self.check(q)
            state["job"] = self.prepare(q, state["exchange"])
        elif verb == "run":
            view = state["exchange"].view
            feeds = {f["value"]: to_float(view(f["tensor"]), f["tensor"]["dtype"]) for f in q["feed"]}
            made = state["job"].run(q["first"], q["last"], feeds, [w["value"] for w in q["want"]])
            for w in q["want"]:
                view(w["tensor"])[...] = from_float(made[w["value"]], w["tensor"]["dtype"]).reshape(w["tensor"]["dim"])
        elif verb in ("close", "release", "inject", "ping"):
            return {"live": 0, "allocations": 0}
        else:
            raise Unsupported("verb '%s'" % verb)
        return {"done": True}

    def serve(self):
        s = socket.socket(fileno=int(os.environ["VAEPROOF_FD"]))
        state = {"exchange": Exchange(), "job": None}

        def send(kind, body):
            text = json.dumps(body).encode()
            s.sendall(struct.pack("<I", len(text)) + kind + text)

        def receive(n):
            data = b""
            while len(data) < n:
                part = s.recv(n - len(data))
                if not part:
                    sys.exit(0)
                data += part
            return data

        send(b"A", {"loaded": True})
        while True:
            (n,) = struct.unpack("<I", receive(4))
            receive(1)
            try:
                send(b"A", self.answer(json.loads(receive(n)), state))
            except Unsupported as e:
                send(b"E", {"code": -2, "text": str(e)})
            except (ValueError, KeyError, IndexError, TypeError, AttributeError) as e:
                send(b"E", {"code": -1, "text": "%s: %s" % (type(e).__name__, e)})
