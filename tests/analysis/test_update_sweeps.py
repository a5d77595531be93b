"""Sweeps: which updates of a stage have a block of rows before the next one."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.analysis.dependence import default_order, free_dims
from tilesmith.scheduler.analysis.update_sweeps import Sweep, joins_last, planes, sweeps
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops, Vector

DIMS = ["x", "y", "z"]


def scan(along: str, before: int = 1, back: bool = False) -> dict[str, object]:
    """A running sum along a dim, of the place and that so far before it."""
    here, there = ("9 - r", f"9 - r + {before}") if back else ("r + 2", f"r + 2 - {before}")
    own, read = ([at if d == along else d for d in DIMS] for at in (here, there))
    return {"domain": {"r": [1, 6]}, "at": own, "value": f"f({', '.join(own)}) + f({', '.join(read)})"}


def stage(*updates: dict[str, object]) -> Stage:
    of = {"name": "f", "dims": DIMS, "value": "input(x, y, z)", "updates": list(updates)}
    box = [[0, 16]] * 3
    image = {"name": "input", "type": "int32", "dims": DIMS}
    document = {"format": 1, "name": "sweeps", "inputs": [image], "stages": [of], "outputs": ["f"]}
    return load(document | {"estimates": {"f": box, "input": box}}).stages[0]


X, Y, Z = (scan(d) for d in DIMS)
BACK_X, BACK_Y, BACK_Z = (scan(d, back=True) for d in DIMS)


def sweep(of: Stage, loops: list[UpdateLoops]) -> Sweep | None:
    """The sweep of the values."""
    return next((s for s in sweeps(of, loops) if s.first == 0), None)


@pytest.mark.parametrize(
    ("updates", "expected"),
    [
        ([Y, BACK_Y, X, BACK_X], [("y", 1, (0, 16, 16), True)]),
        ([X, BACK_X, Y, BACK_Y], [("y", 0, (0, 0, 0), False)]),
        ([Y, Y, BACK_Y, BACK_Y], [("y", 0, (0, 16), False), ("y", 2, (0, 16), True)]),
        ([scan("y", before=17), X, Y], [("y", 0, (0, 32, 32), False)]),
        ([scan("y", before=0), X], [("y", 0, (0, 0), False)]),  # of its own row alone
        ([Y, Y, Y], [("y", 0, (0, 16, 32), False)]),
        ([Z, X], [("z", 0, (0, 1), False)]),  # planes
        ([Y, X, Z], [("z", 0, (0, 0, 0), False)]),  # by y two blocks would be there at once
        ([BACK_Z, Z, BACK_Y], [("y", 0, (0, 0, 0), True)]),
        ([BACK_Z, Z], []),
    ],
)
def test_passes_come_as_far_behind_as_those_before_them_read(
    updates: list[dict[str, object]], expected: list[tuple[str, int, tuple[int, ...], bool]]
) -> None:
    of = stage(*updates)
    found = sweeps(of, [UpdateLoops(default_order(of, u)) for u in of.updates])
    assert [(s.dim, s.first, s.behind, s.back) for s in found] == expected


@pytest.mark.parametrize(
    ("updates", "expected"),
    [
        ([X, Y], ("y", 2)),
        ([X, scan("x", back=True), Y, scan("y", back=True)], ("y", 3)),  # a pass back comes after all of the one along
        ([X, scan("y", before=2)], ("y", 2)),
        ([X, Y, Z], ("z", 3)),
        ([X, Z, Y], ("y", 3)),
        ([X, scan("y", before=0)], ("y", 2)),
        ([Y], None),  # values alone are no pass before it
        ([Y, X], ("y", 2)),
        ([Y, Y], ("y", 2)),
        ([X, scan("y", back=True)], ("y", 2)),
        ([X, scan("y", before=-1)], None),  # of a row that is none yet
    ],
)
def test_a_block_has_all_passes_that_depend_on_no_later_one(
    updates: list[dict[str, object]], expected: tuple[str, int] | None
) -> None:
    of = stage(*updates)
    found = sweep(of, [UpdateLoops(default_order(of, u)) for u in of.updates])
    assert (None if found is None else (found.dim, found.updates.stop)) == expected


@pytest.mark.parametrize(
    ("parallel", "shared"),
    [
        ((None, None), False),
        (("y", None), True),
        (("z", None), None),  # planes of one block are shared: it would begin its threads anew
        (("y", "x"), None),
        ((None, "x"), None),
    ],
)
def test_threads_share_the_blocks_whose_dim_all_but_the_last_share(
    parallel: tuple[str | None, str | None], shared: bool | None
) -> None:
    of = stage(X, Y)
    loops = [UpdateLoops(default_order(of, u), None, p) for u, p in zip(of.updates, parallel, strict=True)]
    found = sweep(of, loops)
    assert (None if found is None else found.shared) == shared


@pytest.mark.parametrize(
    ("updates", "parallel", "around"),
    [
        ([X, Y], None, ("z",)),
        ([X, scan("x", back=True), Y], None, ("z",)),
        ([X, Y], "y", ()),  # threads, which are begun for all planes together
        ([X, Z], None, ()),
    ],
)
def test_planes_that_are_independent_have_all_of_their_blocks_before_the_next(
    updates: list[dict[str, object]], parallel: str | None, around: tuple[str, ...]
) -> None:
    of = stage(*updates)
    loops = [UpdateLoops(default_order(of, u), None, parallel if u is not of.updates[-1] else None) for u in of.updates]
    found = sweep(of, loops)
    assert found is not None
    assert found.around == around


@pytest.mark.parametrize(
    ("updates", "parallel", "expected"),
    [
        ([X, BACK_X, Y, BACK_Y], None, ("z",)),
        ([Y, BACK_Y], None, ()),  # no sweep has the values
        ([X, Y, BACK_Z], None, ()),
        ([X, Y, BACK_Y], "z", ()),  # whose threads would begin anew in each plane
    ],
)
def test_a_plane_has_all_passes_before_the_next(
    updates: list[dict[str, object]], parallel: str | None, expected: tuple[str, ...]
) -> None:
    of = stage(*updates)
    loops = [UpdateLoops(default_order(of, u), None, parallel if u is of.updates[-1] else None) for u in of.updates]
    assert planes(of, loops) == expected


def test_a_row_that_is_always_read_is_not_there_before_its_block() -> None:
    fixed = {"domain": {"r": [1, 6]}, "at": ["x", "r", "z"], "value": "f(x, r, z) + f(x, 15, z)"}
    of = stage(X, fixed)
    assert sweep(of, [UpdateLoops(default_order(of, u)) for u in of.updates]) is None


def test_blocks_are_whole_vectors_across_and_threads_have_none() -> None:
    of = stage(X, Y)
    loops = [UpdateLoops(("r", "y", "z"), Vector("y", 32)), UpdateLoops(("x", "r", "z"), Vector("x", 32))]
    found = sweep(of, loops)
    assert found is not None
    assert found.rows == 32
    assert sweep(of, [UpdateLoops(("r", "y", "z"), Vector("y", 32), "z"), loops[1]]) is None


ALONG, ALONG_PLANES = (UpdateLoops(("r", "y", "z"), Vector("y", 16)), UpdateLoops(("r", "z", "y"), Vector("z", 16)))


@pytest.mark.parametrize(
    ("updates", "loops", "expected"),
    [
        ([X], [ALONG], ("y", 1, ("z",))),
        ([X, scan("x", back=True)], [ALONG] * 2, ("y", 2, ("z",))),
        ([X], [ALONG_PLANES], ("z", 1, ())),
        ([X, X], [ALONG, ALONG_PLANES], ("y", 1, ("z",))),  # vectors of the second are not of these rows
        ([X, scan("y", back=True)], [ALONG, UpdateLoops(("x", "r", "z"), Vector("x", 16))], ("y", 2, ("z",))),
        ([Y], [UpdateLoops(("x", "r", "z"), Vector("x", 16))], None),
        ([X], [UpdateLoops(("r", "y", "z"))], None),
    ],
)
def test_scans_along_rows_have_blocks_of_rows_plane_by_plane(
    updates: list[dict[str, object]], loops: list[UpdateLoops], expected: tuple[str, int, tuple[str, ...]] | None
) -> None:
    found = sweep(stage(*updates), loops)
    assert (None if found is None else (found.dim, found.updates.stop, found.around)) == expected


@pytest.mark.parametrize(
    ("updates", "expected"),
    [
        ([X, Y], True),
        ([X, scan("x", back=True), Y], True),
        ([X, Z], True),
        ([X, scan("y", before=2)], True),
        ([scan("z"), Y], False),  # no pass along rows
        ([X, Y | {"where": "f(x, r + 2, z) > 0"}], False),  # keeps what is in memory
        ([X, scan("x", back=True)], False),
    ],
)
def test_the_last_pass_follows_a_recurrence_vector_by_vector(updates: list[dict[str, object]], expected: bool) -> None:
    of = stage(*updates)
    loops = [
        UpdateLoops(("r", "y", "z"), Vector("r", 4))
        if (free := free_dims(of, u)) == ("y", "z")
        else UpdateLoops(("x", "r", *free[1:]), Vector("x", 4))
        for u in of.updates
    ]
    found = sweep(of, loops)
    assert found is not None
    assert joins_last(of, loops, found) == expected
