"""A schedule as Halide code, C++ and Python: the same decisions, for a pipeline with Funcs of the stages' names.

Halide names loops after variables: a dim that is not split has no inter-tile loop there, so that a level at it
is the next loop further out, or root. Registers as a storage level have no equal in Halide; there the
stage is computed at the same loops and what is stored is Halide's choice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from scheduler.analysis.facts import Facts, gather
from scheduler.analysis.members import Members, members_of
from scheduler.analysis.nest import line
from scheduler.lang.pipeline import Pipeline
from scheduler.schedule import INLINE, Group, Placement, Schedule, Vector, dim_of, inner, outer


@dataclass(frozen=True, slots=True)
class _Var:
    name: str


@dataclass(frozen=True, slots=True)
class _Func:
    name: str


@dataclass(frozen=True, slots=True)
class _Guard:
    """TailStrategy::GuardWithIf: any extent, also one smaller than the tile."""


_Argument: TypeAlias = _Var | _Func | _Guard | int
_Language: TypeAlias = Literal["cpp", "python"]


@dataclass(frozen=True, slots=True)
class _Call:
    """One scheduling call on the Func of a stage."""

    stage: str
    method: str
    arguments: tuple[_Argument, ...] = ()


def to_cpp(pipeline: Pipeline, schedule: Schedule) -> str:
    """A C++ header with `tilesmith_schedule(funcs)`; `funcs` maps the stages' names to their Funcs, whose Vars have
    the names of the dims."""
    calls, variables = _calls(pipeline, schedule)
    lines = [
        f"// Schedule of the pipeline {schedule.pipeline} by method {schedule.method}, for Halide.",
        "// funcs: the Func of every stage by its name; their Vars are named after the dims.",
        *([f"// Degraded: {_one_line(schedule.degraded)}"] if schedule.degraded is not None else []),
        "#pragma once",
        "",
        "#include <map>",
        "#include <string>",
        "",
        '#include "Halide.h"',
        "",
        "inline void tilesmith_schedule(std::map<std::string, Halide::Func> &funcs) {",
        *(f'    Halide::Var v_{name}("{name}");' for name in variables),
    ]
    lines += [f"    {text};" for text in _statements(calls, "cpp")]
    return "\n".join([*lines, "}"]) + "\n"


def to_python(pipeline: Pipeline, schedule: Schedule) -> str:
    """A Python module with `schedule(funcs)`; see `to_cpp`."""
    calls, variables = _calls(pipeline, schedule)
    lines = [
        f'"""Schedule of the pipeline {schedule.pipeline} by method {schedule.method}, for Halide."""',
        "",
        "import halide as hl",
        "",
        "",
        "def schedule(funcs):",
        '    """funcs: the Func of every stage by its name; their Vars are named after the dims."""',
        *([f"    # Degraded: {_one_line(schedule.degraded)}"] if schedule.degraded is not None else []),
        *(f'    v_{name} = hl.Var("{name}")' for name in variables),
    ]
    lines += [f"    {text}" for text in _statements(calls, "python")]
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.replace("\\", "/").split())


def _statements(calls: Iterable[_Call], language: _Language) -> list[str]:
    """Calls on the same Func in a row as one chained statement."""
    lines: list[str] = []
    last: str | None = None
    for call in calls:
        text = f".{call.method}({', '.join(_argument(a, language) for a in call.arguments)})"
        if call.stage == last:
            lines[-1] += text
        else:
            lines.append(_argument(_Func(call.stage), language) + text)
        last = call.stage
    return lines


def _argument(a: _Argument, language: _Language) -> str:
    match a:
        case _Var(name):
            return f"v_{name}"
        case _Func(name):
            return f'funcs.at("{name}")' if language == "cpp" else f'funcs["{name}"]'
        case _Guard():
            return "Halide::TailStrategy::GuardWithIf" if language == "cpp" else "hl.TailStrategy.GuardWithIf"
        case int():
            return str(a)


class _Names:
    """Variables: those of the dims, and two for every dim that is split, unlike any dim."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.taken = {d for s in pipeline.stages for d in s.dims}
        self.used: dict[str, None] = {}

    def of(self, name: str) -> _Var:
        self.used[name] = None
        return _Var(name)

    def split(self, loop: str) -> _Var:
        name = loop.replace(".", "_")
        while name in self.taken:
            name += "_"
        return self.of(name)


def _calls(pipeline: Pipeline, schedule: Schedule) -> tuple[list[_Call], list[str]]:
    facts = gather(pipeline, strict=schedule.strict)
    names = _Names(pipeline)
    calls: list[_Call] = []
    for group in schedule.groups:
        loops = _loops(group, names)
        calls += _output_calls(facts, group, loops, names)
        members = members_of(facts, group.output, (*(p.stage for p in group.placements), group.output))
        for placement in group.placements:
            calls += _placement_calls(members, group, placement, loops, names)
    return calls, list(names.used)


def _loops(group: Group, names: _Names) -> dict[str, _Var]:
    """The Halide variable of every loop of the group that exists there, innermost first."""
    found: dict[str, _Var] = {}
    for loop in group.loops:
        dim = dim_of(loop)
        tile = group.tile(dim)
        if tile is not None and tile.size is not None:
            found[loop] = names.split(loop)
        elif loop == inner(dim):
            found[loop] = names.of(dim)
    return found


def _output_calls(facts: Facts, group: Group, loops: dict[str, _Var], names: _Names) -> list[_Call]:
    stage = facts.stages[group.output]
    calls = [_Call(group.output, "compute_root")]
    if facts.definitions[group.output].updates or not group.loops:
        return calls
    for tile in group.tiles:
        if tile.size is not None:
            both = (names.of(tile.dim), loops[outer(tile.dim)], loops[inner(tile.dim)])
            calls.append(_Call(group.output, "split", (*both, tile.size, _Guard())))
    if len(loops) > 1:
        calls.append(_Call(group.output, "reorder", tuple(loops.values())))
    if group.vector is not None:
        calls.append(_Call(group.output, "vectorize", (loops[inner(group.vector.dim)], group.vector.lanes)))
    for dim in group.unroll:
        tile_of = group.tile(dim)
        if tile_of is None or tile_of.size is None:
            calls.append(_Call(group.output, "bound", (names.of(dim), *stage.region[stage.dims.index(dim)])))
        calls.append(_Call(group.output, "unroll", (loops[inner(dim)],)))
    threads = None if group.parallel is None else _level(group, group.parallel, loops)
    if threads is not None:
        calls.append(_Call(group.output, "parallel", (threads,)))
    return calls


def _level(group: Group, loop: str, loops: dict[str, _Var]) -> _Var | None:
    """The variable of `loop`, or of the next loop further out that exists in Halide; None for root."""
    for further in group.loops[group.loops.index(loop) :]:
        if further in loops:
            return loops[further]
    return None


def _placement_calls(
    members: Members, group: Group, placement: Placement, loops: dict[str, _Var], names: _Names
) -> list[_Call]:
    name = placement.stage
    if placement.compute == INLINE:
        return [_Call(name, "compute_inline")]
    compute, store = (_level(group, loop, loops) for loop in (placement.compute, placement.store))
    at = _Func(group.output)
    calls: list[_Call] = []
    if store is None:
        calls.append(_Call(name, "store_root"))
    elif store != compute:
        calls.append(_Call(name, "store_at", (at, store)))
    calls.append(_Call(name, "compute_root") if compute is None else _Call(name, "compute_at", (at, compute)))
    if compute is None:
        calls = calls[1:]
    if placement.order and len(placement.order) > 1:
        calls.append(_Call(name, "reorder", tuple(names.of(d) for d in placement.order)))
    calls += _vectorised(name, placement.vector, names)
    per_vector = group.vector is not None and placement.compute == inner(group.vector.dim)
    if placement.fold and compute is not None and compute != store and not per_vector:
        calls += _folded(members, placement, names)
    return calls


def _vectorised(name: str, vector: Vector | None, names: _Names) -> list[_Call]:
    return [] if vector is None else [_Call(name, "vectorize", (names.of(vector.dim), vector.lanes))]


def _folded(members: Members, placement: Placement, names: _Names) -> list[_Call]:
    """A ring along the dim that follows the compute level's, a power of two that holds the whole window."""
    if placement.compute != inner(dim_of(placement.compute)):
        return []
    for dim, span in members.follows[placement.stage].items():
        if span.var == dim_of(placement.compute) and span.known and span.rate > 0:
            window = line(span).window()
            return [_Call(placement.stage, "fold_storage", (names.of(dim), 1 << (window - 1).bit_length()))]
    return []
