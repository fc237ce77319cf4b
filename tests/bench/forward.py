#!/usr/bin/env python3
"""Times models in qcalib and onnxruntime, one thread each, taking turns: scripts/bench forward says how.

    forward.py [--modes forward,extremes,full] [--isa ISA] MODEL.onnx [name=FILE.npy ...] [-- MODEL.onnx ...]

Inputs that are not given are random: normal numbers in the shape the model declares, 1 for dimensions it leaves open.
Printed are medians of the thread's CPU time in milliseconds and, for each mode, the ratio to onnxruntime's plain
forward with all its optimisations on.
"""

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 9
SECONDS_A_ROUND = 0.25


class Ours:
    """The program run_model, held open."""

    def __init__(self, tool: Path, model: str, inputs: dict[str, Path], isa: str) -> None:
        command = [str(tool), "--model", model, "--isa", isa]
        command += [word for name, file in inputs.items() for word in ("--input", f"{name}={file}")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, mode: str, runs: int) -> list[float]:
        self.process.stdin.write(f"{mode} {runs}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit("run_model ended")
        return [float(word) for word in answer.split()]


class Peer:
    """onnxruntime on one thread, its inputs and outputs bound beforehand."""

    def __init__(self, model: str, inputs: dict[str, np.ndarray]) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        for name, value in inputs.items():
            self.binding.bind_cpu_input(name, value)
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name)

    def run(self, runs: int) -> list[float]:
        times = []
        for _ in range(runs):
            start = time.thread_time_ns()
            self.session.run_with_iobinding(self.binding)
            times.append((time.thread_time_ns() - start) * 1e-3)
        return times


def input_values(model: str, given: dict[str, str]) -> dict[str, np.ndarray]:
    types = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
             "tensor(bool)": np.bool_}
    random = np.random.default_rng(1)
    values = {}
    for argument in onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).get_inputs():
        if argument.name in given:
            values[argument.name] = np.load(given[argument.name])
            continue
        shape = [size if isinstance(size, int) else 1 for size in argument.shape]
        numbers = random.standard_normal(shape)
        values[argument.name] = np.asarray(numbers).astype(types[argument.type])
    return values


def measure(tool: Path, model: str, given: dict[str, str], modes: list[str], isa: str) -> dict[str, float]:
    """Median microseconds of the peer and of each mode."""
    values = input_values(model, given)
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for index, (name, value) in enumerate(values.items()):
            files[name] = Path(folder) / f"{index}.npy"
            np.save(files[name], value)
        ours = Ours(tool, model, files, isa)
        peer = Peer(model, values)
        for mode in modes:
            ours.run(mode, 2)
        once = statistics.median(peer.run(3))
        runs = max(2, min(120, int(SECONDS_A_ROUND * 1e6 / once)))
        times = {key: [] for key in ["peer", *modes]}
        for _ in range(ROUNDS):
            times["peer"] += peer.run(runs)
            for mode in modes:
                times[mode] += ours.run(mode, runs)
        ours.process.stdin.close()
        ours.process.wait()
    return {key: statistics.median(value) for key, value in times.items()}


def split_models(words: list[str]) -> list[tuple[str, dict[str, str]]]:
    models = []
    for word in words:
        if word == "--":
            continue
        if word.endswith(".onnx"):
            models.append((word, {}))
        else:
            name, _, file = word.rpartition("=")
            models[-1][1][name] = file
    return models


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modes", default="forward,extremes,full")
    parser.add_argument("--isa", default="best")
    parser.add_argument("--tool", type=Path, default=ROOT / "build/release/tests/bench/run_model")
    parser.add_argument("models", nargs="+")
    arguments = parser.parse_args()
    modes = arguments.modes.split(",")
    ratios = {mode: [] for mode in modes}
    print(f"{'model':28} {'peer ms':>9} " + " ".join(f"{mode + ' ms':>12} {'ratio':>6}" for mode in modes))
    for model, given in split_models(arguments.models):
        times = measure(arguments.tool, model, given, modes, arguments.isa)
        for mode in modes:
            ratios[mode].append(times[mode] / times["peer"])
        cells = " ".join(f"{times[mode] / 1e3:12.3f} {ratios[mode][-1]:6.2f}" for mode in modes)
        print(f"{Path(model).stem:28} {times['peer'] / 1e3:9.3f} {cells}", flush=True)
    means = " ".join(f"{'':12} {math.exp(statistics.fmean(map(math.log, ratios[mode]))):6.2f}" for mode in modes)
    print(f"{'geometric mean':28} {'':9} {means}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
