"""Platforms as they might be: one with other figures, and what a pipeline's schedule would be on it."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.schedules.answers import Answer, Question
from tilesmith.app.service.schedules.engine import Engine
from tilesmith.platforms import Platform
from tilesmith.scheduler.compiler import Options
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.ir.schedule.difference import differences
from tilesmith.scheduler.ir.schedule.document import from_document

CHANGEABLE = re.compile(
    r"threads|clock_ghz|vector_registers|memory_bandwidth_gb_s|memory_latency_ns|compute_units|clock_mhz"
    r"|local_memory_bytes|global_cache_bytes|local_bandwidth_gb_s|l\d\.(size_bytes|bandwidth_bytes_per_cycle)"
)
KIB = 1024
LABELS = {
    "threads": "Threads",
    "clock_ghz": "Clock (GHz)",
    "vector_registers": "Vector registers",
    "memory_bandwidth_gb_s": "Memory bandwidth (GB/s)",
    "memory_latency_ns": "Memory latency (ns)",
    "compute_units": "Compute units",
    "clock_mhz": "Clock (MHz)",
    "local_memory_bytes": "Local memory (KiB)",
    "global_cache_bytes": "Cache (KiB)",
    "local_bandwidth_gb_s": "Bandwidth of local memory (GB/s)",
    "size_bytes": "size (KiB)",
    "bandwidth_bytes_per_cycle": "bandwidth (bytes a cycle)",
}


@dataclass(frozen=True, slots=True)
class Changeable:
    """A figure that may be changed: its name in a description, and its value in the unit of its label."""

    name: str
    label: str
    value: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Predicted cost of a pipeline's best schedule as a platform is and as it would be, in `unit`, and in words what
    would be decided otherwise."""

    unit: str
    before: float
    after: float
    differences: tuple[str, ...]

    @property
    def change(self) -> float:
        """The part by which the cost grows; negative where it shrinks."""
        return self.after / self.before - 1 if self.before else 0.0


def changeable(platform: Platform) -> tuple[Changeable, ...]:
    """The figures of a platform that may be changed."""
    return tuple(
        Changeable(name, _label(name), float(value) / (KIB if name.endswith("_bytes") else 1))
        for name, value in platform.figures().items()
        if CHANGEABLE.fullmatch(name)
    )


def _label(name: str) -> str:
    level, dot, figure = name.partition(".")
    return f"{level.upper()} {LABELS[figure]}" if dot else LABELS[level]


def changed(document: Mapping[str, Any], values: Mapping[str, float]) -> dict[str, Any]:
    """The document with these figures, in the units of their labels, under a name of its own."""
    found = copy.deepcopy(dict(document))
    found["name"] = f"{str(document['name'])[:55]}-what-if"
    found["sources"] = {k: v for k, v in dict(document.get("sources", {})).items() if k not in values}
    for name, value in values.items():
        level, dot, figure = name.partition(".")
        place = next(c for c in found["caches"] if f"l{c['level']}" == level) if dot else found
        key = figure if dot else level
        number = value * (KIB if key.endswith("_bytes") else 1)
        place[key] = round(number) if isinstance(place[key], int) else number
    return found


async def what_if(
    engine: Engine, limits: Limits, pipeline: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> Outcome:
    """The change of a pipeline's schedule from one platform to another; nothing is stored. ApiError where there is
    none."""
    answers = [
        await engine.answer(Question(pipeline, document, Options().method, False, None, limits))
        for document in (before, after)
    ]
    first, second = (from_document(json.loads(a.forms["schedule.json"])) for a in answers)
    old, new = (_predicted(a) for a in answers)
    return Outcome(answers[0].body["predicted"]["unit"], old, new, differences(second, first))


def _predicted(answer: Answer) -> float:
    total = answer.body["predicted"]["total"]
    if total is None:
        raise ApiError("no_schedule", "the cost model has no cost for it")
    return float(total)
