"""A pipeline: inputs, params, stages and what is asked of them. Frozen; made by a front end (`frontends`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from operator import is_
from typing import Literal

from tilesmith.scheduler.ir.memo import Memo
from tilesmith.scheduler.ir.pipeline.drawing import Node, graph
from tilesmith.scheduler.ir.pipeline.expressions import Access, Expr, RVar, walk
from tilesmith.scheduler.ir.pipeline.types import ScalarType

BoundaryKind = Literal["repeat_edge", "repeat_image", "mirror_image", "mirror_interior", "constant"]


@dataclass(frozen=True, slots=True)
class Boundary:
    """The values of an input or stage beyond its domain, as readers see them.

    `value` (of the owner's type) belongs to kind "constant". `domain` is (min, extent) per dim for a
    stage and None for an input, whose domain is the image passed.
    """

    kind: BoundaryKind
    value: Expr | None = None
    domain: tuple[tuple[Expr, Expr], ...] | None = None


@dataclass(frozen=True, slots=True)
class Param:
    """A runtime scalar. One that has a `value`, an expression of others, follows from these and is not passed: only
    normalised pipelines have such."""

    name: str
    type: ScalarType
    default: int | float | bool | None = None
    min: int | float | None = None
    max: int | float | None = None
    value: Expr | None = None

    @property
    def ends(self) -> tuple[int | float | None, int | float | None]:
        """`min` and `max` as values of the type: those of floats are rounded to it."""
        lo, hi = (
            float(self.type.numpy.type(end)) if self.type.is_float and end is not None else end
            for end in (self.min, self.max)
        )
        return lo, hi


@dataclass(frozen=True, slots=True)
class Table:
    """Values of an input that the document has: `region` is (min, extent) per dim, the first dim varies fastest in
    `values`, whatever the input's storage."""

    region: tuple[tuple[int, int], ...]
    values: tuple[int | float | bool, ...]


@dataclass(frozen=True, slots=True)
class Input:
    """An image that the caller passes, or need not pass if it has a `table`. `storage` lists the dims fastest first
    (always filled in)."""

    name: str
    type: ScalarType
    dims: tuple[str, ...]
    boundary: Boundary | None
    storage: tuple[str, ...]
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """An update definition. The last variable of `domain` is the outermost loop."""

    domain: tuple[RVar, ...]
    where: Expr | None
    at: tuple[Expr, ...]
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """A function on the integer grid. `values` has one expression per tuple component."""

    name: str
    dims: tuple[str, ...]
    values: tuple[Expr, ...]
    updates: tuple[Update, ...]
    boundary: Boundary | None
    storage: tuple[str, ...]
    typed: bool = False  # the document states the type (kept so that documents round-trip)
    made_of: str | None = None  # the stage that this takes the place of, with others, where analysis made it
    memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)

    @property
    def types(self) -> tuple[ScalarType, ...]:
        return tuple(v.type for v in self.values)


def rewritten(stage: Stage, value: Callable[[Expr], Expr], update: Callable[[Expr], Expr]) -> Stage:
    """`stage` with the expressions of its values and of its updates replaced; the stage itself where nothing
    changes."""
    values = tuple(map(value, stage.values))
    updates = tuple(_rewritten(u, update) for u in stage.updates)
    same = all(map(is_, (*values, *updates), (*stage.values, *stage.updates)))
    return stage if same else replace(stage, values=values, updates=updates)


def _rewritten(u: Update, change: Callable[[Expr], Expr]) -> Update:
    ends = tuple((change(r.lo), change(r.extent)) for r in u.domain)
    where = None if u.where is None else change(u.where)
    at, values = tuple(map(change, u.at)), tuple(map(change, u.values))
    before = (*(end for r in u.domain for end in (r.lo, r.extent)), u.where, *u.at, *u.values)
    if all(map(is_, (*(end for both in ends for end in both), where, *at, *values), before)):
        return u
    domain = tuple(replace(r, lo=lo, extent=extent) for r, (lo, extent) in zip(u.domain, ends, strict=True))
    return Update(domain, where, at, values)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A checked pipeline. `stages` are in topological order, ties by name; `estimates` are sorted by name:
    (name, ((min, extent) per dim)) of outputs, and of stages and inputs where the document has them."""

    name: str
    doc: str
    params: tuple[Param, ...]
    inputs: tuple[Input, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[str, ...]
    estimates: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]

    def stage(self, name: str) -> Stage:
        """The stage of that name; KeyError where there is none."""
        for s in self.stages:
            if s.name == name:
                return s
        raise KeyError(name)

    def input(self, name: str) -> Input:
        """The input of that name; KeyError where there is none."""
        for i in self.inputs:
            if i.name == name:
                return i
        raise KeyError(name)

    def estimate(self, name: str) -> tuple[tuple[int, int], ...] | None:
        """(min, extent) per dim of that output, stage or input, where the document has it."""
        return dict(self.estimates).get(name)

    def picture(self, notes: Mapping[str, tuple[str, int]] | None = None) -> str:
        """The graph of the stages as SVG. `notes`: what stands below the name of a stage, and its group; without them
        it is the dims."""
        said = {s.name: (_dims(s.dims), 0) for s in self.stages} | dict(notes or {})
        inputs = [Node(i.name, f"{i.type} {_dims(i.dims)}", ()) for i in self.inputs]
        stages = [Node(s.name, said[s.name][0], _read(s), said[s.name][1], s.name in self.outputs) for s in self.stages]
        return graph(f"stages of {self.name}", [*inputs, *stages])

    def _repr_html_(self) -> str:
        doc = f"<p>{escape(self.doc)}</p>" if self.doc else ""
        return f"<div><p><b>{escape(self.name)}</b></p>{doc}{self.picture()}</div>"


def _dims(dims: tuple[str, ...]) -> str:
    return f"[{', '.join(dims)}]"


def _read(stage: Stage) -> tuple[str, ...]:
    """The names of the inputs and stages that a stage reads, itself left out."""
    every = [*stage.values]
    for update in stage.updates:
        ends = (end for r in update.domain for end in (r.lo, r.extent))
        every += [*ends, *update.at, *update.values, *([] if update.where is None else [update.where])]
    found = (e.name for value in every for e in walk(value) if isinstance(e, Access) and e.name != stage.name)
    return tuple(dict.fromkeys(found))
