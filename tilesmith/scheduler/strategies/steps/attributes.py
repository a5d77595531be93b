"""The rule for scheduling primitives that come from outside: their values are among the attributes of records."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError

from tilesmith.scheduler.frontends.document.names import close_to
from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive
from tilesmith.scheduler.ir.schedule.primitives.registry import primitives
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule
from tilesmith.scheduler.strategies.registry import Example, rule
from tilesmith.scheduler.strategies.state import State
from tilesmith.scheduler.strategies.steps.arguments import Name
from tilesmith.scheduler.strategies.steps.members import each_placement


@rule("decide", Example("blur", "[{decide: {stage: blur_y, primitive: note, value: by hand}}]"))
def decide(state: State, stage: str, primitive: Name, value: Any, into: Name | None = None) -> State | str:
    """The value of a primitive that a plugin has registered.

        f: loops of its nest      ->      f: loops of its nest, with the primitive

    Of a loop nest, or of a stage inside of nests (all of them, or that of `into`), whichever the primitive is for; the
    value has the form that it has in documents of schedules.
    """
    known = {p.key: p for p in primitives() if _is_attribute(p)}
    found = known.get(primitive)
    if found is None:
        hint = close_to(primitive, known) or f"there are: {', '.join(known) or 'none'}"
        return f"no plugin has registered a primitive '{primitive}'; {hint}"
    try:
        form: Any = found.form
        parsed = found.read(TypeAdapter(form).validate_python(value))
    except ValidationError as error:
        return f"the value of {primitive}: {error.errors(include_url=False)[0]['msg']}"
    group = state.group(stage)
    if (Group if group is not None else Placement) not in found.records:
        return f"{primitive} is nothing of {'a loop nest' if group is not None else 'a stage inside of nests'}"
    if group is not None:
        return state.with_groups([found.put(group, parsed)]).deciding(stage, "compute", primitive)
    return each_placement(state, stage, into, lambda p: found.put(p, parsed), primitive)


def _is_attribute(primitive: Primitive[Any]) -> bool:
    return all(primitive.key not in record.__dataclass_fields__ for record in (Schedule, Group, Placement))
