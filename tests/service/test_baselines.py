"""Projects: results recorded, asked for as baselines, accepted, listed, and shown as a badge."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from tilesmith.app.service.schedules.packing import pack
from tilesmith.app.service.tables import packed_forms, schedules

A, B, C, D = (letter * 40 for letter in "abcd")
PROJECT = "/v1/projects/camera"


@pytest.fixture
def keep(service):
    """keep(pipeline, predicted): the id of a schedule that the store has."""

    def kept(pipeline, predicted=100.0, platform="i7-6700", method="default", unit="microseconds"):
        schedule_id = f"{pipeline}-{platform}-{method}-{predicted}"
        body = {
            "id": schedule_id,
            "pipeline": pipeline,
            "pipeline_id": f"{pipeline}-document",
            "platform": platform,
            "options": {"method": method, "strict": False},
            "predicted": {"total": predicted, "unit": unit},
        }
        names = {k: body[k] for k in ("id", "pipeline", "pipeline_id", "platform")}
        row = names | {"method": method, "strict": False, "groups": 1, "version": "0", "created_us": 1}
        with service.context.db.write() as connection:
            service.context.db.insert_new(connection, schedules, row)
        with service.context.db.write() as connection:
            packed = {"schedule_id": schedule_id, "content": pack({"answer": json.dumps(body).encode()})}
            service.context.db.insert_new(connection, packed_forms, packed)
        return schedule_id

    return kept


@pytest.fixture
def record(service, keep):
    """record(branch, commit, harris=100.0, ...): results of a commit by name of the pipeline."""

    def recorded(branch, commit, project=PROJECT, platform="i7-6700", **predicted):
        ids = [keep(name, value, platform) for name, value in predicted.items()]
        body = {"branch": branch, "commit": commit, "results": [{"schedule_id": i} for i in ids]}
        answer = service.client.post(f"{project}/results", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    return recorded


@pytest.fixture
def baseline(service):
    """baseline(ref, *ancestors): predicted time by pipeline."""

    def asked(ref, *ancestors):
        answer = service.client.post(f"{PROJECT}/baseline", json={"ref": ref, "ancestors": ancestors})
        assert answer.status_code == 200, answer.text
        return {r["pipeline"]: r["predicted"] for r in answer.json()["items"]}

    return asked


@pytest.fixture
def accept(service, keep):
    def accepted(commit, pipeline, predicted, branch="feature", reason="on purpose"):
        body = {"branch": branch, "commit": commit, "schedule_id": keep(pipeline, predicted), "reason": reason}
        answer = service.client.post(f"{PROJECT}/acknowledgements", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    return accepted


def test_what_is_recorded_is_what_the_service_knows_of_the_schedule(service, keep):
    measured = {"median_ms": 1.5, "low_ms": 1.4, "high_ms": 1.6, "runs": 60, "machine": "a machine"}
    results = [{"schedule_id": keep("harris", 728.5), "measured": measured}]
    answer = service.client.post(f"{PROJECT}/results", json={"branch": "main", "commit": A, "results": results}).json()
    (stored,) = answer["items"]
    expected = {
        "branch": "main", "commit": A, "pipeline": "harris", "platform": "i7-6700", "variant": "default",
        "pipeline_id": "harris-document", "predicted": 728.5, "unit": "microseconds", "measured": measured,
        "reason": None, "token": None,
    }  # fmt: skip
    assert expected.items() <= stored.items()
    assert [c["status"] for c in answer["changes"]] == ["new"]


def test_a_recorded_commit_is_compared_with_the_one_before(record):
    record("main", A, harris=100.0, blur=10.0)
    changes = record("main", B, harris=120.0, blur=10.0)["changes"]
    assert [(c["pipeline"], c["status"]) for c in changes] == [("blur", "same"), ("harris", "regressed")]
    assert changes[1]["change"] == pytest.approx(0.2)


def test_a_branch_means_its_latest_commit(record, baseline):
    record("main", A, harris=100.0, gone=1.0)
    record("main", B, harris=110.0)
    record("other", C, harris=500.0)
    assert baseline("main") == {"harris": 110.0}


def test_the_latest_commit_is_that_of_each_platform(record, baseline, service):
    record("main", A, harris=100.0)
    record("main", A, platform="arm", harris=300.0)
    record("main", B, harris=110.0)
    answer = service.client.post(f"{PROJECT}/baseline", json={"ref": "main"}).json()
    assert answer["kind"] == "branch"
    assert {(r["platform"], r["commit"]) for r in answer["items"]} == {("i7-6700", B), ("arm", A)}


def test_of_a_commit_that_is_recorded_twice_the_last_counts(record, baseline):
    record("main", A, harris=100.0)
    record("main", A, harris=90.0)
    assert baseline("main") == baseline(A) == {"harris": 90.0}


def test_a_commit_means_its_nearest_ancestor_with_results(record, baseline):
    record("main", A, harris=100.0)
    record("main", B, harris=110.0)
    assert baseline(A) == {"harris": 100.0}
    assert baseline(C, D, C, B, A) == {"harris": 110.0}, "D is after C: it does not count"
    assert baseline("v1.0", B, A) == {"harris": 110.0}


def test_a_reference_without_results_is_told(service, record):
    for body in ({"ref": "main"}, {"ref": C, "ancestors": [D]}):
        answer = service.client.post(f"{PROJECT}/baseline", json=body)
        assert (answer.status_code, answer.json()["code"]) == (404, "baseline_not_found")


def test_what_was_accepted_is_the_baseline_of_its_commit_and_what_follows(record, baseline, accept):
    record("main", A, harris=100.0, blur=10.0)
    assert accept(C, "harris", 130.0)["reason"] == "on purpose"
    assert baseline("main", C, A) == {"harris": 130.0, "blur": 10.0}
    assert baseline("main", D, C, A) == {"harris": 130.0, "blur": 10.0}
    assert baseline("main", D, A) == {"harris": 100.0, "blur": 10.0}, "another branch"
    assert baseline("main") == {"harris": 100.0, "blur": 10.0}


def test_it_counts_until_a_nearer_commit_was_recorded(record, baseline, accept):
    record("main", A, harris=100.0)
    accept(B, "harris", 130.0)
    record("main", C, harris=90.0)
    assert baseline("main", D, C, B, A) == {"harris": 90.0}
    assert baseline("main", B, A) == {"harris": 130.0}


def test_accepting_on_the_branch_itself_hides_no_other_pipeline(record, baseline, accept):
    record("main", A, harris=100.0, blur=10.0)
    accept(B, "harris", 130.0, branch="main")
    assert baseline("main", B, A) == {"harris": 130.0, "blur": 10.0}
    record("main", B, harris=130.0, blur=10.0)
    assert baseline("main", C, B, A) == {"harris": 130.0, "blur": 10.0}


def test_history_has_the_newest_first_in_pages(service, record):
    record("main", A, harris=100.0, blur=1.0)
    record("main", B, harris=110.0)
    url, found, params = f"{PROJECT}/results", [], {"limit": 2}
    while True:
        page = service.client.get(url, params=params).json()
        found += page["items"]
        if page["next_cursor"] is None:
            break
        params["cursor"] = page["next_cursor"]
    assert [r["commit"] for r in found] == [B, A, A]
    only = service.client.get(url, params={"pipeline": "harris", "branch": "main", "commit": A}).json()["items"]
    assert [r["predicted"] for r in only] == [100.0]


def test_trends_have_the_oldest_first(service, record):
    for commit, predicted in ((A, 100.0), (B, 110.0), (C, 90.0)):
        record("main", commit, harris=predicted)
    (trend,) = service.client.get(f"{PROJECT}/trends", params={"branch": "main"}).json()["items"]
    assert [p["predicted"] for p in trend["points"]] == [100.0, 110.0, 90.0]
    assert trend["change"] == pytest.approx(-0.1)


def test_projects_are_listed_by_name(service, record):
    for name in ("zoom", "camera", "aurora"):
        record("main", A, project=f"/v1/projects/{name}", harris=1.0)
    first = service.client.get("/v1/projects", params={"limit": 2}).json()
    then = service.client.get("/v1/projects", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [p["name"] for p in first["items"] + then["items"]] == ["aurora", "camera", "zoom"]
    assert service.client.get(first["items"][0]["href"]).status_code == 200


@pytest.mark.parametrize("path", ["results", "trends", "badge.svg"])
def test_a_project_without_results_is_not_found(service, path):
    assert service.client.get(f"{PROJECT}/{path}").json()["code"] == "project_not_found"


@pytest.mark.parametrize(
    "change",
    [
        {"commit": "HEAD"},
        {"branch": "a\nb"},
        {"branch": ""},
        {"results": []},
        {"results": [{"schedule_id": "none"}]},
        {"results": [{"schedule_id": "x", "measured": {"median_ms": -1, "runs": 1}}]},
        {"more": 1},
    ],
)
def test_wrong_results_are_refused_and_nothing_is_kept(service, keep, change):
    body = {"branch": "main", "commit": A, "results": [{"schedule_id": keep("harris")}]}
    answer = service.client.post(f"{PROJECT}/results", json=body | change)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_request")
    assert answer.json()["errors"][0]["pointer"].startswith("/")
    assert service.client.get("/v1/projects").json()["items"] == []


def test_a_schedule_that_is_not_there_cannot_be_accepted(service):
    body = {"branch": "main", "commit": A, "schedule_id": "none", "reason": "why"}
    assert service.client.post(f"{PROJECT}/acknowledgements", json=body).json()["code"] == "schedule_not_found"


def test_names_of_projects_are_checked(service):
    assert service.client.get("/v1/projects/%2e%2e/results").status_code in (404, 422)
    assert service.client.get("/v1/projects/a b/results").json()["code"] == "bad_request"


def badge_text(service, **params):
    answer = service.client.get(f"{PROJECT}/badge.svg", params=params)
    assert answer.headers["content-type"] == "image/svg+xml"
    return {t.text for t in ElementTree.fromstring(answer.text).iter("{http://www.w3.org/2000/svg}text")}


def test_the_badge_counts_what_is_slower(service, record):
    record("main", A, harris=100.0, blur=1.0)
    assert badge_text(service) == {"tilesmith", "2 as fast"}
    record("main", B, harris=106.0, blur=1.0)
    assert badge_text(service) == {"tilesmith", "1 slower"}
    assert badge_text(service, branch="none") == {"tilesmith", "no results"}


@pytest.mark.parametrize(("public", "status"), [(False, 401), (True, 200)])
def test_badges_need_a_token_unless_they_are_public(start, public, status):
    service = start(admin_token="sesame-open-sesame", public_badges=public)
    assert service.client.get("/v1/projects").status_code == 401
    answer = service.client.get(f"{PROJECT}/badge.svg")
    assert answer.status_code == (401 if status == 401 else 404)


def test_results_say_which_token_recorded_them(service, keep):
    token = service.context.tokens.create("nightly", ("submit",)).token
    body = {"branch": "main", "commit": A, "results": [{"schedule_id": keep("harris")}]}
    headers = {"Authorization": f"Bearer {token}"}
    answer = service.client.post(f"{PROJECT}/results", json=body, headers=headers)
    assert answer.json()["items"][0]["token"] == "nightly"
    assert token not in answer.text
    reader = {"Authorization": f"Bearer {service.context.tokens.create('r', ('read',)).token}"}
    assert service.client.post(f"{PROJECT}/results", json=body, headers=reader).status_code == 403
    assert service.client.post(f"{PROJECT}/baseline", json={"ref": "main"}, headers=reader).status_code == 200


def test_results_are_deleted(service, record, baseline):
    record("main", A, harris=100.0, blur=10.0)
    record("feature", B, harris=90.0)
    record("feature", B, platform="arm", harris=80.0)
    url = f"{PROJECT}/results"
    assert service.client.delete(url, params={"branch": "feature", "platform": "arm"}).json() == {"results": 1}
    assert service.client.delete(url, params={"branch": "feature"}).json() == {"results": 1}
    assert service.client.delete(url, params={"branch": "feature"}).json() == {"results": 0}
    assert baseline("main") == {"harris": 100.0, "blur": 10.0}
    misspelt = service.client.delete(url, params={"brunch": "main"})
    assert (misspelt.status_code, misspelt.json()["code"]) == (422, "bad_request")
    assert "brunch" in misspelt.text
    assert service.client.delete(url).json() == {"results": 2}
    assert service.client.delete(url).json()["code"] == "project_not_found"
