"""The public surface: what `tilesmith` exports is listed, and there is one import package."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tilesmith

ROOT = Path(__file__).parents[2]


def test_every_name_that_is_listed_is_there_and_no_other() -> None:
    assert sorted(tilesmith._FOUND_IN) == tilesmith.__all__
    assert all(getattr(tilesmith, name) is not None for name in tilesmith.__all__)
    assert set(tilesmith.__all__) <= set(dir(tilesmith))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tilesmith.nothing  # noqa: B018


def test_the_package_loads_nothing_until_it_is_asked() -> None:
    code = "import sys, tilesmith; print(*sorted(m for m in sys.modules if m.startswith('tilesmith') or m == 'numpy'))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["tilesmith"]


def test_one_import_package_is_installed() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    assert packages == {"find": {"include": ["tilesmith*"]}}
