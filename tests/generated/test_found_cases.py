"""Cases that `make fuzz` found and kept, as it keeps them: a folder with pipeline, schedule and seed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.builds import BUILDS
from support.random_cases import judge, saved_case
from support.tools import require_compiler

FOUND = sorted((Path(__file__).parent / "found").iterdir())


@pytest.mark.parametrize("folder", FOUND, ids=lambda folder: folder.name)
def test_a_case_that_was_found_stays_right(folder: Path) -> None:
    build = BUILDS[json.loads((folder / "case.json").read_text())["build"]]
    require_compiler(build.compiler)
    assert judge(saved_case(folder), build.flags, build.compiler) is None
