"""Pipelines and platforms by whatever names them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from inprocess.conftest import SHIFT

import tilesmith as ts
from tilesmith.app.inprocess.sources import UnknownSource, pipeline_of, platform_of
from tilesmith.scheduler import pipelines

BLUR = pipelines.load("blur")


def test_a_pipeline_a_document_a_name_or_a_file(tmp_path: Path) -> None:
    document = pipelines.document("blur")
    (tmp_path / "blur.json").write_text(json.dumps(document))
    (tmp_path / "shift.yaml").write_text(SHIFT)
    for source in (BLUR, document, json.dumps(document), "blur", tmp_path / "blur.json", str(tmp_path / "blur.json")):
        assert pipeline_of(source).pipeline == BLUR
    assert pipeline_of(tmp_path / "shift.yaml") == pipeline_of(SHIFT)


def test_a_platform_a_document_a_name_or_a_file(tmp_path: Path, monkeypatch) -> None:
    skylake = ts.platform("i7-6700")
    text = skylake.model_dump_json(exclude_none=True)
    (tmp_path / "mine.json").write_text(text)
    for source in (skylake, json.loads(text), "i7-6700", tmp_path / "mine.json", str(tmp_path / "mine.json")):
        assert platform_of(source) == skylake
    monkeypatch.setenv("TILESMITH_HOST_PLATFORM", str(tmp_path / "mine.json"))
    assert platform_of("host") == skylake


def test_what_there_is_not_is_told_with_what_is_near() -> None:
    with pytest.raises(UnknownSource, match=r"no pipeline 'haris'.*did you mean 'harris'"):
        pipeline_of("haris")
    with pytest.raises(UnknownSource, match=r"no platform 'i7-670'.*did you mean 'i7-6700'"):
        platform_of("i7-670")
    with pytest.raises(UnknownSource, match="not a int"):
        pipeline_of(7)
    with pytest.raises(ts.DocumentError):
        pipeline_of({"format": 1})


def test_errors_of_texts_and_files_have_lines(tmp_path: Path) -> None:
    text = "format: 1\nname: p\ninputs: []\nstages:\n  - {name: f, dims: [x], value: 1 + g}\noutputs: [f]\n"
    (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
    for source, name in ((text, "the document"), (tmp_path / "p.yaml", str(tmp_path / "p.yaml"))):
        with pytest.raises(ts.DocumentError, match="missing_key") as caught:
            pipeline_of(source)
        assert f"{name}:5:37: Nothing here is called 'g'. [unknown_name]" in str(caught.value)
        assert "at /stages/0/value, of stage 'f'" in str(caught.value)
        assert {p.code for p in caught.value.problems} == {"unknown_name", "missing_key"}
