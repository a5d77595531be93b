"""The host's part: errors as codes, whichever call of OpenCL fails, and nothing left behind; bounds queries."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.calls import Buffer
from support.opencl import device, library
from support.tools import require_tool

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.strategies.document import load_text

pytestmark = pytest.mark.slow

REGION, MEMORY, DEVICE, KERNEL = 1, 3, 4, 5
OUT_OF_MEMORY, INVALID = -4, -30


def source(name: str) -> CSource:
    """Two kernels, one of which has buffers of work-groups, and a buffer of the call."""
    document = {
        "format": 1,
        "name": name,
        "inputs": [{"name": "f", "type": "float32", "dims": ["x", "y"]}],
        "stages": [
            {"name": "root", "dims": ["x", "y"], "value": "f(x, y) + 1.0"},
            {"name": "tile", "dims": ["x", "y"], "value": "root(x, y) * 2.0"},
            {"name": "g", "dims": ["x", "y"], "value": "tile(x, y) + tile(x + 1, y + 1)"},
        ],
        "outputs": ["g"],
        "estimates": {"g": [[0, 64], [0, 32]]},
    }
    strategy = load_text(
        "strategy: s\nsteps: [{at: {stage: g, do: [{tile: {sizes: {y: 4}}}, vectorize, parallel]}}, "
        "{compute_at: {stage: tile, loop: y.outer}}, {at: {stage: root, do: [vectorize, parallel]}}]"
    )
    return compile_pipeline(load(document), device("gpu", device="fake"), Options(strategy=strategy)).source


class Program:
    """A compiled program, which finds the OpenCL library that the test names."""

    def __init__(self, made: CSource) -> None:
        self.library = ctypes.CDLL(str(library(made)))
        self.function = getattr(self.library, made.entry + "_argv")
        self.function.restype = ctypes.c_int32
        self.release = getattr(self.library, made.entry + "_release")

    def __call__(self, rows: int = 32, dense: bool = True, asks: bool = False) -> tuple[int, Buffer]:
        step = 1 if dense else 2
        given = np.ones((rows + 1, 65 * step), np.float32)
        out = np.zeros((rows, 64 * step), np.float32)
        images = [Buffer(given.ctypes.data, 2), Buffer(out.ctypes.data, 2)]
        for image, array in zip(images, (given, out), strict=True):
            image.extent[0], image.extent[1] = array.shape[1] // step, array.shape[0]
            image.stride[0], image.stride[1] = step, array.shape[1]
        if asks:
            images[0].data = None
        pointers = (ctypes.c_void_p * 2)(*map(ctypes.addressof, images))
        return self.function(pointers), images[0]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    """The library without a device, found in the place of OpenCL's."""
    made = tmp_path / "libfake.so"
    text = Path(__file__).parents[2] / "support" / "fake_opencl.c"
    subprocess.run([require_tool("gcc"), "-shared", "-fPIC", "-o", made, text], check=True)
    monkeypatch.setenv("TILESMITH_OPENCL_LIBRARY", str(made))
    return ctypes.CDLL(str(made))


def test_whichever_call_fails_the_status_says_so_and_nothing_stays(fake: ctypes.CDLL) -> None:
    program = Program(source("failing"))
    assert program()[0] == 0
    program.release()
    assert fake.fake_live() == 0
    many = fake.fake_calls()
    assert many > 20
    for error, codes in ((OUT_OF_MEMORY, {MEMORY, KERNEL}), (INVALID, {DEVICE, KERNEL})):
        seen = set()
        for n in range(1, many + 1):
            fake.fake_fail(n, error)
            status, _ = program()
            seen.add(status)
            program.release()
            assert fake.fake_live() == 0, f"call {n} of OpenCL leaves something"
        assert seen == codes
    fake.fake_fail(0, 0)
    assert program()[0] == 0  # and after all of that it works


def test_a_call_keeps_the_device_and_no_buffers(fake: ctypes.CDLL) -> None:
    program = Program(source("keeping"))
    for dense in (True, False, True):
        assert program(dense=dense)[0] == 0
    kept = fake.fake_live()
    for _ in range(20):
        assert program()[0] == 0
    assert fake.fake_live() == kept
    program.release()
    assert fake.fake_live() == 0


def test_a_question_needs_no_device(fake: ctypes.CDLL) -> None:
    program = Program(source("asking"))
    status, image = program(asks=True)
    assert status == REGION
    assert [(image.min[d], image.extent[d]) for d in range(2)] == [(0, 65), (0, 33)]
    assert fake.fake_calls() == 0


def test_without_a_library_there_is_no_device(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TILESMITH_OPENCL_LIBRARY", "libno_such_opencl.so")
    assert Program(source("alone"))()[0] == DEVICE
    assert "libno_such_opencl.so" in capfd.readouterr().err
