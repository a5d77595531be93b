"""Text of the loop IR: programs, blocks, statements and operations, as `scheduler.ir.loop.syntax` has them. The parser
reads it back to an equal program."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from tilesmith.scheduler.errors import NoBackend
from tilesmith.scheduler.ir.index import Atom, Index
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.computations import Compute, FusedRow
from tilesmith.scheduler.ir.loop.program import (
    Allocate,
    Body,
    CopyOut,
    Define,
    Free,
    Function,
    Invoke,
    Program,
    RowPointer,
    Scratch,
    Statement,
    Stores,
)
from tilesmith.scheduler.ir.loop.syntax import FORMATS, MACHINE, PARTS, UNARY, Field, Literal, Part, taken_apart
from tilesmith.scheduler.ir.loop.traversal import walk
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, Value
from tilesmith.scheduler.ir.pipeline.types import ScalarType

INDENT = "  "
T = TypeVar("T")


def print_program(p: Program) -> str:
    """The text of a whole program, its buffers declared at its head."""
    lines = [
        f"doc {_text(p.doc)}",
        f"method {_text(p.method)}" + (" strict" if p.strict else ""),
        " ".join([f"machine {_text(p.architecture)}", *(f"{name} {getattr(p, name)}" for name in MACHINE)]),
        *map(_formatted, p.arguments),
        *map(_formatted, p.tables),
        *map(_formatted, p.params),
        *(f"derived {_formatted(d)}" for d in p.derived),
        *map(_formatted, buffers_of(p)),
        *(f"estimate {_text(name)} {count}" for name, count in p.estimates),
    ]
    for name, block in (("derivation", p.derivation), ("bounds", p.bounds)):
        lines += [f"{name} {{", *_indented(print_body(block)), "}"]
    lines += [f"required {_text(name)} ({', '.join(map(_range, box))})" for name, box in p.required]
    lines += ["body {", *_indented(print_body(p.body)), "}"]
    return "\n".join([f"program {_text(p.name)} {{", *_indented("\n".join(lines)), "}", ""])


def print_body(body: Body) -> str:
    """The text of a block, a statement a line."""
    return "\n".join(map(_formatted, body))


def print_statement(s: Statement) -> str:
    """The text of a statement; of those that have blocks they are the lines after the first."""
    return _formatted(s)


def buffers_of(p: Program) -> tuple[Buffer, ...]:
    """Every buffer of a program once: those of its arguments, and others in the order in which they are met."""
    found = {b.pointer: b for b in p.buffers}
    for s in walk(p.body):
        for b in _buffers(s):
            found.setdefault(b.pointer, b)
    return tuple(found.values())


def _buffers(s: Statement) -> Iterable[Buffer]:
    match s:
        case RowPointer() | Free():
            return (s.buffer,)
        case Scratch():
            return (m.buffer for m in s.buffers)
        case Allocate():
            return (s.memory.buffer,) if s.place is None else (s.memory.buffer, s.place)
        case CopyOut():
            return (s.output, s.source)
        case Compute() | FusedRow():
            return (*s.buffers, *s.reads.buffers)
        case Function():
            return (*s.buffers, *(m.buffer for layout in s.scratch for m in layout.buffers))
        case Invoke():
            return s.buffers
        case _:
            return (s.buffer,) if isinstance(s, Stores) else ()


def _indented(text: str) -> Iterator[str]:
    return (INDENT + line for line in text.split("\n")) if text else iter(())


# formats ------------------------------------------------------------


class Printer:
    """A printer by formats (see `scheduler.ir.loop.syntax`): those of this text, or those of a backend whose code is a
    line a statement. `kinds` print fields that are printed otherwise than in this text."""

    def __init__(self, formats: Mapping[type, str], kinds: Mapping[str, Callable[..., str]] | None = None) -> None:
        self.syntax = taken_apart(formats)
        self.kinds = {**KINDS, **(kinds or {})}

    def text(self, x: object, result: Value | None = None) -> str:
        """Anything that has a format; `result` is that of the definition of an operation. Raises NoBackend for what has
        none."""
        if type(x) not in self.syntax:
            raise NoBackend(f"no code is generated for {type(x).__name__}")
        return self._joined(self.syntax[type(x)], x, result).strip()

    def _joined(self, parts: Iterable[Part], x: object, result: Value | None) -> str:
        out = ""
        for p in parts:
            if isinstance(p, Literal):
                piece = p.text
            elif isinstance(p, Field):
                piece = self._field(p, x, result)
            else:
                piece = "" if getattr(x, p.field) == p.default else self._joined(p.parts, x, result)
            out = out.removesuffix(" ") + piece if not piece or piece == " " else out + piece
        return out

    def _field(self, p: Field, x: object, result: Value | None) -> str:
        value: Any = result if p.name == "result" and result is not None else getattr(x, p.name)
        if p.flag:
            return p.name if value else ""
        if isinstance(x, Define) and type(value) in self.syntax:
            return self.text(value, x.result)
        many = MANY.fullmatch(p.kind)
        return self.kinds[p.kind](value) if many is None else ", ".join(map(self.kinds[many[1]], value))


def _formatted(x: object) -> str:
    return PRINTER.text(x)


def _infix(op: ops.Operation) -> str:
    """An operation that has an operator, and no format."""
    match op:
        case ops.Unary():
            word = next(word for word, sign in UNARY.items() if sign == op.op)
            return f"{word} {_value(op.a)}"
        case ops.Binary() | ops.Compare() | ops.Logical():
            return f"{_value(op.a)} {op.op} {_value(op.b)}"
        case _:
            raise NoBackend(f"no code is generated for {type(op).__name__}")


# kinds ------------------------------------------------------------


def _value(v: Value) -> str:
    if v.literal is None:
        return f"%{v.name}"
    return f"{str(v.literal).lower()}:{type_text(v.type)}"


def type_text(t: ScalarType) -> str:
    """The short name of a scalar type, such as f32."""
    return f"{t.kind[0]}{t.bits}"


def _type_of(v: Value) -> str:
    lanes = f"x{v.lanes}" if v.lanes > 1 else ""
    return type_text(v.type) + lanes + (f"m{v.mask_bits}" if v.mask_bits else "")


def print_index(x: Index) -> str:
    """The text of an index: a sum of symbols, and of functions of sums."""
    out = ""
    for atom, c in x.terms:
        sign = "-" if c < 0 else "+" if out else ""
        piece = _atom(atom) if abs(c) == 1 else f"{abs(c)}*{_atom(atom)}"
        out += f" {sign} {piece}" if out else sign + piece
    if not x.const and out:
        return out
    return f"{out} {'-' if x.const < 0 else '+'} {abs(x.const)}" if out else str(x.const)


def _atom(a: Atom) -> str:
    return a.key if a.kind == "sym" else f"{a.kind}({_list(print_index)(a.args)})"


def _range(ends: tuple[Index, Index]) -> str:
    return f"{print_index(ends[0])} to {print_index(ends[1])}"


def _lane(lane: Lane) -> str:
    if lane.pattern is not None:
        return f"<{print_index(lane.base)}; [{_list(str)(lane.pattern)}]>"
    if lane.vector is not None:
        return f"<{print_index(lane.base)}; {_value(lane.vector)}>"
    return f"<{print_index(lane.base)}>"


def _block(body: Body) -> str:
    return "\n".join(["{", *_indented(print_body(body)), "}"])


def _text(text: str) -> str:
    return json.dumps(text)


def _list(one: Callable[[T], str]) -> Callable[[Iterable[T]], str]:
    return lambda many: ", ".join(map(one, many))


def _buffer(b: Buffer) -> str:
    return f"@{b.pointer}"


def _scratch(s: Scratch) -> str:
    return s.name


def _layout(s: Scratch) -> str:
    return f"{s.name}({_list(_formatted)(s.buffers)})"


KINDS: dict[str, Callable[..., str]] = {
    "Value": _value,
    "new": _value,
    "type": _type_of,
    "Operation": _infix,
    "Index": print_index,
    "Pointer": str,
    "pointer": str,
    "str": str,
    "name": str,
    "names": _list(str),
    "text": _text,
    "texts": _list(_text),
    "int": str,
    "number": repr,
    "numbers": _list(repr),
    "ScalarType": type_text,
    "Lane": _lane,
    "Ends": _range,
    "tuple[Index, Index]": _range,
    "Body": _block,
    "Buffer": _buffer,
    "Scratch": _scratch,
    "layouts": _list(_layout),
    "Extents": lambda m: _formatted(m),
    "ClampedIndex": lambda c: _formatted(c),
    "LaneOffset": lambda x: _formatted(x),
    **{part.__name__: lambda x: _formatted(x) for part in PARTS},
    "int | None": lambda n: "none" if n is None else str(n),
    "conditions": _list(lambda x: f"{print_index(x)} >= 0"),
}
"""The text of a field, by its kind."""
MANY = re.compile(r"(?:tuple|list)\[([\w |]+?)(?:, \.\.\.)?\]")
"""Kinds of fields that have any number of another kind."""

PRINTER = Printer(FORMATS)

__all__ = ["Printer", "buffers_of", "print_body", "print_index", "print_program", "print_statement", "type_text"]
