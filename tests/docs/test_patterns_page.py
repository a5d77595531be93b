"""docs/patterns.md is held to the code: its examples run, its table is complete, its errors are those that one sees."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tilesmith.app.cli import app
from tilesmith.scheduler.frontends.document.document import load_text
from tilesmith.scheduler.frontends.python import patterns
from tilesmith.scheduler.pipelines import load as shipped

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "patterns.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, found)
    return found


def test_the_first_example(names: dict[str, Any]) -> None:
    assert patterns.type_of(names["photo"]) == patterns.type_of(names["soft"]) == "[n][m] float32"
    assert [stage.name for stage in names["result"].stages] == ["rows", "soft"]


def test_the_example_of_a_name_in_a_function(names: dict[str, Any]) -> None:
    made = patterns.pipeline("shares", {"shares": names["shares"]}, sizes={names["n"]: 8, names["m"]: 8})
    assert [(stage.name, stage.dims) for stage in made.stages] == [("total", ("x",)), ("shares", ("x", "y"))]


def test_the_table_has_all_patterns() -> None:
    listed = {name for line in PAGE.splitlines() for name in re.findall(r"^\| `(\w+)", line)}
    others = {"Array", "Pattern", "PatternError", "Size", "add", "image", "let", "mul", "pipeline", "type_of"}
    assert listed == set(patterns.__all__) - others
    assert others < set(patterns.__all__)


def test_the_types_of_the_table_are_those_of_the_docstrings() -> None:
    for name, type_ in re.findall(r"^\| `(\w+).*?` \| `(.*?)` \|", PAGE, re.MULTILINE):
        assert type_.replace("*", "") in (getattr(patterns, name).__doc__ or "").replace("*", "")


def test_the_errors(names: dict[str, Any]) -> None:
    p, n, m = patterns, names["n"], names["m"]
    first, second = re.findall(r"^    (?:zip|split) at .*: (.*)$", PAGE, re.MULTILINE)
    with pytest.raises(p.PatternError, match=re.escape(first)):
        p.zip(names["photo"], names["photo"] >> p.drop(1, 1))
    with pytest.raises(p.PatternError, match=re.escape(second)):
        p.image("wide", names["float32"], n + 4, m) >> p.split(32)


def test_the_command_prints_harris(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (command,) = re.findall(r"^    tilesmith (import python examples.*)$", PAGE, re.MULTILINE)
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == 0, result.output
    assert load_text(result.output) == shipped("harris")
