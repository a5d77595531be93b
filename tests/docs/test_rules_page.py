"""docs/rules.md is held to the code: its rules are read, its examples run, its tables are complete."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.document.safe_loader import read_yaml
from tilesmith.scheduler.rewrites.expression_rules import document, reader
from tilesmith.scheduler.rewrites.expression_rules.application import DEEPEST, MOST_PARTS
from tilesmith.scheduler.rewrites.expression_rules.conditions import KINDS, special
from tilesmith.scheduler.rewrites.expression_rules.document import RuleDocument, rules_of
from tilesmith.scheduler.rewrites.expression_rules.library import RULES, SIMPLIFICATIONS
from tilesmith.scheduler.rewrites.expression_rules.rule import RuleText

PAGE = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The cells of the tables under a heading."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_rules_of_the_page() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    rules = rules_of([dict(r) for r in read_yaml(f"rules:\n{text}", Limits())["rules"]])
    assert [r.name for r in rules] == ["factor_common", "remainder_to_mask"]


def test_keys() -> None:
    assert [row[0].strip("`") for row in rows("By an example")] == list(RuleDocument.model_fields)


def test_conditions() -> None:
    told = rows("Conditions")
    *special_ones, expression = [row[0].strip("`") for row in told]
    assert all(special(text) is not None for text in special_ones)
    assert special(expression) is None
    assert {k for k in KINDS if not k[-1].isdigit()} == set(re.findall(r"`([a-z]+)`", told[1][1]))


def test_the_message() -> None:
    (shown,) = re.findall(r"```\n(/rules/0.*?)\n```", PAGE, re.DOTALL)
    with pytest.raises(DocumentError) as error:
        rules_of([{"name": "drop", "match": "?a * 0", "result": "0"}], "/rules")
    assert str(error.value) == shown


@pytest.mark.parametrize(("code", "printed"), re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE, re.DOTALL))
def test_python(code: str, printed: str) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {})
    assert out.getvalue() == printed


def test_limits() -> None:
    (text,) = re.findall(r"## Limits\n\n(.*?)\n\n", PAGE, re.DOTALL)
    assert [int(n.replace(",", "")) for n in re.findall(r"[0-9][0-9,]*", text)] == [
        document.MOST_RULES,
        reader.MOST_VARIABLES,
        reader.MOST_TYPES,
        reader.MOST_CONDITIONS,
        reader.LIMITS.expression_nodes,
        reader.LIMITS.expression_chars,
        MOST_PARTS,
        DEEPEST,
    ]


def row(text: RuleText) -> list[str]:
    mark = " *" if text.name in SIMPLIFICATIONS else ""
    conditions = "".join(f", `{c}`" for c in text.where)
    return [f"`{text.name}`{mark}", f"`{text.match}`", f"`{text.result}`", f"{text.exact}{conditions}"]


def test_the_library() -> None:
    assert rows("The library") == [row(text) for text in RULES]
