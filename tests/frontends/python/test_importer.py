"""`tilesmith import python`: what a function of the user's returns, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilesmith.scheduler.frontends.importer import ImportedPipeline, ImportFailed
from tilesmith.scheduler.frontends.python.importer import PythonImporter
from tilesmith.scheduler.frontends.registry import importer_of, importers, register

FILE = """
from tilesmith.scheduler.frontends.python.frontend import Image, Stage, Var, pipeline, uint16


def blur():
    x = Var("x")
    image, soft = Image("image", uint16, x), Stage("soft")
    soft[x] = (image[x] + image[x + 1]) // 2
    return pipeline("blur", outputs=[soft], estimates={soft: [(0, 64)]})


def nothing():
    return None


def failing():
    return blur()[0]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "theirs.py"
    path.write_text(FILE)
    return path


def test_a_function_returns_a_pipeline(file: Path) -> None:
    assert [s.name for s in PythonImporter().load(f"{file}:blur").pipeline.stages] == ["soft"]


@pytest.mark.parametrize(
    ("source", "message"),
    [("nothing", "returned no pipeline, but NoneType"), ("failing", "TypeError"), ("blurr", "no function 'blurr'")],
)
def test_errors_name_what_is_wrong(file: Path, source: str, message: str) -> None:
    with pytest.raises(ImportFailed, match=message):
        PythonImporter().load(f"{file}:{source}")


class Theirs:
    name, suffixes = "theirs", (".their", ".s")

    def load(self, source: str) -> ImportedPipeline:
        raise ImportFailed((source, None))


def test_importers_are_found_by_name_and_by_suffix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilesmith.scheduler.frontends.registry._IMPORTERS", importers())
    theirs = Theirs()
    register(theirs)
    register(theirs)
    assert importers().keys() == {"halide", "mlir", "onnx", "python", "theirs"}
    assert importer_of("a/b.their") is theirs
    assert importer_of("a.yaml") is None


@pytest.mark.parametrize(("name", "suffixes"), [("halide", ()), ("other", (".s",))])
def test_names_and_suffixes_are_taken_once(
    monkeypatch: pytest.MonkeyPatch, name: str, suffixes: tuple[str, ...]
) -> None:
    monkeypatch.setattr("tilesmith.scheduler.frontends.registry._IMPORTERS", importers())
    register(Theirs())
    second = Theirs()
    second.name, second.suffixes = name, suffixes
    with pytest.raises(ValueError, match="is that of"):
        register(second)
