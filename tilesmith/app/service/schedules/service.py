"""Answers to questions: from the store where it has them, by scheduling where not. The same question has one answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

import structlog

from tilesmith.app.service import holdings, tracing
from tilesmith.app.service.db import Database, now_us
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.metrics import Metrics
from tilesmith.app.service.pipelines.service import Pipelines
from tilesmith.app.service.platforms.service import Platforms
from tilesmith.app.service.remembered import Remembered
from tilesmith.app.service.schedules import repository
from tilesmith.app.service.schedules.answers import (
    ANSWER,
    CANDIDATES_FORM,
    CODE_FORMS,
    SOURCE_FORM,
    Answer,
    Decided,
    Question,
    candidate_form,
    compact,
    is_made,
    is_of_candidates,
    media_type,
    source_form,
)
from tilesmith.app.service.schedules.engine import Engine
from tilesmith.app.service.schedules.reading import Reading, read
from tilesmith.app.service.schedules.repository import Content
from tilesmith.app.service.schedules.schemas import Options
from tilesmith.app.service.settings import Settings
from tilesmith.app.service.strategies.service import Strategies
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.search import explain
from tilesmith.scheduler.search.written import METHOD

log = structlog.get_logger("tilesmith.schedules")
Found = TypeVar("Found")

FORMS = (
    "code.c",
    "code.h",
    "loopnest.txt",
    "schedule.json",
    "schedule.h",
    "schedule.py",
    "figures.json",
    "tiles.json",
    "candidates",
    "explain",
    "explain.txt",
)
UNPROCESSABLE = 422
DOCUMENTS = ("pipeline.json", "platform.json")


@dataclass(frozen=True, slots=True)
class Asked:
    """The answer to a question: the document as it is stored, and whether it was made just now. `tuned` is the id that
    the answer will have once it is tuned, where that is still to be done: this one is the untuned."""

    id: str
    content: Content
    new: bool
    options: Options
    tuned: str | None = None

    @property
    def has_jobs(self) -> bool:
        """True if jobs were asked for, too."""
        return self.options.build or self.options.measure or self.tuned is not None

    @property
    def location(self) -> str:
        return f"/v1/schedules/{self.id}"


class Uses:
    """The schedules that were asked for or looked at since it was last asked, where the settings delete unused ones: a
    write a request would cost more than the request."""

    def __init__(self, settings: Settings) -> None:
        self._wanted = settings.schedule_retention_s is not None or settings.schedule_retention_count is not None
        self._lock = threading.Lock()
        self._ids: set[str] = set()

    def add(self, schedule_id: str) -> None:
        if self._wanted:
            with self._lock:
                self._ids.add(schedule_id)

    def taken(self) -> list[str]:
        """Their ids, which are forgotten."""
        with self._lock:
            ids, self._ids = self._ids, set()
        return sorted(ids)


class Schedules:
    """The store's answers and the way to new ones."""

    def __init__(
        self,
        db: Database,
        settings: Settings,
        engine: Engine,
        pipelines: Pipelines,
        platforms: Platforms,
        strategies: Strategies,
        metrics: Metrics,
    ) -> None:
        self._db = db
        self._settings = settings
        self._engine = engine
        self._pipelines = pipelines
        self._platforms = platforms
        self._strategies = strategies
        self._metrics = metrics
        self._known: Remembered[bytes, tuple[str, Options]] = Remembered(settings.schedule_cache)
        self.uses = Uses(settings)
        self._flights: dict[str, asyncio.Task[tuple[Content | None, bool]]] = {}

    async def known(self, body: bytes) -> Asked | None:
        """The answer to a ScheduleRequest that was answered before, if the store still has it.

        A body seen before leads straight to its answer: whatever it names (a stored pipeline, a platform)
        never changes while the process lives.
        """
        known = self._known.get(hashlib.sha256(body).digest())
        content = None if known is None else await asyncio.to_thread(repository.find, self._db, known[0])
        if known is None or content is None:
            return None
        self._metrics.schedules.labels("stored").inc()
        self.uses.add(known[0])
        return Asked(known[0], content, False, known[1])

    async def ask(self, body: bytes) -> Asked:
        """The answer to a ScheduleRequest as JSON; ApiError says what is wrong with it."""
        known = await self.known(body)
        if known is not None:
            return known
        try:
            asked = await self._ask(body)
        except ApiError as error:
            self._metrics.schedules.labels(error.code).inc()
            raise
        self._metrics.schedules.labels("new" if asked.new else "stored").inc()
        if asked.tuned is None:
            self._known.put(hashlib.sha256(body).digest(), (asked.id, asked.options))
        return asked

    async def _ask(self, body: bytes) -> Asked:
        began = time.perf_counter()
        reading = await self._engine.read(read, body)
        options, question = await asyncio.to_thread(self._question, reading)
        seconds = None if options.timeout_ms is None else options.timeout_ms / 1000
        try:
            async with asyncio.timeout(seconds):
                return await self._answered(options, question, time.perf_counter() - began)
        except TimeoutError:
            detail = f"there is no schedule after {options.timeout_ms} ms; ask again: what is being made is kept"
            raise ApiError("timeout", detail) from None

    async def _answered(self, options: Options, question: Question, spent_s: float) -> Asked:
        schedule_id = await self._engine.key(question, spent_s)
        content = await asyncio.to_thread(repository.find, self._db, schedule_id)
        tuned = None
        if content is None and question.tune is not None:
            tuned, question = schedule_id, replace(question, tune=None)
            schedule_id = await self._engine.key(question)
            content = await asyncio.to_thread(repository.find, self._db, schedule_id)
        new = False
        if content is None:
            content, new = await self._make(schedule_id, question)
            if content is None:
                raise ApiError("schedule_not_found", "the schedule was removed as soon as it was made")
        if not new:
            self.uses.add(schedule_id)
        return Asked(schedule_id, content, new, options, tuned)

    def _question(self, reading: Reading) -> tuple[Options, Question]:
        """The question with the documents that are named, which the store has."""
        request, given = reading.request, reading.documents
        pipeline, strategy = given.get("pipeline"), given.get("strategy")
        if pipeline is None:
            pipeline = self._pipelines.find(request.pipeline_id or "").identity.document
        if request.strategy_id:
            strategy = self._strategies.find(request.strategy_id).identity.document
        if reading.platform is not None:
            platform = self._platforms.named_apart(reading.platform)
        else:
            platform = self._platforms.document(request.platform_name or "host")
        options = request.options
        return options, Question(
            pipeline,
            platform,
            options.method,
            options.strict,
            options.deadline_ms,
            self._settings.limits,
            given.get("fixed", {}),
            options.tune,
            options.cost_model,
            strategy,
            options.backend,
            given.get("schedule"),
            given.get("estimates"),
        )

    async def _make(self, schedule_id: str, question: Question) -> tuple[Content | None, bool]:
        """Makes and stores the schedule; requests for one that is being made wait for it. What is stored, and whether
        it was new."""
        flight = self._flights.get(schedule_id)
        if flight is not None:
            content, _ = await asyncio.shield(flight)
            return content, False
        flight = asyncio.create_task(self._make_first(schedule_id, question))
        self._flights[schedule_id] = flight
        flight.add_done_callback(lambda _: self._flights.pop(schedule_id, None))
        return await asyncio.shield(flight)

    async def _make_first(self, schedule_id: str, question: Question) -> tuple[Content | None, bool]:
        found = await asyncio.to_thread(self._found_or_allowed, schedule_id)
        if found is not None:
            return found, False  # made since it was looked for
        started = time.perf_counter()
        answer = await self._engine.answer(question, schedule_id)
        content, new = await asyncio.to_thread(self._stored, answer)
        seconds = time.perf_counter() - started
        self._metrics.schedule_seconds.observe(seconds)
        tracing.phases(answer.body.get("timings_ms", {}))
        tracing.annotate(schedule_id=answer.id)
        log.info("scheduled", schedule=answer.id, pipeline=answer.pipeline.name, ms=round(1000 * seconds, 3))
        return content, new

    def _found_or_allowed(self, schedule_id: str) -> Content | None:
        """The document of a schedule. Where there is none, ApiError if the client may hold no more."""
        found = repository.find(self._db, schedule_id)
        if found is None:
            holdings.check(self._db, self._settings, 1)
        return found

    def _stored(self, answer: Answer) -> tuple[Content | None, bool]:
        new = store(self._db, answer, holdings.owner())
        return repository.find(self._db, answer.id), new

    def get(self, schedule_id: str) -> Content:
        """The document of a schedule; ApiError `schedule_not_found`."""
        self.uses.add(schedule_id)
        return _found(repository.find(self._db, schedule_id), schedule_id)

    def kept(self, schedule_id: str, name: str) -> Content:
        """One of its forms that are kept from the beginning; ApiError `schedule_not_found`."""
        self.uses.add(schedule_id)
        return _found(repository.find_form(self._db, schedule_id, name), schedule_id)

    async def form(self, schedule_id: str, name: str) -> Content:
        """One of its forms, made now where nobody has asked for it; ApiError `schedule_not_found`."""
        self.uses.add(schedule_id)
        if name in CODE_FORMS:
            source = json.loads((await self.form(schedule_id, SOURCE_FORM)).content)
            return Content(media_type(name), source[CODE_FORMS[name]].encode())
        if is_of_candidates(name):
            return _found(await self._of_candidates(schedule_id, name), schedule_id)
        found, kept = await asyncio.to_thread(repository.form_or_kept, self._db, schedule_id, name)
        if found is None and is_made(name):
            content = await self._made(schedule_id, name, kept)
            await asyncio.to_thread(repository.add_form, self._db, schedule_id, name, content)
            found = Content(media_type(name), content)
        return _found(found, schedule_id)

    async def text(self, schedule_id: str, name: str) -> tuple[str, str]:
        """A form, or "" and why this version cannot make it of a schedule that an earlier one decided. ApiError
        `schedule_not_found`, and where it may be made later."""
        try:
            return (await self.form(schedule_id, name)).content.decode(), ""
        except ApiError as error:
            if error.status_code != UNPROCESSABLE:
                raise
            return "", error.detail

    async def _of_candidates(self, schedule_id: str, name: str) -> Content | None:
        """The table of candidates or one of them as data, from the store where they were timed."""
        kept = await asyncio.to_thread(repository.kept, self._db, schedule_id)
        if "candidates" in kept:
            found = kept.get(name)
        else:
            texts: dict[str, str] = json.loads((await self.form(schedule_id, CANDIDATES_FORM)).content)
            found = texts[name].encode() if name in texts else None
        return None if found is None else Content(media_type(name), found)

    async def _made(self, schedule_id: str, name: str, kept: Mapping[str, bytes]) -> bytes:
        """A form of MADE_FORMS, of this schedule or of a candidate of it, from the forms that are kept; ApiError
        `schedule_not_found`."""
        _found(kept, schedule_id)
        of, _, name = name.rpartition("/")
        schedule = (await self.form(schedule_id, f"{of}/schedule.json")).content if of else kept["schedule.json"]
        if name == "explain.txt":
            return (await asyncio.to_thread(explain.text_of, json.loads(kept["explain"]))).encode()
        if name == SOURCE_FORM:
            return source_form((await self._engine.code(decided(kept), schedule_id)).source)
        if name == CANDIDATES_FORM:
            again = asked_again(kept, self._settings.limits)
            return compact(await self._engine.candidates(again, schedule_id, schedule)).encode()
        return await self._engine.derive(name, kept["pipeline.json"], kept["platform.json"], schedule)

    async def candidate(self, schedule_id: str, rank: int, name: str) -> Content:
        """`schedule.json` or `loopnest.txt` of a candidate; ApiError `candidate_not_found`, `schedule_not_found`."""
        try:
            return await self.form(schedule_id, candidate_form(rank, name))
        except ApiError as error:
            if error.code != "schedule_not_found":
                raise
            await asyncio.to_thread(self.get, schedule_id)
            raise ApiError("candidate_not_found", f"the schedule has no candidate {rank}") from None


def decided(kept: Mapping[str, bytes]) -> Decided:
    """The documents that the code of a schedule is made of, from the forms that are kept."""
    backend = json.loads(kept[ANSWER])["options"].get("backend")
    return Decided(kept["pipeline.json"], kept["platform.json"], kept["schedule.json"], backend)


def asked_again(kept: Mapping[str, bytes], limits: Limits) -> Question:
    """The question that a schedule answers, from the forms that are kept."""
    document = json.loads(kept[ANSWER])
    asked = document["options"]
    written = kept["schedule.json"] if document["method"] == METHOD else None
    return Question(
        kept["pipeline.json"],
        json.loads(kept["platform.json"]),
        asked["method"],
        asked["strict"],
        asked["deadline_ms"],
        limits,
        asked.get("fixed", {}),
        cost_model=asked.get("cost_model"),
        strategy=asked.get("strategy"),
        backend=asked.get("backend"),
        schedule=written,
    )


def candidates_of(db: Database, engine: Engine, schedule_id: str) -> dict[str, bytes]:
    """The form of candidates, made now where there is none; empty where they are kept. It waits: for threads
    of jobs."""
    kept = repository.kept(db, schedule_id)
    if "candidates" in kept:
        return {}
    found = repository.find_form(db, schedule_id, CANDIDATES_FORM)
    if found is not None:
        texts: dict[str, str] = json.loads(found.content)
    else:
        again = asked_again(_found(kept, schedule_id), engine.settings.limits)
        texts = engine.search(again, schedule_id, kept["schedule.json"])
        repository.add_form(db, schedule_id, CANDIDATES_FORM, compact(texts).encode())
    return {name: text.encode() for name, text in texts.items()}


def source_of(db: Database, engine: Engine, schedule_id: str) -> bytes:
    """The form SOURCE_FORM, made now where there is none; ApiError `schedule_not_found`. It waits: for threads of
    jobs."""
    found = repository.find_form(db, schedule_id, SOURCE_FORM)
    if found is not None:
        return found.content
    kept = _found(repository.kept(db, schedule_id), schedule_id)
    content = source_form(engine.generate(decided(kept)).source)
    repository.add_form(db, schedule_id, SOURCE_FORM, content)
    return content


def store(db: Database, answer: Answer, owner: str) -> bool:
    """Keeps an answer that `owner` has asked for; whether it was new."""
    created_us = now_us()
    created_at = datetime.fromtimestamp(created_us / 1e6, UTC).isoformat().replace("+00:00", "Z")
    return repository.add(db, answer, created_us, links(answer.id), created_at, owner)


def _found(what: Found | None, schedule_id: str) -> Found:
    """The thing that was found of a schedule; ApiError `schedule_not_found` where it is None, or no forms."""
    if not what:
        raise ApiError("schedule_not_found", f"there is no schedule {schedule_id[:64]!r}")
    return what


def links(schedule_id: str) -> dict[str, str]:
    """Links to a schedule and to all that belongs to it."""
    base = f"/v1/schedules/{schedule_id}"
    forms = {name: f"{base}/{name}" for name in (*FORMS, *DOCUMENTS, "library.so", "builds", "runs", "measurements")}
    return {"self": base, **forms, "jobs": f"/v1/jobs?schedule={schedule_id}", "page": f"/schedules/{schedule_id}"}
