"""Docstrings begin with the noun of the field, and then say the contract: no question, and no "the same" as another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "tilesmith"
FOLDERS = (
    "app", "cost_models", "platforms", "scheduler/codegen/opencl", "scheduler/frontends",
    "scheduler/rewrites/expression_rules", "scheduler/strategies",
)  # fmt: skip
WRONG = re.compile(r'^\s*"""(What|Whether|How|Where|Of|The same)\b.*', re.M)


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_begin_with_a_noun(folder: str) -> None:
    files = sorted((PACKAGE / folder).rglob("*.py"))
    assert files
    found = [f"{f.name}: {m[0].strip()}" for f in files for m in WRONG.finditer(f.read_text(encoding="utf-8"))]
    assert found == []
