"""Stage graph: stages without an output are left out. Parts of stages."""

from support.small_pipelines import F, pipeline, stage, total, x

from tilesmith.scheduler.analysis.stage_graph import parts, reads, stage_graph
from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, Const, Reduce, RVar, Var
from tilesmith.scheduler.ir.pipeline.pipeline import Update
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32


def test_dead_stages_are_left_out() -> None:
    stages = [stage("dead", "x", F("input")(x)), stage("out", "x", total([F("input")(x), F("input")(x + 1)]))]
    graph = stage_graph(pipeline("p", stages, {"out": (9,)}, {"input": "x"}))
    assert graph.stages == ("out",)
    assert graph.producers == {"out": ()}


def test_parts_are_those_of_values_and_updates_by_their_class() -> None:
    image, at = F("input"), Var("r")
    domain = (RVar("r", Const(0, INT32), Const(4, INT32)),)
    update = Update(domain, None, (at,), (Access("out", (at,), 0, FLOAT32),))
    of = stage("out", "x", total([image(x), image(x + 1)]), (update,))
    assert [a.name for a in parts(of, Access)] == ["input", "input", "out"]
    assert [e.op for e in parts(of, Binary)] == ["+", "+"]
    assert not parts(of, Reduce)
    assert reads(of) == {"input", "out"}
    assert parts(of, Access) is parts(of, Access)  # it is walked once
