"""Builds for one machine: the instruction sets that it has, each by GCC and by Clang, as platforms of their own."""

from __future__ import annotations

from benchmarks import report
from tilesmith.app.profiler.first_use import asked, measured_once
from tilesmith.platforms import CpuPlatform
from tilesmith.platforms.cpu.detect import host, with_tables
from tilesmith.platforms.cpu.isa import ISAS
from tilesmith.platforms.toolchain import Compiler

NATIVE = "native"
"""All that the machine has, as `host` describes it."""
COMPILERS = ("gcc", "clang")
LIMITS = {
    "avx2": {
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
        "OPENBLAS_CORETYPE": "Haswell",
        "OPENCV_CPU_DISABLE": "AVX512-SKX",
        "OPENCV_IPP": "avx2",
    },
    "sse4.2": {
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
        "OPENBLAS_CORETYPE": "Nehalem",
        "OPENCV_CPU_DISABLE": "AVX,FP16,AVX2,AVX512-SKX",
        "OPENCV_IPP": "sse42",
    },
}
"""Variables by which libraries take no wider instructions than a build has: NumPy, OpenBLAS, and OpenCV with Intel's
primitives. Nothing tells onnxruntime."""


def instruction_sets() -> tuple[str, ...]:
    """The instruction sets that this machine can run, the widest first."""
    if not host().triple.startswith("x86_64"):
        return (NATIVE,)
    return tuple(name for name, isa in ISAS.items() if isa.vector_bytes <= host().vector_bytes)


def platform_of(isa: str, compiler: str, threads: int, machine: CpuPlatform | None = None) -> CpuPlatform:
    """`machine`, the host where it is None, with the vectors of that instruction set, compiled for by that compiler."""
    machine = machine or host()
    vectors: dict[str, object] = {}
    flags = host().compiler.flags
    if isa != NATIVE:
        narrowed = ISAS[isa]
        vectors = {
            "vector_bytes": narrowed.vector_bytes,
            "vector_registers": narrowed.vector_registers,
            "core": with_tables(machine.core, narrowed.features, narrowed.vector_bytes),
        }
        flags = narrowed.flags
    return machine.model_copy(
        update={**vectors, "threads": threads, "compiler": Compiler(command=compiler, flags=flags)}
    )


def isa_of(platform: CpuPlatform) -> str:
    """The instruction set that a platform's C is compiled for; NATIVE where that is all that the machine has."""
    return next((name for name, isa in ISAS.items() if platform.compiler.flags == isa.flags), NATIVE)


def machine_of(isa: str, compiler: str, threads: int, given: CpuPlatform | None = None) -> CpuPlatform:
    """The platform that a build is made for: the given one, if it has the build's vectors, or this machine as it was
    measured."""
    build = platform_of(isa, compiler, threads)
    if given is not None and given.vector_bytes == build.vector_bytes:
        return platform_of(isa, compiler, threads, given)
    return measured(build)


def measured(build: CpuPlatform) -> CpuPlatform:
    """The machine in a build as it was measured on first use, by all of its threads; as it is estimated where the
    environment forbids to measure."""
    if not asked():
        return build
    whole = measured_once(build.model_copy(update={"threads": host().threads}), report.progress, report.progress)
    return whole.model_copy(update={"threads": build.threads})
