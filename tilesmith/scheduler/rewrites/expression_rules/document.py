"""Rules in documents: a list of objects, read and verified before any is used.

{"name": "factor_common", "match": "?a * ?k + ?b * ?k", "result": "(?a + ?b) * ?k", "exact": "rounding"}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Final, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from tilesmith.scheduler.errors import DocumentError, Problem
from tilesmith.scheduler.frontends.document.diagnostics import pointer
from tilesmith.scheduler.frontends.document.names import close_to
from tilesmith.scheduler.frontends.document.schema import Identifier
from tilesmith.scheduler.rewrites.expression_rules.reader import MOST_CONDITIONS, read
from tilesmith.scheduler.rewrites.expression_rules.rule import Exactness, ExpressionRule, RuleText
from tilesmith.scheduler.rewrites.expression_rules.verification import check

MOST_RULES: Final = 32
EXACTNESS: Final[tuple[str, ...]] = get_args(Exactness)

_Text = Annotated[str, StringConstraints(max_length=1000)]


class RuleDocument(BaseModel):
    """A rule; `where` is a condition, or a list of them."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Identifier
    match: _Text
    result: _Text
    exact: Exactness = "exact"
    where: Annotated[
        list[_Text], Field(max_length=MOST_CONDITIONS), BeforeValidator(lambda w: [w] if isinstance(w, str) else w)
    ] = []


def rules_of(document: object, where: str = "") -> tuple[ExpressionRule, ...]:
    """The rules of a document (parsed JSON), which stand at a pointer in it. Raises DocumentError with every problem:
    of the form, of the language, and where the sides of a rule have other values, which these are."""
    if not isinstance(document, list):
        raise DocumentError((Problem("bad_value", where, "A list of rules is expected."),))
    if len(document) > MOST_RULES:
        message = f"There are {len(document)} rules, {MOST_RULES} are allowed."
        raise DocumentError((Problem("limit_exceeded", where, message),))
    problems, rules, names = list[Problem](), list[ExpressionRule](), set[str]()
    for n, said in enumerate(document):
        here = f"{where}/{n}"
        try:
            rule = _rule(said, here)
            if rule.name in names:
                problems.append(Problem("duplicate_name", f"{here}/name", f"Two rules are called {rule.name!r}."))
            names.add(rule.name)
            rules.append(check(read(to_text(rule), here), here))
        except DocumentError as error:
            problems += _as_written(error.problems, said, here)
    if problems:
        raise DocumentError(tuple(problems))
    return tuple(rules)


def _as_written(problems: Iterable[Problem], said: object, where: str) -> Iterator[Problem]:
    """The problems, those of a condition that stands alone at its own place: it is no list."""
    alone = isinstance(said, Mapping) and isinstance(said.get("where"), str)
    for p in problems:
        yield replace(p, pointer=f"{where}/where") if alone and p.pointer == f"{where}/where/0" else p


def _rule(document: object, where: str) -> RuleDocument:
    try:
        return RuleDocument.model_validate(document)
    except ValidationError as error:
        raise DocumentError(tuple(_problem(d, where) for d in error.errors(include_url=False))) from None


def to_text(rule: RuleDocument) -> RuleText:
    """The rule as it is written."""
    return RuleText(rule.name, rule.match, rule.result, rule.exact, tuple(rule.where))


def to_document(rule: RuleText) -> dict[str, object]:
    """The document of a rule, without what is default."""
    document: dict[str, object] = {"name": rule.name, "match": rule.match, "result": rule.result}
    if rule.exact != "exact":
        document["exact"] = rule.exact
    if rule.where:
        document["where"] = list(rule.where)
    return document


def _problem(found: ErrorDetails, where: str) -> Problem:
    at, known = where + pointer(*found["loc"]), tuple(RuleDocument.model_fields)
    match found["type"]:
        case "missing":
            return Problem("missing_key", at, f"The rule has no '{found['loc'][-1]}'.")
        case "extra_forbidden":
            key = str(found["loc"][-1])[:64]
            return Problem(
                "unknown_key", at, f"A rule has no '{key}'.", close_to(key, known) or f"keys: {', '.join(known)}"
            )
        case "literal_error":
            return Problem("bad_value", at, f"One of {', '.join(EXACTNESS)} is expected.")
        case "string_type":
            return Problem(
                "bad_value", at, "A text is expected.", "quotes make a text of numbers and of true and false"
            )
        case "model_type":
            return Problem("bad_value", at, "A rule is an object.", "such as {name: ..., match: ..., result: ...}")
        case "too_long" | "string_too_long":
            return Problem("limit_exceeded", at, f"{found['msg']}.")
    return Problem("bad_value", at, f"{found['msg']}.")
