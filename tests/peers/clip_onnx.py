#!/usr/bin/env python3
"""Runs the models with Clip nodes that qcalib writes for TIDL in onnxruntime.

    scripts/test-peers --clips [MODEL...]

A MODEL is an .onnx file, with =INPUT=SHAPE behind it where the file leaves dimensions open
(net.onnx=x=1,3,48,320). qcalib calibrates it on two random samples and writes all files of the target tidl, once with
the extremes of the data as ranges and once with the target's own method. Then
- the ONNX checker takes the model, its inputs and outputs are those of the original, names and order included, and
  so is the set of tensors, but for those before an inserted Clip;
- each Clip is from 0 to c or from -c to c, with c a power of two unless the model's own Clip was kept;
- every output of a Clip, on the two samples and on one three times as large, lies inside its bounds;
- with the extremes as ranges, the two samples give the outputs of the original model to 1e-5 of the largest;
- the parameter file is the same bytes after a patch with the same ranges.
"""

import argparse
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]


def free_inputs(model: onnx.ModelProto) -> list:
    initializers = {value.name for value in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initializers]


def make_samples(model: onnx.ModelProto, given: str, folder: Path) -> tuple[str, list[np.ndarray]]:
    inputs = free_inputs(model)
    if len(inputs) != 1:
        sys.exit(f"clip_onnx: expected a model with one input, found {len(inputs)}")
    shape = [dimension.dim_value for dimension in inputs[0].type.tensor_type.shape.dim]
    if given:
        shape = [int(size) for size in given.split("=")[1].split(",")]
    random = np.random.default_rng(1)
    samples = [random.standard_normal(shape).astype(np.float32) for _ in range(2)]
    for number, sample in enumerate(samples):
        np.save(folder / f"{number}.npy", sample)
    (folder / "list.txt").write_text("0.npy\n1.npy\n")
    return inputs[0].name, samples


def run(model: onnx.ModelProto, folder: Path, name: str, sample: np.ndarray, wanted: list[str]) -> dict:
    path = folder / "run.onnx"
    onnx.save(model, path)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return dict(zip(wanted, session.run(wanted, {name: sample})))


def clips_of(model: onnx.ModelProto) -> dict[str, tuple[float, float]]:
    constants = {value.name: onnx.numpy_helper.to_array(value) for value in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            constants[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)
    clips = {}
    for node in model.graph.node:
        if node.op_type != "Clip":
            continue
        attributes = {attribute.name: attribute.f for attribute in node.attribute}
        bounds = [float(constants[name]) for name in node.input[1:3] if name in constants]
        if len(bounds) != 2:
            bounds = [attributes["min"], attributes["max"]]
        clips[node.output[0]] = (bounds[0], bounds[1])
    return clips


def check_form(original: onnx.ModelProto, clipped: onnx.ModelProto, clips: dict) -> list[str]:
    faults = []
    own = clips_of(original)
    for side in ("input", "output"):
        names = [[value.name for value in getattr(model.graph, side)] for model in (original, clipped)]
        if names[0] != names[1]:
            faults.append(f"{side}s are {names[1]}, expected {names[0]}")
    for tensor, (low, high) in clips.items():
        if low not in (0.0, -high) or not high > 0:
            faults.append(f"the Clip of {tensor} is {low} to {high}")
        if math.log2(high) != round(math.log2(high)) and own.get(tensor, (0, 0))[1] != high:
            faults.append(f"the Clip of {tensor} ends at {high}, which is no power of two")
    made = {name for node in clipped.graph.node for name in node.output}
    faults += [f"{name} is lost" for node in original.graph.node if node.op_type != "Constant" for name in node.output if name not in made]
    return faults


def check_values(original: onnx.ModelProto, clipped: onnx.ModelProto, clips: dict, name: str, samples: list,
                 folder: Path, same: bool) -> list[str]:
    faults = []
    outputs = [value.name for value in original.graph.output]
    watched = onnx.ModelProto()
    watched.CopyFrom(clipped)
    known = set(outputs)
    watched.graph.output.extend(onnx.helper.make_tensor_value_info(tensor, onnx.TensorProto.FLOAT, None)
                                for tensor in clips if tensor not in known)
    wanted = outputs + [tensor for tensor in clips if tensor not in known]
    for number, sample in enumerate([*samples, 3 * samples[0]]):
        values = run(watched, folder, name, sample, wanted)
        for tensor, (low, high) in clips.items():
            if values[tensor].size and not (values[tensor].min() >= low and values[tensor].max() <= high):
                faults.append(f"sample {number}: {tensor} lies in {values[tensor].min()} to {values[tensor].max()}, "
                              f"its Clip is {low} to {high}")
        if not same or number == len(samples):
            continue
        for tensor, expected in run(original, folder, name, sample, outputs).items():
            error = np.abs(values[tensor] - expected).max()
            if error > 1e-5 * np.abs(expected).max():
                faults.append(f"sample {number}: output {tensor} is off by {error}")
    return faults


def check_model(qcalib: str, argument: str) -> list[str]:
    file, _, given = argument.partition("=")
    original = onnx.load(file)
    faults = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        name, samples = make_samples(original, given, folder)
        for method in ("minmax", "mean"):
            stem = folder / method / Path(file).stem
            command = [qcalib, "--model", file, "--data", str(folder / "list.txt"), "--emit", "tidl", "--method", method,
                       "-o", str(stem.parent), "--quiet"]
            subprocess.run(command + (["--shape", given] if given else []), check=True, stderr=subprocess.DEVNULL)
            path = f"{stem}.tidl.onnx"
            onnx.checker.check_model(path)
            clipped = onnx.load(path)
            clips = clips_of(clipped)
            faults += check_form(original, clipped, clips)
            faults += check_values(original, clipped, clips, name, samples, folder, method == "minmax")
            patched = [qcalib, "emit", "--stats", f"{stem}.qstats", "--model", file, "--emit", "tidl:tidl-prototxt",
                       "--method", method, "--patch", f"{stem}.tidl.prototxt", "-o", str(folder / "patched")]
            subprocess.run(patched, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            written = Path(f"{stem}.tidl.prototxt").read_bytes()
            if (folder / "patched" / f"{Path(file).stem}.tidl.prototxt").read_bytes() != written:
                faults.append(f"{method}: the patched parameters are not the same bytes")
            layers = written.count(b"layers {")
            print(f"  {method}: {len(clips)} Clips, {len(clips_of(original))} of them the model's own; {layers} layers")
    return faults


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--qcalib", default=str(ROOT / "build/release/qcalib"))
    parser.add_argument("models", nargs="+")
    arguments = parser.parse_args()
    failed = []
    for argument in arguments.models:
        print(f"== {argument}")
        faults = check_model(arguments.qcalib, argument)
        print("\n".join(f"  {fault}" for fault in faults[:20]) if faults else "  as it should be")
        if faults:
            failed.append(argument)
    if failed:
        sys.exit(f"clip_onnx: failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
