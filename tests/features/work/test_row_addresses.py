"""Addresses of the rows that points side by side go along."""

from __future__ import annotations

import pytest
from support.group_work import ORDERS, axis

from tilesmith.cost_models.work import Addresses
from tilesmith.scheduler.features.groups.execution_mode import Run, Running
from tilesmith.scheduler.features.groups.fusion_group import effective, members_of
from tilesmith.scheduler.features.groups.loop_nest import Nest
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.features.work.simd_work import worked_counts
from tilesmith.scheduler.frontends.document.document import load

SQUARE = "+".join(f"f(x + {i}, y + {j})" for i in (0, 1, 2) for j in (0, 1, 2))
DIAGONAL = "f(x, y) + f(x + 1, y + 1) + f(x + 2, y + 2)"


def addresses(value: str, rows: int, lanes: int = 8) -> Addresses | None:
    """The addresses of so many rows of a stage side by side."""
    document = {
        "format": 1, "name": "p", "inputs": [{"name": "f", "type": "float32", "dims": ["x", "y"]}],
        "stages": [{"name": "out", "dims": ["x", "y"], "value": value}],
        "outputs": ["out"], "estimates": {"out": [[0, 64], [0, 8]]},
    }  # fmt: skip
    facts = gather(load(document))
    members = members_of(facts, "out", ("out",))
    reads = effective(members, frozenset(), {"y": rows} if rows > 1 else {})
    nest = Nest("out", ORDERS[0], {"x": axis("x", 64, [64]), "y": axis("y", 8, [rows])})
    found = worked_counts(members, reads, nest, {}, 1, Running({"out": Run("x", lanes)})).at((0,))
    (work,) = (s.work for s in found.stages if s.work is not None)
    return work.addresses


@pytest.mark.parametrize(("rows", "lanes"), [(1, 8), (4, 1)])
def test_points_alone_and_scalar_code_have_none(rows: int, lanes: int) -> None:
    assert addresses(SQUARE, rows, lanes) is None


def test_points_that_share_rows_come_to_each_once() -> None:
    """Four points read six rows, and store to four."""
    assert addresses(SQUARE, 4) == Addresses(6.0 + 4.0, 6 / 4 + 1)


def test_points_that_share_no_vectors_come_to_each_of_their_rows() -> None:
    """They read the same six rows at three places each."""
    assert addresses(DIAGONAL, 4) == Addresses(6.0 + 4.0, 3.0 + 1)
