"""Drain: a service that is told to end finishes what runs, takes nothing more, and says so."""

from __future__ import annotations

import signal
import threading

import pytest
import uvicorn
from sse_starlette.sse import AppStatus

from tilesmith.app.runtime.sandbox import cancel_event
from tilesmith.app.service.draining import DrainingServer


class Held:
    """A job's work that goes on until the test lets it end."""

    def __init__(self):
        self.started, self.proceed = threading.Event(), threading.Event()

    def __call__(self, task, claim, watch):
        self.started.set()
        watch.run("working", self.wait)
        return {"done": True}

    def wait(self):
        while not (self.proceed.wait(0.01) or cancel_event.get().is_set()):
            pass


@pytest.fixture
def held(start):
    """A service whose one worker is at a job, another job waits, and both jobs."""
    job = Held()
    service = start(job, job_workers=1)
    asked = [service.client.post(f"/v1/schedules/{service.schedule(n)}/builds").json()["id"] for n in ("blur", "next")]
    assert job.started.wait(20)
    yield service, job, asked
    job.proceed.set()


def states(service, jobs):
    return [service.client.get(f"/v1/jobs/{job}").json()["state"] for job in jobs]


def test_what_runs_is_finished_and_what_waits_is_left_to_others(held):
    service, job, asked = held
    drain = threading.Thread(target=service.context.runner.drain, args=(20,))
    drain.start()
    while not service.context.runner.draining:
        pass
    answer = service.client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["jobs"] == "draining"
    assert drain.is_alive()
    job.proceed.set()
    drain.join(20)
    assert states(service, asked) == ["succeeded", "queued"]


def test_what_runs_longer_than_the_grace_is_put_back_without_counting(held):
    service, _, asked = held
    service.context.runner.drain(0.05)
    assert states(service, asked) == ["running", "queued"]
    service.context.runner.stop()
    found = service.client.get(f"/v1/jobs/{asked[0]}").json()
    assert (found["state"], found["attempts"]) == ("queued", 0)


@pytest.mark.parametrize(("signals", "waits"), [([signal.SIGTERM], True), ([signal.SIGINT], False)])
def test_sigterm_drains_first_and_ctrl_c_does_not(monkeypatch, signals, waits):
    monkeypatch.setattr(AppStatus, "should_exit", False)  # of the whole process: streams of later tests would end
    proceed = threading.Event()
    server = DrainingServer(uvicorn.Config(lambda: None), lambda: proceed.wait(20))
    for number in signals:
        server.handle_exit(number, None)
    assert server.should_exit is not waits
    server.handle_exit(signal.SIGTERM, None)
    assert server.should_exit
    proceed.set()
    for thread in threading.enumerate():
        if thread.name == "tilesmith-drain":
            thread.join()


def test_who_runs_the_server_outlives_the_signal_that_ends_it(monkeypatch):
    monkeypatch.setattr(AppStatus, "should_exit", False)
    server, reached = DrainingServer(uvicorn.Config(lambda: None), lambda: None), []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: reached.append(number))
    try:
        with server.capture_signals():
            signal.raise_signal(signal.SIGTERM)
            while not server.should_exit:
                pass
    finally:
        signal.signal(signal.SIGTERM, before)
    assert reached == []
