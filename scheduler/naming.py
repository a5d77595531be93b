"""Names for stages that a schedule adds to a pipeline."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection
from typing import Final

from scheduler.lang.functions import FUNCTIONS
from scheduler.lang.parse import REDUCTIONS
from scheduler.lang.pipeline import Pipeline

_KEPT: Final = frozenset(FUNCTIONS) | REDUCTIONS | {"range"} | frozenset(keyword.kwlist)
_LONGEST: Final = 64
_ENDING: Final = 20


def taken(pipeline: Pipeline) -> set[str]:
    """The names that the pipeline has."""
    return {*(s.name for s in pipeline.stages), *(i.name for i in pipeline.inputs), *(q.name for q in pipeline.params)}


def problem(name: str, taken: Collection[str]) -> str | None:
    """Why a new stage cannot have that name beside those `taken`; None where it can."""
    if not re.fullmatch(rf"[A-Za-z_][A-Za-z0-9_]{{0,{_LONGEST - 1}}}", name) or name in _KEPT:
        return "this is no name for a stage"
    return "the name is taken" if name in taken else None


def fresh(stage: str, ending: str, taken: Collection[str]) -> str:
    """A name made from that of a stage, which is not taken."""
    ending = ending[:_ENDING]
    base, number = f"{stage[: _LONGEST - 3 - len(ending)]}_{ending}", 0
    name = base
    while name in taken:
        number += 1
        name = f"{base}{number}"
    return name
