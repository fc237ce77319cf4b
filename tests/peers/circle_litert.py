#!/usr/bin/env python3
"""Compares every float tensor qcalib's executor makes of .tflite models with LiteRT's (ai-edge-litert).

    scripts/test-peers --circle [--dump-tool FILE] [NAME...]

The models are those of scripts/models.tsv whose names end with "-tflite", or the NAMEs among them. Each is run on
pseudo-random inputs; LiteRT keeps all tensors and uses its own kernels, not a delegate's. The rule and what passes
beside it are those of onnxruntime_agreement.py.
"""

import argparse
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from onnxruntime_agreement import ROOT, Dump, Inputs, Qcalib, compare, judge_by_reference

SAMPLES = 2
SHAPES = {"wake-melspectrogram-tflite": (1, 12800)}  # of inputs whose dimensions are open


class Litert:
    """LiteRT with all tensors kept."""

    name = "LiteRT"

    def __init__(self, path: Path, shape: tuple[int, ...] | None) -> None:
        warnings.filterwarnings("ignore", message=".*experimental_preserve_all_tensors.*")
        self.interpreter = Interpreter(
            str(path), experimental_preserve_all_tensors=True,
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        self.inputs = self.interpreter.get_input_details()
        if shape is not None:
            self.interpreter.resize_tensor_input(self.inputs[0]["index"], shape)
        self.interpreter.allocate_tensors()
        self.inputs = self.interpreter.get_input_details()
        made = {index for op in self.interpreter._get_ops_details() for index in op["outputs"]}
        details = self.interpreter.get_tensor_details()
        self.indices = {tensor["name"]: tensor["index"] for tensor in details
                        if tensor["index"] in made and tensor["dtype"] == np.float32}
        self.outputs = list(self.indices)

    def run(self, dump: Dump, given: Inputs, names: list[str]) -> Iterator[tuple[str, np.ndarray]]:
        for tensor in self.inputs:
            name = tensor["name"]
            self.interpreter.set_tensor(tensor["index"], dump[name] if name in dump.files else np.load(given[name]))
        self.interpreter.invoke()
        for name in names:
            yield name, self.interpreter.get_tensor(self.indices[name])


def random_samples(peer: Litert, folder: Path) -> list[Inputs]:
    random = np.random.default_rng(1)
    samples = []
    for sample in range(SAMPLES):
        files = {}
        for place, tensor in enumerate(peer.inputs):
            files[tensor["name"]] = folder / f"{sample}.{place}.npy"
            np.save(files[tensor["name"]], random.normal(0.1, 1, tensor["shape"]).astype(tensor["dtype"]))
        samples.append(files)
    return samples


def test(name: str, tool: Path) -> bool:
    fetched = subprocess.run([ROOT / "scripts/fetch-models", name], stdout=subprocess.PIPE, text=True, check=True)
    model = Path(fetched.stdout.strip())
    peer = Litert(model, SHAPES.get(name))
    with tempfile.TemporaryDirectory() as place:
        samples = random_samples(peer, Path(place))
        path = Path(place) / "list.txt"
        path.write_text("".join(" ".join(f"{key}:={file}" for key, file in sample.items()) + "\n" for sample in samples))
        shapes = [argument for tensor in peer.inputs
                  for argument in ("--shape", f"{tensor['name']}={','.join(str(size) for size in tensor['shape'])}")]
        qcalib = Qcalib(tool, model, path, shapes)
        agreements = compare(qcalib, peer, samples)
        beyond = [tensor for tensor, agreement in agreements.items() if agreement.is_beyond()]
        passed = judge_by_reference(qcalib, peer, samples, beyond)
    share = max((agreement.share() for agreement in agreements.values() if not agreement.is_beyond()), default=0)
    print(f"{name}: {len(agreements)} float tensors over {len(samples)} samples: {len(beyond)} beyond the rule, "
          f"the others use {share:.1%} of it at most")
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--dump-tool", type=Path, default=ROOT / "build/release/tests/tools/dump_tensors")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    lines = (ROOT / "scripts/models.tsv").read_text().splitlines()
    known = [line.split("\t")[0] for line in lines if line.split("\t")[0].endswith("-tflite")]
    if unknown := [name for name in arguments.names if name not in known]:
        sys.exit(f"no such model: {unknown[0]}; there are {', '.join(known)}")
    failed = [name for name in arguments.names or known if not test(name, arguments.dump_tool)]
    if failed:
        print(f"beyond the rule: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
