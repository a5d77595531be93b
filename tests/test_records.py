"""Records: compared, hashed, copied and stored as frozen dataclasses are."""

from __future__ import annotations

import pickle
from dataclasses import field, replace

import pytest

from tilesmith.records import record


@record(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0
    note: str = field(default="", compare=False)


@record(frozen=True, slots=True)
class Named:
    name: str
    kind: str

    def __hash__(self) -> int:
        return hash(self.name)


@record(frozen=True, slots=True, eq=False)
class Itself:
    x: int


def test_records_are_values() -> None:
    assert Point(1) == Point(1, 0, "other") != Point(1, 1)
    assert len({Point(1), Point(1, note="other"), Point(2)}) == 2
    assert replace(Point(1), y=3) == Point(1, 3)
    assert pickle.loads(pickle.dumps(Point(1, 2))) == Point(1, 2)
    assert repr(Point(1)) == "Point(x=1, y=0, note='')"
    with pytest.raises(AttributeError):
        Point(1).z = 2  # type: ignore[attr-defined]


def test_a_hash_of_its_own_stays() -> None:
    assert hash(Named("a", "b")) == hash("a")
    assert Named("a", "b") != Named("a", "c")


def test_records_without_equality_are_told_apart() -> None:
    assert Itself(1) != Itself(1)
    assert len({Itself(1), Itself(1)}) == 2
