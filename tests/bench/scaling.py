#!/usr/bin/env python3
"""Two workers in one process beside two processes of one worker each: scaling.py MODEL --pictures DIR [--count N] -- OPTION...

Both ways calibrate the same pictures twice in all; compared are the pictures a second of the part that runs them (model
loading and emitting left out). They take turns; printed are medians and the share that two workers reach.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURES = {".jpg", ".jpeg", ".png", ".bmp", ".webp"}


def start(qcalib: str, model: str, listing: Path, jobs: int, out: str, options: list[str]) -> subprocess.Popen:
    return subprocess.Popen([qcalib, "--model", model, "--data", str(listing), "--jobs", str(jobs), "-o", out, *options],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def seconds_of(process: subprocess.Popen) -> float:
    output = process.communicate()[0]
    if process.returncode != 0:
        sys.exit(f"this failed: {' '.join(process.args)}")
    return float(re.search(r"run ([0-9.]+)", output).group(1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--pictures", required=True)
    parser.add_argument("--count", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--qcalib", default=str(ROOT / "build/release/qcalib"))
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    arguments = parser.parse_args(sys.argv[1:split])
    arguments.options = sys.argv[split + 1:]
    pictures = sorted(p for p in Path(arguments.pictures).iterdir() if p.suffix.lower() in PICTURES)[: arguments.count]
    with tempfile.TemporaryDirectory() as folder:
        once, twice = Path(folder) / "once.txt", Path(folder) / "twice.txt"
        lines = "".join(f"{picture.resolve()}\n" for picture in pictures)
        once.write_text(lines)
        twice.write_text(lines * 2)
        own, apart = [], []
        for _ in range(arguments.rounds):
            both = start(arguments.qcalib, arguments.model, twice, 2, f"{folder}/both", arguments.options)
            own.append(2 * len(pictures) / seconds_of(both))
            pair = [start(arguments.qcalib, arguments.model, once, 1, f"{folder}/{i}", arguments.options) for i in "ab"]
            apart.append(sum(len(pictures) / seconds_of(process) for process in pair))
    workers, processes = statistics.median(own), statistics.median(apart)
    print(f"{Path(arguments.model).stem}: two workers {workers:.1f} pictures/s, two processes {processes:.1f}, "
          f"share {workers / processes:.3f}")


if __name__ == "__main__":
    main()
