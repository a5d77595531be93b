"""Figures that the project holds itself to: a name, what was measured, what it may be at most."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine, report


@dataclass(frozen=True)
class Figure:
    """`value` in `unit` is the median of `samples` where there are any. It has to be below `limit` and not below
    `least`; without both it is for information."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    samples: tuple[float, ...] = ()
    note: str = ""
    least: float | None = None

    @property
    def bounds(self) -> str:
        """Bounds that the figure is held to; empty where there are none."""
        above = [] if self.least is None else [f">= {self.least:g}"]
        return ", ".join([*above, *([] if self.limit is None else [f"{self.limit:g}"])])

    @property
    def held(self) -> bool:
        return (self.limit is None or self.value < self.limit) and (self.least is None or self.value >= self.least)


def median(name: str, samples: Sequence[float], limit: float | None = None, unit: str = "ms", note: str = "") -> Figure:
    """The figure of the median of `samples`."""
    return Figure(name, statistics.median(samples), unit, limit, tuple(samples), note)


def table(figures: Sequence[Figure]) -> str:
    rows = []
    for f in figures:
        spread = f"{report.number(min(f.samples))} to {report.number(max(f.samples))}" if f.samples else ""
        verdict = "" if not f.bounds else "held" if f.held else "MISSED"
        rows.append(
            [f.name, f.unit, report.number(f.value), f.bounds, spread, str(len(f.samples) or ""), verdict, f.note]
        )
    return report.table(["figure", "unit", "value", "limit", "range", "samples", "", "note"], rows)


def as_data(figures: Sequence[Figure]) -> list[dict[str, Any]]:
    return [asdict(f) | {"held": f.held} for f in figures]


def main(description: str, measure: Callable[[int], list[Figure]], repeats: int) -> None:
    """The command line that all of these have in common: `--repeats N`, `--json FILE`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--repeats", type=int, default=repeats, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    found = measure(arguments.repeats)
    print(table(found))
    report.write(arguments.json, {"machine": machine.describe(), "figures": as_data(found)})
