#!/usr/bin/env python3
"""Writes a model with about GIB gibibytes of weights in external data, and two samples: large_model.py FOLDER [GIB].

A chain of products of matrices [N, N] with random weights of a size that keeps activations near 1.
"""
import sys
from pathlib import Path
import numpy as np, onnx
from onnx import TensorProto, helper
SIZE = 8192
def main():
    folder = Path(sys.argv[1]); folder.mkdir(parents=True, exist_ok=True)
    count = max(1, round(float(sys.argv[2] if len(sys.argv) > 2 else 3) * 2**30 / (SIZE * SIZE * 4)))
    random = np.random.default_rng(1)
    nodes, weights = [], []
    with open(folder / "weights.bin", "wb") as data:
        for i in range(count):
            weight = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[SIZE, SIZE], data_location=TensorProto.EXTERNAL)
            for key, value in (("location", "weights.bin"), ("offset", str(data.tell())), ("length", str(SIZE * SIZE * 4))):
                weight.external_data.add(key=key, value=value)
            weights.append(weight)
            for _ in range(16):
                data.write((random.standard_normal((SIZE // 16, SIZE), dtype=np.float32) / np.sqrt(SIZE)).astype(np.float32).tobytes())
            nodes.append(helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]))
    io = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, SIZE]) for n in ("x0", f"x{count}")]
    graph = helper.make_graph(nodes, "large", [io[0]], [io[1]], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]); model.ir_version = 8
    (folder / "large.onnx").write_bytes(model.SerializeToString())
    for i in range(2):
        np.save(folder / f"sample{i}.npy", random.standard_normal((1, SIZE), dtype=np.float32))
    (folder / "list.txt").write_text("sample0.npy\nsample1.npy\n")
main()
