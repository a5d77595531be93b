"""Masks of vectors as C: a bit for each lane, in a register of its own, where GCC compiles for a machine that has these
(AVX-512). Anywhere else they are vectors of 0 and -1, which compilers know what to do with.

GCC 12 sees for itself that a comparison is such a register only where what is chosen by it is at hand. Of what has to
be computed, `x < y ? a * b : c`, it makes both sides with zeros, and joins them: five instructions instead of two.
Which masks these are `tilesmith.scheduler.loop_passes.bit_masks` says.
"""

from __future__ import annotations

from tilesmith.scheduler.codegen.c.types import function_name, vector
from tilesmith.scheduler.ir.pipeline.types import ScalarType

COMPARISONS = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">=": "ge", ">": "gt"}
"""The functions of comparisons."""
CHOSEN, CHOSEN_OR_ZERO, ALL = "chosen", "chosen_or_zero", "all"
_RESIZED, _PART = "resized_", "lanes_from_"

_PREDICATES = {"lt": (1, 1), "le": (2, 2), "eq": (0, 0), "ne": (4, 4), "ge": (5, 13), "gt": (6, 14)}
"""The numbers of comparisons in instructions, of integers and of floats: none holds of NaN but `ne`."""
_SIGNS = {name: sign for sign, name in COMPARISONS.items()}
_LETTERS = {8: "b", 16: "w", 32: "d", 64: "q"}
_RAW = {8: "char", 16: "short", 32: "int", 64: "long long"}
_LEAST_BYTES = 16
"""Bytes of the shortest vectors that there are instructions for."""
WHOLE_BYTES = 64
"""Bytes of the longest, whose comparisons of floats are told how to round."""
_LEAST_BITS = 8
"""Bits of the shortest integer that has a mask."""

HEAD = """\
/* Masks: a bit for each lane, or vectors of 0 and -1. */
#if defined __AVX512BW__ && defined __AVX512DQ__ && defined __AVX512VL__ && !defined __clang__
#define TILESMITH_MASKS
#define MASK(name, bits, vector) typedef bits name
#else
#define MASK(name, bits, vector) typedef vector name
#endif
"""


def mask_of(bits: int) -> ScalarType:
    """The type of elements of masks that choose elements of so many bits."""
    return ScalarType("bool", bits)


def declaration(bits: int, lanes: int) -> str:
    """The type of such masks."""
    return f"MASK({vector('bool', bits, lanes)}, uint{max(_LEAST_BITS, lanes)}_t, {vector('int', bits, lanes)});"


def resized(bits: int) -> str:
    """The name of the function that makes masks of elements of `bits` those of others."""
    return f"{_RESIZED}{bits}"


def part(first: int, lanes: int) -> str:
    """The name of the function that takes the lanes from `first` on out of a mask of `lanes`."""
    return f"{_PART}{first}_of_{lanes}"


def is_mask_function(name: str) -> bool:
    """True for the names of these functions."""
    return name in (*_SIGNS, CHOSEN, CHOSEN_OR_ZERO, ALL) or name.startswith((_RESIZED, _PART))


def types_of(name: str, t: ScalarType, lanes: int) -> list[tuple[str, int, int]]:
    """The types (kind, bits, lanes) that the function is written with."""
    found = [("bool", t.bits, lanes), ("int", t.bits, lanes)]
    if t.kind != "bool":
        return [*found, (t.kind, t.bits, lanes)]
    return [*found, *((kind, *_source(name, t, lanes)) for kind in ("bool", "int"))]


def definition(name: str, t: ScalarType, lanes: int) -> str:
    """The C of the function."""
    c_name = function_name(name, t, lanes)
    if name in _SIGNS:
        return _comparison(name, t, lanes, c_name)
    if name in (CHOSEN, CHOSEN_OR_ZERO):
        return _choice(t, lanes, c_name, name == CHOSEN_OR_ZERO)
    own, source = vector("bool", t.bits, lanes), vector("bool", *_source(name, t, lanes))
    if name == ALL:
        text = f"({vector('int', t.bits, lanes)}){{0}} - (int{t.bits}_t)a"
        return _function(f"{own} {c_name}(_Bool a)", f"    return ({own})-(int64_t)a;\n", f"    return {text};\n")
    if name.startswith(_RESIZED):
        text = f"__builtin_convertvector(a, {own})"
        return _function(f"{own} {c_name}({source} a)", "    return a;\n", f"    return {text};\n")
    first = int(name.removeprefix(_PART).partition("_")[0])
    text = f"__builtin_shufflevector(a, a, {', '.join(map(str, range(first, first + lanes)))})"
    return _function(f"{own} {c_name}({source} a)", f"    return ({own})(a >> {first});\n", f"    return {text};\n")


def _source(name: str, t: ScalarType, lanes: int) -> tuple[int, int]:
    """The bits and lanes of the masks that a function of masks takes."""
    if name.startswith(_RESIZED):
        return int(name.removeprefix(_RESIZED)), lanes
    return (t.bits, int(name.rpartition("_")[2])) if name.startswith(_PART) else (t.bits, lanes)


def _function(head: str, bits: str, vectors: str) -> str:
    return f"INLINE {head} {{\n#ifdef TILESMITH_MASKS\n{bits}#else\n{vectors}#endif\n}}\n"


def _comparison(name: str, t: ScalarType, lanes: int, c_name: str) -> str:
    own, size = vector(t.kind, t.bits, lanes), max(_LEAST_BYTES, t.bytes * lanes)
    more = ", 4" if t.is_float and size == WHOLE_BYTES else ""
    call = f"__builtin_ia32_{'u' if t.kind == 'uint' else ''}cmp{_letters(t)}{8 * size}_mask"
    declared, a, b = _raw(t, lanes, "a", "b")
    bits = f"{declared}    return {call}({a}, {b}, {_PREDICATES[name][t.is_float]}, -1{more});\n"
    head = f"{vector('bool', t.bits, lanes)} {c_name}({own} a, {own} b)"
    return _function(head, bits, f"    return a {_SIGNS[name]} b;\n")


def _choice(t: ScalarType, lanes: int, c_name: str, or_zero: bool) -> str:
    own, i, size = vector(t.kind, t.bits, lanes), vector("int", t.bits, lanes), t.bytes * lanes
    declared, a, b = _raw(t, lanes, "a", "b")
    other = "(raw){0}" if or_zero else b
    value = f"__builtin_ia32_blendm{_letters(t)}_{8 * max(_LEAST_BYTES, size)}_mask({other}, {a}, mask)"
    bits = f"{declared}    return ({own}){value if size >= _LEAST_BYTES else f'((whole){value})[0]'};\n"
    text = f"(({i})a & mask)" if or_zero else f"((({i})a & mask) | (({i})b & ~mask))"
    args = f"{vector('bool', t.bits, lanes)} mask, {own} a{'' if or_zero else f', {own} b'}"
    return _function(f"{own} {c_name}({args})", bits, f"    return ({own}){text};\n")


def _letters(t: ScalarType) -> str:
    return f"p{'s' if t.bits == 32 else 'd'}" if t.is_float else _LETTERS[t.bits]


def _raw(t: ScalarType, lanes: int, *args: str) -> tuple[str, ...]:
    """The types that GCC's functions take such vectors as, declared, and the arguments as these: of shorter vectors
    than they take the rest is 0."""
    size = t.bytes * lanes
    element = ("float" if t.bits == 32 else "double") if t.is_float else _RAW[t.bits]
    declared = f"    typedef {element} raw __attribute__((vector_size({max(_LEAST_BYTES, size)})));\n"
    if size >= _LEAST_BYTES:
        return declared, *(f"(raw){a}" for a in args)
    kind = _RAW[8 * size]
    declared += f"    typedef {kind} whole __attribute__((vector_size({_LEAST_BYTES})));\n"
    return declared, *(f"(raw)(whole){{({kind}){a}}}" for a in args)
