"""Execution modes of the stages of a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops


class Run(NamedTuple):
    """The execution mode of one stage: along `row`, one of its dims or None, `lanes` points at a time; 1 is scalar
    code. `registers`: it is computed in the row of its readers, and kept in registers. Of a stage with updates these
    are of its updates, whose loops are `updates`; `before` are the lanes of its values before them."""

    row: str | None
    lanes: int
    registers: bool = False
    before: int = 1
    updates: tuple[UpdateLoops, ...] = ()


class Running(NamedTuple):
    """The execution modes of a group: of each stage that is not inline; and the position of the loop that threads
    share. `stream`: its output is written past the caches, as those of other groups in `past` were. `prefetch`: what it
    reads from outside is asked for so many bytes ahead."""

    stages: Mapping[str, Run]
    parallel: int | None = None
    updates_parallel: bool = False
    stream: bool = False
    prefetch: int = 0
    past: frozenset[str] = frozenset()
