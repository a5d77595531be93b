"""Targets: where schedules and baselines come from, a service, or this machine with a file of results."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tilesmith.app.cli.ci import environment
from tilesmith.app.cli.ci.documents import Asked, content, platform, strategy
from tilesmith.app.cli.ci.environment import Found
from tilesmith.app.cli.report import BadDocument, UsageError
from tilesmith.app.client import Client, ServiceError
from tilesmith.app.comparison import results
from tilesmith.app.comparison.noise import ROUNDS, Evidence, evidence, measured
from tilesmith.app.comparison.results import Measured, Result, Series
from tilesmith.scheduler.errors import Problem

TOKEN = "TILESMITH_TOKEN"
MAIN = "main"
OF_THE_DOCUMENT = (422, 504, 507)
"""Statuses of refusals that are about one document: the others go on."""


class Target(Protocol):
    """A source of schedules and a store of results."""

    def reference(self, wished: str | None) -> str:
        """The reference that is compared with, where one is wished for or not."""
        ...

    def schedule(self, source: str, machine: str, asked: Asked) -> Result:
        """The result of a document on a platform. Raises TilesmithError where the document is wrong."""
        ...

    def baseline(self, ref: str) -> tuple[str | None, tuple[Result, ...]]:
        """The results that a reference means, and its kind: None where nothing was recorded for it."""
        ...

    def record(self, found: Sequence[Result]) -> None:
        """Keeps results as those of the commit."""
        ...

    def measured(self, now: Result) -> Measured:
        """The measurement of a result's code."""
        ...

    def evidence(self, now: Result, before: Result) -> Evidence:
        """The evidence of both codes run in turns."""
        ...


@dataclass(slots=True)
class Service:
    """A service; `found` is the place of the commit."""

    client: Client
    found: Found
    strategies: dict[str | None, Any] = field(default_factory=dict)

    @property
    def project(self) -> str:
        return _known(self.found.project, "the project", "--project")

    @property
    def branch(self) -> str:
        return _known(self.found.branch, "the branch", "--branch")

    @property
    def commit(self) -> str:
        return _known(self.found.commit, "the commit", "--commit")

    def reference(self, wished: str | None) -> str:
        return wished or self.found.into or MAIN

    def schedule(self, source: str, machine: str, asked: Asked) -> Result:
        document = content(source)
        if asked.strategy not in self.strategies:
            self.strategies[asked.strategy] = strategy(asked.strategy)
        options = asked.options() if asked.strategy is None else {"strict": asked.strict}
        try:
            answer = self.client.schedule(document, platform(machine), self.strategies[asked.strategy], **options)
        except ServiceError as error:
            raise _placed(error, source) from None
        return results.from_schedule(answer)

    def baseline(self, ref: str) -> tuple[str | None, tuple[Result, ...]]:
        folder = Path.cwd()
        asked = environment.resolved(ref, folder)
        try:
            answer = self.client.baseline(self.project, asked, environment.ancestors(self.commit, folder))
        except ServiceError as error:
            if error.code != "baseline_not_found":
                raise
            return None, ()
        return answer["kind"], tuple(results.from_document(r) for r in answer["items"])

    def record(self, found: Sequence[Result]) -> None:
        items = [
            {"schedule_id": r.schedule_id} | ({"measured": r.measured.to_document()} if r.measured else {})
            for r in found
        ]
        self.client.record(self.project, self.branch, self.commit, items)

    def measured(self, now: Result) -> Measured:
        job = self.client.wait(self.client.run(now.schedule_id, estimates=True, outputs=False, repeat=ROUNDS))
        return measured(job["result"]["times_ms"], _machine(job["result"]))

    def evidence(self, now: Result, before: Result) -> Evidence:
        result = self.client.wait(self.client.compare(now.schedule_id, before.schedule_id))["result"]
        return evidence(result["baseline_ms"], result["now_ms"])

    def acknowledge(self, found: Result, reason: str) -> None:
        """Keeps that the result is accepted."""
        self.client.acknowledge(self.project, self.branch, self.commit, found.schedule_id, reason)


@dataclass(slots=True)
class Local:
    """The target on this machine: predictions are made here, and results are in a file."""

    file: Path

    def reference(self, wished: str | None) -> str:
        if wished is not None:
            raise UsageError(("either --baseline, of a service, or --baseline-file", None))
        return str(self.file)

    def schedule(self, source: str, machine: str, asked: Asked) -> Result:
        from tilesmith.app.cli import schedules
        from tilesmith.scheduler.frontends.document.document import canonical_json

        request = schedules.Request(
            source, machine, asked.method, asked.strict, asked.cost_model, strategy=asked.strategy
        )
        made = schedules.answer(request)
        if made.predicted is None:
            raise UsageError((f"{source}: nothing is predicted for its schedule", None))
        predicted = made.predicted.to_document()
        by = {"strategy": {"strategy": asked.strategy}} if asked.strategy else {}
        series = Series(made.pipeline.name, made.platform.name, results.variant(asked.options() | by))
        identity = results.content_hash(canonical_json(made.pipeline))
        return Result(series, made.key, identity, float(predicted["total"]), str(predicted["unit"]))

    def baseline(self, ref: str) -> tuple[str | None, tuple[Result, ...]]:
        if not self.file.exists():
            return None, ()
        try:
            document = json.loads(self.file.read_bytes())
            return "file", tuple(results.from_document(r) for r in document["results"])
        except (ValueError, KeyError, TypeError) as error:
            message = f"{self.file} is no file of results: {type(error).__name__}: {error}"
            raise UsageError((message, "tilesmith ci record --baseline-file writes one")) from None

    def record(self, found: Sequence[Result]) -> None:
        document = {"format": 1, "results": [r.to_document() for r in sorted(found, key=lambda r: r.series)]}
        self.file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")

    def measured(self, now: Result) -> Measured:
        raise _no_machine()

    def evidence(self, now: Result, before: Result) -> Evidence:
        raise _no_machine()


@contextmanager
def target(
    server: str | None,
    file: Path | None,
    project: str | None,
    branch: str | None,
    commit: str | None,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Service | Local]:
    """The target that the options mean: a file wins over a service that only the environment names."""
    if file is not None:
        yield Local(file)
        return
    if server is None:
        hint = "set TILESMITH_SERVER, or take --baseline-file FILE, which needs no service"
        raise UsageError(("there is no service to ask: --server URL", hint))
    variables = os.environ if variables is None else variables
    told = environment.found(variables, Path.cwd())
    place = Found(project or told.project, branch or told.branch, commit or told.commit, told.into)
    if place.commit and not environment.HASH.fullmatch(place.commit):
        raise UsageError((f"--commit {place.commit!r} is no hash of a commit", "7 to 64 hex digits"))
    with Client(server, _token(variables)) as client:
        yield Service(client, place)


def _token(variables: Mapping[str, str]) -> str | None:
    """The token of the environment. Raises UsageError, which does not show it, where it can be none: the error of the
    HTTP library would."""
    token = variables.get(TOKEN, "").strip()
    if not re.fullmatch(r"[\x21-\x7e]*", token):
        raise UsageError((f"{TOKEN} has characters that no token has", "is it the secret itself, and nothing else?"))
    return token or None


def _known(value: str | None, what: str, option: str) -> str:
    if value is None:
        raise UsageError((f"neither CI nor git tells {what}", f"give it by {option}"))
    return value


def _placed(error: ServiceError, source: str) -> ServiceError | BadDocument:
    """The refusal of a document with the places in it, where they are; what is no matter of the document as it is."""
    prefix, found = "/pipeline", error.document.get("errors", ())
    if error.status not in OF_THE_DOCUMENT:
        return error
    problems = [
        Problem(
            str(e["code"]), str(e["pointer"]).removeprefix(prefix), str(e["message"]), e.get("hint"), e.get("column")
        )
        for e in found
    ]
    return BadDocument(problems or [Problem(error.code, "", str(error))], source, _text(source))


def _text(source: str) -> bytes | None:
    """The text of a document that is a file."""
    path = Path(source)
    return path.read_bytes() if path.is_file() else None


def _machine(result: Mapping[str, Any]) -> str | None:
    found = (result.get("measurement") or {}).get("machine", {}).get("description")
    return str(found) if found else None


def _no_machine() -> UsageError:
    return UsageError(("--measure needs a service, which runs both codes in turns: --server URL", None))
