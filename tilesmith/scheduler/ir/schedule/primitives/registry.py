"""The primitives that there are, in the order of documents."""

from __future__ import annotations

from typing import Any

from tilesmith.scheduler.ir.schedule.primitives.fold_storage import FoldStorage
from tilesmith.scheduler.ir.schedule.primitives.fuse_outputs import FuseOutputs
from tilesmith.scheduler.ir.schedule.primitives.loop_order import LoopOrder, MemberOrder
from tilesmith.scheduler.ir.schedule.primitives.pack_operand import PackOperand
from tilesmith.scheduler.ir.schedule.primitives.parallel import Parallel
from tilesmith.scheduler.ir.schedule.primitives.placement import ComputeAt, StoreAt
from tilesmith.scheduler.ir.schedule.primitives.prefetch import Prefetch
from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive
from tilesmith.scheduler.ir.schedule.primitives.registers import StoreIn
from tilesmith.scheduler.ir.schedule.primitives.rfactor import RFactor
from tilesmith.scheduler.ir.schedule.primitives.split_separable import SplitSeparable
from tilesmith.scheduler.ir.schedule.primitives.stream import Stream
from tilesmith.scheduler.ir.schedule.primitives.tile import TileDims
from tilesmith.scheduler.ir.schedule.primitives.unroll import Unroll
from tilesmith.scheduler.ir.schedule.primitives.update_loops import LoopsOfUpdates
from tilesmith.scheduler.ir.schedule.primitives.vectorize import Vectorize
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule

_PRIMITIVES: dict[str, Primitive[Any]] = {}


def register(primitive: Primitive[Any]) -> None:
    """Adds a primitive. Raises ValueError if another one has its key."""
    if primitive.key in {*_PRIMITIVES, *(f for r in (Schedule, Group, Placement) for f in r.__dataclass_fields__)}:
        raise ValueError(f"there is a primitive '{primitive.key}' already, or a field of that name: choose another key")
    _PRIMITIVES[primitive.key] = primitive


def unregister(key: str) -> None:
    """Takes away a primitive that was registered."""
    del _PRIMITIVES[key]


def primitives() -> tuple[Primitive[Any], ...]:
    """All of them."""
    return tuple(_PRIMITIVES.values())


def primitives_of(record: type[Schedule] | type[Group] | type[Placement]) -> tuple[Primitive[Any], ...]:
    """The primitives that records of a type have."""
    return tuple(p for p in _PRIMITIVES.values() if record in p.records)


def fixable() -> tuple[Primitive[Any], ...]:
    """The primitives that a caller may fix."""
    return tuple(p for p in _PRIMITIVES.values() if p.fixed_form is not None)


_OF_SCHEDULES = (RFactor(), SplitSeparable(), FuseOutputs(), PackOperand())
_OF_PLACEMENTS = (ComputeAt(), StoreAt(), FoldStorage(), StoreIn(), MemberOrder())
_OF_GROUPS = (LoopOrder(), TileDims(), Parallel(), Vectorize(), Unroll(), LoopsOfUpdates(), Stream(), Prefetch())
_PRIMITIVES.update((p.key, p) for p in (*_OF_SCHEDULES, *_OF_PLACEMENTS, *_OF_GROUPS))
