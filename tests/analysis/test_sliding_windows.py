"""Rows of sliding windows against a simulation of the loop, iteration by iteration, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest
from support.small_pipelines import E, F, clamp, harris, stage, total, x, y

from tilesmith.scheduler.analysis.sliding_windows import Windows, group_follows, group_spans, windows
from tilesmith.scheduler.ir.pipeline.pipeline import Stage

ITERATIONS = 30


@dataclass(frozen=True)
class Line:
    """The read f((rate * y + offset) // k), or that of a block of rows, f(y // block * block + offset)."""

    producer: str
    rate: int
    offset: int
    k: int
    block: int = 1

    def at(self, row: int) -> int:
        if self.block > 1:
            return row // self.block * self.block + self.offset
        return (self.rate * row + self.offset) // self.k

    def read(self) -> E:
        if self.block > 1:
            return F(self.producer)(x, y // self.block * self.block + self.offset)
        index = y * self.rate + self.offset
        return F(self.producer)(x, index // self.k if self.k > 1 else index)


Readers = dict[str, list[Line]]


def group_of(reads: Readers) -> tuple[Stage, list[Stage]]:
    """The output and the members of a group, in topological order."""
    stages = [stage(name, "xy", total([line.read() for line in lines])) for name, lines in reads.items()]
    return stages[-1], stages[:-1]


def planned(reads: Readers, slid: set[str], tile: int | None = None) -> Windows:
    output, members = group_of(reads)
    spans, follows = group_spans(output, members), group_follows(output, members)
    return windows(output, members, spans, follows, "y", dict.fromkeys(slid, 1), tile)


def simulated(reads: Readers, slid: set[str], first: int, warm_up: int, step: int = 1) -> dict[str, int]:
    """The most rows of each sliding stage between the oldest that is still read and the newest computed.

    An iteration computes of a sliding stage what comes after the last row of the iteration before (and is not
    older than what is read now), of the others all that is read. The iterations ahead of the first one compute
    no row of the output.
    """
    output = list(reads)[-1]
    done = {name: whole_start(reads, name, first) for name in slid}
    newest: dict[str, int] = {}
    history: dict[str, list[tuple[int, int]]] = {name: [] for name in slid}  # (oldest read, newest computed)
    for v in range(first - warm_up, first + ITERATIONS * step, step):
        box = {output: (max(v, first), v + step - 1)}
        oldest: dict[str, int] = {}
        for name in reversed(reads):
            lo, hi = box[name]
            if name in slid:
                lo, done[name] = max(done[name], lo), max(done[name], hi + 1)
                newest[name] = max(newest.get(name, hi), hi)
            for line in (line for line in reads[name] if line.producer in reads):
                a, b = line.at(lo), line.at(hi)
                low, high = box.get(line.producer, (a, b))
                box[line.producer] = (min(low, a), max(high, b))
                if lo <= hi:
                    oldest[line.producer] = min(oldest.get(line.producer, a), a)
        for name in slid & oldest.keys():
            history[name].append((oldest[name], newest[name]))
    return {
        name: max(high - min(low for low, _ in found[n:]) + 1 for n, (_, high) in enumerate(found))
        for name, found in history.items()
    }


def whole_start(reads: Readers, name: str, first: int) -> int:
    """The first row of a stage that the output's rows from `first` on need."""
    lows = {list(reads)[-1]: first}
    for reader in reversed(reads):
        for line in reads[reader]:
            if reader in lows and line.producer in reads:
                at = line.at(lows[reader])
                lows[line.producer] = min(lows.get(line.producer, at), at)
    return lows[name]


def drawn(seed: int) -> Readers:
    """Two to five stages, each reading the one before and now and then others, up, down or at the same rate."""
    r = Random(seed)
    names = [f"s{n}" for n in range(r.randint(2, 5))]
    reads: Readers = {names[0]: [Line("input", 1, 0, 1)]}
    for n, name in enumerate(names[1:], start=1):
        sources = {names[n - 1]: None, **({r.choice(names[:n]): None} if r.random() < 0.3 else {})}
        reads[name] = []
        for source in sources:
            rate, k = r.choice(((1, 1), (1, 1), (1, 1), (2, 1), (1, 2), (3, 2)))
            reads[name] += [Line(source, rate, r.randint(-3, 3), k) for _ in range(r.randint(1, 3))]
            if r.random() < 0.2:
                block = r.choice((2, 4, 6))
                reads[name] += [Line(source, 1, r.randint(-3, 3) + n * (block - 1), 1, block) for n in (0, 1)]
    return reads


@pytest.mark.parametrize("chunk", range(4))
def test_windows_hold_what_the_loop_needs(chunk: int) -> None:
    assert_held(range(chunk, 600, 4), None)


@pytest.mark.parametrize("tile", [2, 3, 4, 8])
def test_windows_along_tiles_hold_what_the_loop_needs(tile: int) -> None:
    assert_held(range(150), tile)


def assert_held(seeds: range, tile: int | None) -> None:
    """Loops that run row by row or, with a `tile`, tile by tile need no more rows than windows have, and mostly as
    many."""
    found = exact = 0
    for seed in seeds:
        reads = drawn(seed)
        members = list(reads)[:-1]
        r = Random(-seed)
        slid = {name for name in members if r.random() < 0.7}
        plan = planned(reads, slid, tile)
        assert tile is None or plan.warm_up == 0
        for first in (0, 1, 5, -7):
            needed = simulated(reads, slid, first, plan.warm_up, tile or 1)
            for name, rows in plan.rows.items():
                found += 1
                exact += needed[name] == rows
                assert needed[name] <= rows, (seed, name, first)
    assert found > 300
    assert exact > 0.6 * found, "windows are larger than they have to be"


@pytest.mark.parametrize(
    ("offsets", "rows"), [((0,), 1), ((0, 1, 2), 3), ((-1, 1), 3), ((-3, 0, 3), 7), ((0, 8), 9)], ids=str
)
def test_a_stencil_keeps_its_own_height(offsets: tuple[int, ...], rows: int) -> None:
    reads = {"a": [Line("input", 1, 0, 1)], "out": [Line("a", 1, o, 1) for o in offsets]}
    assert planned(reads, {"a"}).rows == {"a": rows}


def test_the_window_of_a_chain_is_that_of_each_reader() -> None:
    reads = {"a": [Line("input", 1, 0, 1)]}
    for name, producer in (("b", "a"), ("c", "b"), ("out", "c")):
        reads[name] = [Line(producer, 1, o, 1) for o in (-1, 0, 1)]
    assert planned(reads, {"a", "b", "c"}).rows == {"a": 3, "b": 3, "c": 3}
    assert planned(reads, {"a", "c"}).rows == {"a": 5, "c": 3}, "b is computed whole, so a's rows live longer"


def test_half_as_many_rows() -> None:
    reads = {"a": [Line("input", 1, 0, 1)], "out": [Line("a", 2, o, 1) for o in (-1, 0, 1)]}
    assert planned(reads, {"a"}).rows == {"a": 3}
    reads = {"a": [Line("input", 1, 0, 1)], "out": [Line("a", 1, o, 2) for o in (0, 1)]}
    assert planned(reads, {"a"}).rows == {"a": 2}


def test_a_reader_that_lags() -> None:
    """a is read by b, one row ahead, and by the output, which is two rows behind b's newest."""
    reads = {
        "a": [Line("input", 1, 0, 1)],
        "b": [Line("a", 1, 1, 1)],
        "out": [Line("b", 1, 2, 1), Line("b", 1, 0, 1), Line("a", 1, 0, 1)],
    }
    assert planned(reads, {"a", "b"}).rows == {"a": 4, "b": 3}


def test_what_cannot_be_followed_is_not_provable() -> None:
    """The row says the place along y, or y says it twice."""
    a, b = F("a"), F("b")
    members = [stage("a", "xy", F("input")(x, y)), stage("b", "xy", a(x, y - 1) + a(x, y + 1))]
    for read in (b(x, x), b(y, y), b(x, y * 0), b(x, y * -1), b(x, y) + b(x, y * 2)):
        output = stage("out", "xy", read)
        spans, follows = group_spans(output, members), group_follows(output, members)
        assert windows(output, members, spans, follows, "y", {"a": 1, "b": 1}).rows == {}


def test_neighbours_through_a_clamp_keep_their_window() -> None:
    a = F("a")
    members = [stage("a", "xy", F("input")(x, y))]
    output = stage("out", "xy", a(x, clamp(y - 1, 0, 9)) + a(x, clamp(y + 1, 0, 9)))
    spans, follows = group_spans(output, members), group_follows(output, members)
    assert windows(output, members, spans, follows, "y", {"a": 1}).rows == {"a": 3}


def test_harris_slides_in_three_rows() -> None:
    of = harris(64, 64)
    *members, output = of.stages
    spans, follows = group_spans(output, members), group_follows(output, members)
    slid = {"gray": 1, "Ixx": 1, "Iyy": 1, "Ixy": 1}
    assert windows(output, members, spans, follows, "y", slid).rows == dict.fromkeys(slid, 3)
