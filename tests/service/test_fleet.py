"""Many machines: services that share a database and a pool of workers, all of them processes, some of them killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import numpy as np
import pytest
from support import fleet as program
from support.tools import require_tool

from tilesmith.app.service.db import Database, downgrade
from tilesmith.app.service.jobs.states import FINISHED
from tilesmith.scheduler import pipelines

pytestmark = pytest.mark.slow

ISA = "sse4.2"
JOBS = 16


def free_ports(count):
    with ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [s.getsockname()[1] for s in held]


class Fleet:
    """Processes, and clients of the services among them."""

    def __init__(self, folder, database, stack):
        self.folder = folder
        scheduler, *services = free_ports(3)
        settings = {
            "database_url": database,
            "job_lease_s": 4,
            "job_attempts": 9,
            "log_level": "warning",
            "calibrate": False,
        }
        config = {"folder": str(folder), "scheduler": scheduler, "services": services, "settings": settings}
        (folder / "config.json").write_text(json.dumps(config | {"workers": [None, None, ISA]}))
        command = [sys.executable, program.__file__, str(folder / "config.json")]
        process = stack.enter_context(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path.cwd())
        )
        self.ids = json.loads(process.stdout.readline())
        self.clients = [
            stack.enter_context(httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, verify=False))
            for port in services
        ]

    def log(self):
        return "".join(f"{p.name}:\n{p.read_text()[-3000:]}" for p in sorted(self.folder.glob("*.log")))

    def until(self, done, seconds=90):
        """The first true answer of a question that is asked again and again."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                found = done()
            except httpx.TransportError:
                found = None
            if found:
                return found
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def machines(self):
        """The names of the machines that the pool has, once both kinds are known."""
        found = self.clients[1].get("/v1/platforms", params={"limit": 100}).json()["items"]
        names = sorted(p["name"] for p in found if p["source"] == "stored")
        return names if len(names) == 2 and self.clients[0].get("/healthz").status_code == 200 else None

    def run(self, client, schedule):
        body = {"estimates": True, "outputs": True, "repeat": 2}
        answer = client.post(f"/v1/schedules/{schedule}/runs", json=body)
        assert answer.status_code == 202, answer.text
        return answer.json()["id"]


@pytest.fixture
def fleet(tmp_path, postgres):
    require_tool("gcc")
    with ExitStack() as stack:
        yield Fleet(tmp_path, postgres, stack)
    with closing(Database(postgres)) as db:
        downgrade(db, "base")  # other tests find it empty


def small():
    document = pipelines.document("blur")
    sizes = {name: [[0, 40], [0, 30]] for name in document["estimates"] if name in document["outputs"]}
    return document | {"estimates": sizes}


def flags_of_builds(folder):
    """The flags of the libraries that a worker has compiled."""
    records = [json.loads(p.read_text()) for p in folder.glob("builds/libraries/*/build.json")]
    return [record["flags"] for record in records]


def test_no_job_is_lost_or_done_twice_or_elsewhere(fleet):
    narrow, wide = fleet.until(fleet.machines)
    assert fleet.clients[1].get("/readyz").json()["checks"]["pool"] == "ok"
    assert narrow.endswith("x128")
    first, second = fleet.clients
    made = {
        name: second.post("/v1/schedules", json={"pipeline": small(), "platform_name": name}).json()["id"]
        for name in (narrow, wide)
    }
    jobs = {}
    for n in range(JOBS):
        name = (wide, wide, narrow)[n % 3]
        jobs[fleet.run((first, second)[n % 2], made[name])] = name

    def states():
        return [second.get(f"/v1/jobs/{job}").json()["state"] for job in jobs]

    fleet.until(lambda: states().count("succeeded") >= 2)
    os.kill(fleet.ids["workers"][0], signal.SIGKILL)
    os.kill(fleet.ids["services"][0], signal.SIGKILL)
    fleet.until(lambda: set(states()) <= FINISHED)

    results = set()
    for job in jobs:
        found = second.get(f"/v1/jobs/{job}").json()
        assert found["state"] == "succeeded", (found["error"], found["attempts"], fleet.log())
        events = second.get(f"/v1/jobs/{job}/events").text
        assert events.count('"state":"succeeded"') == 1
        output = second.get(found["result"]["outputs"][0]["links"]["npy"])
        assert output.status_code == 200
        results.add(output.content)
    assert len(results) == 1, "both machines compute the same, and no result is torn"
    for name, schedule in made.items():
        assert second.get(f"/v1/schedules/{schedule}/library.so").content.startswith(b"\x7fELF"), name
    assert all("-msse4.2" in flags for flags in flags_of_builds(fleet.folder / "worker-2"))
    assert all("-msse4.2" not in flags for n in (0, 1) for flags in flags_of_builds(fleet.folder / f"worker-{n}"))
    assert flags_of_builds(fleet.folder / "worker-2")

    _uploads_reach_workers_and_are_kept_by_content(fleet, second, made[wide])
    _a_job_for_a_machine_that_is_away_waits(fleet, second, made[narrow])


def _uploads_reach_workers_and_are_kept_by_content(fleet, client, schedule):
    image = fleet.folder / "image.npy"
    np.save(image, np.arange(44 * 34, dtype=np.uint16).reshape(34, 44))
    with image.open("rb") as file:
        answer = client.post(f"/v1/schedules/{schedule}/runs", files={"input": ("image.npy", file)})
    assert answer.status_code == 202, answer.text
    job = answer.json()["id"]
    fleet.until(lambda: client.get(f"/v1/jobs/{job}").json()["state"] in FINISHED)
    assert client.get(f"/v1/jobs/{job}").json()["state"] == "succeeded", fleet.log()


def _a_job_for_a_machine_that_is_away_waits(fleet, client, schedule):
    os.kill(fleet.ids["workers"][2], signal.SIGTERM)
    fleet.until(lambda: "worker ended" in (fleet.folder / "worker-2.log").read_text())
    fleet.until(lambda: client.get("/readyz").json()["checks"]["jobs"] == "ok")
    job, begun = fleet.run(client, schedule), time.monotonic()
    fleet.until(lambda: time.monotonic() > begun + 2 and client.get(f"/v1/jobs/{job}").json()["state"] == "queued")
    assert client.get(f"/v1/jobs/{job}").json()["attempts"] == 0
    assert client.delete(f"/v1/jobs/{job}").json()["state"] == "cancelled"
