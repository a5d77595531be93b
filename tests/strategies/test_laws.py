"""Laws of the combinators, on random stencils and on rules that are drawn."""

from __future__ import annotations

from random import Random

import pytest
from support.random_stencils import random_stencils

from tilesmith.platforms.catalog import get
from tilesmith.scheduler.frontends.document import document as pipelines
from tilesmith.scheduler.pipelines import load as shipped
from tilesmith.scheduler.rewrites.refusal import Refusal
from tilesmith.scheduler.strategies import steps
from tilesmith.scheduler.strategies.combinators import (
    Fail,
    Skip,
    Strategy,
    all_,
    at,
    best,
    bottom_up,
    cheapest,
    first,
    normalize,
    once,
    repeat,
    seq,
    together,
    top_down,
    try_,
)
from tilesmith.scheduler.strategies.costs import cost
from tilesmith.scheduler.strategies.document import load_text
from tilesmith.scheduler.strategies.registry import RULES, Step
from tilesmith.scheduler.strategies.state import Budget, Context, State, begin
from tilesmith.scheduler.strategies.text import definition_lines, group_lines

SEEDS = range(12)
PLATFORM = get("i7-6700")
assert steps


def text(state: State) -> list[str]:
    groups = (line for group in state.schedule.groups for line in group_lines(group))
    return [*definition_lines(state.pipeline), *groups, *map(str, sorted(state.decided))]


def drawn_step(r: Random) -> Step:
    dim = r.choice("xy")
    return r.choice(
        (
            lambda: RULES["inline"](),
            lambda: RULES["fuse"](),
            lambda: RULES["compute_at"](loop=f"{dim}.{r.choice(('inner', 'outer'))}"),
            lambda: RULES["store_at"](loop=f"{dim}.{r.choice(('inner', 'outer'))}", fold=r.random() < 0.7),
            lambda: RULES["store_circular"](along=dim),
            lambda: RULES["rotate_registers"](),
            lambda: RULES["tile"](sizes={dim: r.choice((None, 1, 5, 8, 32))}),
            lambda: RULES["reorder"](loops=r.choice((["y", "x"], ["x", "y"], ["x.inner", "y.outer"]))),
            lambda: RULES["parallel"](),
            lambda: RULES["vectorize"](lanes=r.choice((1, 4, 8))),
            lambda: RULES["unroll"](dims=[dim]),
            lambda: RULES["stream"](),
            lambda: RULES["prefetch"](bytes=r.choice((0, 1024))),
            lambda: RULES["split_separable"](dim=dim),
        )
    )()


def drawn(r: Random, depth: int = 2) -> Strategy:
    if depth == 0 or r.random() < 0.3:
        return once(drawn_step(r)) if r.random() < 0.5 else drawn_step(r)
    a, b = drawn(r, depth - 1), drawn(r, depth - 1)
    return r.choice(
        (
            seq(a, b), first(a, b), try_(a), repeat(a, times=3), all_(try_(a)), once(a), top_down(a), bottom_up(a),
            together(a, b), cheapest(a, b), normalize(a, times=5),
        )
    )  # fmt: skip


def state_of(seed: int) -> State:
    return begin(pipelines.load(random_stencils(seed)), PLATFORM, context=Context(budget=Budget(3000)))


def place(state: State, r: Random) -> str:
    return r.choice(state.stages)


def same(a: State | Refusal, b: State | Refusal) -> bool:
    if isinstance(a, State) and isinstance(b, State):
        return a == b and text(a) == text(b)
    return a == b


@pytest.mark.parametrize("seed", SEEDS)
def test_sequences_are_associative(seed: int) -> None:
    r, state = Random(seed), state_of(seed)
    for _ in range(4):
        a, b, c, here = drawn(r), drawn(r), drawn(r), place(state, r)
        assert same(seq(seq(a, b), c)(state, here), seq(a, seq(b, c))(state, here))


@pytest.mark.parametrize("seed", SEEDS)
def test_choice_is_of_the_left_and_fail_and_skip_are_its_ends(seed: int) -> None:
    r, state = Random(seed), state_of(seed)
    for _ in range(4):
        a, b, here = drawn(r), drawn(r), place(state, r)
        alone = a(state, here)
        assert same(first(Fail(), a)(state, here), alone)
        assert same(first(a, Fail())(state, here), alone) or isinstance(alone, Refusal)
        assert same(first(a, b)(state, here), alone if isinstance(alone, State) else b(state, here))
        assert same(seq(Skip(), a)(state, here), alone)
        assert same(seq(a, Skip())(state, here), alone)
        assert isinstance(seq(a, Fail())(state, here), Refusal)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_refuses_changes_nothing(seed: int) -> None:
    r, state = Random(seed), state_of(seed)
    before = text(state)
    for _ in range(6):
        a, here = drawn(r), place(state, r)
        result = a(state, here)
        assert text(state) == before
        assert isinstance(try_(a)(state, here), State)
        assert isinstance(repeat(a, times=3)(state, here), State)
        if isinstance(result, Refusal):
            assert same(try_(a)(state, here), state)
            assert result.rule
            assert result.where
            assert result.why


@pytest.mark.parametrize("seed", SEEDS)
def test_equal_states_have_equal_text_and_equal_strategies_give_equal_states(seed: int) -> None:
    state = state_of(seed)
    a = drawn(Random(seed))(state, state.stages[0])
    again = drawn(Random(seed))(state_of(seed), state.stages[0])
    assert same(a, again)
    if isinstance(a, State):
        assert (a == state) == (text(a) == text(state))


@pytest.mark.parametrize("seed", SEEDS)
def test_after_normalize_there_is_no_place_left(seed: int) -> None:
    r, state = Random(seed), state_of(seed)
    for step in (drawn_step(r) for _ in range(4)):
        result = normalize(step)(state)
        if isinstance(result, State):
            for name in result.stages:
                there = step(result, name)
                assert isinstance(there, Refusal) or there == result


@pytest.mark.parametrize("seed", SEEDS)
def test_traversals_visit_every_stage(seed: int) -> None:
    r, state = Random(seed), state_of(seed)
    for step in (drawn_step(r) for _ in range(3)):
        down, up = top_down(step)(state), bottom_up(step)(state)
        everywhere = all_(step)(state)
        somewhere = once(step)(state)
        if isinstance(everywhere, State):
            assert same(everywhere, down)
        if isinstance(somewhere, State):
            assert isinstance(down, State)
            assert isinstance(up, State)


def test_the_cheapest_is_the_one_that_the_model_says() -> None:
    state = state_of(3)
    output = state.graph.outputs[0]
    steps = [at(output, RULES["vectorize"](lanes=n)) for n in (2, 4, 8)]
    costs = [cost(s) for s in (step(state) for step in steps) if isinstance(s, State)]
    chosen = cheapest(*steps, Fail())(state)
    assert isinstance(chosen, State)
    assert cost(chosen) == min(costs)
    found = best(2, steps, at(output, RULES["parallel"]()))(state)
    assert isinstance(found, State)
    assert isinstance(cheapest(Fail(), Fail())(state), Refusal)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ('{name: turn, match: "?a + ?b", result: "?b + ?a"}', "comes back to what there was before"),
        ('{name: grow, match: "?a + ?b", result: "?a + (?b + 0)", exact: rounding}', "after 40 rounds"),
    ],
)
def test_normalizing_by_a_rule_whose_result_it_matches_refuses_and_names_the_rule(rule: str, why: str) -> None:
    name = rule[7:11]
    read = load_text(f"strategy: s\nrules: [{rule}]\nsteps: [{{normalize: {{do: {name}, times: 40}}}}]")
    refused = read.strategy(begin(shipped("blur"), PLATFORM))
    assert isinstance(refused, Refusal)
    assert refused.rule == name
    assert refused.where in ("blur_x", "blur_y")
    assert why in refused.why


def test_a_strategy_ends_however_it_loops() -> None:
    state = begin(pipelines.load(random_stencils(1)), PLATFORM, context=Context(budget=Budget(50)))
    output = state.graph.outputs[0]
    flip = seq(RULES["tile"](sizes={"x": 8}), RULES["tile"](sizes={"x": 16}), RULES["tile"](sizes={"x": 4}))
    forever = repeat(repeat(at(output, first(flip, flip))))
    assert isinstance(forever(state), State)
    spent = at(output, RULES["parallel"](threads=False))(state)
    assert isinstance(spent, State)
    for _ in range(60):
        RULES["inline"]()(state, output)
    refused = at(output, RULES["parallel"](threads=False))(state)
    assert isinstance(refused, Refusal)
    assert "as many steps" in refused.why
