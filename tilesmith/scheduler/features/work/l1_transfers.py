"""L1 transfers of a stage: loads and stores of a point, and how vectors are put together from memory and registers."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf, prod
from types import MappingProxyType

from tilesmith.cost_models.work import Transfer
from tilesmith.scheduler.analysis.access_functions import Span
from tilesmith.scheduler.analysis.flat_rows import FURTHEST_PIXELS
from tilesmith.scheduler.analysis.neighbour_sums import WIDEST_BITS
from tilesmith.scheduler.features.groups.execution_mode import Run
from tilesmith.scheduler.features.groups.fusion_group import Members
from tilesmith.scheduler.features.groups.group_counts import SMALL_EXTENT
from tilesmith.scheduler.features.pipeline.interleaved_channels import fours
from tilesmith.scheduler.features.pipeline.lookup_tables import FEWEST, MOST_PARTS
from tilesmith.scheduler.features.pipeline.pipeline_features import StageFacts
from tilesmith.scheduler.features.pipeline.reads import Beside, Read, box_points, each_way
from tilesmith.scheduler.ir.loop.ops import LOOKUP_PART, PAIRED_BITS, PAIRED_LANES


def loads(
    members: Members,
    read: Read,
    run: Run,
    registers: frozenset[str],
    block: int,
    flat: bool = False,
    grouped: bool = False,
    together: Mapping[str, int] = MappingProxyType({}),
) -> tuple[Transfer, ...]:
    """The loads of a stage of the group from one producer; `registers` are the stages that have no memory. What it
    reads across rows is transposed for so many points at a time as a `block` has. Channels of `flat` rows are
    neighbours like any others. What is summed, `grouped`, is loaded in the order of memory. So many points along the
    dims `together` are computed at once."""
    producer = members.facts.stages[read.producer]
    if read.several:  # each goes its own way
        return tuple(
            t for way in each_way((read,)) for t in loads(members, way, run, registers, block, flat, grouped, together)
        )
    size, times = producer.bytes_per_point, read.executed
    if read.producer in registers:
        spans = [s for s in read.roughly if s.var == run.row and s.known and s.width]
        if not spans:
            return ()
        others = float(spans[0].width)
        moved = times * others / (1 + others)
        return (Transfer("shuffled", size, moved, max(1, int(min(others, moved) / 2))),)  # half to either side
    spans_of = dict(zip(producer.dims, read.roughly, strict=True))
    parts = _table(producer, read, run)
    if parts:
        return (Transfer("table", size, times, parts),)
    group = next((s.rate for s in read.roughly if s.var == run.row), 0) if grouped and run.lanes > 1 else 0
    if group:
        beside = max(1, min(int(abs(float(group))), WIDEST_BITS // 8 // size))  # of each point, as wide as their sum
        return (Transfer("unaligned", beside * size, times / beside),)
    along = read.beside if read.beside is not None and read.beside[:2] == (run.row, producer.storage[0]) else None
    if along is not None and along.period > 2 * run.lanes:  # of shorter ones the spans say as much
        return _beside(along, size, times, run.lanes)
    told = run.row in read.data_of | read.floats_of  # rows of pixels run along another dim than memory
    apart = told or read.is_unknown_along(run.row)
    if read.looked_up or read.computed or apart or (producer.storage and not spans_of[producer.storage[0]].known):
        if _is_pixels(members, producer):
            return (Transfer("pixels", size, times, producer.extents[-1]),)
        if _in_pairs(producer, spans_of, run):
            return (Transfer("pairs", size, times),)
        return (Transfer("alone" if _in_rows(producer, read, run) else "gathered", size, times),)
    if run.row is None or not producer.dims:
        return (Transfer("aligned", size, times),)
    if block > 1:
        return (Transfer("transposed", size, times, block),)
    moving = [d for d, s in zip(producer.dims, read.roughly, strict=True) if s.var == run.row]
    spans = [s for s in read.roughly if s.var == run.row]
    slow = (abs(s.rate.numerator) == 1 and s.rate.denominator % run.lanes == 0 for s in spans)
    if not moving or (run.lanes > 1 and all(slow)):  # the same in all lanes
        return (Transfer("uniform", size, times, _rows(producer, read, together)),)
    for order in read.orders:
        if order.dim == run.row and run.lanes % order.period and spans[0].rate >= 1:  # another one in each vector
            near = order.in_order and float(spans[0].width) + run.lanes * (float(spans[0].rate) - 1) <= run.lanes
            return (Transfer("near" if near else "gathered", size, times),)
    before = producer.storage[: producer.storage.index(moving[0])]
    distance = 1 if flat else prod(producer.extent(d) for d in before)
    dense = 2 * times >= box_points(read.roughly)  # rows side by side share some of what one of them reads
    return _along(distance, spans[0], size, times, run.lanes, dense)


def _rows(producer: StageFacts, read: Read, together: Mapping[str, int]) -> int:
    """Rows of memory that points of the dims `together` read, each another one."""
    rows = 1
    for dim, span in zip(producer.dims, read.roughly, strict=True):
        if dim != producer.storage[0] and span.known and span.rate and span.var is not None:
            rows *= together.get(span.var, 1)
    return rows


def _beside(beside: Beside, size: int, times: float, lanes: int) -> tuple[Transfer, ...]:
    """Elements that neighbours read, side by side or each at a place of its own: as a rule near each other, but for
    those vectors in which they begin anew."""
    if abs(beside.step) > 1:
        return (Transfer("gathered", size, times),)
    if isinf(beside.period):
        return (Transfer("unaligned", size, times),)
    anew = min(1.0, lanes / beside.period)
    return (Transfer("near", size, times * (1 - anew)), Transfer("gathered", size, times * anew))


def _in_pairs(producer: StageFacts, spans_of: Mapping[str, Span], run: Run) -> bool:
    """True if of each place that is looked up two neighbours in memory are read, which are one load."""
    row = spans_of[producer.storage[0]]
    return (
        producer.bytes_per_point * 8 == PAIRED_BITS and run.lanes >= PAIRED_LANES and row.known and row.extent(1) == 2
    )


def _in_rows(producer: StageFacts, read: Read, run: Run) -> bool:
    """True if the row of each lane's place and where in it both differ from lane to lane."""
    told = {d for d, by in read.told if by == run.row}
    told |= {d for d, span in enumerate(read.roughly) if span.var == run.row}
    return sum(producer.extents[d] > 1 for d in told) > 1


def _is_pixels(members: Members, producer: StageFacts) -> bool:
    """True if all channels of a place are one load, as those of outputs of other groups are."""
    return not members.is_local(producer.name) and producer.name in fours(members.facts)


def _table(producer: StageFacts, read: Read, run: Run) -> int:
    """Number of parts of a table of bytes in which data tells the place and vectors look up all at once; else 0."""
    told = read.looked_up or run.row in read.data_of
    if not (told and read.bounded and producer.bytes_per_point == 1 and run.lanes >= FEWEST):
        return 0
    if not producer.storage:
        return 0
    parts = -(-producer.extent(producer.storage[0]) // LOOKUP_PART)
    others = (s for d, s in zip(producer.dims, read.roughly, strict=True) if d != producer.storage[0])
    return parts if parts <= MOST_PARTS and all(s.var != run.row for s in others) else 0


def _along(apart: int, span: Span, size: int, times: float, lanes: int, dense: bool) -> tuple[Transfer, ...]:
    """Elements so far `apart` in a producer that follow the row of the reader by `span`, `dense` ones without gaps."""
    rate = abs(float(span.rate))
    varying = rate < 1 and lanes * rate % 1 != 0  # lanes that share an element are not the same ones in each vector
    scattered = apart > 1 and rate > FURTHEST_PIXELS
    if apart > SMALL_EXTENT or rate * apart > SMALL_EXTENT or varying or scattered:
        return (Transfer("gathered", size, times),)
    if apart > 1 or rate > 1:
        whole = dense and apart == 1 and 1 + float(span.width) >= rate
        return (Transfer("strided", size, times, int(max(1, rate) * apart), whole),)
    if rate < 1:
        return (Transfer("shared", size, times, int(1 / rate)),)
    if span.rate < 0:
        return (Transfer("reversed", size, times),)
    places = 1 + float(span.width)
    aligned = times / places
    found = (Transfer("aligned", size, aligned),)
    return found if places <= 1 else (*found, Transfer("unaligned", size, times - aligned))


def stores(facts: StageFacts, run: Run, flat: bool = False) -> tuple[Transfer, ...]:
    """The stores of a stage, whose rows may be `flat`."""
    size = facts.bytes_per_point
    if run.row is None or not facts.storage or facts.storage[0] == run.row or flat:
        return (Transfer("aligned", size, 1.0),)
    before = facts.storage[: facts.storage.index(run.row)]
    apart = prod(facts.extent(d) for d in before)
    return (Transfer("strided", size, 1.0, apart) if apart <= SMALL_EXTENT else Transfer("gathered", size, 1.0),)
