"""Forms of stages: what facts follow from, whatever the names, and facts that are the same with them and without."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.documents import pipeline_of
from tilesmith.platforms import catalog
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.separability import Window, windows
from tilesmith.scheduler.analysis.stage_form import form, share_forms
from tilesmith.scheduler.analysis.stage_graph import expressions
from tilesmith.scheduler.features.operations.dependence_chains import chain
from tilesmith.scheduler.features.operations.operation_counts import (
    element_bytes_used,
    operations_on_loads,
    typed_operations,
)
from tilesmith.scheduler.features.operations.register_needs import literals, register_need
from tilesmith.scheduler.features.pipeline import pipeline_features
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.expressions import Binary, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.search import SearchOptions, autoschedule

PLATFORM = catalog.load("i7-6700")
REPEATING = ("total_variation", "exposure_fusion", "guided_filter", "perona_malik")


def stages(*values: str, **said: Any) -> tuple[Stage, ...]:
    """Stages with these values, which may read the images a and b."""
    document = {
        "format": 1,
        "name": "stages",
        "inputs": [{"name": name, "type": "float32", "dims": ["x", "y"]} for name in ("a", "b")],
        "stages": [{"name": f"s{n}", "dims": ["x", "y"], "value": v, **said} for n, v in enumerate(values)],
        "outputs": [f"s{n}" for n in range(len(values))],
        "estimates": {f"s{n}": [[0, 64], [0, 64]] for n in range(len(values))},
    }
    return load(document).stages


def anew(pipeline: Pipeline) -> Pipeline:
    """The pipeline with stages of which nothing is known yet."""
    return replace(pipeline, stages=tuple(map(replace, pipeline.stages)))


@pytest.mark.parametrize(
    ("one", "other"),
    [("a(x, y) + b(x + 1, y)", "b(x, y) + a(x + 1, y)"), ("sum(a(x + i, y) for i in range(3))",) * 2],
)
def test_stages_that_differ_in_names_have_one_form(one: str, other: str) -> None:
    first, second = stages(one, other)
    assert form(first).key == form(second).key
    share_forms((first, second))
    assert second.memo.of_form is first.memo


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a(x, y) + b(x, y)", "a(x, y) + a(x, y)"),
        ("a(x, y) + b(x, y)", "a(x, y) - b(x, y)"),
        ("a(x, y) * 2.0", "a(x, y) * 3.0"),
        ("a(x + 1, y)", "a(x, y + 1)"),
        ("a(x, y)", "float64(a(x, y))"),
        ("min(a(x, y), b(x, y))", "max(a(x, y), b(x, y))"),
        ("sum(a(x + i, y) for i in range(3))", "sum(a(x + i, y) for i in range(4))"),
        ("sum(a(x + i, y) for i in range(3))", "max(a(x + i, y) for i in range(3))"),
        ("a(clamp(x, a.min.x, 9), y)", "a(clamp(x, b.min.x, 9), y)"),
    ],
)
def test_stages_that_differ_in_more_have_other_forms(one: str, other: str) -> None:
    first, second = stages(one, other)
    assert form(first).key != form(second).key
    share_forms((first, second))
    assert first.memo.of_form is second.memo.of_form is None


def test_parts_that_are_one_object_are_told_from_equal_ones() -> None:
    plain, *_ = stages("(a(x, y) + 1.0) * (a(x, y) + 1.0)")
    (product,) = plain.values
    assert isinstance(product, Binary)
    shared = replace(plain, values=(replace(product, right=product.left),))
    assert shared == plain
    assert form(shared).key != form(plain).key


@pytest.mark.parametrize("name", [*REPEATING, *pipelines.names()])
def test_facts_are_those_that_each_stage_has_by_itself(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = normalise(pipeline_of(name) if name in REPEATING else pipelines.load(name))
    shared, apart = anew(pipeline), anew(pipeline)
    found = pipeline_features.gather(shared, core=PLATFORM.core)
    monkeypatch.setattr(pipeline_features, "share_forms", lambda stages: None)
    own = pipeline_features.gather(apart, core=PLATFORM.core)
    if name in REPEATING:
        assert any(s.memo.of_form for s in shared.stages)
    assert not any(s.memo.of_form for s in apart.stages)
    assert found.stages == own.stages
    for a, b in zip(shared.stages, apart.stages, strict=True):
        assert accesses(a) == accesses(b)
        parts = {id(part) for part in own_parts(a)}
        assert all(id(found.access) in parts for found in accesses(a))
        assert said(windows(a)) == said(windows(b))
        assert element_bytes_used(a) == element_bytes_used(b)
        assert chain(a, PLATFORM.core.latency_cycles) == chain(b, PLATFORM.core.latency_cycles)
        assert literals(a) == literals(b)
        assert register_need(a, {}, 16.0) == register_need(b, {}, 16.0)
        for row in (None, *a.storage[:1]):
            assert typed_operations(a, row=row) == typed_operations(b, row=row)
            assert operations_on_loads(a, row=row) == operations_on_loads(b, row=row)


def said(found: tuple[Window, ...]) -> list[tuple[str, object, tuple[str, ...]]]:
    """Windows as what they say, and of which stage they are."""
    return [(w.stage.name, w.root, w.dims) for w in found]


def own_parts(stage: Stage) -> list[object]:
    """All parts of the stage's expressions."""
    return [part for e in expressions(stage) for part in walk(e)]


def test_answers_do_not_depend_on_what_was_asked_before() -> None:
    """Facts that stages share by form hold for every machine, and every option, in whatever order these come."""
    machines = [catalog.load(name) for name in ("i7-6700", "cortex-a53")]
    questions = [(m, SearchOptions(strict=strict)) for m in machines for strict in (False, True)]
    alone = [autoschedule(pipeline_of("perona_malik"), *q).schedule for q in questions]
    one = pipeline_of("perona_malik")
    for order in (questions, questions[::-1]):
        found = {id(q): autoschedule(one, *q).schedule for q in order}
        assert [found[id(q)] for q in questions] == alone


def test_forms_are_shared_within_one_pipeline_only() -> None:
    first, second = pipeline_of("perona_malik"), pipeline_of("perona_malik")
    for pipeline in (first, second):
        pipeline_features.gather(normalise(pipeline))
    memos = [{id(m) for s in p.stages for m in (s.memo, s.memo.of_form) if m is not None} for p in (first, second)]
    assert memos[0].isdisjoint(memos[1])
