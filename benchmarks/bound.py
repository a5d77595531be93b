"""The time that no schedule can undercut: bytes that have to move, or operations that have to be done."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from benchmarks import machine, report
from benchmarks.contest import BUILD
from benchmarks.problem import Problem
from tilesmith.app.profiler.calibrate import LEAST_VECTOR_BYTES, measure
from tilesmith.app.profiler.samples import Measured
from tilesmith.cost_models.operations import Operations
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.rewrites.passes import normalise

KINDS = ("add", "multiply", "divide_by_constant", "select", "convert", "narrow")
"""Operations that count as one of the simplest of their type each; those in indices are left out."""
FUNCTION_OPERATIONS = 12
"""Operations that a function counts as: a polynomial of degree six, and no more."""


@dataclass(frozen=True)
class Bound:
    """`bytes_ms`: a copy that moves as many bytes as inputs and outputs have. `operations_ms`: the operations that the
    document writes, each stage computed once, at the highest rate measured; None where that is not known."""

    bytes_ms: float
    operations_ms: float | None
    operations: float

    @property
    def ms(self) -> float:
        return max(self.bytes_ms, self.operations_ms or 0.0)

    @property
    def by(self) -> str:
        return "bytes" if self.ms == self.bytes_ms else "operations"


def bound(problem: Problem, threads: int) -> Bound:
    """The bound of a problem on this machine. What a rewrite saves of the operations is to its credit."""
    per_type: dict[str, Operations] = {}
    for s in gather(normalise(problem.pipeline)).stages.values():
        for element, operations in s.typed:
            per_type[element] = per_type.get(element, Operations()) + operations.scaled(s.root_points)
    known = {element: _ns(element, operations) for element, operations in per_type.items()}
    ns = None if None in known.values() else sum(n for n in known.values() if n is not None)
    count = sum(getattr(o, kind) for o in per_type.values() for kind in (*KINDS, "divide", "function"))
    return Bound(
        machine.copy_ms(threads, problem.moved_bytes), None if ns is None else ns / 1e6 / threads, float(count)
    )


@cache
def peak() -> Measured | None:
    """The peak rate of a core; None on a machine without vectors."""
    platform = host()
    if platform.vector_bytes < LEAST_VECTOR_BYTES:
        return None
    report.progress("what a core does at most")
    return measure(platform, BUILD / "calibration", parts=("core",))


def rates() -> dict[str, float]:
    """10^9 simple operations a second, by element type, on one thread."""
    measured = peak()
    return {} if measured is None else {t: 1 / _simple_ns(measured, t) for t in ("i8", "i16", "i32", "f32", "f64")}


def _ns(element: str, operations: Operations) -> float | None:
    """Nanoseconds of all those operations on one thread."""
    measured = peak()
    if measured is None:
        return None
    simple = sum(getattr(operations, kind) for kind in KINDS) + FUNCTION_OPERATIONS * operations.function
    division = f"{element}.divide"
    if division not in measured.samples:
        return float((simple + operations.divide) * _simple_ns(measured, element))
    return float(simple * _simple_ns(measured, element) + operations.divide * measured.ns(division) / _lanes(element))


def _simple_ns(measured: Measured, element: str) -> float:
    """Nanoseconds of one element's operation: a fused multiplication and addition is two of them."""
    lanes = _lanes(element)
    if element[0] == "f":
        return measured.ns(f"{element}.multiply_add") / lanes / 2
    return measured.ns(f"{element}.add") / lanes


def _lanes(element: str) -> int:
    return host().vector_bytes * 8 // int(element[1:])
