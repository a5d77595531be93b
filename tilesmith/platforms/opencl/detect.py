"""Detection of OpenCL devices, from what their drivers say of them and by a few kernels that are timed.

pyopencl, the extra `opencl`, asks the drivers.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from tilesmith.platforms.cpu.detect import ESTIMATE, MOST_SHARED, host
from tilesmith.platforms.errors import PlatformError, PlatformProblem
from tilesmith.platforms.opencl.model import DeviceType, OpenClPlatform, VectorWidths
from tilesmith.platforms.toolchain import Compiler

_DRIVER = "the device's driver"
_MEASURED = "measured when the device was detected"
_LANES = {"i8": "char", "i16": "short", "i32": "int", "i64": "long", "f16": "half", "f32": "float", "f64": "double"}
_TURNS = 7
_LEAST_BYTES = 64 << 20
_STEPS = 1 << 17
_SUMS = 512
_KERNELS = """
kernel void copy(global const float4 *from, global float4 *to) {
    size_t i = get_global_id(0);
    to[i] = from[i];
}
kernel void sums(global float4 *to, local float4 *values, uint turns) {
    uint i = get_local_id(0), size = get_local_size(0);
    values[i] = values[i + size] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    float4 sum = 0;
    for (uint turn = 0; turn < turns; turn++) sum += values[i + turn % size];
    to[get_global_id(0)] = sum;
}
kernel void chase(global const uint *next, global uint *to, uint steps) {
    uint at = 0;
    for (uint step = 0; step < steps; step++) at = next[at];
    to[0] = at;
}
"""


@dataclass(frozen=True, slots=True)
class Device:
    """A device, as its driver describes it; `handle` is pyopencl's."""

    name: str
    driver: str
    handle: Any


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures that no driver tells, taken by kernels."""

    work_group_multiple: int
    memory_bandwidth_gb_s: float
    local_bandwidth_gb_s: float
    memory_latency_ns: float


def devices() -> tuple[Device, ...]:
    """The devices that are there, driver by driver; PlatformError `no_opencl` where there is none, with what to
    install."""
    cl = _pyopencl()
    found: list[Device] = []
    try:
        for driver in cl.get_platforms():
            found += (Device(d.name.strip(), driver.name.strip(), d) for d in driver.get_devices())
    except cl.Error:  # a loader without any driver says so
        pass
    if not found:
        hint = "the driver of the GPU, or PoCL for this CPU: apt-get install pocl-opencl-icd ocl-icd-libopencl1"
        raise _refused("no_opencl", "there is no OpenCL device: no driver is installed", hint)
    return tuple(found)


def choose(found: Sequence[Device], wanted: str | None) -> Device:
    """The device of that number, from 0, or with that text in its name or its driver's; the first, if nothing is
    wanted. PlatformError `unknown_device` where there is none."""
    if wanted is None:
        return found[0]
    if wanted.isdecimal():
        matching = found[int(wanted) :][:1]
    else:
        matching = [d for d in found if wanted.lower() in f"{d.name} {d.driver}".lower()]
    if not matching:
        hint = "devices: " + "; ".join(f"{n}: {d.name} ({d.driver})" for n, d in enumerate(found))
        raise _refused("unknown_device", f"there is no OpenCL device {wanted[:80]!r}", hint)
    return matching[0]


def detect(device: Device) -> OpenClPlatform:
    """The platform of a device, measured in a second or two; PlatformError `broken_device` where kernels do not run."""
    cl = _pyopencl()
    try:
        return describe(device, measure(cl, device.handle), host().compiler, host().triple)
    except cl.Error as error:
        message = f"the device {device.name} does not run kernels: {' '.join(str(error).split())[:300]}"
        raise _refused("broken_device", message, "another one by --device, or another driver") from None


def describe(device: Device, measured: Measured, compiler: Compiler, triple: str) -> OpenClPlatform:
    """The platform of a device with these figures, for the host that has this compiler."""
    d = device.handle
    kind = _device_type(d.type)
    cache, cache_source = d.global_mem_cache_size, _DRIVER
    if kind == "cpu" and cache > MOST_SHARED * d.max_compute_units:
        cache, cache_source = MOST_SHARED * d.max_compute_units, ESTIMATE + ": others share what the driver tells"
    taken = ("work_group_multiple", "memory_bandwidth_gb_s", "local_bandwidth_gb_s", "memory_latency_ns")
    told = (
        "compute_units", "max_work_group_size", "max_work_item_sizes", "vector_widths", "local_memory_bytes",
        "local_memory_dedicated", "global_memory_bytes", "global_cache_line_bytes",
    )  # fmt: skip
    sources = {
        **dict.fromkeys(told, _DRIVER),
        **dict.fromkeys(taken, _MEASURED),
        "work_group_multiple": f"{_DRIVER}, of a kernel that copies",
        "clock_mhz": _DRIVER if d.max_clock_frequency else ESTIMATE + ": the driver does not say",
        "global_cache_bytes": cache_source,
    }
    return OpenClPlatform(
        kind="opencl",
        name=_slug(device.name),
        description=f"{device.name}, by {device.driver}"[:2000],
        device=device.name[:2000],
        device_type=kind,
        opencl_version=_version(d.version),
        triple=triple,
        compute_units=d.max_compute_units,
        clock_mhz=float(d.max_clock_frequency or 1000),
        max_work_group_size=d.max_work_group_size,
        max_work_item_sizes=tuple(d.max_work_item_sizes[:3]),
        work_group_multiple=measured.work_group_multiple,
        vector_widths=VectorWidths(**{ours: getattr(d, f"preferred_vector_width_{c}") for ours, c in _LANES.items()}),
        local_memory_bytes=d.local_mem_size,
        local_memory_dedicated=d.local_mem_type == 1,  # CL_LOCAL; 2 is CL_GLOBAL
        global_memory_bytes=d.global_mem_size,
        global_cache_bytes=cache,
        global_cache_line_bytes=d.global_mem_cacheline_size or 64,
        memory_bandwidth_gb_s=measured.memory_bandwidth_gb_s,
        local_bandwidth_gb_s=measured.local_bandwidth_gb_s,
        memory_latency_ns=measured.memory_latency_ns,
        compiler=compiler,
        sources=tuple(sorted(sources.items())),
    )


def measure(cl: ModuleType, device: Any) -> Measured:
    """Bandwidths and latency by kernels, the best of a few turns each; raises pyopencl's errors."""
    context = cl.Context([device])
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    program = cl.Program(context, _KERNELS).build(cache_dir=False)
    copy, sums, chase = cl.Kernel(program, "copy"), cl.Kernel(program, "sums"), cl.Kernel(program, "chase")

    def seconds(kernel: Any, size: int, group: int | None, *arguments: Any) -> float:
        kernel.set_args(*arguments)
        events = [cl.enqueue_nd_range_kernel(queue, kernel, (size,), group and (group,)) for _ in range(_TURNS)]
        queue.finish()
        nanoseconds: list[int] = [e.profile.end - e.profile.start for e in events]
        return 1e-9 * max(1, min(nanoseconds))

    line = device.global_mem_cacheline_size or 64
    cache = min(device.global_mem_cache_size, MOST_SHARED * device.max_compute_units)
    most = min(device.global_mem_size // 8, device.max_mem_alloc_size // 2)
    size = 1 << (min(max(_LEAST_BYTES, 4 * cache), most).bit_length() - 1)
    flags = cl.mem_flags.READ_WRITE
    one, other = cl.Buffer(context, flags, size), cl.Buffer(context, flags, size)
    cl.enqueue_copy(queue, one, _chain(size, line))
    # a whole pass before anything counts: memory that was never touched has no pages
    copied = seconds(copy, size // 16, None, one, other)
    steps = seconds(chase, 1, 1, one, other, np.uint32(_STEPS)) / _STEPS
    group = 1 << (min(256, device.max_work_group_size, device.max_work_item_sizes[0]).bit_length() - 1)
    items = group * device.max_compute_units * 64
    summed = seconds(sums, items, group, other, cl.LocalMemory(32 * group), np.uint32(_SUMS))
    preferred = cl.kernel_work_group_info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE
    return Measured(
        max(1, copy.get_work_group_info(preferred, device)),
        _two_digits(2e-9 * size / copied),
        _two_digits(16e-9 * items * _SUMS / summed),
        _two_digits(1e9 * steps),
    )


def _chain(size: int, line: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """A buffer of `size` bytes in which the first word of every line has the place of another one: a walk from 0 comes
    to all of them, in random order."""
    step = line // 4
    others = np.random.default_rng(1).permutation(size // line - 1) + 1
    order = np.concatenate([[0], others]).astype(np.uint32) * np.uint32(step)
    words = np.zeros(size // 4, np.uint32)
    words[order] = np.roll(order, -1)
    return words


def _two_digits(value: float) -> float:
    """More would be noise."""
    return float(f"{value:.2g}")


def _device_type(bits: int) -> DeviceType:
    """The kind of device that OpenCL's bits say: CL_DEVICE_TYPE_CPU is 2, _GPU 4; the rest are accelerators."""
    return "cpu" if bits & 2 else "gpu" if bits & 4 else "accelerator"


def _version(text: str) -> str:
    """The version in "OpenCL 3.0 PoCL"; 1.0, which all have, where the text has none."""
    match = re.match(r"OpenCL ([1-9]\.[0-9])", text)
    return match[1] if match else "1.0"


def _slug(name: str) -> str:
    """A device's name as that of a platform: `Intel(R) HD Graphics 530` is `intel-hd-graphics-530`."""
    plain = re.sub(r"\((r|tm|c)\)", "", name.lower())
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:64].strip("-") or "opencl"


def _pyopencl() -> ModuleType:
    try:
        return importlib.import_module("pyopencl")
    except ImportError as error:
        hint = "pip install 'tilesmith[opencl]'"
        raise _refused("no_opencl", f"pyopencl, which finds OpenCL devices, cannot be loaded: {error}", hint) from None


def _refused(code: str, message: str, hint: str) -> PlatformError:
    return PlatformError((PlatformProblem(code, "", message, hint),))
