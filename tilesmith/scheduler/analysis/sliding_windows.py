"""Sliding windows: spans of a group's stages in the dims of its output, and the rows that a window keeps alive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import lcm

import numpy as np
from numpy.typing import NDArray

from tilesmith.scheduler.analysis.access_functions import (
    UNKNOWN,
    Rational,
    Span,
    compose,
    hull,
    keeps_to_line,
    variable,
)
from tilesmith.scheduler.analysis.accesses import StageAccess, accesses
from tilesmith.scheduler.analysis.bounds_inference import add_domain, interval_of
from tilesmith.scheduler.analysis.dependence import pure_dims
from tilesmith.scheduler.ir.index import sym
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import Expr, RVar
from tilesmith.scheduler.ir.pipeline.pipeline import Stage

Rows = NDArray[np.int64]
LONGEST_PERIOD = 4096
WARM_UP_LIMIT = 64
FAR = np.int64(1) << 40


def group_spans(output: Stage, members: Sequence[Stage]) -> dict[str, tuple[Span, ...]]:
    """Per stage of the group and dim, the span in terms of the output's dims. `members` in topological order.
    A dim that updates do not keep in place is computed whole: it follows nothing."""
    spans: dict[str, tuple[Span, ...]] = {output.name: tuple(variable(d) for d in output.dims)}
    inside = {s.name for s in members}
    for stage in (output, *reversed(members)):
        if stage.name not in spans:
            continue
        pure = pure_dims(stage)
        spans[stage.name] = tuple(
            s if d in pure else UNKNOWN for s, d in zip(spans[stage.name], stage.dims, strict=True)
        )
        via = dict(zip(stage.dims, spans[stage.name], strict=True))
        for producer, found in _forms(stage):
            if producer in inside:
                here = tuple(_through(forms, via) for forms in found)
                old = spans.get(producer)
                spans[producer] = here if old is None else tuple(map(hull, old, here))
    return spans


@once
def _forms(stage: Stage) -> tuple[tuple[str, tuple[tuple[Span, ...], ...]], ...]:
    """Per producer of `stage` and dim the different spans of its accesses."""
    read: dict[str, list[tuple[Span, ...]]] = {}
    for a in accesses(stage):
        if a.producer != stage.name:
            read.setdefault(a.producer, []).append(a.spans)
    return tuple(
        (producer, tuple(tuple(dict.fromkeys(forms)) for forms in zip(*found, strict=True)))
        for producer, found in read.items()
    )


@once
def read_otherwise(stage: Stage) -> frozenset[str]:
    """Producers that the stage reads through clamps, or at places that are not known: all others move as their spans
    say."""
    reads = ((producer, s) for producer, found in _forms(stage) for forms in found for s in forms)
    return frozenset(producer for producer, s in reads if s.clamps or not s.known)


def _through(found: Sequence[Span], via: Mapping[str, Span]) -> Span:
    """The span of all indices `found` of a stage whose own indices are `via`."""
    each = reduce(hull, (compose(s, via[s.var]) if s.var is not None and s.var in via else s for s in found))
    if each.known:
        return each
    both = reduce(hull, found)  # neighbours through a clamp of the reader move together
    return compose(both, via[both.var]) if both.var is not None and both.var in via else both


def group_follows(output: Stage, members: Sequence[Stage]) -> dict[str, tuple[frozenset[str], ...]]:
    """Per stage of the group and dim, the output's dims that the index's bounds depend on, known span or not."""
    follows: dict[str, tuple[frozenset[str], ...]] = {output.name: tuple(frozenset((d,)) for d in output.dims)}
    inside = {s.name for s in members}
    for stage in (output, *reversed(members)):
        if stage.name not in follows:
            continue
        via = dict(zip(stage.dims, follows[stage.name], strict=True))
        for producer, moving in _moving(stage):
            if producer not in inside or producer == stage.name:
                continue
            here = tuple(frozenset(d for v in names for d in via[v]) for names in moving)
            old = follows.get(producer)
            follows[producer] = here if old is None else tuple(x | y for x, y in zip(old, here, strict=True))
    return follows


def shifted_along(output: Stage, members: Sequence[Stage], dim: str) -> dict[str, str]:
    """The stages of a group that are read by shifts only along the output's `dim`: one of their dims, which is told,
    moves with it step for step, on every way from the output to them. `members` in topological order."""
    along = {output.name: dim}
    moved: dict[str, set[int | None]] = {}
    for stage in (output, *reversed(members)):
        reads, found = _shifts(stage), moved.get(stage.name, set())
        if len(found) == 1 and (d := found.pop()) is not None and stage.name not in reads:
            along[stage.name] = stage.dims[d]
        for producer, shifts in reads.items():
            moved.setdefault(producer, set()).add(shifts.get(along.get(stage.name)))
    del along[output.name]
    return along


@once
def _shifts(stage: Stage) -> dict[str, dict[str | None, int]]:
    """Per producer of `stage` its dims that move step for step with one of the stage's, and nothing else of it does, in
    all accesses: by the stage's dim their number."""
    found: dict[str, list[dict[str | None, int]]] = {}
    for a, (producer, moving) in zip(accesses(stage), _moving(stage), strict=True):
        follow: dict[str, list[int]] = {}
        for d, names in enumerate(moving):
            for own in names:
                follow.setdefault(own, []).append(d)
        steps: dict[str | None, int] = {
            own: d for own, (d, *others) in follow.items() if not others and a.spans[d].rate == 1 and a.spans[d].known
        }
        found.setdefault(producer, []).append(steps)
    return {
        producer: {own: d for own, d in each[0].items() if all(steps.get(own) == d for steps in each)}
        for producer, each in found.items()
    }


@once
def _moving(stage: Stage) -> tuple[tuple[str, tuple[frozenset[str], ...]], ...]:
    """Per access of `stage` the producer, and for each of its indices the dims of `stage` that the index's bounds
    depend on: an index that is data has bounds that stay where they are."""
    return tuple((a.producer, tuple(_follows(a, d, stage) for d in range(len(a.spans)))) for a in accesses(stage))


def _follows(a: StageAccess, d: int, stage: Stage) -> frozenset[str]:
    span = a.spans[d]
    if span.var is not None and span.known:
        return frozenset((span.var,))
    return _bounds_follow(a.access.indices[d], a.reductions, stage) if a.used[d] else frozenset()


def _bounds_follow(index: Expr, reductions: tuple[RVar, ...], stage: Stage) -> frozenset[str]:
    ends = {d: (sym(f"{d}.lo"), sym(f"{d}.hi")) for d in stage.dims}
    env = {**ends}
    add_domain(reductions, env)
    symbols = {s for end in interval_of(index, env) for s in end.symbols()}
    return frozenset(d for d, both in ends.items() if any(symbols.intersection(e.symbols()) for e in both))


def _at(line_rate: Rational, offset: Rational, v: Rows) -> Rows:
    k = lcm(line_rate.denominator, offset.denominator)
    return (v * int(line_rate * k) + int(offset * k)) // k


def _first(s: Span, v: Rows) -> Rows:
    return _at(s.rate, s.ends[0], v)


def _last(s: Span, v: Rows) -> Rows:
    return _at(s.rate, s.ends[1], v)


@dataclass(frozen=True, slots=True)
class Windows:
    """`rows[stage]`: the most rows alive at once (missing: not provable). `warm_up`: iterations to run ahead of the
    first, so that windows fill row by row."""

    rows: Mapping[str, int]
    warm_up: int


def windows(
    output: Stage,
    stages: Sequence[Stage],
    spans: Mapping[str, tuple[Span, ...]],
    follows: Mapping[str, tuple[frozenset[str], ...]],
    dim: str,
    slid: Mapping[str, int],
    tile: int | None = None,
) -> Windows:
    """Runs the sliding loop over `dim` symbolically for one period of the spans: over rows, or over tiles of so many,
    which are not run ahead of the first.

    `stages` are the members computed inside the loop and those inlined, in topological order; `slid` maps the
    stages that slide to the index of their moving dim. An iteration computes of a sliding stage the rows after
    those of the iteration before, of any other stage the rows that its readers need now. Clamps are left out,
    but for the first iteration: they move both ends of a footprint together or closer.
    """
    moving = _moving_dims(output, stages, spans, follows, dim)
    hidden = _hidden(stages, spans, follows, moving, dim)
    provable = {s for s, d in slid.items() if moving.get(s) == d and spans[s][d].rate > 0 and s not in hidden}
    period = 1
    for name, d in moving.items():
        period = lcm(period, *(x.denominator for x in (spans[name][d].rate, *spans[name][d].ends)))
    if period > LONGEST_PERIOD or not provable:
        return Windows({}, 0)
    warm_up = 0
    for name in provable:
        s = spans[name][slid[name]]
        if s.rate >= 1:
            warm_up = max(warm_up, -(-(s.width + 1) // s.rate) - 1)
    warm_up = min(warm_up, WARM_UP_LIMIT)
    v = np.arange(period, dtype=np.int64)
    step = 1
    if tile is not None:
        warm_up, step = 0, tile
    steady = _alive(output, stages, moving, slid, v, step, None)
    filling = _alive(output, stages, moving, slid, v - warm_up, step, v)
    rows = {
        name: int(max(steady[name], filling[name]))
        for name in provable
        if name in steady and name in filling and spans[name][slid[name]].known
    }
    return Windows(rows, warm_up)


def _moving_dims(
    output: Stage,
    stages: Sequence[Stage],
    spans: Mapping[str, tuple[Span, ...]],
    follows: Mapping[str, tuple[frozenset[str], ...]],
    dim: str,
) -> dict[str, int]:
    """The one dim of each stage that follows `dim`; stages with none, several, or an unknown one are missing."""
    result = {output.name: output.dims.index(dim)}
    for stage in stages:
        follow = [d for d, names in enumerate(follows.get(stage.name, ())) if dim in names]
        if len(follow) == 1 and spans[stage.name][follow[0]].var == dim and spans[stage.name][follow[0]].known:
            result[stage.name] = follow[0]
    return result


def _hidden(
    stages: Sequence[Stage],
    spans: Mapping[str, tuple[Span, ...]],
    follows: Mapping[str, tuple[frozenset[str], ...]],
    moving: Mapping[str, int],
    dim: str,
) -> set[str]:
    """Stages with a reader whose rows are not followed: several dims move, or an unknown one, or backwards."""
    hidden: set[str] = set()
    for stage in reversed(stages):
        if stage.name in moving:
            lost = spans[stage.name][moving[stage.name]].rate < 0
        else:
            lost = any(dim in names for names in follows.get(stage.name, ()))
        if lost or stage.name in hidden:
            hidden.update(a.producer for a in accesses(stage))
    return hidden


def _alive(
    output: Stage,
    stages: Sequence[Stage],
    moving: Mapping[str, int],
    slid: Mapping[str, int],
    now: Rows,
    step: int,
    first_row: Rows | None,
) -> dict[str, int]:
    """The most rows of each sliding stage alive in the iterations that begin at rows `now` and have `step` of them: in
    the steady state, or (with `first_row`, the output's first row) in the very first iteration."""
    high: dict[str, Rows] = {output.name: now + (step - 1)}
    before: dict[str, Rows] = {output.name: now - 1}
    floor_: dict[str, Rows] = {} if first_row is None else {output.name: first_row}
    low: dict[str, Rows] = {output.name: now if first_row is None else np.maximum(now, first_row)}
    needed: dict[str, Rows] = {}
    # However far ahead the loop begins, the first row of what is clamped is needed at once, and all that it needs.
    clamped = {s.name for s in stages if s.boundary is not None}
    for stage in (output, *reversed(stages)):
        name = stage.name
        if name not in high:
            continue
        if name != output.name and name in slid:
            needed[name] = low[name]
            low[name] = before[name] + 1 if first_row is None else floor_[name]
        if name not in moving:
            continue
        if first_row is not None and name in clamped:
            high[name] = np.maximum(high[name], floor_[name])
        own = stage.dims[moving[name]]
        empty = low[name] > high[name]
        for a in accesses(stage):
            if a.producer not in moving or a.producer == name:
                continue
            s = a.spans[moving[a.producer]]
            if s.var != own or not s.known:
                continue
            if s.clamps:
                clamped.add(a.producer)
            _widen(high, a.producer, _last(s, high[name]), np.maximum)
            # no more is done than what is done for sure: rows of blocks are, or are not yet, all of one
            even = keeps_to_line(a.access.indices[moving[a.producer]], own)
            _widen(before, a.producer, (_last if even else _first)(s, before[name]), np.maximum)
            _widen(low, a.producer, np.where(empty, FAR, _first(s, low[name])), np.minimum)
            if first_row is not None:
                _widen(floor_, a.producer, _first(s, floor_[name]), np.minimum)
    return {n: int(np.max(high[n] - np.minimum(needed[n], high[n]) + 1)) for n in needed}


def _widen(table: dict[str, Rows], name: str, rows: Rows, pick: np.ufunc) -> None:
    table[name] = rows if name not in table else pick(table[name], rows)
