"""Functions of whole vectors that a C file may need, by name and type, each with its callees.

See `elementary_functions` for elementary functions and conversions, `memory_functions` for loads and stores,
`integer_functions`, `neighbours`, `gathers` and `lookup_tables` for the others.
"""

from __future__ import annotations

import re
from functools import cache
from string import Template

from tilesmith.scheduler.codegen.c import (
    circular_functions,
    double_functions,
    elementary_functions,
    exponential_functions,
    gathers,
    integer_division,
    lookup_tables,
    masks,
    memory_functions,
    neighbours,
    neon,
    permutations,
    vector_shifts,
    windows,
)
from tilesmith.scheduler.codegen.c.elementary_functions import FLOAT_FUNCTIONS
from tilesmith.scheduler.codegen.c.integer_functions import BINARY, EXTREMES, definition, is_integer_function, types_of
from tilesmith.scheduler.codegen.c.types import function_name, scalar, vector
from tilesmith.scheduler.ir.pipeline.types import FLOAT64, INT32, UINT32, ScalarType

_WHOLE = """\
/* Hides where a vector comes from: compilers would take its lanes from there, one by one. */
#if defined __AVX512F__
#define TILESMITH_REGISTER 64
#define TILESMITH_WHOLE(a) __asm__("" : "+v"(a))
#elif defined __SSE2__
#ifdef __AVX__
#define TILESMITH_REGISTER 32
#else
#define TILESMITH_REGISTER 16
#endif
#define TILESMITH_WHOLE(a) __asm__("" : "+x"(a))
#elif defined __aarch64__ || defined __ARM_NEON
#define TILESMITH_REGISTER 16
#define TILESMITH_WHOLE(a) __asm__("" : "+w"(a))
#endif
"""

_MIX = """\
/* One step of the hash behind random(): MurmurHash3's finaliser of h ^ a. */
INLINE $U $mix($U h, $U a) {
    h ^= a;
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    return h ^ (h >> 16);
}
"""

_ORDER: dict[str, tuple[str, tuple[str, ...]]] = {
    "mix": (_MIX, ()),
    **memory_functions.FUNCTIONS,
    **elementary_functions.FUNCTIONS,
    **exponential_functions.FUNCTIONS,
    **circular_functions.FUNCTIONS,
}
"""C text and callees by name, in an order in which they can be defined."""
_DOUBLES = {**_ORDER, **double_functions.FUNCTIONS}
"""C text and callees of float64."""
_FIRST = ("pick", "opaque", "fma", "any_beyond", "nearest", "lost", "scaled")
"""Functions that others call, in an order in which they can be defined."""
_NO_DOUBLES = "arm"
"""The architecture that computes vectors of float64 lane by lane."""


class Functions:
    """The functions of vectors that a file needs, each with those that it calls, for registers of so many bytes of an
    architecture. With `strict` those of floats are the C library's, lane by lane."""

    def __init__(self, strict: bool, register_bytes: int, architecture: str) -> None:
        self.strict = strict
        self.architecture = architecture
        self.doubles = register_bytes // FLOAT64.bytes
        self._asked: set[tuple[str, ScalarType, int]] = set()

    def ask(self, name: str, t: ScalarType, lanes: int) -> list[tuple[str, int, int]]:
        """Ask for a function. Returns the vector types (kind, bits, lanes) that it and its callees are written with."""
        if (name, t, lanes) in self._asked:
            return []
        self._asked.add((name, t, lanes))
        types = [(kind, t.bits, lanes) for kind in ("int", "uint", *(["float"] if t.is_float else []))]
        if name in ("run", "edge", "apart"):
            types.append(("int", 32, lanes))
        if masks.is_mask_function(name):
            return masks.types_of(name, t, lanes)
        if t.is_integer and is_integer_function(name):
            return [*types, *types_of(name, t, lanes)]
        if integer_division.is_division(name):
            types += integer_division.types_of(t, lanes)
            for function in integer_division.called(name, t, lanes):
                types += self.ask(*function)
            return types
        if lookup_tables.is_lookup(name):
            return [*types, *lookup_tables.types_of(lanes)]
        if vector_shifts.is_shift(name):
            return [*types, *vector_shifts.types_of(t, lanes)]
        if gathers.is_gather(name):
            types += gathers.types_of(name, t)
            for function in gathers.called(name):
                types += self.ask(*function)
            return types
        if name == windows.NAME:
            return [*types, *windows.types_of(t, lanes), *self.ask("apart", t, lanes)]
        if neighbours.is_neighbours(name):
            return [*types, *neighbours.types_of(name, t, lanes)]
        if not self.in_vectors(name, t):
            return types
        if name in ("product_wide", "to_f64"):
            types += [("int", 64, lanes), ("float", 64, lanes)]
        if name == "to_f64" and t == UINT32:
            types += self.ask(name, INT32, lanes)
        for other in _texts(t)[name][1]:
            if other == "opaque_f64":
                types += self.ask("opaque", FLOAT64, lanes)
                continue
            # what is computed in double precision is computed by halves
            wide = other == "product_wide" and lanes > self.doubles
            types += self.ask(other, t, lanes // 2 if wide else lanes)
        return types

    def in_vectors(self, name: str, t: ScalarType) -> bool:
        """True if there is a function of whole vectors; else it is the C library's function of every lane."""
        if name not in FLOAT_FUNCTIONS:
            return name in _texts(t)
        doubles = self.doubles > 1 and (t.bits == 32 or self.architecture != _NO_DOUBLES)
        return name in _ORDER and not self.strict and (doubles or (t.bits == 32 and name != "pow"))

    def text(self) -> list[str]:
        """The definitions, callees first."""
        before = (*BINARY, *(f for f in FLOAT_FUNCTIONS if f not in _ORDER))
        order = [*dict.fromkeys((*before, *_FIRST, *_ORDER, *integer_division.NAMES, windows.NAME))]
        places = {name: n for n, name in enumerate(order)}
        asked = sorted(self._asked, key=lambda f: (f[2], places.get(f[0], -1), f[1].name, f[0], f[1].bits))
        lines = [self._definition(*f) for f in asked]
        heads = (("TILESMITH_REGISTER", _WHOLE), (neon.MACRO, neon.HEADER))
        return [*(head for word, head in heads if any(word in line for line in lines)), *lines]

    def _definition(self, name: str, t: ScalarType, lanes: int) -> str:
        if masks.is_mask_function(name):
            return masks.definition(name, t, lanes)
        if t.is_integer and is_integer_function(name):
            return definition(name, t, lanes, function_name(name, t, lanes), self.architecture)
        if integer_division.is_division(name):
            return integer_division.definition(name, t, lanes)
        if lookup_tables.is_lookup(name):
            return lookup_tables.definition(name, lanes, function_name(name, t, lanes))
        if vector_shifts.is_shift(name):
            return vector_shifts.definition(name, t, lanes, function_name(name, t, lanes))
        if gathers.is_gather(name):
            return gathers.definition(name, t, function_name(name, t, lanes))
        if name == windows.NAME:
            return windows.definition(t, lanes, function_name(name, t, lanes))
        if neighbours.is_neighbours(name):
            return neighbours.definition(name, t, lanes, function_name(name, t, lanes))
        if name in EXTREMES:
            return elementary_functions.extreme(name, t, lanes)
        return (
            _defined(name, t, lanes, self.doubles, self.architecture)
            if self.in_vectors(name, t)
            else elementary_functions.by_lanes(name, t, lanes)
        )


def _texts(t: ScalarType) -> dict[str, tuple[str, tuple[str, ...]]]:
    return _DOUBLES if t == FLOAT64 else _ORDER


@cache
def _defined(name: str, t: ScalarType, lanes: int, doubles: int, architecture: str) -> str:
    text = _texts(t)[name][0]
    words = {f: function_name(f, t, lanes) for f in (*EXTREMES, *FLOAT_FUNCTIONS, *_DOUBLES)}
    words["opaque_f64"] = function_name("opaque", FLOAT64, lanes)
    words |= {
        "I": vector("int", t.bits, lanes),
        "U": vector("uint", t.bits, lanes),
        "F": vector("float", 64 if t == FLOAT64 else 32, lanes),
    }
    words |= {"D": vector("float", 64, lanes), "L": vector("int", 64, lanes)}
    words["halves"] = exponential_functions.halves(lanes, doubles) if name == "pow" and t != FLOAT64 else ""
    words |= elementary_functions.words(t, lanes, architecture) | circular_functions.words(t, lanes)
    words |= {"T": vector(t.kind, t.bits, lanes), "E": scalar(t), "J": vector("int", 32, lanes)}
    test, store = memory_functions.STREAMING_STORES.get(t.bytes * lanes, ("0", "store"))
    words |= {"whole": test, "store": f"__builtin_ia32_{store}"}
    words |= {"last": str(lanes - 1), "iota": ", ".join(map(str, range(lanes))), "i": f"int{t.bits}_t"}
    words |= {"bytes": str(t.bytes * lanes), "elements": ", ".join(f"row[at[{n}]]" for n in range(lanes))}
    words |= permutations.words(t, lanes)
    tests, found = integer_division.any_bit("lost", INT32.bytes * lanes)
    words |= {"tests": tests, "any": found, "place_bytes": str(INT32.bytes * lanes)}
    words["avx512"] = "defined __AVX512F__" if t.bytes * lanes == 64 else "none"
    return re.sub(r"#if none\n.*?#else\n(.*?)#endif\n", r"\1", Template(text).substitute(words), flags=re.DOTALL)
