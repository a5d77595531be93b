"""What is wrong after a soak: with jobs, their results and reasons, the database, artifacts, files and processes."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from sqlalchemy import Connection, func, select, text

from benchmarks.soak.deployment import Deployment
from benchmarks.soak.load import Told, Work, events_of, image, is_last
from tilesmith.app.runtime.estimates import images
from tilesmith.app.service.db import Database
from tilesmith.app.service.tables import job_events, jobs, libraries, measurements, schedule_tallies, schedules
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret

KINDS = ("lost", "twice", "corrupt", "wrong reason", "files left", "processes left")
SHOWN = 20
DASK_LOCKS = ("global.lock", "purge.lock")
HONEST = frozenset({"worker_lost"})
"""Codes that say of a job that was given up that something was killed."""


@dataclass
class Verdict:
    """Findings by kind; none in a soak that was withstood."""

    findings: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    def add(self, kind: str, what: str) -> None:
        self.findings[kind].append(what)

    def extend(self, kind: str, what: Iterable[str]) -> None:
        self.findings[kind].extend(what)

    @property
    def clean(self) -> bool:
        return not any(self.findings.values())


# --- jobs ------------------------------------------------------------------------------------------------------------


def judge_jobs(told: Told, http: httpx.Client, verdict: Verdict) -> Counter[str]:
    """Judges every acknowledged job by what the service says of it; their number by state."""
    expected: dict[tuple[str, int | None], bytes] = {}
    states: Counter[str] = Counter()
    for work in told.works:
        if len(set(work.ids)) != 1:
            verdict.add("twice", f"one key, jobs {sorted(set(work.ids))}")
        if work.deleted:
            continue
        answer = http.get(f"/v1/jobs/{work.id}")
        if answer.status_code != 200:
            verdict.add("lost", f"{work.kind} job {work.id}: {answer.status_code}")
            continue
        job = answer.json()
        states[job["state"]] += 1
        events = events_of(http.get(f"/v1/jobs/{work.id}/events").text.splitlines())
        verdict.extend("twice", wrong_events(work.id, events, job["state"]))
        if (seen := told.streams.get(work.id)) is not None and seen != events:
            verdict.add("twice", f"job {work.id}: a stream that was taken up again told other events")
        verdict.extend("wrong reason", wrong_end(work, job))
        if job["state"] == "succeeded" and work.kind != "build":
            key = (work.document["name"], work.image)
            if key not in expected:
                expected[key] = undisturbed(work)
            (output,) = job["result"]["outputs"]
            found = http.get(output["links"]["npy"])
            if found.status_code != 200:
                verdict.add("lost", f"the output of job {work.id}: {found.status_code}")
            elif found.content != expected[key]:
                verdict.add("corrupt", f"the output of job {work.id} differs from that of an undisturbed run")
    for name, ids in told.schedules.items():
        if len(ids) != 1:
            verdict.add("twice", f"pipeline {name}: schedules {sorted(ids)}")
    verdict.extend("wrong reason", (f"{what} ({count} times)" for what, count in told.refusals.items()))
    return states


def wrong_events(job_id: str, events: Sequence[tuple[int, str]], state: str) -> list[str]:
    """What is wrong with the events of a job that has come to an end: there is one end, it is the last and the job's,
    and numbers count up."""
    ends = [json.loads(data)["state"] for _, data in events if is_last(data)]
    if [number for number, _ in events] != list(range(1, len(events) + 1)):
        return [f"job {job_id}: its events have the numbers {[number for number, _ in events]}"]
    if ends != [state] or not is_last(events[-1][1]):
        return [f"job {job_id}, {state}: its events tell of the ends {ends}"]
    return []


def wrong_end(work: Work, job: Mapping[str, Any]) -> list[str]:
    """Why a job may not have come to such an end."""
    state, error = job["state"], job["error"] or {}
    if work.cancel == "at once" and state != "cancelled":
        return [f"job {work.id} was cancelled at once, and has {state}"]
    if state == "succeeded" or (state == "cancelled" and work.cancel is not None):
        return []
    if state == "failed" and error.get("code") in HONEST:
        return []
    return [f"{work.kind} job {work.id} is {state}: {error.get('code')}, {error.get('detail')}"]


def undisturbed(work: Work) -> bytes:
    """The `.npy` of a job's output, by the reference interpreter."""
    pipeline = load(work.document)
    if work.image is None:
        given = images(pipeline, {})
        region = pipeline.estimate("output")
        assert region is not None
    else:
        array = image(work.image)
        given = {"input": Image(array, (0, 0))}
        region = ((0, array.shape[1]), (0, array.shape[0]))
    content = io.BytesIO()
    np.save(content, interpret(pipeline, given, {}, {"output": region})["output"][0], allow_pickle=False)
    return content.getvalue()


# --- the database ----------------------------------------------------------------------------------------------------


def judge_database(url: str, told: Told, verdict: Verdict) -> None:
    """Judges the rows: what they refer to, their numbers, and the file itself."""
    with closing(Database(url)) as db, db.read() as connection:
        if db.is_sqlite:
            whole = [row[0] for row in connection.execute(text("PRAGMA integrity_check"))]
            verdict.extend("corrupt", (f"integrity_check: {line}" for line in whole if line != "ok"))
            torn = connection.execute(text("PRAGMA foreign_key_check")).all()
            verdict.extend("corrupt", (f"foreign_key_check: {tuple(row)}" for row in torn))
        verdict.extend("corrupt", _wrong_tallies(connection))
        known = {w.id for w in told.works}
        ids = set(connection.execute(select(jobs.c.id)).scalars())
        strangers = len(ids - known)
        if strangers > told.without_key:
            verdict.add("twice", f"{strangers} jobs that nobody was told of; {told.without_key} requests got no answer")
        m = measurements.c
        again = select(m.job_id).where(m.kind == "run").group_by(m.job_id).having(func.count() > 1)
        verdict.extend(
            "twice", (f"job {job} has more than one measurement" for job in connection.execute(again).scalars())
        )
        ended = select(job_events.c.job_id).where(job_events.c.job_id.not_in(select(jobs.c.id)))
        verdict.extend(
            "corrupt", (f"events of job {job}, which is gone" for job in connection.execute(ended).scalars())
        )


def _wrong_tallies(connection: Connection) -> list[str]:
    """Tallies of schedules that do not agree with the schedules."""
    keys = ("pipeline", "pipeline_id", "platform", "method")
    s, t = schedules.c, schedule_tallies.c
    counted = connection.execute(select(*(s[k] for k in keys), func.count()).group_by(*(s[k] for k in keys))).all()
    kept = connection.execute(select(*(t[k] for k in keys), t.made)).all()
    return [f"a tally is wrong: {row}" for row in sorted({*map(tuple, counted)} ^ {*map(tuple, kept)})]


# --- artifacts and files ---------------------------------------------------------------------------------------------


def judge_files(deployment: Deployment, verdict: Verdict) -> Counter[str]:
    """Judges what is on the disk once everything has been stopped; the number of files by what they are."""
    with closing(Database(deployment.database_url)) as db, db.read() as connection:
        rows = connection.execute(select(jobs.c.id, jobs.c.state, jobs.c.artifacts)).all()
        built = connection.execute(select(libraries.c.path, libraries.c.sha256)).all()
    states = {row.id: str(row.state) for row in rows}
    wanted = {str(d) for row in rows if row.artifacts for d in json.loads(row.artifacts).values()}
    wanted |= {row.sha256 for row in built if row.sha256 is not None}
    kept: Counter[str] = Counter()
    for folder in sorted(deployment.folder.glob("*-[0-9]*")):
        for path in sorted(p for p in folder.rglob("*") if p.is_file() or p.is_symlink()):
            what = purpose(path.relative_to(folder).parts, states)
            kept[what or "left"] += 1
            if what is None:
                verdict.add("files left", str(path.relative_to(deployment.folder)))
        verdict.extend("corrupt", damaged_builds(folder / "builds"))
    verdict.extend("files left", left_in(deployment.temporary))
    if deployment.objects.exists():
        verdict.extend("corrupt", wrong_objects(deployment.objects, wanted))
        kept["object"] = sum(p.is_file() for p in deployment.objects.rglob("*"))
        kept["object that nobody refers to, for an hour"] = kept["object"] - len(wanted)
    elif lost := [row.path for row in built if not Path(row.path).is_file()]:
        verdict.extend("lost", (f"library {path}" for path in lost))
    return kept


def purpose(parts: Sequence[str], states: Mapping[str, str]) -> str | None:
    """What a file of a data folder is there for, by its path; None where it is left over."""
    match parts:
        case [str(name)] if name in ("tilesmith.db", "tilesmith.db-wal", "tilesmith.db-shm"):
            return "database"
        case ["jobs", str(job), str(name)] if states.get(job) == "succeeded" and name.startswith("output-"):
            return "result"
        case ["builds", "libraries" | "runners" | "programs", str(key), _] if not key.startswith("."):
            return "build"
        case ["dask", *_, str(name)] if name in DASK_LOCKS:
            return "lock of Dask"
    return None


def left_in(temporary: Path) -> list[str]:
    """What is left of temporary files, but for Dask's two locks, which are there for good."""
    return [str(p) for p in sorted(temporary.rglob("*")) if p.name not in (*DASK_LOCKS, "dask-scratch-space")]


def damaged_builds(cache: Path) -> list[str]:
    """Entries of a cache of builds that are not what their record says."""
    found = []
    for record in sorted(cache.glob("*/*/build.json")):
        if record.parent.name.startswith("."):
            continue
        digest = json.loads(record.read_text(encoding="utf-8"))["digest"]
        contents = [hashlib.sha256(p.read_bytes()).hexdigest() for p in record.parent.iterdir()]
        if digest not in contents:
            found.append(f"the build {record.parent} is not what its record says")
    return found


def wrong_objects(root: Path, wanted: Collection[str]) -> list[str]:
    """Objects whose content is not that of their name, and those that are referred to and are not there."""
    there = {p.name: p for p in root.rglob("*") if p.is_file() and ".part-" not in p.name}
    wrong = [n for n, p in there.items() if hashlib.sha256(p.read_bytes()).hexdigest() != n]
    return [f"the object {n} has another content" for n in sorted(wrong)] + [
        f"the object {n} is gone" for n in sorted(set(wanted) - there.keys())
    ]


def faults(logs: Path) -> list[str]:
    """Faults of our own that the logs tell of, each once."""
    found: Counter[str] = Counter()
    for path in sorted(logs.glob("*.log")):
        for line in path.read_text(errors="replace").splitlines():
            if '"event": "fault"' in line or line.startswith("Exception in thread"):
                found[f"{path.stem}: {_event(line)}"] += 1
    return [f"{what} ({count} times)" for what, count in found.most_common(SHOWN)]


def _event(line: str) -> str:
    try:
        told = json.loads(line)
    except ValueError:
        return line[:200]
    lines = str(told.get("exception", "")).splitlines()
    return " ".join([str(told.get("event", "")), *lines[-1:]])[:300]
