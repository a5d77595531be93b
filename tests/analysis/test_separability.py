"""Separability: windows that are no products are not found."""

from __future__ import annotations

import pytest
from support.separable_windows import LAPLACIAN, explicit, found, outer, pipeline_of


@pytest.mark.parametrize(
    "value",
    [
        LAPLACIAN,
        explicit([[1, 1, 1], [1, -8, 1], [1, 1, 1]]),
        explicit([[0.0751, 0.1238, 0.0751], [0.1238, 0.2042, 0.1238], [0.0751, 0.1238, 0.0752]]),
        explicit([["p", "q"], ["q", "p"]]),
        "sum(table(i + j) * image(x + i, y + j) for i in range(-1, 2) for j in range(-1, 2))",
        "sum(image(x + i, y + i + j) for i in range(-1, 2) for j in range(-1, 2))",
        "sum(image(x + i, y + j) for i in range(-1, 2) for j in range(-1, 2) if i != j)",
        "sum(abs(image(x + i, y + j) - image(x, y)) for i in range(-1, 2) for j in range(-1, 2))",
        "sum(image(x + i, y) for i in range(-1, 2)) + image(x, y - 1)",
        "image(x, y) + image(x + 1, y) + image(x + y, y) + image(y, x)",
        explicit(outer((1, 1), (1, 1)), "image({x}, {y}) * image(x, y)"),
        explicit(outer((1, 1), (1, 1)), "image({x} + {y}, {y})"),
        "1e30 * (1e30 * (" + explicit(outer((1, 1, 1), (1, 1, 1))) + "))" + " + image(x, y)",
        "sum(1e-30 * (image(x + i, y + j) / 1e30) for i in range(3) for j in range(3))",
        "float32(argmax(image(x + i, y + j) for i in range(3) for j in range(3))[0])",
    ],
)
def test_what_is_no_product_is_not_found(value: str) -> None:
    assert found(pipeline_of(value)) == []
