#!/usr/bin/env python3
"""Compares every float tensor qcalib's executor makes with onnxruntime's, over all samples of a list.

    scripts/test-peers --model M --pictures DIR [--limit N] [OPTION...]
    scripts/test-peers --model M --inputs ids=a.npy mask=b.npy --inputs ids=c.npy mask=d.npy [OPTION...]

OPTIONs that this script does not know (--resize, --mean, --std, --shape, --isa, ...) go to dump_tensors, which
reads and preprocesses the samples; onnxruntime gets the very inputs that qcalib used, all optimisation off.

The rule: |a-b| <= 3e-5 M + 1e-4 |b| for each element, b the peer's, M the largest |b| of that tensor over all
samples. A tensor beyond it passes, and is listed, if a float64 run on the reference kernels is no more than four
times further from qcalib's values than from the peer's; a distance is that of the farthest element over all
samples. Both take denormal numbers as zero.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
PICTURES = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
ABSOLUTE, RELATIVE, REFERENCE_FACTOR = 3e-5, 1e-4, 4.0

Inputs = dict[str, Path]  # .npy files of one sample, by input


@dataclass
class Agreement:
    """What is kept of one tensor: its largest |b|, and the largest |a-b| - RELATIVE |b|."""

    largest: float = 0.0
    excess: float = -np.inf

    def add(self, sample: int, ours: np.ndarray, peer: np.ndarray) -> None:
        if ours.shape != peer.shape:
            sys.exit(f"sample {sample}: shape {ours.shape} here, {peer.shape} in onnxruntime")
        differs = (ours != peer) & ~(np.isnan(ours) & np.isnan(peer))
        finite = np.abs(peer[np.isfinite(peer)]) if not np.isfinite(peer).all() else np.abs(peer)
        self.largest = max(self.largest, float(finite.max(initial=0)))
        with np.errstate(invalid="ignore"):
            excess = np.abs(ours[differs] - peer[differs]) - RELATIVE * np.abs(peer[differs])
        self.excess = max(self.excess, float(np.nan_to_num(excess, nan=np.inf).max(initial=-np.inf)))

    @property
    def allowed(self) -> float:
        return ABSOLUTE * self.largest

    def is_beyond(self) -> bool:
        return self.excess > self.allowed

    def share(self) -> float:
        """The part of the allowed difference that is used."""
        return 0.0 if self.excess <= 0 else self.excess / self.allowed if self.allowed > 0 else np.inf


class Dump:
    """A folder that dump_tensors wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        index = json.loads((folder / "index.json").read_text())
        self.files = {entry["name"]: entry["file"] for entry in index}

    def __getitem__(self, name: str) -> np.ndarray:
        return np.load(self.folder / self.files[name])


class Qcalib:
    """Runs dump_tensors."""

    def __init__(self, tool: Path, model: Path, samples: Path, options: list[str]) -> None:
        self.command = [str(tool), "--model", str(model), "--data", str(samples), *options]

    def dump(self, sample: int, folder: str, *options: str) -> Dump:
        command = [*self.command, "--sample", str(sample), "-o", folder, *options]
        if subprocess.run(command).returncode != 0:
            sys.exit(f"this failed: {' '.join(command)}")
        return Dump(Path(folder))

    def reference(self, sample: int, folder: str, names: list[str]) -> Dump:
        wanted = [argument for name in names for argument in ("--tensor", name)]
        return self.dump(sample, folder, "--reference-kernels", "--float64", *wanted)


class Peer:
    """onnxruntime with every tensor of the model made an output, nothing optimised, denormals taken as zero."""

    name = "onnxruntime"

    def __init__(self, path: Path) -> None:
        model = onnx.load(path)
        known = {value.name for value in model.graph.output}
        for name in (output for node in model.graph.node for output in node.output):
            if name and name not in known:
                model.graph.output.append(onnx.ValueInfoProto(name=name))
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
        self.session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self.inputs = [value.name for value in self.session.get_inputs()]
        self.outputs = [value.name for value in self.session.get_outputs() if value.type == "tensor(float)"]

    def run(self, dump: Dump, given: Inputs, names: list[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Float inputs as qcalib saw them; others, which are not dumped, from the sample's own files."""
        if lacking := [name for name in self.inputs if name not in dump.files and name not in given]:
            sys.exit(f"no values for inputs {', '.join(lacking)}, which are not float: give --inputs")
        inputs = {name: dump[name] if name in dump.files else np.load(given[name]) for name in self.inputs}
        values = self.session.run(names, inputs)
        while values:
            yield names[len(values) - 1], values.pop()


def compare(qcalib: Qcalib, peer: Peer, samples: list[Inputs]) -> dict[str, Agreement]:
    agreements = {name: Agreement() for name in peer.outputs}
    for sample, given in enumerate(samples):
        print(f"\rsample {sample + 1} of {len(samples)}", end="", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            dump = qcalib.dump(sample, folder)
            if lacking := sorted(set(peer.outputs) - set(dump.files)):
                sys.exit(f"\nqcalib made no tensor of these names: {', '.join(lacking)}")
            for name, value in peer.run(dump, given, peer.outputs):
                agreements[name].add(sample, dump[name], value)
    print(file=sys.stderr)
    return agreements


def farthest(a: np.ndarray, b: np.ndarray) -> float:
    with np.errstate(invalid="ignore"):
        return float(np.nan_to_num(np.abs(a[a != b] - b[a != b]), nan=np.inf).max(initial=0))


def judge_by_reference(qcalib: Qcalib, peer: Peer, samples: list[Inputs], names: list[str]) -> bool:
    """Lists the tensors `names` with their distances from a float64 run; whether all of them pass."""
    distances = {name: [0.0, 0.0] for name in names}
    for sample in range(len(samples) if names else 0):
        with tempfile.TemporaryDirectory() as ours_folder, tempfile.TemporaryDirectory() as reference_folder:
            ours = qcalib.dump(sample, ours_folder)
            reference = qcalib.reference(sample, reference_folder, names)
            for name, value in peer.run(ours, samples[sample], names):
                exact = reference[name]
                distances[name][0] = max(distances[name][0], farthest(ours[name].astype(np.float64), exact))
                distances[name][1] = max(distances[name][1], farthest(value.astype(np.float64), exact))
    passed = True
    for name, (ours_distance, peer_distance) in distances.items():
        good = ours_distance <= REFERENCE_FACTOR * peer_distance
        passed = passed and good
        print(f"beyond the rule, {'passes' if good else 'FAILS'} by the float64 run: {name}: "
              f"qcalib off by {ours_distance:.3g}, {peer.name} by {peer_distance:.3g}")
    return passed


class AddSample(argparse.Action):
    """Each --inputs NAME=FILE... is one sample."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        if wrong := [value for value in values if "=" not in value or not Path(value.split("=", 1)[1]).is_file()]:
            parser.error(f"{option_string}: expected NAME=FILE with a file that is there, found {wrong[0]}")
        sample = {name: Path(file).resolve() for name, file in (value.split("=", 1) for value in values)}
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or []), sample])


def list_of_samples(arguments: argparse.Namespace, folder: str) -> Path:
    if arguments.list is not None:
        return arguments.list
    if arguments.inputs is not None:
        path = Path(folder) / "list.txt"
        lines = (" ".join(f"{name}:={file}" for name, file in sample.items()) for sample in arguments.inputs)
        path.write_text("".join(f"{line}\n" for line in lines))
        return path
    pictures = sorted(path for path in arguments.pictures.iterdir() if path.suffix.lower() in PICTURES)
    if not pictures:
        sys.exit(f"{arguments.pictures}: no pictures there")
    path = Path(folder) / "list.txt"
    path.write_text("".join(f"{picture.resolve()}\n" for picture in pictures))
    return path


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--model", type=Path, required=True)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--pictures", type=Path, help="a folder of pictures")
    source.add_argument("--list", type=Path, help="a list of samples, as qcalib takes it")
    source.add_argument("--inputs", action=AddSample, nargs="+", metavar="NAME=FILE",
                        help="the .npy files of one sample; again for another")
    parser.add_argument("--limit", type=int, help="at most this many samples")
    parser.add_argument("--dump-tool", type=Path, default=ROOT / "build/release/tests/tools/dump_tensors")
    arguments, options = parser.parse_known_args()

    with tempfile.TemporaryDirectory() as folder:
        path = list_of_samples(arguments, folder)
        lines = [line for line in path.read_text().splitlines() if line.strip() and line[0] not in "#%"]
        samples = (arguments.inputs or [{} for _ in lines])[:arguments.limit]
        qcalib = Qcalib(arguments.dump_tool, arguments.model, path, options)
        peer = Peer(arguments.model)
        agreements = compare(qcalib, peer, samples)
        beyond = [name for name, agreement in agreements.items() if agreement.is_beyond()]
        passed = judge_by_reference(qcalib, peer, samples, beyond)
    print(f"{len(agreements)} float tensors over {len(samples)} samples, onnxruntime {onnxruntime.__version__}: "
          f"{len(beyond)} beyond the rule")
    if within := [name for name in agreements if name not in beyond]:
        nearest = max(within, key=lambda name: agreements[name].share())
        print(f"of the others {nearest} is nearest to it: {agreements[nearest].share():.1%} of 3e-5 M")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
