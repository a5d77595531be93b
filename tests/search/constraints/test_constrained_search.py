"""The method default around fixed decisions: they are kept, the rest is legal, and what cannot be is named."""

from dataclasses import replace
from math import inf

import pytest
from support.machines import machine
from support.small_pipelines import blur, harris

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.errors import FixedContradiction
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Schedule
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search import SearchOptions, SearchResult, autoschedule
from tilesmith.scheduler.search.constraints.constrained_search import bounded
from tilesmith.scheduler.search.constraints.document import load
from tilesmith.scheduler.search.ecm import moves
from tilesmith.scheduler.search.params import PARAMS


def _decided(of: Pipeline, document: object, top: int = 1) -> SearchResult:
    fixed = bounded(load(document, of), gather(normalise(of)))
    found = autoschedule(of, machine(), SearchOptions("default", top=top, fixed=fixed))
    for c in found.candidates:
        check(rewrite(of, c.schedule))
        assert fixed.admits(c.schedule) is None
    return found


def _default(of: Pipeline) -> Schedule:
    return autoschedule(of, machine(), SearchOptions("default")).schedule


@pytest.mark.parametrize(
    "document",
    [
        {"blur_x": {"compute": "inline"}},
        {"blur_x": {"compute": "root"}},
        {"blur_x": {"compute": "y.inner", "store": "y.outer"}},
        {"blur_x": {"compute": "x.outer", "store": "x.outer", "vector": 4}},
        {"blur_x": {"storage": "registers"}},
        {"blur_x": {"storage": "memory", "order": ["y", "x"]}},
        {"blur_y": {"tiles": {"x": 256, "y": 32}, "parallel": "x.outer"}},
        {"blur_y": {"tiles": {"x": 100_000}}},
        {"blur_y": {"loops": ["y.inner", "x.inner"]}},
        {"blur_y": {"parallel": None, "vector": None}},
        {"blur_y": {"tiles": {"y": 8}, "unroll": ["y"]}, "blur_x": {"compute": "x.outer"}},
        {"blur_y": {"vector": 16}, "blur_x": {"vector": 8}},
        {"blur_y": {"stream": True, "prefetch": 2048}},
        {"blur_y": {"stream": False, "prefetch": 0}},
    ],
    ids=str,
)
def test_what_is_fixed_is_kept(document: dict[str, dict[str, object]]) -> None:
    found = _decided(blur(), document, top=3)
    told = [d for d in found.trace.decisions if d.kind == "fixed"]
    assert [d.subject for d in told] == sorted(document)


@pytest.mark.parametrize("of", [harris(), pipelines.load("bilateral_grid")], ids=lambda p: p.name)
def test_every_decision_of_a_schedule_can_be_fixed(of: Pipeline) -> None:
    known = {s.name for s in of.stages}
    for group in _default(of).groups:
        if group.output in known:
            tiles = {t.dim: t.size for t in group.tiles}
            _decided(of, {group.output: {"tiles": tiles, "loops": list(group.loops), "parallel": group.parallel}})
        for p in group.placements:
            if p.stage in known:
                _decided(of, {p.stage: {"compute": p.compute} if p.compute == INLINE else {"compute": "root"}})


def test_tiles_of_another_size_are_no_rows_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was unrolled for its few rows is a loop again, around the vectors."""
    monkeypatch.setattr(moves, "PARAMS", replace(PARAMS, rows_pay=inf))
    of = pipelines.load("machado_blur")
    assert ("y",) in [c.schedule.groups[0].unroll for c in _decided(of, {}, top=4).candidates]
    group = _decided(of, {"blur_y": {"tiles": {"y": 512}}}).schedule.groups[0]
    assert (group.unroll, group.loops[:2]) == ((), ("x.inner", "y.inner"))
    assert group.vector is not None
    rows = _decided(of, {"blur_y": {"tiles": {"y": 4}, "unroll": ["y"]}}).schedule.groups[0]
    assert (rows.unroll, rows.loops[:2]) == (("y",), ("y.inner", "x.inner"))
    assert rows.vector is not None


def test_one_group_or_another() -> None:
    together = _decided(harris(), {"gray": {"compute": "y.inner"}}).schedule
    assert [g.output for g in together.groups] == ["harris"]
    apart = _decided(harris(), {"gray": {"compute": "root"}, "Sxx": {"compute": "inline"}}).schedule
    assert "gray" in [g.output for g in apart.groups]


@pytest.mark.parametrize(
    ("document", "pointers", "message"),
    [
        ({"harris": {"unroll": ["x"]}, "gray": {"vector": 8}}, ["/harris"], "more than 32 iterations"),
        (
            {"Ix": {"storage": "registers"}, "harris": {"vector": 1}},
            ["/Ix", "/harris"],
            "no legal group of 'harris' has what is fixed of 'Ix'",
        ),
    ],
    ids=["alone", "together"],
)
def test_what_no_schedule_has_is_named(document: object, pointers: list[str], message: str) -> None:
    of = harris()
    options = SearchOptions("default", fixed=load(document, of))
    with pytest.raises(FixedContradiction, match=message) as error:
        autoschedule(of, machine(), options)
    assert [p.pointer for p in error.value.problems] == pointers
