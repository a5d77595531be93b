"""Clients that ask for schedules, builds and runs, and keep what was acknowledged."""

from __future__ import annotations

import io
import json
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx
import numpy as np

Kind = Literal["build", "run", "upload", "tune"]
Document = dict[str, Any]

WIDTH, HEIGHT = 384, 256
TIMEOUT_S = 20.0
PATIENCE_S = 300.0
PAUSE_S = 0.2


@dataclass
class Work:
    """A job that was asked for, with the id of each acknowledgement. `cancel` says how far a cancellation came:
    "attempted", "asked for" or "at once"."""

    kind: Kind
    document: Document
    schedule_id: str
    key: str | None
    request: dict[str, Any]
    image: int | None = None
    ids: list[str] = field(default_factory=list)
    cancel: str | None = None
    deleted: bool = False

    @property
    def id(self) -> str:
        return self.ids[0]


@dataclass
class Told:
    """Everything that the clients were told, of all of them."""

    works: list[Work] = field(default_factory=list)
    schedules: dict[str, set[str]] = field(default_factory=dict)
    """The ids that each document's schedule was answered with, by the document's name."""
    requests: int = 0
    unanswered: Counter[str] = field(default_factory=Counter)
    """Requests that got no answer, or one that asks to come again, by what they got."""
    without_key: int = 0
    """Requests for a job without an idempotency key of which nobody knows whether they were taken."""
    refusals: Counter[str] = field(default_factory=Counter)
    """Refusals of requests that nothing is wrong with."""
    streams: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Events as a client saw them, that came back after each break, by job: number and data."""


def document(number: int) -> Document:
    """A pipeline of two stages over integers, another for each number: the result is exact."""
    rng = random.Random(number)
    a, b = ([rng.randint(1, 9) for _ in range(3)] for _ in range(2))
    across = " + ".join(f"{w} * input(x + {k}, y)" for k, w in enumerate(a))
    down = " + ".join(f"{w} * across(x, y + {k})" for k, w in enumerate(b))
    size = [[0, WIDTH], [0, HEIGHT]]
    return {
        "format": 1,
        "name": f"soak_{number}",
        "inputs": [{"name": "input", "type": "uint16", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
        "stages": [
            {"name": "across", "dims": ["x", "y"], "value": f"uint16(({across}) // {sum(a)})"},
            {"name": "output", "dims": ["x", "y"], "value": f"uint16(({down}) // {sum(b)} + {number % 100})"},
        ],
        "outputs": ["output"],
        "estimates": {"input": size, "output": size},
    }


def image(number: int) -> np.ndarray[Any, np.dtype[np.uint16]]:
    """A picture to upload, another for each number."""
    return np.random.default_rng(number).integers(0, 1 << 16, (61 + number % 7, 83), np.uint16)


class Client(threading.Thread):
    """A client that asks for something every `pause_s` on average, until `told_to_end`."""

    def __init__(self, addresses: list[str], told: Told, number: int, seed: int, pause_s: float) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self._http = [httpx.Client(base_url=a, timeout=TIMEOUT_S) for a in addresses]
        self._told, self._rng, self._pause_s = told, random.Random(f"{seed}/{number}"), pause_s
        self._next_document = 1_000_000 * (seed * 100 + number)
        self._schedules: dict[str, Document] = {}
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.fault: str | None = None

    def end(self) -> None:
        self._ended.set()

    def run(self) -> None:
        try:
            self._add_schedule()
            while not self._ended.is_set():
                self._something()
                self._ended.wait(self._rng.expovariate(1 / self._pause_s))
        except Exception as error:  # told at the end: a client that ends early is no load
            self.fault = f"{type(error).__name__}: {error}"

    def _something(self) -> None:
        action: Callable[[], None] = self._rng.choices(
            [self._add_schedule, self._repeat_schedule, self._submit, self._cancel_one, self._delete_one, self._read],
            [3, 2, 10, 1, 0.5, 3],
        )[0]
        action()

    # --- schedules -----------------------------------------------------------------------------------

    def _add_schedule(self) -> None:
        self._next_document += 1
        self._ask_for_schedule(document(self._next_document))

    def _repeat_schedule(self) -> None:
        self._ask_for_schedule(self._schedules[self._any()])

    def _ask_for_schedule(self, wanted: Document) -> None:
        answer = self._insist("POST", "/v1/schedules", json={"pipeline": wanted})
        if answer is not None and answer.status_code in (200, 201):
            found = answer.json()["id"]
            self._told.schedules.setdefault(wanted["name"], set()).add(found)
            self._schedules[found] = wanted

    def _delete_one(self) -> None:
        """Deletes a schedule with its jobs, unless one of them runs."""
        if len(self._schedules) < 3:
            return
        schedule_id = self._any()
        answer = self._insist("DELETE", f"/v1/schedules/{schedule_id}")
        if answer is not None and answer.status_code in (204, 404):
            for work in self._told.works:
                if work.schedule_id == schedule_id:
                    work.deleted = True
            del self._schedules[schedule_id]

    def _any(self) -> str:
        """A schedule of this client, the newest ones more often."""
        ids = list(self._schedules)
        return ids[-1 - min(int(self._rng.expovariate(0.5)), len(ids) - 1)]

    # --- jobs ----------------------------------------------------------------------------------------

    def _submit(self) -> None:
        kind: Kind = self._rng.choices(("build", "run", "upload"), (3, 6, 4))[0]
        schedule_id = self._any()
        request: dict[str, Any] = {}
        if kind != "build":
            request = {"repeat": self._rng.choice((1, 1, 1000)), "threads": 1, "outputs": True}
        if kind == "run":
            request["estimates"] = True
        key = None if self._rng.random() < 0.2 else str(uuid.UUID(int=self._rng.getrandbits(128)))
        number = self._rng.randrange(1000) if kind == "upload" else None
        work = Work(kind, self._schedules[schedule_id], schedule_id, key, request, number)
        self._ask_for_job(work)
        if key is not None and work.ids and self._rng.random() < 0.3:
            self._ask_for_job(work)  # the same again: no other job
        if work.ids and self._rng.random() < 0.1:
            self._follow(work.id)

    def _ask_for_job(self, work: Work) -> None:
        path = f"/v1/schedules/{work.schedule_id}/{'builds' if work.kind == 'build' else 'runs'}"
        headers = {} if work.key is None else {"Idempotency-Key": work.key}
        sent: dict[str, Any] = {"json": work.request}
        if work.image is not None:
            content = io.BytesIO()
            np.save(content, image(work.image))
            sent = {
                "data": {"request": json.dumps(work.request)},
                "files": {"input": ("image.npy", content.getvalue())},
            }
        answer = self._insist("POST", path, again=work.key is not None, headers=headers, **sent)
        if answer is not None and answer.status_code == 202:
            work.ids.append(answer.json()["id"])
            if len(work.ids) == 1:
                self._told.works.append(work)
        elif answer is None and work.key is None:
            self._told.without_key += 1

    def _cancel_one(self) -> None:
        recent = [w for w in self._told.works[-5:] if w.schedule_id in self._schedules and w.cancel is None]
        if not recent:
            return
        work = self._rng.choice(recent)
        work.cancel = "attempted"
        answer = self._insist("DELETE", f"/v1/jobs/{work.id}")
        if answer is not None and answer.status_code in (200, 202):
            work.cancel = "at once" if answer.status_code == 200 else "asked for"

    def _read(self) -> None:
        done = [w for w in self._told.works[-20:] if w.schedule_id in self._schedules]
        paths = ["/v1/jobs", "/v1/schedules", "/v1/capabilities", *(f"/v1/jobs/{w.id}" for w in done[-1:])]
        self._insist("GET", self._rng.choice(paths))

    def _follow(self, job_id: str) -> None:
        threading.Thread(target=self._follow_to_its_end, args=(job_id,), daemon=True).start()

    def _follow_to_its_end(self, job_id: str) -> None:
        """Follows the events of a job as browsers do: after a break from the last one on."""
        seen: list[tuple[int, str]] = []
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and not (seen and is_last(seen[-1][1])):
            last = {"Last-Event-ID": str(seen[-1][0])} if seen else {}
            try:
                with random.choice(self._http).stream("GET", f"/v1/jobs/{job_id}/events", headers=last) as answer:
                    if answer.status_code == 404:
                        return
                    seen += events_of(answer.iter_lines())
            except httpx.HTTPError:
                time.sleep(PAUSE_S)
        if seen and is_last(seen[-1][1]):
            self._told.streams[job_id] = seen

    # --- requests ------------------------------------------------------------------------------------

    def _insist(self, method: str, path: str, again: bool = True, **sent: Any) -> httpx.Response | None:
        """The answer of any service, asked until there is one; None where there is none, and a refusal that is
        kept."""
        until = time.monotonic() + PATIENCE_S
        while True:
            self._told.requests += 1
            try:
                answer = self._rng.choice(self._http).request(method, path, **sent)
            except httpx.TransportError as error:
                self._told.unanswered[type(error).__name__] += 1
            else:
                if answer.status_code < 400:
                    return answer
                code = _code(answer)
                if answer.status_code < 500 and answer.status_code != 429:
                    if code not in ALLOWED.get(method, ()):
                        self._told.refusals[f"{method} {_route(path)}: {answer.status_code} {code}"] += 1
                    return answer
                self._told.unanswered[f"{answer.status_code} {code}"] += 1
                if code not in PASSING:
                    self._told.refusals[f"{method} {_route(path)}: {answer.status_code} {code}"] += 1
            if not again or time.monotonic() > until:
                if again:
                    self._told.refusals[f"{method} {_route(path)}: no answer for {PATIENCE_S:g} s"] += 1
                return None
            time.sleep(PAUSE_S)


ALLOWED = {"DELETE": ("schedule_in_use", "schedule_not_found", "job_finished")}
"""Codes of refusals that are no fault of the service: it cannot be known beforehand whether a job has ended."""
PASSING = ("busy", "not_ready", "queue_full", "store_busy", "store_unavailable", "worker_lost")
"""Codes of answers that ask to come again: something was killed, or is full."""


def is_last(data: str) -> bool:
    """True if an event ends the stream of its job."""
    return json.loads(data).get("state") in ("succeeded", "failed", "cancelled", "expired")


def events_of(lines: Iterable[str]) -> list[tuple[int, str]]:
    """The events of a stream, (number, data), as far as it came."""
    found, number = [], 0
    try:
        for line in lines:
            name, _, value = line.partition(": ")
            if name == "id":
                number = int(value)
            elif name == "data":
                found.append((number, value))
    except httpx.HTTPError:  # what was told before the break counts
        pass
    return found


def _code(answer: httpx.Response) -> str:
    try:
        return str(answer.json().get("code"))
    except ValueError:
        return "no JSON"


def _route(path: str) -> str:
    return "/".join("ID" if len(part) > 20 else part for part in path.split("/"))
