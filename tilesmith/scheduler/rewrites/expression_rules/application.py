"""Application of rules: at a place, at every place, until none fits. Each application is checked; pipelines and
refusals are values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final, Protocol

from tilesmith.scheduler.errors import InternalError
from tilesmith.scheduler.ir.pipeline.expressions import Expr, children
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.expression_rules.equality import Kind, kind
from tilesmith.scheduler.rewrites.expression_rules.places import (
    Order,
    Part,
    Place,
    expressions,
    find,
    map_parts,
    operands,
    parts,
    with_expressions,
    with_part,
)
from tilesmith.scheduler.rewrites.expression_rules.proofs import Bounds
from tilesmith.scheduler.rewrites.expression_rules.rule import RuleText
from tilesmith.scheduler.rewrites.refusal import Refusal

MOST_PARTS: Final = 20_000
DEEPEST: Final = 600
"""Limits of the expressions that rules leave: as large and deep as those of documents."""
STEPS_A_PART: Final = 4
FURTHER_STEPS: Final = 1_000
"""Applications in an expression: rules that need more of them have no normal form."""


class Rule(Protocol):
    """A rule over expressions."""

    @property
    def text(self) -> RuleText: ...

    @property
    def name(self) -> str: ...

    @property
    def kinds(self) -> Collection[Kind] | None:
        """The kinds of expressions that it may match; None: any."""

    def rewritten(self, e: Expr, bounds: Bounds, strict: bool) -> Expr | str:
        """`e` rewritten, or why not. `strict`: by what is exact only."""


def apply(rule: Rule, pipeline: Pipeline, place: Place, strict: bool = False) -> Pipeline | Refusal:
    """The pipeline with the expression at a place rewritten."""
    part = find(pipeline, place)
    new = part if isinstance(part, str) else _checked(rule, part.e, Bounds(_root(part)), strict)
    if isinstance(part, str) or isinstance(new, str):
        return Refusal(rule.name, str(place), str(new))
    if not is_small(part.replaced(new)):
        return Refusal(rule.name, str(place), TOO_LARGE)
    return with_part(pipeline, place, part, new)


def matches(
    rule: Rule,
    pipeline: Pipeline,
    stages: Collection[str] | None = None,
    order: Order = "top_down",
    strict: bool = False,
) -> Iterator[Place]:
    """The places where a rule applies, stage by stage, in the pipeline or in some of its `stages`."""
    for stage in pipeline.stages:
        if stages is not None and stage.name not in stages:
            continue
        for whole in expressions(stage):
            bounds = Bounds(whole.e)
            for part in parts(whole, order):
                fits = rule.kinds is None or kind(part.e) in rule.kinds
                if fits and not isinstance(rule.rewritten(part.e, bounds, strict), str):
                    yield Place(stage.name, part.path)


def everywhere(
    rules: Sequence[Rule], pipeline: Pipeline, stages: Collection[str] | None = None, strict: bool = False
) -> Pipeline | Refusal:
    """The pipeline with every part of an expression rewritten once, by the first rule that fits, its own parts before
    it."""
    return _rewritten(rules, pipeline, stages, strict, again=False)


def normalize(
    rules: Sequence[Rule], pipeline: Pipeline, stages: Collection[str] | None = None, strict: bool = False
) -> Pipeline | Refusal:
    """The pipeline rewritten until no rule fits anywhere; the pipeline itself where none does. Refused where there is
    no end to it."""
    return _rewritten(rules, pipeline, stages, strict, again=True)


TOO_LARGE: Final = f"the expression would have more than {MOST_PARTS} parts, or be nested more than {DEEPEST} deep"


class _Refused(Exception):
    def __init__(self, rule: Rule, why: str) -> None:
        self.rule, self.why = rule, why


def _rewritten(
    rules: Sequence[Rule], pipeline: Pipeline, chosen: Collection[str] | None, strict: bool, again: bool
) -> Pipeline | Refusal:
    rewriter = _Rewriter(rules, strict, again)
    stages = []
    for s in pipeline.stages:
        try:
            stages.append(s if chosen is not None and s.name not in chosen else with_expressions(s, rewriter.rewritten))
        except _Refused as refused:
            return Refusal(refused.rule.name, s.name, refused.why)
    same = all(a is b for a, b in zip(stages, pipeline.stages, strict=True))
    return pipeline if same else replace(pipeline, stages=tuple(stages))


class _Rewriter:
    """Rewrites expressions, parts first. Works off a stack of its own."""

    def __init__(self, rules: Sequence[Rule], strict: bool, again: bool) -> None:
        self.rules, self.strict, self.again = rules, strict, again
        self.by_kind: dict[Kind, tuple[Rule, ...]] = {}
        self.steps_left = 0

    def rewritten(self, e: Expr) -> Expr:
        """`e` rewritten; `e` itself where no rule fits."""
        bounds, final = Bounds(e), dict[int, Expr]()
        kept: list[Expr] = []  # what `final` knows by identity
        last: Rule | None = None
        self.steps_left = FURTHER_STEPS + STEPS_A_PART * sum(1 for _ in parts(Part(e, ())))
        tasks: list[tuple[Expr, Expr | None]] = [(e, None)]
        entered: set[int] = set()

        def settle(*nodes: Expr, to: Expr) -> None:
            kept.extend(nodes)
            final.update((id(n), to) for n in nodes)

        while tasks:
            node, link = tasks.pop()
            if link is not None:
                settle(node, to=final[id(link)])
            elif id(node) in final:
                continue
            elif id(node) not in entered:
                entered.add(id(node))
                kept.append(node)
                tasks.append((node, None))
                tasks += [(part, None) for part in operands(node) if id(part) not in final]
            else:
                new = map_parts(node, lambda part: final[id(part)])
                made = self._step(new, bounds)
                if made is None:
                    settle(node, new, to=new)
                    continue
                last, result = made
                if not self.again:
                    settle(node, to=result)
                    continue
                tasks += [(node, result), (result, None)]
        whole = final[id(e)]
        if last is not None and not is_small(whole):
            raise _Refused(last, TOO_LARGE)
        return whole

    def _step(self, e: Expr, bounds: Bounds) -> tuple[Rule, Expr] | None:
        for rule in self._fitting(kind(e)):
            new = _checked(rule, e, bounds, self.strict)
            if not isinstance(new, str):
                self.steps_left -= 1
                if self.steps_left < 0:
                    raise _Refused(rule, "it still fits after very many applications: there is no normal form")
                return rule, new
        return None

    def _fitting(self, of: Kind) -> tuple[Rule, ...]:
        if of not in self.by_kind:
            self.by_kind[of] = tuple(r for r in self.rules if r.kinds is None or of in r.kinds)
        return self.by_kind[of]


def _checked(rule: Rule, e: Expr, bounds: Bounds, strict: bool) -> Expr | str:
    new = rule.rewritten(e, bounds, strict)
    if not isinstance(new, str) and new.type != e.type:
        raise InternalError(f"rule {rule.name!r} makes a value of type {new.type} of one of type {e.type}")
    return new


def _root(part: Part) -> Expr:
    while part.parent is not None:
        part = part.parent
    return part.e


def is_small(e: Expr) -> bool:
    """True if the expression, as a tree, is within the limits. Parts that are shared are looked at once."""
    sizes: dict[int, tuple[int, int]] = {}
    stack = [e]
    while stack:
        inner = children(stack[-1])
        open_ = [p for p in inner if id(p) not in sizes]
        if open_:
            stack += open_
            continue
        measured = [sizes[id(p)] for p in inner]
        sizes[id(stack.pop())] = (1 + sum(n for n, _ in measured), 1 + max((d for _, d in measured), default=0))
    parts, depth = sizes[id(e)]
    return parts <= MOST_PARTS and depth <= DEEPEST
