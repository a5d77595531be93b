"""Docstrings begin with the noun of the field, and then say the contract: no question, and no "the same" as another."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "tilesmith"
WRONG = re.compile(r'^\s*"""(What|Whether|Which|Who|How|Where|Of|Those|The same)\b.*', re.M)


def test_docstrings_begin_with_a_noun() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    assert files
    found = [f"{f.name}: {m[0].strip()}" for f in files for m in WRONG.finditer(f.read_text(encoding="utf-8"))]
    assert found == []
