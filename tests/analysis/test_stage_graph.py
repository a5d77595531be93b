"""Stage graph: stages without an output are left out."""

from support.small_pipelines import F, pipeline, stage, total, x

from tilesmith.scheduler.analysis.stage_graph import stage_graph


def test_dead_stages_are_left_out() -> None:
    stages = [stage("dead", "x", F("input")(x)), stage("out", "x", total([F("input")(x), F("input")(x + 1)]))]
    graph = stage_graph(pipeline("p", stages, {"out": (9,)}, {"input": "x"}))
    assert graph.stages == ("out",)
    assert graph.producers == {"out": ()}
