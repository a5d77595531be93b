"""The machines that are shipped, and their page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from platforms import Cache, CpuPlatform, catalog_names, get, load_text

PAGE = Path(__file__).parents[2] / "docs" / "platforms.md"


def test_the_machines_that_are_there() -> None:
    named = {"i7-6700", "i7-5930K", "cortex-a15", "i5-7500", "cortex-a7", "cortex-a53", "cortex-a73"}
    servers = {n for n in catalog_names() if get(n).threads >= 64}
    assert named | servers == set(catalog_names())
    assert {get(n).triple for n in servers} == {"x86_64-linux-gnu", "aarch64-linux-gnu"}


@pytest.mark.parametrize("name", catalog_names())
def test_every_figure_has_a_source(name: str) -> None:
    platform = get(name)
    assert platform.name == name
    assert platform.description
    assert [figure for figure in platform.figures() if not platform.source_of(figure)] == []


@pytest.mark.parametrize("name", catalog_names())
def test_figures_agree_with_each_other(name: str) -> None:
    p = get(name)
    assert p.threads % p.threads_per_core == 0
    assert p.caches[0].shared_by_threads == p.threads_per_core
    assert all(c.size_bytes % c.line_bytes == 0 for c in p.caches)
    assert all(c.shared_by_threads <= p.threads for c in p.caches)
    latencies = [c.latency_cycles for c in p.caches]
    assert latencies == sorted(latencies)
    assert p.compiler.command.startswith("gcc") == p.triple.startswith("x86_64")


@pytest.mark.parametrize("name", catalog_names())
def test_the_page_has_the_catalog(name: str) -> None:
    assert section(PAGE.read_text(encoding="utf-8"), name) == table(get(name))


def test_the_page_has_no_other_machine() -> None:
    shown = re.findall(r"^### (\S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert tuple(sorted(shown)) == catalog_names()


def test_the_page_has_every_key() -> None:
    page = PAGE.read_text(encoding="utf-8")
    described = page[: page.index("## Compilers")]
    keys = re.findall(r"^\| `(\w+)` \|", described, re.MULTILINE)
    assert sorted(keys) == sorted((*CpuPlatform.model_fields, *Cache.model_fields))


def test_the_example_on_the_page_is_a_platform() -> None:
    example = re.search(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    assert load_text(example[1]).name == "my-board"


def table(p: CpuPlatform) -> str:
    """The table of a machine in docs/platforms.md."""
    rows = [f"{p.description}. Compiler: `{' '.join((p.compiler.command, *p.compiler.flags))}`.", ""]
    rows += ["| figure | value | source |", "|---|---|---|"]
    rows += [f"| `{figure}` | {shown(value)} | {p.source_of(figure)} |" for figure, value in p.figures().items()]
    return "\n".join(rows)


def shown(value: float | bool) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:g}" if value < 1e5 else str(value)


def section(page: str, name: str) -> str:
    """The text under the heading of that machine."""
    match = re.search(rf"^### {re.escape(name)}\n\n(.*?)(?=\n+##|\Z)", page, re.MULTILINE | re.DOTALL)
    assert match, f"docs/platforms.md has no section for {name}"
    return match[1].strip()
