"""One operation of the loop program as a C expression, scalar or vector (GCC and Clang vector extensions)."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.analysis.index import Index
from scheduler.emit.c_types import Symbols, element, literal, scalar, short, unaligned, vector
from scheduler.lang.types import BOOL, FLOAT64, INT32, ScalarType
from scheduler.lower.program import Define, Gathered, Lane, Value

_FLOAT_FUNCTIONS = {
    "sqrt": "sqrt", "exp": "exp", "log": "log", "pow": "pow", "sin": "sin", "cos": "cos", "tan": "tan",
    "asin": "asin", "acos": "acos", "atan": "atan", "atan2": "atan2", "tanh": "tanh", "floor": "floor",
    "ceil": "ceil", "round": "rint", "trunc": "trunc",
}  # fmt: skip


class Operations:
    """Prints operations; remembers which vector types they need."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.types: set[tuple[str, int, int]] = set()

    # types ------------------------------------------------------------

    def vector(self, kind: str, bits: int, lanes: int) -> str:
        """The name of a vector type, which is then declared."""
        self.types.add((kind, bits, lanes))
        return vector(kind, bits, lanes)

    def unaligned(self, kind: str, bits: int, lanes: int) -> str:
        """The name of the type of a vector at any element."""
        self.types.add((kind, bits, lanes))
        return unaligned(kind, bits, lanes)

    def of(self, t: ScalarType, lanes: int) -> str:
        """The vector type of `t`."""
        return self.vector("uint" if t == BOOL else t.kind, t.bits, lanes)

    def type_of(self, v: Value) -> str:
        """The C type of a value."""
        if v.lanes == 1:
            return scalar(v.type)
        if v.type == BOOL:
            return self.vector("int", v.mask_bits, v.lanes)
        return self.of(v.type, v.lanes)

    def typedefs(self) -> str:
        """Declarations of all vector types used so far."""
        lines = []
        for kind, bits, lanes in sorted(self.types):
            t = {"int": f"int{bits}_t", "uint": f"uint{bits}_t", "float": "float" if bits == 32 else "double"}[kind]
            size = bits // 8 * lanes
            lines.append(f"typedef {t} {vector(kind, bits, lanes)} __attribute__((vector_size({size})));")
            lines.append(
                f"typedef {t} {unaligned(kind, bits, lanes)} "
                f"__attribute__((vector_size({size}), aligned({bits // 8}), may_alias));"
            )
        return "\n".join(lines)

    # operands ------------------------------------------------------------

    def name(self, v: Value) -> str:
        """A value as it stands."""
        return literal(v.literal, v.type) if v.literal is not None else v.name

    def wide(self, v: Value, lanes: int) -> str:
        """A value as a vector of `lanes`, broadcast where it is a scalar."""
        if v.lanes > 1:
            return v.name
        return f"({self.name(v)} - ({self.of(v.type, lanes)}){{0}})"

    def mask(self, v: Value, bits: int, lanes: int) -> str:
        """A bool value as a mask of elements of `bits`."""
        target = self.vector("int", bits, lanes)
        if v.lanes == 1:
            return f"(({target}){{0}} - (int{bits}_t){self.name(v)})"
        return v.name if v.mask_bits == bits else f"__builtin_convertvector({v.name}, {target})"

    def lanewise(self, result: Value, make: Callable[[int], str]) -> str:
        """A vector made lane by lane."""
        return f"({self.type_of(result)}){{{', '.join(make(n) for n in range(result.lanes))}}}"

    def lane(self, v: Value, n: int) -> str:
        """Lane n of a value."""
        return self.name(v) if v.lanes == 1 else f"{v.name}[{n}]"

    # operations ------------------------------------------------------------

    def expression(self, d: Define) -> str:
        """The C expression of a definition."""
        r, op = d.result, d.op
        if op in ("load", "gather", "shuffle", "lanes", "from_index", "to_index"):
            return self._address(d)
        args = tuple(a for a in d.args if isinstance(a, Value))
        if op == "copy":
            return args[0].name
        if op == "mask":
            return self.mask(args[0], r.mask_bits, r.lanes)
        if op == "broadcast":
            return self.mask(args[0], r.mask_bits, r.lanes) if r.type == BOOL else self.wide(args[0], r.lanes)
        if op == "truncate":
            middle = ScalarType("int", args[0].type.bits)
            ints = f"__builtin_convertvector({args[0].name}, {self.of(middle, r.lanes)})"
            return self._steps(ints, middle, r.type, r.lanes)
        if op in ("cast", "saturate"):
            return self._cast(r, args[0], op == "saturate")
        if op == "select":
            return self._select(r, args)
        if op in ("<", "<=", "==", "!=", ">=", ">"):
            return self._compare(r, op, *args)
        if r.type == BOOL:
            return self._logical(r, op, args)
        if op.startswith("call:"):
            return self._call(r, op[5:], args)
        return self._arithmetic(r, op, args)

    def _address(self, d: Define) -> str:
        r = d.result
        if d.op == "from_index":
            assert isinstance(d.args[0], Index)
            return f"(int32_t){self.symbols.text(d.args[0])}"
        if d.op == "to_index":
            assert isinstance(d.args[0], Value)
            return f"(int64_t){self.name(d.args[0])}"
        if d.op == "lanes":
            assert isinstance(d.args[0], Index)
            pattern = d.attrs[0]
            assert isinstance(pattern, tuple)
            t = self.of(INT32, r.lanes)
            return f"(int32_t){self.symbols.text(d.args[0])} + ({t}){{{', '.join(map(str, pattern))}}}"
        if d.op == "load":
            row, at = d.attrs[0], d.args[0]
            assert isinstance(at, Index)
            if r.lanes == 1:
                text = f"{row}[{self.symbols.bare(at)}]"
                return f"{text} != 0" if r.type == BOOL else text
            kind = "uint" if r.type == BOOL else r.type.kind
            address = f"({row} + {self.symbols.text(at)})"
            text = f"*(const {self.unaligned(kind, r.type.bits, r.lanes)} *){address}"
            return f"{text} != 0" if r.type == BOOL else text
        if d.op == "shuffle":
            picks = d.attrs[0]
            assert isinstance(picks, tuple)
            a, b = d.args
            assert isinstance(a, Value)
            assert isinstance(b, Value)
            return f"__builtin_shufflevector({a.name}, {b.name}, {', '.join(map(str, picks))})"
        return self._gather(d)

    def _gather(self, d: Define) -> str:
        r = d.result
        row, dims = d.attrs[0], d.attrs[1]
        assert isinstance(dims, tuple)
        t = self.of(r.type, r.lanes)
        lanes = ", ".join(f"{row}[{self.offset(dims, n)}]" for n in range(r.lanes))
        text = f"({t}){{{lanes}}}"
        return f"{text} != 0" if r.type == BOOL else text

    def offset(self, dims: tuple[Gathered, ...], n: int) -> str:
        """The offset of lane n in an address that differs from lane to lane."""
        return " + ".join(self._one_offset(g, n) for g in dims)

    def _one_offset(self, g: Gathered, n: int) -> str:
        at = self.lane_index(g.lane, n)
        if g.within is not None:
            lo, hi = (self.symbols.bare(x) for x in g.within)
            at = f"tilesmith_max(tilesmith_min({at}, {hi}), {lo})"
        if g.ring is not None:
            at = f"({at} & {g.ring - 1})"
        elif g.origin.terms or g.origin.const:
            at = f"({at} - {self.symbols.text(g.origin)})"
        if g.stride.is_const and g.stride.const == 1:
            return at
        return f"{at} * {self.symbols.text(g.stride)}"

    def lane_index(self, lane: Lane, n: int) -> str:
        """The index of lane n."""
        if lane.vector is not None:
            return f"(int64_t){self.lane(lane.vector, n)}"
        shift = lane.pattern[n] if lane.pattern is not None else 0
        return self.symbols.text(lane.base + shift)

    def _compare(self, r: Value, op: str, a: Value, b: Value) -> str:
        if r.lanes == 1:
            return f"{self.name(a)} {op} {self.name(b)}"
        if a.type == BOOL:
            bits = r.mask_bits
            return f"{self.mask(a, bits, r.lanes)} {op} {self.mask(b, bits, r.lanes)}"
        return f"{self.wide(a, r.lanes)} {op} {self.wide(b, r.lanes)}"

    def _logical(self, r: Value, op: str, args: tuple[Value, ...]) -> str:
        """Bool results of operators on bools."""
        if op.startswith("call:"):
            op = {"call:min": "and", "call:max": "or"}[op]
        if r.lanes == 1:
            names = [self.name(a) for a in args]
            if op == "not":
                return f"!{names[0]}"
            return f"{names[0]} {({'and': '&', 'or': '|', '&': '&', '|': '|', '^': '^'})[op]} {names[1]}"
        masks = [self.mask(a, r.mask_bits, r.lanes) for a in args]
        if op == "not":
            return f"~{masks[0]}"
        return f"{masks[0]} {({'and': '&', 'or': '|', '&': '&', '|': '|', '^': '^'})[op]} {masks[1]}"

    def _select(self, r: Value, args: tuple[Value, ...]) -> str:
        c, a, b = args
        if r.lanes == 1:
            return f"{self.name(c)} ? {self.name(a)} : {self.name(b)}"
        if r.type == BOOL:
            m, x, y = (self.mask(v, r.mask_bits, r.lanes) for v in (c, a, b))
            return f"({x} & {m}) | ({y} & ~{m})"
        if c.lanes == 1:
            return f"{self.name(c)} ? {self.wide(a, r.lanes)} : {self.wide(b, r.lanes)}"
        return self.blend(r.type, r.lanes, self.mask(c, r.type.bits, r.lanes), a, b)

    def blend(self, t: ScalarType, lanes: int, mask: str, a: Value, b: Value) -> str:
        """Lanes of a where the mask is set, else of b."""
        i = self.vector("int", t.bits, lanes)
        x, y = self.wide(a, lanes), self.wide(b, lanes)
        if t.kind == "int":
            return f"({x} & {mask}) | ({y} & ~{mask})"
        return f"({self.of(t, lanes)})((({i}){x} & {mask}) | (({i}){y} & ~{mask}))"

    # conversions ------------------------------------------------------------

    def _cast(self, r: Value, a: Value, saturate: bool) -> str:
        t, source = r.type, a.type
        if r.lanes == 1:
            return self._cast_lane(t, source, self.name(a), saturate)
        if t == BOOL:
            return f"{a.name} != ({self.of(source, a.lanes)}){{0}}"
        if source == BOOL:
            as_int = ScalarType("int", t.bits)
            ones = f"({self.mask(a, t.bits, r.lanes)} & 1)"
            if t == as_int:
                return ones
            return (
                f"__builtin_convertvector({ones}, {self.of(t, r.lanes)})" if t.is_float
                else f"({self.of(t, r.lanes)}){ones}"
            )  # fmt: skip
        if source.is_float and t.is_integer:
            return self.lanewise(r, lambda n: self._cast_lane(t, source, self.lane(a, n), saturate))
        if saturate and t.is_integer:
            return self._saturated(a, t, r.lanes)
        return self._converted(a.name, source, t, r.lanes)

    def _cast_lane(self, t: ScalarType, source: ScalarType, a: str, saturate: bool) -> str:
        if t == BOOL:
            return f"{a} != 0"
        if source.is_float and t.is_integer:
            return f"tilesmith_{short(source)}_to_{short(t)}({a})"
        if saturate and t.is_integer and source.is_integer:
            return f"tilesmith_exact_{short(t)}({a})"
        return f"({scalar(t)}){a}"

    def _converted(self, a: str, source: ScalarType, t: ScalarType, lanes: int) -> str:
        """Conversion in steps that double or halve the size: what the machines have instructions for."""
        if source.is_integer and t.is_integer and source.bits == t.bits:
            return f"({self.of(t, lanes)}){a}"
        if source.is_integer and t.is_float and source.bits < t.bits:
            middle = ScalarType("int", t.bits)
            a, source = self._steps(a, source, middle, lanes), middle
        if source.is_integer and t.is_integer:
            return self._steps(a, source, t, lanes)
        return f"__builtin_convertvector({a}, {self.of(t, lanes)})"

    def _steps(self, a: str, source: ScalarType, t: ScalarType, lanes: int) -> str:
        kind, bits = source.kind, source.bits
        while bits != t.bits:
            bits = bits * 2 if bits < t.bits else bits // 2
            step = ScalarType(kind if bits != t.bits else t.kind, bits)
            a = f"__builtin_convertvector({a}, {self.of(step, lanes)})"
        return a if source.bits != t.bits else f"({self.of(t, lanes)}){a}"

    def _saturated(self, a: Value, t: ScalarType, lanes: int) -> str:
        source = a.type
        text = a.name
        wide = self.of(source, lanes)
        i = self.vector("int", source.bits, lanes)
        if t.max < source.max:
            high = f"({literal(t.max, source)} - ({wide}){{0}})"
            m = f"({text} > {high})"
            text = f"({wide})((({i}){high} & {m}) | (({i}){text} & ~{m}))"
        if t.min > source.min:
            low = f"({literal(t.min, source)} - ({wide}){{0}})"
            m = f"({text} < {low})"
            text = f"({wide})((({i}){low} & {m}) | (({i}){text} & ~{m}))"
        return self._converted(f"({text})", source, t, lanes)

    # arithmetic ------------------------------------------------------------

    def _arithmetic(self, r: Value, op: str, args: tuple[Value, ...]) -> str:
        t = r.type
        if op in ("neg", "~"):
            return self._unary(r, op, args[0])
        a, b = args
        if op in ("//", "%", "**", "<<", ">>"):
            return self._special(r, op, a, b)
        if t.is_float or op in ("&", "|", "^"):
            a_text = self.wide(a, r.lanes) if r.lanes > 1 and a.lanes == 1 and b.lanes == 1 else self.name(a)
            return f"{a_text} {op} {self.name(b)}"
        return self._wrapping(r, op, a, b)

    def _wrapping(self, r: Value, op: str, a: Value, b: Value) -> str:
        """+ - * of integers: through unsigned types, where wrapping is defined."""
        t = r.type
        if r.lanes == 1:
            if t.kind == "uint" and (t.bits >= 32 or op != "*"):
                return f"({scalar(t)})({self.name(a)} {op} {self.name(b)})"
            u = f"uint{max(t.bits, 32)}_t"
            return f"({scalar(t)})(({u}){self.name(a)} {op} ({u}){self.name(b)})"
        if t.kind == "uint":
            return f"{self.name(a)} {op} {self.name(b)}"
        u = self.vector("uint", t.bits, r.lanes)
        x, y = (f"({u}){v.name}" if v.lanes > 1 else f"({u}){self.wide(v, r.lanes)}" for v in (a, b))
        return f"({self.of(t, r.lanes)})({x} {op} {y})"

    def _unary(self, r: Value, op: str, a: Value) -> str:
        t = r.type
        if op == "~":
            return f"({scalar(t)})~{self.name(a)}" if r.lanes == 1 else f"~{self.name(a)}"
        if t.is_float:
            return f"-{self.name(a)}"
        if r.lanes == 1:
            return f"({scalar(t)})(0 - (uint{max(t.bits, 32)}_t){self.name(a)})"
        u = self.vector("uint", t.bits, r.lanes)
        return f"({self.of(t, r.lanes)})(({u}){{0}} - ({u}){self.name(a)})"

    def _special(self, r: Value, op: str, a: Value, b: Value) -> str:
        t = r.type
        constant = b.literal if b.literal is not None and t.is_integer else None
        if constant is not None and r.lanes > 1:
            simple = self._by_constant(r, op, a, int(constant))
            if simple is not None:
                return simple
        if r.lanes > 1:
            return self.lanewise(r, lambda n: self._special_lane(op, t, b.type, self.lane(a, n), self.lane(b, n)))
        return self._special_lane(op, t, b.type, self.name(a), self.name(b))

    def _special_lane(self, op: str, t: ScalarType, right: ScalarType, a: str, b: str) -> str:
        s = short(t)
        if t.is_float:
            f = "" if t.bits == 64 else "f"
            if op == "**":
                return f"pow{f}({a}, {b})"
            quotient = f"floor{f}({a} / {b})"
            return quotient if op == "//" else f"{a} - {quotient} * {b}"
        if op in ("<<", ">>"):
            count = f"(int64_t){b}"
            if right.bits == 64:  # counts that int64 cannot hold, or not negate, are too large anyway
                count = f"({b} > 64 ? 64 : (int64_t){b})" if right.kind == "uint" else f"tilesmith_max({b}, -64)"
            return f"tilesmith_shift_{s}({a}, {'' if op == '<<' else '-'}{count})"
        return f"tilesmith_{'div' if op == '//' else 'mod'}_{s}({a}, {b})"

    def _by_constant(self, r: Value, op: str, a: Value, k: int) -> str | None:
        """Division, remainder and shifts of a vector by a constant."""
        t, x = r.type, a.name
        if op in ("<<", ">>"):
            if not 0 <= k < t.bits:
                return None
            if op == "<<" and t.kind == "int":
                u = self.vector("uint", t.bits, r.lanes)
                return f"({self.of(t, r.lanes)})(({u}){x} << {k})"
            return f"{x} {op} {k}"
        if k <= 0:
            return None
        if k & (k - 1) == 0:
            return f"{x} >> {k.bit_length() - 1}" if op == "//" else f"{x} & {k - 1}"
        if t.kind == "uint":
            return self._unsigned_by(r, op, x, k)
        zero = f"({self.of(t, r.lanes)}){{0}}"
        if op == "//":  # the mask is -1 where the remainder is negative
            return f"{x} / {k} + ({x} % {k} < {zero})"
        return f"{x} % {k} + ({k} & ({x} % {k} < {zero}))"

    def _unsigned_by(self, r: Value, op: str, x: str, k: int) -> str:
        return f"{x} {'/' if op == '//' else '%'} {k}"

    # functions ------------------------------------------------------------

    def _call(self, r: Value, f: str, args: tuple[Value, ...]) -> str:
        t = r.type
        if f in ("min", "max"):
            a, b = (self.name(v) for v in args)
            return f"{a} {'<' if f == 'min' else '>'} {b} ? {a} : {b}"
        if f == "abs" and r.lanes > 1:
            return self._vector_abs(r, args[0])
        if f == "absd" and r.lanes > 1:
            return self._vector_absd(r, *args)
        if f in ("halving_add", "rounding_halving_add") and r.lanes > 1 and t.kind == "uint":
            # the carry-free mean: a & b plus half of what differs, or a | b less half of it
            x, y = (self.wide(v, r.lanes) for v in args)
            return f"({x} & {y}) + (({x} ^ {y}) >> 1)" if f == "halving_add" else f"({x} | {y}) - (({x} ^ {y}) >> 1)"
        if r.lanes > 1:
            types = tuple(a.type for a in args)
            return self.lanewise(r, lambda n: self._call_lane(f, t, types, tuple(self.lane(a, n) for a in args)))
        return self._call_lane(f, t, tuple(a.type for a in args), tuple(self.name(a) for a in args))

    def _vector_abs(self, r: Value, a: Value) -> str:
        t = r.type
        if t.kind == "uint":
            return a.name
        i = self.vector("int", t.bits, r.lanes)
        if t.is_float:
            top = f"INT{t.bits}_MAX"
            return f"({self.of(t, r.lanes)})(({i}){a.name} & {top})"
        u = self.vector("uint", t.bits, r.lanes)
        sign = f"({a.name} >> {t.bits - 1})"
        return f"({i})(({u})({a.name} ^ {sign}) - ({u}){sign})"

    def _vector_absd(self, r: Value, a: Value, b: Value) -> str:
        t = r.type
        x, y = self.wide(a, r.lanes), self.wide(b, r.lanes)
        if t.is_float:
            i = self.vector("int", t.bits, r.lanes)
            return f"({self.of(t, r.lanes)})(({i})({x} - {y}) & INT{t.bits}_MAX)"
        u = self.vector("uint", t.bits, r.lanes)
        m = f"({u})({x} < {y})"
        # (d ^ m) - m negates where m is all ones
        return f"({self.of(t, r.lanes)})(((({u}){x} - ({u}){y}) ^ {m}) - {m})"

    def _call_lane(self, f: str, t: ScalarType, types: tuple[ScalarType, ...], args: tuple[str, ...]) -> str:
        s, suffix = short(t), "f" if t.is_float and t.bits == 32 else ""
        if f in _FLOAT_FUNCTIONS:
            return f"{_FLOAT_FUNCTIONS[f]}{suffix}({', '.join(args)})"
        match f:
            case "abs" if t.is_float:
                return f"fabs{suffix}({args[0]})"
            case "absd" if t.is_float:
                return f"fabs{suffix}({args[0]} - {args[1]})"
            case "abs":
                u = f"uint{max(t.bits, 32)}_t"
                return (
                    f"({scalar(t)})({args[0]} < 0 ? 0 - ({u}){args[0]} : ({u}){args[0]})"
                    if t.kind == "int"
                    else args[0]
                )
            case "absd":
                u = f"uint{max(t.bits, 32)}_t"
                a, b = args
                return f"({scalar(t)})({a} > {b} ? ({u}){a} - ({u}){b} : ({u}){b} - ({u}){a})"
            case "random":
                h = "0x9E3779B9u"
                for a in args:
                    h = f"tilesmith_mix({h}, (uint32_t){a})"
                return f"(float)({h} >> 8) * 0x1p-24f"
            case "sat_add" | "sat_sub":
                return f"tilesmith_exact_{s}((__int128){args[0]} {'+' if f == 'sat_add' else '-'} {args[1]})"
            case "halving_add" | "rounding_halving_add":
                more = " + 1" if f == "rounding_halving_add" else ""
                return f"({scalar(t)})(((__int128){args[0]} + {args[1]}{more}) >> 1)"
            case "rounding_shift_right":
                return f"tilesmith_exact_{s}(tilesmith_scaled({args[0]}, {_count(types[1], args[1])}, 1))"
            case "mul_shift_right" if s == "u64":
                return f"tilesmith_mul_shift_u64({args[0]}, {args[1]}, {_count(types[2], args[2])})"
            case "mul_shift_right":
                product = f"(__int128){args[0]} * {args[1]}"
                return f"tilesmith_exact_{s}(tilesmith_scaled({product}, {_count(types[2], args[2])}, 0))"
            case "lerp":
                return self._lerp(t, types[2], *args)
        raise AssertionError(f)

    def _lerp(self, t: ScalarType, weight: ScalarType, a: str, b: str, w: str) -> str:
        """See `scheduler.lang.semantics`."""
        if t.is_float:
            if not weight.is_float:
                wide = FLOAT64 if weight.bits > 16 else t
                w = f"({scalar(t)})(({scalar(wide)}){w} / {literal(weight.max, wide)})"
            elif weight != t:
                w = f"({scalar(t)}){w}"
            return f"{a} + ({b} - {a}) * {w}"
        top = (1 << t.bits) - 1
        if weight.is_float:
            wide = FLOAT64 if t.bits > 16 else weight
            w = f"tilesmith_{short(wide)}_to_u{t.bits}(({scalar(wide)}){w} * {literal(top, wide)})"
        elif weight.bits <= t.bits:
            w = f"(__int128){w} * {top // weight.max}u"
        else:
            w = f"{w} / {weight.max // top}u"
        return (
            f"({scalar(t)})tilesmith_lerp({a}, {b}, {w}, {top}u)"
            if t.bits < 64
            else (f"({scalar(t)})tilesmith_lerp({a}, {b}, {w}, {top}ULL)")
        )


def _count(t: ScalarType, a: str) -> str:
    return f"({a} > 127 ? 127 : (int64_t){a})" if t.kind == "uint" and t.bits == 64 else a


__all__ = ["Operations", "element"]
