"""The judge of a soak: each kind of finding is found, and nothing else is."""

from __future__ import annotations

import json

import pytest

from benchmarks.soak.judge import Verdict, damaged_builds, purpose, wrong_end, wrong_events, wrong_objects
from benchmarks.soak.load import Work, document, events_of
from tilesmith.scheduler.frontends.document.document import load


def events(*states):
    return [(n, json.dumps({"state": state})) for n, state in enumerate(states, start=1)]


def test_streams_are_read_as_they_are_sent():
    lines = ["id: 1", "event: state", 'data: {"state":"queued"}', "", ": ping", "id: 2", 'data: {"state":"running"}']
    assert events_of(lines) == [(1, '{"state":"queued"}'), (2, '{"state":"running"}')]


@pytest.mark.parametrize(
    ("told", "state", "right"),
    [
        (events("queued", "running", "queued", "running", "succeeded"), "succeeded", True),
        (events("queued", "cancelled"), "cancelled", True),
        (events("queued", "running", "succeeded", "succeeded"), "succeeded", False),
        (events("queued", "running", "succeeded", "running"), "succeeded", False),
        (events("queued", "running", "failed"), "succeeded", False),
        (events("queued", "running"), "succeeded", False),
        (events("queued", "running", "succeeded")[1:], "succeeded", False),
        ([], "succeeded", False),
    ],
)
def test_a_job_ends_once(told, state, right):
    assert (wrong_events("j", told, state) == []) is right


@pytest.mark.parametrize(
    ("state", "code", "cancel", "right"),
    [
        ("succeeded", None, None, True),
        ("failed", "worker_lost", None, True),
        ("failed", "compile_failure", None, False),
        ("failed", "out_of_memory", "asked for", False),
        ("cancelled", None, "asked for", True),
        ("cancelled", None, None, False),
        ("succeeded", None, "asked for", True),
        ("succeeded", None, "at once", False),
        ("expired", None, None, False),
    ],
)
def test_reasons_that_are_wrong(state, code, cancel, right):
    work = Work("build", {}, "s", None, {}, ids=["j"], cancel=cancel)
    error = None if code is None else {"code": code, "detail": "..."}
    assert (wrong_end(work, {"state": state, "error": error}) == []) is right


def test_files_that_are_left():
    states = {"done": "succeeded", "gone": "failed"}
    kept = ["tilesmith.db", "jobs/done/output-0-0.npy", "builds/libraries/abc/library.so"]
    left = [
        "jobs/done/input-0",
        "jobs/gone/output-0-0.npy",
        "jobs/nobody/input-0",
        "builds/libraries/.building-host-1-x/pipeline.c",
        "steps/abc/jobs/done/output-0-0.npy",
    ]
    assert all(purpose(path.split("/"), states) for path in kept)
    assert not any(purpose(path.split("/"), states) for path in left)


def test_contents_that_are_not_what_they_were(tmp_path):
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / ("0" * 64)).write_bytes(b"x")
    assert len(wrong_objects(tmp_path, {"1" * 64})) == 2
    entry = tmp_path / "builds" / "libraries" / "key"
    entry.mkdir(parents=True)
    (entry / "build.json").write_text('{"digest": "0"}')
    assert len(damaged_builds(tmp_path / "builds")) == 1


def test_pipelines_of_the_load_are_valid_and_differ():
    assert load(document(1)).name == "soak_1"
    assert document(1)["stages"] != document(2)["stages"]
    assert Verdict().clean
