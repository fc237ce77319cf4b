#!/usr/bin/env python3
"""Writes a copy of a model in which all float16 is float32: weights, casts, declared types.

    float32_copy.py MODEL.onnx COPY.onnx

For networks that are published with float16 weights only, as ISNet: the peer then computes in float32 too.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper


def widen(tensor):
    if tensor.data_type == TensorProto.FLOAT16:
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), name))


def widen_type(value):
    if value.type.tensor_type.elem_type == TensorProto.FLOAT16:
        value.type.tensor_type.elem_type = TensorProto.FLOAT


def widen_graph(graph):
    for tensor in graph.initializer:
        widen(tensor)
    for value in [*graph.input, *graph.output, *graph.value_info]:
        widen_type(value)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                widen(attribute.t)
            if attribute.HasField("g"):
                widen_graph(attribute.g)
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT16:
                attribute.i = TensorProto.FLOAT


def main():
    source, target = sys.argv[1:]
    model = onnx.load(source)
    widen_graph(model.graph)
    onnx.save(model, target)


if __name__ == "__main__":
    main()
