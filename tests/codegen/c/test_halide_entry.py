"""The entry in Halide's words: compiled, and called with the struct that Halide has."""

from __future__ import annotations

import ctypes
import subprocess
from ctypes import POINTER, byref, c_float, c_int32, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, pointer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.machines import here
from support.tools import require_tool

from tilesmith import platforms
from tilesmith.scheduler.compiler import Options, compile_pipeline, schedule_key
from tilesmith.scheduler.errors import NoBackend
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret

pytestmark = pytest.mark.slow

DOCUMENT = {
    "format": 1,
    "name": "status",
    "params": [{"name": "query", "type": "float32", "min": 0, "max": 4}, {"name": "on", "type": "bool"}],
    "inputs": [{"name": "own", "type": "uint8", "dims": ["x", "y", "c"], "storage": ["c", "x", "y"]}],
    "stages": [
        {"name": "wide", "dims": ["x", "y", "c"], "value": "own(x, y, c) * query"},
        {"name": "soft", "dims": ["x", "y", "c"], "value": "wide(x - 1, y, c) + wide(x + 1, y, c)"},
        {"name": "sure", "dims": ["x", "y"], "value": "on and own(x, y, 0) > 128"},
    ],
    "outputs": ["soft", "sure"],
    "estimates": {"soft": [[0, 64], [0, 48], [0, 3]], "sure": [[0, 64], [0, 48]]},
}


class Type(ctypes.Structure):
    _fields_ = (("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16))


class Dimension(ctypes.Structure):
    _fields_ = (("min", c_int32), ("extent", c_int32), ("stride", c_int32), ("flags", c_uint32))


class Buffer(ctypes.Structure):
    _fields_ = (
        ("device", c_uint64), ("device_interface", c_void_p), ("host", c_void_p), ("flags", c_uint64), ("type", Type),
        ("dimensions", c_int32), ("dim", POINTER(Dimension)), ("padding", c_void_p),
    )  # fmt: skip


def buffer(array: np.ndarray[Any, Any] | None, *dims: tuple[int, int, int], of: tuple[int, int] = (0, 0)) -> Buffer:
    """Dims are (min, extent, stride); `of` is Halide's code and bits."""
    made = (Dimension * len(dims))(*(Dimension(*d, 0) for d in dims))
    host = None if array is None else array.ctypes.data
    return Buffer(0, None, host, 0, Type(*of, 1), len(dims), made, None)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    require_tool("gcc")
    folder = tmp_path_factory.mktemp("halide_entry")
    source = compile_pipeline(load(DOCUMENT), here(), Options(backend="c-halide")).source
    (folder / "status.c").write_text(source.code)
    (folder / "status.h").write_text(source.header)
    strict = ["-Wall", "-Wextra", "-Werror"]
    command = ["gcc", *source.flags, *strict, "-O1", "-march=native", "-shared", "-fPIC", "status.c", "-o", "status.so"]
    subprocess.run([*command, "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "status.so")).tilesmith_status_halide, folder


SOFT, SURE = ((2, 20, 1), (1, 10, 20), (0, 3, 200)), ((2, 20, 1), (1, 10, 20))
U8, F32, TRUTH = (1, 8), (2, 32), (1, 1)


def call(function: Any, own: Buffer, soft: Buffer, sure: Buffer, query: float = 0.5) -> int:
    return int(function(byref(own), c_float(query), c_uint8(1), byref(soft), byref(sure)))


def filled(own: np.ndarray[Any, Any]) -> tuple[Buffer, Buffer, Buffer, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The buffers of a call on an interleaved image of 3 channels, 22 columns from 1 on, 10 rows from 1 on."""
    soft, sure = np.zeros((3, 10, 20), np.float32), np.zeros((10, 20), np.bool_)
    image = buffer(own, (1, 22, 3), (1, 10, 66), (0, 3, 1), of=U8)
    return image, buffer(soft, *SOFT, of=F32), buffer(sure, *SURE, of=TRUTH), soft, sure


def test_values_are_the_interpreters(built: tuple[Any, Path]) -> None:
    own = np.random.default_rng(0).integers(0, 256, (10, 22, 3), np.uint8)
    image, out, truth, soft, sure = filled(own)
    assert call(built[0], image, out, truth) == 0
    regions = {"soft": ((2, 20), (1, 10), (0, 3)), "sure": ((2, 20), (1, 10))}
    planes = np.ascontiguousarray(own.transpose(2, 0, 1))
    expected = interpret(load(DOCUMENT), {"own": Image(planes, (1, 1, 0))}, {"query": 0.5, "on": True}, regions)
    np.testing.assert_allclose(soft, expected["soft"][0])
    np.testing.assert_array_equal(sure, expected["sure"][0])
    assert (image.flags, out.flags, truth.flags) == (0, 1, 1)  # the host's memory is newer


def test_a_bounds_query_fills_in_the_dims(built: tuple[Any, Path]) -> None:
    soft, sure = np.zeros((3, 10, 20), np.float32), np.zeros((10, 20), np.bool_)
    image = buffer(None, (0, 0, 0), (0, 0, 0), (0, 0, 0))
    assert call(built[0], image, buffer(soft, *SOFT, of=F32), buffer(sure, *SURE, of=TRUTH)) == 0
    found = [(d.min, d.extent, d.stride) for d in image.dim[:3]]
    assert found == [(1, 22, 3), (1, 10, 66), (0, 3, 1)]  # interleaved, as it is stored
    assert (image.type.code, image.type.bits, image.type.lanes) == (*U8, 1)
    assert not soft.any()


def test_what_is_wrong_has_the_code_that_halide_has(built: tuple[Any, Path]) -> None:
    function, own = built[0], np.zeros((10, 22, 3), np.uint8)

    def told(change: Any, query: float = 0.5) -> int:
        image, out, truth, _, _ = filled(own)
        change(image, out, truth)
        return call(function, image, out, truth, query)

    assert told(lambda image, out, truth: setattr(image, "type", Type(1, 16, 1))) == -3
    assert told(lambda image, out, truth: setattr(image.dim[0], "extent", 21)) == -4
    assert told(lambda image, out, truth: setattr(image.dim[0], "extent", -1)) == -28
    assert told(lambda image, out, truth: (setattr(out, "host", None), setattr(out, "device", 7))) == -34
    assert told(lambda image, out, truth: setattr(out, "dimensions", 2)) == -43
    assert told(lambda image, out, truth: setattr(image, "flags", 2)) == -44
    assert told(lambda image, out, truth: None, query=5.0) == -1
    _, out, truth, _, _ = filled(own)
    assert function(None, c_float(1), c_uint8(1), byref(out), pointer(truth)) == -12


MAIN = """
%s
#include <string.h>
#include "status.h"

int main(void) {
    halide_buffer_t image, soft, sure;
    memset(&image, 0, sizeof image), memset(&soft, 0, sizeof soft), memset(&sure, 0, sizeof sure);
    halide_dimension_t dims[3], around[3] = {{2, 20, 1, 0}, {1, 10, 20, 0}, {0, 3, 200, 0}};
    memset(dims, 0, sizeof dims);
    image.dimensions = 3, image.dim = dims;
    soft.dimensions = 3, soft.dim = around;
    sure.dimensions = 2, sure.dim = around;
    if (tilesmith_status_halide(&image, 0.5f, 1, &soft, &sure) != 0) return 1;
    return dims[0].min == 1 && dims[0].extent == 22 && sizeof(halide_buffer_t) == 56 && image.type.bits == 8 ? 0 : 2;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
@pytest.mark.parametrize("runtime", [False, True])
def test_the_header_is_good_with_and_without_that_of_halide(
    built: tuple[Any, Path], compiler: str, runtime: bool
) -> None:
    require_tool(compiler)
    include: list[str] = []
    if runtime:
        spec = find_spec("halide")
        if spec is None or spec.origin is None:
            pytest.skip("needs the wheel of Halide")
        include = [f"-I{Path(spec.origin).parent / 'include'}"]
    folder = built[1]
    suffix = "c" if compiler == "gcc" else "cpp"
    (folder / f"main.{suffix}").write_text(MAIN % ('#include "HalideRuntime.h"' if runtime else ""))
    options = ["-Wall", "-Wno-class-memaccess", *include] if suffix == "cpp" else ["-Wall", *include]
    options += ["-std=c++17"] if suffix == "cpp" else []
    program = folder / f"main_{suffix}_{runtime}"
    subprocess.run([compiler, *options, f"main.{suffix}", folder / "status.so", "-o", program], cwd=folder, check=True)
    assert subprocess.run([program], check=False).returncode == 0


def test_the_entry_is_part_of_what_identifies_a_schedule() -> None:
    pipeline = load(DOCUMENT)
    assert schedule_key(pipeline, here(), Options()) != schedule_key(pipeline, here(), Options(backend="c-halide"))
    with pytest.raises(NoBackend):
        compile_pipeline(pipeline, platforms.load("nvidia-a100"), Options(backend="c-halide"))
