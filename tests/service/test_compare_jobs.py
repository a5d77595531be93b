"""Jobs that compare: two codes run in turns, in the service."""

from __future__ import annotations

import itertools
import json

import pytest

from tilesmith import platforms
from tilesmith.app.service.jobs import compare
from tilesmith.app.service.jobs.compare import Side, run_in_turns
from tilesmith.app.service.jobs.work import Task
from tilesmith.app.service.schedules.answers import compact, plain
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.frontends.document import document as documents
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.pipelines import document


class FakeLoaded:
    """Arguments whose calls take as long as they are told, and are written down."""

    def __init__(self, name, ms, log):
        self.name, self.ms, self.log = name, ms, log

    def call(self, library, threads, calls, limits, keep):
        assert not keep
        self.log.append((self.name, calls))
        return type("Done", (), {"times_ms": [self.ms] * (calls - 1) + [100 * self.ms]})


def sides(now_ms=2.0, baseline_ms=1.0):
    log = []
    return log, *(Side(None, FakeLoaded(n, ms, log), 1, None) for n, ms in (("now", now_ms), ("baseline", baseline_ms)))


def test_codes_take_turns_and_each_begins_every_other_round():
    log, now, baseline = sides()
    times = compare._rounds(now, baseline, itertools.count().__next__)
    assert times == [(2.0, 1.0)] * compare.ROUNDS, "medians: the outlier does not count"
    assert [name for name, _ in log[:4]] == ["now", "baseline", "baseline", "now"]


def test_when_time_is_up_there_are_fewer_rounds():
    _, now, baseline = sides()
    assert len(compare._rounds(now, baseline, itertools.count(0, 30).__next__)) == 4


@pytest.mark.parametrize(("ms", "calls"), [(0.001, compare.MOST_CALLS), (1.0, 40), (500.0, compare.CALLS)])
def test_a_round_has_as_many_calls_as_fill_it(ms, calls):
    _, now, _ = sides(now_ms=ms)
    assert now.paced().calls == calls


def task(tmp_path, height):
    """A task of blur on images of that height."""
    found = document("blur")
    found["estimates"] = {name: [[0, 64], [0, height]] for name in found["estimates"]}
    pipeline = documents.load(found)
    source = compile_pipeline(pipeline, host(), Options()).source
    machine = json.dumps(platforms.to_document(host())).encode()
    limits = {"build_timeout_s": 60.0, "build_cache_bytes": 1 << 30, "run_timeout_s": 60.0, "run_memory_bytes": 1 << 30}
    content = documents.canonical_json(pipeline).encode()
    return Task("job", content, machine, compact(plain(source)).encode(), tmp_path, **limits, limits=Limits())


@pytest.mark.slow
def test_two_schedules_run_in_turns(tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "ROUNDS", 8)
    small, large = task(tmp_path, 32), task(tmp_path, 64)
    result = run_in_turns(small, large)
    assert len(result.now_ms) == len(result.baseline_ms) == result.rounds == 8
    assert min(result.now_ms + result.baseline_ms) > 0
    assert result.machine["threads"] >= 1
    json.dumps(result.model_dump())


def test_the_route_starts_a_job_and_names_what_is_missing(service):
    first, second = service.schedule("one"), service.schedule("two")
    answer = service.client.post(f"/v1/schedules/{first}/comparisons", json={"baseline": second})
    assert (answer.status_code, answer.json()["kind"]) == (202, "compare")
    assert answer.headers["location"] == f"/v1/jobs/{answer.json()['id']}"
    assert answer.json()["request"] == {"baseline": second}
    for ours, theirs in ((first, "none"), ("none", second)):
        answer = service.client.post(f"/v1/schedules/{ours}/comparisons", json={"baseline": theirs})
        assert answer.json()["code"] == "schedule_not_found"
