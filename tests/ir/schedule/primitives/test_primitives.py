"""Every primitive: its documents come back, a difference is told, what is fixed is kept to, its docstring is drawn."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from tilesmith.scheduler.ir.schedule.document import from_document, to_document
from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive
from tilesmith.scheduler.ir.schedule.primitives.registry import fixable, primitives
from tilesmith.scheduler.ir.schedule.schedule import (
    Factor,
    Group,
    Joining,
    Packing,
    Placement,
    Schedule,
    Separation,
    Tile,
    UpdateLoops,
    Vector,
)

VALUES: dict[str, Any] = {
    "factors": (Factor("f", 0, "r", 8, "f_parts", True),),
    "separations": (Separation("f", 0, "y", "f_rows", "g"),),
    "joinings": (Joining(("f", "g"), "f_g"),),
    "packings": (Packing("f", "g", "x", "g_for_f"),),
    "compute": "y.inner",
    "store": "y.outer",
    "fold": False,
    "storage": "registers",
    "order": ("y", "x"),
    "loops": ("y.inner", "x.inner"),
    "tiles": (Tile("x", 64), Tile("y", None)),
    "parallel": "y.outer",
    "vector": Vector("x", 8),
    "unroll": ("c",),
    "updates": (UpdateLoops(("r", "x"), Vector("x", 8), "x"), UpdateLoops(("x",))),
    "stream": True,
    "prefetch": 512,
}
"""A value of each, other than its default."""

FIXED: dict[str, tuple[object, object]] = {
    "compute": ("y.inner", "inline"),
    "store": ("y.outer", "x.outer"),
    "storage": ("registers", "memory"),
    "order": (["y", "x"], ["x", "y"]),
    "loops": (["y.inner"], ["x.inner", "y.inner"]),
    "tiles": ({"x": 64}, {"x": None, "y": 8}),
    "parallel": ("y.outer", "none"),
    "vector": (8, 16),
    "unroll": (["c"], []),
    "stream": (True, False),
    "prefetch": (512, 0),
}
"""Values that may be fixed of each that VALUES has, and of those that it has not."""

GROUP = Group("f", (), (), None, None, (), (Placement("g", "x.inner", "x.inner"),))
EVERY = [pytest.param(p, id=p.key) for p in primitives()]


def _record(primitive: Primitive[Any]) -> Schedule | Group | Placement:
    records: dict[type, Any] = {Schedule: Schedule("p", "m", (GROUP,)), Group: GROUP, Placement: GROUP.placements[0]}
    return records[primitive.records[0]]


def _schedule(record: Any) -> Schedule:
    match record:
        case Schedule():
            return record
        case Group():
            return Schedule("p", "m", (record,))
    return Schedule("p", "m", (Group("f", (), (), None, None, (), (record,)),))


@pytest.mark.parametrize("primitive", EVERY)
def test_documents_come_back(primitive: Primitive[Any]) -> None:
    value = VALUES[primitive.key]
    record = primitive.put(_record(primitive), value)
    assert primitive.of(record) == value != primitive.default
    assert primitive.read(TypeAdapter(primitive.form).validate_python(primitive.write(value))) == value
    assert from_document(to_document(_schedule(record))) == _schedule(record)


@pytest.mark.parametrize("primitive", [p for p in EVERY if p.values[0].key not in ("compute", "store", "storage")])
def test_a_difference_has_words(primitive: Primitive[Any]) -> None:
    for value in (VALUES[primitive.key], primitive.default):
        assert primitive.difference(value)


@pytest.mark.parametrize("primitive", [pytest.param(p, id=p.key) for p in fixable()])
def test_what_is_fixed_is_compared(primitive: Primitive[Any]) -> None:
    record = primitive.put(_record(primitive), VALUES[primitive.key])
    form = TypeAdapter(primitive.fixed_form)
    this, other = (primitive.read_fixed(form.validate_python(document)) for document in FIXED[primitive.key])
    assert primitive.write_fixed(this) == FIXED[primitive.key][0]
    assert primitive.refusal("s", this, record) is None
    assert "'s'" in (primitive.refusal("s", other, record) or "")


@pytest.mark.parametrize("primitive", EVERY)
def test_it_is_drawn(primitive: Primitive[Any]) -> None:
    assert "->" in (type(primitive).__doc__ or "")


def test_keys_are_fields_of_their_records() -> None:
    for primitive in primitives():
        assert all(primitive.key in record.__dataclass_fields__ for record in primitive.records)
