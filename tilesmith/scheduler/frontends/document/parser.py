"""Text of an expression -> checked Python syntax tree: sizes, nesting and node kinds, nothing about names or types.

Nothing is evaluated, and nothing here recurses: the tree is walked with a stack of our own, and text that
could exhaust Python's parser is refused before or caught there.
"""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from tilesmith.scheduler.errors import Problem
from tilesmith.scheduler.frontends.document import foreign_words
from tilesmith.scheduler.frontends.document.limits import Limits

REDUCTIONS = frozenset({"sum", "product", "min", "max", "any", "all", "argmin", "argmax"})

_PARSER = threading.Lock()
"""CPython counts the nesting of a tree that it converts once for all threads, and gives up where two convert at a time:
a SystemError, though the tree is right."""
_ATTEMPTS = 100
"""Others in the process convert trees without the lock, `inspect` for one: then it is done again."""
_FOREIGN = re.compile(r"""[^A-Za-z0-9_ +\-*/%&|^~<>=!().,\[\]]""")
_GLUED = re.compile(r"\b[0-9][0-9a-fA-FxXoOjJ_.]*(?:and|else|for|if|in|is|not|or)\b")
_BRACKETS = re.compile(r"[()\[\]]")
_SPACES = str.maketrans("\t\r\n", "   ")
_BINARY = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow,
           ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)  # fmt: skip
_COMPARE = (ast.Lt, ast.LtE, ast.Eq, ast.NotEq, ast.GtE, ast.Gt)


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The loop variables of the comprehensions around a node, innermost first; `names` are those of one of them,
    `ranges` what they run over."""

    names: tuple[str, ...]
    ranges: tuple[list[ast.expr], ...]
    outer: Frame | None


def frames(frame: Frame | None) -> Iterator[Frame]:
    """`frame` and those around it."""
    while frame is not None:
        yield frame
        frame = frame.outer


@dataclass(slots=True)
class Syntax:
    """A checked tree. `order` has every node that has a value, parents before children, with its comprehensions;
    `reads` the names that are called like an input or stage, with the column of the first call."""

    root: ast.expr
    pointer: str
    order: list[tuple[ast.expr, Frame | None]] = field(default_factory=list)
    reads: dict[str, int] = field(default_factory=dict)
    near_limits: bool = False  # the canonical text may be beyond them


def parse(text: str, pointer: str, limits: Limits, problems: list[Problem]) -> Syntax | None:
    """The syntax of `text`, or None; what is wrong is appended to `problems`."""
    found = _refuse(text, limits)
    if found is None:
        try:
            # In brackets of our own: line breaks and indents are plain space, and `col_offset` is the 1-based column.
            root = _tree(f"({text.translate(_SPACES)})")
        except SyntaxError as error:
            found = _syntax_error(error, len(text))
        except (RecursionError, MemoryError):  # the parser's own stack; its memory is returned
            found = ("expression_too_deep", "The expression is nested too deeply.", None, None)
        else:
            syntax = _Walk(pointer, limits, problems).run(root)
            if syntax is not None and 4 * len(text) > limits.expression_chars:
                syntax.near_limits = True
            return syntax
    code, message, column, hint = found
    problems.append(Problem(code, pointer, message, hint, column))
    return None


def _tree(text: str) -> ast.expr:
    with _PARSER:
        for _ in range(_ATTEMPTS):
            with suppress(SystemError):
                return ast.parse(text, mode="eval").body
        return ast.parse(text, mode="eval").body


_Found = tuple[str, str, int | None, str | None]


def _refuse(text: str, limits: Limits) -> _Found | None:
    """The error of `text`, if one is found before it is parsed."""
    if len(text) > limits.expression_chars:
        message = f"The expression has {len(text)} characters, {limits.expression_chars} are allowed."
        return "expression_too_large", message, None, "split it into stages"
    spaced = text.translate(_SPACES)
    if not spaced.strip(" "):
        return "syntax_error", "The expression is empty.", 1, None
    if (match := _FOREIGN.search(spaced)) is not None:
        return _foreign(match.group(), match.start() + 1)
    if (match := _GLUED.search(spaced)) is not None:
        return "syntax_error", f"A number runs into a word: {match.group()[:40]!r}.", match.start() + 1, "add a space"
    return _brackets(spaced, limits)


def _foreign(char: str, column: int) -> _Found:
    if char in "\"'":
        return "unsupported_syntax", "Strings are not part of the language.", column, None
    if char in "{}:;@#\\`$?":
        hint = "write select(condition, a, b)" if char == "?" else None
        return "unsupported_syntax", f"{char!r} is not part of the language.", column, hint
    return "syntax_error", f"The character {char!a} cannot occur in an expression.", column, None


def _brackets(text: str, limits: Limits) -> _Found | None:
    """Unbalanced or too many brackets: Python's parser can be slow on both."""
    open_: list[tuple[str, int]] = []
    for match in _BRACKETS.finditer(text):
        char, column = match.group(), match.start() + 1
        if char in "([":
            open_.append((char, column))
            if len(open_) > min(limits.expression_depth, 190):
                message = f"Brackets are nested more than {min(limits.expression_depth, 190)} deep."
                return "expression_too_deep", message, column, "name parts of the expression as stages"
        elif not open_ or (open_[-1][0] + char) not in ("()", "[]"):
            return "syntax_error", f"{char!r} closes nothing.", column, None
        else:
            open_.pop()
    if open_:
        return "syntax_error", f"{open_[-1][0]!r} is never closed.", open_[-1][1], None
    return None


def _syntax_error(error: SyntaxError, length: int) -> _Found:
    reason = error.msg or "invalid syntax"
    column = None if error.offset is None else min(max(error.offset - 1, 1), length)
    if "Exceeds the limit" in reason:
        return "literal_out_of_range", "A literal has too many digits for any type.", None, None
    if "leading zeros" in reason:
        return "syntax_error", "An integer may not begin with 0.", column, None
    if "decimal literal" in reason:
        return (
            "syntax_error",
            "A number runs into a word.",
            column,
            "numbers have no suffix: say the type as in float32(0.1)",
        )
    if "Maybe you meant '=='" in reason:
        return "syntax_error", "'=' does not compare.", column, "write =="
    if "must be parenthesized" in reason:
        return (
            "syntax_error",
            "A reduction is one argument, with nothing beside its loops.",
            column,
            "each loop has a 'for': sum(... for i in range(3) for j in range(3))",
        )
    if "expected 'else'" in reason:
        return "syntax_error", "A choice has an 'else'.", column, "write a if condition else b"
    hint = "write && as 'and', || as 'or', ! as 'not'" if re.search(r"&&|\|\||!(?!=)", error.text or "") else None
    return "syntax_error", "This is not an expression.", column, hint


class _Walk:
    """One pass over the tree that checks kinds of node, counts them, and notes what is read."""

    def __init__(self, pointer: str, limits: Limits, problems: list[Problem]) -> None:
        self.pointer, self.limits, self.problems = pointer, limits, problems

    def problem(self, code: str, message: str, node: ast.expr | None, hint: str | None = None) -> None:
        column = None if node is None else max(node.col_offset, 1)  # 0: our own bracket
        self.problems.append(Problem(code, self.pointer, message, hint, column))

    def run(self, root: ast.expr) -> Syntax | None:
        syntax = Syntax(root, self.pointer)
        limits, order, deepest, longest = self.limits, syntax.order, 0, 0
        stack: list[tuple[ast.expr, Frame | None, int, int]] = [(root, None, 1, 1)]
        while stack:
            node, frame, nesting, chain = stack.pop()
            order.append((node, frame))
            if len(order) > limits.expression_nodes:
                message = f"The expression has more than {limits.expression_nodes} parts."
                self.problem("expression_too_large", message, None, "split it into stages")
                return None
            if nesting > limits.expression_depth or chain > limits.expression_chain:
                self.problem("expression_too_deep", *self._too_deep(nesting), node, "name parts of it as stages")
                return None
            deepest, longest = max(deepest, nesting), max(longest, chain)
            kind = type(node)
            if kind is ast.Name or kind is ast.Constant:
                continue
            if kind is ast.BinOp and isinstance(node, ast.BinOp):
                self._operator(node, isinstance(node.op, _BINARY))
                stack.append((node.right, frame, nesting + 1, chain + 1))
                stack.append((node.left, frame, nesting, chain + 1))
                continue
            children, inner, length = self._children(node, frame, syntax)
            stack.extend((child, inner, nesting + 1, chain + length) for child in reversed(children))
        near = 3 * deepest > limits.expression_depth or 2 * longest > limits.expression_chain
        syntax.near_limits = near or 3 * len(order) > limits.expression_nodes
        return syntax

    def _too_deep(self, nesting: int) -> tuple[str]:
        if nesting > self.limits.expression_depth:
            return (f"The expression is nested more than {self.limits.expression_depth} deep.",)
        return (f"A chain of operators is longer than {self.limits.expression_chain}.",)

    def _operator(self, node: ast.expr, known: bool) -> None:
        if not known:
            self.problem("unsupported_syntax", "This operator is not part of the language.", node)

    def _children(
        self, node: ast.expr, frame: Frame | None, syntax: Syntax
    ) -> tuple[list[ast.expr], Frame | None, int]:
        """The subexpressions that have values of their own, their comprehensions, and the depth they stand at."""
        match node:
            case ast.UnaryOp():
                return [node.operand], frame, 1
            case ast.Call():
                return self._call(node, frame, syntax)
            case ast.Compare():
                if len(node.ops) > 1:
                    hint = "join two comparisons with 'and'"
                    self.problem("chained_comparison", "Comparisons do not chain.", node, hint)
                self._operator(node, all(isinstance(op, _COMPARE) for op in node.ops))
                return [node.left, *node.comparators], frame, 1
            case ast.BoolOp():
                return node.values, frame, len(node.values)
            case ast.IfExp():
                return [node.test, node.body, node.orelse], frame, 1
            case ast.Subscript():
                return [node.value], frame, 1
            case ast.Attribute():  # `input.min.x`, read as a whole
                return [], frame, 1
            case _:
                self.problem("unsupported_syntax", f"{_kind(node)} is not part of the language.", node)
                return [], frame, 1

    def _call(self, node: ast.Call, frame: Frame | None, syntax: Syntax) -> tuple[list[ast.expr], Frame | None, int]:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if node.keywords:
            self.problem("unsupported_syntax", "Arguments have no names.", node)
        if name is None:
            message = "Only inputs, stages and functions can be called, by name."
            hint = foreign_words.function(node.func.attr) if isinstance(node.func, ast.Attribute) else None
            self.problem("unsupported_syntax", message, node, hint)
        else:
            syntax.reads.setdefault(name, node.col_offset)
        loops = [arg for arg in node.args if isinstance(arg, ast.GeneratorExp)]
        if not loops:
            # `min` and `max` of many become a nest of pairs.
            return node.args, frame, max(len(node.args) - 1, 1) if name in ("min", "max") else 1
        if name not in REDUCTIONS or len(node.args) > 1:
            hint = "reductions are sum, product, min, max, any, all, argmin and argmax"
            self.problem("unsupported_syntax", "'for' belongs into a reduction, as its only argument.", loops[0], hint)
            return [], frame, 1
        return self._comprehension(loops[0], frame)

    def _comprehension(self, node: ast.GeneratorExp, frame: Frame | None) -> tuple[list[ast.expr], Frame | None, int]:
        names: list[str] = []
        ranges: list[list[ast.expr]] = []
        children: list[ast.expr] = []
        for loop in node.generators:
            ranged = isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name)
            if not isinstance(loop.target, ast.Name) or loop.is_async:
                hint = "write `for i in range(n) for j in range(m)`" if isinstance(loop.target, ast.Tuple) else None
                self.problem("unsupported_syntax", "A loop of a reduction has one variable.", loop.target, hint)
                return [], frame, 1
            names.append(loop.target.id)
            if not (ranged and isinstance(loop.iter, ast.Call) and _is_range(loop.iter)):
                message = f"The loop over {loop.target.id!r} does not run over range(lo, end)."
                self.problem("unsupported_syntax", message, loop.iter, "write range(n) or range(lo, end)")
                return [], frame, 1
            ranges.append(loop.iter.args)
            children += loop.iter.args
            children += loop.ifs
        return [*children, node.elt], Frame(tuple(names), tuple(ranges), frame), 1


def _is_range(call: ast.Call) -> bool:
    named = isinstance(call.func, ast.Name) and call.func.id == "range"
    plain = not call.keywords and not any(isinstance(a, ast.Starred | ast.GeneratorExp) for a in call.args)
    return named and plain and len(call.args) in (1, 2)


def _kind(node: ast.expr) -> str:
    names = {
        ast.Tuple: "A tuple in brackets",
        ast.List: "A list",
        ast.ListComp: "A list comprehension",
        ast.GeneratorExp: "A comprehension outside a reduction",
        ast.Starred: "'*' before an argument",
        ast.Slice: "A slice",
        ast.Await: "'await'",
        ast.Yield: "'yield'",
        ast.YieldFrom: "'yield'",
    }
    return names.get(type(node), "This")
