"""Weights in tables: compiled code computes what the interpreter does, and strictly the same bits as without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.calls import call
from support.machines import here
from support.native import build, source_of

from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.search import SearchOptions, autoschedule, root_schedule

WINDOW = "for j in range(-n, n + 1) for i in range(-4, 5)"
NEAR = "exp(-float32(i * i + j * j) / (2.0 * s * s))"
ALIKE = "exp(-(a(x + i, y + j) - a(x, y)) ** 2 * 9.0)"
TAP = "((float32(x) + 0.5) * 0.75 - floor((float32(x) + 0.5) * 0.75) - float32(i))"
VALUES = {
    "gaussian": f"sum(a(x + i, y + j) * {NEAR} {WINDOW}) / sum({NEAR} {WINDOW})",
    "bilateral": f"sum(a(x + i, y + j) * {NEAR} * {ALIKE} {WINDOW})",
    "cosines": "sum(a(x // 8 * 8 + i, y) * cos(float32((2 * i + 1) * (x % 8)) * 0.19634954) for i in range(8))",
    "lanczos": f"sum(a(x + i, y) * select(abs({TAP}) < 0.01, 1.0, sin({TAP}) / {TAP}) for i in range(-2, 4))",
}


def filtered(name: str) -> Pipeline:
    """A filter of an image by weights that params say."""
    return load(
        {
            "format": 1,
            "name": name,
            "params": [
                {"name": "s", "type": "float32", "default": 2.0, "min": 1, "max": 4},
                {"name": "n", "type": "int32", "default": 3, "min": -1, "max": 4},
            ],
            "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"]}],
            "stages": [{"name": "out", "dims": ["x", "y"], "value": VALUES[name]}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 640], [0, 480]]},
        }
    )


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", list(VALUES))
def test_tables_have_the_weights(name: str, strict: bool, compiler: str) -> None:
    of, machine = filtered(name), here()
    found = autoschedule(of, machine, SearchOptions(strict=strict)).schedule
    root = root_schedule(of, machine, strict=strict)
    bare = replace(root, groups=tuple(g for g in root.groups if g.output == "out"))
    sources = [source_of(of, s, machine) for s in (found, bare)]
    assert ["out_weights" in s.code for s in sources] == [True, False]
    libraries = [build(s, compiler=compiler) for s in sources]
    rng = np.random.default_rng(1)
    for n, (x, w), (y, h) in ((3, (0, 40), (2, 9)), (0, (-3, 5), (7, 1)), (-1, (1, 33), (0, 2))):
        params, region = {"s": 1.3, "n": n}, {"out": ((x, w), (y, h))}
        required = required_regions(normalise(of), region, params, {})
        (x0, across), (y0, down) = required.get("a", ((0, 1), (0, 1)))  # sums of nothing read nothing
        image = {"a": Image(rng.random((down, across), np.float32), (x0, y0))}
        expected = interpret(of, image, params, region)["out"][0]
        results = [call(lib, s, of, image, params, region) for lib, s in zip(libraries, sources, strict=True)]
        assert [status for status, _ in results] == [0, 0]
        (tabulated,), (written,) = (got["out"] for _, got in results)
        np.testing.assert_allclose(tabulated, expected, rtol=2e-5, atol=1e-6)
        if strict:
            assert tabulated.tobytes() == written.tobytes()
