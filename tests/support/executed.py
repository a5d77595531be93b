"""Runs the loops of a loop program without its values: how often each stage's elements are stored, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tilesmith.scheduler.analysis.bounds_inference import bound_symbol
from tilesmith.scheduler.ir.loop.program import (
    Allocate,
    Apart,
    AssignIndex,
    Bind,
    Body,
    Comment,
    CopyOut,
    Define,
    Extents,
    Free,
    If,
    Let,
    Loop,
    MutableIndex,
    OverflowGuard,
    PeelVectors,
    Program,
    RowPointer,
    Scratch,
    Stores,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline


@dataclass
class Executed:
    """`stored` counts elements by stage (every lane of a vector), `elements` has the sizes of buffers: (stage,
    elements per dim, fastest first, but for margins of rows)."""

    stored: Counter[str] = field(default_factory=Counter)
    elements: dict[str, tuple[int, ...]] = field(default_factory=dict)


def execute(program: Program, pipeline: Pipeline, regions: Mapping[str, tuple[tuple[int, int], ...]]) -> Executed:
    """Execute a schedule for these regions of outputs and inputs. Places that data says, and conditions on values, are
    none of it."""
    env: dict[str, int] = {}
    for name, region in regions.items():
        owner = pipeline.stage(name) if name in pipeline.outputs else pipeline.input(name)
        for d, (lo, extent) in zip(owner.dims, region, strict=True):
            env[bound_symbol(name, "min", d)], env[bound_symbol(name, "extent", d)] = lo, extent
    run = Executed()
    _block((*program.bounds, *program.body), env, run)
    return run


def _block(statements: Body, env: dict[str, int], run: Executed) -> None:
    for s in statements:
        match s:
            case Let() | MutableIndex() | AssignIndex():
                env[s.name] = s.value.value(env)
            case PeelVectors():
                assert s.align == 1
                env[s.first] = s.lo.value(env)
                fits = (s.end - s.lanes).value(env)
                env[s.last] = env[s.first] - s.lanes if fits < env[s.first] else fits
                env[s.from_], env[s.to] = env[s.first], env[s.last] + s.lanes
            case Loop():
                _loop(s, env, run)
            case Apart():
                _block(s.body, env, run)
            case If():
                assert s.condition is None
                taken = all(x.value(env) >= 0 for x in s.nonnegative)
                _block(s.body if taken else s.otherwise, env, run)
            case Scratch():
                for memory in s.buffers:
                    _extents(memory, env, run)
            case Allocate():
                _extents(s.memory, env, run)
            case Define() | RowPointer() | Bind() | Comment() | Free() | CopyOut() | OverflowGuard():
                pass
            case _:
                assert isinstance(s, Stores), s
                run.stored[s.buffer.stage] += s.value.lanes


def _loop(s: Loop, env: dict[str, int], run: Executed) -> None:
    at, hi, step = s.lo.value(env), s.hi.value(env), s.step.value(env)
    while at <= hi:
        if s.skip is not None:
            start, end = (x.value(env) for x in s.skip)
            at = end if start <= at < end else at
            if at > hi:
                return
        env[s.var] = at
        if s.seen is not None and s.seen.last is not None:
            env[s.seen.name] = min(at, s.seen.last.value(env))
        _block(s.body, env, run)
        at += step


def _extents(memory: Extents, env: dict[str, int], run: Executed) -> None:
    along, *others = (x.value(env) for x in memory.extents)
    run.elements[memory.buffer.stage] = (along - memory.buffer.margin, *others)
