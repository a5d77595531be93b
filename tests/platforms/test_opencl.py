"""OpenCL devices as platforms: their documents, what schedules read of them, and detection."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import tilesmith.platforms.opencl.detect as detection
from tilesmith.platforms import Compiler, OpenClPlatform, PlatformError, get, parse, to_document
from tilesmith.platforms.opencl.detect import Device, Measured, choose, describe, detect, devices
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.codegen.base import Backend
from tilesmith.scheduler.codegen.c.backend import CBackend
from tilesmith.scheduler.codegen.registry import backend_for, register
from tilesmith.scheduler.compiler import compile_pipeline, generate
from tilesmith.scheduler.errors import NoBackend
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.search import autoschedule, root_schedule

MEASURED = Measured(32, 250.0, 3000.0, 400.0)
TOLD = {
    "name": "Some(R) GPU 9000",
    "type": 4,
    "version": "OpenCL 1.2 CUDA",
    "max_compute_units": 20,
    "max_clock_frequency": 1500,
    "max_work_group_size": 1024,
    "max_work_item_sizes": [1024, 1024, 64],
    "local_mem_size": 49152,
    "local_mem_type": 1,
    "global_mem_size": 8 << 30,
    "global_mem_cache_size": 2 << 20,
    "global_mem_cacheline_size": 128,
    **{f"preferred_vector_width_{t}": 1 for t in ("char", "short", "int", "long", "float", "double")},
    "preferred_vector_width_half": 0,
}


def device(**changes: Any) -> Device:
    told = SimpleNamespace(**(TOLD | changes))
    return Device(told.name, "A Driver", told)


def described(**changes: Any) -> OpenClPlatform:
    return describe(device(**changes), MEASURED, Compiler(command="gcc"), "x86_64-linux-gnu")


def problems(document: object) -> list[tuple[str, str]]:
    with pytest.raises(PlatformError) as caught:
        parse(document)
    return [(p.code, p.pointer) for p in caught.value.problems]


def test_a_device_is_what_its_driver_tells_and_what_was_measured() -> None:
    p = described()
    assert (p.name, p.device, p.device_type, p.opencl_version) == ("some-gpu-9000", "Some(R) GPU 9000", "gpu", "1.2")
    assert (p.compute_units, p.local_memory_bytes, p.local_memory_dedicated) == (20, 49152, True)
    assert (p.work_group_multiple, p.memory_bandwidth_gb_s, p.memory_latency_ns) == (32, 250.0, 400.0)
    assert [figure for figure in p.figures() if not p.source_of(figure)] == []
    assert parse(to_document(p)) == p


def test_a_cache_that_others_share_counts_in_part() -> None:
    p = described(type=2, global_mem_cache_size=1 << 30, local_mem_type=2)
    assert (p.device_type, p.global_cache_bytes, p.local_memory_dedicated) == ("cpu", 20 * (16 << 20), False)
    assert str(p.source_of("global_cache_bytes")).startswith("estimate")


def test_what_a_driver_leaves_out_is_an_estimate() -> None:
    p = described(max_clock_frequency=0, global_mem_cacheline_size=0, version="strange", type=8, name="(R)")
    assert (p.clock_mhz, p.line_bytes, p.opencl_version) == (1000.0, 64, "1.0")
    assert (p.device_type, p.name) == ("accelerator", "opencl")


def test_vectors_are_those_of_a_sub_group_or_of_a_work_item() -> None:
    assert described().vector_bytes == 128
    assert described(type=2, preferred_vector_width_float=16).vector_bytes == 64
    assert described(type=2).vector_bytes == 8


def test_a_device_without_a_cache_has_its_local_memory() -> None:
    assert described(global_mem_cache_size=0).llc_bytes == 49152


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"device_type": "dsp"}, ("bad_value", "/device_type")),
        ({"opencl_version": 3.0}, ("bad_value", "/opencl_version")),
        ({"max_work_item_sizes": [1, 1]}, ("bad_value", "/max_work_item_sizes")),
        ({"vector_widths": {**dict.fromkeys(("i8", "i16", "i32", "i64", "f16", "f32"), 1), "f64": 17}},
         ("bad_value", "/vector_widths/f64")),
        ({"global_cache_line_bytes": 96}, ("not_a_power_of_two", "/global_cache_line_bytes")),
        ({"work_group_multiple": 1024, "max_work_group_size": 512}, ("work_group_too_small", "/max_work_group_size")),
        ({"local_memory_bytes": 2048, "global_cache_line_bytes": 4096},
         ("local_memory_too_small", "/local_memory_bytes")),
        ({"threads": 4}, ("unknown_key", "/threads")),
        ({"sources": {"compute_unit": "x"}}, ("unknown_figure", "/sources/compute_unit")),
        ({"compiler": {"command": "rm"}}, ("compiler_not_allowed", "/compiler/command")),
    ],
)  # fmt: skip
def test_refused_values(change: dict[str, Any], problem: tuple[str, str]) -> None:
    assert problems(to_document(get("nvidia-a100")) | change) == [problem]


def test_an_unknown_key_has_the_hint_of_its_object() -> None:
    document = to_document(get("nvidia-a100"))
    document["vector_widths"] |= {"f_32": 1}
    with pytest.raises(PlatformError) as caught:
        parse(document)
    assert [(p.pointer, p.hint) for p in caught.value.problems] == [("/vector_widths/f_32", "did you mean 'f32'?")]


@pytest.mark.parametrize("name", ["nvidia-a100", "intel-hd-530"])
def test_a_device_has_a_schedule(name: str) -> None:
    pipeline = pipelines.load("blur")
    check(autoschedule(pipeline, get(name)).plan)


def test_a_kind_without_a_backend_is_refused() -> None:
    pipeline, other = pipelines.load("blur"), get("nvidia-a100").model_copy(update={"kind": "dsp"})
    with pytest.raises(NoBackend, match=r"kind 'dsp', such as nvidia-a100; kinds: cpu, opencl"):
        compile_pipeline(pipeline, other)
    with pytest.raises(NoBackend):
        generate(pipeline, root_schedule(pipeline, get("nvidia-a100")), other)


def test_a_name_is_that_of_one_backend() -> None:
    backend: Backend = backend_for(get("i7-6700"))
    assert (backend.name, backend.platform_kind) == ("c", "cpu")
    assert backend_for(get("i7-6700"), "c") is backend
    register(backend)
    with pytest.raises(ValueError, match="there is a backend 'c' already"):
        register(replace(CBackend(), platform_kind="opencl"))
    with pytest.raises(NoBackend, match=r"no backend 'd' generates code for platforms of kind 'cpu', .*; backends: c"):
        backend_for(get("i7-6700"), "d")


def test_devices_are_chosen_by_number_and_by_name() -> None:
    found = (device(name="First GPU"), device(name="Second CPU"))
    assert [choose(found, w).name for w in (None, "1", "second", "a driver")] == [
        "First GPU", "Second CPU", "Second CPU", "First GPU",
    ]  # fmt: skip
    for wanted in ("2", "third"):
        with pytest.raises(PlatformError) as caught:
            choose(found, wanted)
        (problem,) = caught.value.problems
        assert (problem.code, problem.hint) == (
            "unknown_device",
            "devices: 0: First GPU (A Driver); 1: Second CPU (A Driver)",
        )


def test_without_pyopencl_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(PlatformError) as caught:
        devices()
    assert [(p.code, p.hint) for p in caught.value.problems] == [("no_opencl", "pip install 'tilesmith[opencl]'")]


class Failed(Exception):
    """What pyopencl raises."""


def test_without_a_driver_its_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> list[Any]:
        raise Failed("PLATFORM_NOT_FOUND_KHR")

    monkeypatch.setitem(sys.modules, "pyopencl", SimpleNamespace(get_platforms=none, Error=Failed))
    with pytest.raises(PlatformError) as caught:
        devices()
    (problem,) = caught.value.problems
    assert problem.code == "no_opencl"
    assert "pocl-opencl-icd" in str(problem.hint)


def test_a_device_that_runs_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Measured:
        raise Failed("BUILD_PROGRAM_FAILURE")

    monkeypatch.setitem(sys.modules, "pyopencl", SimpleNamespace(Error=Failed))
    monkeypatch.setattr(detection, "measure", broken)
    with pytest.raises(PlatformError, match="does not run kernels: BUILD_PROGRAM_FAILURE"):
        detect(device())


def test_a_device_of_this_machine() -> None:
    pytest.importorskip("pyopencl")
    try:
        found = devices()
    except PlatformError:
        pytest.skip("no OpenCL driver is installed")
    p = detect(found[0])
    assert parse(to_document(p)) == p
    assert min(p.memory_bandwidth_gb_s, p.local_bandwidth_gb_s, p.memory_latency_ns) > 0
