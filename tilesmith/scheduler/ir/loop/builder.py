"""The builder of statements in nested scopes. A value is computed once, in the outermost scope where its operands
exist: common subexpressions and loop invariants need no pass of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from ctypes import c_float
from dataclasses import dataclass, field

from tilesmith.platforms.base import VectorUnit
from tilesmith.platforms.core import Core
from tilesmith.scheduler.ir.index import Atom, Index, modulo, remade, sym
from tilesmith.scheduler.ir.loop.ops import Operation, ToIndex
from tilesmith.scheduler.ir.loop.program import Allocate, Define, Let, RowPointer, Scratch, Statement
from tilesmith.scheduler.ir.loop.traversal import defined, operands_of
from tilesmith.scheduler.ir.loop.values import Buffer, Ends, Operand, Pointer, Value
from tilesmith.scheduler.ir.pipeline.expressions import Expr
from tilesmith.scheduler.ir.pipeline.types import INT32, ScalarType

_NOTHING = object()


class Misfit(Exception):
    """Raised where what is being built does not fit. It may fit when built in another way: see `Builder.attempt`."""


class TooWide(Misfit):
    """A value of the vector is wider than compilers handle well, or no register has two of its elements: fewer lanes
    are needed, or none."""


@dataclass(slots=True)
class Scope:
    """The statements of a block, and the values computed there by what they are. A `conditional` one may not run. In
    it indices divided by numbers have those `remainders`. Vectors in it rely on what they note in `given`: where one of
    these is negative scalars run; None: nothing is granted. Where they may be `narrow` that includes that offsets have
    32 bits. One that runs `seldom` is to be short. `loops`: it is the body of a loop."""

    conditional: bool = False
    seldom: bool = False
    remainders: Mapping[tuple[Index, int], int] = field(default_factory=dict)
    given: list[Index] | None = None
    narrow: bool = True
    loops: bool = False
    statements: list[Statement] = field(default_factory=list)
    table: dict[object, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mark:
    """A point to go back to."""

    depth: int
    sizes: tuple[tuple[int, int], ...]


class Builder:
    """See the module."""

    def __init__(self, vectors: VectorUnit, line_bytes: int, core: Core, strict: bool = False) -> None:
        self.strict = strict  # whether floats are computed in the order that is written
        self.scopes: list[Scope] = [Scope()]
        self.floor = 0  # depth of the function that is open: nothing leaves it
        self.vectors = vectors
        self.line_bytes = line_bytes
        self.core = core
        self.depths: dict[str, int] = {}
        self.data: set[str] = set()  # indices that were values: what an image or a stage holds
        self.ranges: dict[str, Ends] = {}  # of loops' variables: the first value and the last
        self.steps: dict[str, int] = {}  # of those that move by more than one
        self.values: dict[str, Index] = {}  # of indices that have a name
        self.buffers: dict[Pointer, Buffer] = {}  # that rows are of
        self.variables: dict[int, tuple[Expr, tuple[str, ...] | None]] = {}  # that make indices, by these' identity
        self.read_variables: dict[int, tuple[Expr, tuple[str, ...]]] = {}  # of all values, by identity
        self.reductions: dict[int, tuple[Expr, int]] = {}  # by identity, each with a number that equal ones have
        self.equal_reductions: dict[object, int] = {}
        self.rounded: dict[str, Index] = {}  # functions in indices, by the symbols that stand for them
        self.call: Callable[[Builder, Atom], Value] | None = None  # the value of such a function
        self._numbers: dict[object, int] = {}
        self._counts: dict[str, int] = {}
        self._bases: dict[str, str] = {}  # of names, by hint

    # names ------------------------------------------------------------

    def fresh(self, hint: str) -> str:
        """A C name made of `hint` that nothing else has. It always ends in a number, so it collides with no keyword and
        no library function, and does not begin as the macros of <math.h> do that end in one, such as M_PI_2."""
        base = self._bases.get(hint) or self._bases.setdefault(hint, _base(hint))
        n = self._counts.get(base, 0)
        self._counts[base] = n + 1
        return f"{base}_{n}"

    def number(self, key: object) -> int:
        """The number that stands for `key` in the program."""
        return self._numbers.setdefault(key, len(self._numbers))

    # scopes ------------------------------------------------------------

    @property
    def depth(self) -> int:
        """The depth of the scope that is open."""
        return len(self.scopes) - 1

    @property
    def guard(self) -> int:
        """The depth that loads stay inside: further out their place may not exist."""
        return max((n for n, s in enumerate(self.scopes) if s.conditional), default=0)

    def emit(self, statement: Statement) -> None:
        """Appends to the open scope."""
        self.scopes[-1].statements.append(statement)

    @property
    def remainders(self) -> Mapping[tuple[Index, int], int]:
        """The remainders that indices have in the open scope."""
        return self.scopes[-1].remainders

    @property
    def given(self) -> list[Index] | None:
        """Conditions that vectors in the open scope rely on."""
        return self.scopes[-1].given

    def grant(self, nonnegative: Index) -> bool:
        """True if vectors in the open scope may rely on an index not being negative, which is noted where it is not
        known: nothing is granted of what is not known ahead of them."""
        if nonnegative.is_const:
            return nonnegative.const >= 0
        given = self.given
        if given is None:
            return False
        granting = next(n for n, s in enumerate(self.scopes) if s.given is given)
        if self.depth_of(nonnegative) >= granting:
            return False
        if nonnegative not in given:
            given.append(nonnegative)
        return True

    @property
    def narrow(self) -> bool:
        """True if vectors in the open scope may rely on offsets that have 32 bits."""
        return self.scopes[-1].narrow

    @property
    def seldom(self) -> bool:
        """True if the open scope runs seldom."""
        return self.scopes[-1].seldom

    @contextmanager
    def scope(
        self,
        conditional: bool = False,
        given: list[Index] | None = None,
        remainders: Mapping[tuple[Index, int], int] | None = None,
        seldom: bool = False,
        narrow: bool | None = None,
    ) -> Iterator[list[Statement]]:
        """A nested block; the caller wraps the list it gets into a loop when it is done. What is granted around it is
        granted in it, and the remainders that hold there hold here, but for those that are said anew."""
        around = self.scopes[-1]
        held = around.remainders if remainders is None else {**around.remainders, **remainders}
        granted = around.given if given is None else given
        narrowed = around.narrow if narrow is None else narrow
        opened = Scope(conditional, seldom or around.seldom, held, granted, narrowed)
        self.scopes.append(opened)
        try:
            yield opened.statements
        finally:
            self.scopes.pop()

    def condition(
        self, remainders: Mapping[tuple[Index, int], int] | None = None, seldom: bool = False
    ) -> AbstractContextManager[list[Statement]]:
        """The scope of a block that runs only where a condition holds, such as that an index has a remainder: no load
        moves out of it."""
        return self.scope(conditional=True, remainders=remainders, seldom=seldom)

    @contextmanager
    def function(self, names: Iterable[str]) -> Iterator[list[Statement]]:
        """The block of a function with these names: whatever is computed in it is computed there, as it may be called
        with anything."""
        outside = self.floor
        with self.scope(conditional=True) as body:
            self.floor = self.depth
            for name in names:
                self.declare(name)
            try:
                yield body
            finally:
                self.floor = outside

    @contextmanager
    def outside(self, depth: int) -> Iterator[None]:
        """The open scope is the one at `depth`: what is built there runs before the blocks that are open inside of
        it, and whether or not these run."""
        inside = self.scopes[depth + 1 :]
        del self.scopes[depth + 1 :]
        try:
            yield
        finally:
            self.scopes += inside

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """A context whose statements are dropped where a Misfit ends it."""
        before = self._mark()
        try:
            yield
        except Misfit:
            self._rollback(before)
            raise

    @contextmanager
    def trial(self) -> Iterator[None]:
        """A context whose statements are always dropped."""
        before = self._mark()
        try:
            yield
        finally:
            self._rollback(before)

    def _mark(self) -> Mark:
        return Mark(self.depth, tuple((len(s.statements), len(s.table)) for s in self.scopes))

    def _rollback(self, mark: Mark) -> None:
        del self.scopes[mark.depth + 1 :]
        for scope, (statements, entries) in zip(self.scopes, mark.sizes, strict=True):
            del scope.statements[statements:]
            while len(scope.table) > entries:
                scope.table.popitem()

    # values ------------------------------------------------------------

    def register_lanes(self, type_: ScalarType) -> int:
        """The number of elements of a type in a register."""
        return self.vectors.register_bytes // type_.bytes

    def declare(self, name: str, depth: int | None = None, ends: Ends | None = None, step: int = 1) -> Index:
        """The symbol `name`, defined in the open scope (or at `depth`); of a loop's variable `ends` are the first value
        and the last, and `step` is from one iteration to the next."""
        self.depths[name] = self.depth if depth is None else depth
        if ends is not None:
            self.ranges[name] = ends
            self.scopes[self.depths[name]].loops = True
        if step != 1:
            self.steps[name] = step
        return sym(name)

    def depth_of(self, operand: Operand | str) -> int:
        """The outermost depth at which `operand` exists."""
        depths = self.depths
        if isinstance(operand, Value):
            return depths.get(operand.name, 0)
        if isinstance(operand, Index):
            deepest = 0
            for atom, _ in operand.terms:
                for name in atom.symbols:
                    depth = depths.get(name, 0)
                    if depth > deepest:
                        deepest = depth
            return deepest
        if isinstance(operand, str):
            return depths.get(operand, 0)
        inside = 0 if operand.vector is None else depths.get(operand.vector.name, 0)
        return max(inside, self.depth_of(operand.base))

    def around(self, depth: int) -> int | None:
        """The depth of the body of the innermost loop around the scope at `depth`; None where there is none."""
        return next((n for n in range(min(depth, len(self.scopes)) - 1, -1, -1) if self.scopes[n].loops), None)

    def remember(self, depth: int, key: object, make: Callable[[], object]) -> object:
        """The value that `make` returns, made once for `key` in the scope at `depth`."""
        table = self.scopes[depth].table
        found = table.get(key, _NOTHING)
        if found is _NOTHING:
            found = table[key] = make()
        return found

    def is_open(self, scope: Scope, depth: int) -> bool:
        """True if `scope` is the one that is open at `depth`."""
        scopes = self.scopes
        return depth < len(scopes) and scopes[depth] is scope

    def recall(self, key: object) -> object | None:
        """The value that some open scope remembers for `key`."""
        for scope in reversed(self.scopes):
            if key in scope.table:
                return scope.table[key]
        return None

    def let(self, value: Index, hint: str) -> Index:
        """`value` under a name, unless it is simple enough to be written out wherever it is used."""
        if value.is_short:
            return value
        depth = max(self.depth_of(value), self.floor)

        def make() -> Index:
            name = self.fresh(hint)
            self.values[name] = found = self.plain(value)
            self.scopes[depth].statements.append(Let(name, found))
            return self.declare(name, depth)

        found = self.remember(depth, ("let", value), make)
        assert isinstance(found, Index)
        return found

    def plain(self, x: Index) -> Index:
        """`x` with symbols in place of functions, which are computed as values."""
        if not x.called:
            return x
        total = Index(x.const)
        for a, c in x.terms:
            part = a.index
            if a.kind == "call":
                assert self.call is not None
                name = self.define(ToIndex(self.call(self, a)), INT32, hint="place").name
                self.rounded[name] = part
                part = sym(name)
            elif a.called:
                part = remade(a, [self.plain(arg) for arg in a.args])
            total = total + part.scaled(c)
        return total

    def define(
        self,
        op: Operation,
        type_: ScalarType,
        lanes: int = 1,
        hint: str = "t",
        mask_bits: int = 0,
        pinned: bool = False,
        at_least: int = 0,
    ) -> Value:
        """The value of `op`; the same value for the same question, in a scope no further out than `at_least`.
        `pinned` values stay in the open scope and are not shared (loads from memory that is being written). Raises
        TooWide."""
        size = max(type_.bytes, mask_bits // 8)
        if lanes > 1 and (lanes * size > self.vectors.widest_bytes or 2 * size > self.vectors.register_bytes):
            raise TooWide
        if pinned:
            return self._defined(op, Value(type_, lanes, self.fresh(hint), None, mask_bits), self.depth)
        depth = self._depth_of_operands(op, at_least)
        key, table = (op, type_, lanes), self.scopes[depth].table
        found = table.get(key)
        if found is None:
            found = table[key] = self._defined(op, Value(type_, lanes, self.fresh(hint), None, mask_bits), depth)
        assert isinstance(found, Value)
        return found

    def defined(self, op: Operation, type_: ScalarType, lanes: int = 1) -> Value | None:
        """The value of `op` if it is at hand."""
        found = self.scopes[self._depth_of_operands(op)].table.get((op, type_, lanes))
        assert found is None or isinstance(found, Value)
        return found

    def _depth_of_operands(self, op: Operation, at_least: int = 0) -> int:
        """The depth of the scope in which all operands are, or one further in."""
        depth, depths = max(at_least, self.floor), self.depths
        for x in operands_of(op):
            inside = depths.get(x.name, 0) if isinstance(x, Value) else self.depth_of(x)
            if inside > depth:
                depth = inside
        return depth

    def _defined(self, op: Operation, result: Value, depth: int) -> Value:
        self.depths[result.name] = depth
        self.scopes[depth].statements.append(Define(result, op))
        return result

    def replay(self, statement: Statement) -> None:
        """Appends a statement that another builder has made, which has no blocks: what it names is found from here
        on."""
        if isinstance(statement, Let):
            self.values[statement.name] = statement.value
            self.remember(self.depth, ("let", statement.value), lambda: sym(statement.name))
        for name in defined(statement):
            if not isinstance(statement, Scratch | Allocate):  # strides and memory of the call are known everywhere
                self.depths[name] = self.depth
        self.emit(statement)

    def reserve(self, names: Iterable[str]) -> None:
        """No fresh name is one of these."""
        for name in names:
            base, _, n = name.rpartition("_")
            if n.isdigit():
                self._counts[base] = max(self._counts.get(base, 0), int(n) + 1)

    def row(self, buffer: Buffer, offset: Index) -> Pointer:
        """The pointer to the row of `buffer` at `offset` elements."""
        depth = max(self.depth_of(offset), self.depth_of(buffer.pointer), self.floor)
        if offset.is_const and offset.const == 0:
            self.buffers[buffer.pointer] = buffer
            return buffer.pointer

        def make() -> Pointer:
            result = Pointer(self.fresh(buffer.stage))
            self.depths[result], self.buffers[result] = depth, buffer
            self.scopes[depth].statements.append(RowPointer(result, buffer, offset))
            return result

        found = self.remember(depth, ("row", buffer.pointer, offset), make)
        assert isinstance(found, Pointer)
        return found

    def remainder(self, a: Index, divisor: Index | int) -> Index:
        """a % divisor: a number where it holds in the open scope."""
        result, remainders = modulo(a, divisor), self.remainders
        if remainders and len(result.terms) == 1 and result.terms[0][0].kind == "mod":
            inner, by = result.terms[0][0].args
            known = remainders.get((inner - inner.const, by.const)) if by.is_const else None
            if known is not None:
                return Index((known + inner.const) % by.const)
        return result

    def as_index(self, value: Value) -> Index:
        """A scalar integer value as an index."""
        if value.literal is not None:
            return Index(int(value.literal))
        name = self.define(ToIndex(value), INT32, hint="i").name
        self.data.add(name)
        return sym(name)


def _base(hint: str) -> str:
    base = re.sub(r"[^A-Za-z0-9_]", "_", hint).strip("_") or "v"
    return "v" + base if base[0].isdigit() or base.startswith("M_") else base


def literal(value: int | float | bool, type_: ScalarType) -> Value:
    """A literal of that type, rounded to it."""
    if type_.is_float:
        return Value(type_, 1, "", c_float(value).value if type_.bits == 32 else float(value))
    return Value(type_, 1, "", bool(value) if type_.kind == "bool" else int(value))
