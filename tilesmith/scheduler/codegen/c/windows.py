"""Elements of a row at places that lie near each other, as those of a resampled image: lanes of two vectors side by
side, or of four, where they reach that far, which is asked of each vector of places."""

from __future__ import annotations

from string import Template
from textwrap import indent as indented

from tilesmith.scheduler.codegen.c.types import function_name, scalar, vector
from tilesmith.scheduler.ir.pipeline.types import BOOL, ScalarType

NAME = "window"

_SHORTEST = 16
"""Bytes of the vectors that lanes are picked of, at least."""
_TESTS = {
    32: ("defined __AVX2__", "__builtin_ia32_ptestz256((wide)near, (wide)beyond)"),
    64: ("defined __AVX512BW__ && !defined __clang__", "__builtin_ia32_ptestmd512((wide)near, (wide)beyond, -1) == 0"),
}
"""Machines that permute two vectors by few instructions, by bytes of the vector of places; and the test that two
vectors have no bit in common."""
_PLACE_BITS = 32

_TEXT = """\
/* Lanes of two vectors side by side, the first of which is at `row`; of places beyond these, any. */
INLINE $T ${name}_pair(const $E *row, $J near) {
#if $needs
    const $W low = LOAD($W, row), high = LOAD($W, row + $lanes);
$picked
#else
    (void)row, (void)near;
    return ($T){0};
#endif
}

/* Elements at places of a row that lie near each other as a rule: lanes of two vectors from the first place on, or of
   four, from the last one on where places go down; else one by one. */
INLINE $T $name(const $E *row, int64_t enough, int64_t last, $J at) {
#if $needs
    typedef $element wide __attribute__((vector_size($bytes)));
    if (__builtin_expect(enough >= $more, 1)) {
        const int64_t first = ts_min(at[0], last - $more);
        const $J near = ($J)(($K)at - (uint32_t)first), beyond = -$pair - ($J){0};
        if (__builtin_expect($test, 1)) return ${name}_pair(row + first, near);
    }
    if (enough >= $most) {
        const int64_t first = ts_min(ts_min(at[0], at[$end]), last - $most);
        const $J near = ($J)(($K)at - (uint32_t)first), beyond = -2 * $pair - ($J){0};
        if ($test) {
            const $I low = ($I)${name}_pair(row + first, near);
            const $I high = ($I)${name}_pair(row + first + $pair, near - $pair);
            const $I in_low = $in_low;
            return ($T)((low & in_low) | (high & ~in_low));
        }
    }
    return $apart(row, at);
#else
    (void)enough, (void)last;
    return ($T){$elements};
#endif
}
"""
_WORDS = """\
typedef float floats __attribute__((vector_size(32)));
const floats a = __builtin_ia32_permvarsf256((floats)low, near), b = __builtin_ia32_permvarsf256((floats)high, near);
return ($T)__builtin_ia32_blendvps256(a, b, (floats)(near << 28));
"""
"""Elements of 32 bits in registers of AVX2. The bit of a place that selects the vector becomes the sign that blends."""
_BYTES = """\
typedef char chars __attribute__((vector_size(16)));
const chars n = (chars)$places;
const $W found = ($W)(__builtin_ia32_pshufb128((chars)low, n + 112) | __builtin_ia32_pshufb128((chars)high, n - 16));
return $found;
"""
"""Bytes. A place that is not in a vector gets its sign bit set, so that the permutation gives 0."""


def has_windows(t: ScalarType, lanes: int) -> bool:
    """True if there is such a function for vectors."""
    return t != BOOL and lanes * _PLACE_BITS // 8 in _TESTS


def types_of(t: ScalarType, lanes: int) -> list[tuple[str, int, int]]:
    """The vector types (kind, bits, lanes) that one is written with."""
    window = _window(t, lanes)
    found = [("int", 32, lanes), ("uint", 32, lanes), (t.kind, t.bits, window), ("int", t.bits, window)]
    return [*found, ("int", t.bits, lanes), ("int", t.bits, lanes * _PLACE_BITS // t.bits)]


def definition(t: ScalarType, lanes: int, c_name: str) -> str:
    """The C of one of them."""
    window, size = _window(t, lanes), lanes * _PLACE_BITS // 8
    words = {
        "T": vector(t.kind, t.bits, lanes),
        "W": vector(t.kind, t.bits, window),
        "places": _places(t, lanes, size),
        "found": "found",
        "apart": function_name("apart", t, lanes),
    }
    if window > lanes:
        words["found"] = f"__builtin_shufflevector(found, found, {', '.join(map(str, range(lanes)))})"
    if t.bits == 8:
        picked = _BYTES
    elif t.bits == _PLACE_BITS and size == min(_TESTS):
        picked = _WORDS
    else:
        picked = f"return __builtin_shuffle(low, high, ({vector('int', t.bits, window)})$places);\n"
    needs, test = _TESTS[size]
    if "__builtin_shuffle(" in picked and "__clang__" not in needs:
        needs += " && !defined __clang__"
    text = Template(_TEXT.replace("$picked\n", indented(picked, " " * 4)))
    places, in_low = vector("int", t.bits, lanes), f"near < {2 * window}"
    if t.bits != _PLACE_BITS:
        in_low = f"__builtin_convertvector({in_low}, {places})"
    return text.substitute(
        words, E=scalar(t), J=vector("int", 32, lanes), K=vector("uint", 32, lanes), name=c_name, needs=needs,
        test=test, bytes=size, element="int" if size == max(_TESTS) else "long long", more=2 * window - lanes,
        end=lanes - 1, most=4 * window - lanes, pair=2 * window, lanes=window, I=places, in_low=in_low,
        elements=", ".join(f"row[at[{n}]]" for n in range(lanes)),
    )  # fmt: skip


def _places(t: ScalarType, lanes: int, size: int) -> str:
    """The places in two vectors as integers of the size of elements. GCC narrows registers of AVX2 lane by lane."""
    if t.bits == _PLACE_BITS:
        return "near"
    if t.bits > _PLACE_BITS or size == max(_TESTS):
        return f"__builtin_convertvector(near, {vector('int', t.bits, lanes)})"
    parts = f"({vector('int', t.bits, lanes * _PLACE_BITS // t.bits)})near"
    step = _PLACE_BITS // t.bits
    if step == 2:
        return f"__builtin_shufflevector({parts}, {parts}, {', '.join(str(step * n) for n in range(lanes))})"
    # within each half of the register first, then words across it
    half = lanes // 2
    inside = [side * size // 2 + step * (n % half) for side in (0, 1) for n in range(size // 2)]
    across = [side * size // 2 + 4 * k + n for k in (0, 1) for side in (0, 1) for n in range(half)]
    first = f"__builtin_shufflevector({parts}, {parts}, {', '.join(map(str, inside))})"
    return f"__builtin_shufflevector({first}, {first}, {', '.join(map(str, across))})"


def _window(t: ScalarType, lanes: int) -> int:
    """Lanes of each of the two vectors."""
    return max(lanes, _SHORTEST // t.bytes)
