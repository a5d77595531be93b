"""Occupancy of caches: the part of a working set that stays in each of them, and the bytes that pass it.

After the layer conditions of Treibig and Hager (PPAM 2009) and Stengel et al. (ICS 2015): between all and nothing there
is a transition here, which is a step there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from numpy import ndarray

from tilesmith.cost_models.amounts import Amount, clipped, smallest
from tilesmith.cost_models.ecm.columns import reached
from tilesmith.cost_models.ecm.machine import Machine
from tilesmith.cost_models.work import GroupWork, Work

USABLE = 0.7
"""The model's safety factor of a layer condition: the share of a cache that one working set has to itself. The rest are
other programs', and lines in its way."""
SHARP = 0.3
"""The model's width of a layer condition: a working set that is this much smaller than a cache, relative to it, stays
in it; one as much larger does not: in between, part of it does."""
_MIDDLE, _WIDTH = (1 + SHARP) / (2 * SHARP), USABLE * 2 * SHARP


class _Stays(NamedTuple):
    """Occupancy of a cache by the states of a stage, or by some of them: those of which part stays, outermost first,
    and the first of which none does. States that stay as a whole are neither."""

    partly: tuple[tuple[int, Amount], ...]
    none: int | None


NOTHING_PASSES = _Stays((), None)


def _in_cache(stays: Sequence[Amount]) -> _Stays:
    """See _Stays; `stays` is the part of each state."""
    partly = []
    for n, stay in enumerate(stays):
        if type(stay) is not float or 0.0 < stay < 1.0:
            partly.append((n, stay))
        elif stay == 0.0:  # what is around passes it, whatever stays of that
            return _Stays(tuple(partly[::-1]), n)
    return _Stays(tuple(partly[::-1]), None)


class OccupiedCache(NamedTuple):
    """One cache while a group runs, as what stays in it: the part of each of its working sets that does, as far as any
    stage has them as states, the same by the level of the first that a stage has, and the parts that do not of what
    comes from outside and of what goes there."""

    size: float
    parts: list[Amount]
    stays: Mapping[int, _Stays]
    comes: Amount
    goes: Amount


def occupied_caches(works: list[Work], group: GroupWork, m: Machine) -> list[OccupiedCache]:
    """Every cache, innermost first, while the stages `works` of a group run."""
    levels = {w.level for w in works}
    first = min(levels)
    stay = [_stays(working, m.inside) for working in group.working[first:]]
    found = []
    for n, (size, of_cache) in enumerate(zip(m.inside, m.of_all, strict=True)):
        shared = m.caches[n].shared_by_threads > 1
        goes = _replaced(group.circulating_bytes, of_cache) if shared else _gone(group.circulating_bytes, of_cache)
        parts: list[Amount] = [*(0.0,) * first, *(of[n] for of in stay)]
        stays = {level: _in_cache(parts[level:-1]) for level in levels}
        found.append(OccupiedCache(size, parts, stays, goes + group.past * (1.0 - goes), goes))
    return found


def _stays(working: Amount, sizes: tuple[float, ...]) -> list[Amount]:
    """The part of a working set that stays in each cache: a number where it is the same for all candidates."""
    if not isinstance(working, ndarray):
        return [fits(working, size) for size in sizes]
    least, most = float(working.min()), float(working.max())
    ends = [(fits(most, size), fits(least, size)) for size in sizes]
    return [a if a == b else fits(working, size) for (a, b), size in zip(ends, sizes, strict=True)]


class Passing(NamedTuple):
    """Bytes of a stage that pass each cache outwards: loaded from beyond it, stored to there, and loaded from places
    that data says."""

    loads: list[Amount]
    stores: list[Amount]
    places: list[Amount]


def passing(w: Work, caches: list[OccupiedCache], m: Machine) -> Passing:
    """The bytes of a stage that pass each of the caches."""
    loads, stores, places = [], [], []
    own = [_stays(working, m.inside) for working in w.working]
    columns = _columns(w, m) if w.columns else []
    for n, cache in enumerate(caches):
        inside, around = _in_cache([parts[n] for parts in own]) if own else NOTHING_PASSES, cache.stays[w.level]
        if w.looked_up:
            places.append(_passed(w.looked_up, _in_cache([fits(w.table, cache.size)]), around, 1) * cache.comes)
        if columns:
            crowded = [smallest(part, columns[n]) for part in (*[of[n] for of in own], *cache.parts[w.level : -1])]
            passed = _passed(w.loaded, _in_cache(crowded), NOTHING_PASSES, len(crowded)) * cache.comes
        else:
            passed = _passed(w.loaded, inside, around, len(own)) * cache.comes
        if w.again is not None:
            again, between = w.again
            passed = passed - smallest(passed, again * cache.comes) * fits(between, cache.size)
        loads.append(passed)
        stores.append(_passed(w.stored, inside, around, len(own)) * cache.goes)
    return Passing(loads, stores, places)


def through(w: Work, passing: Passing) -> tuple[Amount, ...]:
    """The bytes of a stage through each cache, both ways."""
    both = [load + store + w.streamed_bytes for load, store in zip(passing.loads, passing.stores, strict=True)]
    return tuple(map(sum, zip(both, passing.places, strict=True))) if passing.places else tuple(both)


def _columns(w: Work, m: Machine) -> list[Amount]:
    """The part of the lines of a stage's columns that stays in each cache, in which they share some of the sets."""
    found = []
    for size, cache in zip(m.inside, m.caches, strict=True):
        stays: Amount = 1.0
        for column in w.columns:
            stays = smallest(stays, fits(column.rows * cache.line_bytes, size * reached(column, cache)))
        found.append(stays)
    return found


def _passed(moved: tuple[Amount, ...], inside: _Stays, around: _Stays, states: int) -> Amount:
    """Bytes that pass a cache: of a working set that stays in it those that are moved around it, else what passes of
    its own parts. So many `states` are `inside` of the others, all but the last of which, that nothing is around, are
    `around`."""
    if type(moved[0]) is float and type(moved[-1]) is float and moved[0] == moved[-1]:
        return moved[0]  # no state moves more than the one before it
    passed = moved[-1] if around.none is None else moved[states + around.none]
    for n, stay in around.partly:
        passed = moved[states + n] + stay * (passed - moved[states + n])
    if inside.none is not None:
        passed = moved[inside.none]
    for n, stay in inside.partly:
        passed = moved[n] + stay * (passed - moved[n])
    return passed


def _replaced(circulating: float, cache: float) -> float:
    """The part of what circulates that is gone from a cache that others use, too, until it comes round again: half of
    it where it has all that is its own of the cache."""
    return min(1.0, circulating / (2 * USABLE * cache))


def _gone(circulating: float, cache: float) -> float:
    """The part of what circulates that is gone from a cache of the thread's own."""
    return 1.0 - float(fits(circulating, cache))


def fits(working: Amount, cache: Amount) -> Amount:
    """The part of a working set that stays in a cache: 1 well inside of it, 0 well beyond."""
    inside = _MIDDLE - working / (cache * _WIDTH)
    if type(inside) is float:
        return 0.0 if inside < 0.0 else 1.0 if inside > 1.0 else inside
    return clipped(inside, 0.0, 1.0)
