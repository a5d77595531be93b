"""Two stored schedules, compared: decisions, costs, loop nests, code."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher, unified_diff
from typing import Any, Literal

import structlog

from tilesmith.app.service.context import Context
from tilesmith.app.service.differences.schemas import Difference, StageCosts, Unit
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.schedules import lists
from tilesmith.app.service.schedules.endpoints import summary
from tilesmith.scheduler.ir.schedule import document as schedule_document
from tilesmith.scheduler.ir.schedule.difference import differences

log = structlog.get_logger("tilesmith.differences")

MOST_LINES = 40_000
"""Lines of two texts together that are compared: the time grows faster than they do."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: its row in lists, its document, its predicted costs, and forms as text."""

    row: Any
    body: Mapping[str, Any]
    predicted: Mapping[str, Any]
    schedule: str
    loopnest: str
    code: str


async def sides(services: Context, a: str, b: str) -> tuple[Side, Side]:
    """The schedules of these ids; ApiError `schedule_not_found`. Where their costs are of different models, those of
    the figures of both take their place, as far as these can be made."""
    first, second = [await _side(services, n) for n in (a, b)]
    if first.predicted.get("model") == second.predicted.get("model"):
        return first, second
    try:
        priced = [await _in_microseconds(services, n) for n in (a, b)]
    except ApiError as error:
        log.info("no figures", schedules=[a, b], code=error.code)
        return first, second
    return replace(first, predicted=priced[0]), replace(second, predicted=priced[1])


async def _in_microseconds(services: Context, schedule_id: str) -> dict[str, Any]:
    """The costs of a schedule by the model `ecm`, whichever it was made with."""
    figures = json.loads((await services.schedules.form(schedule_id, "figures.json")).content)
    stages = [{"stage": s["name"], "total": p["microseconds"]} for s in figures["stages"] for p in s["places"]]
    return {"model": "ecm", "unit": "microseconds", "total": sum(s["total"] for s in stages), "stages": stages}


async def _side(services: Context, schedule_id: str) -> Side:
    body = json.loads((await asyncio.to_thread(services.schedules.get, schedule_id)).content)
    texts = [await services.schedules.text(schedule_id, name) for name in ("schedule.json", "loopnest.txt", "code.c")]
    row = await asyncio.to_thread(lists.summary, services.db, schedule_id)
    if row is None:
        raise ApiError("schedule_not_found", f"there is no schedule {schedule_id[:64]!r}")
    return Side(row, body, body["predicted"], *(text or f"{why_not}\n" for text, why_not in texts))


def difference(a: Side, b: Side) -> Difference:
    """All differences of the two."""
    first, second = (schedule_document.from_document(json.loads(s.schedule)) for s in (a, b))
    return Difference(
        a=summary(a.row),
        b=summary(b.row),
        decided_by_a=list(differences(first, second)),
        decided_by_b=list(differences(second, first)),
        predicted_a=_unit(a),
        predicted_b=_unit(b),
        stages=_stages(a, b),
        loopnest=_diff(a.loopnest, b.loopnest, "loopnest.txt"),
        code=_diff(a.code, b.code, "code.c"),
    )


def _unit(of: Side) -> Unit | None:
    predicted = of.predicted
    return Unit(**{k: predicted[k] for k in ("model", "unit", "total")}) if "unit" in predicted else None


def _stages(a: Side, b: Side) -> list[StageCosts]:
    first, second = _costs(a), _costs(b)
    return [StageCosts(stage=n, a=first.get(n), b=second.get(n)) for n in dict.fromkeys([*first, *second])]


def _costs(of: Side) -> dict[str, float]:
    """The cost of every stage, in all groups together."""
    found: dict[str, float] = {}
    for stage in of.predicted.get("stages", ()):
        found[stage["stage"]] = found.get(stage["stage"], 0.0) + stage["total"]
    return found


def _diff(a: str, b: str, name: str) -> str:
    if a == b:
        return ""
    lines, others = a.splitlines(), b.splitlines()
    if len(lines) + len(others) > MOST_LINES:
        return f"{name} differs, in texts of {len(lines):,} and {len(others):,} lines\n"
    return "\n".join(unified_diff(lines, others, f"a/{name}", f"b/{name}", lineterm="")) + "\n"


Kind = Literal["same", "changed", "only a", "only b"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Lines that stand side by side, by number from 1 and text; None where one side has none."""

    kind: Kind
    a: tuple[int, str] | None
    b: tuple[int, str] | None


def side_by_side(a: str, b: str) -> tuple[Pair, ...]:
    """The lines of two texts, those that are equal beside each other."""
    lines, others = a.splitlines(), b.splitlines()
    matcher = SequenceMatcher(None, lines, others, autojunk=False)
    return tuple(
        pair
        for _, a0, a1, b0, b1 in matcher.get_opcodes()
        for pair in _pairs(list(enumerate(lines, 1))[a0:a1], list(enumerate(others, 1))[b0:b1])
    )


def _pairs(a: Sequence[tuple[int, str]], b: Sequence[tuple[int, str]]) -> Iterator[Pair]:
    for n in range(max(len(a), len(b))):
        left, right = a[n] if n < len(a) else None, b[n] if n < len(b) else None
        match left, right:
            case None, _:
                yield Pair("only b", None, right)
            case _, None:
                yield Pair("only a", left, None)
            case (_, mine), (_, theirs):
                yield Pair("same" if mine == theirs else "changed", left, right)
