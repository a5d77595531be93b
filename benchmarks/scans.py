"""Scans: recursive filters, running sums and extremes, integral images, costs along paths. The share of a copy's
bandwidth that each reaches, as the bytes of its input and its output over its time, by one thread and by two; and its
time over that of the schedule by `taco2019`, and over that of every stage at root.

python -m benchmarks.scans [--repeats 9] [--only NAME] [--json FILE]
"""

from __future__ import annotations

import argparse
import ctypes
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine, report
from benchmarks.contender import tilesmith_buffer
from tilesmith.app.runtime.build import build
from tilesmith.platforms import CpuPlatform
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.search.vectorize_and_parallelize import root_schedule

REPEATS = 9
THREADS = (1, 2)
PATIENCE_S = 600.0
WIDTH, HEIGHT = 1536, 2560
"""The size of the images, as that of the pipelines that are shipped."""


def _document(
    name: str, type_: str, sizes: dict[str, int], value: str, updates: Sequence[tuple[str, bool, str]]
) -> Pipeline:
    """One stage `f` over one input. An update goes along a dim, from its end where it goes `back`; its value has the
    place as `here`, and those before it on the way as `before` and `earlier`."""
    dims, made = list(sizes), []
    for along, back, text in updates:
        steps = 2 if "earlier" in text else 1
        end = f"input.extent.{along}"
        at = {
            word: f"{end} - 1 - r + {n}" if back else f"r - {n}" for n, word in enumerate(("here", "before", "earlier"))
        }
        for word, index in at.items():
            point = ", ".join(index if d == along else d for d in dims)
            text = text.replace(f"({word})", f"({point})")
        place = [at["here"] if d == along else d for d in dims]
        made.append({"domain": {"r": [steps, f"{end} - {steps}"]}, "at": place, "value": text})
    region = [[0, n] for n in sizes.values()]
    return load(
        {
            "format": 1,
            "name": name.replace(" ", "_"),
            "inputs": [{"name": "input", "type": type_, "dims": dims}],
            "stages": [{"name": "f", "dims": dims, "value": value, "updates": made}],
            "outputs": ["f"],
            "estimates": {"f": region, "input": region},
        }
    )


SMOOTH, SUM = "f(before) * 0.9 + f(here) * 0.1", "f(before) + f(here)"
COLOUR, GREY = {"x": WIDTH, "y": HEIGHT, "c": 3}, {"x": WIDTH, "y": HEIGHT}
NEAREST = "min(f(here), f(before) + 1)"
BIQUAD = "f(here) * 0.2 + input(before) * 0.1 + input(earlier) * 0.05 + f(before) * 1.2 - f(earlier) * 0.5"
HALFTONE = "f(here) + (f(before) - (255.0 if f(before) > 127.0 else 0.0))"


def pipelines() -> Iterator[Pipeline]:
    """What is measured; the first is the copy."""
    yield _document("copy", "float32", COLOUR, "input(x, y, c)", ())
    colour, grey = "input(x, y, c)", "input(x, y)"
    yield _document("filter both ways along x", "float32", COLOUR, colour, [("x", b, SMOOTH) for b in (False, True)])
    yield _document("filter both ways along y", "float32", COLOUR, colour, [("y", b, SMOOTH) for b in (False, True)])
    ways = [(d, b, SMOOTH) for d in "xy" for b in (False, True)]
    yield _document("filter both ways along both", "float32", COLOUR, colour, ways)
    yield _document("biquad", "float32", GREY, grey, [("x", False, BIQUAD)])
    yield _document("summed area table", "float32", GREY, grey, [("x", False, SUM), ("y", False, SUM)])
    sums = [("x", False, SUM), ("y", False, SUM)]
    yield _document("integral image", "uint8", GREY, f"int32({grey})", sums)
    yield _document("integral image of squares", "uint8", GREY, f"int32({grey}) * int32({grey})", sums)
    yield _document("running sum", "uint8", GREY, f"int32({grey})", [("x", False, SUM)])
    yield _document("running maximum", "float32", GREY, grey, [("x", False, "max(f(before), f(here))")])
    volume = {"x": 512, "y": 512, "t": 64}
    yield _document("average in time", "float32", volume, "input(x, y, t)", [("t", False, SMOOTH)])
    yield _document("filter of a signal", "float32", {"x": 10_000_000}, "input(x)", [("x", False, SMOOTH)])
    distances = [(d, b, NEAREST) for d in "yx" for b in (False, True)]
    yield _document("distances", "uint8", GREY, f"0 if {grey} > 128 else 100000", distances)
    yield _document("errors passed on", "float32", GREY, grey, [("x", False, HALFTONE)])


class Contender:
    """A schedule of a pipeline, compiled, with its arguments."""

    def __init__(self, of: Pipeline, platform: CpuPlatform, options: Options) -> None:
        made = compile_pipeline(of, platform, options)
        self.predicted_ms = float(made.predicted.total) / 1e3 if made.predicted.unit == "microseconds" else None
        self.folder = tempfile.TemporaryDirectory()
        library = build(made.source, platform, Path(self.folder.name), PATIENCE_S)
        self.function: Callable[..., int] = getattr(ctypes.CDLL(str(library.path)), f"tilesmith_{of.name}")
        self.arrays, self.arguments, self.bytes = [], [], 0
        types = [(i.name, i.type.name) for i in of.inputs] + [(s.name, s.types[0].name) for s in of.stages]
        for name, type_ in types:
            region = of.estimate(name)
            assert region is not None
            extents = [n for _, n in region]
            array = (np.random.default_rng(1).random(int(np.prod(extents))) * 200).astype(type_)
            strides = np.cumprod([1, *extents[:-1]]).tolist()
            self.arrays.append(array)
            self.arguments.append(tilesmith_buffer(array, region, strides))
            self.bytes += array.nbytes

    def seconds(self, clock: Callable[[], float]) -> float:
        """The time of a call by that clock."""
        begin = clock()
        status = self.function(*map(ctypes.byref, self.arguments))
        assert status == 0
        return clock() - begin


def measure(of: Pipeline, copy: Pipeline, threads: int, repeats: int) -> dict[str, Any]:
    """The times of all schedules of a pipeline, and of the copy, in turns: the least of each, in milliseconds."""
    ctypes.CDLL("libgomp.so.1").omp_set_num_threads(threads)
    platform = host().model_copy(update={"threads": threads})
    ways = {"default": Options(), "taco2019": Options(method="taco2019")}
    ways["root"] = Options(schedule=root_schedule(of, platform))
    contenders = {name: Contender(of, platform, options) for name, options in ways.items()}
    contenders["copy"] = Contender(copy, platform, Options())
    clock = time.thread_time if threads == 1 else time.perf_counter  # whatever else runs takes none of a thread's own
    best = {name: min(c.seconds(clock) for _ in range(2)) for name, c in contenders.items()}
    for _ in range(repeats):
        for name, c in contenders.items():
            best[name] = min(best[name], c.seconds(clock))
    speed = {name: c.bytes / best[name] for name, c in contenders.items()}
    return {
        "pipeline": of.name,
        "threads": threads,
        "milliseconds": {name: seconds * 1e3 for name, seconds in best.items()},
        "predicted_ms": contenders["default"].predicted_ms,
        "share_of_copy": speed["default"] / speed["copy"],
        "over_taco2019": best["default"] / best["taco2019"],
        "over_root": best["default"] / best["root"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Scans against the bandwidth of a copy, and other schedules of them.")
    parser.add_argument("--repeats", type=int, default=REPEATS, metavar="N")
    parser.add_argument("--only", metavar="NAME", help="those whose name has this in it")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    copy, *others = pipelines()
    found = []
    for of in others:
        if arguments.only is None or arguments.only in of.name:
            report.progress(of.name)
            found += [measure(of, copy, threads, arguments.repeats) for threads in THREADS]
    rows = [
        [
            f["pipeline"],
            str(f["threads"]),
            *(report.number(f["milliseconds"][name]) for name in ("default", "copy")),
            report.number(f["predicted_ms"]),
            *(f"{f[key]:.2f}" for key in ("share_of_copy", "over_taco2019", "over_root")),
        ]
        for f in found
    ]
    heads = ["pipeline", "threads", "ms", "copy, ms", "predicted, ms", "share of copy", "over taco2019", "over root"]
    print(report.table(heads, rows))
    report.write(arguments.json, {"machine": machine.describe(), "scans": found})


if __name__ == "__main__":
    main()
