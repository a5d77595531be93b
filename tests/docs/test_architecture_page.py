"""docs/architecture.md: the packages and files that it names are there, and all packages are named."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_files_of_the_page_are_there() -> None:
    named = re.findall(r"`([a-z_0-9]+/[a-z_0-9/]*(?:\.py)?)`", PAGE)
    assert named
    assert [n for n in named if not (ROOT / n).exists() and not (ROOT / "tilesmith" / "scheduler" / n).exists()] == []


def test_every_package_is_on_the_page() -> None:
    packages = [p.parent for top in ("app", "scheduler") for p in (ROOT / "tilesmith" / top).glob("*/__init__.py")]
    assert [str(p.relative_to(ROOT)) for p in packages if f"`{p.relative_to(ROOT)}`" not in PAGE] == [
        "tilesmith/scheduler/pipelines"
    ]
