"""Figures of stages: closed forms for a blur, and what holds of every shipped pipeline."""

import pytest

from tilesmith.cost_models.ecm import Ecm
from tilesmith.platforms import load
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.features.schedule_features import predict
from tilesmith.scheduler.features.stage_figures import figures_of
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import SearchOptions, autoschedule

MACHINE = load("i7-6700")


def blur(compute: str) -> Schedule:
    loops = ("x.inner", "y.inner", "x.outer", "y.outer")
    inside = Placement("blur_x", compute, compute, order=("x", "y") if compute != "inline" else (), fold=False)
    tiles = (Tile("x", None), Tile("y", 64))
    return Schedule("blur", "hand", (Group("blur_y", loops, tiles, "y.outer", Vector("x", 8), (), (inside,)),))


def test_a_tile_computes_the_rows_that_its_window_reaches_beyond_it_again() -> None:
    found = figures_of(rewrite(pipelines.load("blur"), blur("x.outer")), MACHINE)
    stages = {s.name: s for s in found.stages}
    rows = dict(stages["blur_y"].extents)["y"]
    (place,) = stages["blur_x"].places
    tiles = -(-rows // 64)
    assert place.recompute == pytest.approx((rows + 2 * tiles) / (rows + 2))
    assert place.bytes == 66 * dict(stages["blur_x"].extents)["x"] * stages["blur_x"].bytes // prod(stages["blur_x"])
    assert [(e.producer, e.consumer, dict(e.overlap)) for e in found.edges] == [
        ("input", "blur_x", {"x": 2}),
        ("blur_x", "blur_y", {"y": 2}),
    ]


def prod(stage: object) -> int:
    points = 1
    for _, extent in stage.extents:  # type: ignore[attr-defined]
        points *= extent
    return points


def test_a_stage_that_is_inline_has_no_buffer_and_is_computed_at_each_read() -> None:
    found = figures_of(rewrite(pipelines.load("blur"), blur("inline")), MACHINE)
    (place,) = next(s for s in found.stages if s.name == "blur_x").places
    assert (place.compute, place.bytes, place.traffic) == ("inline", 0, ())
    assert place.recompute == pytest.approx(3, rel=0.01)


@pytest.mark.parametrize("name", ["harris", "camera_pipe", "bilateral_grid"])
@pytest.mark.parametrize("machine", ["i7-6700", "nvidia-a100"])
def test_figures_are_those_of_the_model(name: str, machine: str) -> None:
    platform = load(machine)
    plan = autoschedule(pipelines.load(name), platform, SearchOptions("default")).plan
    found = figures_of(plan, platform)
    total = sum(g.microseconds for g in found.groups)
    assert total == pytest.approx(float(predict(plan, platform, Ecm()).total))
    names = [s.name for s in found.stages]
    for edge in found.edges:
        assert edge.producer in names
        assert edge.consumer in names
    for group in found.groups:
        assert len(group.traffic) == len(found.levels) == len(found.limits.bandwidths) - 1
        assert list(group.traffic) == sorted(
            group.traffic, reverse=True
        )  # what an inner cache keeps passes no outer one
    document = found.to_document()
    assert {s["role"] for s in document["stages"]} == {"input", "stage", "output"}
    assert document["limits"]["gigabytes_per_s"]["memory"] == platform.ecm_parameters.memory_gb_s
