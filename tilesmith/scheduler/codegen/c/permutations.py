"""Permutations by a vector of places: GCC has a word for them, Clang the instructions of x86-64."""

from __future__ import annotations

from collections.abc import Sequence

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


_BY_PARTS = {16: "__SSSE3__", 32: "__AVX2__", 64: "__AVX512BW__"}
"""By bytes of a vector: where an instruction permutes the bytes of its parts."""


def by_parts(name: str, picks: Sequence[int | None]) -> str:
    """The function `name` of the bytes `picks` of a vector, with zeros where there is None. Each comes from the part of
    16 bytes that it goes to: GCC knows the instruction for what is not every other byte of half of a part."""
    size = len(picks)
    own = vector("uint", 8, size)
    zeros = [p if p is not None else size + (picks[n - 1] or 0) for n, p in enumerate(picks)]
    plain = ", ".join(map(str, zeros))
    text = f"    return __builtin_shufflevector(a, ({own}){{0}}, {plain});\n"
    if size in _BY_PARTS and not _unpacks(picks):
        places = ", ".join(str(-1 if p is None else p % _SHORTEST) for p in picks)
        found = f"__builtin_ia32_pshufb{8 * size}" + ("_mask" if size == _LONGEST else "")
        more = ", (bytes){0}, -1" if size == _LONGEST else ""
        text = (
            f"#if defined {_BY_PARTS[size]} && !defined __clang__\n"
            f"    typedef char bytes __attribute__((vector_size({size})));\n"
            f"    return ({own}){found}((bytes)a, (bytes){{{places}}}{more});\n"
            f"#else\n{text}#endif\n"
        )
    return f"INLINE {own} {name}({own} a) {{\n{text}}}\n"


def _unpacks(picks: Sequence[int | None]) -> bool:
    """True of a half of each part, a byte and a zero in turns."""
    half = _SHORTEST // 2
    return any(
        all(p == (n // _SHORTEST * _SHORTEST + first + n % _SHORTEST // 2 if n % 2 == 0 else None)
            for n, p in enumerate(picks))
        for first in (0, half)
    )  # fmt: skip


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
