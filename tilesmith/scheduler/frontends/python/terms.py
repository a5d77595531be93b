"""Parts of expressions written in Python: operators on them make text of the pipeline language.

The text is all there is: types, arity and names are checked when the document is loaded.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from typing import Protocol, SupportsFloat, SupportsIndex, TypeAlias, runtime_checkable

from tilesmith.scheduler.ir.pipeline.printer import ATOM, BINARY, COMPARE, UNARY

Operand: TypeAlias = "Term | int | float"


class Ufunc(Protocol):
    """A function of NumPy's, as far as terms ask of it."""

    @property
    def __name__(self) -> str: ...

    def __call__(self, *inputs: object) -> object: ...


class Term:
    """A part of an expression: its text, how tightly the text binds, and what it reads; where it was made of parts,
    these, and `make`, which makes such a term of others. Never true or false."""

    __slots__ = ("level", "make", "parts", "ranges", "sources", "text")
    __iter__ = None  # `[k]` picks a component of a tuple; there is no way to tell how many there are

    def __init__(
        self,
        text: str,
        level: int = ATOM,
        sources: frozenset[Source] = frozenset(),
        ranges: frozenset[Range] = frozenset(),
        parts: tuple[Term, ...] = (),
        make: Callable[..., Term] | None = None,
    ) -> None:
        self.text, self.level, self.sources, self.ranges = text, level, sources, ranges
        self.parts, self.make = parts, make

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{self.text}>"

    def __bool__(self) -> bool:
        raise TypeError(f"{self.text!r} has no value yet: combine conditions with & | ~, choose with select(c, a, b)")

    def __float__(self) -> float:
        raise TypeError(
            f"{self.text!r} has no value yet: functions of points are in tilesmith.language (exp, sqrt, ...), and "
            "types convert, as float32(...)"
        )

    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc: Ufunc, method: str, *inputs: object, **options: object) -> object:
        """Functions of NumPy's mean those of the language: who writes `np.sqrt(photo[x, y])` wants this point's. With
        an array beside the term there is a term for each of its elements."""
        if method != "__call__" or options:
            raise TypeError(f"np.{ufunc.__name__}.{method}: pipelines have functions of points, not of whole arrays")
        arrays = [v for v in inputs if getattr(v, "ndim", 0)]
        if arrays:
            return ufunc(*(_element(v) for v in inputs))
        return numpy_function(ufunc.__name__, *inputs)

    def clip(self, low: Operand, high: Operand, out: None = None) -> Term:
        """`clamp` of the language, as `np.clip` asks for it."""
        return call("clamp", self, low, high)

    def __getitem__(self, component: SupportsIndex) -> Term:
        return self._from(f"{self.at_least(ATOM)}[{operator.index(component)}]", ATOM, operator.itemgetter(component))

    def at_least(self, level: int) -> str:
        return self.text if self.level >= level else f"({self.text})"

    def _from(self, text: str, level: int, make: Callable[..., Term]) -> Term:
        return Term(text, level, self.sources, self.ranges, (self,), make)

    def __add__(self, other: Operand) -> Term:
        return binary("+", self, other)

    def __radd__(self, other: Operand) -> Term:
        # The builtin sum() begins with 0, which adds nothing.
        return self if isinstance(other, int) and other == 0 else binary("+", other, self)

    def __sub__(self, other: Operand) -> Term:
        return binary("-", self, other)

    def __rsub__(self, other: Operand) -> Term:
        return binary("-", other, self)

    def __mul__(self, other: Operand) -> Term:
        return binary("*", self, other)

    def __rmul__(self, other: Operand) -> Term:
        return binary("*", other, self)

    def __truediv__(self, other: Operand) -> Term:
        return binary("/", self, other)

    def __rtruediv__(self, other: Operand) -> Term:
        return binary("/", other, self)

    def __floordiv__(self, other: Operand) -> Term:
        return binary("//", self, other)

    def __rfloordiv__(self, other: Operand) -> Term:
        return binary("//", other, self)

    def __mod__(self, other: Operand) -> Term:
        return binary("%", self, other)

    def __rmod__(self, other: Operand) -> Term:
        return binary("%", other, self)

    def __pow__(self, other: Operand) -> Term:
        return power(self, other)

    def __rpow__(self, other: Operand) -> Term:
        return power(other, self)

    def __and__(self, other: Operand) -> Term:
        return binary("&", self, other)

    def __rand__(self, other: Operand) -> Term:
        return binary("&", other, self)

    def __or__(self, other: Operand) -> Term:
        return binary("|", self, other)

    def __ror__(self, other: Operand) -> Term:
        return binary("|", other, self)

    def __xor__(self, other: Operand) -> Term:
        return binary("^", self, other)

    def __rxor__(self, other: Operand) -> Term:
        return binary("^", other, self)

    def __lshift__(self, other: Operand) -> Term:
        return binary("<<", self, other)

    def __rlshift__(self, other: Operand) -> Term:
        return binary("<<", other, self)

    def __rshift__(self, other: Operand) -> Term:
        return binary(">>", self, other)

    def __rrshift__(self, other: Operand) -> Term:
        return binary(">>", other, self)

    def __neg__(self) -> Term:
        return self._from(f"-{self.at_least(UNARY)}", UNARY, operator.neg)

    def __pos__(self) -> Term:
        return self

    def __invert__(self) -> Term:
        return self._from(f"~{self.at_least(UNARY)}", UNARY, operator.invert)

    def __abs__(self) -> Term:
        return call("abs", self)

    def __round__(self) -> Term:
        return call("round", self)

    def __floor__(self) -> Term:
        return call("floor", self)

    def __ceil__(self) -> Term:
        return call("ceil", self)

    def __trunc__(self) -> Term:
        return call("trunc", self)

    def __lt__(self, other: Operand) -> Term:
        return compare("<", self, other)

    def __le__(self, other: Operand) -> Term:
        return compare("<=", self, other)

    def __gt__(self, other: Operand) -> Term:
        return compare(">", self, other)

    def __ge__(self, other: Operand) -> Term:
        return compare(">=", self, other)

    def __eq__(self, other: Operand) -> Term:  # type: ignore[override]
        return compare("==", self, other)

    def __ne__(self, other: Operand) -> Term:  # type: ignore[override]
        return compare("!=", self, other)


class Var(Term):
    """A dim."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


_serial = count()


class Range(Term):
    """A variable that runs over lo <= r < end, or over `extent` values from lo; used in reductions and updates."""

    __slots__ = ("end", "extent", "lo", "name", "serial")

    def __init__(self, name: str, lo: Operand, end: Operand | None = None, *, extent: Operand | None = None) -> None:
        if (end is None) == (extent is None):
            raise TypeError("a range has either an end or an extent")
        super().__init__(name, ranges=frozenset((self,)))
        self.name, self.serial = name, next(_serial)
        self.lo = as_term(lo)
        if extent is not None:
            self.extent, self.end = as_term(extent), _sum(lo, extent)
        elif isinstance(lo, int) and isinstance(end, int):
            self.extent, self.end = as_term(end - lo), as_term(end)
        else:
            self.end = as_term(end)
            self.extent = self.end if isinstance(lo, int) and lo == 0 else binary("-", self.end, lo)

    @classmethod
    def along(cls, name: str, image: Bounded, dim: Var | str) -> Range:
        """All of an image along one of its dims."""
        key = name_of(dim)
        return cls(name, getattr(image.min, key), extent=getattr(image.extent, key))

    def loop(self) -> str:
        """The range as a loop of a comprehension."""
        return f"for {self.name} in range({self.lo.text}, {self.end.text})"


class Source:
    """Something that a document declares: an image, a param, a stage."""

    name: str

    def needs(self) -> Iterable[Source]:
        """Further declarations that this one needs."""
        return ()


class Bounded(Protocol):
    """A term with `min.x` and `extent.x`."""

    @property
    def min(self) -> object: ...

    @property
    def extent(self) -> object: ...


def as_term(value: object) -> Term:
    """`value`, or the literal that a number is. TypeError for anything else, ValueError for NaN and infinity."""
    if isinstance(value, Term):
        return value
    if isinstance(value, bool):
        return Term(str(value))
    if isinstance(value, SupportsIndex):
        text = repr(operator.index(value))
    elif isinstance(value, SupportsFloat):
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(f"{number} cannot be written in a pipeline")
        text = repr(number)
    elif isinstance(value, slice):
        raise TypeError("a slice cannot be an index: a stage says what one point is, and rsum() adds up several")
    else:
        raise TypeError(f"{value!r} cannot be part of an expression")
    return Term(text, UNARY if text.startswith("-") else ATOM)


def _sum(lo: Operand, extent: Operand) -> Term:
    if isinstance(lo, int) and isinstance(extent, int):
        return as_term(lo + extent)
    return as_term(extent) if isinstance(lo, int) and lo == 0 else binary("+", lo, extent)


def name_of(dim: Var | str) -> str:
    """The name of a dim."""
    return dim if isinstance(dim, str) else dim.name


def join(text: str, level: int, parts: Iterable[Term], make: Callable[..., Term] | None = None) -> Term:
    """A term of that text, which reads what its parts read; `make` makes it of them."""
    kept = tuple(parts)
    sources = frozenset().union(*(p.sources for p in kept))
    return Term(text, level, sources, frozenset().union(*(p.ranges for p in kept)), kept if make else (), make)


def binary(op: str, left: Operand, right: Operand) -> Term:
    """`left op right`."""
    a, b, level = as_term(left), as_term(right), BINARY[op]
    return join(f"{a.at_least(level)} {op} {b.at_least(level + 1)}", level, (a, b), partial(binary, op))


def power(left: Operand, right: Operand) -> Term:
    """`left ** right`, which binds to the right."""
    a, b = as_term(left), as_term(right)
    return join(f"{a.at_least(ATOM)} ** {b.at_least(UNARY)}", BINARY["**"], (a, b), power)


def compare(op: str, left: Operand, right: Operand) -> Term:
    """A comparison."""
    a, b = as_term(left), as_term(right)
    text = f"{a.at_least(COMPARE + 1)} {op} {b.at_least(COMPARE + 1)}"
    return join(text, COMPARE, (a, b), partial(compare, op))


def call(function: str, *args: Operand) -> Term:
    """A call of a function, input or stage."""
    terms = [as_term(a) for a in args]
    return join(f"{function}({', '.join(t.text for t in terms)})", ATOM, terms, partial(call, function))


_OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "remainder": "%",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "left_shift": "<<", "right_shift": ">>",
}  # fmt: skip
_COMPARISONS = {
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
}  # fmt: skip
_CALLS = {
    "absolute": "abs", "fabs": "abs", "sqrt": "sqrt", "exp": "exp", "log": "log", "sin": "sin", "cos": "cos",
    "tan": "tan", "tanh": "tanh", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2",
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "round", "maximum": "max", "minimum": "min",
}  # fmt: skip
_NUMPY: dict[str, Callable[..., Term]] = {
    **{name: partial(binary, op) for name, op in _OPERATORS.items()},
    **{name: partial(compare, op) for name, op in _COMPARISONS.items()},
    **{name: partial(call, function) for name, function in _CALLS.items()},
    "power": power,
    "negative": lambda value: -as_term(value),
    "invert": lambda value: ~as_term(value),
}
"""Functions of the language by NumPy's names for them."""


def numpy_function(name: str, *arguments: object) -> Term:
    """The term that the function of NumPy's of that name makes of terms and numbers. Raises TypeError where the
    language has no such function."""
    function = _NUMPY.get(name)
    if function is None:
        raise TypeError(f"np.{name} is no function of pipelines: write it with those of tilesmith.language")
    return function(*(as_term(_number(a)) for a in arguments))


def _number(value: object) -> object:
    """The number that an array without dims holds; anything else as it is."""
    return value.item() if isinstance(value, _Array) else value


@runtime_checkable
class _Array(Protocol):
    """A number or an array of NumPy's."""

    def item(self) -> object: ...


def _element(value: object) -> object:
    """A term as an element of arrays; anything else as it is."""
    if not isinstance(value, Term):
        return value
    import numpy as np

    box = np.empty((), object)
    box[()] = value
    return box
