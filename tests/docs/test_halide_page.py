"""docs/halide.md is held to the code: its blocks run one after the other, and compute."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.modules import require_module

require_module("halide")

import halide as hl  # noqa: E402

PAGE = (Path(__file__).parents[2] / "docs" / "halide.md").read_text(encoding="utf-8")

pytestmark = [pytest.mark.halide, pytest.mark.slow]


def test_the_blocks_of_the_page_compute() -> None:
    names: dict[str, Any] = {}
    for block in re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "docs/halide.md", "exec"), names)
    assert names["done"].refused == ()
    assert names["result"].shape == names["pixels"].shape
    names["pixels"][...] = np.random.default_rng(0).integers(0, 65536 // 3, names["pixels"].shape)
    names["image"].set(hl.Buffer(names["pixels"]))
    scheduled = np.array(names["soft"].realize([1536, 2560]))
    plain = names["blur"]()  # without a schedule
    np.testing.assert_array_equal(scheduled, np.array(plain.realize([1536, 2560])))
    assert scheduled.any()
