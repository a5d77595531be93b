"""Symmetric-pair elimination: half of what is the same from either end of an offset is read, and half of nothing
else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.rewrites.passes import normalise

DIMS = ["x", "y", "dx", "dy"]
SQUARE = "(image(x, y) - image(x + dx, y + dy)) ** 2"
TOTAL = "sum(alike(x, y, i, j) * image(x + i, y + j) for i in range(-2, 3) for j in range(-1, 2))"


def pipeline_of(difference: str = SQUARE, total: str = TOTAL, **more: Any) -> Pipeline:
    """A pipeline of the distances of 3 x 3 patches around (x, y) and (x + dx, y + dy), and of what `out` makes of
    them."""
    boundary = {"boundary": more.get("boundary", {"kind": "repeat_edge"})}
    alike = more.get(
        "alike", "exp(-0.1 * sum(apart(x + r, y + s, dx, dy) for r in range(-1, 2) for s in range(-1, 2)))"
    )
    outputs = more.get("outputs", ["out"])
    out = {"name": "out", "dims": ["x", "y"], "value": total}
    return load(
        {
            "format": 1,
            "name": "test",
            "inputs": [{"name": "image", "type": more.get("type", "float32"), "dims": ["x", "y"], **boundary}],
            "stages": [
                {"name": "apart", "dims": DIMS, "value": difference},
                {"name": "alike", "dims": DIMS, "value": alike},
                out,
                {**out, "name": "again"},
            ],
            "outputs": outputs,
            "estimates": {n: [[0, 32]] * (4 if n == "alike" else 2) for n in outputs},
        }
    )


def is_halved(of: Pipeline, strict: bool = False) -> bool:
    normal = normalise(of, strict)
    assert normalise(normal, strict) is normal
    rng = np.random.default_rng(1)
    data = rng.random((6, 7)) if of.inputs[0].type.is_float else rng.integers(0, 9, (6, 7))
    images = {"image": Image(data.astype(of.inputs[0].type.numpy), (0, 0))}
    regions = {n: ((-2, 11), (1, 7), (-2, 5), (-1, 3))[: len(of.stage(n).dims)] for n in of.outputs}
    if of.inputs[0].boundary is not None:
        for name in of.outputs:
            (a,), (b,) = (interpret(p, images, {}, regions)[name] for p in (of, normal))
            np.testing.assert_allclose(b, a, rtol=1e-6 if a.dtype.kind == "f" else 0)
    return to_text(normal.stage("out").values[0]) != to_text(normalise(of, strict=True).stage("out").values[0])


def test_half_is_computed() -> None:
    assert is_halved(pipeline_of())
    assert gather(normalise(pipeline_of())).stages["alike"].region[3] == (-1, 2)
    assert gather(normalise(pipeline_of(), strict=True)).stages["alike"].region[3] == (-1, 3)


def test_the_pair_is_read_from_both_ends() -> None:
    total = "sum(alike(x, y, i, j) for i in range(-2, 3) for j in range(-2, 3))"
    of = pipeline_of(total=total)
    assert to_text(normalise(of).stage("out").values[0]) == (
        "sum(alike(x, y, i, j) + alike(x - i, y - j, i, j) for i in range(-2, 3) for j in range(-2, 0))"
        " + (sum(alike(x, y, i, 0) + alike(x - i, y, i, 0) for i in range(-2, 0)) + alike(x, y, 0, 0))"
    )


@pytest.mark.parametrize(
    "difference",
    [
        SQUARE,
        "(image(x + dx, y + dy) - image(x, y)) ** 2",
        "abs(image(x, y) - image(dx + x, y + dy))",
        "(image(x, y) - image(x + dx, y + dy)) * (image(x + dx, y + dy) - image(x, y))",
        "image(x, y) * image(x + dx, y + dy) + (image(x, y) + image(x + dx, y + dy)) / 2.0",
        "absd(image(x, y + dy), image(x + dx, y)) + absd(image(x, y), image(x + dx, y + dy))",
    ],
)
def test_what_is_symmetric(difference: str) -> None:
    assert is_halved(pipeline_of(difference))


@pytest.mark.parametrize(
    "difference",
    [
        "image(x, y) - image(x + dx, y + dy)",
        "(image(x, y) - image(x - dx, y + dy)) ** 2",
        "(image(x, y) - image(x + 2 * dx, y + dy)) ** 2",
        "(image(x, y) - 2.0 * image(x + dx, y + dy)) ** 2",
        "(image(x, y) - image(x + dx, y + dy)) ** 2 + float32(dx)",
        "(image(x, y) - image(y + dx, x + dy)) ** 2",
        "image(x, y) / image(x + dx, y + dy)",
        "select(dx > 0, image(x, y), image(x + dx, y + dy))",
    ],
)
def test_what_is_not(difference: str) -> None:
    assert not is_halved(pipeline_of(difference))


@pytest.mark.parametrize(
    "total",
    [
        "sum(alike(x, y, i, j) for i in range(-2, 2) for j in range(-1, 2))",  # from -2 to 1
        "sum(alike(x, y, i, j) for i in range(-2, 3) for j in range(-1, 2) if i != j)",
        "sum(alike(x, y, i, i) for i in range(-1, 2))",
        "sum(alike(x + i, y, i, j) for i in range(-2, 3) for j in range(-1, 2))",
        "sum(alike(x, y, i, j) for i in range(-2, 3) for j in range(-1, 2)) + alike(x, y, 2, 1)",
        "alike(x, y, 1, 1)",
        "float32(argmax(alike(x, y, i, j) for i in range(-2, 3) for j in range(-1, 2))[0])",
    ],
)
def test_other_reads(total: str) -> None:
    assert not is_halved(pipeline_of(total=total))


def test_offsets_along_one_dim() -> None:
    total = "sum(alike(x, y, i, 0) for i in range(-2, 3))"
    assert not is_halved(pipeline_of(total=total))  # dy is an offset, too: nobody says that it is 0
    still = "(image(x, y) - image(x + dx, y)) ** 2"
    assert is_halved(pipeline_of(still, total))


@pytest.mark.parametrize("op", ["max", "min", "product"])
def test_other_reductions(op: str) -> None:
    assert is_halved(pipeline_of(total=TOTAL.replace("sum", op)))


def test_floats_if_strict() -> None:
    assert "range(-1, 2)" in to_text(normalise(pipeline_of(), strict=True).stage("out").values[0])
    numbers = pipeline_of(type="int32", alike="sum(apart(x + r, y, dx, dy) for r in range(-1, 2))")
    assert "range(-2, 0)" in to_text(normalise(numbers, strict=True).stage("out").values[0])


def test_all_readers_or_none() -> None:
    assert is_halved(pipeline_of(outputs=["out", "again"]))
    assert not is_halved(pipeline_of(outputs=["out", "alike"]))


@pytest.mark.parametrize("boundary", ["repeat_edge", "mirror_image", "mirror_interior", "repeat_image"])
def test_boundaries(boundary: str) -> None:
    assert is_halved(pipeline_of(boundary={"kind": boundary}))


def test_a_constant_beyond_the_edges() -> None:
    assert is_halved(pipeline_of(boundary={"kind": "constant", "value": "0.5"}))


def test_required_regions_do_not_grow() -> None:
    assert not is_halved(pipeline_of(boundary=None))


def test_what_is_cheap_stays() -> None:
    assert not is_halved(pipeline_of(alike="apart(x, y, dx, dy)"))


def test_non_local_means() -> None:
    weights = gather(normalise(pipelines.load("nl_means"))).stages["w"]
    assert weights.region[weights.dims.index("dy")] == (-3, 4)
