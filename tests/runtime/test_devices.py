"""Programs that start kernels: what they find their device by, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.opencl import device, require_device

from tilesmith.app.runtime import devices
from tilesmith.app.runtime.build import build
from tilesmith.app.runtime.errors import RunError
from tilesmith.app.runtime.run import run
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.arguments import Image


def packaged(folder: Path) -> Path:
    """The packages of the extra, as they are installed."""
    package = folder / "pyopencl"
    (package / ".libs").mkdir(parents=True)
    for name in ("libOpenCL-1f.so.1.0.0", "libpocl-2e.so"):
        (package / ".libs" / name).touch()
    return package


@pytest.fixture
def extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = packaged(tmp_path)
    monkeypatch.setattr(devices, "_package", lambda name: package if name == "pyopencl" else None)
    monkeypatch.setattr(devices, "VENDORS", tmp_path / "OpenCL")
    for name in (devices.LIBRARY, devices.DRIVERS, devices.HOME):
        monkeypatch.delenv(name, raising=False)
    return package


def test_loader_and_driver_of_the_extra_are_taken_where_the_system_has_none(
    extra: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "_system_loader", lambda: False)
    found = devices.environment(Path("/folder"), 3)
    assert found["TILESMITH_OPENCL_LIBRARY"] == str(extra / ".libs/libOpenCL-1f.so.1.0.0")
    assert found["OCL_ICD_VENDORS"] == str(extra / ".libs/libpocl-2e.so")
    assert found["PYOPENCL_HOME"] == str(extra)
    assert found["POCL_CACHE_DIR"] == "/folder/kernels"
    assert found["POCL_MAX_PTHREAD_COUNT"] == "3"
    assert extra in devices.readable()


def test_the_systems_are_taken_where_there_are_any(extra: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_system_loader", lambda: True)
    (devices.VENDORS / "vendors").mkdir(parents=True)
    (devices.VENDORS / "vendors" / "some.icd").touch()
    found = devices.environment(Path("/folder"), 1)
    assert not {"TILESMITH_OPENCL_LIBRARY", "OCL_ICD_VENDORS", "PYOPENCL_HOME"} & found.keys()


def test_variables_of_the_user_win(extra: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_system_loader", lambda: False)
    monkeypatch.setenv("TILESMITH_OPENCL_LIBRARY", "/opt/libOpenCL.so")
    assert devices.environment(Path("/folder"), 1)["TILESMITH_OPENCL_LIBRARY"] == "/opt/libOpenCL.so"


COPY = {
    "format": 1,
    "name": "copy",
    "inputs": [{"name": "input", "type": "uint16", "dims": ["x", "y"]}],
    "stages": [{"name": "copied", "dims": ["x", "y"], "value": "input(x, y)"}],
    "outputs": ["copied"],
    "estimates": {"copied": [[0, 64], [0, 64]]},
}
"""A kernel that a driver is soon done with."""


@pytest.mark.slow
def test_a_pipeline_runs_on_a_device_confined(tmp_path: Path) -> None:
    require_device()
    pipeline = load(COPY)
    library = build(compile_pipeline(pipeline, device()).source, device(), tmp_path, 60.0)
    assert library.starts_kernels
    image = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    done = run(library, pipeline, {"input": Image(image, (0, 0))}, {}, {"copied": ((0, 64), (0, 64))})
    np.testing.assert_array_equal(done.outputs["copied"][0], image)


@pytest.mark.slow
def test_a_device_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    pipeline = pipelines.load("blur")
    other = device(device="Some GPU", device_type="accelerator")
    library = build(compile_pipeline(pipeline, other).source, other, tmp_path, 60.0)
    image = {"input": Image(np.zeros((66, 66), np.uint16), (0, 0))}
    with pytest.raises(RunError, match="no such OpenCL device") as caught:
        run(library, pipeline, image, {}, {"blur_y": ((0, 64), (0, 64))})
    assert caught.value.code == "run_failure"
    assert "Some GPU" in caught.value.output or "libOpenCL" in caught.value.output
