"""ONNX Runtime as a backend: the range that is asked for becomes an ONNX graph.

  VAEPROOF_PYTHON=venv/bin/python vaecheck --backend py:conformance/adapters/onnxruntime_backend.py
f32, CPU provider. SPDX-License-Identifier: MIT
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np  # noqa: E402

import vaeproof_backend as vp  # noqa: E402

try:
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
    WHY = ""
except ImportError as e:
    onnx, WHY = None, "%s is not installed (pip install onnx onnxruntime)" % e.name


class Graph:
    def __init__(self, weights):
        self.nodes, self.constants, self.weights, self.names = [], [], weights, 0

    def name(self):
        self.names += 1
        return "t%d" % self.names

    def const(self, array):
        n = self.name()
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), n))
        return n

    def node(self, kind, inputs, **attributes):
        out = self.name()
        self.nodes.append(helper.make_node(kind, inputs, [out], **attributes))
        return out

    def reshape(self, x, dims):
        return self.node("Reshape", [x, self.const(np.array(dims, np.int64))])

    def one(self, op, x, shapes):
        kind, i, f = vp.OPS[op["kind"]], op["i"], op["f"]
        w = [None if k < 0 else self.weights[k].astype(np.float32) for k in op["weight"]]
        n, c, h, width = shapes[0]
        if kind == "conv2d":
            return self.node("Conv", [x[0], self.const(w[0])] + ([] if w[1] is None else [self.const(w[1])]),
                             pads=[i[2], i[4], i[3], i[5]])
        if kind == "group_norm":
            flat = self.reshape(x[0], [n, i[0], -1])
            ones, zeros = self.const(np.ones(i[0], np.float32)), self.const(np.zeros(i[0], np.float32))
            y = self.reshape(self.node("InstanceNormalization", [flat, ones, zeros], epsilon=f[0]), [n, c, h, width])
            y = self.node("Mul", [y, self.const(w[0].reshape(1, c, 1, 1))])
            return self.node("Add", [y, self.const(w[1].reshape(1, c, 1, 1))])
        if kind == "silu":
            return self.node("Mul", [x[0], self.node("Sigmoid", [x[0]])])
        if kind == "relu":
            return self.node("Relu", [x[0]])
        if kind == "tanh_clamp":
            limit = self.const(np.float32(f[0]))
            return self.node("Mul", [self.node("Tanh", [self.node("Div", [x[0], limit])]), limit])
        if kind == "upsample_nearest":
            scales = self.const(np.array([1, 1, i[1], i[2]], np.float32))
            return self.node("Resize", [x[0], "", scales], mode="nearest", nearest_mode="floor",
                             coordinate_transformation_mode="asymmetric")
        if kind == "attention":
            q, k, v = (self.reshape(y, [n, c, h * width]) for y in x)
            score = self.node("MatMul", [self.node("Transpose", [q], perm=[0, 2, 1]), k])
            p = self.node("Softmax", [self.node("Mul", [score, self.const(np.float32(f[0]))])], axis=-1)
            y = self.node("MatMul", [v, self.node("Transpose", [p], perm=[0, 2, 1])])
            return self.reshape(y, [n, c, h, width])
        if kind == "add":
            return self.node("Add", x)
        if kind == "scale_shift":
            scale, shift = (self.const(np.array(t, np.float32).reshape(1, c, 1, 1)) for t in op["table"])
            return self.node("Add", [self.node("Mul", [x[0], scale]), shift])
        if kind == "unpack":
            y = self.reshape(x[0], [n, c // (i[0] * i[1]), i[0], i[1], h, width])
            y = self.node("Transpose", [y], perm=[0, 1, 4, 2, 5, 3])
            return self.reshape(y, [n, c // (i[0] * i[1]), h * i[0], width * i[1]])
        return self.node("Clip", [x[0], self.const(np.float32(f[0])), self.const(np.float32(f[1]))])


def shape_after(op, s):
    n, _, h, w = s
    kind, i = vp.OPS[op["kind"]], op["i"]
    if kind == "conv2d":
        h, w = h + i[2] + i[3] - i[0] + 1, w + i[4] + i[5] - i[1] + 1
    elif kind == "upsample_nearest":
        h, w = h * i[1], w * i[2]
    elif kind == "unpack":
        h, w = h * i[0], w * i[1]
    return [n, op["channels"], h, w]


class Job:
    def __init__(self, q, exchange):
        self.ops, self.weights, self.sessions = q["program"]["ops"], exchange.weights(q), {}
        self.threads = max(1, q.get("threads", 0) or os.cpu_count())

    def session(self, first, last, feeds, wants):
        g, names = Graph(self.weights), {k: "in%d" % k for k in feeds}
        shapes = {k: [v.shape[0], v.shape[1], v.shape[3], v.shape[4]] for k, v in feeds.items()}
        inputs = [helper.make_tensor_value_info(names[k], TensorProto.FLOAT, shapes[k]) for k in feeds]
        for i in range(first, last + 1):
            read = [k for k in self.ops[i]["in"] if k >= 0]
            names[i] = g.one(self.ops[i], [names[k] for k in read], [shapes[k] for k in read])
            shapes[i] = shape_after(self.ops[i], shapes[read[0]])
        outputs = [helper.make_tensor_value_info(names[k], TensorProto.FLOAT, shapes[k]) for k in wants]
        graph = helper.make_graph(g.nodes, "range", inputs, outputs, g.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        o = onnxruntime.SessionOptions()
        o.intra_op_num_threads = self.threads
        return onnxruntime.InferenceSession(model.SerializeToString(), o, providers=["CPUExecutionProvider"])

    def run(self, first, last, feeds, wants):
        if not 1 <= first <= last < len(self.ops):
            raise ValueError("operations %d..%d; want a range within 1..%d" % (first, last, len(self.ops) - 1))
        key = (first, last, tuple(wants))
        if key not in self.sessions:
            self.sessions[key] = self.session(first, last, feeds, wants)
        out = self.sessions[key].run(None, {"in%d" % k: np.ascontiguousarray(v.squeeze(2)) for k, v in feeds.items()})
        return {k: y[:, :, None] for k, y in zip(wants, out)}


class Onnx(vp.Backend):
    name, vendor = "onnxruntime", "Microsoft"
    version = onnxruntime.__version__ if onnx else "absent"
    caps, storage = vp.PROGRAM | vp.RANGE | vp.TAPS | vp.BATCH | vp.STRIDES, [vp.F32]

    def open(self, options):
        if onnx is None:
            raise vp.Unsupported(WHY)

    def prepare(self, q, exchange):
        return Job(q, exchange)


if __name__ == "__main__":
    Onnx().serve()
