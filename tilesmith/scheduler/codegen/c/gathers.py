"""Vectors gathered from any places of a row, by one instruction where there is one, or of several rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from string import Template

from tilesmith.scheduler.codegen.c.integer_functions import widening
from tilesmith.scheduler.codegen.c.types import function_name, scalar, vector
from tilesmith.scheduler.ir.loop.ops import Gather
from tilesmith.scheduler.ir.loop.program import Body, Define
from tilesmith.scheduler.ir.loop.traversal import walk
from tilesmith.scheduler.ir.loop.values import Lane, LaneOffset, Value
from tilesmith.scheduler.ir.pipeline.types import INT32, INT64, ScalarType

VECTOR_BITS, ELEMENT_BITS = 512, 32
"""Bits of the vectors, and of their elements, that are gathered at once: shorter ones are as fast lane by lane."""

_LANES, _HALF = VECTOR_BITS // ELEMENT_BITS, VECTOR_BITS // ELEMENT_BITS // 2

NEAR, FAR, FOURS = "gather", "gather_far", "fours"
SHARED = 3
"""So many gathers by the same places are faster lane by lane: each lane is taken out of its vector once for all of
them, and loads run beside what else there is to do, which the instruction does not let them."""

_AT_ONCE = "defined __AVX512F__ && !defined __clang__ && !defined __SANITIZE_ADDRESS__"

_NEAR = """\
/* Elements of a row, at any places. */
INLINE $T $name(const $E *row, $I at) {
#if $at_once
    return ($T)__builtin_ia32_gathersiv16$suffix(($T){0}, row, at, -1, sizeof *row);
#else
    return ($T){$elements};
#endif
}
"""

_FAR = """\
/* Elements at places that two vectors tell, each with what its steps are long. */
INLINE $T $name(const $E *row, $I a, int64_t a_step, $I b, int64_t b_step) {
    const $L first = $first;
    const $L second = $second;
    return ($T){$elements};
}
"""
"""Lane by lane, as places of 64 bits need no extension: the instruction takes eight of them, and its loads do not run
beside what else there is to do."""

_FOURS = """\
/* Of every fourth place that two vectors tell, from `part` on, four neighbours. */
INLINE $T $name(const $E *row, $I a, int64_t a_step, $I b, int64_t b_step, int part) {
    const $L first = $first;
    const $L second = $second;
    const $Q v = *(const ${Q}_at *)(row + first[part]), w = *(const ${Q}_at *)(row + first[part + 4]);
    const $Q x = *(const ${Q}_at *)(row + second[part]), y = *(const ${Q}_at *)(row + second[part + 4]);
    const $O vw = __builtin_shufflevector(v, w, $low), xy = __builtin_shufflevector(x, y, $low);
    return __builtin_shufflevector(vw, xy, $low, $high);
}
"""
"""The parts are calls of their own: what they share compilers compute once."""


def is_gather(name: str) -> bool:
    """True for the name of one of these vector functions."""
    return name in (NEAR, FAR, FOURS)


def is_gathered(t: ScalarType, lanes: int) -> bool:
    """True if there is such a function for a vector of that type and length."""
    return t.kind != "bool" and t.bits == ELEMENT_BITS and t.bits * lanes == VECTOR_BITS


def shared_places(body: Body) -> frozenset[str]:
    """The vectors of indices that many gathers of elements have in common, and by which alone they are addressed."""
    return frozenset(name for name, times in Counter(_places(body)).items() if times >= SHARED)


def _places(body: Body) -> Iterator[str]:
    for s in walk(body):
        match s:
            case Define(op=Gather(offsets=(LaneOffset(lane=Lane(vector=Value() as at)),))):
                yield at.name
            case _:
                pass


def called(name: str) -> list[tuple[str, ScalarType, int]]:
    """The functions that they are written with."""
    return [] if name == NEAR else [(widening(INT32), INT64, _HALF)]


def types_of(name: str, t: ScalarType) -> list[tuple[str, int, int]]:
    """The vector types (kind, bits, lanes) that they are written with."""
    kind = "float" if t.is_float else "int"
    types = [(t.kind, t.bits, _LANES), ("int", 32, _LANES), (kind, t.bits, _LANES)]
    if name != NEAR:
        types += [("int", 32, _HALF), ("int", 64, _HALF)]
    if name == FOURS:
        types += [(t.kind, t.bits, _HALF // 2), (t.kind, t.bits, _HALF)]
    return types


def definition(name: str, t: ScalarType, c_name: str) -> str:
    """The C of one of them."""
    places = [f"{part}[{n}]" for part in ("first", "second") for n in range(_HALF)]
    places = places if name == FAR else [f"at[{n}]" for n in range(_LANES)]
    low, high = (", ".join(map(str, part)) for part in (range(_HALF), range(_HALF, _LANES)))
    wide = function_name(widening(INT32), INT64, _HALF)
    half = wide + "(__builtin_shufflevector({0}, {0}, {1})) * {0}_step"
    first, second = (f"{half.format('a', part)} + {half.format('b', part)}" for part in (low, high))
    words = {
        "name": c_name,
        "E": scalar(t),
        "T": vector(t.kind, t.bits, _LANES),
        "I": vector("int", 32, _LANES),
        "L": vector("int", 64, _HALF),
        "O": vector(t.kind, t.bits, _HALF),
        "Q": vector(t.kind, t.bits, _HALF // 2),
        "suffix": "sf" if t.is_float else "si",
        "at_once": _AT_ONCE,
        "first": first,
        "second": second,
        "low": low,
        "high": high,
        "elements": ", ".join(f"row[{at}]" for at in places),
    }
    text = {NEAR: _NEAR, FAR: _FAR, FOURS: _FOURS}[name]
    if t.kind == "uint":
        text = text.replace("($T){0}", "($G){0}")
        words["G"] = vector("int", t.bits, _LANES)
    return Template(text).substitute(words)
