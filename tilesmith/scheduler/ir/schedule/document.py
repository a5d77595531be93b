"""Schedule <-> document: plain data for JSON, unknown keys refused, every problem with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, create_model
from pydantic_core import ErrorDetails

from tilesmith.scheduler.errors import MOST_PROBLEMS, DocumentError, Problem
from tilesmith.scheduler.ir.schedule.primitives.forms import MAX_STAGES, Flag, Form, Identifier
from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive, R, Record
from tilesmith.scheduler.ir.schedule.primitives.registry import primitives_of
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule

Text = Annotated[str, Field(strict=True, max_length=20_000)]
Method = Annotated[str, Field(strict=True, pattern=r"^[a-z0-9_-]{1,32}$")]
FORMAT = 1


def to_document(schedule: Schedule) -> dict[str, Any]:
    """The schedule as plain data: from_document(to_document(s)) == s."""
    return {
        "format": FORMAT,
        "pipeline": schedule.pipeline,
        "method": schedule.method,
        "strict": schedule.strict,
        "degraded": schedule.degraded,
        **_said(schedule),
        "groups": [_group_document(g) for g in schedule.groups],
    }


def decisions(schedule: Schedule) -> dict[str, Any]:
    """The decisions in a schedule's document: its groups and rewrites, also where there are none."""
    document = to_document(schedule)
    about = {"format", "pipeline", "method", "strict", "degraded"}
    none = {p.key: p.write(p.default) for p in primitives_of(Schedule)}
    return {**none, **{key: value for key, value in document.items() if key not in about}}


def from_document(document: object) -> Schedule:
    """The schedule that `document` (parsed JSON) describes; raises DocumentError with every problem.

    Whether it is legal for a pipeline is `legality.check`'s question.
    """
    if not isinstance(document, Mapping):
        raise DocumentError((Problem("bad_type", "", "a schedule is an object with keys"),))
    try:
        model: Any = _schedule_form(*map(primitives_of, (Schedule, Group, Placement))).model_validate(document)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[:MOST_PROBLEMS]
        raise DocumentError(tuple(map(_problem, found))) from None
    schedule = Schedule(model.pipeline, model.method, tuple(map(_group, model.groups)), model.strict, model.degraded)
    return _read(schedule, model)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a document, with the primitives that are registered."""
    return _schedule_form(*map(primitives_of, (Schedule, Group, Placement))).model_json_schema()


Primitives = tuple[Primitive[Any], ...]


@lru_cache(maxsize=8)
def _schedule_form(of_schedule: Primitives, of_group: Primitives, of_placement: Primitives) -> type[BaseModel]:
    """The form of documents with these primitives."""
    placement = create_model("PlacementForm", __base__=Form, stage=(Identifier, ...), **_fields(of_placement))
    group = create_model(
        "GroupForm", __base__=Form, output=(Identifier, ...), placements=(_many(placement), ()), **_fields(of_group)
    )
    return create_model(
        "ScheduleForm",
        __base__=Form,
        format=(Literal[1], ...),
        pipeline=(Identifier, ...),
        method=(Method, ...),
        strict=(Flag, False),
        degraded=(Text | None, None),
        groups=(_many(group), ...),
        **_fields(of_schedule),
    )


def _many(form: type[BaseModel]) -> Any:
    return Annotated[tuple[form, ...], Field(max_length=MAX_STAGES)]  # type: ignore[valid-type]


def _fields(primitives: Primitives) -> dict[str, Any]:
    return {p.key: (p.form, ... if p.required else p.default) for p in primitives}


def _said(record: Record) -> dict[str, Any]:
    """The values that are in a document: all that differ from their defaults, and those that are always there. Of a
    stage that is inline these are its levels alone, where nothing else is said."""
    primitives = primitives_of(type(record))
    values = [(p, p.of(record)) for p in primitives]
    inline = isinstance(record, Placement) and record.compute == INLINE
    short = inline and all(v == p.default for p, v in values if p.always)
    return {p.key: p.write(v) for p, v in values if p.required or v != p.default or (p.always and not short)}


def _group_document(group: Group) -> dict[str, Any]:
    said = _said(group)
    first = [p.key for p in primitives_of(Group) if p.always]
    placements = [{"stage": p.stage, **_said(p)} for p in group.placements]
    rest = {key: value for key, value in said.items() if key not in first}
    return {"output": group.output, **{key: said[key] for key in first}, "placements": placements, **rest}


def _group(model: Any) -> Group:
    placements = tuple(_read(Placement(p.stage, INLINE, INLINE), p) for p in model.placements)
    return _read(Group(model.output, (), (), None, None, (), placements), model)


def _read(record: R, model: Any) -> R:
    """The record with what its form has parsed."""
    values = {p: p.read(getattr(model, p.key)) for p in primitives_of(type(record))}
    fields = {p.key: value for p, value in values.items() if p.key in type(record).__dataclass_fields__}
    others = ((p.key, value) for p, value in values.items() if p.key not in fields and value != p.default)
    return replace(record, **fields, attributes=tuple(sorted(others)))


def _problem(detail: ErrorDetails) -> Problem:
    pointer = "".join("/" + str(part)[:80].replace("~", "~0").replace("/", "~1") for part in detail["loc"])
    match detail["type"]:
        case "extra_forbidden":
            return Problem("unknown_key", pointer, "there is no such key")
        case "missing":
            return Problem("missing_key", pointer, "the key is missing")
    message = detail["msg"]
    return Problem("bad_value", pointer, message[:1].lower() + message[1:])
