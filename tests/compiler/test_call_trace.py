"""The call trace of a compilation: every pass over the pipeline runs once, and nothing climbs."""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from types import FrameType

import pytest
from support.machines import machine

from tilesmith.scheduler import compiler, pipelines
from tilesmith.scheduler.compiler import compile_pipeline, generate
from tilesmith.scheduler.ir.pass_manager import PassPipeline
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.rewrites.passes import REWRITES, with_joinings, with_separations

ROOT = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
LAYERS = {module.strip(): n for n, line in enumerate(CONTRACTS[0]["layers"]) for module in line.split("|")}
"""The number of each layer, 0 for the highest."""


@cache
def layer_of(file: str) -> str | None:
    """The layer of a file; None outside of the product."""
    if not file.startswith(f"{ROOT}/") or "/.venv/" in file:
        return None
    module = file.removeprefix(f"{ROOT}/").removesuffix(".py").replace("/", ".")
    return next((name for name in LAYERS if f"{module}.".startswith(f"{name}.")), None)


@contextmanager
def tracing(called: Callable[[FrameType, FrameType], None]) -> Iterator[None]:
    """Tells `called` of every call of a Python function: its frame, and that of the caller."""

    def profile(frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_back is not None:
            called(frame, frame.f_back)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(before)


@dataclass
class Trace:
    """Of some work, how often each pass over pipelines ran, in the list and for a candidate of the search, and the
    calls into a layer above the caller's, of what the caller does not hold."""

    listed: Counter[str] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)
    climbs: Counter[tuple[str, str]] = field(default_factory=Counter)

    def called(self, frame: FrameType, caller: FrameType) -> None:
        own, other = layer_of(frame.f_code.co_filename), layer_of(caller.f_code.co_filename)
        if own is not None and other is not None and LAYERS[own] < LAYERS[other] and not is_held(frame, caller):
            self.climbs[f"{other} {caller.f_code.co_qualname}", f"{own} {frame.f_code.co_qualname}"] += 1
        if frame.f_code is RUN:
            assert caller.f_code in {PassPipeline.__call__.__code__, *CANDIDATES}
            (self.tried if caller.f_code in CANDIDATES else self.listed)[frame.f_locals["name"]] += 1


RUN = REWRITES.passes[0].run.__code__
CANDIDATES = {with_separations.__code__, with_joinings.__code__}
ONCE = {p.name: 1 for p in REWRITES.passes}


def is_held(frame: FrameType, caller: FrameType) -> bool:
    """Whether the function called is a value that the caller was given: an argument, or a field of one. Such are the
    clock, a pass, what is to be done with each node, and a method of an interface that the caller knows. Another method
    of an object from above is not."""
    code, held = frame.f_code, list(caller.f_locals.values())
    if declared_below(frame, caller):
        return True
    held += [getattr(v, name) for v in held for name in getattr(type(v), "__slots__", vars(v) if _has_dict(v) else ())]
    return any(_code(v) is code for v in held)


def declared_below(frame: FrameType, caller: FrameType) -> bool:
    """Whether the call is of a method, or a property, that an interface declares which the caller's module names."""
    of, name = frame.f_locals.get("self"), frame.f_code.co_name
    interfaces = [c for c in caller.f_globals.values() if getattr(c, "_is_protocol", False) and name in vars(c)]
    return any(all(hasattr(of, n) for n in vars(c) if not n.startswith("_")) for c in interfaces)


def _has_dict(value: object) -> bool:
    return hasattr(value, "__dict__") and not isinstance(value, type)


def _code(value: object) -> object:
    """The code of a function, a method, a generator, or of what `partial` was given."""
    of = value.func if isinstance(value, partial) else getattr(value, "__func__", value)
    return getattr(of, "__code__", getattr(of, "gi_code", None))


LONG = [pytest.param(name, marks=pytest.mark.slow) for name in ("camera_pipe",)]


@pytest.mark.parametrize("name", ["harris", "bilateral_grid", *LONG])
def test_a_compilation_runs_each_pass_over_the_pipeline_once_and_never_climbs(name: str) -> None:
    """Where the search prices the pipeline with its windows in two steps, that is a plan of its own."""
    of, found = pipelines.load(name), Trace()
    with tracing(found.called):
        compile_pipeline(of, machine())
    assert found.listed == ONCE
    assert found.tried == ({"split-separable": 1} if name == "harris" else {})
    assert not found.climbs


def test_so_does_code_for_a_schedule_that_is_given() -> None:
    of, found = pipelines.load("machado_blur"), Trace()
    schedule = compile_pipeline(of, machine()).schedule
    assert schedule.separations
    with tracing(found.called):
        generate(of, schedule, machine())
    assert found == Trace(Counter(ONCE))


def test_a_climb_is_seen() -> None:
    """To a method of an object from above; to a function that was handed down it is none."""
    below: dict[str, Callable[[object], object]] = {}
    text = "def asks(answer): return answer.schedule\ndef calls(function): return function()"
    exec(compile(text, f"{ROOT}/tilesmith/scheduler/ir/below.py", "exec"), below)
    found, answer = Trace(), compile_pipeline(pipelines.load("blur"), machine())
    with tracing(found.called):
        below["calls"](partial(generate, answer.pipeline, answer.schedule, machine()))
    assert not found.climbs
    with tracing(found.called):
        below["asks"](answer)
    assert found.climbs == {("tilesmith.scheduler.ir asks", "tilesmith.scheduler.compiler Compiled.schedule"): 1}


PHASES = ["rewrites", "legality", "lowering", "loop_passes", "codegen"]


def test_a_schedule_goes_down_from_floor_to_floor_and_never_back() -> None:
    """Of the phases each is entered once, and only the first rewrites the pipeline."""
    entered: list[str] = []
    rewriting: list[str] = []
    remakes = {Plan.rewritten.__code__, *(p.run.__code__ for p in REWRITES.passes)}

    def called(frame: FrameType, caller: FrameType) -> None:
        layer = layer_of(frame.f_code.co_filename)
        calls = caller.f_code.co_filename == compiler.__file__ or caller.f_code is PassPipeline.__call__.__code__
        if calls and layer is not None:
            entered.append(layer.removeprefix("tilesmith.scheduler."))
        if frame.f_code in remakes:
            rewriting.append(entered[-1])

    of = pipelines.load("harris")
    schedule = compile_pipeline(of, machine()).schedule
    with tracing(called):
        generate(of, schedule, machine())
    phases = [name for name, _ in groupby(e for e in entered if e in PHASES)]
    ahead, passes = ["codegen"], ["codegen"]  # a backend is asked whether it is there, and for its list of passes
    assert phases == [*ahead, *PHASES[:3], *passes, *PHASES[3:]]
    assert set(rewriting) == {"rewrites"}
