"""A service on a port of its own for each test, with scheduling replaced by something small and countable."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.servers import running
from support.tools import require_tool

from tilesmith.app.service import logs
from tilesmith.app.service.bodies import parse_json
from tilesmith.app.service.context import Context
from tilesmith.app.service.db import Database, upgrade
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.jobs.states import FINISHED
from tilesmith.app.service.main import create_app
from tilesmith.app.service.schedules import work
from tilesmith.app.service.schedules.answers import (
    Answer,
    Decided,
    Generated,
    PipelineIdentity,
    Question,
    StrategyIdentity,
    candidate_form,
    content_hash,
)
from tilesmith.app.service.schedules.examples import BLUR
from tilesmith.app.service.settings import Settings
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.errors import Problem
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.search import Trace, explain

GROUP = {"output": "blur_y", "loops": ["x.inner", "y.inner"], "parallel": "y.inner", "placements": []}


@dataclass
class FakeScheduling:
    """A stand-in for app.service.schedules.work. `meanwhile` is called while a schedule is made."""

    answered: list[Question] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None
    degraded: str | None = None
    groups: list[dict[str, Any]] = field(default_factory=lambda: [GROUP])
    derived: list[str] = field(default_factory=list)
    underivable: bool = False
    predicted: dict[str, Any] = field(default_factory=lambda: {"total": 1.0})

    def inspect(self, document: bytes, _limits: object) -> PipelineIdentity | ApiError:
        try:
            return self.identity(parse_json(document))
        except ApiError as error:
            return error

    def inspect_strategy(self, document: bytes) -> StrategyIdentity | ApiError:
        return StrategyIdentity(content_hash(document), "a strategy", document)

    def identity(self, document: Any) -> PipelineIdentity | ApiError:
        if not isinstance(document, dict) or not isinstance(document.get("stages"), list):
            return ApiError("bad_document", "1 problem was found", [Problem("missing_key", "/stages", "no stages")])
        text = json.dumps(document, sort_keys=True).encode()
        return PipelineIdentity(content_hash(text), document["name"], len(document["stages"]), text)

    def import_content(self, name: str, _content: bytes, _limits: object) -> ApiError:
        code = "bad_source" if name == "onnx" else "importer_not_found"
        return ApiError(code, "a reason")

    def key(self, question: Question) -> str | ApiError:
        found = self.identity(question.estimated())
        if isinstance(found, ApiError):
            return ApiError(found.code, found.detail, [Problem("missing_key", "/pipeline/stages", "no stages")])
        asked = [found.id, question.platform, question.options()]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:32]

    def answer(self, question: Question, _id: str | None = None) -> Answer | ApiError:
        self.answered.append(question)
        self.meanwhile()
        pipeline, key = self.identity(question.estimated()), self.key(question)
        assert isinstance(pipeline, PipelineIdentity)
        assert isinstance(key, str)
        if pipeline.name == "impossible":
            return ApiError("no_schedule", "no schedule is valid")
        body = {
            "id": key,
            "pipeline": pipeline.name,
            "pipeline_id": pipeline.id,
            "platform": question.platform["name"],
            "method": question.method,
            "options": question.options(),
            "degraded": self.degraded,
            "groups": self.groups,
            "predicted": self.predicted,
            "buffers": [{"name": "blur_x", "bytes": 1024}],
            "entry": f"tilesmith_{pipeline.name}",
            "timings_ms": {"parse": 1.0, "total": 2.0},
        }
        forms, schedule = {}, Schedule(pipeline.name, question.method, ())
        forms["schedule.json"] = json.dumps(DECIDED | {"pipeline": pipeline.name}).encode()
        forms["explain"] = json.dumps(explain.to_document(schedule, Trace(question.method, "ms", ()))).encode()
        forms["candidates"] = json.dumps({"model": "m", "unit": "ms", "items": self.candidates(key)}).encode()
        forms[candidate_form(1, "schedule.json")] = b"{}"
        forms["pipeline.json"] = json.dumps(question.estimated()).encode()
        forms["platform.json"] = json.dumps(question.platform).encode()
        return Answer(
            key, pipeline, question.platform["name"], question.method, question.strict, self.degraded, "0", body, forms
        )

    def candidates(self, key: str) -> list[dict[str, Any]]:
        base = f"/v1/schedules/{key}"
        figures = {"memory_bytes": 2048, "recompute": 1.5, "parallelism": 8.0, "pareto": True, "differs": "<nothing>"}
        links = {name: f"{base}/{candidate_form(1, name)}" for name in ("schedule.json", "loopnest.txt")}
        return [{"rank": rank, "predicted": 1.25 * rank, **figures, "links": links} for rank in (1, 2)]

    def generate(self, _decided: Decided, _limits: object) -> Generated:
        return Generated(CSource(**SOURCE))

    def derive(self, name: str, pipeline: bytes, platform: bytes, schedule: bytes, _limits: object) -> bytes | ApiError:
        self.derived.append(name)
        if self.underivable:
            return ApiError("bad_document", "the document is of another time")
        found = {"figures.json": FIGURES, "tiles.json": TILES}.get(name)
        return b"derived from " + schedule if found is None else json.dumps(found).encode()


SOURCE = {
    "code": "int f(void) { return 0; }\n",
    "header": "int f(void);\n",
    "header_name": "f.h",
    "entry": "f",
    "flags": [],
    "buffers": [],
}


DECIDED = {"format": 1, "method": "default", "strict": False, "groups": []}
FIGURES: dict[str, Any] = {
    "levels": ["L2", "memory"],
    "stages": [
        {"name": "input", "role": "input", "extents": {"x": 8}, "operations": 0.0, "bytes": 16, "places": []},
        {
            "name": "blur_y",
            "role": "output",
            "extents": {"x": 8},
            "operations": 3.0,
            "bytes": 16,
            "places": [
                {
                    "group": "blur_y",
                    "compute": "root",
                    "store": "root",
                    "storage": "memory",
                    "recompute": 1.0,
                    "bytes": 0,
                    "traffic": [32.0, 16.0],
                    "microseconds": 1.0,
                }
            ],
        },
    ],
    "edges": [{"producer": "input", "consumer": "blur_y", "elements": 3.0, "overlap": {"x": 2}}],
    "groups": [{"output": "blur_y", "operations": {"i16": 24.0}, "traffic": [32.0, 16.0], "microseconds": 1.0}],
    "limits": {
        "gigaoperations_per_s": {"i16": 100.0},
        "gigabytes_per_s": {"L1": 400.0, "L2": 200.0, "memory": 20.0},
        "cache_bytes": {"L1": 32768},
    },
}
TILES = {
    "model": "ecm",
    "unit": "microseconds",
    "groups": [
        {
            "output": "blur_y",
            "dims": [{"dim": "x", "sizes": [4, 8], "chosen": 8}, {"dim": "y", "sizes": [1, 2, 4], "chosen": 2}],
            "costs": [[4.0, 3.0, 5.0], [2.0, 1.0, 1.5]],
        }
    ],
}


@dataclass
class Service:
    """A running service and a client of it."""

    client: httpx.Client
    context: Context
    scheduling: FakeScheduling
    url: str
    app: Any

    def ended(self, job_id: str, timeout_s: float = 120.0) -> dict[str, Any]:
        """The job, once it has come to an end. Between two looks there is a pause, in which it has the processor."""
        deadline = time.monotonic() + timeout_s
        while (job := self.client.get(f"/v1/jobs/{job_id}").json())["state"] not in FINISHED:
            assert time.monotonic() < deadline, job
            self.context.runner.wake()
            time.sleep(0.02)
        return dict(job)

    def schedule(self, name: str = "blur", **more: Any) -> str:
        """Request a schedule of a pipeline of that name; its id."""
        answer = self.client.post("/v1/schedules", json={"pipeline": pipeline(name), **more})
        assert answer.status_code in (200, 201), answer.text
        return str(answer.json()["id"])


def pipeline(name: str = "blur") -> dict[str, Any]:
    """A document of that name."""
    return {**BLUR, "name": name}


def settings_for(tmp_path: Any, **changed: Any) -> Settings:
    """Settings for a test: everything in its folder, no processes, no workers unless it asks for them."""
    base: dict[str, Any] = {"data_dir": tmp_path, "schedule_workers": 0, "job_workers": 0, "log_level": "error"}
    return Settings(**(base | changed))


logs.configure("json", "error")


@contextmanager
def service_with(settings: Settings, job: Any = None, scheduling: Any = None) -> Iterator[Service]:
    """A service with these settings."""
    fake = FakeScheduling() if scheduling is None else scheduling
    app = create_app(settings, fake, job)
    # certificates are not read: that takes longer than most tests
    with running(app) as url, httpx.Client(base_url=url, timeout=120, verify=False) as client:
        yield Service(client, app.state.context, fake, url, app)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store with its tables, to be copied: quicker than migrating for each test."""
    path = tmp_path_factory.mktemp("store") / "tilesmith.db"
    db = Database(f"sqlite:///{path}")
    upgrade(db)
    with db.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return path


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server of our own, on a socket in a folder with a short name: sockets need that."""
    programs = next(Path("/usr/lib/postgresql").glob("*/bin/initdb"), Path("initdb")).parent
    require_tool(str(programs / "initdb"))
    require_tool(str(programs / "postgres"))
    folder = Path(tempfile.mkdtemp(prefix="tilesmith-"))
    user = {}
    if os.geteuid() == 0:  # the server refuses to run as root
        user = {"user": "nobody", "group": "nogroup"}
        shutil.chown(folder, "nobody", "nogroup")
    data, socket = folder / "data", folder
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    made = [programs / "initdb", "-D", data, "-U", "tilesmith", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(made, check=True, capture_output=True, env=environment, cwd=folder, **user)
    options = f"-k {socket} -c listen_addresses='' -c fsync=off"
    control = [programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log"]
    subprocess.run(
        [*control, "-o", options, "start"], check=True, stdout=subprocess.DEVNULL, env=environment, cwd=folder, **user
    )
    yield f"postgresql+psycopg://tilesmith@/postgres?host={socket}"
    subprocess.run([*control, "-m", "immediate", "stop"], check=True, stdout=subprocess.DEVNULL, cwd=folder, **user)
    shutil.rmtree(folder)


@pytest.fixture
def start(tmp_path: Path, migrated: Path) -> Iterator[Callable[..., Service]]:
    """Starts services that end with the test: start(job=..., setting=value, ...)."""
    with ExitStack() as stack:
        shutil.copy(migrated, tmp_path / "tilesmith.db")

        def begin(job: Any = None, scheduling: Any = None, **changed: Any) -> Service:
            return stack.enter_context(service_with(settings_for(tmp_path, **changed), job, scheduling))

        yield begin


@pytest.fixture(name="pipeline")
def pipeline_maker() -> Callable[..., dict[str, Any]]:
    """pipeline(name): a document of that name."""
    return pipeline


@pytest.fixture
def service(start: Callable[..., Service]) -> Service:
    """A service with the settings of settings_for."""
    return start()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Callable[[str], Path]:
    """folder(name): a folder for a service of a module's tests, with an empty store."""

    def made(name: str) -> Path:
        path = tmp_path_factory.mktemp(name)
        shutil.copy(migrated, path / "tilesmith.db")
        return path

    return made


@pytest.fixture(scope="module")
def shared(folder: Callable[[str], Path]) -> Iterator[Service]:
    """One service for all tests of a module that leave nothing behind."""
    with service_with(settings_for(folder("shared"))) as service:
        yield service


@pytest.fixture(scope="module")
def real(folder: Callable[[str], Path]) -> Iterator[Service]:
    """One service that schedules in earnest, for all tests of a module; no jobs are done."""
    with service_with(settings_for(folder("real")), scheduling=work) as service:
        yield service
