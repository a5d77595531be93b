"""The text of MLIR as operations of xDSL, each with the line where it begins."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, linalg, math, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from tilesmith.scheduler.frontends.importer import ImportFailed
from tilesmith.scheduler.frontends.mlir.named_ops import OPS

MOST_BYTES = 4 << 20
MOST_OPERATIONS = 20_000
_QUOTED = re.compile(r'//[^\n]*|"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"|"')
PARSER = "the text is parsed by xDSL, which does not know all of MLIR"


@dataclass(slots=True)
class Text:
    """A function, and the lines of the operations in it."""

    function: FuncOp
    lines: dict[Operation, int] = field(default_factory=dict)

    def place(self, op: Operation) -> str:
        """The line and the name of an operation, for messages."""
        at: Operation | None = op
        while at is not None and at not in self.lines:  # bodies of named operations are not written
            at = at.parent_op()
        return f"line {1 if at is None else self.lines[at]}: {op.name}"


def parsed(content: str | bytes, name: str | None = None) -> Text:
    """The function of that name, or the only one that has a body. Raises ImportFailed, with the line."""
    if len(content) > MOST_BYTES:
        raise ImportFailed((f"the text has more than {MOST_BYTES >> 20} MiB", None))
    try:
        text = content.decode() if isinstance(content, bytes) else content
        _check_strings(text)
        parser = _Parser(_context(), text, "mlir")
        module = parser.parse_module()
        for op in module.walk():
            parser.verified(op)
    except UnicodeDecodeError as error:
        raise ImportFailed((f"byte {error.start} is not UTF-8", None)) from None
    except ParseError as error:
        raise ImportFailed((f"line {_line(text, error.span.start)}: {_first_line(error)}", PARSER)) from None
    except RecursionError:
        raise ImportFailed(("the text is nested too deeply", None)) from None
    return Text(_function(module, name), parser.lines)


def _check_strings(text: str) -> None:
    """Raises ImportFailed where a string does not end: xDSL's pattern of strings tries all ways to cut such a one."""
    for found in _QUOTED.finditer(text):
        if found[0] == '"':
            message = f"line {_line(text, found.start())}: a string that does not end, or has an unknown escape"
            raise ImportFailed(
                (message, 'strings end on their line; escapes are \\n, \\t, \\\\, \\" and two hex digits')
            )


def _context() -> Context:
    context = Context()
    for dialect in (arith.Arith, builtin.Builtin, func.Func, math.Math, tensor.Tensor):
        context.load_dialect(dialect)
    ours = {op.name for op in OPS}
    for op in (*(op for op in linalg.Linalg.operations if op.name not in ours), *OPS):
        context.load_op(op)
    for attribute in linalg.Linalg.attributes:
        context.load_attr_or_type(attribute)
    return context


class _Parser(Parser):
    """Keeps the lines of operations, and tells what goes wrong in the parsing or checking of one at its line."""

    def __init__(self, context: Context, text: str, name: str) -> None:
        super().__init__(context, text, name)
        self.text = text
        self.lines: dict[Operation, int] = {}

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        if len(self.lines) > MOST_OPERATIONS:
            raise ImportFailed((f"there are more than {MOST_OPERATIONS} operations", None))
        try:
            op = super().parse_operation()
        except ParseError as error:
            if "is not registered" not in error.msg:
                raise
            raise ImportFailed((f"line {_line(self.text, start)}: {_first_line(error)}", PARSER)) from None
        except (RecursionError, ImportFailed):
            raise
        except Exception as error:  # xDSL asserts, and builds what it has not checked yet
            raise ImportFailed((f"line {_line(self.text, start)}: {_told(error)}", PARSER)) from None
        self.lines[op] = _line(self.text, start)
        return op

    def verified(self, op: Operation) -> None:
        """Raises ImportFailed where the operation is not what its definition says."""
        try:
            op.verify(verify_nested_ops=False)
        except RecursionError:
            raise
        except Exception as error:
            line = self.lines.get(op, 1)
            raise ImportFailed((f"line {line}: {op.name}: {_told(error)}", None)) from None


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _told(error: Exception) -> str:
    told = _first_line(error)
    return (
        told
        if isinstance(error, VerifyException | ValueError) and told
        else f"malformed ({told or type(error).__name__})"
    )


def _first_line(error: Exception) -> str:
    """The message of an error of xDSL, without the excerpt of the text."""
    message = error.msg if isinstance(error, ParseError) else str(error)
    return next((line.strip() for line in message.splitlines() if line.strip()), "")[:300]


def _function(module: ModuleOp, name: str | None) -> FuncOp:
    functions = {op.sym_name.data: op for op in module.walk() if isinstance(op, FuncOp) and op.body.blocks}
    names = ", ".join(functions)
    if functions and name is not None and name not in functions:
        raise ImportFailed((f"there is no function @{name} with a body", f"there are: {names}"))
    if not functions:
        raise ImportFailed(("there is no func.func with a body", None))
    if name is None and len(functions) != 1:
        raise ImportFailed((f"there is more than one function with a body: {names}", "say which: FILE.mlir:NAME"))
    return functions[name] if name is not None else next(iter(functions.values()))
