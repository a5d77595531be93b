"""The page of a job and the forms of a schedule, without scripts: where they lead, what they refuse, what is shown."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from PIL import Image
from service.test_dashboard import page

from tilesmith.app.runtime import previews
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.schedules import work

PIPELINE = {
    "format": 1,
    "name": "darken",
    "params": [
        {"name": "factor", "type": "float32", "default": 0.001},
        {"name": "shift", "type": "int32", "default": 0},
    ],
    "inputs": [{"name": "photo", "type": "float32", "dims": ["x", "y", "c"]}],
    "stages": [{"name": "dark", "dims": ["x", "y", "c"], "value": "photo(x, y, c) * factor + shift"}],
    "outputs": ["dark"],
    "estimates": {"dark": [[0, 64], [0, 48], [0, 3]]},
}


def post(service, url, data=None, files=None, **headers):
    """The address that a form, sent from a page of the service, leads to."""
    sent = {"Origin": service.url, "Accept": "text/html", **headers}
    answer = service.client.post(url, data=data or {}, files=files, headers=sent)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def done(result=None, error=None):
    """The work of a job that ends at once."""

    def job(_task, _claim, watch):
        watch.say("working")
        if error is not None:
            raise error
        return result or {}

    return job


def ended(service, address):
    """The page of a job that has come to its end."""
    service.ended(address.removeprefix("/jobs/"))
    return page(service, address)


def photo():
    """A picture of noise, as PNG."""
    noise = np.random.default_rng(1).integers(0, 255, (48, 64, 3), np.uint8)
    content = io.BytesIO()
    Image.fromarray(noise).save(content, "PNG")
    return content.getvalue()


def test_a_form_leads_to_the_job_that_it_started(start):
    service = start(done({"times_ms": [1.0, 2.0, 4.0, 3.0], "threads": 2, "peak_rss_bytes": 1 << 20}), job_workers=1)
    schedule_id = service.schedule()
    found = page(service, f"/schedules/{schedule_id}")
    actions = {a["action"] for tag, a in found.tags if tag == "form"} - {"/compare"}
    assert actions == {f"/schedules/{schedule_id}/{act}" for act in ("runs", "measurements", "tunings", "builds")}
    address = post(service, f"/schedules/{schedule_id}/measurements", {"repeat": "4"})
    text = ended(service, address).text
    for words in (
        "Measurement of blur on host",
        "has succeeded",
        "2.500 ms",
        "1.750 to 3.250 ms",
        "1.000 to 4.000 ms, 4 calls",
    ):
        assert words in text
    assert service.client.get(f"/v1{address}").json()["request"] == {"estimates": True, "repeat": 4, "outputs": False}
    chart = service.client.get(f"{address}/times.svg")
    assert chart.headers["content-type"] == "image/svg+xml"
    assert "Times of 4 calls in their order: median 2.500 ms" in chart.text


def test_a_library_that_was_built_is_linked(start):
    service = start(done({"bytes": 2048, "log": "a <warning>", "compiler": "cc 1"}), job_workers=1)
    schedule_id = service.schedule()
    found = ended(service, post(service, f"/schedules/{schedule_id}/builds"))
    assert f"/v1/schedules/{schedule_id}/library.so" in found.links
    assert "a <warning>" in found.text


def test_a_job_that_failed_says_why(start):
    error = ApiError("compile_failure", "no such <flag>", extra={"output": "cc1: <error>"})
    service = start(done(error=error), job_workers=1)
    text = ended(service, post(service, f"/schedules/{service.schedule()}/builds")).text
    assert "has failed" in text
    assert "no such <flag>" in text
    assert "cc1: <error>" in text


def test_a_job_is_cancelled_and_asked_again(service):
    address = post(service, f"/schedules/{service.schedule()}/builds")
    waiting = page(service, address)
    assert "waits for its turn" in waiting.text
    assert ("div", {"id": "job", "data-events": f"{address}/events"}) in waiting.tags
    assert address in waiting.links  # to look again, without scripts
    assert post(service, f"{address}/cancel") == address
    assert "was cancelled" in page(service, address).text
    again = post(service, f"{address}/again")
    assert again != address
    assert service.client.get(f"/v1{again}").json()["kind"] == "build"


def test_events_are_streamed_under_the_page_too(start):
    service = start(done(), job_workers=1)
    address = post(service, f"/schedules/{service.schedule()}/builds")
    ended(service, address)
    stream = service.client.get(f"{address}/events")
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert re.findall(r'"(?:phase|state)":"(\w+)"', stream.text)[-1] == "succeeded"


@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://elsewhere.example"}])
def test_forms_of_other_pages_are_refused(service, headers):
    schedule_id = service.schedule()
    answer = service.client.post(f"/schedules/{schedule_id}/builds", headers=headers)
    assert answer.status_code == 403
    assert answer.json()["code"] == "cross_origin"
    assert service.client.get("/v1/jobs").json()["items"] == []


def test_changing_needs_more_than_reading(service):
    schedule_id = service.schedule()
    made = service.client.post("/v1/tokens", json={"name": "reader", "scopes": ["read"]}).json()
    own = {"Origin": service.url}
    answer = service.client.post(f"/schedules/{schedule_id}/builds", headers=own, auth=("", made["token"]))
    assert answer.status_code == 403
    assert answer.json()["code"] == "forbidden"
    assert service.client.get(f"/schedules/{schedule_id}", auth=("", made["token"])).status_code == 200


@pytest.mark.parametrize(
    ("data", "code"),
    [({"param.factor": "much", "param.shift": "0"}, "bad_argument"), ({"param.other": "1"}, "bad_request")],
)
def test_a_parameter_that_is_none_is_refused(start, data, code):
    service = start(scheduling=work)
    schedule_id = service.client.post("/v1/schedules", json={"pipeline": PIPELINE}).json()["id"]
    files = {"input.photo": ("photo.png", photo())}
    own = {"Origin": service.url}
    answer = service.client.post(f"/schedules/{schedule_id}/runs", data=data, files=files, headers=own)
    assert answer.json()["code"] == code


def test_a_run_without_a_picture_is_refused(start):
    service = start(scheduling=work)
    schedule_id = service.client.post("/v1/schedules", json={"pipeline": PIPELINE}).json()["id"]
    files = {"input.photo": ("", b"")}
    answer = service.client.post(f"/schedules/{schedule_id}/runs", files=files, headers={"Origin": service.url})
    assert "input 'photo' is missing" in answer.json()["detail"]


@pytest.mark.slow
def test_before_and_after_are_shown_and_a_dark_result_is_stretched(start):
    service = start(scheduling=work, job_workers=1)
    schedule_id = service.client.post("/v1/schedules", json={"pipeline": PIPELINE}).json()["id"]
    asked = {"param.factor": "0.001", "param.shift": "0", "convert": "on"}
    first = post(service, f"/schedules/{schedule_id}/runs", asked, {"input.photo": ("photo.png", photo())})
    ended(service, first)
    for address in (first, post(service, f"{first}/again")):
        found = ended(service, address)
        assert "nearly black" in found.text
        pictures = [a["src"] for tag, a in found.tags if tag == "img"]
        assert pictures == [f"{address}/inputs/0.png", f"{address}/outputs/dark/0.png?stretch=true"]
        before, after = (np.asarray(Image.open(io.BytesIO(service.client.get(p).content))) for p in pictures)
        assert np.array_equal(before, np.asarray(Image.open(io.BytesIO(photo()))))
        assert np.corrcoef(before.ravel(), after.ravel())[0, 1] > 0.99
        downloads = [link for link in found.links if link.startswith("/v1/jobs/") and "outputs" in link]
        assert {service.client.get(link).status_code for link in downloads} == {200}
        assert len(downloads) == 3


@pytest.mark.slow
def test_a_tuned_schedule_is_kept_and_then_shown_at_once(start):
    service = start(scheduling=work, job_workers=1)
    schedule_id = service.client.post("/v1/schedules", json={"pipeline": PIPELINE}).json()["id"]
    address = post(service, f"/schedules/{schedule_id}/tunings", {"candidates": "2"})
    found = ended(service, address)
    tuned = service.client.get(f"/v1{address}").json()["request"]["schedule_id"]
    assert f"/schedules/{tuned}" in found.links
    assert "is the fastest" in found.text
    assert post(service, f"/schedules/{schedule_id}/tunings", {"candidates": "2"}) == f"/schedules/{tuned}"
    actions = {a["action"] for tag, a in page(service, f"/schedules/{tuned}").tags if tag == "form"}
    assert f"/schedules/{tuned}/tunings" not in actions


def test_a_picture_with_holes_is_shown():
    array = np.full((40, 50), np.nan, np.float32)
    array[:20] = np.inf
    assert Image.open(io.BytesIO(previews.png(array, ("x", "y"), False))).size == (50, 40)


def test_a_picture_is_averaged_down():
    array = np.zeros((3, 3000, 2000), np.uint8)
    array[:, ::2] = 200
    small = np.asarray(Image.open(io.BytesIO(previews.png(array, ("x", "y", "c"), False))))
    assert small.shape == (1000, 666, 3)
    assert set(np.unique(small)) <= set(range(66, 134))
