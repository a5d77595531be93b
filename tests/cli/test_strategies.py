"""--strategy, --trace, --as-strategy, `rules` and `strategies`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tilesmith.app.cli import app
from tilesmith.scheduler.strategies import catalog
from tilesmith.scheduler.strategies.rules import names

MACHINE = ("--platform", "i7-6700")


def tilesmith(*arguments: object, status: int = 0) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == status, result.output
    return str(result.output)


def test_a_strategy_makes_the_schedule_and_tells_its_steps(tmp_path: Path) -> None:
    told = tilesmith("schedule", "blur", *MACHINE, "--strategy", "cbuf", "--trace")
    assert "blur for i7-6700 by strategy" in told
    assert "store_circular at blur_x (along y)" in told
    file = tmp_path / "mine.yaml"
    file.write_text(tilesmith("schedule", "blur", *MACHINE, "--strategy", "cbuf", "--as-strategy"), encoding="utf-8")
    both = [
        json.loads(tilesmith("schedule", "blur", *MACHINE, "--strategy", s, "--json"))["groups"] for s in ("cbuf", file)
    ]
    assert both[0] == both[1]
    assert "1. tile at blur_y" in tilesmith("explain", "blur", *MACHINE, "--strategy", file)


def test_what_does_not_fit_is_told(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("strategy: mine\nsteps: [{inline: {stage: blur_y}}]\n", encoding="utf-8")
    assert "inline at blur_y: it is an output" in tilesmith("schedule", "blur", *MACHINE, "--strategy", file, status=3)
    file.write_text("strategy: mine\nsteps: [{inlin: {stage: blur_x}}]\n", encoding="utf-8")
    told = tilesmith("schedule", "blur", *MACHINE, "--strategy", file, status=2)
    assert "/steps/0/inlin" in told
    assert "did you mean 'inline'?" in told
    file.write_text(
        "strategy: mine\nrules: [{name: r, match: '?a + f(?b)', result: '?a'}]\nsteps: []\n",
        encoding="utf-8",
    )
    told = tilesmith("schedule", "blur", *MACHINE, "--strategy", file, status=2)
    assert f"{file}:2:32: No input, stage or function is called 'f'." in told
    assert "    at /rules/0/match, of rule 'r'\n" in told
    assert "did you mean 'cbuf'?" in tilesmith("schedule", "blur", *MACHINE, "--strategy", "cbuff", status=2)
    for other in (("--fix", "blur_x.compute=inline"), ("--tune", 2), ("--method", "taco2019")):
        assert "does not go with it" in tilesmith("schedule", "blur", *MACHINE, "--strategy", "cbuf", *other, status=2)


def test_strategies_are_listed_and_shown() -> None:
    assert [s["name"] for s in json.loads(tilesmith("strategies", "--json"))] == list(catalog.names())
    assert tilesmith("strategies", "show", "cbuf").strip() == catalog.text("cbuf").strip()
    assert "did you mean" in tilesmith("strategies", "show", "cbuff", status=2)


def test_rules_are_listed_with_drawing_and_exactness() -> None:
    listed = json.loads(tilesmith("rules", "--json"))
    assert [r["name"] for r in listed] == list(names())
    assert all("->" in r["drawing"] and r["exactness"] and r["example"]["pipeline"] for r in listed)
    assert "tile  [exact]  Loops over tiles" in tilesmith("rules")


@pytest.mark.parametrize("name", ["tile", "split_separable", "factor_common"])
def test_one_rule_is_told_whole(name: str) -> None:
    told = tilesmith("rules", name)
    assert told.startswith(f"{name}  [")
    assert "example:" in told
    assert f"under --strict: {'as it is' if name == 'tile' else 'refused where floats'}" in told
    assert "did you mean" in tilesmith("rules", name + "s", status=2)
