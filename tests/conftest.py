"""Fixtures of all tests: golden files, renewed only on purpose. Folders of slow tests."""

from __future__ import annotations

import ast
import gc
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import pytest
from support.kept import sweep_kept

from tilesmith.app import plugins
from tilesmith.app.garbage import collect_rarely
from tilesmith.app.runtime import held_folders

TESTS = Path(__file__).parent
SLOW_FOLDERS = ("benchmarks", "browser", "generated", "judges", "with_halide")
"""Folders whose tests are `slow`, all of them: they compile and run C at length, or start processes. Elsewhere modules
and tests are marked."""
TEMPORARY = "tilesmith-pytest-"
ALL_SLOW = "\npytestmark = pytest.mark.slow\n"
_PARSING = threading.RLock()
_parse = ast.parse


def _one_at_a_time(*arguments: Any, **options: Any) -> Any:
    """CPython cannot convert two trees at a time. pytest parses test modules, and what it shows of a failure, while
    services that tests have started parse expressions in threads of their own."""
    with _PARSING:
        return _parse(*arguments, **options)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # workers have the folder of who starts them
        _own_temporary_folder()
    os.environ["TILESMITH_CALIBRATE"] = "0"  # measured figures differ from run to run, and so may schedules
    os.environ["OMP_WAIT_POLICY"] = "passive"  # threads of tiny loops would spin longer than they work
    setattr(ast, "parse", _one_at_a_time)  # noqa: B010 (its type is overloaded)
    # each service and command looks through all installed packages for plugins: they stay what they are
    setattr(plugins, "entry_points", cache(plugins.entry_points))  # noqa: B010 (its type is overloaded)


def _own_temporary_folder() -> None:
    """Temporary files of tests, and of what they start, are in a folder that is gone with the run; a killed run's is
    deleted by the next one. What is to be looked at afterwards, `tmp_path`, is where pytest has it."""
    parent = Path(tempfile.gettempdir())
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(parent))
    held_folders.sweep(parent.glob(f"{TEMPORARY}*"))
    stack = ExitStack()
    folder = stack.enter_context(held_folders.new_folder(parent, TEMPORARY))
    Finalize(None, stack.close, exitpriority=-200)  # after what multiprocessing has there, at -100
    folder.chmod(0o711)  # PostgreSQL runs as somebody else where we are root
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    sweep_kept()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Folders and modules that are slow as a whole are not even imported where such tests are left out."""
    if config.option.markexpr != "not slow":
        return None
    marked = collection_path.suffix == ".py" and ALL_SLOW in collection_path.read_text(encoding="utf-8")
    return True if marked or collection_path in [TESTS / name for name in SLOW_FOLDERS] else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.nodeid.removeprefix("tests/").partition("/")[0]
        if folder in SLOW_FOLDERS:
            item.add_marker(pytest.mark.slow)
        if folder == "browser":
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Modules and tests, of which there are more than ten thousand, stay to the end: the garbage collector looks for no
    cycles while they are made, and passes over them afterwards."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        collect_rarely()


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
