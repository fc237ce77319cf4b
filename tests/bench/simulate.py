#!/usr/bin/env python3
"""A simulation with all encodings beside a calibration of the same pictures: simulate.py MODEL --pictures DIR [--count N] -- OPTION...

Whole commands, which take turns; printed are medians of their wall time and what a simulation costs in calibrations.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURES = {".jpg", ".jpeg", ".png", ".bmp", ".webp"}


def seconds_of(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--pictures", required=True)
    parser.add_argument("--count", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", default="0")
    parser.add_argument("--qcalib", default=str(ROOT / "build/release/qcalib"))
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    arguments = parser.parse_args(sys.argv[1:split])
    options = sys.argv[split + 1:]
    pictures = sorted(p for p in Path(arguments.pictures).iterdir() if p.suffix.lower() in PICTURES)
    chosen = [pictures[i % len(pictures)] for i in range(arguments.count)]
    with tempfile.TemporaryDirectory() as folder:
        listing = Path(folder) / "list.txt"
        listing.write_text("".join(f"{picture.resolve()}\n" for picture in chosen))
        common = ["--model", arguments.model, "--data", str(listing), "--jobs", arguments.jobs, *options]
        calibrate = [arguments.qcalib, "calibrate", *common, "--emit", "snpe", "-o", f"{folder}/out"]
        encodings = f"{folder}/out/{Path(arguments.model).stem}.snpe.json"
        simulate = [arguments.qcalib, "simulate", *common, "--encodings", encodings]
        seconds_of(calibrate)
        calibrations, simulations = [], []
        for _ in range(arguments.rounds):
            calibrations.append(seconds_of(calibrate))
            simulations.append(seconds_of(simulate))
    before, after = statistics.median(calibrations), statistics.median(simulations)
    print(f"{Path(arguments.model).stem}, {len(chosen)} pictures: calibration {before:.2f} s, simulation {after:.2f} s, "
          f"ratio {after / before:.2f}")


if __name__ == "__main__":
    main()
