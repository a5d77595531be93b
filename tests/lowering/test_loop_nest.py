"""Loop nests: a row is whole vectors, and scalars at its edges; every point of a box is visited, and no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from support.builders import builder
from support.lowered import body, buffer, group, loaded, pipeline
from support.lowered_values import assert_lowered_right, execute_body

from tilesmith.scheduler.features.groups.register_tiles import shares_loads
from tilesmith.scheduler.ir.index import Index, const, sym
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.builder import literal
from tilesmith.scheduler.ir.loop.values import Lane
from tilesmith.scheduler.ir.pipeline.types import INT32
from tilesmith.scheduler.ir.schedule.schedule import Vector
from tilesmith.scheduler.lowering.evaluation import Sources
from tilesmith.scheduler.lowering.expressions import Evaluator
from tilesmith.scheduler.lowering.index_vectorization import NeedAlignment
from tilesmith.scheduler.lowering.loop_nest import run
from tilesmith.scheduler.lowering.memory import load, store
from tilesmith.scheduler.lowering.nest import Nest
from tilesmith.scheduler.lowering.unrolled_dims import iterations, written_out

Golden = Callable[[str, str], None]


def test_a_row_is_vectors_and_what_is_left(golden: Golden) -> None:
    p = pipeline("f(x) + 1.0")
    golden("a_row_is_vectors_and_what_is_left.txt", body(p, [group("x.inner")]))


def test_without_vectors_it_is_one_loop(golden: Golden) -> None:
    p = pipeline("f(x) + 1.0")
    golden("without_vectors_it_is_one_loop.txt", body(p, [group("x.inner", vector=None)]))


def test_clamps_cut_the_row(golden: Golden) -> None:
    p = pipeline("f(clamp(x - 1, 0, 60))")
    golden("clamps_cut_the_row.txt", body(p, [group("x.inner")]))


MARGIN = 20
WIDTH, HEIGHT = 80, 9


def visits(nest: Nest, limit: Index | None = None, **known: int) -> np.ndarray:
    """How often each point of x and y was visited, from -MARGIN on along x; bounds are symbols that are `known`. With a
    `limit` vectors ask to be left of it."""
    b = builder()
    for name in known:
        b.declare(name)
    memory = buffer("out", INT32, ("x", "y"))

    def body(evaluator: Evaluator, envs: Sequence[Mapping[str, Lane]]) -> None:
        for env in envs:
            at = Lane(env["x"].base + MARGIN, env["x"].pattern), env["y"]
            if limit is not None and env["x"].pattern is not None and not evaluator.exact:
                evaluator.require(limit - env["x"].base - max(env["x"].pattern))
            before = load(b, memory, at, INT32, True, b.depth)
            store(b, memory, at, b.define(ops.Binary("+", before, literal(1, INT32)), INT32, before.lanes, pinned=True))

    run(b, Sources({}, {("out", 0): memory}, {}), replace(nest, body=body))
    result = np.zeros((HEIGHT, WIDTH), np.int32)
    execute_body(b.scopes[0].statements, [(memory, result)], **known)
    return result


def box(**changes: object) -> Nest:
    """A nest over symbolic bounds, vectors of 8 along x; `own` keeps what is read of what is written in its order."""
    bounds = {"x": (sym("x0"), sym("x1")), "y": (sym("y0"), sym("y1"))}
    fields: dict = {"order": ("x", "y"), "vector": Vector("x", 8), "own": "out", **changes}
    return Nest("out", lambda *_: None, bounds, **fields)


ENDS = [(0, 0), (0, 6), (0, 7), (0, 8), (0, 15), (-5, 20), (3, 30), (-7, 1), (4, 3), (4, -3)]
"""Of rows: a point, less than a vector, one, more, several; nothing."""


def expected(x0: int, x1: int, y0: int, y1: int) -> np.ndarray:
    result = np.zeros((HEIGHT, WIDTH), np.int32)
    result[y0 : y1 + 1, x0 + MARGIN : max(x1 + 1, x0) + MARGIN] = 1
    return result


@pytest.mark.parametrize("order", [("x", "y"), ("y", "x")])
@pytest.mark.parametrize("vector", [None, Vector("x", 4), Vector("x", 8)])
@pytest.mark.parametrize(("x0", "x1"), ENDS)
def test_every_point_is_visited_and_no_other(x0: int, x1: int, vector: Vector | None, order: tuple[str, ...]) -> None:
    for y0, y1 in ((0, 0), (2, 5), (3, 2)):
        found = visits(box(vector=vector, order=order), x0=x0, x1=x1, y0=y0, y1=y1)
        assert (found > 0).tolist() == (expected(x0, x1, y0, y1) > 0).tolist()
        assert vector is not None or found.max() <= 1


@pytest.mark.parametrize("of", [1, 2, 4])
@pytest.mark.parametrize(("y0", "y1"), [(0, 0), (0, 3), (1, 4), (3, 6), (0, 8), (1, 8), (2, 1)])
def test_blocks_begin_at_multiples(y0: int, y1: int, of: int) -> None:
    """Points before the first block and after the last are visited one by one; so are those of a tile that begins
    elsewhere."""
    aligned = {} if of == 1 else {"y": of}
    for nest in (box(blocks={"y": 4}, aligned=aligned), box(unroll={"y": (None, 4)}, aligned=aligned)):
        found = visits(nest, x0=-5, x1=20, y0=y0, y1=y1)
        assert (found > 0).tolist() == (expected(-5, 20, y0, y1) > 0).tolist()
        once = visits(replace(nest, once=True), x0=-5, x1=20, y0=y0, y1=y1)
        assert once.tolist() == expected(-5, 20, y0, y1).tolist()


@pytest.mark.parametrize(("x0", "x1"), ENDS)
def test_where_no_point_may_be_visited_twice_none_is(x0: int, x1: int) -> None:
    found = visits(box(once=True), x0=x0, x1=x1, y0=1, y1=2)
    assert found.tolist() == expected(x0, x1, 1, 2).tolist()


@pytest.mark.parametrize(("points", "lanes"), [(1, None), (2, 2), (3, 2), (7, 4), (8, 8), (9, 8)])
def test_rows_of_known_length_have_no_vectors_that_are_longer(points: int, lanes: int | None) -> None:
    """Code that is marked as seldom run would be all that runs: compilers would take the loop around it for cold."""
    bounds = {"x": (sym("x0"), sym("x0") + (points - 1)), "y": (sym("y0"), sym("y1"))}
    patterns: list[int] = []

    def body(evaluator: Evaluator, envs: Sequence[Mapping[str, Lane]]) -> None:
        patterns.extend(len(env["x"].pattern or (0,)) for env in envs)

    b = builder()
    for name in ("x0", "y0", "y1"):
        b.declare(name)
    run(b, Sources({}, {}, {}), replace(box(), bounds=bounds, body=body))
    assert max(patterns) == (lanes or 1)
    found = visits(replace(box(), bounds=bounds), x0=3, y0=1, y1=2)
    assert (found > 0).tolist() == (expected(3, 3 + points - 1, 1, 2) > 0).tolist()


@pytest.mark.parametrize("align", [1, 2, 4])
@pytest.mark.parametrize(("x0", "x1"), [*ENDS, (1, 0), (1, 8), (-1, 6), (-3, 5)])
def test_rows_with_room_are_vectors_whatever_their_length(x0: int, x1: int, align: int) -> None:
    """They begin at multiples, before the row or with it; nothing is stored where it is empty."""
    b = builder()
    memory = replace(buffer("out", INT32, ("x", "y")), margin=8, room=16)

    def body(evaluator: Evaluator, envs: Sequence[Mapping[str, Lane]]) -> None:
        if evaluator.axis is not None and evaluator.axis.align < align:
            raise NeedAlignment(align)
        for env in envs:
            store(b, memory, (Lane(env["x"].base + MARGIN, env["x"].pattern), env["y"]), literal(1, INT32))

    for name in ("x0", "x1", "y0", "y1"):
        b.declare(name)
    run(b, Sources({}, {("out", 0): memory}, {}), replace(box(roomy=True), body=body))
    result = np.zeros((HEIGHT, WIDTH), np.int32)
    execute_body(b.scopes[0].statements, [(memory, result)], x0=x0, x1=x1, y0=1, y1=2)
    begin = x0 // align * align
    end = max(begin + 8, -(-(x1 + 1) // align) * align)
    whole = expected(begin, end - 1, 1, 2) if x1 >= x0 else np.zeros_like(result)
    assert result.tolist() == whole.tolist()


def test_vectors_end_where_they_need_to_and_the_rest_depends_on_how_much_it_is() -> None:
    """The lanes that are visited twice are those of the last vector, which ends with the middle, at 20; and where edges
    are expected to be wide, those of the last vector of the row, which ends with it, at 30. Narrow ones are points."""
    ends = {"x0": 0, "x1": 30, "y0": 0, "y1": 0}
    wide, narrow = (box(estimate=lambda x, at=ends | {"x1": last}: x.value(at)) for last in (30, 21))
    found = [visits(nest, const(20), **ends)[0, MARGIN : MARGIN + 32].tolist() for nest in (wide, narrow)]
    middle = [1] * 13 + [2] * 3 + [1] * 5
    assert found == [[*middle, 1, 1, *[2] * 6, 1, 1, 0], [*middle, *[1] * 10, 0]]


@pytest.mark.parametrize("limit", [-3, 0, 6, 7, 12, 40])
@pytest.mark.parametrize("once", [False, True])
def test_rows_of_which_little_is_for_vectors(limit: int, once: bool) -> None:
    """With wide edges, as vectors that clamp each lane; the expected extent says so."""
    for x0, x1 in ENDS:
        nest = box(once=once, estimate=lambda _: 100)
        found = visits(nest, limit=const(limit), x0=x0, x1=x1, y0=0, y1=1)
        assert (found > 0).tolist() == (expected(x0, x1, 0, 1) > 0).tolist()
        assert not once or found.max() <= 1


@pytest.mark.parametrize("y1", [0, 1, 2, 3, 6])
def test_blocks_are_visited_side_by_side_and_what_is_left_one_by_one(y1: int) -> None:
    seen: list[int] = []
    nest = box(vector=None, order=("x", "y"), blocks={"y": 3})
    assert visits(nest, x0=0, x1=2, y0=0, y1=y1).tolist() == expected(0, 2, 0, y1).tolist()
    b = builder()
    b.declare("y1")
    bounds = {"x": (const(0), const(2)), "y": (const(0), sym("y1"))}
    run(b, Sources({}, {}, {}), replace(nest, bounds=bounds, body=lambda _, envs: seen.append(len(envs))))
    assert seen == [3, 1]


@pytest.mark.parametrize(("y0", "y1"), [(0, 2), (1, 3), (0, 3), (0, 1)])
def test_dims_are_written_out_where_they_are_as_expected(y0: int, y1: int) -> None:
    """Else, and where nothing is known of where they begin, they are loops."""
    for unroll in ({"y": (0, 3)}, {"y": (None, 3)}):
        found = visits(box(unroll=unroll), x0=0, x1=9, y0=y0, y1=y1)
        assert (found > 0).tolist() == (expected(0, 9, y0, y1) > 0).tolist()


def test_what_is_written_out_and_what_that_asks() -> None:
    lo, hi, four = sym("lo"), sym("hi"), (const(0), const(3))
    assert written_out({"c": four}, {"c": (0, 4)}) == ({"c": four}, ())
    assert written_out({"c": four}, {"c": (0, 3)}) is None
    assert written_out({"c": four}, {"c": (1, 4)}) is None
    assert written_out({"c": (lo, lo)}, {"c": (0, 1)}) is None
    assert written_out({"c": four}, {}) is None
    assert written_out({"c": (lo, lo + 3)}, {"c": (None, 4)}) == ({"c": (lo, lo + 3)}, ())
    assert written_out({"c": (lo, hi)}, {"c": (0, 4)}) == ({"c": four}, (lo, const(0) - lo, hi - 3, const(3) - hi))


def test_iterations_are_all_of_a_range() -> None:
    assert [at.base for at in iterations((sym("y"), sym("y") + 2))] == [sym("y"), sym("y") + 1, sym("y") + 2]
    assert list(iterations((const(3), const(2)))) == []


def test_who_shares_loads() -> None:
    """Points that differ in c read the one weight w; or through the stage that is inlined."""
    p = pipeline("f(x, c) * f(x, 0)", dims=("x", "c"))
    assert shares_loads(p.stages[0], "c", "x", {})
    assert not shares_loads(pipeline("f(x, c) + f(x, c + 1)", dims=("x", "c")).stages[0], "c", "x", {})
    g, out = pipeline("g(x, c) + g(x + 1, c)", ("g", "f(x, 3) * f(x, c)"), dims=("x", "c")).stages
    assert shares_loads(out, "c", "x", {"g": g})
    assert not shares_loads(out, "c", "x", {})


def test_sums_share_no_loads_by_a_bias() -> None:
    for beside, shared in (("", False), (" + f(x, 0)", False), (" + sum(f(x, k) for k in range(99))", True)):
        (out,) = pipeline(f"sum(f(x + k, c) * f(x, c + k) for k in range(99)){beside}", dims=("x", "c")).stages
        assert shares_loads(out, "c", "x", {}) == shared


VALUES = {
    "a clamp at both ends": "f(clamp(x - 2, 0, 20), y) + f(clamp(x + 3, 0, 20), y)",
    "a clamp of rows": "f(x, clamp(y - 1, 0, 4)) + f(x, clamp(y + 1, 0, 4))",
    "a clamp by the row": "f(clamp(x, 0, 5 + y % 3), y)",
    "a clamp of every other": "f(clamp(2 * x - 3, 0, 41), y) + f(clamp(19 - 2 * x, 0, 30), y)",
    "aligned": "f(x // 2, y) + f(x // 4, y) * 2",
    "aligned and clamped": "f(clamp(x // 2, 2, 6), y)",
    "repeated": "f(x % 7, y)",
    "a long sum": "sum(f(clamp(x + k, 0, 20), y) for k in range(-40, 40))",
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_rows_with_clamps_are_right(value: str) -> None:
    p = pipeline(value, dims=("x", "y"))
    size = {"f": ((-30, 90), (-8, 30))}
    regions = (
        ((0, 1), (0, 1)),
        ((0, 24), (0, 6)),
        ((-9, 5), (1, 2)),
        ((-9, 41), (-2, 4)),
        ((18, 30), (0, 1)),
        ((1, 21), (0, 1)),
    )
    assert_lowered_right(p, [group("x.inner y.inner")], *regions, sizes=size)


def test_tuples_and_truths_are_stored_by_component() -> None:
    p = loaded({"name": "out", "dims": ["x", "y"], "value": ["f(x, y) * 2", "f(x, y) > 0", "int16(f(x + 1, y) * 9)"]})
    assert_lowered_right(p, [group("x.inner y.inner")], ((0, 1), (0, 1)), ((-3, 21), (2, 3)))


@pytest.mark.parametrize("loops", ["x.inner c.inner", "c.inner x.inner"])
def test_channels_are_written_out_where_there_are_three(loops: str) -> None:
    p = loaded({"name": "out", "dims": ["x", "c"], "value": "f(x, c) * f(x, 0)"}, extents=(64, 3))
    group_of = group(loops, unroll=("c",) if loops.startswith("c") else ())
    assert_lowered_right(p, [group_of], ((0, 64), (0, 3)), ((-3, 20), (0, 3)), ((5, 20), (1, 4)), ((0, 1), (0, 3)))
