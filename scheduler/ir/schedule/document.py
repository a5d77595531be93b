"""Schedule <-> document: plain data for JSON, unknown keys refused, every problem with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from scheduler.errors import DocumentError, Problem
from scheduler.ir.schedule.schedule import (
    INLINE,
    Factor,
    Group,
    Joining,
    Placement,
    Schedule,
    Separation,
    Tile,
    UpdateLoops,
    Vector,
)

Identifier = Annotated[str, Field(strict=True, pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
Loop = Annotated[str, Field(strict=True, pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}\.(inner|outer)$")]
Level = Annotated[str, Field(strict=True, pattern=r"^([A-Za-z_][A-Za-z0-9_]{0,63}\.(inner|outer)|inline)$")]
Text = Annotated[str, Field(strict=True, max_length=20_000)]
Size = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]
Flag = Annotated[bool, Field(strict=True)]
FORMAT = 1
MAX_STAGES = 100_000
MAX_PREFETCH = 1 << 20


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Tile(_Model):
    dim: Identifier
    size: Size | None = None


class _Vector(_Model):
    dim: Identifier
    lanes: Annotated[int, Field(strict=True, ge=2, le=256)]


class _UpdateLoops(_Model):
    loops: Annotated[tuple[Identifier, ...], Field(max_length=16)]
    vector: _Vector | None = None
    parallel: Identifier | None = None


class _Factor(_Model):
    stage: Identifier
    reduction: Annotated[int, Field(strict=True, ge=0, le=MAX_STAGES)]
    variable: Identifier
    parts: Annotated[int, Field(strict=True, ge=2, le=4096)]
    partial: Identifier
    interleaved: Flag = False


class _Separation(_Model):
    stage: Identifier
    window: Annotated[int, Field(strict=True, ge=0, le=MAX_STAGES)]
    dim: Identifier
    partial: Identifier
    through: Identifier | None = None


class _Joining(_Model):
    stages: Annotated[tuple[Identifier, ...], Field(max_length=MAX_STAGES)]
    joint: Identifier


class _Placement(_Model):
    stage: Identifier
    compute: Level
    store: Level
    fold: Flag = True
    storage: Literal["memory", "registers"] = "memory"
    order: Annotated[tuple[Identifier, ...], Field(max_length=16)] = ()
    vector: _Vector | None = None
    updates: Annotated[tuple[_UpdateLoops, ...], Field(max_length=MAX_STAGES)] = ()


class _Group(_Model):
    output: Identifier
    loops: Annotated[tuple[Loop, ...], Field(max_length=32)] = ()
    tiles: Annotated[tuple[_Tile, ...], Field(max_length=16)] = ()
    parallel: Loop | None = None
    vector: _Vector | None = None
    unroll: Annotated[tuple[Identifier, ...], Field(max_length=16)] = ()
    placements: Annotated[tuple[_Placement, ...], Field(max_length=MAX_STAGES)] = ()
    updates: Annotated[tuple[_UpdateLoops, ...], Field(max_length=MAX_STAGES)] = ()
    stream: Flag = False
    prefetch: Annotated[int, Field(strict=True, ge=0, le=MAX_PREFETCH)] = 0


class _Schedule(_Model):
    format: Literal[1]
    pipeline: Identifier
    method: Annotated[str, Field(strict=True, pattern=r"^[a-z0-9_-]{1,32}$")]
    strict: Flag = False
    degraded: Text | None = None
    factors: Annotated[tuple[_Factor, ...], Field(max_length=MAX_STAGES)] = ()
    separations: Annotated[tuple[_Separation, ...], Field(max_length=MAX_STAGES)] = ()
    joinings: Annotated[tuple[_Joining, ...], Field(max_length=MAX_STAGES)] = ()
    groups: Annotated[tuple[_Group, ...], Field(max_length=MAX_STAGES)]


def to_document(schedule: Schedule) -> dict[str, Any]:
    """The schedule as plain data: from_document(to_document(s)) == s."""
    joinings = schedule.joinings
    return {
        "format": FORMAT,
        "pipeline": schedule.pipeline,
        "method": schedule.method,
        "strict": schedule.strict,
        "degraded": schedule.degraded,
        **({"factors": [asdict(f) for f in schedule.factors]} if schedule.factors else {}),
        **({"separations": [asdict(s) for s in schedule.separations]} if schedule.separations else {}),
        **({"joinings": [{"stages": list(j.stages), "joint": j.joint} for j in joinings]} if joinings else {}),
        "groups": [_group_document(g) for g in schedule.groups],
    }


def decisions(schedule: Schedule) -> dict[str, Any]:
    """The decisions in a schedule's document: `groups`, `factors`, `separations` and `joinings`, also where there are
    none."""
    document = to_document(schedule)
    about = {"format", "pipeline", "method", "strict", "degraded"}
    none: dict[str, Any] = {"factors": [], "separations": [], "joinings": []}
    return {**none, **{key: value for key, value in document.items() if key not in about}}


def from_document(document: object) -> Schedule:
    """The schedule that `document` (parsed JSON) describes; raises DocumentError with every problem.

    Whether it is legal for a pipeline is `legality.check`'s question.
    """
    if not isinstance(document, Mapping):
        raise DocumentError((Problem("not_an_object", "", "a schedule is an object with keys"),))
    try:
        model = _Schedule.model_validate(document)
    except ValidationError as error:
        raise DocumentError(tuple(_problem(d) for d in error.errors(include_url=False, include_input=False))) from None
    groups = tuple(_group(g) for g in model.groups)
    factors = tuple(Factor(**f.model_dump()) for f in model.factors)
    separations = tuple(Separation(**s.model_dump()) for s in model.separations)
    joinings = tuple(Joining(**j.model_dump()) for j in model.joinings)
    return Schedule(model.pipeline, model.method, groups, model.strict, model.degraded, factors, separations, joinings)


def _group_document(group: Group) -> dict[str, Any]:
    return {
        "output": group.output,
        "loops": list(group.loops),
        "tiles": [{"dim": t.dim, "size": t.size} for t in group.tiles],
        "parallel": group.parallel,
        "vector": _vector_document(group.vector),
        "unroll": list(group.unroll),
        "placements": [_placement_document(p) for p in group.placements],
        **_updates_document(group.updates),
        **({"stream": True} if group.stream else {}),
        **({"prefetch": group.prefetch} if group.prefetch else {}),
    }


def _placement_document(p: Placement) -> dict[str, Any]:
    document: dict[str, Any] = {"stage": p.stage, "compute": p.compute, "store": p.store}
    if p.compute != INLINE or p.order or p.vector is not None or not p.fold or p.storage != "memory":
        document |= {
            "fold": p.fold,
            "storage": p.storage,
            "order": list(p.order),
            "vector": _vector_document(p.vector),
        }
    return document | _updates_document(p.updates)


def _updates_document(updates: tuple[UpdateLoops, ...]) -> dict[str, Any]:
    """The key `updates`, where there is something to say."""
    documents = [
        {"loops": list(u.loops), "vector": _vector_document(u.vector), "parallel": u.parallel} for u in updates
    ]
    return {"updates": documents} if documents else {}


def _vector_document(vector: Vector | None) -> dict[str, Any] | None:
    return None if vector is None else {"dim": vector.dim, "lanes": vector.lanes}


def _group(g: _Group) -> Group:
    return Group(
        g.output,
        g.loops,
        tuple(Tile(t.dim, t.size) for t in g.tiles),
        g.parallel,
        _vector(g.vector),
        g.unroll,
        tuple(
            Placement(p.stage, p.compute, p.store, p.fold, p.storage, p.order, _vector(p.vector), _updates(p.updates))
            for p in g.placements
        ),
        _updates(g.updates),
        g.stream,
        g.prefetch,
    )


def _updates(updates: tuple[_UpdateLoops, ...]) -> tuple[UpdateLoops, ...]:
    return tuple(UpdateLoops(u.loops, _vector(u.vector), u.parallel) for u in updates)


def _vector(v: _Vector | None) -> Vector | None:
    return None if v is None else Vector(v.dim, v.lanes)


def _problem(detail: ErrorDetails) -> Problem:
    pointer = "".join("/" + str(part)[:80].replace("~", "~0").replace("/", "~1") for part in detail["loc"])
    match detail["type"]:
        case "extra_forbidden":
            return Problem("unknown_key", pointer, "there is no such key")
        case "missing":
            return Problem("missing_key", pointer, "the key is missing")
    message = detail["msg"]
    return Problem("bad_value", pointer, message[:1].lower() + message[1:])
