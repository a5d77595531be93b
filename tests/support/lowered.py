"""Lowered parts of pipelines as text: an expression at a point or a vector of points, a stage, a group."""

from __future__ import annotations

from collections.abc import Iterable

from support.builders import builder
from support.machines import machine

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.index import const, sym
from tilesmith.scheduler.ir.loop.builder import Scope
from tilesmith.scheduler.ir.loop.printer import print_body
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, Pointer
from tilesmith.scheduler.ir.pipeline.expressions import Access, Expr, Select, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.types import FLOAT32
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Vector
from tilesmith.scheduler.lowering import lower
from tilesmith.scheduler.lowering.evaluation import Sources
from tilesmith.scheduler.lowering.expressions import Evaluator
from tilesmith.scheduler.lowering.index_vectorization import Axis, Frame
from tilesmith.scheduler.rewrites.passes import rewrite

LANES = 8


def pipeline(value: str, *stages: tuple[str, str], type: str = "float32", dims: tuple[str, ...] = ("x",)) -> Pipeline:
    """A pipeline of input `f` and `stages`, which lead to `out`, all over the same dims."""
    listed = [{"name": name, "dims": list(dims), "value": text} for name, text in (*stages, ("out", value))]
    return loaded(*listed, type=type)


def loaded(*stages: dict[str, object], type: str = "float32", extents: tuple[int, ...] | None = None) -> Pipeline:
    """The pipeline of input `f` and these stages, the last of which is the output, all over the same dims; of 64 points
    in each of them, or of `extents`."""
    last = stages[-1]
    dims = list(last["dims"])
    return load(
        {
            "format": 1,
            "name": "lowered",
            "inputs": [{"name": "f", "type": type, "dims": dims}],
            "stages": list(stages),
            "outputs": [last["name"]],
            "estimates": {last["name"]: [[0, n] for n in extents or (64,) * len(dims)]},
        }
    )


def buffer(name: str, type_: object, dims: tuple[str, ...] = ("x",)) -> Buffer:
    """Memory of the caller, dense along its first dim, from 0 on."""
    strides = [const(1), *(sym(f"{name}_stride_{d}") for d in dims[1:])]
    extents = [sym(f"{name}_{d}") for d in dims]
    origins, rings = [const(0) for _ in dims], [None for _ in dims]
    return Buffer(name, 0, type_, dims, 0, "argument", Pointer(name), origins, strides, rings, extents)


class Lowered:
    """An evaluator of the values of `p` in the body of a loop along x, of vectors unless `lanes` is 1."""

    def __init__(self, p: Pipeline, lanes: int = LANES, exact: bool = False, safe: bool = False) -> None:
        self.builder = b = builder()
        self.stages = {s.name: s for s in p.stages}
        inlined = {s.name: s for s in p.stages if s.name not in p.outputs}
        buffers = {(i.name, 0): buffer(i.name, i.type, i.dims) for i in p.inputs}
        self.scope = b.scope()
        self.inside = self.scope.__enter__()
        x, dims = b.declare("x"), p.inputs[0].dims
        axis = Axis("x", 1, lanes, b.depth) if lanes > 1 else None
        self.evaluator = Evaluator(b, Sources(inlined, buffers, {}), axis, exact=exact, safe=safe)
        lane = Lane(x, tuple(range(lanes)) if lanes > 1 else None)
        self.frame = self.evaluator.frame({dims[0]: lane, **{d: Lane(sym(d)) for d in dims[1:]}})

    def text(self) -> str:
        """The statements of the loop's body, after those before it."""
        return print_body((*self.builder.scopes[0].statements, *self.inside))

    def required(self) -> list[str]:
        """Indices that are not negative where the vector code runs."""
        return [repr(x) for x in self.evaluator.constraints]


def evaluated(p: Pipeline, lanes: int = LANES, exact: bool = False, safe: bool = False) -> Lowered:
    """The value of the output, evaluated."""
    lowered = Lowered(p, lanes, exact, safe)
    lowered.evaluator.value(lowered.stages[p.outputs[0]].values[0], lowered.frame)
    return lowered


def index(text: str) -> Expr:
    """The index that this text is, of x and y."""
    (read,) = (e for e in walk(pipeline(f"f({text}, y)", dims=("x", "y")).stages[0].values[0]) if isinstance(e, Access))
    return read.indices[0]


def choice(text: str) -> Select:
    """The choice between two reads by the condition that this text is, of x and y."""
    found = pipeline(f"select({text}, f(x, y), f(x + 1, y))", dims=("x", "y")).stages[0].values[0]
    assert isinstance(found, Select)
    return found


def row(align: int = 1, lanes: int = LANES, splits: bool = False) -> tuple[Evaluator, Frame]:
    """An evaluator in a loop over vectors that begin at multiples of `align`, and its variables: x moves, and y is of a
    loop around."""
    b = builder()
    y = b.declare("y")
    b.scopes.append(Scope())
    start = b.declare("q").scaled(align)
    memory = {("f", 0): buffer("f", FLOAT32, ("x", "y"))}
    ev = Evaluator(b, Sources({}, memory, {}), Axis("q", align, lanes, b.depth, start, splits))
    return ev, ev.frame({"x": Lane(start, tuple(range(lanes))), "y": Lane(y)})


def body(p: Pipeline, groups: Iterable[Group], vector_bytes: int = 32) -> str:
    """The loops of a pipeline by a schedule of these groups."""
    return print_body(
        lower(rewrite(p, Schedule(p.name, "by hand", tuple(groups))), machine(vector_bytes=vector_bytes)).body
    )


def group(loops: str, placements: Iterable[Placement] = (), vector: int | None = 8, **changes: object) -> Group:
    """The group of `out` with these loops, innermost first, as they are written apart, and vectors along x."""
    fields: dict = {"tiles": (), "parallel": None, "unroll": (), **changes}
    lanes = None if vector is None else Vector("x", vector)
    return Group("out", tuple(loops.split()), vector=lanes, placements=tuple(placements), **fields)
