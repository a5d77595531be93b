"""Instructions of AArch64 for vectors of integers that GCC, and some that Clang, do not find by themselves.

GCC 12 widens half of a vector, or lanes that a shuffle picks, lane by lane through the integer registers, and makes a
comparison and a choice of an extreme and of what saturates. Their names are those of `arm_neon.h`, which both compilers
keep, unlike those of their own functions.
"""

from __future__ import annotations

from tilesmith.scheduler.codegen.c.types import vector
from tilesmith.scheduler.ir.pipeline.types import ScalarType

ARCHITECTURE = "aarch64"
"""The platforms whose files have these, by the first part of their triple."""

MACRO = "TILESMITH_NEON"
HEADER = f"""\
/* The order of lanes is that of memory where bytes are little-endian. */
#if defined __AARCH64EL__ && defined __ARM_NEON
#include <arm_neon.h>
#define {MACRO}
#endif
"""

_IN_GCC = f"defined {MACRO} && !defined __clang__"
_LETTERS = {"int": "s", "uint": "u", "float": "f"}
_STEMS = {"min": "vmin", "max": "vmax", "rounding_halving_add": "vrhadd", "sat_add": "vqadd", "sat_sub": "vqsub"}
_REGISTERS = (8, 16)
"""Bytes: half a register, and a whole one."""

FOUND_BEYOND = {16: (f"defined {MACRO}", "vmaxvq_u32((uint32x4_t)(size > limit))")}
TRUNCATED = {16: (f"defined {MACRO}", "    return ($I)vcvtq_s32_f32((float32x4_t)a);")}
"""Instructions of floats, as `elementary_functions` has them."""


def fused_product(t: ScalarType, size: int) -> tuple[str, str] | None:
    """The instruction of three vectors of floats."""
    if size != 16:
        return None
    taken = _type("float", t.bits, 16)
    return f"defined {MACRO}", f"($F)vfmaq_f{t.bits}(({taken})c, ({taken})a, ({taken})b)"


def binary(name: str, t: ScalarType, lanes: int) -> tuple[str, str] | None:
    """The instruction of two vectors, if there is one: the condition of the preprocessor for it, and a statement that
    returns its value."""
    size = t.bytes * lanes
    if size not in _REGISTERS or name not in _STEMS or (t.bits == 64 and not name.startswith("sat_")):
        return None
    # Clang makes one instruction of the other texts
    where = f"defined {MACRO}" if _STEMS[name] == "vrhadd" or _saturates_signed(name, t) else _IN_GCC
    taken = _type(t.kind, t.bits, size)
    call = f"{_STEMS[name]}{'q' if size == 16 else ''}_{_suffix(t.kind, t.bits)}(({taken})a, ({taken})b)"
    return where, f"    return ({vector(t.kind, t.bits, lanes)}){call};\n"


def magnitudes(t: ScalarType, lanes: int) -> tuple[str, str] | None:
    """The instruction of the absolute values of a vector of integers with a sign, as `binary` has its own."""
    size = t.bytes * lanes
    if size not in _REGISTERS or t.bits == 64:
        return None
    call = f"vabs{'q' if size == 16 else ''}_{_suffix('int', t.bits)}(({_type('int', t.bits, size)})a)"
    return _IN_GCC, f"    return ({vector('int', t.bits, lanes)}){call};\n"


def packed(t: ScalarType, lanes: int) -> tuple[str, str] | None:
    """The instructions of two vectors of integers with a sign as one of half their bits, saturated, as `binary` has its
    own."""
    if t.bytes * lanes != 16:
        return None
    taken = _type("int", 2 * t.bits, 16)
    stem, suffix = "vqmovn" if t.kind == "int" else "vqmovun", _suffix("int", 2 * t.bits)
    call = f"{stem}_high_{suffix}({stem}_{suffix}(({taken})a), ({taken})b)"
    return f"defined {MACRO}", f"    return ({vector(t.kind, t.bits, lanes)}){call};\n"


def widening(source: ScalarType, t: ScalarType, lanes: int) -> tuple[str, str] | None:
    """The instructions that widen vectors of `source` to vectors of `t`, as `binary` has its own: from half a register
    to a whole one, or within half of one, step by step."""
    if t.bytes * lanes not in _REGISTERS:
        return None
    declared, text, bits = "", f"({_type(source.kind, source.bits, 8)})a", source.bits
    taken = source.bytes * lanes
    if taken < 8:  # the rest of the register does not matter
        declared = f"    const int32x2_t whole = {{({'int32_t' if taken == 4 else 'int16_t'})a, 0}};\n"
        text = text.replace(")a", ")whole")
    while bits < t.bits:
        text = f"vmovl_{_suffix(source.kind, bits)}({text})"
        bits *= 2
        if bits < t.bits or t.bytes * lanes == 8:
            text = f"vget_low_{_suffix(source.kind, bits)}({text})"
    return _IN_GCC, f"{declared}    return ({vector(t.kind, t.bits, lanes)}){text};\n"


def widened(t: ScalarType, lanes: int) -> tuple[str, str] | None:
    """The instructions from two elements of 32 bits to double precision."""
    if lanes != 2 or t.bits != 32:
        return None
    text = f"({_type(t.kind, 32, 8)})a"
    if t.is_float:
        return _IN_GCC, f"({vector('float', 64, lanes)})vcvt_f64_f32({text})"
    wide = f"vcvtq_f64_{_suffix(t.kind, 64)}(vmovl_{_suffix(t.kind, 32)}({text}))"
    return _IN_GCC, f"({vector('float', 64, lanes)}){wide}"


def _saturates_signed(name: str, t: ScalarType) -> bool:
    return name.startswith("sat_") and t.kind == "int"


def _suffix(kind: str, bits: int) -> str:
    return f"{_LETTERS[kind]}{bits}"


def _type(kind: str, bits: int, size: int) -> str:
    return f"{kind}{bits}x{8 * size // bits}_t"
