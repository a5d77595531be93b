"""Questions and answers of schedule requests: plain data that crosses processes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilesmith.app.service.bodies import data
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.frontends.document.document import canonical_text, to_document
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.strategies.document import StrategyDocument

SOURCE_FORM = "source.json"  # not served: what the workers need to build the library

CANDIDATES_FORM = "candidates.json"  # not served: the table of candidates and their schedules, by the forms' names

ANSWER = "answer"
"""The form that is the schedule's document."""
EXPLANATION = "explain"
"""The form with every decision."""

MEDIA_TYPES = {
    ANSWER: "application/json",
    "code.c": "text/x-c; charset=utf-8",
    "code.h": "text/x-c; charset=utf-8",
    "loopnest.txt": "text/plain; charset=utf-8",
    "schedule.json": "application/json",
    "schedule.h": "text/x-c++; charset=utf-8",
    "schedule.py": "text/x-python; charset=utf-8",
    "figures.json": "application/json",
    "tiles.json": "application/json",
    "candidates": "application/json",
    EXPLANATION: "application/json",
    "explain.txt": "text/plain; charset=utf-8",
    "pipeline.json": "application/json",
    "platform.json": "application/json",
    SOURCE_FORM: "application/json",
    CANDIDATES_FORM: "application/json",
}


CODE_FORMS = {"code.c": "code", "code.h": "header"}
"""Forms that are parts of SOURCE_FORM, by the key that they have there."""

MADE_FORMS = (
    "loopnest.txt",
    "schedule.h",
    "schedule.py",
    "figures.json",
    "tiles.json",
    "explain.txt",
    SOURCE_FORM,
    CANDIDATES_FORM,
)
"""Forms, of schedules and of candidates, that can be made from those that are kept: made when first asked for."""


def candidate_form(rank: int, name: str) -> str:
    """The name of a form of a candidate: `schedule.json`, or `loopnest.txt`."""
    return f"candidates/{rank}/{name}"


def is_of_candidates(form: str) -> bool:
    """True if CANDIDATES_FORM has the form: the table of the candidates, or one as data."""
    return form == "candidates" or (form.startswith("candidates/") and form.endswith("/schedule.json"))


def is_made(form: str) -> bool:
    """True if the form can be made again."""
    return form.rpartition("/")[2] in MADE_FORMS


def media_type(form: str) -> str:
    """The media type of a form."""
    return MEDIA_TYPES[form.rpartition("/")[2]]


Document = Mapping[str, Any] | bytes
"""A document as data, or as JSON, which crosses processes quicker and in less memory."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question: a pipeline document, a platform document, options; `fixed` is the document of what is fixed,
    `strategy` that of a strategy, `schedule` that of a schedule by hand, `estimates` those that replace the
    pipeline's."""

    pipeline: Document
    platform: Mapping[str, Any]
    method: str
    strict: bool
    deadline_ms: int | None
    limits: Limits = field(default_factory=Limits)
    fixed: Document = field(default_factory=dict)
    tune: int | None = None
    cost_model: str | None = None
    strategy: Document | None = None
    backend: str | None = None
    schedule: Document | None = None
    estimates: Document | None = None

    def estimated(self) -> Any:
        """The pipeline document, with the estimates that are asked for."""
        pipeline, estimates = data(self.pipeline), data(self.estimates)
        if not estimates or not isinstance(pipeline.get("estimates", {}), dict):
            return pipeline
        return pipeline | {"estimates": pipeline.get("estimates", {}) | estimates}

    def options(self) -> dict[str, Any]:
        """The options as they are answered: those that are not set are left out."""
        always = {"method": self.method, "strict": self.strict, "deadline_ms": self.deadline_ms}
        given = {"fixed": data(self.fixed), "tune": self.tune, "cost_model": self.cost_model}
        given["strategy"] = data(self.strategy)
        given["backend"] = self.backend
        return always | {name: value for name, value in given.items() if value}


@dataclass(frozen=True, slots=True)
class Decided:
    """A stored schedule as the documents that code is made of; `backend` is the platform's own where it is None. With
    `priced`, its cost is predicted, too, by `cost_model`."""

    pipeline: bytes
    platform: bytes
    schedule: bytes
    backend: str | None = None
    priced: bool = False
    cost_model: str | None = None


@dataclass(frozen=True, slots=True)
class PipelineIdentity:
    """A pipeline that was found valid: its content hash and its canonical form."""

    id: str
    name: str
    stages: int
    document: bytes


@dataclass(frozen=True, slots=True)
class StrategyIdentity:
    """A strategy that was found valid: its content hash and its canonical form."""

    id: str
    name: str
    document: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """A schedule in every form that is kept: those that cannot be made again. `body` lacks what the store adds: the
    time and the links."""

    id: str
    pipeline: PipelineIdentity
    platform: str
    method: str
    strict: bool
    degraded: str | None
    version: str
    body: dict[str, Any]
    forms: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Generated:
    """The C of a schedule. Where its cost was asked for that, too, the kernels that do not fit the device that it runs
    on, and sizes that do not go together."""

    source: CSource
    misfits: tuple[dict[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    predicted: dict[str, Any] | None = None


def compact(value: object) -> str:
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def content_hash(content: bytes) -> str:
    """The name of a content: 32 hex digits of its SHA-256."""
    return hashlib.sha256(content).hexdigest()[:32]


def identity(pipeline: Pipeline) -> PipelineIdentity:
    """A pipeline by its content, of which what its `doc` says is no part."""
    document = to_document(pipeline)
    text = canonical_text(document).encode()
    bare = {key: value for key, value in document.items() if key != "doc"}
    return PipelineIdentity(content_hash(canonical_text(bare).encode()), pipeline.name, len(pipeline.stages), text)


def source_form(source: CSource) -> bytes:
    """The form SOURCE_FORM of C."""
    return compact(plain(source)).encode()


def strategy_identity(strategy: StrategyDocument) -> StrategyIdentity:
    """A strategy by its content."""
    content = json.dumps(strategy.to_document(), sort_keys=True, separators=(",", ":")).encode()
    return StrategyIdentity(content_hash(content), strategy.name, content)


def plain(value: object) -> Any:
    """Frozen data as JSON has it: a dataclass is an object, a tuple an array, an infinity is null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list, set, frozenset)):
        return [plain(v) for v in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    item = getattr(value, "item", None)  # a NumPy scalar
    return plain(item()) if callable(item) else str(value)
