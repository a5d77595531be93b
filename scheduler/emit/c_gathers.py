"""Vectors gathered from any places of a row, or of several rows: one instruction where there is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from string import Template

from scheduler.emit.c_types import scalar, vector
from scheduler.lang.types import ScalarType
from scheduler.lower.program import Define, Gathered, If, Lane, Loop, Statement, Value

VECTOR_BITS, ELEMENT_BITS = 512, 32
"""Bits of the vectors, and of their elements, that are gathered at once: shorter ones are as fast lane by lane."""

NEAR, FAR = "gather", "gather_far"
SHARED = 3
"""So many gathers by the same places are faster lane by lane: each lane is taken out of its vector once for all of
them, and loads run beside what else there is to do, which the instruction does not let them."""

_AT_ONCE = "defined __AVX512F__ && !defined __clang__ && !defined __SANITIZE_ADDRESS__"

_NEAR = """\
/* Elements of a row, at any places. */
TILESMITH_INLINE $T $name(const $E *row, $I at) {
#if $at_once
    return ($T)__builtin_ia32_gathersiv16$suffix(($T){0}, row, at, -1, sizeof *row);
#else
    return ($T){$elements};
#endif
}
"""

_FAR = """\
/* Elements at places that two vectors tell, each with what its steps are long. */
TILESMITH_INLINE $T $name(const $E *row, $I a, int64_t a_step, $I b, int64_t b_step) {
#if $at_once
    typedef long long places __attribute__((vector_size(64)));
    const places first = __builtin_convertvector(__builtin_shufflevector(a, a, $low), places) * a_step
        + __builtin_convertvector(__builtin_shufflevector(b, b, $low), places) * b_step;
    const places second = __builtin_convertvector(__builtin_shufflevector(a, a, $high), places) * a_step
        + __builtin_convertvector(__builtin_shufflevector(b, b, $high), places) * b_step;
    const $H x = __builtin_ia32_gatherdiv16$suffix(($H){0}, row, first, -1, sizeof *row);
    const $H y = __builtin_ia32_gatherdiv16$suffix(($H){0}, row, second, -1, sizeof *row);
    return ($T)__builtin_shufflevector(x, y, $low, $high);
#else
    return ($T){$elements};
#endif
}
"""


def is_gather(name: str) -> bool:
    """Whether a function of vectors is one of these."""
    return name in (NEAR, FAR)


def is_gathered(t: ScalarType, lanes: int) -> bool:
    """Whether there is such a function for a vector."""
    return t.kind != "bool" and t.bits == ELEMENT_BITS and t.bits * lanes == VECTOR_BITS


def shared_places(body: Iterable[Statement]) -> frozenset[str]:
    """The vectors of indices that many gathers of elements have in common, and by which alone they are addressed."""
    return frozenset(name for name, times in Counter(_places(body)).items() if times >= SHARED)


def _places(body: Iterable[Statement]) -> Iterator[str]:
    for s in body:
        match s:
            case Define(op="gather", attrs=(_, (Gathered(lane=Lane(vector=Value() as at)),))):
                yield at.name
            case Loop():
                yield from _places(s.body)
            case If():
                yield from _places((*s.body, *s.otherwise))


def types_of(t: ScalarType, lanes: int) -> list[tuple[str, int, int]]:
    """The vector types (kind, bits, lanes) that they are written with."""
    kind = "float" if t.is_float else "int"
    return [(t.kind, t.bits, lanes), ("int", 32, lanes), (kind, t.bits, lanes), (kind, t.bits, lanes // 2)]


def definition(name: str, t: ScalarType, lanes: int, c_name: str) -> str:
    """The C of one of them."""
    kind, half = "float" if t.is_float else "int", lanes // 2
    at = "a[{0}] * a_step + b[{0}] * b_step" if name == FAR else "at[{0}]"
    words = {
        "name": c_name,
        "E": scalar(t),
        "T": vector(t.kind, t.bits, lanes),
        "I": vector("int", 32, lanes),
        "H": vector(kind, t.bits, half),
        "suffix": "sf" if t.is_float else "si",
        "at_once": _AT_ONCE,
        "low": ", ".join(map(str, range(half))),
        "high": ", ".join(map(str, range(half, lanes))),
        "elements": ", ".join(f"row[{at.format(n)}]" for n in range(lanes)),
    }
    text = _FAR if name == FAR else _NEAR
    if t.kind == "uint":
        text = text.replace("($T){0}", "($G){0}")
        words["G"] = vector("int", t.bits, lanes)
    return Template(text).substitute(words)
