"""Choice of the separable windows that are split, and along which dim first."""

from __future__ import annotations

from support.separable_windows import LAPLACIAN, box, explicit, outer, pipeline_of, split_by_choice

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.ir.schedule.schedule import Separation


def test_harris() -> None:
    of = pipelines.load("harris")
    chosen = split_by_choice(of)
    assert chosen.plan.schedule.separations == tuple(
        Separation(s, 0, "y", f"{s}_y") for s in ("Ix", "Iy", "Sxx", "Sxy", "Syy")
    )
    assert [d.kind for d in chosen.decisions] == ["separation"] * 5
    sums = chosen.facts.definitions["Sxx_y"].values[0]
    assert to_text(sums) == "Ixx(x, y - 1) + Ixx(x, y) + Ixx(x, y + 1)"
    assert split_by_choice(of, strict=True).plan.schedule.separations == ()


def test_what_saves_nothing_stays() -> None:
    for value in (
        explicit(outer((1, 1), (1, 1))),
        LAPLACIAN,
        explicit(outer((1, 2, 1), (1, 2, 1)), "image(3 * {x}, 3 * {y})"),
    ):
        assert split_by_choice(pipeline_of(value)).plan.schedule.separations == ()


def test_the_cheaper_dim_comes_first() -> None:
    """Every point of the second step reads as many of the first as its steps are long: 4 in x, 1 in y."""
    value = box(9, 3, "image(4 * x + i, y + j)")
    (separation,) = split_by_choice(pipeline_of(value)).plan.schedule.separations
    assert separation.dim == "x"
