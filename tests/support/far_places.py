"""Pipelines at the ends of the grid: what the compiled code answers there, held to the interpreter."""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

import numpy as np
from support.buffers import E_ARGUMENT, E_REGION, OK, invoke, query, region_of, view
from support.calls import call
from support.machines import here
from support.native import build
from support.odd_sizes import DOCUMENTS
from support.turns import in_turn

from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import ArgumentError, Image, RegionError, interpret

FIRST, LAST, N = -(2**31), 2**31 - 1, 24
LARGEST = 1 << 20  # elements of an input that is made for a case

PLACES = [FIRST, FIRST + 1, FIRST + 3, -(2**30) - 5, -65536 * 5, -7, 0, 46330, 65536 * 3 - 7, 2**30 - 5]
PLACES += [LAST - N + 1 - k for k in (0, 1, 2, 3, 40)]

BOUNDARIES = ("repeat_edge", "repeat_image", "mirror_image", "mirror_interior", "constant")
MIRRORS = ("mirror_image", "mirror_interior")
INDICES = [
    "x", "x + 1", "x - 2", "2 * x", "2 * x + 1", "3 - x", "-x", "x // 2", "(x + 3) // 2", "(x * 4) // 8", "x % 7",
    "(x - 5) % 16", "(3 * x) % 8", "(x * x) % 100", "(x * x * x) % 9", "abs(x) % 50", "clamp(x * 1000, -5, 9)",
    "clamp(x - 1, 0, 20)", "min(max(2 * x, 0), 30)", "select(x > 5, clamp(x + 1, 0, 9), 3)", "(x // 1000) * 3",
    "int32(int64(x) * int64(x) % 77)", "int32(int64(x) * 4294967296 // 4294967296)", "(x << 3) % 11", "x >> 4",
    "x // n", "(x * n) % 64", "x + n", "x % n", "(x & n) % 5",
]  # fmt: skip


def document(index: str, boundary: str | None) -> dict:
    owner = {"boundary": {"kind": boundary, **({"value": "int32(5)"} if boundary == "constant" else {})}}
    return {
        "format": 1,
        "name": "far",
        "params": [{"name": "n", "type": "int32", "default": 3, "min": 1, "max": 2147483647}] if "n" in index else [],
        "inputs": [{"name": "input", "type": "int32", "dims": ["x"], **(owner if boundary else {})}],
        "stages": [
            {"name": "near", "dims": ["x"], "value": "input(x) + 1"},
            {"name": "out", "dims": ["x"], "value": f"near({index}) ^ 3"},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64]], "input": [[0, 64]]},
    }


def wrong(index: str, boundary: str | None, flags: tuple[str, ...]) -> list[str]:
    """Failures of the pipeline that reads there, anywhere."""
    pipeline = load(document(index, boundary))
    source = compile_pipeline(pipeline, here()).source
    library, found = build(source, flags), []
    values = (1, 3, LAST) if pipeline.params else (0,)
    for low in PLACES:
        for n in values:
            params = [ctypes.c_int32(n)] if pipeline.params else []
            asked, told = view(out := np.zeros(N, np.int32), (low,)), query(((max(low, FIRST + 8), 8),))
            status = invoke(library, source, [told, *params, asked])
            where = f"{index}, {boundary}, from {low}, n {n}"
            if status not in (E_REGION, E_ARGUMENT):
                found.append(f"{where}: a query answered {status}")
                continue
            ((lo, extent),) = region_of(told)
            if boundary is not None:
                lo, extent = min(max(low, FIRST + 4), LAST - 40), 31
            if extent > LARGEST:
                continue
            data = np.random.default_rng(3).integers(-99, 99, extent).astype(np.int32)
            status = invoke(library, source, [view(data, (lo,)), *params, asked])
            given = {"n": n} if params else {}
            try:
                expected = interpret(pipeline, {"input": Image(data, (lo,))}, given, {"out": ((low, N),)})
            except ArgumentError:
                if status != E_ARGUMENT:
                    found.append(f"{where}: {status}, though it leaves the grid")
            except RegionError as error:
                if status not in (E_REGION, E_ARGUMENT):
                    found.append(f"{where}: {status}, though {error}")
            else:
                if status == E_ARGUMENT and boundary in MIRRORS and lo > LAST - 100:
                    continue  # twice the image would not fit
                if status != OK:
                    found.append(f"{where}: {status}, though nothing is wrong")
                elif (out != expected["out"][0]).any():
                    found.append(f"{where}: other values")
    return found


def wrong_with_updates(name: str, flags: tuple[str, ...]) -> list[str]:
    """Failures of updates, tuples and pyramids there."""
    pipeline = load(DOCUMENTS[name])
    source = compile_pipeline(pipeline, here()).source
    library, found = build(source, flags), []
    (image,), (output,) = pipeline.inputs, pipeline.outputs
    array = np.random.default_rng(1).integers(0, 99, (7, 9)).astype(image.type.numpy)
    for x in (FIRST, FIRST + 40, -(2**30) - 7, 2**30 - 5, LAST - 80, LAST - 17, LAST - 8):
        for y in (FIRST + 1, 5, LAST - 30, LAST - 6):
            inputs, regions = {image.name: Image(array, (x, y))}, {output: ((x, 9), (y, 7))}
            status, got = call(library, source, pipeline, inputs, {}, regions)
            try:
                expected = interpret(pipeline, inputs, {}, regions)[output]
            except (ArgumentError, RegionError) as error:
                if status == OK:
                    found.append(f"{name} at {x}, {y}: nothing is said, though {error}")
                continue
            if status != OK or any((a != b).any() for a, b in zip(got[output], expected, strict=True)):
                found.append(f"{name} at {x}, {y}: {status}, other values")
    return found


if __name__ == "__main__":
    cases = [(i, None) for i in INDICES] + [
        (index, boundary) for boundary, index in in_turn((*BOUNDARIES, *MIRRORS), ("x - 1", "2 * x", "x + 40"))
    ]
    flags = tuple(sys.argv[1:])
    problems = [w for index, boundary in cases for w in wrong(index, boundary, flags)]
    print(json.dumps(problems + [w for name in DOCUMENTS for w in wrong_with_updates(name, flags)]))
