"""Figures of a core: the page that describes them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from tilesmith.platforms.core import ORDINARY, Core

PAGE = Path(__file__).parents[2] / "docs" / "platforms.md"
HEADINGS = {
    "registers": "Registers",
    "instructions": "Instructions",
    "latency_cycles": "Latencies",
    "prefetch": "Prefetching",
    "pages": "Pages",
    "balance": "Balance",
}


def test_the_page_has_every_group() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page[page.index("## Figures of a core") : page.index("## The host")]
    assert re.findall(r"^### (.*)$", section, re.MULTILINE) == list(HEADINGS.values())
    assert list(HEADINGS) == list(Core.model_fields)


@pytest.mark.parametrize("group", HEADINGS)
def test_the_page_has_every_figure_with_its_estimate(group: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page[page.index(f"### {HEADINGS[group]}\n") :]
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", section[: section.index("\n##")], re.MULTILINE)
    figures: BaseModel = getattr(ORDINARY, group)
    assert rows == [(name, estimate(value)) for name, value in figures]


def estimate(value: object) -> str:
    match value:
        case None:
            return "from `vector_bytes`"
        case tuple():
            return "two levels"
        case float():
            return f"{value:g}" if value < 1e5 else f"{value:.0f}"
        case _:
            return str(value)


def test_every_figure_says_what_it_is() -> None:
    groups = [type(group) for _, group in ORDINARY]
    assert [f"{g.__name__}.{n}" for g in groups for n, f in g.model_fields.items() if not f.description] == []
