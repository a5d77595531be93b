"""Expressions and small pipelines for tests of rules."""

from __future__ import annotations

import ast

from tilesmith.scheduler.errors import Problem
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.frontends.document.functions import FUNCTIONS
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.document.names import Names, Readable
from tilesmith.scheduler.frontends.document.parser import REDUCTIONS, parse
from tilesmith.scheduler.frontends.document.type_checker import Builder
from tilesmith.scheduler.ir.pipeline.expressions import Expr, Var
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.types import TYPES, ScalarType


def expression(text: str, type: str = "float32", result: ScalarType | None = None) -> Expr:
    """The expression that `text` says, in which every name is a variable of the type, and what is called an image."""
    problems: list[Problem] = []
    syntax = parse(text, "", Limits(), problems)
    assert syntax is not None, problems
    calls = [n for n in ast.walk(syntax.root) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    called = {id(n.func) for n in calls}
    variables = {n.id for n in ast.walk(syntax.root) if isinstance(n, ast.Name) and id(n) not in called}
    images = {
        n.func.id: Readable(True, tuple("xyzc"[: len(n.args)]), (TYPES[type],))
        for n in calls
        if n.func.id not in FUNCTIONS and n.func.id not in REDUCTIONS and n.func.id != "range"
    }
    scope = {name: Var(name, TYPES[type]) for name in variables}
    (made,) = Builder(syntax, Names({}, images), scope, Limits(), problems).values((result,))
    assert made is not None, problems
    return made


def pointwise(*values: str, type: str = "float32", images: str = "uvw") -> Pipeline:
    """A pipeline of one stage a value, `f0`, `f1`, ..., each an output, of images of that type, which the values read
    at (x, y)."""
    return load(
        {
            "format": 1,
            "name": "pointwise",
            "inputs": [{"name": name, "type": type, "dims": ["x", "y"]} for name in images],
            "stages": [{"name": f"f{n}", "dims": ["x", "y"], "value": value} for n, value in enumerate(values)],
            "outputs": [f"f{n}" for n in range(len(values))],
            "estimates": {f"f{n}": [[0, 16], [0, 8]] for n in range(len(values))},
        }
    )
