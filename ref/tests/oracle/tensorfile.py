"""Reads and writes safetensors files with numpy alone.

The scripts that make the oracle's fixtures must run on Debian's python3-torch,
which has no safetensors package. Same tensors in, same bytes out.

SPDX-License-Identifier: MIT
"""
import hashlib
import json
import struct

import numpy as np

NUMPY = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}
NAMES = {np.dtype(v): k for k, v in NUMPY.items()}


def read(path):
    """{name: array}, {metadata}; BF16 widened to f32, which is exact."""
    with open(path, "rb") as f:
        blob = f.read()
    (size,) = struct.unpack("<Q", blob[:8])
    header = json.loads(blob[8 : 8 + size])
    meta = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        raw = blob[8 + size + begin : 8 + size + end]
        if entry["dtype"] == "BF16":
            array = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            array = np.frombuffer(raw, NUMPY[entry["dtype"]])
        tensors[name] = array.reshape(entry["shape"])
    return tensors, meta


def write(path, tensors, meta):
    """Writes in the order of `tensors`; header padded to a multiple of 8."""
    header, offset, parts = {"__metadata__": meta}, 0, []
    for name, array in tensors.items():
        array = np.ascontiguousarray(array)
        raw = array.tobytes()
        header[name] = {
            "dtype": NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + len(raw)],
        }
        offset += len(raw)
        parts.append(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()
