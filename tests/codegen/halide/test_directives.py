"""Directives: a schedule as calls on Halide's Funcs, one by one, and what no call can say."""

from __future__ import annotations

from dataclasses import replace

from support.lowered import group, loaded, pipeline

from tilesmith.scheduler.codegen.halide.directives import (
    Argument,
    DimVar,
    Directive,
    DomainVar,
    FuncOf,
    Guard,
    NewVar,
    Shift,
    directives,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Tile, UpdateLoops, Vector
from tilesmith.scheduler.rewrites.passes import rewrite

P = pipeline("g(x, y) + g(x, y + 1)", ("g", "f(x, y) * 2"), dims=("x", "y"))


def calls(p: Pipeline, *groups: Group) -> list[str]:
    """The calls as text: the stage, the method, the names of its arguments."""
    found = directives(rewrite(p, Schedule(p.name, "by hand", groups)))
    return [_text(c) for c in found.calls]


def _text(c: Directive) -> str:
    update = "" if c.update is None else f".update({c.update})"
    return f"{c.stage}{update}.{c.method}({', '.join(map(_argument, c.arguments))})"


def _argument(a: Argument) -> str:
    match a:
        case DimVar() | NewVar():
            return a.name
        case DomainVar():
            return f"r{a.index} of update {a.update}"
        case FuncOf():
            return a.stage
        case Guard():
            return "guarded"
        case Shift():
            return "shifted"
        case int():
            return str(a)


def test_vectors_and_threads_of_dims_that_are_not_split() -> None:
    """Of any extent: what is left of a vector is guarded."""
    found = calls(pipeline("f(x, y) * 2", dims=("x", "y")), group("x.inner y.inner", parallel="y.inner"))
    assert found == ["out.compute_root()", "out.reorder(x, y)", "out.vectorize(x, 8, guarded)", "out.parallel(y)"]


def test_tiles_are_splits_ahead_of_the_order() -> None:
    """Vectors divide a tile, and need no guard in it."""
    tiled = group("x.inner y.inner x.outer y.outer", tiles=(Tile("x", 16), Tile("y", 4)), parallel="y.outer")
    assert calls(pipeline("f(x, y) * 2", dims=("x", "y")), tiled) == [
        "out.compute_root()",
        "out.split(x, x_outer, x_inner, 16, guarded)",
        "out.split(y, y_outer, y_inner, 4, guarded)",
        "out.reorder(x_inner, y_inner, x_outer, y_outer)",
        "out.vectorize(x_inner, 8)",
        "out.parallel(y_outer)",
    ]


def test_stages_that_slide_are_stored_outside_of_where_they_are_computed() -> None:
    """In a ring of as many rows as are read."""
    stage = Placement("g", "y.inner", "y.outer", order=("x", "y"), vector=Vector("x", 8))
    assert calls(P, group("x.inner y.inner y.outer", [stage], tiles=(Tile("y", 4),)))[-5:] == [
        "g.store_at(out, y_outer)",
        "g.compute_at(out, y_inner)",
        "g.reorder(x, y)",
        "g.vectorize(x, 8, shifted)",
        "g.fold_storage(y, 2)",
    ]


def test_stages_computed_inside_of_the_vectorised_loop_are_computed_by_rows() -> None:
    """Halide has no windows that move along it. Where it is the outermost loop, they are computed whole."""
    stage = Placement("g", "x.inner", "y.inner", order=("x", "y"), vector=Vector("x", 8))
    found = calls(P, group("x.inner y.inner", [stage]))
    assert found[-3:] == ["g.compute_at(out, y)", "g.reorder(x, y)", "g.vectorize(x, 8, shifted)"]
    line = pipeline("g(x) + g(x + 1)", ("g", "f(x) * 2"), dims=("x",))
    stage = Placement("g", "x.inner", "x.inner", order=("x",), vector=Vector("x", 8))
    assert "g.compute_root()" in calls(line, group("x.inner", [stage]))


def test_vectors_of_stages_shorter_than_one_are_guarded() -> None:
    stage = Placement("g", "y.inner", "y.inner", order=("x", "y"), vector=Vector("x", 1 << 20))
    assert calls(P, group("x.inner y.inner", [stage]))[-1] == f"g.vectorize(x, {1 << 20}, guarded)"


def test_stages_computed_where_they_are_stored_have_one_call_for_both() -> None:
    found = calls(P, group("x.inner y.inner", [Placement("g", "y.inner", "y.inner", order=("y", "x"))], vector=None))
    assert found[-2:] == ["g.compute_at(out, y)", "g.reorder(y, x)"]


def test_inlined_stages_are_said_to_be() -> None:
    found = calls(P, group("x.inner y.inner", [Placement("g", INLINE, INLINE)], vector=None))
    assert found == ["out.compute_root()", "out.reorder(x, y)", "g.compute_inline()"]


def test_loops_of_updates_are_of_dims_and_variables_of_their_domains() -> None:
    scan = {"domain": {"r": [1, 20]}, "at": ["x", "r"], "value": "out(x, r - 1) + f(x, r)"}
    p = loaded({"name": "out", "dims": ["x", "y"], "value": "f(x, y)", "updates": [scan]})
    found = calls(p, group("x.inner y.inner", updates=(UpdateLoops(("x", "r"), Vector("x", 8)),)))
    assert found[-2:] == ["out.update(0).reorder(x, r0 of update 0)", "out.update(0).vectorize(x, 8, guarded)"]


def test_groups_are_each_at_root() -> None:
    first = replace(group("x.inner y.inner", vector=None), output="g")
    found = calls(P, first, group("x.inner y.inner", vector=None))
    assert [c for c in found if "root" in c] == ["g.compute_root()", "out.compute_root()"]
    assert not any("_at" in c for c in found)
