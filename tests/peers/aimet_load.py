#!/usr/bin/env python3
"""Loads the encodings qcalib emits into aimet-onnx, in every schema, and compares what comes back.

    scripts/test-peers --aimet [MODEL...]

A MODEL is an .onnx file, with =INPUT=SHAPE behind it where the file leaves dimensions open
(net.onnx=x=1,3,48,320), or the name of a torchvision model, exported with random weights (resnet50). qcalib
calibrates it on two random samples, with weights per tensor and per channel. AIMET's quantizers take the settings
of the 1.0.0 file (they are AIMET's defaults before); then each file must load strictly, without any mismatch, and
each quantizer must export the very scale, offset, width and symmetry that qcalib wrote. Where AIMET has one quantizer
for two tensors (a convolution and the Relu behind it, sometimes), it must export what one of them has; the output of
a MatMul that AIMET fuses with the Add behind it is no tensor there and is left out. Schemas AIMET does not read
(SNPE's, MQBench's, 0.4.0, 0.5.0) are loaded after `qcalib convert` has made 1.0.0 of them.
"""

import argparse
import json
import logging
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from aimet_onnx.quantsim import QuantizationSimModel, load_encodings_to_sim

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ["aimet-0.6.1", "aimet-1.0.0", "aimet-2.0.0"]
CONVERTED = ["snpe", "mqbench", "aimet-0.4.0", "aimet-0.5.0"]
KINDS = {"per tensor": ["--weights", "per-tensor"], "per channel": ["--weights", "per-channel"]}


def export_torchvision(name: str, folder: Path) -> Path:
    import torch
    import torchvision

    torch.manual_seed(1)
    model = torchvision.models.get_model(name, weights=None).eval()
    path = folder / f"{name}.onnx"
    torch.onnx.export(model, torch.zeros(1, 3, 224, 224), path, input_names=["image"], dynamo=False)
    return path


def random_samples(model: onnx.ModelProto, given: str, folder: Path) -> Path:
    """A list of two samples for a model of one input."""
    initializers = {value.name for value in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in initializers]
    if len(inputs) != 1:
        sys.exit(f"aimet_load: expected a model with one input, found {len(inputs)}")
    shape = [dimension.dim_value for dimension in inputs[0].type.tensor_type.shape.dim]
    if given:
        shape = [int(size) for size in given.split("=")[1].split(",")]
    random = np.random.default_rng(1)
    names = []
    for sample in range(2):
        names.append(f"{sample}.npy")
        np.save(folder / names[-1], random.standard_normal(shape).astype(np.float32))
    (folder / "list.txt").write_text("\n".join(names) + "\n")
    return folder / "list.txt"


def run(*command: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{result.stderr}aimet_load: this failed: {' '.join(command)}")


def entries_of(file: Path) -> dict[str, dict]:
    """The entries of a 1.0.0 file by name."""
    content = json.loads(file.read_text())
    return {entry["name"]: entry for key in ("activation_encodings", "param_encodings") for entry in content[key]}


def fused_away(sim: QuantizationSimModel, model: onnx.ModelProto, wanted: dict[str, dict]) -> set[str]:
    """Outputs of MatMuls that are no tensors of AIMET's graph."""
    products = sim.connected_graph.get_all_products()
    gone = {name for name in wanted if name not in products and name not in sim.qc_quantize_op_dict}
    return gone & {name for node in model.graph.node if node.op_type == "MatMul" for name in node.output}


def loadable(file: Path, gone: set[str]) -> dict:
    """The file without these tensors."""
    content = json.loads(file.read_text())
    for key in ("activation_encodings", "encodings"):
        section = content.get(key, [])
        if isinstance(section, dict):
            content[key] = {name: entry for name, entry in section.items() if name not in gone}
        elif key in content:
            content[key] = [entry for entry in section if entry["name"] not in gone]
    return content


def facts(entry: dict) -> tuple:
    return entry["bw"], entry["is_sym"], [float(offset) for offset in entry["offset"]], entry["scale"]


def tied(sim: QuantizationSimModel, names: set[str]) -> dict[str, list[str]]:
    """By tensor, all tensors that have its quantizer."""
    groups: dict[int, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(id(sim.qc_quantize_op_dict[name]), []).append(name)
    return {name: group for group in groups.values() for name in group}


def same_facts(wanted: dict, found: dict, exact: bool) -> bool:
    *settings, scale = facts(wanted)
    *found_settings, found_scale = facts(found)
    same = scale == found_scale if exact else np.allclose(scale, found_scale, rtol=1e-12, atol=0)
    return settings == found_settings and same


def differing(sim: QuantizationSimModel, wanted: dict[str, dict], exact: bool) -> list[str]:
    """Tensors whose quantizer exports something else than the file has."""
    wrong = []
    for name, group in tied(sim, set(wanted)).items():
        found = sim.qc_quantize_op_dict[name].export_encodings("1.0.0")
        if not found:
            wrong.append(f"{name}: nothing")
        elif not any(same_facts(wanted[one], found, exact) for one in group):
            wrong.append(f"{name}: {facts(found)}, not {facts(wanted[name])}")
    return wrong


def symmetric_lost(schema: str, wanted: dict[str, dict]) -> dict[str, dict]:
    """What a schema leaves of the entries: MQBench's has no symmetry."""
    if schema != "mqbench":
        return wanted
    return {name: {**entry, "is_sym": False} for name, entry in wanted.items()}


def check(qcalib: Path, model_file: Path, given: str, kind: str, folder: Path) -> list[str]:
    model = onnx.load(model_file)
    samples = random_samples(model, given, folder)
    emit = [word for schema in NATIVE + CONVERTED for word in ("--emit", f"snpe:{schema}")]
    shape = ["--shape", given] if given else []
    run(str(qcalib), "--model", str(model_file), "--data", str(samples), *shape, *KINDS[kind], *emit, "-o", str(folder))
    stem = folder / model_file.stem
    files = {schema: Path(f"{stem}.snpe.{schema}.json") for schema in NATIVE + CONVERTED}
    files["snpe"] = Path(f"{stem}.snpe.json")
    wanted = entries_of(files["aimet-1.0.0"])
    logging.disable(logging.CRITICAL)
    original = onnx.load(model_file)
    sim = QuantizationSimModel(model)
    gone = fused_away(sim, original, wanted)
    load_encodings_to_sim(sim, loadable(files["aimet-1.0.0"], gone), strict=False)
    written, wanted = wanted, {name: entry for name, entry in wanted.items() if name not in gone}
    faults = []
    for schema in NATIVE + CONVERTED:
        file = files[schema]
        if schema in CONVERTED:
            file = folder / f"{schema}.converted.json"
            run(str(qcalib), "convert", str(files[schema]), "--to", "aimet-1.0.0", "-o", str(file))
        expected = symmetric_lost(schema, wanted)
        try:
            # MQBench's form has no symmetry, which AIMET's quantizers have by now.
            mismatches = load_encodings_to_sim(sim, loadable(file, gone), strict=schema != "mqbench")
        except (AssertionError, RuntimeError, NotImplementedError, KeyError) as error:
            faults.append(f"{schema}: {error}")
            continue
        if schema != "mqbench" and mismatches:
            faults.append(f"{schema}: {len(mismatches)} mismatches, as {mismatches[0]}")
        if schema in CONVERTED and set(entries_of(file)) != set(written):
            faults.append(f"{schema}: other tensors than 1.0.0 has")
        faults += [f"{schema}: {text}" for text in differing(sim, expected, schema != "mqbench")]
        if schema == "mqbench":
            load_encodings_to_sim(sim, loadable(files["aimet-1.0.0"], gone), strict=False)
    channels = sum(len(entry.get("scale", [])) > 1 for entry in wanted.values())
    shared = sum(len(group) > 1 for group in tied(sim, set(wanted)).values())
    print(f"{model_file.stem}, {kind}: {len(wanted)} entries, {channels} per channel, {shared} whose quantizer is shared, "
          f"{len(gone)} fused away, "
          f"{len(NATIVE + CONVERTED)} schemas: {len(faults)} faults")
    return faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--qcalib", type=Path, default=ROOT / "build" / "release" / "qcalib")
    arguments = parser.parse_args()
    if not arguments.qcalib.exists():
        sys.exit(f"aimet_load: {arguments.qcalib} is not there: build it first, or name it with --qcalib")
    faults = []
    for text in arguments.models:
        name, _, given = text.partition("=")
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary)
                model = Path(name) if name.endswith(".onnx") else export_torchvision(name, folder)
                faults += [f"{model.stem}, {kind}: {fault}" for fault in check(arguments.qcalib, model, given, kind, folder)]
    if faults:
        sys.exit("\n".join(faults[:40]) + f"\naimet_load: {len(faults)} faults")


if __name__ == "__main__":
    main()
