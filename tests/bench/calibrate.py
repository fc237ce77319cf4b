#!/usr/bin/env python3
"""Whole calibrations by qcalib and by onnxruntime's calibrators on the same pictures: wall time and peak memory.

    calibrate.py --model M --pictures DIR [--count 32] [--rounds 3] [--methods minmax,percentile,entropy] -- OPTION...

OPTIONs (--resize, --mean, --std, --shape) go to qcalib, which preprocesses; the peer gets the same inputs as .npy files
that were written beforehand (--dump-input), so that it has no pictures to decode. Each run is a process of its own: load,
data, statistics, ranges, files. The two take turns; printed are medians and ratios. A peer that does not fit into
--memory (default: half of what is free) is run on half as many pictures until it does.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURES = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}


def run_measured(command: list[str], memory: int | None = None) -> tuple[float, float] | None:
    """Wall seconds and peak memory in MiB of a process; None where it failed."""
    def limit() -> None:
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=limit)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    if status != 0:
        if memory is None:
            sys.exit(f"{' '.join(command)}: failed\n{errors.decode(errors='replace')}")
        return None
    return seconds, usage.ru_maxrss / 1024


def peer_main(arguments: argparse.Namespace) -> None:
    """The peer's process."""
    import numpy as np
    from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, create_calibrator

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            files = sorted(Path(arguments.inputs).glob("*.npy"))[: arguments.count]
            self.samples = iter({arguments.input_name: np.load(file)} for file in files)

        def get_next(self):
            return next(self.samples, None)

    method = {"minmax": CalibrationMethod.MinMax, "percentile": CalibrationMethod.Percentile,
              "entropy": CalibrationMethod.Entropy}[arguments.peer]
    with tempfile.TemporaryDirectory() as folder:
        calibrator = create_calibrator(
            arguments.model, None, augmented_model_path=f"{folder}/augmented.onnx", calibrate_method=method)
        calibrator.collect_data(Reader())
        ranges = calibrator.compute_data()
        Path(folder, "ranges.json").write_text(json.dumps(
            {name: [float(np.ravel(value)[0]) for value in data.range_value] for name, data in ranges.items()}))


def dump_inputs(qcalib: str, model: str, listing: Path, options: list[str], folder: str) -> Path:
    subprocess.run([qcalib, "--model", model, "--data", str(listing), "--dump-input", f"{folder}/inputs", "-o",
                    f"{folder}/first", "--quiet", *options], check=True)
    return Path(folder) / "inputs"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--pictures")
    parser.add_argument("--count", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--methods", default="minmax,percentile,entropy")
    parser.add_argument("--memory", type=int, help="bytes of address space a peer may take")
    parser.add_argument("--qcalib", default=str(ROOT / "build/release/qcalib"))
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--inputs", help=argparse.SUPPRESS)
    parser.add_argument("--input-name", help=argparse.SUPPRESS)
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    arguments = parser.parse_args(sys.argv[1:split])
    arguments.options = sys.argv[split + 1:]
    if arguments.peer:
        peer_main(arguments)
        return 0

    with tempfile.TemporaryDirectory() as folder:
        pictures = sorted(p for p in Path(arguments.pictures).iterdir() if p.suffix.lower() in PICTURES)
        listing = Path(folder) / "list.txt"
        listing.write_text("".join(f"{picture.resolve()}\n" for picture in pictures[: arguments.count]))
        inputs = dump_inputs(arguments.qcalib, arguments.model, listing, arguments.options, folder)
        import onnx
        graph = onnx.load(arguments.model, load_external_data=False).graph
        constants = {tensor.name for tensor in graph.initializer}
        input_name = next(value.name for value in graph.input if value.name not in constants)
        ours = [arguments.qcalib, "--model", arguments.model, "--data", str(listing), "--emit", "snpe", "-o",
                f"{folder}/out", *arguments.options]
        print(f"{Path(arguments.model).stem}, {arguments.count} pictures, {os.cpu_count()} cores")
        for method in arguments.methods.split(","):
            memory = arguments.memory or default_memory()
            count = largest_count(peer_command(arguments, method, inputs, input_name), arguments.count, memory)
            if count == 0:
                print(f"  {method:11} the peer does not fit with one picture")
                continue
            runs = [(run_measured(ours), run_measured([*peer_command(arguments, method, inputs, input_name), str(count)]))
                    for _ in range(arguments.rounds)]
            report(method, runs, count, arguments.count)
    return 0


def peer_command(arguments: argparse.Namespace, method: str, inputs: Path, input_name: str) -> list[str]:
    return [sys.executable, __file__, "--model", arguments.model, "--peer", method, "--inputs", str(inputs),
            "--input-name", input_name, "--count"]


def largest_count(command: list[str], count: int, memory: int) -> int:
    """The most pictures (halving) that the peer can take in that much memory; 0: not even one."""
    while count > 0 and run_measured([*command, str(count)], memory) is None:
        count //= 2
    return count


def default_memory() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def report(method: str, runs: list, count: int, all_pictures: int) -> None:
    seconds, memory = (statistics.median(own[i] for own, _ in runs) for i in range(2))
    peer_seconds, peer_memory = (statistics.median(peer[i] for _, peer in runs) for i in range(2))
    fewer = "" if count == all_pictures else f" on {count} pictures only"
    print(f"  {method:11} peer {peer_seconds:.2f} s, {peer_memory:.0f} MiB{fewer}; qcalib {seconds:.2f} s, "
          f"{memory:.0f} MiB; the peer takes {peer_seconds / seconds:.1f} times the time and "
          f"{peer_memory / memory:.1f} times the memory", flush=True)


if __name__ == "__main__":
    sys.exit(main())
