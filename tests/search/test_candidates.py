"""The figures by which candidates are compared."""

from dataclasses import replace

import pytest
from support.machines import machine
from support.methods import PAPER
from support.small_pipelines import F, blur, pipeline, stage, x, y

from tilesmith.cost_models.interface import Breakdown, StageCost, Term, combined
from tilesmith.cost_models.taco2019 import Taco2019
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search import Candidate, SearchOptions, autoschedule, pareto, root_schedule
from tilesmith.scheduler.search.candidates import candidate
from tilesmith.scheduler.search.vectorize_and_parallelize import root_counts


def _made(cost: float, memory: int, recompute: float, parallelism: float) -> Candidate:
    predicted = Breakdown("m", "ms", (StageCost("a", "a", (Term("t", cost),)),))
    return Candidate(rewrite(blur(), Schedule("blur", "m", ())), predicted, memory, recompute, parallelism)


def test_the_one_candidate_of_taco2019_is_its_schedule() -> None:
    found = autoschedule(blur(), machine(), SearchOptions("taco2019", top=5))
    assert [c.schedule for c in found.candidates] == [found.schedule]
    assert found.candidates[0].predicted is found.predicted


@pytest.mark.parametrize("name", ["blur", "harris", "unsharp"])
def test_there_are_as_many_as_are_asked_for(name: str) -> None:
    """Candidates are as many even where few shapes are priced, by other sizes of tiles. The first is what it is when
    nobody asks for more: the schedule of the paper too, which is left only for one that costs clearly less."""
    document = pipelines.load(name)
    one = autoschedule(document, machine(), SearchOptions())
    many = autoschedule(document, machine(), SearchOptions(top=10))
    schedules = [c.schedule for c in many.candidates]
    assert len(set(schedules)) == 10
    assert schedules[0] == one.schedule
    _, *costs = [float(c.predicted.total) for c in many.candidates]
    assert costs == sorted(costs)


def test_figures_of_one_group_follow_from_its_tiles() -> None:
    found = autoschedule(blur(), machine(), PAPER)
    (group,) = found.schedule.groups
    (placement,) = group.placements
    tile = {t.dim: t.size for t in group.tiles}
    of = found.candidates[0]
    width, height = blur().estimate("blur_y")[0][1], blur().estimate("blur_y")[1][1]
    rows = height if tile["y"] is None else tile["y"]
    tiles = -(-height // rows)
    assert placement.fold
    assert tile["x"] is None
    assert of.parallelism == tiles
    assert of.memory_bytes == machine().threads * 3 * width * 4
    assert 1 < of.recompute < 1.1


def test_outputs_of_groups_are_held_until_they_are_read() -> None:
    """a is read by b and c, b by c; each is an image at root, the caller has c's."""
    a, b, out = F("a"), F("b"), {"c": (64, 64)}
    image = F("input")
    stages = [
        stage("a", "xy", image(x, y) * 2.0 + 1.0),
        stage("b", "xy", a(x, y) * 3.0),
        stage("c", "xy", a(x, y) + b(x, y)),
    ]
    facts, model = gather(normalise(pipeline("held", stages, out))), Taco2019()
    schedule = root_schedule(facts.pipeline, machine())
    counts = [root_counts(facts, g, machine()) for g in schedule.groups]
    of = candidate(
        facts, rewrite(facts.pipeline, schedule), counts, combined(model.price(c, machine()) for c in counts)
    )
    assert of.memory_bytes == 2 * 64 * 64 * 4
    assert (of.recompute, of.parallelism) == (1, 64)


@pytest.mark.parametrize("name", pipelines.names())
def test_figures_of_shipped_pipelines_are_possible(name: str) -> None:
    of = autoschedule(pipelines.load(name), machine(), PAPER).candidates[0]
    assert of.recompute > 0.9  # below 1 where a stage is inline and not all of it is read
    assert of.parallelism >= 1
    assert of.memory_bytes >= 0


def test_pareto_keeps_what_is_nowhere_worse() -> None:
    fast, small, worse = _made(1, 900, 1.0, 8), _made(2, 100, 1.0, 8), _made(3, 100, 1.2, 8)
    wide = replace(worse, parallelism=64.0)
    assert pareto((fast, small, worse, wide)) == (True, True, False, True)
    assert pareto((fast, replace(fast))) == (True, True)
    assert pareto(()) == ()


@pytest.mark.parametrize(("extent", "rows", "lanes"), [(8, 64, 8), (12, 64, 8), (5, 64, 4), (8, 4, None)])
def test_many_short_rows_have_the_longest_vector_that_they_fill_and_few_have_none(
    extent: int, rows: int, lanes: int | None
) -> None:
    output = stage("short", "xy", F("input")(x, y) * 2)
    of = pipeline("rows", [output], {"short": (extent, rows * 8)})
    (group,) = root_schedule(of, machine()).groups
    assert (None if group.vector is None else group.vector.lanes) == lanes
