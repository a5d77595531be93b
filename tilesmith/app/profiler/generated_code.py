"""Costs of what takes more than a few instructions, measured in C that is made of small pipelines: divisions,
functions and gathers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tilesmith.app.runtime.build import build
from tilesmith.app.runtime.run import run
from tilesmith.platforms import CpuPlatform
from tilesmith.platforms.ecm import TYPES
from tilesmith.scheduler.compiler import generate
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.arguments import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.search import root_schedule

FUNCTIONS = ("sin(a(x, y))", "cos(b(x, y))")
"""Functions whose time is the unit of those that the C library computes."""
_NAMES = {"i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f32": "float32", "f64": "float64"}
_COMPILE_S = 120.0
_WIDE, _HIGH = 1024, 16


@dataclass(frozen=True, slots=True)
class Generated:
    """The figures of `platform`, this host: each taken `turns` times, the least of that many `calls` each time."""

    platform: CpuPlatform
    cache_dir: Path
    turns: int
    calls: int

    def figures(self) -> dict[str, list[float]]:
        """Nanoseconds of every turn, by name: `i32.divide`, `f32.function` (of a vector, its loads and stores of a few
        cycles included), `gather`, of an element."""
        found = {}
        for t in TYPES:
            name, value, count = (
                ("function", " + ".join(FUNCTIONS), len(FUNCTIONS))
                if t[0] == "f"
                else ("divide", "a(x, y) // b(x, y)", 1)
            )
            pipeline = _pipeline(t, value)
            vectors = _WIDE * _HIGH * count / self.lanes(t)
            # strict, so that functions of single precision are the C library's, too
            schedule = replace(root_schedule(pipeline, self.platform), strict=t[0] == "f")
            found[f"{t}.{name}"] = [ns / vectors for ns in self.times(pipeline, schedule, t, _WIDE, _HIGH)]
        found["gather"] = self.gathers()
        return found

    def lanes(self, t: str) -> int:
        return max(1, self.platform.vector_bytes * 8 // int(t[1:]))

    def gathers(self) -> list[float]:
        """Cost of an element that is read where data says, beyond that of one read in order. Where that is, is
        computed, as it mostly is: compilers would load the places of elements one by one, but not the vectors that are
        made of them."""
        place = f"int32(b(x, y)) * x % {_WIDE}"
        in_order, looked_up = (_pipeline("f32", f"a({x}, y) + float32({place})") for x in ("x", place))
        pairs = zip(
            self.times(looked_up, _serial(root_schedule(looked_up, self.platform)), "f32", _WIDE, _HIGH),
            self.times(in_order, _serial(root_schedule(in_order, self.platform)), "f32", _WIDE, _HIGH),
            strict=True,
        )
        return [max(0.0, (a - b) / (_WIDE * _HIGH)) for a, b in pairs]

    def times(self, pipeline: Pipeline, schedule: Schedule, t: str, wide: int, high: int) -> Iterator[float]:
        """The fastest call on one thread, ns, once a turn."""
        library = build(generate(pipeline, schedule, self.platform), self.platform, self.cache_dir, _COMPILE_S)
        # numbers whose quotient is not 0, and whose exponential is finite
        values = (3, 7) if t[0] == "f" else (100, 7)
        inputs = {n: Image(np.full((high, wide), v, _NAMES[t]), (0, 0)) for n, v in zip("ab", values, strict=True)}
        regions = {"out": ((0, wide), (0, high))}
        for _ in range(self.turns):
            yield 1e6 * min(run(library, pipeline, inputs, {}, regions, 1, self.calls).times_ms)


def _pipeline(t: str, value: str) -> Pipeline:
    """Out of `a` and `b` of that type: `value`."""
    type_ = _NAMES[t]
    return load(
        {
            "format": 1,
            "name": "calibrate",
            "inputs": [{"name": n, "type": type_, "dims": ["x", "y"]} for n in ("a", "b")],
            "stages": [{"name": "out", "dims": ["x", "y"], "type": type_, "value": value}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 1024], [0, 1024]]},
        }
    )


def _serial(schedule: Schedule) -> Schedule:
    """Without threads: a parallel loop of one thread is not free."""
    return replace(schedule, groups=tuple(replace(g, parallel=None) for g in schedule.groups))
