"""docs/strategies.md: every combinator, predicate and rule of the page exists, and its examples work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilesmith.platforms.catalog import get
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.strategies.document import document_words, load_text
from tilesmith.scheduler.strategies.predicates import FACTS
from tilesmith.scheduler.strategies.registry import RULES
from tilesmith.scheduler.strategies.rules import names
from tilesmith.scheduler.strategies.state import State, begin

PAGE = (Path(__file__).parents[2] / "docs" / "strategies.md").read_text(encoding="utf-8")
YAML = re.findall(r"```yaml\n(.*?)```", PAGE, re.S)
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@pytest.mark.parametrize("text", YAML, ids=lambda t: t.split()[1])
def test_documents_of_the_page_make_schedules(text: str) -> None:
    document = load_text(text)
    made = document.strategy(begin(pipelines.load("blur"), get("i7-6700")))
    assert isinstance(made, State), str(made)


@pytest.mark.parametrize("text", PYTHON, ids=lambda t: t.split()[1])
def test_python_of_the_page_runs(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = set(RULES)
    try:
        exec(compile(text, "docs/strategies.md", "exec"), {})
    finally:
        for name in set(RULES) - before:
            del RULES[name]


def test_every_combinator_is_on_the_page() -> None:
    table = PAGE.split("## Combinators")[1].split("## Predicates")[0]
    assert all(re.search(rf"`{word}\b", table) for word in document_words())


def test_every_predicate_is_on_the_page() -> None:
    table = PAGE.split("## Predicates")[1].split("## Rules")[0]
    assert all(f"`{phrase.replace('{dim}', 'y')}`" in table for phrase in FACTS)
    assert {
        p.replace(" y`", " {dim}`").strip("`") for p in re.findall(r"`(?:is|has|reads|reduces)[^`]*`", table)
    } == set(FACTS)


def test_every_rule_that_is_named_exists() -> None:
    section = PAGE.split("## Rules")[1].split("A document may bring")[0]
    named = set(re.findall(r"`([a-z_]+)`", section))
    assert named - set(names()) == set()
    assert {n for n in RULES if n not in section} <= {
        "lower_boundaries", "order_reductions", "specialize_scans", "eliminate_symmetric_pairs", "hoist_parameters",
        "narrow_integers", "interleave_channels", "tabulate_weights", "factor_exponentials",
        "distribute_scatters",
    }  # fmt: skip
