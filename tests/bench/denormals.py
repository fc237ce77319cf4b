#!/usr/bin/env python3
"""Times models against copies of them whose denormal weights are zero, taking turns: denormals.py MODEL...

Flushing denormals to zero should make the two equally fast. Printed are medians of the thread's CPU time.
"""

import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from forward import ROOT, Ours, input_values
from onnx import numpy_helper

ROUNDS = 15
SECONDS_A_ROUND = 0.1


def write_zeroed(model: str, copy: str) -> int:
    """Writes the copy; how many weights were denormal."""
    proto = onnx.load(model)
    changed = 0
    for tensor in proto.graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT:
            continue
        values = numpy_helper.to_array(tensor).copy()
        denormal = (values != 0) & (np.abs(values) < np.finfo(np.float32).tiny)
        changed += int(denormal.sum())
        values[denormal] = 0
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    onnx.save(proto, copy)
    return changed


def main() -> None:
    tool = ROOT / "build/release/tests/bench/run_model"
    for model in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            changed = write_zeroed(model, f"{folder}/zeroed.onnx")
            files = {}
            for index, (name, value) in enumerate(input_values(model, {}).items()):
                files[name] = Path(folder) / f"{index}.npy"
                np.save(files[name], value)
            pair = [Ours(tool, path, files, "best") for path in (model, f"{folder}/zeroed.onnx")]
            once = statistics.median([run.run("forward", 5)[-1] for run in pair])
            times = [[], []]
            for _ in range(ROUNDS):
                for own, run in zip(times, pair):
                    own += run.run("forward", max(3, int(SECONDS_A_ROUND * 1e6 / once)))
            as_is, zeroed = (statistics.median(own) for own in times)
            print(f"{Path(model).stem}: {changed} denormal weights; as it is {as_is / 1e3:.3f} ms, "
                  f"zeroed {zeroed / 1e3:.3f} ms, ratio {as_is / zeroed:.3f}", flush=True)


if __name__ == "__main__":
    main()
