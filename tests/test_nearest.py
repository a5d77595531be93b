"""Names and files that were meant: the nearest, among names and among the documents of the same folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import tilesmith as ts
from tilesmith.app.cli import app
from tilesmith.app.inprocess.sources import UnknownSource
from tilesmith.app.nearest import nearest, nearest_document


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "soften.yaml").write_text("name: soften\n", encoding="utf-8")
    (tmp_path / "soften.png").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_nearest_name() -> None:
    assert nearest("haris", ("blur", "harris")) == "harris"
    assert nearest("zzz", ("blur", "harris")) is None


def test_a_document_of_the_folder_may_be_nearer(folder: Path) -> None:
    assert nearest_document("soften.yml", ("sobel",)) == "soften.yaml"
    assert nearest_document(str(folder / "softn.yaml"), ("sobel",)) == str(folder / "soften.yaml")
    assert nearest_document("haris", ("harris",)) == "harris"
    assert nearest_document("no/such/folder/x.yaml", ()) is None
    assert nearest_document("a\0b", ()) is None


def test_the_command_and_the_library_say_the_same(folder: Path) -> None:
    told = CliRunner().invoke(app, ["validate", "soften.yml"])
    assert told.exit_code == 2
    assert "did you mean 'soften.yaml'?" in told.output
    with pytest.raises(UnknownSource, match=r"did you mean 'soften\.yaml'\?"):
        ts.compile("soften.yml")
