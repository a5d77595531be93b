"""`platforms calibrate`, and what `host` means where the environment names its document."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import yaml
from support.calibration import quick_calibration
from typer.testing import CliRunner

from tilesmith import platforms
from tilesmith.app.cli import app, calibration
from tilesmith.app.profiler import calibrate, first_use
from tilesmith.app.profiler.calibrate import QUICK
from tilesmith.app.runtime.errors import CompileError
from tilesmith.app.service.db import Database
from tilesmith.app.service.main import create_app
from tilesmith.app.service.platforms.service import Platforms
from tilesmith.app.service.settings import Settings

pytestmark = pytest.mark.slow


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


@pytest.fixture
def first(tmp_path, monkeypatch):
    """A machine that is measured for the first time: by a fake, which counts."""
    made = []

    def measure(platform, cache_dir, effort, parts):
        assert effort == QUICK
        made.append(parts)
        return quick_calibration()

    monkeypatch.setattr(calibrate, "measure", measure)
    monkeypatch.setattr(first_use.platformdirs, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    monkeypatch.delenv("TILESMITH_CALIBRATE")
    return made


def show(*options):
    shown = tilesmith("platforms", "show", "host", *options)
    return json.loads(shown.stdout), shown.stderr


def test_the_first_use_measures_and_says_so_once(first):
    found, told = show()
    assert told.count("\n") == 1
    assert told.startswith("measuring this machine, once")
    assert found["sources"]["clock_ghz"].startswith("measured: ")
    assert show() == (found, "")
    assert len(first) == 1


@pytest.mark.parametrize("way", ["option", "environment"])
def test_nothing_is_measured_where_that_is_not_wanted(first, monkeypatch, way):
    if way == "environment":
        monkeypatch.setenv("TILESMITH_CALIBRATE", "off")
    found, told = show(*["--no-calibrate"] * (way == "option"))
    assert (first, told) == ([], "")
    assert found == platforms.to_document(platforms.load("host"))


def test_a_document_for_the_host_is_not_measured(first, document, monkeypatch):
    monkeypatch.setenv("TILESMITH_HOST_PLATFORM", str(document))
    assert show()[0]["name"] == "mine"
    assert first == []


def test_a_schedule_of_a_catalog_machine_measures_nothing(first):
    tilesmith("schedule", "blur", "--platform", "i7-6700")
    assert first == []
    tilesmith("schedule", "blur", "--no-calibrate")
    assert first == []
    assert "measuring" in tilesmith("schedule", "blur").stderr


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "cpu"}', "\udcff"])
def test_a_damaged_file_is_measured_anew(first, tmp_path, text):
    show()
    (kept,) = (tmp_path / "cache" / "hosts").glob("*.json")
    kept.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert "measuring" in show()[1]
    assert show()[1] == ""


def test_a_measurement_of_another_shape_is_made_anew(first, tmp_path):
    show()
    (kept,) = (tmp_path / "cache" / "hosts").glob("*.json")
    older = json.loads(kept.read_text())
    del older["platform"]["ecm"]["memory_hidden_share"]
    kept.write_text(json.dumps(older))
    assert "measuring" in show()[1]
    assert show()[1] == ""


def test_what_was_disturbed_is_measured_again_after_an_hour(first, monkeypatch):
    quiet = quick_calibration()
    monkeypatch.setattr(calibrate, "measure", lambda *_, **__: first.append(()) or replace(quiet, busy=1.5))
    clock = [1e9]
    monkeypatch.setattr(first_use.time, "time", lambda: clock[0])
    show()
    clock[0] += 3500
    show()
    assert len(first) == 1
    clock[0] += 200
    show()
    assert len(first) == 2
    monkeypatch.setattr(calibrate, "measure", lambda *_, **__: first.append(()) or replace(quiet, busy=0.0))
    for passed in (0, 4000, 1e8):
        clock[0] += passed + 3700
        show()
    assert len(first) == 3, "what nothing disturbed stays"


def test_another_machine_or_instruction_set_is_measured_for_itself(first, tmp_path, monkeypatch):
    host = platforms.load("host")
    for detected in (host, host.model_copy(update={"threads": 7}), host.model_copy(update={"vector_bytes": 8})):
        first_use.measured_once(detected, str, str)
    assert len(first) == 3
    first_use.measured_once(host.model_copy(update={"clock_ghz": 1.0}), str, str)  # told otherwise every time
    assert len(first) == 3


def test_first_uses_at_the_same_time_measure_once(first):
    with ThreadPoolExecutor(4) as pool:
        host, said = platforms.load("host"), []
        found = list(pool.map(lambda _: first_use.measured_once(host, said.append, said.append), range(4)))
    assert len(first) == len(said) == 1
    assert all(f == found[0] for f in found)


def test_a_directory_that_cannot_be_written_is_warned_of(first, tmp_path):
    (tmp_path / "cache").write_text("a file")
    found, told = show()
    assert told.startswith("warning: this machine is not measured")
    assert first == []
    assert found == platforms.to_document(platforms.load("host"))


def test_what_cannot_be_measured_is_warned_of_once(first, monkeypatch):
    def fails(*_, **__):
        raise CompileError("compile_failure", "the compiler gcc is not installed here")

    monkeypatch.setattr(calibrate, "measure", fails)
    found, told = show()
    assert "estimates will do: the compiler gcc is not installed here" in told
    assert found == platforms.to_document(platforms.load("host"))
    assert show() == (found, "")


def test_the_quick_calibration_is_kept_for_the_first_use(first, tmp_path):
    path = tmp_path / "host.yaml"
    told = tilesmith("platforms", "calibrate", "--quick", "--name", "desk", "--output", path)
    assert told.stdout == ""
    assert json.loads(tilesmith("platforms", "show", path).stdout)["name"] == "desk"
    assert show()[1] == ""
    tilesmith("platforms", "calibrate", "--quick")
    assert len(first) == 2


def test_the_service_measures_when_it_starts(first, tmp_path):
    async def started(settings):
        service = create_app(settings)
        async with service.router.lifespan_context(service):
            counted = len(first)
            return counted, service.state.context.platforms.document("host")["sources"]["clock_ghz"]

    settings = Settings(data_dir=tmp_path / "data", schedule_workers=0, job_workers=0)
    counted, source = asyncio.run(started(settings))
    assert counted == 1
    assert source.startswith("measured: ")
    counted, source = asyncio.run(started(settings.model_copy(update={"calibrate": False})))
    assert counted == 1
    assert not source.startswith("measured: ")


def test_what_it_writes_is_a_platform(tmp_path, monkeypatch):
    def measure(platform, cache_dir, tell):
        tell("measuring memory")
        return quick_calibration()

    monkeypatch.setattr(calibration, "measure", measure)
    path = tmp_path / "host.yaml"
    told = tilesmith("platforms", "calibrate", "--name", "desk", "--output", path)
    assert "measuring memory" in told.stderr
    assert told.stdout == ""
    shown = json.loads(tilesmith("platforms", "show", path).stdout)
    assert shown["name"] == "desk"
    assert shown["sources"]["clock_ghz"].startswith("measured: ")


def test_interrupted_it_writes_nothing(tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(calibrate, "build_program", stopped)
    tilesmith("platforms", "calibrate", "--output", tmp_path / "host.yaml", status=130)
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
