"""Parser of the text of the loop IR (see `scheduler.ir.loop.syntax`): what the printer prints is read back to an equal
program. Names mean what the block that they stand in, or one around it, has defined."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial, reduce
from typing import TypeVar, get_args

from tilesmith.scheduler.ir.index import Index, const, divide, maximum, minimum, modulo, multiply, sym
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.program import (
    Accumulator,
    Body,
    ClampedIndex,
    Define,
    Extents,
    Program,
    Scratch,
    Statement,
)
from tilesmith.scheduler.ir.loop.signature import Argument, Parameter, Table
from tilesmith.scheduler.ir.loop.syntax import INFIX, MACHINE, PARTS, SYNTAX, UNARY, Field, Literal, Part
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, LaneOffset, Pointer, Value
from tilesmith.scheduler.ir.pipeline.types import TYPES, ScalarType

T = TypeVar("T")

TOKENS = re.compile(
    r"""[ \t\n]+
    | (?P<token> "(?:[^"\\]|\\.)*" | [%@][A-Za-z_]\w* | [A-Za-z_][\w.]* | \d+(?:\.\d+)?(?:e[-+]?\d+)?
        | \*\* | // | << | >> | <= | >= | == | != | [-+*/%&|^<>=(){}\[\],;:] )""",
    re.VERBOSE,
)
FUNCTIONS: dict[str, Callable[[Index, Index], Index]] = {
    "min": minimum,
    "max": maximum,
    "div": divide,
    "mod": modulo,
    "mul": multiply,
}
BY_WORD: dict[str, type] = {
    parts[0].text.split()[0].split("(")[0]: kind
    for kind, parts in SYNTAX.items()
    if isinstance(parts[0], Literal) and kind not in (Buffer, Argument, Parameter, Table)
}
"""Operations and statements, by the word that they begin with."""
STATEMENTS = get_args(Statement)
SHORT_TYPES = {f"{t.kind[0]}{t.bits}": t for t in TYPES.values()}


class ParseError(ValueError):
    """A text that is no loop IR: says the line, and what was expected there."""


def parse_program(text: str) -> Program:
    """The program of a text. Raises ParseError."""
    return _Parser(text).program()


def parse_body(text: str, values: tuple[Value, ...] = (), buffers: tuple[Buffer, ...] = ()) -> Body:
    """The block of a text, in which these values and buffers are known. Raises ParseError."""
    parser = _Parser(text)
    parser.values.update({v.name: v for v in values})
    parser.buffers.update({b.pointer: b for b in buffers})
    found = parser.statements()
    parser.expect_end()
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        self.starts: list[int] = []
        at = 0
        while at < len(text):
            found = TOKENS.match(text, at)
            if found is None:
                raise ParseError(f"line {text.count(chr(10), 0, at) + 1}: unknown character {text[at]!r}")
            if found["token"] is not None:
                self.tokens.append(found["token"])
                self.starts.append(at)
            at = found.end()
        self.n = 0
        self.values: dict[str, Value] = {}
        self.buffers: dict[str, Buffer] = {}
        self.scratch: dict[str, Scratch] = {}
        self.kinds: dict[str, Callable[[], object]] = {
            "Value": self.value,
            "Operation": self.operation,
            "Index": self.index,
            "Pointer": lambda: Pointer(self.name()),
            "pointer": lambda: Pointer(self.name()),
            "str": self.name,
            "name": self.name,
            "names": lambda: self.many(self.name),
            "text": self.quoted,
            "int": self.integer,
            "number": self.number,
            "numbers": lambda: self.many(self.number),
            "ScalarType": lambda: self.scalar_type(self.name()),
            "Lane": self.lane,
            "Ends": self.ends,
            "tuple[Index, Index]": self.ends,
            "Body": self.block,
            "Buffer": self.buffer,
            "Scratch": lambda: self.known(self.scratch, self.name()),
            "tuple[Scratch, ...]": lambda: self.many(lambda: self.known(self.scratch, self.name())),
            "layouts": lambda: self.many(self.layout),
            "Extents": lambda: self.formatted(Extents),
            "ClampedIndex": lambda: self.formatted(ClampedIndex),
            "tuple[int, ...]": lambda: self.many(self.integer),
            "tuple[Value, ...]": lambda: self.many(self.value),
            "tuple[Index, ...]": lambda: self.many(self.index),
            "conditions": lambda: self.many(self.condition),
            "list[Index]": lambda: list(self.many(self.index)),
            "list[int | None]": lambda: list(self.many(self.ring)),
            "tuple[LaneOffset, ...]": lambda: self.many(lambda: self.formatted(LaneOffset)),
            "tuple[Extents, ...]": lambda: self.many(lambda: self.formatted(Extents)),
            "texts": lambda: self.many(self.quoted),
            "tuple[Buffer, ...]": lambda: self.many(self.buffer),
            "tuple[Ends, ...]": lambda: self.many(self.ends),
            **{part.__name__: partial(self.formatted, part) for part in PARTS},
            **{f"tuple[{part.__name__}, ...]": partial(self.listed, part) for part in PARTS},
        }

    # tokens ------------------------------------------------------------

    @property
    def next(self) -> str:
        return self.tokens[self.n] if self.n < len(self.tokens) else ""

    def take(self) -> str:
        token = self.next
        if not token:
            raise self.error("more")
        self.n += 1
        return token

    def accept(self, token: str) -> bool:
        found = self.next == token
        self.n += found
        return found

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.error(f"'{token}'")

    def expect_end(self) -> None:
        if self.next:
            raise self.error("the end")

    def error(self, expected: str) -> ParseError:
        at = self.starts[self.n] if self.n < len(self.starts) else len(self.text)
        line = self.text.count("\n", 0, at) + 1
        return ParseError(f"line {line}: expected {expected}, found '{self.next or 'the end'}'")

    def known(self, table: dict[str, T], name: str) -> T:
        if name not in table:
            self.n -= 1
            raise self.error("a name that is known here")
        return table[name]

    # the whole ------------------------------------------------------------

    def program(self) -> Program:
        self.expect("program")
        name = self.quoted()
        for word in ("{", "doc"):
            self.expect(word)
        doc = self.quoted()
        self.expect("method")
        method, strict = self.quoted(), self.accept("strict")
        self.expect("machine")
        architecture = self.quoted()
        line_bytes, register_bytes, carried_vectors, permuted_bytes, crowded_bytes = map(self.figure, MACHINE)
        arguments = self.while_next("argument", lambda: self.formatted(Argument))
        tables = self.while_next("table", lambda: self.formatted(Table))
        params = self.while_next("param", self.parameter)
        derived = self.while_next("derived", lambda: (self.take(), self.parameter(known=False))[1])
        buffers = self.while_next("buffer", lambda: self.formatted(Buffer))
        self.buffers = {b.pointer: b for b in buffers}
        own = {f"{a.c_name}_data" for a in arguments}
        images = tuple(b for b in buffers if b.pointer in own)  # a function has others that are of the caller
        estimates = self.while_next("estimate", lambda: (self.take(), (self.quoted(), self.integer()))[1])
        self.expect("derivation")
        derivation = self.block(scoped=False)
        self.expect("bounds")
        bounds = self.block(scoped=False)
        required = self.while_next("required", self.required)
        self.expect("body")
        body = self.block()
        self.expect("}")
        self.expect_end()
        return Program(
            name, doc, method, arguments, params, images, bounds, required, body, estimates, strict, line_bytes,
            register_bytes, carried_vectors, permuted_bytes, crowded_bytes, architecture, derived, derivation,
            tables,
        )  # fmt: skip

    def figure(self, name: str) -> int:
        self.expect(name)
        return self.integer()

    def while_next(self, word: str, one: Callable[[], T]) -> tuple[T, ...]:
        found = []
        while self.next == word:
            found.append(one())
        return tuple(found)

    def parameter(self, known: bool = True) -> Parameter:
        p = self.formatted(Parameter)
        if known:
            self.values[p.c_name] = Value(p.type, 1, p.c_name)
        return p

    def required(self) -> tuple[str, tuple[tuple[Index, Index], ...]]:
        self.take()
        name = self.quoted()
        self.expect("(")
        box = self.many(self.ends)
        self.expect(")")
        return name, box

    # statements ------------------------------------------------------------

    def block(self, scoped: bool = True) -> Body:
        self.expect("{")
        outside = self.values
        self.values = dict(outside) if scoped else outside
        found = self.statements()
        self.values = outside
        self.expect("}")
        return found

    def statements(self) -> Body:
        found = []
        while self.next not in ("}", ""):
            found.append(self.statement())
        return tuple(found)

    def statement(self) -> Statement:
        if self.next.startswith("%"):
            return self.definition()
        kind = BY_WORD.get(self.next)
        if kind is None or kind not in STATEMENTS:
            raise self.error("a statement")
        s: Statement = self.formatted(kind)
        if isinstance(s, Scratch):
            self.scratch[s.name] = s
        return s

    def definition(self) -> Define | Accumulator:
        name = self.take()[1:]
        self.expect("=")
        accumulates = self.accept("accumulator")
        op, start = (None, self.value()) if accumulates else (self.operation(), None)
        self.expect(":")
        result = self.typed(name)
        self.values[name] = result
        if start is not None:
            return Accumulator(result, start)
        assert op is not None
        return Define(result, op)

    def operation(self) -> ops.Operation:
        if self.next in UNARY:
            return ops.Unary(UNARY[self.take()], self.value())
        kind = BY_WORD.get(self.next)
        if kind is not None and kind.__module__ == ops.__name__:
            found: ops.Operation = self.formatted(kind)
            return found
        a, sign = self.value(), self.take()
        if sign not in INFIX:
            self.n -= 1
            raise self.error("an operator")
        make: Callable[..., ops.Operation] = INFIX[sign]
        return make(sign, a, self.value())

    # formats ------------------------------------------------------------

    def formatted(self, kind: type[T]) -> T:
        """The operation or statement that is printed by the format of a class."""
        found: dict[str, object] = {}
        self.parts(SYNTAX[kind], found)
        make: Callable[..., T] = kind
        return make(**found)

    def listed(self, kind: type[T]) -> tuple[T, ...]:
        return self.many(lambda: self.formatted(kind))

    def parts(self, parts: tuple[Part, ...], found: dict[str, object]) -> None:
        for p in parts:
            if isinstance(p, Literal):
                for token in _words(p.text):
                    self.expect(token)
            elif not isinstance(p, Field):
                first = next((_words(x.text) for x in p.parts if isinstance(x, Literal)), [])
                if first and self.next == first[0]:
                    self.parts(p.parts, found)
            elif p.flag:
                found[p.name] = self.accept(p.name)
            else:
                found[p.name] = self.kinds[p.kind]()

    def many(self, one: Callable[[], T]) -> tuple[T, ...]:
        """Any number of them, up to the bracket that closes."""
        found = []
        while self.next not in (")", "]"):
            found.append(one())
            if not self.accept(","):
                break
        return tuple(found)

    # kinds ------------------------------------------------------------

    def name(self) -> str:
        if not re.match(r"[A-Za-z_]", self.next):
            raise self.error("a name")
        return self.take()

    def quoted(self) -> str:
        if not self.next.startswith('"'):
            raise self.error("a text in quotes")
        return str(json.loads(self.take()))

    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        if not self.next.isdigit():
            raise self.error("an integer")
        return sign * int(self.take())

    def number(self) -> int | float:
        sign = -1 if self.accept("-") else 1
        token = self.take()
        if token.isdigit():
            return sign * int(token)
        try:
            return sign * float(token)
        except ValueError:
            self.n -= 1
            raise self.error("a number") from None

    def scalar_type(self, text: str) -> ScalarType:
        return self.known(SHORT_TYPES, text)

    def typed(self, name: str) -> Value:
        """A value of that name, of the type that comes."""
        found = re.fullmatch(r"([a-z]+\d+)(?:x(\d+))?(?:m(\d+))?", self.name())
        if found is None:
            self.n -= 1
            raise self.error("a type, such as f32x8")
        return Value(self.scalar_type(found[1]), int(found[2] or 1), name, None, int(found[3] or 0))

    def value(self) -> Value:
        if self.next.startswith("%"):
            return self.known(self.values, self.take()[1:])
        number = {"true": True, "false": False}.get(self.next)
        if number is not None:
            self.take()
        literal = self.number() if number is None else number
        self.expect(":")
        return Value(self.scalar_type(self.name()), 1, "", literal)

    def buffer(self) -> Buffer:
        return self.known(self.buffers, self.take()[1:])

    def layout(self) -> Scratch:
        name = self.name()
        self.expect("(")
        found = self.scratch[name] = Scratch(name, self.many(lambda: self.formatted(Extents)))
        self.expect(")")
        return found

    def ring(self) -> int | None:
        return None if self.accept("none") else self.integer()

    def lane(self) -> Lane:
        self.expect("<")
        base = self.index()
        pattern, vector = None, None
        if self.accept(";"):
            if self.accept("["):
                pattern = self.many(self.integer)
                self.expect("]")
            else:
                vector = self.value()
        self.expect(">")
        return Lane(base, pattern, vector)

    def ends(self) -> tuple[Index, Index]:
        first = self.index()
        self.expect("to")
        return first, self.index()

    def condition(self) -> Index:
        found = self.index()
        self.expect(">=")
        self.expect("0")
        return found

    # indices ------------------------------------------------------------

    def index(self) -> Index:
        total = self.term(-1 if self.accept("-") else 1)
        while self.next in ("+", "-"):
            sign = 1 if self.take() == "+" else -1
            total = total + self.term(-sign if self.accept("-") else sign)
        return total

    def term(self, sign: int) -> Index:
        if self.next.isdigit():
            n = sign * int(self.take())
            return self.atom().scaled(n) if self.accept("*") else const(n)
        return self.atom().scaled(sign)

    def atom(self) -> Index:
        name = self.name()
        if name not in FUNCTIONS or not self.accept("("):
            return sym(name)
        args = self.many(self.index)
        self.expect(")")
        return reduce(FUNCTIONS[name], args)


def _words(text: str) -> list[str]:
    return [found["token"] for found in TOKENS.finditer(text) if found["token"] is not None]
