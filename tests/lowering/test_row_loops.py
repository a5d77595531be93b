"""Row loops: stages in rings join the loop over vectors of a row with stages in registers."""

from __future__ import annotations

from collections.abc import Callable

from support.lowered import body, group, pipeline

from tilesmith.scheduler.ir.schedule.schedule import Placement, Vector

Golden = Callable[[str, str], None]


def test_a_ring_is_filled_in_the_loop_that_reads_it(golden: Golden) -> None:
    p = pipeline("h(x, y) + h(x + 1, y)", ("g", "f(x, y) * 2"), ("h", "g(x, y) + g(x, y + 1)"), dims=("x", "y"))
    ring = Placement("g", "x.inner", "root", order=("x", "y"), vector=Vector("x", 8))
    stage = Placement("h", "x.inner", "y.inner", storage="registers", vector=Vector("x", 8))
    golden("a_ring_is_filled_in_the_loop_that_reads_it.txt", body(p, [group("x.inner y.inner", [ring, stage])]))
