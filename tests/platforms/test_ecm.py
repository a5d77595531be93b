"""Parameters of the cost model `ecm`: documents, and what follows from a platform's other figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilesmith.platforms import catalog, parse, to_document
from tilesmith.platforms.ecm import TYPES, EcmParameters, TypeCycles, derived
from tilesmith.platforms.errors import PlatformError

PAGE = Path(__file__).parents[2] / "docs" / "platforms.md"


@pytest.mark.parametrize("name", catalog.catalog_names())
def test_every_platform_has_parameters(name: str) -> None:
    platform = catalog.load(name)
    found = platform.ecm_parameters
    assert found == derived(platform)
    assert [level.level for level in found.levels] == [c.level for c in platform.caches[1:]]
    assert found.memory_gb_s_one_thread <= found.memory_gb_s


def test_parameters_survive_a_document() -> None:
    platform = catalog.load("i7-6700")
    assert "ecm" not in to_document(platform)
    given = platform.model_copy(update={"ecm": derived(platform).model_copy(update={"row_start_ns": 11.0})})
    assert parse(to_document(given)) == given
    assert given.ecm_parameters.row_start_ns == 11


def test_unknown_keys_are_named() -> None:
    document = to_document(catalog.load("i7-6700"))
    document["ecm"] = {**derived(catalog.load("i7-6700")).model_dump(), "row_starts_ns": 1.0}
    with pytest.raises(PlatformError) as raised:
        parse(document)
    assert "/ecm/row_starts_ns" in str(raised.value)
    assert "row_start_ns" in str(raised.value)


def test_the_page_has_every_parameter() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page[page.index("## Parameters of the cost model") : page.index("## The host")]
    words = set(re.findall(r"`(\w+)`", section))
    assert words.issuperset(EcmParameters.model_fields)
    assert words.issuperset(TypeCycles.model_fields)
    assert words.issuperset(TYPES)


@pytest.mark.parametrize(("name", "streams"), [("i7-6700", True), ("epyc-9655", True), ("cortex-a73", False)])
def test_streaming_stores_save_something_where_there_are_any(name: str, streams: bool) -> None:
    found = derived(catalog.load(name))
    assert (found.streaming_store_factor < found.write_allocate_factor) == streams
