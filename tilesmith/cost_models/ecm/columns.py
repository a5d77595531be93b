"""Columns in caches and pages: what the walk across rows of an image costs beyond the bytes of its lines.

Lines whose addresses differ by a multiple of the bytes of a way share a set, so that rows a power of two apart reach
few sets: a column of them stays in a cache as in a smaller one. Rows of a page or more are each in another page, and
the processor finds a page at once only if it is among the entries of its TLB.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import numpy as np

from tilesmith.cost_models.amounts import Amount, chosen, largest, smallest
from tilesmith.cost_models.ecm.machine import Machine
from tilesmith.cost_models.work import Column, SideBySide, Work
from tilesmith.platforms import Cache


def reached(column: Column, cache: Cache) -> Amount:
    """The share of the sets of a cache that the lines of a column are in, at most."""
    if column.padded:
        return 1.0
    sets = max(1, cache.size_bytes // (cache.ways * cache.line_bytes))
    period, drift = _period(float(column.apart), sets, cache.line_bytes)
    return smallest(1.0, (period + column.rows * drift) / sets)


@lru_cache(maxsize=4096)
def _period(apart: float, sets: int, line: int) -> tuple[int, float]:
    """After how many rows a line is in a set again that one before is in, or next to it, and by how many sets a row
    moves on in this way."""
    way = sets * line
    rows = np.arange(1, sets + 1)
    beyond = (rows * apart + line) % way
    period = int(np.argmax(beyond < 2 * line)) + 1 if (beyond < 2 * line).any() else sets
    moved = abs(float(beyond[period - 1]) - line)
    return period, moved / line / period


def begun(column: Column, w: Work, m: Machine) -> Amount:
    """The share of the lines that a stage loads which are in another row of a column than the line before: all of them
    where it takes an element of each row by turns, few where it walks along each."""
    return smallest(1.0, column.touched * m.caches[0].line_bytes / largest(w.loaded[0], 1.0))


def translation(columns: tuple[Column, ...], m: Machine) -> Amount:
    """Time of one thread to find the pages of the elements of columns, of which more are touched by turns than the TLB
    has entries."""
    total: Amount = 0.0
    for column in columns:
        pages = column.rows * smallest(1.0, column.apart / m.core.pages.page_bytes)
        cycles: Amount = 0.0
        for level in m.core.pages.tlb:
            cycles = chosen(pages > level.entries, level.missed_cycles, cycles)
        total = total + column.touched * (cycles * m.cycle)
    return total


def lost_between_steps(rows: SideBySide, lanes: int, cache: Cache) -> float:
    """Lines of rows stored side by side that a vector of one of them finds gone from a cache, on the average of all:
    where more of the rows share a set than it has ways, those beyond are lost, whichever they are. A vector at any
    place is in two lines now and then. Images begin at the same place in a page, as large blocks of memory do."""
    sets = max(1, cache.size_bytes // (cache.ways * cache.line_bytes))
    found = Counter((at // cache.line_bytes) % sets for at in (*rows.loads, *rows.stores))
    sharing = [found[(at // cache.line_bytes) % sets] for at in rows.stores]
    lost = sum(max(0.0, 1.0 - cache.ways / n) for n in sharing) / len(sharing)
    return lost * sum(1 + (lanes - 1) * size / cache.line_bytes for size in rows.sizes)
