"""Long sums of integers, whose partial sums are held in registers."""

from __future__ import annotations

import numpy as np
import pytest
from support.calls import call
from support.interpreted import interpreted
from support.machines import machine
from support.native import build
from support.rows import rows

from tilesmith.scheduler.interpreter.interpreter import Image

COUNTED = " + ".join(f"select(absd(a(x), b(x + {n})) < 27, {n + 1}, 0)" for n in range(19))
ALTERNATING = "a(x)" + "".join(f" {'+-'[n % 2]} b(x + {n})" for n in range(19))


@pytest.mark.parametrize("type_", ["uint8", "int16", "uint32"])
def test_a_long_sum_has_the_values_of_the_interpreter(type_: str) -> None:
    values = [f"{type_}({COUNTED})", ALTERNATING]
    pipeline, made = rows(values, {"a": type_, "b": type_}, 16, machine(vector_bytes=32))
    assert "opaque" in made.code
    random = np.random.default_rng(7)
    images = {name: Image(random.integers(0, 100, 230).astype(type_), (0,)) for name in ("a", "b")}
    regions = dict.fromkeys(pipeline.outputs, ((0, 203),))
    status, found = call(build(made, ("-O1",), vector_bytes=32), made, pipeline, images, {}, regions)
    assert status == 0
    expected = interpreted(pipeline, images, {}, regions)
    assert all(np.array_equal(found[name][0], expected[name][0]) for name in pipeline.outputs)
