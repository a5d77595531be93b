"""Strategies <-> documents: plain data, read safely within limits, every problem with its place and what to do.

strategy: cbuf
doc: Rows in circular buffers.
steps:
  - inline: {where: is pointwise}
  - at: {where: is an output, do: [{tile: {sizes: {y: 32}}}, parallel, vectorize]}
  - search

A step is a rule, or a combinator. Both are a word, or a mapping of one key with arguments; a list is one after the
other. The arguments of a rule may have `stage` (a name, or several) or `where` (a predicate): the rule is made there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import yaml

from tilesmith.platforms import Platform
from tilesmith.scheduler.errors import DocumentError, Problem
from tilesmith.scheduler.frontends.document.diagnostics import pointer
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.document.names import close_to
from tilesmith.scheduler.frontends.document.safe_loader import read_json, read_yaml, sniff_yaml
from tilesmith.scheduler.ir.pass_manager import Observer
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.expression_rules import document as rule_documents
from tilesmith.scheduler.rewrites.expression_rules.rule import ExpressionRule
from tilesmith.scheduler.search import SearchOptions, SearchResult
from tilesmith.scheduler.strategies import combinators as c
from tilesmith.scheduler.strategies import predicates, steps
from tilesmith.scheduler.strategies.combinators import Strategy
from tilesmith.scheduler.strategies.predicates import Predicate
from tilesmith.scheduler.strategies.registry import RULES, Rule, Step
from tilesmith.scheduler.strategies.run import schedule_by
from tilesmith.scheduler.strategies.steps.expressions import NAMES, built_in, rule_of

__all__ = ["StrategyDocument", "document_words", "from_document", "load_text", "steps_from_document", "to_yaml"]

KEYS = ("strategy", "doc", "rules", "steps")
MAX_STEPS = 10_000
MAX_NAMES = 10_000
NAME = r"[A-Za-z_][A-Za-z0-9_+-]{0,63}"
LIMITS = Limits()
_REGISTERED = steps  # importing them has made the rules

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class StrategyDocument:
    """A strategy with its name, what it is for, and rules over expressions of its own."""

    name: str
    strategy: Strategy
    doc: str = ""
    rules: tuple[ExpressionRule, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """The strategy as plain data: from_document(s.to_document()) == s."""
        steps = _written(self.strategy)
        said: dict[str, Any] = {"doc": self.doc} if self.doc else {}
        if self.rules:
            said["rules"] = [rule_documents.to_document(rule.text) for rule in self.rules]
        return {"strategy": self.name, **said, "steps": steps if isinstance(steps, list) else [steps]}

    def schedule(
        self, pipeline: Pipeline, platform: Platform, options: SearchOptions, observer: Observer | None = None
    ) -> SearchResult:
        """The schedule that the strategy makes: see `run.schedule_by`."""
        return schedule_by(self.strategy, pipeline, platform, options, observer)


def load_text(text: str | bytes, limits: Limits = LIMITS) -> StrategyDocument:
    """The strategy of YAML or JSON text; raises DocumentError with every problem."""
    return from_document(read_yaml(text, limits) if sniff_yaml(text) else read_json(text, limits))


def from_document(document: object) -> StrategyDocument:
    """The strategy of plain data; raises DocumentError with every problem."""
    if not isinstance(document, Mapping):
        raise DocumentError((Problem("bad_type", "", "a strategy is an object with keys", ", ".join(KEYS)),))
    reader = _Reader()
    for key in document:
        if key not in KEYS:
            hint = close_to(str(key), KEYS) or f"keys: {', '.join(KEYS)}"
            reader.problem("unknown_key", (str(key)[:80],), f"there is no key '{str(key)[:64]}'", hint)
    name, doc = document.get("strategy"), document.get("doc", "")
    if not isinstance(name, str) or not _is_name(name):
        message = "the strategy has a name of letters, digits, '_', '+' and '-'"
        reader.problem("bad_value" if "strategy" in document else "missing_key", ("strategy",), message)
    if not isinstance(doc, str) or len(doc) > LIMITS.expression_chars:
        reader.problem("bad_value", ("doc",), "a text is expected")
    if "steps" not in document:
        reader.problem("missing_key", ("steps",), "the steps are missing", "`steps: [search]` is the default method")
    rules = reader.own_rules(document.get("rules", []))
    made = reader.strategy(document.get("steps", []), ("steps",))
    reader.done()
    return StrategyDocument(str(name), made, str(doc), rules)


def steps_from_document(document: object) -> Strategy:
    """The strategy of the steps of a document alone; raises DocumentError with every problem."""
    reader = _Reader()
    made = reader.strategy(document, ("steps",))
    reader.done()
    return made


def to_yaml(document: StrategyDocument) -> str:
    """A strategy as YAML, a step a line where it fits."""
    said = document.to_document()
    head = yaml.safe_dump({k: v for k, v in said.items() if k != "steps"}, sort_keys=False, width=110)
    steps = (yaml.safe_dump(s, default_flow_style=True, sort_keys=False, width=10_000) for s in said["steps"])
    lines = [f"  - {text.removesuffix('...').strip().removesuffix('...').strip()}" for text in steps]
    return head + "\n".join(["steps:" if lines else "steps: []", *lines]) + "\n"


def document_words() -> tuple[str, ...]:
    """The words of documents that are no rules: combinators, `skip` and `fail`."""
    return (*_COMBINATORS, *_WORDS)


@dataclass(slots=True)
class _Reader:
    """Reads steps, and collects what is wrong with them."""

    problems: list[Problem] = field(default_factory=list)
    steps: int = 0
    own: dict[str, Rule] = field(default_factory=dict)

    def own_rules(self, document: object) -> tuple[ExpressionRule, ...]:
        """The rules that the document brings, for its steps."""
        try:
            rules = rule_documents.rules_of(document, "/rules")
        except DocumentError as error:
            self.problems += error.problems
            return ()
        for n, rule in enumerate(rules):
            if rule.name in RULES or rule.name in NAMES or rule.name in _WORDS or rule.name in _COMBINATORS:
                self.problem("duplicate_name", ("rules", n, "name"), f"there is a rule or a step '{rule.name}' already")
            self.own[rule.name] = rule_of(rule, rule.text)
        return rules

    def known(self, name: str) -> Rule | None:
        """The rule of that name: one that the document brings, one that is registered, or one of the algebra."""
        return self.own.get(name) or RULES.get(name) or (built_in(name) if name in NAMES else None)

    def problem(self, code: str, place: Place, message: str, hint: str | None = None) -> None:
        """Raises DocumentError when there are as many as are told: nobody reads more, and each costs time."""
        self.problems.append(Problem(code, pointer(*place), message, hint))
        if len(self.problems) >= LIMITS.problems:
            self.done()

    def done(self) -> None:
        """Raises DocumentError where there were problems."""
        if self.problems:
            raise DocumentError(tuple(self.problems))

    def strategy(self, document: object, place: Place) -> Strategy:
        """The strategy that a step says; a refusing one in the place of what is wrong."""
        self.steps += 1
        if self.steps == MAX_STEPS + 1:
            self.problem("limit_exceeded", place, f"a strategy has at most {MAX_STEPS} steps")
        if len(place) > 2 * LIMITS.nesting:
            self.problem("document_too_deep", place[:3], f"steps are nested more than {LIMITS.nesting} deep")
            return c.Fail()
        if self.steps > MAX_STEPS:
            return c.Fail()
        match document:
            case str():
                return self._named(document, {}, place, bare=True)
            case list():
                return c.seq(*(self.strategy(d, (*place, n)) for n, d in enumerate(document))) if document else c.Skip()
            case {**entry} if len(entry) == 1:
                ((name, arguments),) = entry.items()
                return self._named(str(name), arguments, (*place, str(name)), bare=False)
        hint = "a word such as `search`, or one key with arguments such as `tile: {stage: blur, sizes: {y: 32}}`"
        self.problem("bad_value", place, "this is no step", hint)
        return c.Fail()

    def _named(self, name: str, arguments: object, place: Place, bare: bool) -> Strategy:
        words = _WORDS if bare else _COMBINATORS
        if name in words:
            return words[name](self, arguments, place)
        rule = self.known(name)
        if rule is None:
            known = (*self.own, *RULES, *_WORDS, *_COMBINATORS, *sorted(NAMES))
            kind = "needs arguments" if bare and name in _COMBINATORS else "is no step"
            hint = close_to(name, known) or "`tilesmith rules` lists them"
            self.problem("unknown_name", place, f"'{name[:64]}' {kind}", None if name in known else hint)
            return c.Fail()
        return self.rule(rule, arguments, place)

    def rule(self, rule: Rule, arguments: object, place: Place) -> Strategy:
        """A rule with its arguments, at a place where these name one."""
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, Mapping):
            self.problem("bad_value", place, f"the arguments of {rule.name} are an object")
            return c.Fail()
        own = {str(k): v for k, v in arguments.items() if k not in ("stage", "where")}
        try:
            step: Strategy = rule.step(own, place)
        except DocumentError as error:
            for p in error.problems:
                self.problem(p.code, (), p.message, p.hint) if not p.pointer else self.problems.append(p)
            step = c.Fail()
        if len(own) == len(arguments):
            return step
        return c.At(self.where(arguments, place), step)

    def where(self, arguments: Mapping[Any, object], place: Place) -> tuple[str, ...] | Predicate:
        """The stages that `stage` or `where` name."""
        if "stage" in arguments and "where" in arguments:
            self.problem("bad_value", place, "stages are named by `stage` or by `where`, not by both")
        if "where" in arguments:
            try:
                return predicates.from_document(arguments["where"], (*place, "where"))
            except DocumentError as error:
                self.problems += error.problems
                return ()
        stage = arguments.get("stage")
        names = stage if isinstance(stage, list) else [stage]
        if not all(isinstance(n, str) and len(n) <= 64 for n in names) or len(names) > MAX_NAMES:
            self.problem("bad_value", (*place, "stage"), "the name of a stage is expected, or a list of names")
            return ()
        return tuple(names)

    def arguments(self, document: object, place: Place, *known: str) -> Mapping[str, object]:
        """The arguments of a combinator; what is unknown or missing is a problem."""
        if not isinstance(document, Mapping):
            self.problem("bad_value", place, f"an object is expected, with {', '.join(known)}")
            return {}
        for key in document:
            if key not in known:
                hint = close_to(str(key), known) or f"keys: {', '.join(known)}"
                self.problem("unknown_key", (*place, str(key)[:80]), "there is no such key", hint)
        return cast(Mapping[str, object], document)

    def listed(self, document: object, place: Place) -> tuple[Strategy, ...]:
        """Several strategies."""
        if not isinstance(document, list) or not document:
            self.problem("bad_value", place, "a list of steps is expected")
            return (c.Fail(),)
        return tuple(self.strategy(d, (*place, n)) for n, d in enumerate(document))

    def times(self, arguments: Mapping[str, object], place: Place) -> int:
        times = arguments.get("times", c.MOST)
        if not isinstance(times, int) or isinstance(times, bool) or not 1 <= times <= c.MOST:
            self.problem("bad_value", (*place, "times"), f"a number from 1 to {c.MOST} is expected")
            return 1
        return times


Make = Callable[[_Reader, object, Place], Strategy]


def _several(make: Callable[[tuple[Strategy, ...]], Strategy], r: _Reader, document: object, place: Place) -> Strategy:
    return make(r.listed(document, place))


def _one(make: Callable[[Strategy], Strategy], r: _Reader, document: object, place: Place) -> Strategy:
    return make(r.strategy(document, place))


def _bounded(make: Callable[[Strategy, int], Strategy], r: _Reader, document: object, place: Place) -> Strategy:
    if isinstance(document, Mapping) and "do" in document:
        given = r.arguments(document, place, "do", "times")
        return make(r.strategy(given.get("do"), (*place, "do")), r.times(given, place))
    return make(r.strategy(document, place), c.MOST)


def _at(r: _Reader, document: object, place: Place) -> Strategy:
    given = r.arguments(document, place, "stage", "where", "do")
    if not {"stage", "where"} & given.keys() or "do" not in given:
        r.problem("missing_key", place, "`at` has `stage` or `where`, and `do`")
        return c.Fail()
    return c.At(r.where(given, place), r.strategy(given["do"], (*place, "do")))


def _best(r: _Reader, document: object, place: Place) -> Strategy:
    given = r.arguments(document, place, "count", "of", "then")
    count = given.get("count")
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= 100:
        r.problem("bad_value", (*place, "count"), "a number from 1 to 100 is expected")
        count = 1
    then = r.strategy(given["then"], (*place, "then")) if "then" in given else c.Skip()
    return c.Best(count, r.listed(given.get("of"), (*place, "of")), then)


def _traversal(outputs_first: bool) -> Callable[[Strategy], Strategy]:
    return lambda step: c.Traversal(step, outputs_first)


_COMBINATORS: dict[str, Make] = {
    "seq": partial(_several, lambda listed: c.seq(*listed)),
    "first": partial(_several, c.First),
    "try": partial(_one, c.Try),
    "repeat": partial(_bounded, c.Repeat),
    "at": _at,
    "all": partial(_one, c.All),
    "once": partial(_one, c.Once),
    "top_down": partial(_one, _traversal(True)),
    "bottom_up": partial(_one, _traversal(False)),
    "normalize": partial(_bounded, c.Normalize),
    "together": partial(_several, c.Together),
    "cheapest": partial(_several, partial(c.Best, 1)),
    "best": _best,
}
_WORDS: dict[str, Make] = {
    "skip": lambda r, document, place: c.Skip(),
    "fail": lambda r, document, place: c.Fail(),
}


def _written(s: Strategy) -> Any:
    """A strategy as the steps of a document."""
    match s:
        case Step(rule):
            return {rule.name: s.to_document()} if s.to_document() else rule.name
        case c.At(where, Step(rule) as step):
            return {rule.name: {**_place(where), **step.to_document()}}
        case c.At(where, step):
            return {"at": {**_place(where), "do": _written(step)}}
        case c.Skip():
            return "skip"
        case c.Fail():
            return "fail"
        case c.Seq(steps):
            return [_written(step) for step in steps]
        case c.First(steps):
            return {"first": [_written(step) for step in steps]}
        case c.Together(steps):
            return {"together": [_written(step) for step in steps]}
        case c.Best(1, steps, c.Skip()):
            return {"cheapest": [_written(step) for step in steps]}
        case c.Best(count, steps, then):
            return {"best": {"count": count, "of": [_written(step) for step in steps], "then": _written(then)}}
        case c.Try(step):
            return {"try": _written(step)}
        case c.All(step):
            return {"all": _written(step)}
        case c.Once(step):
            return {"once": _written(step)}
        case c.Traversal(step, outputs_first):
            return {"top_down" if outputs_first else "bottom_up": _written(step)}
        case c.Repeat(step, times):
            return {"repeat": _with_times(step, times)}
        case c.Normalize(step, times):
            return {"normalize": _with_times(step, times)}
    raise TypeError(f"{type(s).__name__} has no form in documents")


def _with_times(step: Strategy, times: int) -> Any:
    return _written(step) if times == c.MOST else {"do": _written(step), "times": times}


def _place(where: tuple[str, ...] | Predicate) -> dict[str, Any]:
    if isinstance(where, Predicate):
        return {"where": where.to_document()}
    return {"stage": where[0] if len(where) == 1 else list(where)}


def _is_name(name: str) -> bool:
    return re.fullmatch(NAME, name) is not None
