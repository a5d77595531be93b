"""Rules and random sequences of rules keep the meaning: what the interpreter says before and after them, and what the
generated C computes."""

from __future__ import annotations

from random import Random

import pytest
from support.calls import call
from support.machines import here
from support.native import build
from support.random_cases import case_of
from support.random_pipelines import disagreement, random_pipeline
from support.random_stencils import random_stencils
from support.shipped import assert_right, loaded, problem

from tilesmith.scheduler.codegen.c.emitter import emit_c
from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.frontends.document import document as pipelines
from tilesmith.scheduler.interpreter.interpreter import interpret
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.loop_passes.passes import optimize
from tilesmith.scheduler.lowering import lower
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.strategies import catalog, steps
from tilesmith.scheduler.strategies.combinators import at, seq, try_
from tilesmith.scheduler.strategies.registry import RULES, Step
from tilesmith.scheduler.strategies.state import State, begin
from tilesmith.scheduler.strategies.steps.expressions import built_in

assert steps
ALGEBRA = (
    "commute_sum", "nest_sum", "associate_sum", "distribute", "factor_common", "double", "select_not", "flip_greater",
)  # fmt: skip


def drawn(r: Random, dims: tuple[str, ...]) -> Step:
    """A rule with arguments that may fit."""
    dim = r.choice(dims or ("x",))
    loop = f"{dim}.{r.choice(('inner', 'inner', 'outer'))}"
    return r.choice(
        (
            lambda: RULES["inline"](),
            lambda: RULES["inline"](),
            lambda: RULES["fuse"](),
            lambda: RULES["compute_at"](loop=loop),
            lambda: RULES["store_at"](loop=loop, fold=r.random() < 0.7),
            lambda: RULES["store_circular"](along=dim),
            lambda: RULES["rotate_registers"](),
            lambda: RULES["tile"](sizes={dim: r.choice((None, 1, 5, 8, 32))}),
            lambda: RULES["reorder"](loops=r.sample(dims, len(dims)) if dims else ["x"]),
            lambda: RULES["parallel"](),
            lambda: RULES["vectorize"](lanes=r.choice((2, 4, 8))),
            lambda: RULES["unroll"](dims=[dim]),
            lambda: RULES["stream"](),
            lambda: RULES["prefetch"](bytes=1024),
            lambda: RULES["split_separable"](dim=dim),
            lambda: RULES["simplify"](),
            lambda: built_in(r.choice(ALGEBRA))(),
        )
    )()


def after_random_steps(seed: int, count: int = 25) -> State:
    """A random pipeline after random steps at random stages, those that fit."""
    r = Random(seed)
    document = random_stencils(seed) if seed % 2 else random_pipeline(seed)
    state = begin(pipelines.load(document), here(), strict=seed % 3 == 0)
    for _ in range(count):
        stage = r.choice(state.stages)
        result = try_(at(stage, drawn(r, state.definition(stage).dims)))(state)
        assert isinstance(result, State)
        state = result
    return try_(RULES["search"]())(state) if seed % 5 == 0 else state  # type: ignore[return-value]


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(n, marks=pytest.mark.slow) for n in range(8, 20))])
def test_random_steps_keep_the_meaning(seed: int) -> None:
    state = after_random_steps(seed)
    check(state.plan)
    written = state.plan.written
    case = case_of(written, state.schedule, seed)
    expected = interpret(written, case.inputs, case.params, case.regions)
    rewritten = interpret(state.pipeline, case.inputs, case.params, case.regions)
    source = emit_c(optimize(lower(state.plan, here())))
    status, got = call(build(source), source, written, case.inputs, case.params, case.regions)
    assert status == 0
    for name, arrays in expected.items():
        for a, b, c in zip(arrays, rewritten[name], got[name], strict=True):
            assert disagreement(b, a) is None, state.applied
            assert disagreement(c, a) is None, state.applied


@pytest.mark.parametrize("seed", range(20))
def test_a_schedule_alone_says_the_same_where_no_expression_was_rewritten(seed: int) -> None:
    state = after_random_steps(seed)
    known = {"split-separable", "rfactor", "fuse-outputs", *(p.name for p in steps.passes.NORMALIZATION)}
    if all(r.rule in known for r in state.plan.rewrites):
        again = rewrite(state.plan.written, state.schedule)
        assert [s.name for s in again.pipeline.stages] == [s.name for s in state.pipeline.stages]
        check(again)


SIX = ("bilateral_grid", "harris", "blur", "unsharp", "sobel", "gaussian3x3")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pipeline", "name"), [(p, n) for k, p in enumerate(SIX) for j, n in enumerate(catalog.names()) if (j + k) % 2 == 0]
)
def test_shipped_strategies_compute_what_the_pipeline_says(pipeline: str, name: str) -> None:
    """Each strategy on three of the pipelines, in turn."""
    made = compile_pipeline(loaded(pipeline), here(), Options(strategy=catalog.load(name)))
    library = build(made.source)
    for size in ("7x3", "64x64", "shifted"):
        p = problem(pipeline, size)
        status, got = call(library, made.source, p.pipeline, p.inputs, {}, p.regions)
        assert status == 0, size
        assert_right(got, p.expected, p.within)


@pytest.mark.parametrize("name", catalog.names())
@pytest.mark.parametrize("pipeline", ["bilateral_grid", "camera_pipe", "interpolate"])
def test_shipped_strategies_fit_pipelines_with_updates_and_pyramids(pipeline: str, name: str) -> None:
    made = catalog.load(name).strategy(begin(loaded(pipeline), here()))
    assert isinstance(made, State), str(made)
    check(made.plan)


@pytest.mark.parametrize("name", ["cbuf", "cbuf+rrot"])
def test_those_of_the_paper_say_that_a_pipeline_has_no_rows(name: str) -> None:
    line = pipelines.load(
        {
            "format": 1,
            "name": "line",
            "inputs": [{"name": "f", "type": "float32", "dims": ["x"]}],
            "stages": [{"name": "g", "dims": ["x"], "value": "f(x) + f(x + 1)"}],
            "outputs": ["g"],
            "estimates": {"g": [[0, 1000]]},
        }
    )
    refused = catalog.load(name).strategy(begin(line, here()))
    assert str(refused) == "tile at g: it has no dim 'y'; dims: x"


def test_the_strategies_of_the_paper_make_its_schedules_of_harris() -> None:
    harris = loaded("harris")
    for name, rows in (("cbuf", "y.inner"), ("cbuf+rrot", "x.inner")):
        made = seq(catalog.load(name).strategy)(begin(harris, here()))
        assert isinstance(made, State)
        (group,) = made.schedule.groups
        cut = {t.dim: t.size for t in group.tiles if t.size is not None}  # a tile of whole rows is no cut
        assert (cut, group.parallel) == ({"y": 32}, "y.outer")
        assert group.vector is not None
        kept = {p.stage: p for p in group.placements if p.compute != "inline"}
        rings = {n for n, p in kept.items() if (p.compute, p.store, p.storage) == (rows, "y.outer", "memory")}
        rotating = {n for n, p in kept.items() if p.storage == "registers"}
        assert rings == {"gray", "Ix", "Iy"}
        assert rotating == (set() if name == "cbuf" else {"Ix_y", "Iy_y", "Sxx_y", "Sxy_y", "Syy_y"})
