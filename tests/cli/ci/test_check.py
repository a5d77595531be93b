"""`tilesmith ci` against a service: what passes, what fails, what is told, and in which form."""

from __future__ import annotations

import json
import re
import time
from copy import deepcopy
from functools import partial
from itertools import pairwise
from pathlib import Path

import httpx
import jsonschema
import pytest
import tenacity.nap
from junitparser import Error, Failure, JUnitXml

from tilesmith import platforms
from tilesmith.app.cli.ci import checking, target
from tilesmith.app.client import Client
from tilesmith.app.service.jobs import compare
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.search.params import PARAMS

from .conftest import SLOWER, SOFTEN

OTHER = {**SOFTEN, "name": "other"}
WRONG = {**SOFTEN, "name": "wrong", "stages": [{"name": "soft", "dims": ["x", "y"], "value": "phto(x, y)"}]}


@pytest.fixture
def pauses(outside):
    """The pauses between attempts that would have been made, seconds; shorter ones are others', and are made."""
    found, sleep = [], time.sleep
    outside.setattr(tenacity.nap.time, "sleep", lambda s: sleep(s) if s < 0.1 else found.append(s))
    return found


@pytest.fixture
def main(repository, ci):
    """A main branch whose results are recorded."""
    commit = repository.commit(soften=SOFTEN, other=OTHER)
    ci("record", ".")
    repository.git("switch", "--quiet", "--create", "feature")
    return commit


def test_nothing_moved(repository, ci, main, tmp_path):
    done = ci("check", ".", "--markdown", tmp_path / "m.md")
    assert "2 same (against main, limit 5 %)" in done.stdout
    assert (tmp_path / "m.md").read_text() == ""


def test_a_slower_pipeline_fails_in_every_form(repository, ci, main, tmp_path):
    repository.commit(soften=SLOWER)
    files = {o: tmp_path / o for o in ("markdown", "junit", "bencher")}
    options = [text for o, f in files.items() for text in (f"--{o}", f)]
    done = ci("check", ".", *options, "--json", status=1)
    report = json.loads(done.stdout)
    other, soften = report["comparisons"]
    assert (report["outcome"], other["status"], soften["status"]) == ("regressed", "same", "regressed")
    assert soften["why"] == "the pipeline was changed"
    assert soften["now"]["predicted"] / soften["baseline"]["predicted"] - 1 == pytest.approx(soften["change"])
    lines = files["markdown"].read_text().splitlines()
    assert [line for line in lines if line.startswith("| soften")]
    assert not [line for line in lines if line.startswith("| other")], "it has not moved"
    (suite,) = JUnitXml.fromfile(str(files["junit"]))
    results = {case.name: case.result for case in suite}
    assert results["other on i7-6700"] == []
    assert isinstance(results["soften on i7-6700"][0], Failure)
    assert "soften" in ci("check", ".", status=1).stdout
    metrics = json.loads(files["bencher"].read_text())
    assert metrics["soften on i7-6700"] == {"predicted": {"value": soften["now"]["predicted"]}}


def test_a_higher_limit_lets_it_pass(repository, ci, main):
    repository.commit(soften=SLOWER)
    assert "1 slower" in ci("check", ".", "--fail-above", "100000%").stdout
    ci("check", ".", "--fail-above", "0", status=1)
    assert "is no percentage" in ci("check", ".", "--fail-above", "five", status=2).stderr


@pytest.mark.parametrize("name", ["harris", "unsharp"])
def test_five_percent_more_work_are_always_caught(repository, ci, name):
    """Planted: images of a few percent more rows, so that the predicted time grows by 5 % and a little."""
    document = pipelines.document(name)
    repository.commit(planted=document)
    ci("record", "planted.json")
    changes = []
    for percent in (2.0, 4.0, 5.0, 5.5, 6.0, 7.0):
        taller = deepcopy(document)
        for region in taller["estimates"].values():
            region[1][1] = int(region[1][1] * (100 + percent) / 100)
        repository.commit(planted=taller)
        done = ci("check", "planted.json", "--json", status=None)
        (found,) = json.loads(done.stdout)["comparisons"]
        assert done.exit_code == (found["change"] >= 0.05)
        changes.append(found["change"])
    assert min(c for c in changes if c >= 0.05) < 0.065, "5 % are passed closely, and caught"
    kept = 1 - PARAMS.paper_gain  # a schedule that gains less is not taken, and at the next size it may be
    assert all(taller > lower - kept for lower, taller in pairwise(changes))


def test_new_and_removed_pipelines_are_told(repository, ci, main, tmp_path):
    repository.commit(other=None, third={**SOFTEN, "name": "third"})
    done = ci("check", ".", "--markdown", tmp_path / "m.md")
    assert "1 new, 1 removed, 1 same" in done.stdout
    assert "no document has it any more" in (tmp_path / "m.md").read_text()


def test_a_document_that_is_not_valid_is_an_error_with_its_place(repository, ci, main, tmp_path):
    repository.commit(other=WRONG)
    done = ci("check", ".", "--junit", tmp_path / "j.xml", "--markdown", tmp_path / "m.md", status=2)
    assert re.search(r"other\.json:1:\d+: No input, stage or function is called .phto.", done.stderr)
    assert "at /stages/0/value, of stage" in done.stderr
    assert "did you mean 'photo'?" in done.stderr
    assert "1 same, 1 not valid" in done.stdout, "the rest is compared, and nothing is said to be removed"
    (suite,) = JUnitXml.fromfile(str(tmp_path / "j.xml"))
    assert [type(r) for case in suite for r in case.result] == [Error]
    assert "`other.json` has no schedule" in (tmp_path / "m.md").read_text()
    assert "1 problem" in ci("record", ".", status=2).stderr


def test_a_regression_is_accepted_with_a_reason(repository, ci, main):
    repository.commit(soften=SLOWER)
    ci("check", ".", status=1)
    assert "is accepted at" in ci("acknowledge", "soften.json", "--reason", "smoother, on purpose").stdout
    assert "smoother, on purpose" in ci("check", ".").stdout
    repository.commit(notes=None)
    ci("check", ".")
    repository.git("switch", "--quiet", "--create", "elsewhere", main)
    repository.commit(soften=SLOWER)
    ci("check", ".", status=1)


def test_what_fails_is_not_recorded(repository, ci, main):
    repository.git("switch", "--quiet", "main")
    commit = repository.commit(soften=SLOWER)
    assert "nothing was recorded" in ci("check", ".", "--record", status=1).stderr
    assert commit[:12] not in ci("history").stdout
    ci("acknowledge", "soften.json", "--reason", "needed")
    ci("check", ".", "--record")
    assert ci("history", "--pipeline", "soften").stdout.count(commit[:12]) == 2
    assert len(json.loads(ci("history", "--json", "--limit", 3).stdout)["items"]) == 3


def test_a_reference_without_results_warns(repository, ci, tmp_path):
    repository.commit(soften=SOFTEN)
    done = ci("check", ".", "--markdown", tmp_path / "m.md")
    assert "nothing was recorded for main" in done.stderr
    assert "1 new (no baseline: main" in done.stdout
    assert (tmp_path / "m.md").read_text() == ""


def test_a_commit_is_a_baseline(repository, ci, main):
    repository.commit(soften=SLOWER)
    ci("check", ".", "--baseline", "HEAD~1", status=1)
    ci("check", ".", "--baseline", main[:12], status=1)


def test_two_documents_of_one_name_are_refused(repository, ci):
    repository.commit(soften=SOFTEN, twice=SLOWER)
    assert "both called soften" in ci("check", ".", status=2).stderr


def test_other_ways_of_scheduling_are_other_series(repository, ci, main):
    done = ci("check", ".", "--method", "taco2019", "--json")
    assert {c["status"] for c in json.loads(done.stdout)["comparisons"]} == {"new"}
    done = ci("check", ".", "--strategy", "cbuf", "--json")
    assert {c["variant"] for c in json.loads(done.stdout)["comparisons"]} == {"strategy cbuf"}


def test_a_wrong_token_is_an_error_and_not_shown(repository, ci, outside, main):
    outside.setenv("TILESMITH_TOKEN", "not-the-token")
    done = ci("check", ".", status=2)
    assert "the token is not known" in done.stderr
    assert "not-the-token" not in done.output


@pytest.mark.parametrize("token", ["a\nSecret-of-two-lines", "Sécret"])
def test_a_token_that_can_be_none_is_not_shown_by_whoever_refuses_it(repository, ci, outside, main, token):
    outside.setenv("TILESMITH_TOKEN", token)
    done = ci("check", ".", status=2)
    assert "TILESMITH_TOKEN has characters" in done.stderr
    assert "cret" not in done.output.replace("is it the secret itself", "")


def test_a_platform_may_be_a_file(repository, ci, main, tmp_path):
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps(platforms.to_document(platforms.load("i7-6700")) | {"name": "mine"}))
    ci("record", "soften.json", "--platform", mine, "--branch", "main")
    found = json.loads(ci("check", "soften.json", "--platform", mine, "--json").stdout)["comparisons"]
    assert {(c["platform"], c["status"]) for c in found if c["pipeline"] == "soften"} >= {("mine", "same")}
    mine.write_text("[1]")
    assert "no description of a platform" in ci("check", ".", "--platform", mine, status=2).stderr


def test_a_platform_that_is_not_known_is_an_error(repository, ci, main):
    assert "no platform" in ci("check", ".", "--platform", "none", status=2).stderr.lower()


def test_nobody_listens(repository, ci, pauses):
    repository.commit(soften=SOFTEN)
    assert "cannot be asked" in ci("check", ".", "--server", "http://127.0.0.1:1", status=2).stderr
    assert len(pauses) == 5
    assert "cannot be asked" in ci("check", ".", "--server", "no address", status=2).stderr


def test_a_busy_service_is_asked_again(repository, ci, outside, pauses, main):
    turned_away = []
    real = httpx.HTTPTransport()

    def handle(request):
        if len(turned_away) < 2:
            turned_away.append(request)
            return httpx.Response(429 + 74 * (len(turned_away) - 1), headers={"Retry-After": "3"}, json={})
        return real.handle_request(request)

    outside.setattr(target, "Client", partial(Client, transport=httpx.MockTransport(handle)))
    ci("check", ".")
    real.close()
    assert pauses == [3, 3]


def test_a_defect_does_not_look_like_a_regression(repository, ci, outside, main):
    outside.setattr(checking, "compare", lambda *_: 1 / 0)
    done = ci("check", ".", status=2)
    assert "ZeroDivisionError" in done.stderr
    assert "please report it" in done.stderr


def test_a_file_that_cannot_be_written_is_an_error(repository, ci, main, tmp_path):
    assert "nowhere" in ci("check", ".", "--markdown", tmp_path / "nowhere" / "m.md", status=2).stderr


def test_without_a_service_or_a_file_it_says_what_there_is(repository, ci, outside):
    outside.delenv("TILESMITH_SERVER")
    assert "--baseline-file" in ci("check", "harris", status=2).stderr


def test_documents_that_are_not_there(repository, ci):
    assert "matches none" in ci("check", "*.yaml", status=2).stderr
    assert "did you mean 'harris'" in ci("check", "haris", status=2).stderr
    Path("empty").mkdir()
    assert "no document" in ci("check", "empty", status=2).stderr


def test_folders_globs_and_names(repository, ci):
    Path("a/.hidden").mkdir(parents=True)
    for path in ("a/one.json", "a/.hidden/two.json", "three.yml"):
        Path(path).write_text(json.dumps({**SOFTEN, "name": Path(path).stem}))
    repository.commit()
    done = ci("check", "a", "*.yml", "blur", "a/one.json", "--json")
    assert [c["pipeline"] for c in json.loads(done.stdout)["comparisons"]] == ["blur", "one", "three"]


def test_bencher_takes_what_is_written(repository, ci, main, tmp_path):
    ci("check", ".", "--bencher", tmp_path / "b.json")
    metric = {"type": "object", "properties": {"value": {"type": "number"}}, "required": ["value"]}
    schema = {
        "type": "object",
        "additionalProperties": {"type": "object", "additionalProperties": metric, "minProperties": 1},
        "minProperties": 2,
    }
    jsonschema.validate(json.loads((tmp_path / "b.json").read_text()), schema)


def test_results_in_a_file_need_no_service(repository, ci, outside, tmp_path):
    outside.setenv("TILESMITH_SERVER", "http://127.0.0.1:1")
    repository.commit(soften=SOFTEN)
    file = tmp_path / "results.json"
    assert "1 new" in ci("check", ".", "--baseline-file", file).stdout
    ci("record", ".", "--baseline-file", file)
    assert "1 same" in ci("check", ".", "--baseline-file", file).stdout
    repository.commit(soften=SLOWER)
    assert "the pipeline was changed" in ci("check", ".", "--baseline-file", file, status=1).stdout
    assert "needs a service" in ci("check", ".", "--baseline-file", file, "--measure", status=2).stderr
    ci("check", ".", "--baseline-file", file, "--baseline", "main", status=2)
    file.write_text('{"results": [1]}')
    assert "is no file of results" in ci("check", ".", "--baseline-file", file, status=2).stderr


def test_a_file_and_a_service_have_the_same_results(repository, ci, main, tmp_path):
    file = tmp_path / "results.json"
    ci("record", ".", "--baseline-file", file)
    local = {r["pipeline"]: r for r in json.loads(file.read_text())["results"]}
    stored = {r["pipeline"]: r for r in json.loads(ci("history", "--json").stdout)["items"]}
    for name, result in local.items():
        assert result.items() <= stored[name].items()


@pytest.fixture
def measured_ratio(outside):
    """measured_ratio(1.2): the evidence that the service has."""

    def tell(ratio):
        job = {"id": "j", "state": "succeeded", "result": {"baseline_ms": [1.0] * 60, "now_ms": [ratio] * 60}}
        outside.setattr(Client, "compare", lambda *_: job)

    return tell


def test_measured_time_advises_and_gates_when_asked_to(repository, ci, main, measured_ratio, tmp_path):
    repository.commit(soften=SLOWER)
    limit = ("--fail-above", "9000%")
    measured_ratio(120.0)
    assert "+11900.0 % (+11900.0" in ci("check", ".", *limit, "--measure").stdout
    found = json.loads(ci("check", ".", *limit, "--measure", "--gate-measured", "--json", status=1).stdout)
    assert [c["status"] for c in found["comparisons"]] == ["same", "regressed"]
    assert found["comparisons"][0]["measured"] is None, "the same schedule is not run against itself"
    measured_ratio(1.0)
    ci("check", ".", *limit, "--measure", "--gate-measured")
    assert "goes with --measure" in ci("check", ".", "--gate-measured", status=2).stderr


def test_advice_that_fails_is_a_warning_and_a_gate_that_fails_an_error(repository, ci, main, outside):
    repository.commit(soften=SLOWER)
    job = {"id": "j", "state": "failed", "error": {"code": "run_failure", "detail": "it crashed"}}
    outside.setattr(Client, "compare", lambda *_: job)
    limit = ("--fail-above", "9000%", "--measure")
    assert "could not be measured: it crashed" in ci("check", ".", *limit).stderr
    assert "it crashed" in ci("check", ".", *limit, "--gate-measured", status=2).stderr


@pytest.mark.slow
def test_the_service_runs_both_codes_in_turns(repository, ci, outside):
    outside.setattr(compare, "ROUNDS", 10)  # as many as an interval needs, and a few

    def small(document):
        return {**document, "estimates": {"soft": [[0, 512], [0, 512]]}}

    repository.commit(soften=small(SOFTEN))
    done = ci("record", ".", "--measure", "--json", "--platform", "host")
    (stored,) = [r for r in json.loads(done.stdout)["recorded"] if r["platform"] == "host"]
    assert stored["measured"]["low_ms"] <= stored["measured"]["median_ms"] <= stored["measured"]["high_ms"]
    repository.commit(soften=small(SLOWER))
    options = ("--measure", "--gate-measured", "--fail-above", "900%", "--json", "--platform", "host")
    done = ci("check", ".", *options, status=None)
    host = next(c for c in json.loads(done.stdout)["comparisons"] if c["platform"] == "host")
    assert 1 <= host["measured"]["rounds"] <= 10
    assert host["measured"]["ratio"] > 0
    assert (done.exit_code == 1) == (host["status"] == "regressed")
