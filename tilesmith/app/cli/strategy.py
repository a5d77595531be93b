"""`rules` and `strategies`: what there is to write strategies with, and those that are shipped; --strategy; steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from tilesmith.app.cli.listings import table
from tilesmith.app.cli.report import BadDocument, UsageError, print_json
from tilesmith.app.cli.sources import load_text, suggestion
from tilesmith.scheduler.errors import DocumentError

if TYPE_CHECKING:
    from tilesmith.platforms import Platform
    from tilesmith.scheduler.ir.plan import Plan
    from tilesmith.scheduler.strategies.document import StrategyDocument
    from tilesmith.scheduler.strategies.registry import Rule

STRICT = {
    "exact": "as it is",
    "rounding": "refused where floats would be computed in another order",
    "approximate": "refused",
}


def load(name: str) -> StrategyDocument:
    """The strategy of --strategy: a shipped name, or a JSON or YAML file. Raises UsageError, BadDocument."""
    from tilesmith.scheduler.strategies import catalog, document

    if name in catalog.names():
        return catalog.load(name)
    text = load_text(name, "strategy", catalog.names(), "shipped strategies")
    try:
        return document.load_text(text)
    except DocumentError as error:
        raise BadDocument(error.problems, name, text) from None


def as_strategy(plan: Plan, platform: Platform) -> str:
    """The YAML of the strategy that makes a schedule."""
    from tilesmith.scheduler.strategies.document import to_yaml
    from tilesmith.scheduler.strategies.recorded import recorded

    return to_yaml(recorded(plan, platform, plan.written.name))


def strategies(as_json: bool) -> None:
    """Prints name and doc of every shipped strategy."""
    from tilesmith.scheduler.strategies import catalog

    docs = {name: catalog.load(name).doc for name in catalog.names()}
    if as_json:
        print_json([{"name": name, "doc": doc} for name, doc in docs.items()])
    else:
        table(docs)


def show_strategy(name: str) -> None:
    """Prints the document of a shipped strategy."""
    from tilesmith.scheduler.strategies import catalog

    if name not in catalog.names():
        hint = suggestion(name, catalog.names(), "shipped strategies")
        raise UsageError((f"no strategy {name!r} is shipped", hint))
    typer.echo(catalog.text(name).rstrip())


def rules(name: str | None, as_json: bool) -> None:
    """Prints every rule with whether it is exact, and its drawing; or one with all that there is to say."""
    from tilesmith.scheduler.strategies.rules import names, rule

    if name is not None and name not in names():
        raise UsageError((f"there is no rule {name!r}", suggestion(name, names(), "rules")))
    found = [rule(n) for n in (names() if name is None else (name,))]
    if as_json:
        print_json([_document(r) for r in found] if name is None else _document(found[0]))
        return
    typer.echo("\n\n".join(_in_words(r, name is not None) for r in found))


def _document(r: Rule) -> dict[str, Any]:
    return {
        "name": r.name,
        "summary": r.summary,
        "exactness": r.exactness,
        "place": r.place,
        "parameters": list(r.parameters.model_fields),
        "drawing": r.drawing,
        "conditions": r.conditions,
        "example": {"pipeline": r.example.pipeline, "steps": r.example.steps},
    }


def _in_words(r: Rule, whole: bool) -> str:
    lines = [f"{r.name}  [{r.exactness}]  {r.summary}", *(f"    {line}" for line in r.drawing.splitlines())]
    if whole:
        takes = ", ".join(name if f.is_required() else f"{name}?" for name, f in r.parameters.model_fields.items())
        lines += ["", f"takes: {takes or 'nothing'}"] + ([f"where: {r.conditions}"] if r.conditions else [])
        lines += [f"under --strict: {STRICT[r.exactness]}"]
        lines += ["example:", *(f"    {line}" for line in _example(r))]
    return "\n".join(lines)


def _example(r: Rule) -> list[str]:
    pipeline = r.example.pipeline.strip("\n")
    if not r.example.steps:
        return [pipeline]
    return [*pipeline.splitlines(), f"steps: {r.example.steps}"]
