"""`platforms calibrate`, and what `host` means where the environment names its document."""

import json

import pytest
import yaml
from support.calibration import quick_calibration
from typer.testing import CliRunner

import platforms
from app.cli import app, calibration
from app.db import Database
from app.platforms.service import Platforms
from app.settings import Settings
from app.workers import calibrate
from app.workers.calibrate import QUICK


def tilesmith(*arguments, status=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result


@pytest.fixture
def document(tmp_path):
    """The host under another name."""
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(platforms.to_document(platforms.get("i7-6700")) | {"name": "mine"}))
    return path


def test_what_it_writes_is_a_platform(tmp_path, monkeypatch):
    def measure(platform, cache_dir, effort, tell):
        assert effort == QUICK
        tell("measuring memory")
        return quick_calibration()

    monkeypatch.setattr(calibration, "measure", measure)
    path = tmp_path / "host.yaml"
    told = tilesmith("platforms", "calibrate", "--quick", "--name", "desk", "--output", path)
    assert "measuring memory" in told.stderr
    assert told.stdout == ""
    shown = json.loads(tilesmith("platforms", "show", path).stdout)
    assert shown["name"] == "desk"
    assert shown["ecm"]["f32"]["add"] > 0
    assert shown["sources"]["ecm.f32"].startswith("measured: ")


def test_interrupted_it_writes_nothing(tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(calibrate, "build_program", stopped)
    tilesmith("platforms", "calibrate", "--quick", "--output", tmp_path / "host.yaml", status=130)
    assert list(tmp_path.iterdir()) == []


def test_wrong_options_are_told_before_anything_is_measured(tmp_path):
    assert "letters" in tilesmith("platforms", "calibrate", "--name", "a b", status=2).stderr
    nowhere = tmp_path / "no" / "host.yaml"
    assert "no directory" in tilesmith("platforms", "calibrate", "--output", nowhere, status=2).stderr


def test_host_is_the_document_that_the_environment_names(document, monkeypatch):
    monkeypatch.setenv("TILESMITH_HOST_PLATFORM", str(document))
    assert json.loads(tilesmith("platforms", "show", "host").stdout)["name"] == "mine"
    assert json.loads(tilesmith("platforms", "detect").stdout)["name"] == "host"
    monkeypatch.setenv("TILESMITH_HOST_PLATFORM", str(document.with_name("gone.yaml")))
    assert "TILESMITH_HOST_PLATFORM" in tilesmith("platforms", "show", "host", status=2).stderr


@pytest.mark.parametrize("verb", ["show host", "detect", "calibrate"])
def test_an_instruction_set_that_is_not_there_is_told(verb, monkeypatch):
    monkeypatch.setenv("TILESMITH_HOST_ISA", "avx9")
    told = tilesmith("platforms", *verb.split(), status=2).stderr
    assert "TILESMITH_HOST_ISA=avx9" in told
    assert "possible here" in told


def test_the_service_takes_it_for_the_host(document, tmp_path):
    known = Platforms(Database(f"sqlite:///{tmp_path}/store.db"), document).find("host")
    assert known.source == "host"
    assert known.document["name"] == "mine"


@pytest.mark.parametrize(("text", "said"), [(None, "cannot be read"), ("kind: cpu", "is no platform")])
def test_a_document_that_is_none_is_refused_when_the_service_starts(tmp_path, text, said):
    path = tmp_path / "host.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=said):
        Settings(host_platform=path)
