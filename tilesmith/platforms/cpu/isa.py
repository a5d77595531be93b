"""Instruction sets by which x86 processors are told apart: the features that each is made of, and its vectors."""

from __future__ import annotations

from dataclasses import dataclass

from tilesmith.platforms.errors import PlatformError, PlatformProblem

VARIABLE = "TILESMITH_HOST_ISA"
"""Names in the environment the instruction set that the host is described and compiled for, of those it has."""
X86 = ("x86_64", "amd64")


@dataclass(frozen=True, slots=True)
class Isa:
    """An instruction set. `features`: the kernel's name of each, with the compiler's flag."""

    vector_bytes: int
    vector_registers: int
    features: dict[str, str]

    @property
    def flags(self) -> tuple[str, ...]:
        """Compilers that are older than the levels of the x86-64 psABI know these as well."""
        wide = ("-mprefer-vector-width=512",) if self.vector_bytes == 64 else ()
        return ("-O3", *self.features.values(), "-mtune=native", *wide)


_SSE = {"ssse3": "-mssse3", "sse4_1": "-msse4.1", "sse4_2": "-msse4.2", "popcnt": "-mpopcnt"}
_AVX2 = {
    **_SSE, "avx": "-mavx", "avx2": "-mavx2", "fma": "-mfma", "f16c": "-mf16c", "bmi1": "-mbmi", "bmi2": "-mbmi2",
    "abm": "-mlzcnt", "movbe": "-mmovbe",
}  # fmt: skip
_AVX512 = {
    **_AVX2, "avx512f": "-mavx512f", "avx512cd": "-mavx512cd", "avx512bw": "-mavx512bw", "avx512dq": "-mavx512dq",
    "avx512vl": "-mavx512vl",
}  # fmt: skip

ISAS = {"avx512": Isa(64, 32, _AVX512), "avx2": Isa(32, 16, _AVX2), "sse4.2": Isa(16, 16, _SSE)}
"""Instruction sets by name, the widest first; the features are those of the levels 4, 3 and 2 of the x86-64 psABI."""


def asked_for(name: str, features: frozenset[str], machine: str) -> Isa:
    """The instruction set of that name; PlatformError where there is none, or a processor of architecture `machine`
    (as `uname -m` says) with these `features` has not all of it."""
    able = [known for known, isa in ISAS.items() if machine in X86 and isa.features.keys() <= features]
    if name in able:
        return ISAS[name]
    if name in ISAS and machine in X86:
        message = f"this processor has no {', '.join(f for f in ISAS[name].features if f not in features)}"
    else:
        message = f"there is no '{name[:80]}' on {machine}"
    hint = f"possible here: {', '.join(able) or 'none'}; unset it for all that the processor has"
    raise PlatformError((PlatformProblem("impossible_isa", "", f"{VARIABLE}={name[:80]}: {message}", hint),))
