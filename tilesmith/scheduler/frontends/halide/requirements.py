"""Requirements of a Halide pipeline, of its values (`hl.require`) or of its arguments (`add_requirement`), as ranges of
Params: what lies outside of these is refused when the code is called."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from tilesmith.scheduler.frontends.halide.facts import ParamFacts
from tilesmith.scheduler.frontends.halide.serialized import HalideType, Node

_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}
_ADORNED = frozenset(("likely", "likely_if_innermost"))
Number = int | float


def as_ranges(
    conditions: Iterable[Node], params: Mapping[str, ParamFacts]
) -> tuple[dict[str, ParamFacts], dict[Node, None]]:
    """The Params with the ranges that the conditions ask for, and those conditions that are no comparisons of one of
    them with a constant. A default outside of its range is left out."""
    found, left = dict(params), dict[Node, None]()
    for condition in conditions:
        for part in _conjuncts(condition):
            compared = _compared(part)
            if (
                compared is None
                or compared[0] not in found
                or found[compared[0]].type.code not in ("int", "uint", "float")
            ):
                left[part] = None
                continue
            name, op, value = compared
            found[name] = _narrowed(found[name], *_ends(op, value, found[name].type))
    return found, left


def _conjuncts(condition: Node) -> Iterator[Node]:
    while condition.name in _ADORNED:
        condition = condition.args[0]
    if condition.op == "and":
        for arg in condition.args:
            yield from _conjuncts(arg)
    else:
        yield condition


def _compared(node: Node) -> tuple[str, str, Number] | None:
    """The Param, the comparison and the constant."""
    if node.op not in _FLIPPED:
        return None
    left, right = node.args
    op = node.op
    if right.op == "variable":
        left, right, op = right, left, _FLIPPED[op]
    if left.op != "variable" or not left.param or right.op not in ("int", "float") or right.value is None:
        return None
    return left.param, op, right.value


def _ends(op: str, value: Number, type: HalideType) -> tuple[Number | None, Number | None]:
    """The least and the greatest number of the type that compares so."""

    def after(direction: int) -> Number:
        if type.code != "float":
            return value + direction
        kind = np.dtype(f"float{type.bits}").type
        return float(np.nextafter(kind(value), kind(math.copysign(math.inf, direction))))

    match op:
        case "gt":
            return after(1), None
        case "ge":
            return value, None
        case "lt":
            return None, after(-1)
        case "le":
            return None, value
        case _:
            return value, value


def _narrowed(facts: ParamFacts, least: Number | None, most: Number | None) -> ParamFacts:
    least = max((v for v in (facts.least, least) if v is not None), default=None)
    most = min((v for v in (facts.most, most) if v is not None), default=None)
    default = facts.default
    if default is not None and ((least is not None and default < least) or (most is not None and default > most)):
        default = None
    return replace(facts, least=least, most=most, default=default)
