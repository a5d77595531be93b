"""Names for stages that a schedule adds to a pipeline."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from tilesmith.scheduler.frontends.document.functions import FUNCTIONS
from tilesmith.scheduler.frontends.document.parser import REDUCTIONS
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage

_KEPT: Final = frozenset(FUNCTIONS) | REDUCTIONS | {"range"} | frozenset(keyword.kwlist)
_LONGEST: Final = 64
_ENDING: Final = 20
_LISTED: Final = 12


def taken(pipeline: Pipeline) -> set[str]:
    """The names that the pipeline has."""
    return {*(s.name for s in pipeline.stages), *(i.name for i in pipeline.inputs), *(q.name for q in pipeline.params)}


def problem(name: str, taken: Collection[str]) -> str | None:
    """Why a new stage cannot have that name beside those `taken`; None where it can."""
    if not re.fullmatch(rf"[A-Za-z_][A-Za-z0-9_]{{0,{_LONGEST - 1}}}", name) or name in _KEPT:
        return "this is no name for a stage"
    return "the name is taken" if name in taken else None


def in_place_of(name: str, stages: Iterable[Stage]) -> str | None:
    """The names of the stages that analysis put in the place of one, for a message; None where it did not."""
    found = [s.name for s in stages if s.made_of == name]
    return listed(found) if found else None


def listed(names: Sequence[str]) -> str:
    """Names for a message, the first of many."""
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def fresh(stage: str, ending: str, taken: Collection[str]) -> str:
    """A name made from that of a stage, which is not taken."""
    ending = ending[:_ENDING]
    base, number = f"{stage[: _LONGEST - 3 - len(ending)]}_{ending}", 0
    name = base
    while name in taken:
        number += 1
        name = f"{base}{number}"
    return name
