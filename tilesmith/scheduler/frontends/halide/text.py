"""Halide's expressions as text, for messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilesmith.scheduler.frontends.halide.serialized import Node

_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "eq": "==", "ne": "!=", "lt": "<", "le": "<=",
    "gt": ">", "ge": ">=", "and": "&&", "or": "||",
}  # fmt: skip
_LONGEST = 120


def plain(name: str) -> str:
    """A name as its user wrote it: without the number that Halide gives to names that are taken."""
    return re.sub(r"\$\d+$", "", name)


def shown(node: Node, copies: Mapping[str, str]) -> str:
    """`node` as Halide would print it, cut where it is long; `copies` are names of what Halide has copied by the names
    of the copies."""
    text = _text(node, copies, 24)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _text(node: Node, copies: Mapping[str, str], depth: int) -> str:
    if depth == 0:
        return "..."
    args = [_text(a, copies, depth - 1) for a in node.args]
    match node.op:
        case "int" | "float":
            return str(node.value)
        case "string":
            return repr(node.name)
        case "variable" | "call" if node.op == "variable" or not node.name:
            return plain(node.name)
        case "cast" | "reinterpret":
            kind = str(node.type) if node.op == "cast" else f"reinterpret<{node.type}>"
            return f"{kind}({args[0]})"
        case "not":
            return f"!{args[0]}"
        case op if op in _OPERATORS:
            return f"({args[0]} {_OPERATORS[op]} {args[1]})"
        case _:
            component = f"[{node.component}]" if node.component else ""
            return f"{_called(node.name, copies) or node.op}({', '.join(args)}){component}"


def _called(name: str, copies: Mapping[str, str]) -> str:
    while name in copies:
        name = copies[name]
    return plain(name)
