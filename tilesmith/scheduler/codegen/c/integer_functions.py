"""Functions of vectors of integers, for most of which machines have an instruction that GCC does not find by itself.

GCC 12 makes a comparison and a choice of an extreme, four instructions of a mean, three of a magnitude, and widens a
vector by halves. Clang
knows the plain text for one instruction, but for that of a mean. For what AArch64 has see `neon`.
"""

from __future__ import annotations

from string import Template

from tilesmith.scheduler.codegen.c import neon as c_neon
from tilesmith.scheduler.codegen.c.types import short, vector
from tilesmith.scheduler.ir.loop.ops import PART_BYTES
from tilesmith.scheduler.ir.pipeline.types import ScalarType

Kinds = list[tuple[str, int, int]]
"""Vector types: kind, bits, lanes."""

Instructions = list[tuple[str, str]]
"""The conditions of the preprocessor under which there is an instruction, and statements with its value."""

EXTREMES = ("min", "max")
MEAN = "rounding_halving_add"
SATURATING = ("sat_add", "sat_sub")
MULHI = "mulhi"
"""The upper halves of the products of elements of 16 and of uint32."""
PACKED = "packed"
"""Two vectors of integers with a sign as one of half their bits, saturated."""
PACKED_BY_PARTS = "packed_by_parts"
"""Two vectors of integers as one of half their bits, saturated, each part of 16 bytes of its own."""
BINARY = (*EXTREMES, MEAN, *SATURATING, MULHI)
"""Functions of two vectors of one type."""
LONG_PRODUCT = "product32"
"""Products of elements of 64 bits that fit integers of 32, of the kind that follows."""
ABS = "abs"
"""The magnitudes of elements with a sign, the least of which is its own."""

_NEITHER_FINDS = (MEAN, MULHI)
"""Functions with an instruction that Clang does not find, either."""
_LETTERS = {8: "b", 16: "w", 32: "d", 64: "q"}
_ELEMENTS = {8: "char", 16: "short", 32: "int"}
"""The types of elements that GCC's functions take, by bits."""
_OLDEST = ("pmaxub", "pminub", "pmaxsw", "pminsw", "pavgb", "pavgw", "paddsb", "paddsw", "paddusb", "paddusw",
           "psubsb", "psubsw", "psubusb", "psubusw", "pmulhw", "pmulhuw")  # fmt: skip
"""Instructions for vectors of 16 bytes that SSE2 has; the others came with SSE4.1, or SSSE3."""

_EXTREME = """\
    const $I first = a $sign b;
    return ($T)((($I)a & first) | (($I)b & ~first));
"""

_MEAN = """\
    return (a | b) - ((a ^ b) >> 1); /* what either has, less half of what differs */
"""

_SAT_ADD_UNSIGNED = """\
    const $T room = ~b, fits = ($T)(a < room);
    return ((a & fits) | (room & ~fits)) + b;
"""

_SAT_SUB_UNSIGNED = """\
    const $T more = ($T)(a > b);
    return ((a & more) | (b & ~more)) - b;
"""

_SAT_ADD_SIGNED = """\
    const $T zero = {0}, sum = ($T)(($U)a + ($U)b), over = ((a ^ sum) & (b ^ sum)) < zero;
    return (sum & ~over) | (((a < zero) ^ $most) & over);
"""

_SAT_SUB_SIGNED = """\
    const $T zero = {0}, rest = ($T)(($U)a - ($U)b), over = ((a ^ b) & (a ^ rest)) < zero;
    return (rest & ~over) | (((a < zero) ^ $most) & over);
"""

_MULHI = """\
    const $W x = ($W)a, y = ($W)b; /* two elements each */
    return ($T)(((x & $mask) * (y & $mask) >> $bits) | ((x >> $bits) * (y >> $bits) & ~$mask));
"""

_MULHI_SIGNED = """\
    const $V even = ((($V)(($W)a << $bits)) >> $bits) * ((($V)(($W)b << $bits)) >> $bits);
    const $V odd = (($V)a >> $bits) * (($V)b >> $bits);
    return ($T)((($W)even >> $bits) | (($W)odd & ~$mask));
"""


def widening(source: ScalarType) -> str:
    """The name of the function that widens vectors of `source`, to the type that it is a function of."""
    return f"from_{short(source)}"


_SUMS = ("sums_", "sads_")
"""Sums of neighbours, and of their absolute differences from others; the bits of these follow."""
_WHERE = {16: "__SSE2__", 32: "__AVX2__", 64: "__AVX512BW__"}
"""Machines with instructions for integers of 8 and 16 bits, by bytes of a register."""


def is_integer_function(name: str) -> bool:
    """True for the names of these functions, where their type is one of integers."""
    return name in (*BINARY, ABS, "madd", PACKED, PACKED_BY_PARTS) or name.startswith(("from_", LONG_PRODUCT, *_SUMS))


def types_of(name: str, t: ScalarType, lanes: int) -> Kinds:
    """The vector types that the function is written with, beside those of its own size."""
    if name.startswith("from_"):
        source = _source(name)
        steps = [(kind, b, lanes) for b in _LETTERS if source.bits <= b < t.bits for kind in ("int", "uint")]
        taken = ("int", source.bits, max(lanes, 16 // source.bytes))
        return [*steps, *([taken] if _widening_instruction(source, t, lanes) else [])]
    if name.startswith(_SUMS):
        first = _source_bits(name)
        return [("uint", b, lanes * t.bits // b) for b in _LETTERS if first <= b < t.bits]
    if name.startswith(LONG_PRODUCT):
        return [("int", 32, 2 * lanes)]
    if name == "madd":
        return [("int", 16, 2 * lanes)]
    if name in (PACKED, PACKED_BY_PARTS):
        return [("int", 2 * t.bits, lanes // 2)]
    if name == MULHI:
        return [(kind, 2 * t.bits, lanes // 2) for kind in ("int", "uint")]
    return []


def definition(name: str, t: ScalarType, lanes: int, c_name: str, architecture: str) -> str:
    """The C function `c_name`, for machines of that architecture; of any other one it is right, too."""
    neon = architecture == c_neon.ARCHITECTURE
    own = vector(t.kind, t.bits, lanes)
    if name.startswith("from_"):
        source = _source(name)
        head = f"INLINE {own} {c_name}({vector(source.kind, source.bits, lanes)} a) {{\n"
        found = _widening_instruction(source, t, lanes)
        found += _one(c_neon.widening(source, t, lanes)) if neon else []
        steps = _instead(found, _by_steps(source, t, lanes))
        return f"{head}{steps}}}\n"
    if name.startswith(_SUMS):
        return _sums(_source_bits(name), t, lanes, c_name, name.startswith("sads_"))
    if name == "madd":
        return _madd(lanes, c_name)
    if name in (PACKED, PACKED_BY_PARTS):
        return _packed(t, lanes, c_name, neon, name == PACKED_BY_PARTS)
    if name.startswith(LONG_PRODUCT):
        return _products_of_halves(t, lanes, c_name, name.endswith("uint"))
    if name == ABS:
        return _magnitudes(t, lanes, c_name, neon)
    words = {"T": own, "I": vector("int", t.bits, lanes), "U": vector("uint", t.bits, lanes)}
    words |= {"sign": "<" if name == "min" else ">", "most": f"INT{t.bits}_MAX", "bits": str(t.bits)}
    words |= {"W": vector("uint", 2 * t.bits, lanes // 2), "V": vector("int", 2 * t.bits, lanes // 2)}
    words["mask"] = "0xFFFFu" if t.bits == 16 else "0xFFFFFFFFULL"
    found = _instruction(name, t, lanes) + (_one(c_neon.binary(name, t, lanes)) if neon else [])
    text = _instead(found, Template(_text(name, t)).substitute(words))
    return f"INLINE {own} {c_name}({own} a, {own} b) {{\n{text}}}\n"


def _text(name: str, t: ScalarType) -> str:
    if name in EXTREMES:
        return _EXTREME
    if name == MEAN:
        return _MEAN
    signed = t.kind == "int"
    if name == MULHI:
        return _MULHI_SIGNED if signed else _MULHI
    if name == "sat_add":
        return _SAT_ADD_SIGNED if signed else _SAT_ADD_UNSIGNED
    return _SAT_SUB_SIGNED if signed else _SAT_SUB_UNSIGNED


def _instead(instructions: Instructions, text: str) -> str:
    """`text`, or the value of the first instruction that there is."""
    if not instructions:
        return text
    tests = [f"#{'el' if n else ''}if {where}\n{value}" for n, (where, value) in enumerate(instructions)]
    return f"{''.join(tests)}#else\n{text}#endif\n"


def _one(instruction: tuple[str, str] | None) -> Instructions:
    return [] if instruction is None else [instruction]


def _source_bits(name: str) -> int:
    """The bits of what is summed."""
    return int(name.partition("_")[2])


def _sums(first: int, t: ScalarType, lanes: int, c_name: str, differences: bool) -> str:
    """The sums of neighbours of `first` bits, or of their absolute `differences` from others: by halves of elements
    twice as wide; of bytes by instructions."""
    own, size = vector("uint", t.bits, lanes), t.bytes * lanes
    taken, value, bits, text = vector("uint", first, size * 8 // first), "a", first, ""
    if differences:
        value, text = "d", f"    const {taken} x = ({taken})(a > b), d = (x & (a - b)) | (~x & (b - a));\n"
    while bits < t.bits:
        bits *= 2
        wide, mask = vector("uint", bits, size * 8 // bits), f"(uint{bits}_t)0x{(1 << bits // 2) - 1:x}"
        text += f"    const {wide} x{bits} = ({wide}){value};\n"
        text += f"    const {wide} y{bits} = (x{bits} & {mask}) + (x{bits} >> {bits // 2});\n"
        value = f"y{bits}"
    text += f"    return {value};\n"
    found = _sums_of_bytes(t, size, own, differences) if first == 8 and size in _WHERE else []
    args = f"{taken} a, {taken} b" if differences else f"{taken} a"
    return f"INLINE {own} {c_name}({args}) {{\n{_instead(found, text)}}}\n"


def _sums_of_bytes(t: ScalarType, size: int, own: str, differences: bool) -> Instructions:
    """Eight bytes by absolute differences; fewer by products with ones, of pairs of bytes and of pairs of these."""
    of = {"bytes": "char", "words": "short", "pairs": "int"}

    def returned(value: str) -> str:
        used = [n for n in of if f"({n})" in value]
        types = "".join(f"    typedef {of[n]} {n} __attribute__((vector_size({size})));\n" for n in used)
        return f"{types}    return ({own}){value};\n"

    if t.bits == 64:
        other = "(bytes)b" if differences else "(bytes){0}"
        return [(f"defined {_WHERE[size]}", returned(f"__builtin_ia32_psadbw{8 * size}((bytes)a, {other})"))]
    found: Instructions = []
    where = {**_WHERE, 16: "__SSSE3__"}[size]
    for masked in (True, False) if size == 64 else (False,):
        mask = ("_mask", ", (words){0}, -1", ", (pairs){0}, -1") if masked else ("", "", "")
        value = f"__builtin_ia32_pmaddubsw{8 * size}{mask[0]}((bytes)a, (bytes){{0}} + 1{mask[1]})"
        if t.bits == 32:
            value = f"__builtin_ia32_pmaddwd{8 * size}{mask[0]}({value}, (words){{0}} + 1{mask[2]})"
        found.append((in_gcc(where) if masked else f"defined {where}", returned(value)))
    return [] if differences else found


def _madd(lanes: int, c_name: str) -> str:
    """The sums of the products of neighbours."""
    own, unsigned, pairs = vector("int", 32, lanes), vector("uint", 32, lanes), vector("int", 16, 2 * lanes)
    size = 4 * lanes
    instructions: Instructions = []
    if size in (16, 32, 64):
        where = _WHERE[size]
        if size == 64:
            instructions.append(
                (in_gcc(where), f"    return __builtin_ia32_pmaddwd512_mask(a, b, ({own}){{0}}, -1);\n")
            )
        instructions.append((f"defined {where}", f"    return __builtin_ia32_pmaddwd{8 * size}(a, b);\n"))
    text = (
        f"    const {own} x = ({own})a, y = ({own})b;\n"
        f"    const {own} low = ({own})(({unsigned})x << 16) >> 16, high = ({own})(({unsigned})y << 16) >> 16;\n"
        f"    return ({own})(({unsigned})(low * high) + ({unsigned})((x >> 16) * (y >> 16)));\n"
    )
    return f"INLINE {own} {c_name}({pairs} a, {pairs} b) {{\n{_instead(instructions, text)}}}\n"


def _products_of_halves(t: ScalarType, lanes: int, c_name: str, unsigned: bool) -> str:
    """Products by one instruction of the lower halves, on machines without one of whole elements."""
    own, wide, taken = vector(t.kind, 64, lanes), vector("uint", 64, lanes), vector("int", 32, 2 * lanes)
    size, instructions = 8 * lanes, []
    if size in (16, 32):
        where = "__AVX2__" if size == 32 else "__SSE2__" if unsigned else "__SSE4_1__"
        value = f"__builtin_ia32_pmul{'u' if unsigned else ''}dq{8 * size}(({taken})a, ({taken})b)"
        instructions = [(f"{in_gcc(where)} && !defined __AVX512DQ__", f"    return ({own}){value};\n")]
    text = f"    return ({own})(({wide})a * ({wide})b);\n"
    return f"INLINE {own} {c_name}({own} a, {own} b) {{\n{_instead(instructions, text)}}}\n"


def _magnitudes(t: ScalarType, lanes: int, c_name: str, neon: bool) -> str:
    own, unsigned = vector("int", t.bits, lanes), vector("uint", t.bits, lanes)
    size = t.bytes * lanes
    found = _one(c_neon.magnitudes(t, lanes)) if neon else []
    if size == 8 and t.bits < 64:
        text = f"    typedef {_ELEMENTS[t.bits]} part __attribute__((vector_size(8)));\n"
        text += f"    return ({own})__builtin_ia32_pabs{_LETTERS[t.bits]}((part)a);\n"
        found = [(f"{in_gcc('__SSSE3__')} && defined __x86_64__ && __GNUC__ >= 10", text), *found]
    if size in (16, 32, 64) and (t.bits < 64 or size == 64):
        declared, raw = _raw(t.bits, lanes)
        where = {16: "__SSSE3__", 32: "__AVX2__", 64: "__AVX512BW__" if t.bits <= 16 else "__AVX512F__"}[size]
        more = ("_mask", f", ({raw}){{0}}, -1") if size == 64 else ("", "")
        value = f"__builtin_ia32_pabs{_LETTERS[t.bits]}{8 * size}{more[0]}(({raw})a{more[1]})"
        found = [(in_gcc(where), f"{declared}    return ({own}){value};\n"), *found]
    sign = f"    const {unsigned} sign = ({unsigned})(a >> {t.bits - 1});\n"
    text = f"{sign}    return ({own})((({unsigned})a ^ sign) - sign);\n"
    return f"INLINE {own} {c_name}({own} a) {{\n{_instead(found, text)}}}\n"


def _packed(t: ScalarType, lanes: int, c_name: str, neon: bool, by_parts: bool) -> str:
    """Two vectors as one, saturated. Registers of 32 bytes and more are packed by parts of 16 bytes, whose halves are
    then put into order, unless they stay `by_parts`."""
    own, taken, size = vector(t.kind, t.bits, lanes), vector("int", 2 * t.bits, lanes // 2), t.bytes * lanes
    instructions: Instructions = _one(c_neon.packed(t, lanes)) if neon else []
    if size in (16, 32, 64):
        declared, raw = _raw(t.bits, lanes) if size == 64 else ("", "")
        halves = [*range(0, size // 8, 2), *range(1, size // 8, 2)]
        stem = f"__builtin_ia32_pack{'ss' if t.kind == 'int' else 'us'}{_LETTERS[2 * t.bits]}{_LETTERS[t.bits]}"
        packed = f"{stem}512_mask(a, b, ({raw}){{0}}, -1)" if size == 64 else f"{stem}{8 * size}(a, b)"
        where = "__SSE4_1__" if size == 16 and (t.kind, t.bits) == ("uint", 16) else _WHERE[size]
        if size == PART_BYTES or by_parts:
            text = f"    return ({own}){packed};\n"
        else:
            declared += f"    typedef long long halves __attribute__((vector_size({size})));\n"
            order = ", ".join(map(str, halves))
            text = f"    return ({own})__builtin_shuffle((halves){packed}, (halves){{{order}}});\n"
        instructions.append((in_gcc(where), declared + text))
        if by_parts:  # Clang clamps first, where it does not know that it need not
            instructions.append((f"defined {where}", f"    return ({own}){stem}{8 * size}(a, b);\n"))
    low, high = (f"({taken}){{0}} {'+' if end >= 0 else '-'} {abs(end)}" for end in (t.min, t.max))
    half = PART_BYTES // t.bytes // 2
    parts = [n for part in range(0, lanes // 2, half) for first in (part, part + lanes // 2)
             for n in range(first, first + half)]  # fmt: skip
    even = ", ".join(str(2 * n) for n in (parts if by_parts else range(lanes)))
    text = (
        f"    const {taken} low = {low}, high = {high};\n"
        f"    a = (a & (a < high)) | (high & ~(a < high)), b = (b & (b < high)) | (high & ~(b < high));\n"
        f"    a = (a & (a > low)) | (low & ~(a > low)), b = (b & (b > low)) | (low & ~(b > low));\n"
        f"    return __builtin_shufflevector(({own})a, ({own})b, {even});\n"
    )
    return f"INLINE {own} {c_name}({taken} a, {taken} b) {{\n{_instead(instructions, text)}}}\n"


# instructions ------------------------------------------------------------


def in_gcc(macro: str) -> str:
    """The condition that GCC compiles for a machine that the macro tells of."""
    return f"defined {macro} && !defined __clang__"


def _instruction(name: str, t: ScalarType, lanes: int) -> Instructions:
    """The instruction of two vectors: statements with its value. Clang needs it for few."""
    if name == MULHI and t.bits == 32:
        return _long_products(t, lanes)
    stem, size = _stem(name, t), t.bytes * lanes
    if stem is None or size not in (4, 8, 16, 32, 64) or (t.bits == 64 and size < 64):
        return []
    if size < 16:
        return [_of_part(stem, t, lanes)]
    declared, raw = _raw(t.bits, lanes)
    args = f"({raw})a, ({raw})b"
    call = f"{declared}    return ({vector(t.kind, t.bits, lanes)})__builtin_ia32_{stem}{8 * size}"
    if size == 64:
        where = "__AVX512BW__" if t.bits <= 16 else "__AVX512F__"
        found = [(in_gcc(where), f"{call}_mask({args}, ({raw}){{0}}, -1);\n")]
        return [*found, (f"defined {where}", f"{call}({args});\n")] if name in _NEITHER_FINDS else found
    where = "__AVX2__" if size == 32 else "__SSE2__" if stem in _OLDEST else "__SSE4_1__"
    return [(f"defined {where}" if name in _NEITHER_FINDS else in_gcc(where), f"{call}({args});\n")]


def _of_part(stem: str, t: ScalarType, lanes: int) -> tuple[str, str]:
    """The instruction of two vectors of less than a register: that of 8 bytes, which GCC makes one of 16 from its
    version 10 on, or one of a whole register, of which the rest does not matter."""
    own, size, element = vector(t.kind, t.bits, lanes), t.bytes * lanes, _ELEMENTS[t.bits]
    if size == 8 and stem in _OLDEST:
        text = f"    typedef {element} part __attribute__((vector_size(8)));\n"
        text += f"    return ({own})__builtin_ia32_{stem}((part)a, (part)b);\n"
        return f"{in_gcc('__x86_64__')} && __GNUC__ >= 10", text
    kind, zeros = ("long long", "0") if size == 8 else ("int", "0, 0, 0")
    text = f"    typedef {kind} whole __attribute__((vector_size(16)));\n"
    text += f"    typedef {element} taken __attribute__((vector_size(16)));\n"
    args = ", ".join(f"(taken)(whole){{({kind}){x}, {zeros}}}" for x in "ab")
    text += f"    return ({own})((whole)__builtin_ia32_{stem}128({args}))[0];\n"
    return in_gcc("__SSE2__" if stem in _OLDEST else "__SSE4_1__"), text


def _stem(name: str, t: ScalarType) -> str | None:
    letter, unsigned = _LETTERS[t.bits], t.kind == "uint"
    if name in EXTREMES:
        return f"p{name}{'u' if unsigned else 's'}{letter}"
    if t.bits > 16:
        return None
    if name in SATURATING:
        return f"p{name[4:]}{'us' if unsigned else 's'}{letter}"
    if name == MULHI:
        return f"pmulh{'u' if unsigned else ''}w" if t.bits == 16 else None
    return f"pavg{letter}" if unsigned else None


def _long_products(t: ScalarType, lanes: int) -> Instructions:
    """The products of every second uint32, of which Clang finds the instruction by itself."""
    size = t.bytes * lanes
    if size not in (16, 32, 64):
        return []
    declared, raw = _raw(64, lanes // 2)
    own, wide, taken = vector("uint", 32, lanes), vector("uint", 64, lanes // 2), vector("int", 32, lanes)
    more = f", ({raw}){{0}}, -1" if size == 64 else ""
    name = f"__builtin_ia32_pmuludq{8 * size}{'_mask' if size == 64 else ''}"
    odd = f"({taken})(({wide})a >> 32), ({taken})(({wide})b >> 32)"
    text = (
        f"{declared if size == 64 else ''}    const {wide} even = ({wide}){name}(({taken})a, ({taken})b{more});\n"
        f"    const {wide} odd = ({wide}){name}({odd}{more});\n"
        f"    return ({own})((even >> 32) | (odd & ~0xFFFFFFFFULL));\n"
    )
    where = {16: "__SSE2__", 32: "__AVX2__", 64: "__AVX512F__"}[size]
    return [(in_gcc(where), text)]


def _raw(bits: int, lanes: int) -> tuple[str, str]:
    """The type that GCC's functions take vectors of that size for, and its declaration where it is not declared."""
    if bits == 8:
        return f"    typedef char bytes __attribute__((vector_size({lanes})));\n", "bytes"
    if bits == 64:
        return f"    typedef long long longs __attribute__((vector_size({8 * lanes})));\n", "longs"
    return "", vector("int", bits, lanes)


# widening ------------------------------------------------------------


def _source(name: str) -> ScalarType:
    kind, bits = name[5], int(name[6:])
    return ScalarType("int" if kind == "i" else "uint", bits)


def _by_steps(source: ScalarType, t: ScalarType, lanes: int) -> str:
    text, bits = "a", source.bits
    while bits < t.bits:
        bits *= 2
        kind = t.kind if bits == t.bits else source.kind
        text = f"__builtin_convertvector({text}, {vector(kind, bits, lanes)})"
    return f"    return {text};\n"


def _widening_instruction(source: ScalarType, t: ScalarType, lanes: int) -> Instructions:
    size, taken = t.bytes * lanes, source.bytes * lanes
    if size not in (16, 32, 64) or taken < 4:
        return []
    stem = f"pmov{'s' if source.kind == 'int' else 'z'}x{_LETTERS[source.bits]}{_LETTERS[t.bits]}"
    declared, raw = _raw(source.bits, max(16, taken) // source.bytes)
    operand = f"({raw})a"
    if taken < 16:  # they take a whole register, of which the rest does not matter
        kind, zeros = ("long long", "0") if taken == 8 else ("int", "0, 0, 0")
        declared += f"    typedef {kind} whole __attribute__((vector_size(16)));\n"
        operand = f"({raw})(whole){{({kind})a, {zeros}}}"
    own = vector(t.kind, t.bits, lanes)
    if size < 64:
        where = "__AVX2__" if size == 32 else "__SSE4_1__"
        return [(in_gcc(where), f"{declared}    return ({own})__builtin_ia32_{stem}{8 * size}({operand});\n")]
    where = "__AVX512BW__" if t.bits == 16 else "__AVX512F__"
    into, target = _raw(t.bits, lanes)
    if into != declared:
        declared += into
    value = f"{declared}    return ({own})__builtin_ia32_{stem}512_mask({operand}, ({target}){{0}}, -1);\n"
    return [(in_gcc(where), value)]
