"""Builds for one machine: the instruction sets that it has, each by GCC and by Clang, as platforms of their own."""

from __future__ import annotations

from platforms.detect import host
from platforms.model import CpuPlatform
from platforms.toolchain import Compiler

NATIVE = "native"
"""All that the machine has, as `host` describes it."""
X86 = {
    "avx512": (64, 32, ("-march=x86-64-v4", "-mprefer-vector-width=512")),
    "avx2": (32, 16, ("-march=x86-64-v3",)),
    "sse4.2": (16, 16, ("-march=x86-64-v2",)),
}
"""Bytes of a vector, how many vector registers, and flags, the widest first."""
COMPILERS = ("gcc", "clang")


def instruction_sets() -> tuple[str, ...]:
    """The instruction sets that this machine can run, the widest first."""
    if not host().triple.startswith("x86_64"):
        return (NATIVE,)
    return tuple(name for name, (vector_bytes, _, _) in X86.items() if vector_bytes <= host().vector_bytes)


def platform_of(isa: str, compiler: str, threads: int, machine: CpuPlatform | None = None) -> CpuPlatform:
    """`machine`, the host where it is None, with the vectors of that instruction set, compiled for by that compiler."""
    machine = machine or host()
    vectors: dict[str, object] = {}
    flags = host().compiler.flags
    if isa != NATIVE:
        vector_bytes, registers, narrowed = X86[isa]
        vectors = {"vector_bytes": vector_bytes, "vector_registers": registers}
        flags = ("-O3", *narrowed, "-mtune=native")
    return machine.model_copy(
        update={**vectors, "threads": threads, "compiler": Compiler(command=compiler, flags=flags)}
    )
