"""Results of rules: templates with what the pattern variables stand for put in."""

from __future__ import annotations

from typing import Final

from tilesmith.scheduler.ir.pipeline.expressions import Expr, Var, map_children
from tilesmith.scheduler.rewrites.expression_rules.constants import folded, settled
from tilesmith.scheduler.rewrites.expression_rules.matching import Binding

LOG2: Final = "log2({})"
"""The name, in the instance of a rule, of the logarithm of a pattern variable that is a constant power of two."""


def argument_of(logarithm: Var) -> str:
    """The pattern variable of a logarithm."""
    return logarithm.name[len("log2(") : -1]


def built(template: Expr, binding: Binding) -> Expr:
    """The template with its variables replaced; what is made of constants alone is one."""
    if isinstance(template, Var):
        return binding[template.name]
    return settled(folded(map_children(template, lambda part: built(part, binding))))
