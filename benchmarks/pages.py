"""Pages of the dashboard with 10,000 stored schedules: how long the service takes for each, search included.

    python -m benchmarks.pages [--repeats 20] [--json FILE]

The service is the real one in a process of its own, spoken to over one connection, as a browser does: it compresses
what it sends. The schedules are one answer under many names, on several platforms, some measured, tagged and run; they
are stored without going through the API.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx

from benchmarks.figures import Figure, main, median
from benchmarks.service_process import service
from tilesmith import platforms
from tilesmith.app.service.db import Database, now_us, upgrade
from tilesmith.app.service.jobs import repository as job_rows
from tilesmith.app.service.pipelines import repository as pipeline_rows
from tilesmith.app.service.schedules import notes, repository, work
from tilesmith.app.service.schedules.answers import Answer, PipelineIdentity, Question
from tilesmith.app.service.schedules.lists import Order
from tilesmith.app.service.schedules.service import links
from tilesmith.app.service.settings import Settings
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import Options

SCHEDULES = 10_000
VERSIONS = 5
MACHINES = ("host", "i7-6700", "graviton4", "cortex-a53")
REPEATS = 20
LIMIT_MS = 50.0
NAMES = ("harris", "blur", "unsharp", "camera", "pyramid", "denoise", "sobel", "merge", "demosaic", "tone")


def fill(db: Database, count: int = SCHEDULES) -> list[str]:
    """Stores so many schedules, and a pipeline for every four of them; their ids, the oldest first."""
    first = _answer()
    ids = []
    for number in range(count):
        version, machine = divmod(number, len(MACHINES))
        name = f"{NAMES[version // VERSIONS % len(NAMES)]}_{version // VERSIONS // len(NAMES)}"
        answer = _renamed(first, name, version, MACHINES[machine], number)
        repository.add(db, answer, now_us(), links(answer.id), "2026-01-01T00:00:00Z", "")
        if machine == 0:
            pipeline_rows.add(db, answer.pipeline, "")
        if number % 3 == 0:
            repository.set_measured(db, answer.id, 1 + number % 1000 / 100)
        if number % 10 == 0:
            notes.replace(db, answer.id, notes.Notes(note="kept", tags=[f"release-{number % 7}"]))
        if number % 5 == 0:
            job = f"{number:036d}"
            row = {"id": job, "kind": "run", "schedule_id": answer.id, "request": b"{}"}
            job_rows.add(db, row, count, count, now_us())
            job_rows.move(db, job, "queued", "cancelled", now_us())
        ids.append(answer.id)
    return ids


def _answer() -> Answer:
    question = Question(
        pipelines.document("blur"), platforms.to_document(platforms.get("i7-6700")), Options().method, False, None
    )
    found = work.answer(question)
    assert isinstance(found, Answer)
    return found


def _renamed(answer: Answer, name: str, version: int, machine: str, number: int) -> Answer:
    """The answer as if it were another's."""
    made = hashlib.sha256(f"{number}".encode()).hexdigest()[:32]
    document = json.loads(answer.pipeline.document) | {"name": name, "doc": f"version {version}"}
    text = json.dumps(document).encode()
    pipeline = PipelineIdentity(hashlib.sha256(text).hexdigest()[:32], name, answer.pipeline.stages, text)
    total = answer.body["predicted"]["total"] * (1 + number % 97 / 100)
    body = answer.body | {
        "id": made,
        "pipeline": name,
        "pipeline_id": pipeline.id,
        "platform": machine,
        "predicted": answer.body["predicted"] | {"total": total},
    }
    forms = answer.forms | {"pipeline.json": text}
    return dataclasses.replace(answer, id=made, pipeline=pipeline, platform=machine, body=body, forms=forms)


def pages(ids: list[str]) -> Iterator[tuple[str, str]]:
    """What is asked for, and its address."""
    orders: tuple[Order, ...] = ("newest", "name", "platform", "predicted", "-predicted", "measured", "-measured")
    for order in orders:
        yield f"schedules, {order}", f"/?order={order}"
    searches = {
        "two words": {"q": "harris_3 host"},
        "words that many have": {"q": "a default", "order": "-predicted"},
        "words that none has": {"q": "nothing at all"},
        "start of an id": {"q": ids[len(ids) // 2][:8]},
        "tag": {"tag": "release-3", "order": "measured"},
        "all filters": {"pipeline": "blur_1", "platform": "host", "method": "default", "since": "2020-01-01"},
    }
    for name, query in searches.items():
        yield f"schedules, {name}", f"/?{urlencode(query)}"
    yield "pipelines", "/pipelines"
    yield "pipelines, found", "/pipelines?q=arris_1"
    yield "pipeline", "/pipelines/harris_0"
    yield "platforms", "/platforms"
    yield "platform", "/platforms/host"
    yield "jobs", "/jobs"
    yield "jobs, filtered", "/jobs?state=failed&kind=run"
    yield "schedule", f"/schedules/{ids[-1]}"
    yield "notes", f"/schedules/{ids[0]}/notes"
    yield "thumbnail", f"/schedules/{ids[0]}/thumbnail.svg"


def measure(repeats: int = REPEATS, count: int = SCHEDULES) -> list[Figure]:
    """A figure a page: medians of the time until the whole page is there."""
    with tempfile.TemporaryDirectory() as made:
        settings = Settings(data_dir=Path(made))
        with closing(Database(settings.store_url, settings.database_busy_ms)) as db:
            upgrade(db)
            ids = fill(db, count)
        with service(TILESMITH_DATA_DIR=made) as at, httpx.Client(base_url=at.address, timeout=60) as client:
            wanted = [*pages(ids), ("schedules, 100 pages on", _far(client))]
            return [_timed(client, name, path, repeats) for name, path in wanted]


def _far(client: httpx.Client) -> str:
    """The address of a page in the middle of the list."""
    cursor: str | None = None
    for _ in range(100):
        answer: dict[str, Any] = client.get("/v1/schedules", params={"cursor": cursor} if cursor else {}).json()
        cursor = answer["next_cursor"] or cursor
    return f"/?{urlencode({'cursor': cursor or ''})}"


def _timed(client: httpx.Client, name: str, path: str, repeats: int) -> Figure:
    times = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        client.get(path, headers={"Accept": "text/html"}).raise_for_status()
        times.append(1000 * (time.perf_counter() - started))
    return median(f"page: {name}", times[1:], LIMIT_MS)


if __name__ == "__main__":
    main("Pages with 10,000 stored schedules.", measure, REPEATS)
