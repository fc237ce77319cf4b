#!/usr/bin/env python3
"""Compares what qcalib reads of .circle and .tflite files with what circle-schema reads of them.

    scripts/test-peers --circle-schema [--qcalib FILE] [FILE...]

The files are those of tests/circle_golden/small and the cases unless FILEs are given: operators by kind and number,
inputs and outputs with names, types and shapes. Files that qcalib refuses are listed with its reason.
"""

import argparse
import subprocess
import sys
from collections import Counter
from pathlib import Path

from circle_schema import circle

ROOT = Path(__file__).resolve().parents[2]
TYPES = {"FLOAT32": "float32", "FLOAT16": "float16", "FLOAT64": "float64", "INT8": "int8", "UINT8": "uint8",
         "INT16": "int16", "UINT16": "uint16", "INT32": "int32", "UINT32": "uint32", "INT64": "int64",
         "UINT64": "uint64", "BOOL": "bool", "STRING": "string"}


def names_of(enumeration: type) -> dict[int, str]:
    return {number: name for name, number in vars(enumeration).items() if isinstance(number, int)}


def described(graph: "circle.SubGraph.SubGraph", index: int) -> str:
    tensor = graph.Tensors(index)
    signature = [tensor.ShapeSignature(i) for i in range(tensor.ShapeSignatureLength())]
    shape = signature or [tensor.Shape(i) for i in range(tensor.ShapeLength())]
    sizes = ",".join("?" if size < 0 else str(size) for size in shape)
    # qcalib has a name for each tensor, and shows bytes that are no text as what they are.
    name = (tensor.Name() or b"").decode() or f"tensor_{index}"
    name = name.replace("\n", "\\x0a")
    return f"{name} {TYPES[names_of(circle.TensorType.TensorType)[tensor.Type()]]} [{sizes}]"


def code_of(model: "circle.Model.Model", operator: "circle.Operator.Operator") -> int:
    code = model.OperatorCodes(operator.OpcodeIndex())
    return code.BuiltinCode() or code.DeprecatedBuiltinCode()


def subgraphs_run(model: "circle.Model.Model") -> list[int]:
    """The first subgraph, and all others where an operator of it runs some (IF); nothing runs others."""
    first = model.Subgraphs(0)
    codes = {code_of(model, first.Operators(i)) for i in range(first.OperatorsLength())}
    runs_others = circle.BuiltinOperator.BuiltinOperator.IF in codes
    return list(range(model.SubgraphsLength())) if runs_others else [0]


def read_by_schema(path: Path) -> tuple[Counter, list[str]]:
    """The operators of all subgraphs that are run, and a line for each input and output."""
    model = circle.Model.Model.GetRootAs(path.read_bytes(), 0)
    builtin = names_of(circle.BuiltinOperator.BuiltinOperator)
    operators: Counter = Counter()
    for index in subgraphs_run(model):
        graph = model.Subgraphs(index)
        for number in range(graph.OperatorsLength()):
            operators[builtin[code_of(model, graph.Operators(number))]] += 1
    graph = model.Subgraphs(0)
    lines = [f"input {described(graph, graph.Inputs(i))}" for i in range(graph.InputsLength())]
    lines += [f"output {described(graph, graph.Outputs(i))}" for i in range(graph.OutputsLength())]
    return operators, lines


def read_by_qcalib(qcalib: Path, path: Path) -> tuple[Counter, list[str]]:
    """The same from `qcalib inspect`; RuntimeError with what it says where it refuses the file."""
    result = subprocess.run([qcalib, "inspect", path], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(result.stderr.strip().splitlines()[0] if result.stderr else f"exit {result.returncode}")
    operators: Counter = Counter()
    lines = []
    for line in result.stdout.splitlines():
        key, _, rest = line.partition(" ")
        if key in ("input", "output"):
            lines.append(f"{key} {rest.strip()}")
        if key == "nodes":
            for part in rest.split(":", 1)[1].split(","):
                count, name = part.strip().split(" ", 1)
                operators[name.split("(")[0]] += int(count)
    return operators, lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--qcalib", type=Path, default=ROOT / "build/release/qcalib")
    parser.add_argument("files", type=Path, nargs="*")
    arguments = parser.parse_args()
    files = arguments.files or sorted([*ROOT.glob("tests/circle_golden/small/*.circle"),
                                       *ROOT.glob("tests/cases/*/*.circle"), *ROOT.glob("tests/cases/*/*.tflite")])
    different = 0
    refused = 0
    for path in files:
        expected = read_by_schema(path)
        try:
            found = read_by_qcalib(arguments.qcalib, path)
        except RuntimeError as error:
            refused += 1
            print(f"{path.name}: refused: {error}")
            continue
        if found != expected:
            different += 1
            print(f"{path.name}: circle-schema reads {expected}, qcalib {found}")
    print(f"{len(files)} files: {len(files) - refused - different} read alike, {refused} refused, {different} different")
    return 1 if different or not files else 0


if __name__ == "__main__":
    sys.exit(main())
