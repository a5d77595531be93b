"""Plugins: files, modules and entry points that register something, and those that cannot be loaded."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tilesmith.app import plugins
from tilesmith.app.cli import app
from tilesmith.app.service.main import create_app
from tilesmith.app.service.schedules.engine import Engine
from tilesmith.app.service.settings import Settings
from tilesmith.cost_models import registry
from tilesmith.scheduler.frontends.python.files import PythonFileError

REGISTERS = """
from tilesmith.cost_models.ecm import Ecm
from tilesmith.cost_models.registry import register

register("theirs", Ecm)
"""


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], str]:
    def written(text: str) -> str:
        path = tmp_path / "numpy.py"  # the name of a module that is imported
        path.write_text(text)
        return str(path)

    return written


def test_a_file_registers(file: Callable[[str], str]) -> None:
    plugins.load_plugins([file(REGISTERS)])
    assert "theirs" in registry.names()
    plugins.load_plugins([file(REGISTERS)])  # is loaded already


def test_an_installed_package_registers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "their_package.py").write_text(REGISTERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = EntryPoint("theirs", "their_package", plugins.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry] if group == plugins.GROUP else [])
    plugins.load_plugins()
    assert "theirs" in registry.names()


def test_an_entry_point_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "entry_points", lambda group: [EntryPoint("theirs", "not_there_at_all", group)])
    with pytest.raises(PythonFileError, match=r"plugin 'theirs' \(not_there_at_all\) failed: ModuleNotFoundError"):
        plugins.load_plugins()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("raise ValueError('no idea')", "failed: ValueError: no idea\n  hint: at "),
        ("import nothing_like_it", "ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("def f(:", "SyntaxError"),
        ("raise SystemExit(1)", "SystemExit"),
        (
            "from tilesmith.cost_models.registry import register\nregister('ecm', int)",
            "there is a cost model 'ecm' already",
        ),
    ],
)
def test_a_file_that_fails_is_named_with_its_line(file: Callable[[str], str], text: str, message: str) -> None:
    path = file(text)
    result = CliRunner().invoke(app, ["--plugin", path, "pipelines"])
    assert result.exit_code == 2
    assert f"the plugin '{path}'" in result.stderr
    assert message in result.stderr
    again = CliRunner().invoke(app, ["--plugin", path, "pipelines"])
    assert again.exit_code == 2


@pytest.mark.parametrize("name", ["not_there.py", "not.there"])
def test_what_is_not_there_is_named(name: str) -> None:
    result = CliRunner().invoke(app, ["--plugin", name, "pipelines"])
    assert result.exit_code == 2
    assert f"the plugin {name!r}" in result.stderr


def test_the_service_loads_what_its_setting_names(file: Callable[[str], str], tmp_path: Path) -> None:
    create_app(Settings(data_dir=tmp_path, plugins=(file(REGISTERS),)))
    assert "theirs" in registry.names()
    (tmp_path / "broken.py").write_text("1 / 0")
    with pytest.raises(PythonFileError, match=r"broken\.py"):
        create_app(Settings(data_dir=tmp_path, plugins=(str(tmp_path / "broken.py"),)))


class Asking:
    """Functions of an engine that tell what is registered."""

    @staticmethod
    def warm_up() -> None: ...

    inspect = staticmethod(lambda document, limits: registry.names())


@pytest.mark.slow
def test_processes_of_the_service_load_it_too(file: Callable[[str], str], tmp_path: Path) -> None:
    engine = Engine(Settings(data_dir=tmp_path, schedule_workers=1, plugins=(file(REGISTERS),)), Asking)
    try:
        assert "theirs" in engine.submit(registry.names).result()
    finally:
        engine.close()
