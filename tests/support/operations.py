"""Operations of the loop IR, each in a line of a program: what a backend computes is held to the interpreter."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from support.calls import Buffer

from tilesmith.scheduler.ir.loop.interpreter import Image, execute
from tilesmith.scheduler.ir.loop.parser import parse_program
from tilesmith.scheduler.ir.loop.program import Program

REGISTER_BYTES = 16
TABLE = 256
NUMPY = {"u8": "uint8", "i8": "int8", "u16": "uint16", "i16": "int16", "u32": "uint32", "i32": "int32",
         "f32": "float32", "f64": "float64"}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Lines of a program of elements of one type, a vector each: `{a}` and `{b}` are two vectors of the input, `{r}` is
    the name of the result, `{n}` a number that tells the lines apart, `{T}` the vector's type, `{M}` that of its masks,
    `{L}` its lanes."""

    name: str
    element: str
    lanes: int
    lines: tuple[str, ...]
    within: float = 0.0  # relative, of floats

    @property
    def size(self) -> int:
        return self.lanes * len(self.lines)

    def program(self) -> Program:
        """Every line on every vector of the input, each result in a place of its own."""
        body = []
        for n, line in enumerate(self.lines):
            text = line.format(
                a="%a", b="%b", r="%r", n=n, T=f"{self.element}x{self.lanes}", E=self.element, L=self.lanes,
                M=f"b8x{self.lanes}m{_bits(self.element)}",
            ).replace("%r", f"%r{n}").replace("%t", f"%t{n}_")  # fmt: skip
            body.append(text)
            body.append(f"store %r{n} to @out_0_data at p[{n * self.lanes}]")
        rows = f"row p = @out_0_data + 0 row q = @in_0_data + 0 %a = load q[0] : {self.element}x{self.lanes}"
        second = f"%b = load q[{self.lanes}] : {self.element}x{self.lanes}"
        return parse_program(_head(self.name, self.element) + "\n".join([rows, second, *body]) + "\n}\n}\n")

    def data(self) -> np.ndarray:
        """The input: two vectors of values that go well with all lines, and what is looked up behind them."""
        kind = np.dtype(NUMPY[self.element])
        random = np.random.default_rng(len(self.name))
        if kind.kind == "f":
            return np.abs(random.normal(2, 1.5, TABLE)).astype(kind) + kind.type(0.1)
        info = np.iinfo(kind)
        values = random.integers(info.min, info.max, TABLE, dtype=kind, endpoint=True)
        values[: min(4, self.lanes)] = [info.max, info.min, info.max, info.min][: self.lanes]
        values[self.lanes] = info.max
        return values


def _bits(element: str) -> int:
    return int(element[1:])


def _head(name: str, element: str) -> str:
    def argument(image: str, output: str) -> str:
        return f'argument "{image}" as {image}_0 : {element} dims(x) storage(x) {output}\n'

    def buffer(image: str) -> str:
        text = f'buffer {image}_0_data "{image}" component 0 : {element} dims(x) unit 0 argument '
        return text + f"origin({image}_0.origin.x) stride(1) ring(none) extent({image}_0.extent.x)\n"

    return (
        f'program "{name}" {{ doc "" method "by hand"\nmachine "x86_64" line_bytes 64 register_bytes {REGISTER_BYTES} '
        "carried_vectors 12 permuted_bytes 4 crowded_bytes 2048\n"
        + argument("in", "") + argument("out", 'output made_by "out"') + buffer("in") + buffer("out")
        + "derivation {} bounds {} body {\n"
    )  # fmt: skip


def expected(case: Case) -> np.ndarray:
    """The output that the interpreter computes."""
    out = np.zeros(case.size, NUMPY[case.element])
    with np.errstate(all="ignore"):
        execute(case.program(), {"in_0": Image(case.data(), (0,)), "out_0": Image(out, (0,))}, {})
    return out


def computed(case: Case, library: ctypes.CDLL, entry: str) -> np.ndarray:
    """The output that a compiled program computes."""
    given, out = case.data(), np.zeros(case.size, NUMPY[case.element])
    images = [_buffer(a) for a in (given, out)]
    function = getattr(library, entry + "_argv")
    function.restype = ctypes.c_int32
    assert function((ctypes.c_void_p * 2)(*map(ctypes.addressof, images))) == 0
    return out


def _buffer(a: np.ndarray) -> Buffer:
    found = Buffer(a.ctypes.data, 1)
    found.min[0], found.extent[0], found.stride[0] = 0, len(a), 1
    return found


def wrong(case: Case, got: np.ndarray) -> list[str]:
    """The lines whose results differ from the interpreter's."""
    same = np.isclose(got, expected(case), rtol=case.within, atol=case.within, equal_nan=True)
    return [line for line, ok in zip(case.lines, same.reshape(-1, case.lanes).all(axis=1), strict=True) if not ok]


def _results(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple("%r = " + text + " : {T}" for text in texts)


_COMPARED = tuple(
    "%t = {a} " + op + " {b} : {M} %r = select %t, {a}, {b} : {T}" for op in ("<", "<=", "==", "!=", ">=", ">")
)
_LOGIC = (
    "%tx = {a} < {b} : {M} %ty = {a} != {b} : {M} %t = %tx and %ty : {M} %r = select %t, {a}, {b} : {T}",
    "%tx = {a} < {b} : {M} %ty = {a} != {b} : {M} %t = %tx or %ty : {M} %r = select %t, {a}, {b} : {T}",
    "%tx = {a} < {b} : {M} %t = not %tx : {M} %r = select %t, {a}, {b} : {T}",
)
_INTEGERS = _results(
    ["{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} // {b}", "{a} % {b}", "{a} & {b}", "{a} | {b}", "{a} ^ {b}",
     "{a} // 3:{E}", "{a} % 8:{E}", "{a} // 8:{E}", "{a} << 3:{E}", "{a} >> 2:{E}", "inv {a}",
     "call min({a}, {b})", "call max({a}, {b})", "call sat_add({a}, {b})", "call sat_sub({a}, {b})",
     "call halving_add({a}, {b})", "call rounding_halving_add({a}, {b})", "call rounding_shift_right({a}, 3:{E})",
     "call mul_shift_right({a}, {b}, 7:{E})", "copy {a}", "copy {a} held",
     "broadcast 5:{E}"]
) + _COMPARED + _LOGIC  # fmt: skip
_ACROSS = _results(
    ["shuffle {a}, {b} [" + picks + "]" for picks in ("REVERSED", "EVENS", "ODDS", "NEIGHBOURS", "FIRST")]
)
_MEMORY = _results(
    ["load q[3]", "clamped_load q[3] from 3 to 200", "clamped_load q[3] from 5 to 200",
     "clamped_load q[198] from 5 to 200", "clamped_load q[900] from 5 to 200", "clamped_load q[1] from 3 to 4",
     "gather q[<2; [STRIDED]> origin 0 stride 1]",
     "gather q[<0; [STRIDED]> origin 0 stride 2, <1> origin 0 stride 5]",
     "gather q[<0; [STRIDED]> origin 0 stride 1 ring 8]",
     "gather q[<0; [STRIDED]> origin 0 stride 1 within 2 to 6]",
     "gather_pairs q[<0; [STRIDED]> origin 0 stride 1] half 0",
     "gather_pairs q[<0; [STRIDED]> origin 0 stride 1] half 1"]
)  # fmt: skip
_PLACES = (
    "%tn = lanes 0 [STRIDED] : i32x{L} %r = gather q[<3; %tn> origin 0 stride 1] : {T}",
    "%tn = lanes 4 [0; LANES] : i32x{L} %r = monotone_gather q[%tn] enough 1 last 100 : {T}",
    "%tn = lanes 4 [0; LANES] : i32x{L} %r = window_gather q[%tn] enough 1 last 100 : {T}",
    "%tn = lanes 4 [IN_ORDER] : i32x{L} %r = edge_gather q[%tn] first 4 from 0 to 200 : {T}",
    "%tn = lanes 0 [AT_LOW] : i32x{L} %r = edge_gather q[%tn] first -2 from 0 to 200 : {T}",
    "%tn = lanes 100 [AT_HIGH] : i32x{L} %r = edge_gather q[%tn] first 98 from 0 to 100 : {T}",
    "%tn = lanes 0 [ANEW] : i32x{L} %r = edge_gather q[%tn] first -2 from 0 to 200 : {T}",
    "%tn = lanes 69 [BACKWARDS] : i32x{L} %r = edge_gather q[%tn] first -70 from 0 to 200 : {T}",
    "%tn = lanes 0 [STRIDED] : i32x{L} %r = edge_gather q[%tn] first -1 from 0 to 200 : {T}",
)
_FLOATS = _results(
    ["{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "neg {a}", "call min({a}, {b})", "call max({a}, {b})",
     "call abs({a})", "call absd({a}, {b})", "call sqrt({a})", "call floor({a})", "call ceil({a})", "call round({a})",
     "call trunc({a})", "call lerp({a}, {b}, {a})", "copy {a} held", "fused_product {a}, {b}, {b}",
     "fused_product {a}, 3.5:{E}, {b}"]
) + _COMPARED + _LOGIC  # fmt: skip
_ELEMENTARY = _results(
    [f"call {f}({{a}})" for f in ("exp", "log", "sin", "cos", "tan", "atan", "tanh")]
    + ["call pow({a}, {b})", "call atan2({a}, {b})"]
)


def _with_lanes(lines: Sequence[str], lanes: int) -> tuple[str, ...]:
    def listed(numbers: Sequence[int]) -> str:
        return ", ".join(map(str, numbers))

    picks = {
        "REVERSED": [2 * lanes - 1 - n for n in range(lanes)],
        "EVENS": [2 * n for n in range(lanes)],
        "ODDS": [2 * n + 1 for n in range(lanes)],
        "NEIGHBOURS": [n + 1 for n in range(lanes)],
        "FIRST": [0] * lanes,
        "STRIDED": [3 * n % 17 for n in range(lanes)],
        "IN_ORDER": [*range(lanes)],
        "AT_LOW": [max(n - 2, 1 - n) for n in range(lanes)],
        "AT_HIGH": [min(n - 2, 3 - n) for n in range(lanes)],
        "ANEW": [(n - 2) % 201 for n in range(lanes)],
        "BACKWARDS": [-n for n in range(lanes)],
        "0; LANES": [min(n, lanes - 2) for n in range(lanes)],
    }
    made = []
    for line in (x for x in lines if lanes > 2 or "gather_" not in x):
        for name, numbers in picks.items():
            line = line.replace(name, listed(numbers))
        made.append(line)
    return tuple(made)


_PAIRS = ("%tp = load_pair q[3] : i32 %tq = dot_pairs {a}, %tp : i32x4 %r = narrow %tq, %tq : {T}",)


def cases() -> list[Case]:
    """Operations on each type of elements that a vector may have, and conversions between pairs of them."""
    found = []
    for element in ("u8", "i8", "u16", "i16", "u32", "i32"):
        lanes = REGISTER_BYTES * 8 // _bits(element)
        signed = _results(["neg {a}"]) if element[0] == "i" else ()
        lines = _with_lanes((*_INTEGERS, *signed, *_ACROSS, *_MEMORY), lanes)
        places = _with_lanes(_PLACES, lanes) if element == "i32" else _PAIRS if element == "i16" else ()
        found.append(Case(f"integers_{element}", element, lanes, (*lines, *places)))
    for element in ("f32", "f64"):
        lanes = REGISTER_BYTES * 8 // _bits(element)
        lines = _with_lanes((*_FLOATS, *_ELEMENTARY, *_ACROSS, *_MEMORY), lanes)
        places = _with_lanes(_PLACES, lanes) if element == "f32" else ()
        found.append(Case(f"floats_{element}", element, lanes, (*lines, *places), 1e-5))
    return [*found, *_conversions()]


def _conversions() -> list[Case]:
    """Casts there and back, those that saturate among them, in vectors of four lanes."""
    found = []
    for element in ("i32", "f32"):
        others = [t for t in NUMPY if t != element]
        lines = [
            f"%t = cast {{a}} {saturate} : {t}x4 %r = cast %t : {{T}}"
            for t, saturate in product(others, ("", "saturate"))
            if not (saturate and t[0] == "f")
        ]
        if element == "f32":
            lines += ["%t = truncate {a} : i32x4 %r = cast %t : {T}", "%t = truncate {a} : i16x4 %r = cast %t : {T}"]
        lines += [
            "%tx = {a} < {b} : {M} %ty = resize_mask %tx : b8x4m16 %tz = resize_mask %ty : {M} "
            "%r = select %tz, {a}, {b} : {T}"
        ]
        if element == "i32":
            lines += [
                "%tz = narrow {a}, {b} : i16x8 %tu = shuffle %tz, %tz [0, 3, 5, 7] : i16x4 %r = cast %tu : {T}",
                "%tz = narrow {a}, {b} : i16x8 %r = widen_part %tz part 0 : {T}",
                "%tz = narrow {a}, {b} : i16x8 %tu = shuffle %tz, %tz [2, 3, 0, 1, 6, 7, 12, 13] : i16x8 "
                "%r = widen_part %tu part 1 : {T}",
                "%tx = cast {a} : u8x4 %ty = cast {b} : u8x4 %tz = shuffle %tx, %ty [0, 1, 2, 3, 4, 5, 6, 7] : u8x8 "
                "%tv = shuffle %tz, %tz [7, 0, 6, 1, 5, 2, 4, 3, 0, 1, 2, 3, 4, 5, 6, 7] : u8x16 "
                "%tw = widen_part %tv part 2 : {T} %tq = widen_part %tv part 0 : {T} "
                "%ts = widen_part %tv part 3 : {T} %tt = %tw + %tq : {T} %r = %tt - %ts : {T}",
                "%tz = narrow {a}, {b} saturate by_parts : i16x8 %r = widen_lanes %tz [7, 0, 5, 2] : {T}",
                "%tz = narrow {a}, {b} saturate by_parts : u16x8 %r = widen_lanes %tz [1, 6, 3, 3] : {T}",
                "%tz = narrow {a}, {b} saturate by_parts : i16x8 %tu = narrow %tz, %tz saturate by_parts : u8x16 "
                "%r = widen_lanes %tu [15, 0, 9, 2] : {T}",
                "%tz = narrow {a}, {b} saturate by_parts : i16x8 %tu = narrow %tz, %tz saturate by_parts : u8x16 "
                "%tv = widen_lanes %tu [4, 5, 6, 7, 0, 1, 2, 3] : u16x8 %tw = widen_lanes %tv [0, 1, 2, 3] : u32x4 "
                "%r = cast %tw : {T}",
                "%tx = cast {a} : i16x4 %ty = cast {b} : i16x4 "
                "%tu = shuffle %tx, %ty [0, 1, 2, 3, 4, 5, 6, 7] : i16x8 %r = dot_pairs %tu, %tu : {T}",
                "%tx = cast {a} : u8x4 %ty = cast {b} : u8x4 %tz = shuffle %tx, %ty [0, 1, 2, 3, 4, 5, 6, 7] : u8x8 "
                "%tu = sum_neighbours %tz, 0:u8 : u16x4 %r = cast %tu : {T}",
                "%tx = cast {a} : u8x4 %ty = cast {b} : u8x4 %tz = shuffle %tx, %ty [0, 1, 2, 3, 4, 5, 6, 7] : u8x8 "
                "%tv = shuffle %ty, %tx [7, 1, 2, 4, 3, 5, 0, 6] : u8x8 "
                "%tu = sum_neighbours %tz, %tv : u16x4 %r = cast %tu : {T}",
                "%tx = from_index 7 : i32 %r = broadcast %tx : {T}",
                "%r = lanes 3 [0, 2, 4, 6] : {T}",
            ]
        found.append(Case(f"conversions_{element}", element, 4, tuple(lines), 1e-6))
    return found
