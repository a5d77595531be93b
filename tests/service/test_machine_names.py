"""Kinds of machines: named after what the system says of them."""

from __future__ import annotations

import pytest

from tilesmith.app.service.platforms.machine_names import machine_name


@pytest.mark.parametrize(
    ("description", "threads", "vector_bytes", "name"),
    [
        ("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", 4, 64, "intel-xeon-platinum-8481c-2.70ghz-4x512"),
        ("AMD Ryzen 7 7840U w/ Radeon 780M Graphics", 16, 64, "amd-ryzen-7-7840u-w-radeon-780m-graphics-16x512"),
        ("", 1, 16, "machine-1x128"),
        ("x" * 200, 256, 64, "x" * 52 + "-256x512"),
    ],
)
def test_names(description, threads, vector_bytes, name):
    document = {"description": description, "threads": threads, "vector_bytes": vector_bytes, "clock_ghz": 1.0}
    assert machine_name(document) == name == machine_name(document | {"clock_ghz": 2.0})
    assert len(name) <= 64
