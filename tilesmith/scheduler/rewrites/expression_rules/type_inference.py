"""Type inference of rules: which pattern variables have one type, and which types they may have.

Operands of one operation have one type, as does its result; the type checker of the language has the last word on each
choice that is left.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import product
from typing import Final

from tilesmith.scheduler.ir.pipeline.types import BOOL, TYPES, ScalarType

ALL: Final = frozenset(TYPES.values())
NUMBERS: Final = ALL - {BOOL}
FLOATS: Final = frozenset(t for t in ALL if t.is_float)
INTEGERS: Final = frozenset(t for t in ALL if t.is_integer)
_OF_FLOATS = frozenset((
    "sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "tanh", "floor", "ceil", "round", "trunc",
    "pow", "atan2",
))  # fmt: skip
_OF_INTEGERS = frozenset((
    "sat_add", "sat_sub", "halving_add", "rounding_halving_add", "popcount", "count_leading_zeros",
    "count_trailing_zeros",
))  # fmt: skip
_BY_FIRST = {"rounding_shift_right": 1, "mul_shift_right": 2, "lerp": 2}
"""Functions whose result has the type of so many arguments; the last one has a type of its own."""


class TypeClasses:
    """Classes of nodes and variables that have one type each, and the types that this may be."""

    def __init__(self, type_variables: Iterable[str]) -> None:
        self.type_variables = frozenset(type_variables)
        self.parent: dict[Hashable, Hashable] = {}
        self.allowed: dict[Hashable, frozenset[ScalarType]] = {}

    def add(self, match: ast.expr, result: ast.expr) -> None:
        """The two sides of a rule, which are of one type."""
        for tree in (match, result):
            for node in ast.walk(tree):
                if isinstance(node, ast.expr):
                    self._node(node)
        self._link(match, result)

    def typings(self, names: Iterable[str]) -> Iterator[Mapping[str, ScalarType]]:
        """Every choice of types for variables and type variables of these names."""
        names = tuple(names)
        roots = tuple(dict.fromkeys(self._find(n) for n in names))
        choices = [sorted(self.allowed.get(root, ALL), key=_order) for root in roots]
        for chosen in product(*choices):
            types = dict(zip(roots, chosen, strict=True))
            yield {name: types[self._find(name)] for name in names}

    def classes(self, names: Iterable[str]) -> int:
        """The number of types that can be chosen."""
        return len({self._find(n) for n in names})

    def _find(self, key: Hashable) -> Hashable:
        while key in self.parent:
            key = self.parent[key]
        return key

    def _link(self, *nodes: ast.expr | str) -> None:
        first, *others = (self._find(self._key(n)) for n in nodes)
        for other in others:
            if other != first:
                self.parent[other] = first
                self.allowed[first] = self.allowed.get(first, ALL) & self.allowed.get(other, ALL)

    def _allow(self, types: frozenset[ScalarType], *nodes: ast.expr) -> None:
        for node in nodes:
            root = self._find(self._key(node))
            self.allowed[root] = self.allowed.get(root, ALL) & types

    def _key(self, node: ast.expr | str) -> Hashable:
        if isinstance(node, str):
            return node
        return node.id if isinstance(node, ast.Name) else id(node)

    def _node(self, node: ast.expr) -> None:
        match node:
            case ast.Constant():
                number = FLOATS if isinstance(node.value, float) else NUMBERS
                self._allow(frozenset({BOOL}) if isinstance(node.value, bool) else number, node)
            case ast.BinOp():
                self._binary(node)
            case ast.UnaryOp(op=ast.Not()):
                self._allow(frozenset({BOOL}), node, node.operand)
            case ast.UnaryOp():
                self._link(node, node.operand)
                self._allow(ALL - FLOATS if isinstance(node.op, ast.Invert) else NUMBERS, node)
            case ast.Compare():
                self._link(node.left, *node.comparators)
                self._allow(frozenset({BOOL}), node)
            case ast.BoolOp():
                self._allow(frozenset({BOOL}), node, *node.values)
            case ast.IfExp():
                self._link(node, node.body, node.orelse)
                self._allow(frozenset({BOOL}), node.test)
            case ast.Call(func=ast.Name(id=name)):
                self._call(node, name)

    def _binary(self, node: ast.BinOp) -> None:
        match node.op:
            case ast.LShift() | ast.RShift():
                self._link(node, node.left)
                self._allow(INTEGERS, node)
                if not isinstance(node.right, ast.Constant):
                    self._allow(INTEGERS, node.right)
            case ast.Pow():
                self._link(node, node.left)
                self._allow(NUMBERS, node)
                if not isinstance(node.right, ast.Constant):
                    self._link(node, node.right)
            case ast.BitAnd() | ast.BitOr() | ast.BitXor():
                self._link(node, node.left, node.right)
                self._allow(ALL - FLOATS, node)
            case op:
                self._link(node, node.left, node.right)
                self._allow(FLOATS if isinstance(op, ast.Div) else NUMBERS, node)

    def _call(self, node: ast.Call, name: str) -> None:
        converted = name.removeprefix("sat_")
        if converted in self.type_variables:
            self._link(converted, node)
            if name != converted:
                self._allow(INTEGERS, node)
        elif converted in TYPES:
            self._allow(frozenset({TYPES[converted]}), node)
        elif name.startswith("as_"):
            to = TYPES[name.removeprefix("as_")]
            self._allow(frozenset({to}), node)
            self._allow(frozenset(t for t in NUMBERS if t.bits == to.bits), *node.args)
        elif name in ("select", "mux"):
            self._link(node, *node.args[1:])
            self._allow(frozenset({BOOL}) if name == "select" else INTEGERS, *node.args[:1])
        elif name in _BY_FIRST:
            self._link(node, *node.args[: _BY_FIRST[name]])
        elif name != "random":
            self._link(node, *node.args)
            self._allow(FLOATS if name in _OF_FLOATS else INTEGERS if name in _OF_INTEGERS else NUMBERS, node)


def _order(type: ScalarType) -> tuple[str, int]:
    return type.kind, type.bits
