"""A schedule as Halide code, C++ and Python: the same decisions, for a pipeline with Funcs of the stages' names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from tilesmith.scheduler.codegen.halide.directives import (
    Argument,
    DimVar,
    Directive,
    Directives,
    DomainVar,
    FuncOf,
    Guard,
    NewVar,
    Shift,
    directives,
)
from tilesmith.scheduler.ir.plan import Plan

_Language: TypeAlias = Literal["cpp", "python"]


def to_cpp(plan: Plan) -> str:
    """A C++ header with `tilesmith_schedule(funcs)`; `funcs` maps the stages' names to their Funcs, whose Vars have
    the names of the dims."""
    said, schedule = directives(plan), plan.schedule
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
        *(f"    // Not said: {_one_line(text)}" for text in said.unsaid),
        *(f'    Halide::{kind} v_{name}("{name}");' for name, kind in _variables(said).items()),
        *(f"    Halide::RVar {text};" for text in _domain_variables(said, "cpp")),
    ]
    lines += [f"    {text};" for text in _statements(said.calls, "cpp")]
    return "\n".join([*lines, "}"]) + "\n"


def to_python(plan: Plan) -> str:
    """A Python module with `schedule(funcs)`; see `to_cpp`."""
    said, schedule = directives(plan), plan.schedule
    lines = [
        f'"""Schedule of the pipeline {schedule.pipeline} by method {schedule.method}, for Halide."""',
        "",
        "import halide as hl",
        "",
        "",
        "def schedule(funcs):",
        '    """funcs: the Func of every stage by its name; their Vars are named after the dims."""',
        *([f"    # Degraded: {_one_line(schedule.degraded)}"] if schedule.degraded is not None else []),
        *(f"    # Not said: {_one_line(text)}" for text in said.unsaid),
        *(f'    v_{name} = hl.{kind}("{name}")' for name, kind in _variables(said).items()),
        *(f"    {text}" for text in _domain_variables(said, "python")),
    ]
    lines += [f"    {text}" for text in _statements(said.calls, "python")]
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.replace("\\", "/").split())


def _variables(said: Directives) -> dict[str, str]:
    """Var or RVar by name, in the order in which they are first used."""
    found: dict[str, str] = {}
    for call in said.calls:
        for a in call.arguments:
            if isinstance(a, DimVar | NewVar):
                found.setdefault(a.name, "RVar" if isinstance(a, NewVar) and a.reduction else "Var")
    return found


def _domain_variables(said: Directives, language: _Language) -> list[str]:
    """Assignments of the variables of domains, from the Funcs as they were: rfactor takes them away."""
    used = dict.fromkeys(a for call in said.calls for a in call.arguments if isinstance(a, DomainVar))
    return [
        f"{_argument(a, language)} = {_argument(FuncOf(a.stage), language)}.rvars({a.update})[{a.index}]" for a in used
    ]


def _statements(calls: Iterable[Directive], language: _Language) -> list[str]:
    """Calls on the same Func or update in a row as one chained statement."""
    lines: list[str] = []
    last: tuple[str, int | None] | None = None
    for call in calls:
        text = f".{call.method}({', '.join(_argument(a, language) for a in call.arguments)})"
        if (call.stage, call.update) == last:
            lines[-1] += text
        else:
            update = "" if call.update is None else f".update({call.update})"
            lines.append(_argument(FuncOf(call.stage), language) + update + text)
        last = (call.stage, call.update)
        if call.makes is not None:
            lines[-1] = f'funcs["{call.makes}"] = {lines[-1]}'
            last = None
    return lines


def _argument(a: Argument, language: _Language) -> str:
    match a:
        case DimVar(name) | NewVar(name):
            return f"v_{name}"
        case DomainVar():
            return f"r_{a.stage}_{a.update}_{a.index}"
        case FuncOf(stage):
            return f'funcs.at("{stage}")' if language == "cpp" else f'funcs["{stage}"]'
        case Guard() | Shift():
            strategy = "GuardWithIf" if isinstance(a, Guard) else "ShiftInwards"
            return f"Halide::TailStrategy::{strategy}" if language == "cpp" else f"hl.TailStrategy.{strategy}"
        case int():
            return str(a)
