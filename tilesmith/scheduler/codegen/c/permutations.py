"""Permutations by a vector of places: GCC has a word for them, Clang the instructions of x86-64."""

from __future__ import annotations

from tilesmith.scheduler.codegen.c.types import vector
from tilesmith.scheduler.ir.pipeline.types import ScalarType

_SHORTEST = 16
"""Bytes of the registers that shorter vectors are in, too."""
_LONGEST = 64
"""Bytes of the registers of AVX-512, and of those alone."""
_INSTRUCTIONS = {
    (64, 1): ("defined __AVX512VBMI__", "permvarqi512", "char"),
    (64, 2): ("defined __AVX512BW__", "permvarhi512", "short"),
    (64, 4): ("defined __AVX512F__", "permvarsi512", "int"),
    (64, 8): ("defined __AVX512F__", "permvardi512", "long long"),
    (32, 1): ("defined __AVX512VBMI__ && defined __AVX512VL__", "permvarqi256", "char"),
    (32, 2): ("defined __AVX512BW__ && defined __AVX512VL__", "permvarhi256", "short"),
    (32, 4): ("defined __AVX2__", "permvarsi256", "int"),
    (32, 8): ("defined __AVX512VL__", "permvardi256", "long long"),
}
"""Instructions by bytes of a vector and of its elements: the machines that have one, Clang's name, its elements."""


def words(t: ScalarType, lanes: int) -> dict[str, str]:
    """The conditions `permutes`, that a few instructions do it, and `rotates`, that a few do it with two vectors; and
    `permutation`, how Clang has those."""
    size = t.bytes * lanes
    found = _INSTRUCTIONS.get((size, t.bytes))
    # GCC makes shorter vectors of what there is, but of registers of AVX-512 single lanes
    gcc = f"!defined __clang__ && {found[0]}" if found is not None and size == _LONGEST else "!defined __clang__"
    if size > _SHORTEST and found is None:
        return {"permutes": gcc, "rotates": gcc, "permutation": ""}
    test, lines = ("defined __SSSE3__", _bytes(t, lanes)) if found is None else (found[0], _whole(t, lanes, *found[1:]))
    permutation = "\n".join(f"    {line}" for line in lines)
    return {"permutes": f"({gcc}) || ({test})", "rotates": gcc, "permutation": permutation}


def _whole(t: ScalarType, lanes: int, name: str, element: str) -> list[str]:
    return [
        f"typedef {element} whole __attribute__((vector_size({t.bytes * lanes})));",
        f"return ({vector(t.kind, t.bits, lanes)})__builtin_ia32_{name}((whole)a, (whole)at);",
    ]


def _bytes(t: ScalarType, lanes: int) -> list[str]:
    """Byte by byte: each place is that of its first."""
    each, first = ("".join(f"{b:02x}" for b in bytes_) for bytes_ in ([t.bytes] * t.bytes, range(t.bytes - 1, -1, -1)))
    return [
        f"typedef char bytes __attribute__((vector_size({_SHORTEST})));",
        f"const {vector('int', t.bits, lanes)} places = at * (int{t.bits}_t)0x{each} + (int{t.bits}_t)0x{first};",
        "bytes from = {0}, to = {0};",
        "memcpy(&from, &a, sizeof a);",
        "memcpy(&to, &places, sizeof places);",
        "from = __builtin_ia32_pshufb128(from, to);",
        "memcpy(&a, &from, sizeof a);",
        "return a;",
    ]
