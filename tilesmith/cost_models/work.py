"""Work of stages for models of time, beside their points: execution modes, and transfers between memory levels.

Counted for one way to run a group: vectors, loops, registers. Amounts are of all tiles together, and of all threads.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from tilesmith.cost_models.amounts import Amount
from tilesmith.cost_models.operations import Operations

Way = Literal[
    "aligned",
    "unaligned",
    "uniform",
    "strided",
    "gathered",
    "alone",
    "transposed",
    "pairs",
    "pixels",
    "table",
    "shuffled",
    "shared",
    "reversed",
    "near",
    "clamped",
    "turned",
]
"""The way a vector of elements is read or written: at a multiple of its size; at any place; the same element for all
lanes; every second one or so; each at a place of its own; each at a place in a row of its own, loaded alone; each in a
row of its own, in blocks that are transposed; two neighbours of a place at once, or all channels of it; in a table of
bytes that vectors look up all at once; from registers, by a permutation; each the element of several lanes side by
side, by a load of fewer and a permutation; in a row from its end to its begin; at places that lie near each other, as
each vector asks; in a row beyond whose ends lanes have the nearest element; in one that turns back there, or begins
anew."""


MOST_PIECES = 16
"""Pieces of a table, of as many elements as an instruction looks up in, that are looked up for all lanes, at most."""


class Transfer(NamedTuple):
    """Elements of `bytes` that one point reads or writes in some way, so many `times`; of `strided` ones every
    `stride`th, or the `whole` of each stride one by one; `shared` ones are each of `stride` lanes; `pixels` have
    `stride` channels; a `table` has `stride` parts, each of as many elements as the longest look-up has; of
    `transposed` ones `stride` of each row come at once; `uniform` ones are of `stride` rows of memory, one for each of
    the points that are computed together; `shuffled` ones are `stride` of the same two registers."""

    way: Way
    bytes: int
    times: float
    stride: int = 1
    whole: bool = False


class Chain(NamedTuple):
    """Cycles of the operations that wait for one another: of the `whole` from loads on, and of those `after` the last
    part that is computed in the same step has come."""

    whole: float
    after: float


class Sums(NamedTuple):
    """Sums of a long reduction in registers: so many `beside` each other, of so many `points`, of elements of `size`
    bytes, to each of which so many `terms` are added."""

    beside: float
    points: int
    size: int
    terms: float


class Reuse(NamedTuple):
    """Values that are used more than once: `live` ones at the same time, of elements of `size` bytes. Were none in a
    register, each point would load `loads` of them once more, and store `stores`. Those that are `uniform` are the same
    in all lanes, and take one register each, however many a vector takes."""

    size: int
    live: float
    loads: float
    stores: float
    uniform: bool = False


class Addresses(NamedTuple):
    """Addresses of the `rows` of memory that points side by side go along in one step; each of the points comes to one
    of them so many `times`."""

    rows: float
    times: float


class Before(NamedTuple):
    """The operations, loads and stores of the values of a point before updates, which are computed by so many lanes."""

    lanes: int
    operations: tuple[tuple[str, Operations], ...]
    loads: tuple[Transfer, ...]
    stores: tuple[Transfer, ...]


class Edges(NamedTuple):
    """The edges of the rows of a stage, which whole vectors without clamps leave: the operations and loads of a point
    there. They are this `share` of its points, and vectors take so many `steps` for them, as a share of all, where they
    are not computed one by one; or in the loop of the output, where edges are no loop of their own, so many a row."""

    share: float
    steps: float
    operations: tuple[tuple[str, Operations], ...]
    loads: tuple[Transfer, ...]


class Pass(NamedTuple):
    """An update that runs over its stage as a whole, after its values and the updates before it: its loop over vectors
    begins `rows` times, with so many `steps` of `lanes` iterations in all, and `singles` run alone, which have the
    `operations` of one each. It loads `loads` elements of `size` bytes, of `gathered` ones each lane at a place of its
    own, and by `transfers` those of other stages that are not among them, and stores one; vectors run `across` rows, so
    many bytes `apart`, and are `transposed` so often, as they come from memory and as they go there; or along a
    recurrence, whose lanes are `joined` by these operations time and again. A step waits for the one before it so many
    cycles, `chain`, and takes so many from its loads to its value, `latency`. Of the stage it loads and stores so many
    `bytes`, of which `working` are touched before it comes to another tile. The first one may be `instead` of values,
    and what comes and goes for these hides behind it."""

    lanes: int
    operations: tuple[tuple[str, Operations], ...]
    loads: float
    gathered: float
    size: int
    across: bool
    transposed: int
    chain: float
    rows: Amount
    steps: Amount
    singles: Amount
    bytes: Amount
    working: Amount
    apart: float
    transfers: tuple[Transfer, ...] = ()
    latency: float = 0.0
    joined: tuple[tuple[str, Operations], ...] = ()
    instead: bool = False


class Column(NamedTuple):
    """Rows of an image, so many bytes `apart`, of each of which the innermost loop of a stage touches an element before
    it touches their next ones; `touched`: elements in all. Those that are `padded` share no sets of caches."""

    apart: Amount
    rows: Amount
    touched: Amount
    padded: bool = False


class SideBySide(NamedTuple):
    """Rows of memory that a step touches at once, by the bytes from the first of their image: those that it `loads` and
    those that it `stores`, of values whose elements have so many bytes: images of their own."""

    loads: tuple[int, ...]
    stores: tuple[int, ...]
    sizes: tuple[int, ...]


class Work(NamedTuple):
    """The work of one stage, what is inline in it included.

    Its innermost loop is begun `rows` times and takes `steps` steps of `lanes` points; `singles` are points that are
    computed one by one: rows shorter than a vector, edges. `operations` are those of a point by element type, `loads`
    and `stores` what it transfers between registers and the first level.

    Layer conditions: states from the innermost out. What is touched in one iteration of a loop around state j are
    `working[j]` bytes, and beyond these those of `GroupWork.working` from `level` on; if they stay in a cache, all
    that comes into it is `loaded[j + 1]` bytes, and `stored[j + 1]` leave it; `loaded[0]`, `stored[0]` if not even
    the first do; no state moves more than the one before it. The last state is the whole group. What comes from
    places that data says is in `looked_up` instead, if there is any: of those states that are the group's, after one
    where not even the `table` stays, what a point may look up.

    Rows of memory are walked for `run_bytes` in order before another begins; the next iteration of the loop at level
    `next`, if there is one, goes on with them. `streamed_bytes` are written past all caches, and no part of `stored`;
    the ends of `torn` of their rows are written by ordinary stores to lines that went past the caches before, and loads
    wait until `awaited_bytes` of them have left the core. `held`
    in registers from one step to the next are vectors that it reads there, so many with elements of so many bytes.
    `streams` are rows of memory that it walks side by side, columns aside; `walked` those of them outside of the group
    that none of its rows before has read, or that it stores by way of the caches, where no loop inside of its row goes
    through them; in one step it asks
    for so many lines ahead, `asked`; it walks across the rows of `columns`. Of what it loads another stage of the group
    has loaded so
    many bytes before, `again`, and so many bytes are touched in between; None if there are none. A point takes the
    cycles of `chain` from its loads to its value, all else aside, and `needs` registers meanwhile, beside what is
    `reused`; those of long reductions have `sums` in registers. Several rows that it stores at once outside of the
    group are `together` with those that it loads. The rows that points side by side go along have `addresses`. Where
    updates run by other lanes than what comes `before` them, this is apart from the other operations, loads and stores.
    Or all of these are of its values, and `passes` are its updates; `rows`, `steps` and `singles` are then of the
    values that no update is computed instead of. Where whole vectors without clamps leave a part of its rows, other
    code computes these `edges`.

    `in_output`: computed in the loop of the group's output, vector by vector (the output itself is), so that the work
    of all of these overlaps.
    """

    in_output: bool
    lanes: int
    operations: tuple[tuple[str, Operations], ...]
    loads: tuple[Transfer, ...]
    stores: tuple[Transfer, ...]
    rows: Amount
    steps: Amount
    singles: Amount
    working: tuple[Amount, ...]
    loaded: tuple[Amount, ...]
    stored: tuple[Amount, ...]
    run_bytes: Amount
    next: int | None = None
    streamed_bytes: float = 0.0
    torn: Amount = 0.0
    awaited_bytes: float = 0.0
    held: tuple[tuple[int, float], ...] = ()
    streams: Amount = 1.0
    level: int = 0
    looked_up: tuple[Amount, ...] = ()
    table: Amount = 0.0
    again: tuple[Amount, Amount] | None = None
    asked: float = 0.0
    columns: tuple[Column, ...] = ()
    chain: Chain = Chain(0.0, 0.0)
    before: Before | None = None
    passes: tuple[Pass, ...] = ()
    together: SideBySide | None = None
    needs: float = 0.0
    walked: float = 0.0
    sums: Sums | None = None
    reused: tuple[Reuse, ...] = ()
    edges: Edges | None = None
    addresses: Addresses | None = None


class GroupWork(NamedTuple):
    """The work of a group as a whole. `parallel` are the iterations of the loop that threads share (1: none is shared),
    of a last one that is shorter its part; `tiles` those of all inter-tile loops. `circulating_bytes` are touched
    between two uses of what comes from outside of the group, if nothing of it is used before: at least all inputs and
    outputs of the pipeline. `prefetch`: how many bytes ahead along a row the group's loops ask for what they read from
    outside; 0 if they do not. `working`: what all stages inside together touch in one iteration of the loop at each
    level, and in the end in all; 0 at levels that are no state of any stage. `past`: the share of what it reads from
    outside that others have written past the caches. `chain`: cycles from the first load of a step to its last value
    through all stages of the loop that the output's is shared by; 0 if it is not."""

    parallel: Amount
    tiles: Amount
    circulating_bytes: float
    prefetch: int = 0
    working: tuple[Amount, ...] = ()
    past: float = 0.0
    chain: float = 0.0
