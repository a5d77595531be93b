"""Rules in documents: a list of objects, read and verified before any is used.

{"name": "factor_common", "match": "?a * ?k + ?b * ?k", "result": "(?a + ?b) * ?k", "exact": "rounding"}
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from tilesmith.scheduler.errors import DocumentError, Problem
from tilesmith.scheduler.frontends.document.diagnostics import pointer
from tilesmith.scheduler.frontends.document.schema import Identifier
from tilesmith.scheduler.rewrites.expression_rules.reader import MOST_CONDITIONS, read
from tilesmith.scheduler.rewrites.expression_rules.rule import Exactness, ExpressionRule, RuleText
from tilesmith.scheduler.rewrites.expression_rules.verification import check

MOST_RULES: Final = 32

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


_RULES = TypeAdapter(Annotated[list[RuleDocument], Field(max_length=MOST_RULES)])


def rules_of(document: object, where: str = "") -> tuple[ExpressionRule, ...]:
    """The rules of a document (parsed JSON), which stand at a pointer in it. Raises DocumentError with every problem:
    of the form, of the language, and where the sides of a rule have other values, which these are."""
    try:
        parsed = _RULES.validate_python(document)
    except ValidationError as error:
        raise DocumentError(tuple(_problem(d, where) for d in error.errors(include_url=False))) from None
    problems, rules = list[Problem](), list[ExpressionRule]()
    for n, rule in enumerate(parsed):
        here = f"{where}/{n}"
        if any(rule.name == r.name for r in parsed[:n]):
            problems.append(Problem("duplicate_name", f"{here}/name", f"Two rules are called {rule.name!r}."))
        try:
            rules.append(check(read(to_text(rule), here), here))
        except DocumentError as error:
            problems += error.problems
    if problems:
        raise DocumentError(tuple(problems))
    return tuple(rules)


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
    codes = {"missing": "missing_key", "extra_forbidden": "unknown_key", "too_long": "limit_exceeded"}
    return Problem(codes.get(found["type"], "bad_value"), where + pointer(*found["loc"]), f"{found['msg']}.")
