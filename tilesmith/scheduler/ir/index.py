"""Integer expressions over symbols, in canonical linear form: what bounds and addresses are made of.

An `Index` is `const + sum(coefficient * atom)`; an atom is a symbol or a `min`, `max`, floor division,
remainder, product or function that the linear form cannot see through. Equal expressions that differ by
arithmetic only are equal objects, so differences of bounds simplify to constants where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import chain
from math import gcd
from threading import Lock
from typing import Literal, Protocol, TypeAlias
from weakref import ref

AtomKind = Literal["sym", "min", "max", "div", "mod", "mul", "call"]


class Function(Protocol):
    """A function of numbers to an integer, compared by value; `key` tells it from all others."""

    @property
    def key(self) -> str: ...

    def __call__(self, args: Sequence[int]) -> int: ...


class Atom:
    """`sym`: a name; `min`, `max`: two or more arguments; `div`, `mod`: floor division and its remainder
    (both 0 where the divisor is); `mul`: a product of two; `call`: a `function`, `called` where it or a part of it is
    one. `index` is the index that is it alone. Interned: of equal atoms there is one while any lives, so that they are
    compared and hashed by identity."""

    __slots__ = ("__weakref__", "args", "called", "function", "index", "key", "kind", "symbols")
    args: tuple[Index, ...]
    called: bool
    function: Function | None
    index: Index
    key: str
    kind: AtomKind
    symbols: tuple[str, ...]

    def __new__(
        cls, kind: AtomKind, args: tuple[Index, ...] = (), name: str = "", function: Function | None = None
    ) -> Atom:
        reference = _ATOMS.get(name if kind == "sym" else (kind, args, function))
        found = None if reference is None else reference()
        return cls._interned(name, kind, args, function) if found is None else found

    @classmethod
    def _interned(cls, name: str, kind: AtomKind, args: tuple[Index, ...], function: Function | None = None) -> Atom:
        key = name if kind == "sym" else (kind, args, function)
        with _INTERNING:
            reference = _ATOMS.get(key)
            found = None if reference is None else reference()
            if found is None:
                found = super().__new__(cls)
                found.kind, found.args, found.function = kind, args, function
                word = kind if function is None else function.key
                found.key = name if kind == "sym" else f"{word}({','.join([a.key for a in args])})"
                found.called = function is not None or any(a.called for x in args for a, _ in x.terms)
                found.symbols = (name,) if kind == "sym" else _distinct([a.symbols() for a in args])
                found.index = Index(0, ((found, 1),))
                if len(_ATOMS) >= _ATOMS.most:
                    _ATOMS.purge()
                _ATOMS[key] = ref(found)
            return found

    def __reduce__(self) -> tuple[type[Atom], tuple[AtomKind, tuple[Index, ...], str, Function | None]]:
        return Atom, (self.kind, self.args, self.key if self.kind == "sym" else "", self.function)

    def __repr__(self) -> str:
        return self.key


def _distinct(names: list[tuple[str, ...]]) -> tuple[str, ...]:
    return names[0] if len(names) == 1 else tuple(dict.fromkeys(chain.from_iterable(names)))


class _Interned(dict[object, "ref[Atom]"]):
    """Atoms, symbols by their names, others by what they are made of. Dead ones are looked for when there are twice as
    many as the last time: being told of each death takes longer."""

    most = 1024

    def purge(self) -> None:
        for key in [key for key, atom in self.items() if atom() is None]:
            del self[key]
        self.most = max(1024, 2 * len(self))


_ATOMS = _Interned()
_INTERNING = Lock()

Terms: TypeAlias = tuple[tuple[Atom, int], ...]


class Index:
    """See the module. Immutable; compared by canonical form."""

    __slots__ = ("_hash", "_key", "_symbols", "const", "terms")

    def __init__(self, const: int, terms: Terms = ()) -> None:
        self.const = const
        self.terms = terms
        self._key: str | None = None
        self._hash: int | None = None
        self._symbols: tuple[str, ...] | None = None

    @property
    def key(self) -> str:
        """The canonical text."""
        if self._key is None:
            self._key = "+".join([*[f"{c}*{a.key}" for a, c in self.terms], str(self.const)])
        return self._key

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Index) and self.const == other.const and self.terms == other.terms)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.const, self.terms))
        return self._hash

    def __repr__(self) -> str:
        return self.key

    @property
    def is_const(self) -> bool:
        """True if no symbol is left."""
        return not self.terms

    @property
    def called(self) -> bool:
        """True if a part of it is a function."""
        return any(a.called for a, _ in self.terms)

    @property
    def is_short(self) -> bool:
        """True if it is no more than a constant, or one added to a symbol or its negative: it needs no name."""
        return not self.terms or (
            len(self.terms) == 1 and self.terms[0][0].kind == "sym" and abs(self.terms[0][1]) == 1
        )

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.const + other, self.terms) if other else self
        if not other.terms:
            return Index(self.const + other.const, self.terms)
        if not self.terms:
            return Index(self.const + other.const, other.terms)
        return Index(self.const + other.const, _sum(self.terms, other.terms, 1))

    def __sub__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return self + -other
        if not other.terms:
            return Index(self.const - other.const, self.terms)
        return Index(self.const - other.const, _sum(self.terms, other.terms, -1))

    def scaled(self, k: int) -> Index:
        """k times this."""
        if k == 1:
            return self
        terms = self.terms
        if len(terms) == 1:
            return Index(self.const * k, ((terms[0][0], terms[0][1] * k),) if k else ())
        return Index(self.const * k, tuple([(a, c * k) for a, c in terms]) if k else ())

    def coefficient(self, name: str) -> int:
        """The coefficient of symbol `name` in the linear form (not inside atoms)."""
        for a, c in self.terms:
            if a.kind == "sym" and a.key == name:
                return c
        return 0

    def symbols(self) -> tuple[str, ...]:
        """Every symbol, those inside atoms too."""
        if self._symbols is None:
            self._symbols = _distinct([a.symbols for a, _ in self.terms])
        return self._symbols

    def mentions(self, name: str) -> bool:
        """True if symbol `name` occurs anywhere."""
        return name in self.symbols()

    def value(self, env: Mapping[str, int] | Callable[[str], int]) -> int:
        """The number, given the symbols'."""
        look = env if callable(env) else env.__getitem__
        return self.const + sum(c * _atom_value(a, look) for a, c in self.terms)

    def where(self, known: Mapping[str, int]) -> Index:
        """The index with numbers in place of the symbols `known`."""
        total = Index(self.const)
        for a, c in self.terms:
            total = total + _atom_where(a, known).scaled(c)
        return total


def _atom_where(a: Atom, known: Mapping[str, int]) -> Index:
    if a.kind == "sym":
        return const(known[a.key]) if a.key in known else a.index
    return remade(a, [x.where(known) for x in a.args])


def remade(a: Atom, args: Sequence[Index]) -> Index:
    """An atom that is no symbol, of other arguments."""
    if a.function is not None:
        return call(a.function, args)
    build = {"min": minimum, "max": maximum, "div": divide, "mod": modulo, "mul": multiply}[a.kind]
    return reduce(build, args)


def _atom_value(a: Atom, look: Callable[[str], int]) -> int:
    if a.kind == "sym":
        return look(a.key)
    args = [x.value(look) for x in a.args]
    if a.function is not None:
        return a.function(args)
    match a.kind:
        case "min":
            return min(args)
        case "max":
            return max(args)
        case "div":
            return floor_div(args[0], args[1])
        case "mod":
            return remainder(args[0], args[1])
    return args[0] * args[1]


def floor_div(a: int, b: int) -> int:
    """Division of the pipeline language: the remainder is never negative, and x // 0 is 0."""
    return 0 if b == 0 else (a // b if b > 0 else -(a // -b))


def remainder(a: int, b: int) -> int:
    """The remainder of `floor_div`: 0 <= r < |b|, and x % 0 is 0."""
    return 0 if b == 0 else a % abs(b)


def _sum(a: Terms, b: Terms, k: int) -> Terms:
    """The terms of `a` and `k` (1 or -1) times those of `b`; all are in the order of their atoms' keys."""
    if a == b:
        return () if k == -1 else tuple([(x, c * (1 + k)) for x, c in a])
    out: list[tuple[Atom, int]] = []
    n, most = 0, len(b)
    for term in a:
        x, c = term
        while n < most and b[n][0].key < x.key:
            y, d = b[n]
            out.append((y, k * d))
            n += 1
        if n < most and b[n][0] is x:
            c += k * b[n][1]
            n += 1
            if c:
                out.append((x, c))
        else:
            out.append(term)
    if n < most:
        out += b[n:] if k == 1 else [(y, -d) for y, d in b[n:]]
    return tuple(out)


_SMALL = tuple([Index(n) for n in range(-16, 257)])


def const(n: int) -> Index:
    """The constant n."""
    return _SMALL[n + 16] if -16 <= n <= 256 else Index(n)


def sym(name: str) -> Index:
    """The symbol of that name."""
    reference = _ATOMS.get(name)
    found = None if reference is None else reference()
    return (Atom("sym", (), name) if found is None else found).index


def _atom(kind: AtomKind, *args: Index) -> Index:
    return Atom(kind, args).index


@lru_cache(maxsize=4096)
def _extreme(kind: Literal["min", "max"], a: Index, b: Index) -> Index:
    """The least or the greatest of both. Kept, since the same few bounds are compared over and over."""
    pick = min if kind == "min" else max
    flat: dict[Terms, Index] = {}
    for x in (a, b):
        inner = x.terms[0][0] if len(x.terms) == 1 and x.terms[0][1] == 1 else None
        parts = [arg + x.const for arg in inner.args] if inner is not None and inner.kind == kind else [x]
        for part in parts:
            other = flat.get(part.terms)
            flat[part.terms] = part if other is None else Index(pick(other.const, part.const), part.terms)
    found = list(flat.values())
    number = flat.get(())
    if number is not None and len(found) > 1:
        found = [x for x in found if x is not number and not _beyond(x, kind, number.const)]
        if not any(_beyond(x, "min" if kind == "max" else "max", number.const) for x in found):
            found.append(number)
    if len(found) > 1 and len([1 for terms in flat if len(terms) == 1 and terms[0][0].kind in _MONOTONE]) > 1:
        found = _without(found, _at_most if kind == "max" else _at_least)
    return found[0] if len(found) == 1 else _atom(kind, *sorted(found, key=lambda x: x.key))


def _beyond(x: Index, kind: Literal["min", "max"], end: int) -> bool:
    """True if `x` is never more than `end`, for a `max`, or never less, for a `min`, as the numbers in it say."""
    if kind == "max":
        most = _furthest(x, "max")
        return most is not None and most <= end
    least = _furthest(x, "min")
    return least is not None and least >= end


def _furthest(x: Index, kind: Literal["min", "max"]) -> int | None:
    """The least or the most that `x` may be, whatever its symbols are; None where no number says so."""
    total = x.const
    for atom, c in x.terms:
        end = _furthest_of(atom, kind if c > 0 else ("min" if kind == "max" else "max"))
        if end is None:
            return None
        total += c * end
    return total


def _furthest_of(atom: Atom, kind: Literal["min", "max"]) -> int | None:
    if atom.kind == "mod" and atom.args[1].is_const:
        return 0 if kind == "min" else atom.args[1].const - 1
    if atom.kind not in ("min", "max"):
        return None
    ends = [_furthest(arg, kind) for arg in atom.args]
    known = [end for end in ends if end is not None]
    if not known or (atom.kind == kind and len(known) < len(ends)):
        return None
    return min(known) if atom.kind == "min" else max(known)


def _without(several: list[Index], beaten: Callable[[Index, Index], bool]) -> list[Index]:
    """The indices that no other one beats."""
    kept: list[Index] = []
    for x in several:
        if not any(beaten(x, y) for y in kept):
            kept = [*(y for y in kept if not beaten(y, x)), x]
    return kept


def _at_least(x: Index, y: Index) -> bool:
    return _at_most(y, x)


def _at_most(x: Index, y: Index) -> bool:
    """True where x <= y whatever the symbols are: x is the same monotone function of no more than y is."""
    if x.terms == y.terms:
        return x.const <= y.const
    if len(x.terms) != 1 or len(y.terms) != 1:
        return False
    (a, c), (b, d) = x.terms[0], y.terms[0]
    if a.kind != b.kind or a.kind not in _MONOTONE or c != 1 or d != 1:
        return False
    if a.kind == "div":
        (p, k), (q, other) = a.args, b.args
        return k.is_const and k == other and k.const > 0 and _at_most(p + k.const * x.const, q + k.const * y.const)
    return x.const <= y.const and len(a.args) == len(b.args) and all(map(_at_most, a.args, b.args))


_MONOTONE = ("min", "max", "div")


def minimum(a: Index, b: Index) -> Index:
    """The smaller; decided at once where the difference is a constant."""
    return _extreme("min", a, b)


def maximum(a: Index, b: Index) -> Index:
    """The larger; decided at once where the difference is a constant."""
    return _extreme("max", a, b)


def divide(a: Index, b: Index | int) -> Index:
    """a // b by the rule of `floor_div`; exact terms are taken out of the division."""
    divisor = b if isinstance(b, int) else (b.const if b.is_const else None)
    if divisor is None:
        assert isinstance(b, Index)
        return _atom("div", a, b)
    if divisor == 0:
        return const(0)
    if divisor < 0:
        return divide(a, -divisor).scaled(-1)
    if divisor == 1:
        return a
    if a.is_const:
        return const(a.const // divisor)
    whole = tuple((x, c // divisor) for x, c in a.terms if c % divisor == 0)
    rest = tuple((x, c) for x, c in a.terms if c % divisor)
    carry, low = divmod(a.const, divisor)
    if not rest:
        return Index(carry, whole)
    return Index(carry, whole) + _atom("div", Index(low, rest), const(divisor))


def modulo(a: Index, b: Index | int) -> Index:
    """a % b, never negative."""
    divisor = b if isinstance(b, int) else (b.const if b.is_const else None)
    if divisor is None:
        assert isinstance(b, Index)
        return _atom("mod", a, b)
    divisor = abs(divisor)
    if divisor <= 1:
        return const(0)
    rest = Index(a.const % divisor, tuple((x, c) for x, c in a.terms if c % divisor))
    return const(rest.const) if rest.is_const else _atom("mod", rest, const(divisor))


def is_multiple(a: Index, of: int) -> bool:
    """True if `a` is known to be a multiple of `of`, a positive number, whatever its names are."""
    return a.const % of == 0 and all(_times_is_multiple(atom, c, of) for atom, c in a.terms)


def _times_is_multiple(atom: Atom, times: int, of: int) -> bool:
    missing = of // gcd(times, of)
    if missing == 1 or atom.kind == "mul":
        return missing == 1 or any(is_multiple(arg, missing) for arg in atom.args)
    return atom.kind in ("mod", "min", "max") and all(is_multiple(arg, missing) for arg in atom.args)


def linear_bound(x: Index, name: str) -> Index:
    """An index without quotients and remainders of symbol `name` by numbers that is not negative only where `x` is not:
    a multiple of the least that `x` may be, whatever these remainders are."""
    of = [a for a, _ in x.terms if a.kind in ("div", "mod") and a.args[1].is_const and a.index.mentions(name)]
    if not of:
        return x
    atom = min(of, key=lambda a: (a.kind, a.key))  # quotients first: what is left of them are remainders
    c, inner, k = next(c for a, c in x.terms if a is atom), atom.args[0], atom.args[1].const
    x = x - atom.index.scaled(c)
    if atom.kind == "div":  # times k it is its operand but for the remainder
        x = x.scaled(k) + (inner - modulo(inner, k)).scaled(c)
        return linear_bound(divide(x, gcd(*(c for _, c in x.terms)) or 1), name)
    apart = gcd(k, *(c for _, c in inner.terms))
    least = inner.const % apart
    return linear_bound(x + c * (least if c > 0 else least + k - apart), name)


def multiply(a: Index, b: Index) -> Index:
    """a * b."""
    if a.is_const:
        return b.scaled(a.const)
    if b.is_const:
        return a.scaled(b.const)
    return _atom("mul", a, b) if a.key <= b.key else _atom("mul", b, a)


def call(function: Function, args: Sequence[Index]) -> Index:
    """`function` of `args`."""
    if all(a.is_const for a in args):
        return const(function([a.const for a in args]))
    return Atom("call", tuple(args), function=function).index


Change: TypeAlias = tuple[int, int] | None
Changes: TypeAlias = dict[str, Change]


def change(value: Index, var: str, named: Mapping[str, Index], known: Changes) -> Change:
    """Bounds of value(var + 1) - value(var), whatever `var` and the other symbols are; None where they are not known.
    `named` has the values of symbols that stand for others, `known` their changes as they are found."""
    least = most = 0
    for atom, c in value.terms:
        found = _change_of(atom, var, named, known)
        if found is None:
            return None
        least, most = least + c * found[c < 0], most + c * found[c > 0]
    return least, most


def _change_of(atom: Atom, var: str, named: Mapping[str, Index], known: Changes) -> Change:
    if atom.kind == "sym":
        if atom.key == var:
            return 1, 1
        if atom.key not in known:
            known[atom.key] = change(named[atom.key], var, named, known) if atom.key in named else (0, 0)
        return known[atom.key]
    args = [found for a in atom.args if (found := change(a, var, named, known)) is not None]
    if len(args) < len(atom.args):
        return None
    if all(a == (0, 0) for a in args):
        return 0, 0
    if atom.kind in ("min", "max"):
        return min(least for least, _ in args), max(most for _, most in args)
    if atom.kind == "div" and atom.args[1].is_const and atom.args[1].const > 0:
        (least, most), k = args[0], atom.args[1].const
        return least // k, -(-most // k)
    return None
