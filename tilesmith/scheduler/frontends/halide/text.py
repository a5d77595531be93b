"""Halide's expressions as text, for messages."""

from __future__ import annotations

from tilesmith.scheduler.frontends.halide.serialized import Node

_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "eq": "==", "ne": "!=", "lt": "<", "le": "<=",
    "gt": ">", "ge": ">=", "and": "&&", "or": "||",
}  # fmt: skip
_LONGEST = 120


def shown(node: Node) -> str:
    """`node` as Halide would print it, cut where it is long."""
    text = _text(node, 24)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _text(node: Node, depth: int) -> str:
    if depth == 0:
        return "..."
    args = [_text(a, depth - 1) for a in node.args]
    match node.op:
        case "int" | "float":
            return str(node.value)
        case "string":
            return repr(node.name)
        case "variable" | "call" if node.op == "variable" or not node.name:
            return node.name
        case "cast" | "reinterpret":
            kind = str(node.type) if node.op == "cast" else f"reinterpret<{node.type}>"
            return f"{kind}({args[0]})"
        case "not":
            return f"!{args[0]}"
        case op if op in _OPERATORS:
            return f"({args[0]} {_OPERATORS[op]} {args[1]})"
        case _:
            component = f"[{node.component}]" if node.component else ""
            return f"{node.name or node.op}({', '.join(args)}){component}"
