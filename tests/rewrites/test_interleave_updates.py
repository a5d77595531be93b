"""Interleaved updates: what divides a stage up by strides is one value, the same as before."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise

PIXELS = Image(np.random.default_rng(1).integers(0, 255, (9, 11), np.uint8), (-1, 2))


def tiled(updates: list[dict[str, object]], boundary: bool = True) -> Pipeline:
    image: dict[str, object] = {"name": "im", "type": "uint8", "dims": ["x", "y"]}
    if boundary:
        image["boundary"] = {"kind": "mirror_image"}
    stages = [
        {"name": "f", "dims": ["x", "y"], "value": "uint8(x * 3 + y)", "updates": updates},
        {"name": "out", "dims": ["x", "y"], "value": "f(x, y) + f(x + 1, y - 1)"},
    ]
    estimates = {"out": [[0, 16], [0, 16]]}
    return load({
        "format": 1, "name": "tiled", "inputs": [image], "stages": stages, "outputs": ["out"], "estimates": estimates,
    })  # fmt: skip


def update(at: str, down: str, value: str, lo: int = 0, extent: str = "im.extent.x // 2") -> dict[str, object]:
    return {"domain": {"r": [lo, extent], "s": [lo, 3]}, "at": [at, down], "value": value}


@pytest.mark.parametrize("seed", range(40))
def test_what_is_divided_up_by_strides_is_one_value(seed: int) -> None:
    random = Random(seed)
    along, across, lo = random.choice((1, 2)), random.choice((2, 3)), random.randint(-2, 2)
    updates = []
    for i, j in product(range(along), range(across)):
        k, m = random.randint(-2, 2), random.randint(-2, 2)
        at = (f"{along} * r + {i + along * k}", f"{across} * s + {j + across * m}")
        value = f"im({along} * r + {random.randint(-3, 3)}, s + {random.randint(-3, 3)}) + uint8(r * 5 + {across} * s)"
        extent = "im.extent.x // 2"
        one = {"domain": {"r": [lo - k, extent], "s": [lo - m, 3]}, "at": list(at), "value": value}
        updates.append(one)
    random.shuffle(updates)
    pipeline = tiled(updates)
    folded = normalise(pipeline)
    assert not any(s.updates for s in folded.stages)
    region = {"out": ((random.randint(-9, 3), 17), (random.randint(-9, 3), 19))}
    expected = interpret(pipeline, {"im": PIXELS}, {}, region)["out"][0]
    assert np.array_equal(interpret(folded, {"im": PIXELS}, {}, region)["out"][0], expected)


EVEN, ODD = "s * 2", "s * 2 + 1"


@pytest.mark.parametrize(
    ("updates", "boundary"),
    [
        ([update("r", EVEN, "im(r, s)")], True),
        ([update("r", EVEN, "im(r, s)"), update("r", "s * 2 + 2", "im(r, s)")], True),
        ([update("r", EVEN, "im(r, s)"), update("r", ODD, "im(r, s)", extent="4")], True),
        ([update("r", EVEN, "im(r, s)"), update("r", ODD, "f(r, 2 * s)")], True),
        ([update("r", EVEN, "im(r, s)"), update("r", ODD, "im(r, s)")], False),
    ],
    ids=["half of the rows", "a row twice", "other boxes", "reads itself", "reads no place"],
)
def test_others_stay(updates: list[dict[str, object]], boundary: bool) -> None:
    assert next(s for s in normalise(tiled(updates, boundary)).stages if s.name == "f").updates
