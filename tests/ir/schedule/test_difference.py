"""Differences of two schedules, in words."""

from dataclasses import replace

from tilesmith.scheduler.ir.schedule.difference import differences, in_a_line
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Tile, Vector

ROW = Placement("a", "y.inner", "x.outer", True, "memory", ("x", "y"), Vector("x", 8))
GROUP = Group("b", ("x.inner", "y.inner", "x.outer"), (Tile("x", 64),), "x.outer", Vector("x", 8), (), (ROW,))


def _schedule(**changed: object) -> Schedule:
    return Schedule("p", "m", (replace(GROUP, **changed),))


def test_nothing_is_said_of_equals() -> None:
    assert differences(_schedule(), _schedule()) == ()


def test_what_is_otherwise_is_said() -> None:
    inline = replace(ROW, compute=INLINE, store=INLINE)
    registers = replace(ROW, compute="x.inner", store="y.inner", storage="registers")
    for changed, words in (
        ({"placements": (inline,)}, "a inline"),
        ({"placements": (registers,)}, "a at x.inner, in registers"),
        ({"placements": (replace(ROW, order=("y", "x")),)}, "a loops y x"),
        ({"placements": (replace(ROW, vector=None),)}, "a no vectors"),
        ({"tiles": (Tile("x", None),)}, "b tiles whole"),
        ({"parallel": None}, "b threads over nothing"),
        ({"vector": Vector("x", 16)}, "b 16 lanes along x"),
        ({"unroll": ("y",)}, "b unrolled in y"),
        ({"stream": True}, "b written by streaming stores"),
        ({"prefetch": 64}, "b prefetches 64 bytes ahead"),
    ):
        assert differences(_schedule(**changed), _schedule()) == (words,)


def test_groups_that_are_cut() -> None:
    cut = Schedule("p", "m", (replace(GROUP, output="a", placements=()), replace(GROUP, placements=())))
    assert differences(cut, _schedule()) == ("a root",)


def test_a_line_is_short() -> None:
    assert in_a_line(("a", "b")) == "a; b"
    assert in_a_line(tuple("abcde")) == "a; b; c; 2 more"
