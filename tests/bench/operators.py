#!/usr/bin/env python3
"""Times single operators in qcalib and onnxruntime, one thread each, taking turns: operators.py [NAME...]

Each is a model of one node with the shapes that it has in networks; NAMEs choose those whose name begins so. Printed are
medians of the thread's CPU time in microseconds and their ratio.
"""

import math
import statistics
import sys
import tempfile

import numpy as np
import onnx
from forward import ROOT, measure
from onnx import TensorProto, helper, numpy_helper

Shape = tuple[int, ...]
# name, operator, shapes of inputs, shapes or values of initializers, attributes
CASES: list[tuple[str, str, list[Shape], list, dict]] = [
    ("Conv 3x3 64-64 56x56", "Conv", [(1, 64, 56, 56)], [(64, 64, 3, 3), (64,)], {"pads": [1, 1, 1, 1]}),
    ("Conv 1x1 256-64 56x56", "Conv", [(1, 256, 56, 56)], [(64, 256, 1, 1), (64,)], {}),
    ("Conv depthwise 3x3 96 56x56", "Conv", [(1, 96, 56, 56)], [(96, 1, 3, 3), (96,)], {"pads": [1, 1, 1, 1], "group": 96}),
    ("ConvTranspose 2x2 24-24 160x160", "ConvTranspose", [(1, 24, 160, 160)], [(24, 24, 2, 2)], {"strides": [2, 2]}),
    ("MatMul 197x384x1536", "MatMul", [(1, 197, 384)], [(384, 1536)], {}),
    ("MatMul attention 6x197x64x197", "MatMul", [(1, 6, 197, 64), (1, 6, 64, 197)], [], {}),
    ("Gemm 1x1280x1000", "Gemm", [(1, 1280)], [(1000, 1280), (1000,)], {"transB": 1}),
    ("LayerNormalization 197x384", "LayerNormalization", [(1, 197, 384)], [(384,), (384,)], {"axis": -1}),
    ("Softmax 6x197x197", "Softmax", [(1, 6, 197, 197)], [], {"axis": -1}),
    ("Softmax 4420x2", "Softmax", [(1, 4420, 2)], [], {"axis": -1}),
    ("Erf 197x1536", "Erf", [(1, 197, 1536)], [], {}),
    ("Sigmoid 96x112x112", "Sigmoid", [(1, 96, 112, 112)], [], {}),
    ("HardSigmoid 96x56x56", "HardSigmoid", [(1, 96, 56, 56)], [], {}),
    ("HardSwish 96x56x56", "HardSwish", [(1, 96, 56, 56)], [], {}),
    ("Relu 64x112x112", "Relu", [(1, 64, 112, 112)], [], {}),
    ("Add 256x56x56", "Add", [(1, 256, 56, 56), (1, 256, 56, 56)], [], {}),
    ("Mul by channel 96x56x56", "Mul", [(1, 96, 56, 56), (1, 96, 1, 1)], [], {}),
    ("Transpose 6x197x64", "Transpose", [(1, 197, 6, 64)], [], {"perm": [0, 2, 1, 3]}),
    ("Concat 4 of 64x28x28", "Concat", [(1, 64, 28, 28)] * 4, [], {"axis": 1}),
    ("Resize x2 24x80x80", "Resize", [(1, 24, 80, 80)], [np.zeros(0, np.float32), np.array([1, 1, 2, 2], np.float32)],
     {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
    ("MaxPool 3x3 64x112x112", "MaxPool", [(1, 64, 112, 112)], [], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ("GlobalAveragePool 960x7x7", "GlobalAveragePool", [(1, 960, 7, 7)], [], {}),
    ("ReduceMean 197x384", "ReduceMean", [(1, 197, 384)], [], {"axes": [-1]}),
    ("BatchNormalization 64x56x56", "BatchNormalization", [(1, 64, 56, 56)], [(64,), (64,), (64,), np.ones(64, np.float32)], {}),
]


def write_model(path: str, operator: str, inputs: list[Shape], constants: list, attributes: dict) -> None:
    random = np.random.default_rng(2)
    names = [f"x{i}" for i in range(len(inputs))]
    values = [constant if isinstance(constant, np.ndarray) else
              (random.standard_normal(constant) / math.sqrt(max(1, math.prod(constant[1:])))).astype(np.float32)
              for constant in constants]
    initializers = [numpy_helper.from_array(value, f"c{i}") for i, value in enumerate(values)]
    node = helper.make_node(operator, names + [tensor.name for tensor in initializers], ["y"], **attributes)
    graph = helper.make_graph(
        [node], "one", [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip(names, inputs)],
        [helper.make_empty_tensor_value_info("y")], initializers)
    graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)


def main() -> None:
    tool = ROOT / "build/release/tests/bench/run_model"
    ratios = []
    print(f"{'operator':34} {'peer us':>9} {'qcalib us':>10} {'ratio':>6}")
    for name, operator, inputs, constants, attributes in CASES:
        if len(sys.argv) > 1 and not any(name.startswith(word) for word in sys.argv[1:]):
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/{operator}.onnx"
            write_model(path, operator, inputs, constants, attributes)
            times = measure(tool, path, {}, ["forward"], "best")
        ratios.append(times["forward"] / times["peer"])
        print(f"{name:34} {times['peer']:9.1f} {times['forward']:10.1f} {ratios[-1]:6.2f}", flush=True)
    if ratios:
        print(f"{'geometric mean':55} {math.exp(statistics.fmean(map(math.log, ratios))):6.2f}")


if __name__ == "__main__":
    main()
