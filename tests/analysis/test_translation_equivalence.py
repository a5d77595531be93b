"""Translation equivalence: functions of places; what several expressions have in common is looked at once."""

from __future__ import annotations

from tilesmith.scheduler.analysis.translation_equivalence import Looked, placed
from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, Call, Const, Expr, Var
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32

X, Y = Var("x"), Var("y")
DIMS = ("x", "y")


def shifted(e: Expr, by: int) -> Expr:
    return Binary("+", e, Const(by, INT32), INT32)


def clamped(e: Expr) -> Expr:
    return Call("clamp", (e, Const(0, INT32), Const(99, INT32)), INT32)


def test_places_are_taken_out_of_clamps() -> None:
    a, b = (Access("f", (clamped(shifted(X, n)), clamped(Y)), 0, FLOAT32) for n in (2, 5))
    first, second = placed(a, DIMS), placed(b, DIMS)
    assert first.function == second.function
    assert [dict(p.places)["x"].shift for p in (first, second)] == [2, 5]
    assert first.at({"x": dict(second.places)["x"]}) == b


def test_a_dim_in_two_ways_has_no_place() -> None:
    twice = Binary("*", X, Const(2, INT32), INT32)
    product = Binary("*", Access("f", (X, Y), 0, FLOAT32), Access("f", (twice, Y), 0, FLOAT32), FLOAT32)
    assert [d for d, _ in placed(product, DIMS).places] == ["y"]
    mixed = Access("f", (clamped(Binary("+", X, Y, INT32)), X), 0, FLOAT32)
    assert placed(mixed, DIMS).places == ()


def test_common_parts_are_looked_at_once() -> None:
    rows = [clamped(shifted(Y, n)) for n in range(3)]
    columns = [clamped(shifted(X, n)) for n in range(3)]
    several = [Access("f", (x, y), 0, FLOAT32) for x in columns for y in rows]
    several += [Access("f", (clamped(Binary("+", X, Y, INT32)), y), 0, FLOAT32) for y in rows]
    several.append(Access("g", (Binary("*", X, Const(2, INT32), INT32), clamped(X)), 0, FLOAT32))
    known = Looked(DIMS, ())
    assert [placed(e, DIMS, known=known) for e in several] == [placed(e, DIMS) for e in several]
