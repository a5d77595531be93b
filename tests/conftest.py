"""Fixtures of all tests: golden files, renewed only on purpose. Folders of slow tests."""

from __future__ import annotations

import ast
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
SLOW_FOLDERS = ("benchmarks", "browser", "generated", "judges", "with_halide")
"""Folders whose tests are `slow`, all of them: they compile and run C at length, or start processes. Elsewhere modules
and tests are marked."""
ALL_SLOW = "\npytestmark = pytest.mark.slow\n"
_PARSING = threading.RLock()
_parse = ast.parse


def _one_at_a_time(*arguments: Any, **options: Any) -> Any:
    """CPython cannot convert two trees at a time. pytest parses test modules, and what it shows of a failure, while
    services that tests have started parse expressions in threads of their own."""
    with _PARSING:
        return _parse(*arguments, **options)


def pytest_configure() -> None:
    os.environ["TILESMITH_CALIBRATE"] = "0"  # measured figures differ from run to run, and so may schedules
    os.environ["OMP_WAIT_POLICY"] = "passive"  # threads of tiny loops would spin longer than they work
    setattr(ast, "parse", _one_at_a_time)  # noqa: B010 (its type is overloaded)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Folders and modules that are slow as a whole are not even imported where such tests are left out."""
    if config.option.markexpr != "not slow":
        return None
    marked = collection_path.suffix == ".py" and ALL_SLOW in collection_path.read_text(encoding="utf-8")
    return True if marked or collection_path in [TESTS / name for name in SLOW_FOLDERS] else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.relative_to(TESTS).parts[0] in SLOW_FOLDERS:
            item.add_marker(pytest.mark.slow)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew-golden", action="store_true", help="write golden files instead of comparing with them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` compares with the file `golden/<name>` beside the test. A missing file fails."""
    folder = Path(str(request.path)).parent / "golden"
    renew = bool(request.config.getoption("--renew-golden"))

    def compare(name: str, text: str) -> None:
        path = folder / name
        if renew:
            folder.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.is_file(), f"{path.name} is missing: make it with --renew-golden, and read it"
        assert text == path.read_text(encoding="utf-8"), f"{path.name} differs: if that is meant, use --renew-golden"

    return compare
