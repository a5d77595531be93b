"""The machines that are shipped, and their page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilesmith.platforms import Cache, CpuPlatform, OpenClPlatform, Platform, catalog_names, get, load_text

DOCS = Path(__file__).parents[2] / "docs"
PAGE, CATALOG = DOCS / "platforms.md", DOCS / "machines.md"


CPUS = tuple(n for n in catalog_names() if get(n).kind == "cpu")
DEVICES = tuple(n for n in catalog_names() if get(n).kind == "opencl")


def test_the_devices_that_are_there() -> None:
    assert DEVICES == ("intel-hd-530", "nvidia-a100")


def test_the_machines_that_are_there() -> None:
    named = {"i7-6700", "i7-5930K", "cortex-a15", "i5-7500", "cortex-a7", "cortex-a53", "cortex-a73"}
    servers = {n for n in CPUS if get(n).threads >= 64}
    assert named | servers == set(CPUS)
    assert {get(n).triple for n in servers} == {"x86_64-linux-gnu", "aarch64-linux-gnu"}


@pytest.mark.parametrize("name", catalog_names())
def test_every_figure_has_a_source(name: str) -> None:
    platform = get(name)
    assert platform.name == name
    assert platform.description
    assert [figure for figure in platform.figures() if not platform.source_of(figure)] == []


@pytest.mark.parametrize("name", DEVICES)
def test_devices_fit_what_schedules_ask_for(name: str) -> None:
    p = get(name)
    assert isinstance(p, OpenClPlatform)
    assert p.max_work_group_size % p.work_group_multiple == 0
    assert p.vector_bytes == 128
    assert p.l2_bytes == p.caches[0].size_bytes == p.local_memory_bytes
    assert [c.size_bytes for c in p.caches] == sorted(c.size_bytes for c in p.caches)


@pytest.mark.parametrize("name", CPUS)
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
    assert section(CATALOG.read_text(encoding="utf-8"), name) == table(get(name))


def test_the_page_has_no_other_machine() -> None:
    shown = re.findall(r"^## (\S+)$", CATALOG.read_text(encoding="utf-8"), re.MULTILINE)
    assert tuple(sorted(shown)) == catalog_names()


def test_the_page_has_every_key() -> None:
    page = PAGE.read_text(encoding="utf-8")
    described = page[: page.index("## Compilers")]
    keys = re.findall(r"^\| `(\w+)` \|", described, re.MULTILINE)
    assert sorted(keys) == sorted((*CpuPlatform.model_fields, *Cache.model_fields))
    devices = page[page.index("## OpenCL devices") :]
    keys = re.findall(r"^\| `(\w+)` \|", devices, re.MULTILINE)
    shared = {"name", "description", "triple", "core", "compiler", "sources"}
    assert sorted(keys) == sorted(OpenClPlatform.model_fields.keys() - shared)


def test_the_examples_on_the_page_are_platforms() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [load_text(example).name for example in examples] == ["my-board", "my-gpu"]


def table(p: Platform) -> str:
    """The table of a machine in docs/machines.md."""
    rows = [f"{p.description}. Compiler: `{' '.join((p.compiler.command, *p.compiler.flags))}`.", ""]
    rows += ["| figure | value | source |", "|---|---|---|"]
    rows += [f"| `{figure}` | {shown(value)} | {p.source_of(figure)} |" for figure, value in p.figures().items()]
    return "\n".join(rows)


def shown(value: float | bool) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:g}" if value < 1e5 else str(value)


def section(page: str, name: str) -> str:
    """The text under the heading of that machine."""
    match = re.search(rf"^## {re.escape(name)}\n\n(.*?)(?=\n+##|\Z)", page, re.MULTILINE | re.DOTALL)
    assert match, f"docs/machines.md has no section for {name}"
    return match[1].strip()
