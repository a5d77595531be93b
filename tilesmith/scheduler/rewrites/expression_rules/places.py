"""Places: paths to the parts of a stage's expressions that rules may rewrite.

As text, `harris.value.left.args[0]`: the stage, one of its expressions (`value`, `value[1]` of a tuple,
`updates[0].value`, `updates[0].where`), and the steps to the part. Indices of accesses and ranges of loops say where is
read, and which points; they are no places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Expr,
    Logical,
    Reduce,
    Select,
    Unary,
    children,
    map_children,
    with_child,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, Update
from tilesmith.scheduler.rewrites.expression_rules.constants import settled

Order = Literal["top_down", "bottom_up"]
Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A part of an expression of a stage."""

    stage: str
    path: Path

    def __str__(self) -> str:
        return ".".join((self.stage, *self.path))

    @classmethod
    def parse(cls, text: str) -> Place:
        """The place that a text names."""
        stage, *path = text.split(".")
        return cls(stage, tuple(path))


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an expression with its step and what it is a part of; of the whole expression, the steps to it."""

    e: Expr
    steps: Path
    number: int = 0
    parent: Part | None = None

    @property
    def path(self) -> Path:
        steps, part = list[str](), self
        while part.parent is not None:
            steps += part.steps
            part = part.parent
        return (*part.steps, *reversed(steps))

    def replaced(self, new: Expr) -> Expr:
        """The whole expression with this part replaced."""
        part = self
        while part.parent is not None:
            new = settled(with_child(part.parent.e, part.number, new))
            part = part.parent
        return new


def expressions(stage: Stage) -> tuple[Part, ...]:
    """The expressions of a stage that rules may rewrite."""
    found = list(_values(stage.values, ()))
    for n, update in enumerate(stage.updates):
        if update.where is not None:
            found.append(Part(update.where, (f"updates[{n}]", "where")))
        found += _values(update.values, (f"updates[{n}]",))
    return tuple(found)


def _values(values: tuple[Expr, ...], steps: Path) -> Iterator[Part]:
    for k, value in enumerate(values):
        yield Part(value, (*steps, "value" if len(values) == 1 else f"value[{k}]"))


def with_expressions(stage: Stage, change: Callable[[Expr], Expr]) -> Stage:
    """`stage` with these expressions replaced, in the order of `expressions`; itself where nothing changes."""
    values = tuple(map(change, stage.values))
    updates = tuple(_with_expressions(u, change) for u in stage.updates)
    same = all(a is b for a, b in zip((*values, *updates), (*stage.values, *stage.updates), strict=True))
    return stage if same else replace(stage, values=values, updates=updates)


def _with_expressions(update: Update, change: Callable[[Expr], Expr]) -> Update:
    where = None if update.where is None else change(update.where)
    values = tuple(map(change, update.values))
    same = where is update.where and all(a is b for a, b in zip(values, update.values, strict=True))
    return update if same else replace(update, where=where, values=values)


def parts(whole: Part, order: Order = "top_down") -> Iterator[Part]:
    """The expression and its parts, from left to right, each after or before what it is a part of."""
    found, stack, down = list[Part](), [whole], order == "top_down"
    while stack:
        part = stack.pop()
        found.append(part)
        inner = direct_parts(part)
        stack += inner[::-1] if down else inner
    return iter(found) if down else reversed(found)


def operands(e: Expr) -> tuple[Expr, ...]:
    """The direct parts of an expression that rules may rewrite."""
    if isinstance(e, Access):
        return ()
    if isinstance(e, Reduce):
        return (e.body,) if e.where is None else (e.where, e.body)
    return children(e)


def direct_parts(part: Part) -> list[Part]:
    """The direct parts of a part, with their steps."""
    e = part.e
    inner, first = children(e), 0
    match e:
        case Binary() | Compare() | Logical():
            names: tuple[str, ...] = ("left", "right")
        case Select():
            names = ("condition", "if_true", "if_false")
        case Unary() | Cast():
            names = ("operand",)
        case Call():
            names = tuple(f"args[{n}]" for n in range(len(inner)))
        case Reduce():
            names = ("body",) if e.where is None else ("where", "body")
            first = len(inner) - len(names)
        case _:
            return []
    return [Part(inner[first + n], (name,), first + n, part) for n, name in enumerate(names)]


def map_parts(e: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """`e` with its direct parts replaced; itself where nothing changes."""
    if isinstance(e, Access):
        return e
    if not isinstance(e, Reduce):
        new = map_children(e, change)
        return e if new is e else settled(new)
    where = None if e.where is None else change(e.where)
    body = change(e.body)
    return e if where is e.where and body is e.body else replace(e, where=where, body=body)


def find(pipeline: Pipeline, place: Place) -> Part | str:
    """The part at a place, or why there is none."""
    stage = next((s for s in pipeline.stages if s.name == place.stage), None)
    if stage is None:
        return f"there is no stage {place.stage!r}"
    part = next((x for x in expressions(stage) if place.path[: len(x.steps)] == x.steps), None)
    if part is None:
        return f"the stage has {', '.join('.'.join(x.steps) for x in expressions(stage))}"
    for step in place.path[len(part.steps) :]:
        inner = direct_parts(part)
        following = next((p for p in inner if p.steps == (step,)), None)
        if following is None:
            known = ", ".join(p.steps[0] for p in inner)
            return f"there is no {step!r}: this has {known}" if known else f"there is no {step!r}: this has no parts"
        part = following
    return part


def with_part(pipeline: Pipeline, place: Place, part: Part, new: Expr) -> Pipeline:
    """`pipeline` with the part at a place replaced."""
    whole = part.replaced(new)
    root = part
    while root.parent is not None:
        root = root.parent
    stages = []
    for s in pipeline.stages:
        if s.name == place.stage:
            at = iter([x.steps == root.steps for x in expressions(s)])
            s = with_expressions(s, lambda e, at=at: whole if next(at) else e)  # type: ignore[misc]
        stages.append(s)
    return replace(pipeline, stages=tuple(stages))
