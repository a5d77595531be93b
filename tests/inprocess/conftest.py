"""Compiled pipelines of these tests: built once, in a cache of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tilesmith as ts


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


SHIFT = """
format: 1
name: shift
params:
  - {name: gain, type: float32, default: 1.0, min: 0.0, max: 8.0}
  - {name: by, type: int32, default: 1, min: 0, max: 16}
inputs:
  - {name: photo, type: uint8, dims: [x, y, c]}
stages:
  - name: shifted
    dims: [x, y, c]
    value: gain * float32(photo(x + by, y, c)) + float32(photo(x, y + 1, c))
outputs: [shifted]
estimates: {shifted: [[0, 64], [0, 48], [0, 3]]}
"""

PARTS = """
format: 1
name: parts
inputs:
  - {name: a, type: int32, dims: [x, y]}
  - {name: b, type: int32, dims: [x, y]}
stages:
  - {name: total, dims: [x, y], value: "a(x, y) + b(x, y)"}
  - {name: both, dims: [x, y], value: ["a(x, y) - b(x, y)", "float32(a(x, y))"]}
  - {name: turned, dims: [x, y], storage: [y, x], value: "int16(a(x, y))"}
outputs: [total, both, turned]
estimates: {total: [[0, 64], [0, 48]], both: [[0, 64], [0, 48]], turned: [[0, 64], [0, 48]]}
"""


@pytest.fixture(scope="session")
def shift(cache: None) -> ts.CompiledPipeline:
    """One image of three dims, a param that regions depend on and one that they do not."""
    return ts.compile(SHIFT, threads=1)


@pytest.fixture(scope="session")
def parts(cache: None) -> ts.CompiledPipeline:
    """Two images, and outputs of all kinds: one array, a tuple, columns that are dense."""
    return ts.compile(PARTS, threads=1)


@pytest.fixture(scope="session")
def harris(cache: None) -> ts.CompiledPipeline:
    return ts.compile("harris", threads=1)
