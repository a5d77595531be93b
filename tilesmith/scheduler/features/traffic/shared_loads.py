"""Loads that the stages of one loop over vectors share: elements that several of them read in the same step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import product
from math import ceil
from typing import NamedTuple, TypeAlias

from tilesmith.scheduler.features.groups.execution_mode import Run
from tilesmith.scheduler.features.groups.fusion_group import Effective, Members
from tilesmith.scheduler.features.pipeline.reads import Offsets, Read, moved_offsets

Line: TypeAlias = tuple[tuple[str | None, float], ...]
"""The dim of the output that each dim of a producer follows, and how fast."""


class _Elements(NamedTuple):
    """Elements of a producer that one read of a stage has in one step, with the number of the read."""

    stage: str
    read: int
    line: Line
    places: Offsets


def parts_loaded(
    members: Members,
    reads: Mapping[str, Effective],
    runs: Mapping[str, Run],
    one_loop: Iterable[str],
    parts: Mapping[str, tuple[float, ...]],
) -> dict[str, tuple[float, ...]]:
    """The parts of their reads that the stages of one loop load themselves, by element: a stage that is computed ahead
    of another, by whole vectors along the row and by rows across it, reads elsewhere in the same step. Where elements
    are not known, the given `parts`."""
    found = {name: list(of) for name, of in parts.items()}
    by_producer: dict[str, list[_Elements]] = {}
    unknown = set[str]()
    for name in sorted(set(one_loop) & found.keys()):
        for n, read in enumerate(reads[name].reads):
            if found[name][n] == 1.0:
                continue
            elements = _elements(members, name, n, read, reads[name].apart, runs)
            if elements is None:
                unknown.add(read.producer)
            else:
                by_producer.setdefault(read.producer, []).append(elements)
    for producer in by_producer.keys() - unknown:
        those = by_producer[producer]
        readers = Counter((e.line, place) for e in those for place in e.places)
        for e in those:
            found[e.stage][e.read] = sum(1 / readers[e.line, place] for place in e.places) / len(e.places)
    return {name: tuple(of) for name, of in found.items()}


def _elements(
    members: Members, name: str, n: int, read: Read, apart: Mapping[str, int], runs: Mapping[str, Run]
) -> _Elements | None:
    """The elements of a read in one step of the loop; None where they are not known."""
    if not read.offsets:
        return None
    follows, run, line = members.follows[name], runs[name], list[tuple[str | None, float]]()
    steps: dict[str, range] = {}
    for span in read.spans:
        if span.var is None:
            line.append((None, 0.0))
            continue
        of = follows[span.var]
        if of.var is None or of.rate != 1 or of.lo is None or of.hi is None:
            return None
        line.append((of.var, float(span.rate)))
        if span.var == run.row:
            first = run.lanes * ceil(of.hi / run.lanes)
            steps[span.var] = range(first, first + 1)
        else:
            last = ceil(of.hi)
            steps[span.var] = range(last - apart.get(span.var, 1) + 1, last + 1)
    names = list(steps)
    moves = [dict(zip(names, at, strict=True)) for at in product(*steps.values())]
    by = {tuple(0 if s.var is None else int(s.rate * at[s.var]) for s in read.spans) for at in moves}
    places = moved_offsets(read.offsets, by)
    return _Elements(name, n, tuple(line), places) if places else None
