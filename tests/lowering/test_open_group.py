"""Open groups: what a computation reads, through the stages that are inlined in it."""

from __future__ import annotations

from collections.abc import Mapping

from support.builders import builder
from support.lowered import buffer, group, pipeline

from tilesmith.scheduler.analysis.bounds_inference import Box
from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.ir.pipeline.types import FLOAT32
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Placement
from tilesmith.scheduler.lowering.group_plan import GroupPlan
from tilesmith.scheduler.lowering.open_group import OpenGroup

P = pipeline("b(x) + a(x)", ("a", "f(x) * 2"), ("b", "a(x) + c(x)"), ("c", "f(x) + 1"))


class Opened(OpenGroup):
    """A group in which nothing is computed."""

    __slots__ = ()

    def compute(self, stage: Stage, p: Placement, box: Box, inlined: Mapping[str, Stage] | None = None) -> None:
        raise AssertionError(stage.name)


def opened(p: Pipeline, stored: tuple[str, ...], prefetch: int = 0) -> OpenGroup:
    """A group with memory of the stages `stored` and of the input; the others are inlined."""
    inlined = {s.name: s for s in p.stages if s.name not in (*stored, "out")}
    buffers = {(name, 0): buffer(name, FLOAT32) for name in ("f", "unread", *stored)}
    placements = [Placement(name, INLINE, INLINE) for name in inlined]
    out = p.stage("out")
    root = {s.name: ((const(0), const(63)),) for s in p.stages}
    plan = GroupPlan(group("x.inner", placements, prefetch=prefetch), out, p.stages[:-1], root, lambda *_: (0, 64))
    return Opened(builder(), inlined, buffers, plan, ())


def test_memory_is_found_through_all_that_is_inlined() -> None:
    g = opened(P, ())
    found = g.reads([P.stage("out")], g.inlined)
    assert [b.stage for b in found.buffers] == ["f"]
    assert set(found.inlined) == {"a", "b", "c"}


def test_what_has_memory_is_read_and_not_looked_into() -> None:
    g = opened(P, ("b",))
    found = g.reads([P.stage("out")], g.inlined)
    assert [b.stage for b in found.buffers] == ["f", "b"]
    assert found.inlined == ("a",)


def test_a_computation_reads_no_more_than_its_stage() -> None:
    g = opened(P, ("a", "b"))
    assert [b.stage for b in g.reads([P.stage("a")], g.inlined).buffers] == ["f"]
    found = g.reads([P.stage("b")], g.inlined)
    assert [b.stage for b in found.buffers] == ["f", "a"]
    assert found.inlined == ("c",)


def test_prefetches_are_those_of_the_group() -> None:
    g = opened(P, (), prefetch=512)
    assert g.reads([P.stage("out")], g.inlined).prefetch == 512
    assert opened(P, ()).reads([P.stage("out")], {}).ahead == ()
