"""Rows that stages share, with elements that several lanes read, as of x // 4: a load and a permutation."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from support.calls import call
from support.interpreted import interpreted
from support.machines import machine
from support.native import build, source_of

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Tile, Vector

pytestmark = pytest.mark.slow

BY_LANES = re.compile(r"\bts_lanes\w*\(small_")
"""A vector of which the lanes are loaded one by one."""
WHOLE = re.compile(r"/\* whole vectors \*/\n(.*?)\n\n", re.DOTALL)
"""The loops of whole vectors."""
WIDTHS = (1, 16, 150)


def enlarged(place: str, type_: str) -> Pipeline:
    """A window over the lesser of an image and of another that is enlarged: read at `place`."""
    stages = [
        {"name": "large", "dims": ["x", "y"], "value": f"min(small({place}, y), a(x, y))"},
        {"name": "along", "dims": ["x", "y"], "value": "max(large(x - 1, y), large(x, y), large(x + 2, y))"},
        {"name": "out", "dims": ["x", "y"], "value": "max(along(x, y), along(x, y + 1))"},
    ]
    inputs = [{"name": n, "type": type_, "dims": ["x", "y"]} for n in ("small", "a")]
    estimates = {"out": [[0, 640], [0, 48]]}
    return load(
        {
            "format": 1,
            "name": "enlarged",
            "inputs": inputs,
            "stages": stages,
            "outputs": ["out"],
            "estimates": estimates,
        }
    )


def shared_rows(lanes: int) -> Schedule:
    """Of two stages in one loop over vectors."""
    placements = (
        Placement("large", INLINE, INLINE),
        Placement("along", "x.inner", "y.inner", storage="registers", vector=Vector("x", lanes)),
    )
    loops = ("x.inner", "y.inner", "x.outer", "y.outer")
    tiles = (Tile("x", None), Tile("y", 8))
    return Schedule("enlarged", "by hand", (Group("out", loops, tiles, None, Vector("x", lanes), (), placements),))


TYPES, SIZES = ("uint8", "uint16", "float32", "int64"), (16, 32, 64)
PLACES = {"x // 2": 2, "(x + 1) // 4": 4, "x // 2 // 2 - 1": 4, "(x + 3) // 8": 8}
"""Places, and how many neighbours share an element."""


VECTORS: dict[int, list[tuple[str, int]]] = {}
"""Types, and bytes of vectors, by how many lanes there are."""
for type_, size in product(TYPES, SIZES):
    VECTORS.setdefault(size // np.dtype(type_).itemsize, []).append((type_, size))


IN_TURN = [(place, lanes) for k, place in enumerate(PLACES) for lanes in sorted(VECTORS)[k % 2 :: 2]]


@pytest.mark.parametrize(("place", "lanes"), IN_TURN)
def test_lanes_that_share_elements_are_permuted(place: str, lanes: int) -> None:
    """Wherever rows begin, and with no element read outside of the image; every other number of lanes, the types that
    have so many in turn, as are the compilers."""
    turn = [*PLACES].index(place)
    type_, size = VECTORS[lanes][turn % len(VECTORS[lanes])]
    compiler, by = ("gcc", "clang")[(turn + sorted(VECTORS).index(lanes)) // 2 % 2], PLACES[place]
    of = enlarged(place, type_)
    source = source_of(of, shared_rows(lanes), machine(vector_bytes=size))
    loops = WHOLE.findall(source.code)
    assert loops
    assert any(map(BY_LANES.search, loops)) == (lanes % by > 0)
    library = build(source, ("-O1",), compiler, size)
    for width in WIDTHS:
        for start in (0, 3, -5):
            regions = {"out": ((start, width), (0, 5))}
            ends = start - 1, start + width + 1
            needed = {"small": [eval(place, {"x": x}) for x in ends], "a": ends}
            rng = np.random.default_rng(width)
            inputs = {
                n: Image((rng.random((6, last - first + 1)) * 100).astype(type_), (first, 0))
                for n, (first, last) in needed.items()
            }
            status, got = call(library, source, of, inputs, {}, regions)
            assert status == 0
            np.testing.assert_array_equal(got["out"][0], interpreted(of, inputs, {}, regions)["out"][0])
