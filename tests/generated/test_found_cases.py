"""Cases that `make fuzz` found and kept, as it keeps them: a folder with pipeline, schedule and seed."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.random_cases import judge, saved_case

FOUND = sorted((Path(__file__).parent / "found").iterdir())


@pytest.mark.parametrize("folder", FOUND, ids=lambda folder: folder.name)
def test_a_case_that_was_found_stays_right(folder: Path) -> None:
    assert judge(saved_case(folder), ("-O1",)) is None
