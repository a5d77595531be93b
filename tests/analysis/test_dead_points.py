"""Dead-point analysis: what is known of the points of a stage that nobody reads is true, and halves are found."""

from __future__ import annotations

from itertools import product

import pytest

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.analysis.dead_points import halves
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise


def pipeline_of(out: str, more: str = "pairs(x, 0, 0)", outputs: tuple[str, ...] = ("out",)) -> Pipeline:
    """`pairs` of offsets a and b, `wide`, which reads it at its own, and two readers of these."""
    stages = [
        {"name": "pairs", "dims": ["x", "a", "b"], "value": "input(x + a) * b"},
        {"name": "wide", "dims": ["x", "a", "b"], "value": "pairs(x - 1, a, b) + pairs(x + 1, a, b)"},
        {"name": "out", "dims": ["x"], "value": out},
        {"name": "more", "dims": ["x"], "value": f"out(x) + {more}"},
    ]
    return normalise(
        load(
            {
                "format": 1,
                "name": "test",
                "inputs": [{"name": "input", "type": "int32", "dims": ["x"]}],
                "params": [{"name": "k", "type": "int32", "min": 0, "max": 2, "default": 1}],
                "stages": stages,
                "outputs": [*outputs, "more"],
                "estimates": {n: [[0, 32]] * (3 if n == "wide" else 1) for n in (*outputs, "more")},
            }
        )
    )


def computed(of: Pipeline, name: str, box: tuple[range, range]) -> set[tuple[int, int]]:
    """The points of a box that are computed."""
    half = halves(of).get(name)
    if half is None:
        return set(product(*box))
    turned = (half.slow, half.fast) == ("b", "a")
    at = {(a, b): half.at(*map(const, (b, a) if turned else (a, b))) for a, b in product(*box)}
    return {point for point, index in at.items() if index.const >= 0}


@pytest.mark.parametrize("last", [-1, 0, 1, 2])
@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("turn", [-1, 1])
def test_halves(last: int, side: int, turn: int) -> None:
    row = " + ".join(f"wide(x, {turn * a}, {2 * side})" for a in range(-1, last + 1))
    of = pipeline_of(f"sum(wide(x, a, b * {side}) for a in range(-1, 3) for b in range(-1, 2)) + {row}".replace(
        "wide(x, a,", f"wide(x, a * {turn},"
    ))  # fmt: skip
    box = (range(-1, 3) if turn == 1 else range(-2, 2), range(-1, 3) if side == 1 else range(-2, 2))
    read = {(turn * a, side * b) for a, b in product(range(-1, 3), range(-1, 2))}
    read |= {(turn * a, 2 * side) for a in range(-1, last + 1)}
    for name in ("wide", "pairs"):
        assert computed(of, name, box) == read
        assert (name in halves(of)) == (last < 2)


@pytest.mark.parametrize(
    "out",
    [
        "wide(x, 0, 0) + wide(x, 1, 1)",
        "sum(wide(x, a, b) for a in range(0, 2) for b in range(0, 2))",
        "wide(x, 0, 0) + wide(x, 1, 0) + wide(x, 0, k)",
        "wide(x, 0, 0) + wide(x, 60000, 60000)",
        "sum(wide(x, a, 0) for a in range(0, k)) + wide(x, 0, 1)",
        "wide(x, 0, 0) + wide(x, 1, 0) + wide(x, 0, 1) + wide(x, clamp(x, 0, 1), 1)",
    ],
)
def test_what_is_no_half(out: str) -> None:
    assert halves(pipeline_of(out)) == {}


def test_all_readers_count() -> None:
    corner = "wide(x, 0, 0) + wide(x, 1, 0) + wide(x, 0, 1)"
    assert set(halves(pipeline_of(corner))) == {"wide", "pairs"}
    assert set(halves(pipeline_of(corner, "pairs(x, 1, 1)"))) == {"wide"}
    assert set(halves(pipeline_of(corner, "wide(x, 1, 1)"))) == set()
    assert set(halves(pipeline_of(corner, outputs=("out", "wide")))) == set()


def test_nl_means_compares_no_pair_twice() -> None:
    found = halves(normalise(pipelines.load("nl_means")))
    assert {"d", "blur_d_y", "w"} <= set(found)
    half = found["w"]
    points = [half.at(const(dy), const(dx)).const >= 0 for dy in range(-3, 1) for dx in range(-3, 4)]
    assert (half.slow, sum(points)) == ("dy", 25)
