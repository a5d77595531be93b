"""Choice of the separable windows that are split, and along which dim first."""

from __future__ import annotations

from support.separable_windows import LAPLACIAN, box, explicit, outer, pipeline_of, split_by_choice

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.frontends.document.document import load
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


def test_a_step_across_rows_comes_first_where_pixels_are_too_far_apart_for_vectors() -> None:
    """Boxes of 4 x 4 take no fewer operations in two steps, but a quarter of the elements that are gathered."""
    for channels, first in ((3, "y"), (8, None)):
        document = {
            "format": 1,
            "name": "least",
            "inputs": [{"name": "image", "type": "uint8", "dims": ["c", "x", "y"]}],
            "stages": [
                {"name": "out", "dims": ["c", "x", "y"], "value": box(4, 4, "image(c, 4 * x + i, 4 * y + j)", "min")}
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, channels], [0, 64], [0, 64]]},
        }
        separations = split_by_choice(load(document)).plan.schedule.separations
        assert [s.dim for s in separations] == ([] if first is None else [first])


def test_steps_of_a_hundred_elements_are_not_looked_at_in_the_other_order() -> None:
    """Ten elements in ten are put together; a hundred in a hundred would take most of the time to C."""
    for taps, through in ((10, "rows"), (100, None)):
        document = {
            "format": 1,
            "name": "least",
            "inputs": [{"name": "image", "type": "float32", "dims": ["x", "y"]}],
            "stages": [
                {"name": "rows", "dims": ["x", "y"], "value": " + ".join(f"image(x + {n}, y)" for n in range(taps))},
                {"name": "out", "dims": ["x", "y"], "value": " + ".join(f"rows(x, y + {n})" for n in range(taps))},
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 640], [0, 480]]},
        }
        separations = split_by_choice(load(document)).plan.schedule.separations
        assert [s.through for s in separations] == ([] if through is None else [through])
