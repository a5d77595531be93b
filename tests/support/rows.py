"""Rows of values in vectors: many expressions of the same inputs in one library, as a compiler takes longer to begin
than for a few loops."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from support.native import source_of

from tilesmith.platforms import Platform
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule, Vector


def rows(
    values: Sequence[str], types: Mapping[str, str], lanes: int, platform: Platform, strict: bool = False
) -> tuple[Pipeline, CSource]:
    """A pipeline of one row for each of the values of inputs of these types, and its C: each row is an output with a
    loop of its own, in vectors of so many lanes."""
    outputs = [f"out{n}" for n in range(len(values))]
    pipeline = load(
        {
            "format": 1,
            "name": "rows",
            "inputs": [{"name": name, "type": type_, "dims": ["x"]} for name, type_ in types.items()],
            "stages": [{"name": o, "dims": ["x"], "value": v} for o, v in zip(outputs, values, strict=True)],
            "outputs": outputs,
            "estimates": {o: [[0, 4096]] for o in outputs},
        }
    )
    groups = tuple(Group(o, ("x.inner",), (), None, Vector("x", lanes), (), ()) for o in outputs)
    return pipeline, source_of(pipeline, Schedule("rows", "by hand", groups, strict), platform)


def of_types(value: str, types: Sequence[str]) -> tuple[str, dict[str, str]]:
    """A value of inputs a, b, ... with their types in their names, and the types of these: values of different types
    have inputs of their own."""
    named = {letter: f"{letter}_{type_}" for letter, type_ in zip("abc", types, strict=False)}
    text = re.sub(r"\b([abc])\(", lambda found: f"{named[found[1]]}(", value)
    return text, {name: name.partition("_")[2] for name in named.values()}
