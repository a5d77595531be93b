"""Scans: recursive filters, running sums and extremes, integral images, costs along paths. The share of a copy's
bandwidth that each reaches, as the bytes of its input and its output over its time, by one thread and by two; and its
time over that of the schedule by `taco2019`, and over that of every stage at root.

python -m benchmarks.scans [--repeats 9] [--only NAME] [--json FILE]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks import report, schedules
from benchmarks.schedules import Contender, Finding, contenders, in_turns, platform_of
from tilesmith.scheduler.compiler import Options
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

REPEATS = 9
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


def measure(of: Pipeline, copy: Pipeline, threads: int, repeats: int) -> Finding:
    """The times of all schedules of a pipeline, and of the copy."""
    platform = platform_of(threads)
    runs = {**contenders(of, platform), "copy": Contender(copy, platform, Options())}
    found = in_turns(runs, threads, repeats)
    speed = {name: c.bytes / found["milliseconds"][name] for name, c in runs.items()}
    return {
        **found,
        "predicted_ms": runs["default"].predicted_ms,
        "share_of_copy": speed["default"] / speed["copy"],
    }


def main() -> None:
    copy, *others = pipelines()
    schedules.main(
        "Scans against the bandwidth of a copy, and other schedules of them.",
        REPEATS,
        [(of.name, partial(measure, of, copy)) for of in others],
        {
            "ms": lambda f: report.number(f["milliseconds"]["default"]),
            "copy, ms": lambda f: report.number(f["milliseconds"]["copy"]),
            "predicted, ms": lambda f: report.number(f["predicted_ms"]),
            "share of copy": lambda f: f"{f['share_of_copy']:.2f}",
            "over taco2019": lambda f: f"{f['over_taco2019']:.2f}",
            "over root": lambda f: f"{f['over_root']:.2f}",
        },
        {},
    )


if __name__ == "__main__":
    main()
