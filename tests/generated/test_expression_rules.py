"""Pipelines before and after random rules, and stages inlined and extracted, compiled: both agree with the interpreter
of the one before."""

from __future__ import annotations

import random
from functools import cache

import pytest
from support.calls import call
from support.machines import here
from support.native import build
from support.random_pipelines import disagreement, random_inputs, random_params, random_pipeline, random_regions

from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.expression_rules.application import Rule, apply, matches
from tilesmith.scheduler.rewrites.expression_rules.library import RULES, rule
from tilesmith.scheduler.rewrites.inline_stage import inlined


@cache
def rules() -> tuple[Rule, ...]:
    return tuple(rule(t.name) for t in RULES if t.exact != "approximate")


def rewritten(pipeline: Pipeline, rng: random.Random) -> tuple[Pipeline, list[str]]:
    """The pipeline after up to twelve rules, and one stage put into its readers."""
    trace: list[str] = []
    for r in rng.sample(rules(), len(rules())):
        places = list(matches(r, pipeline)) if len(trace) < 12 else []
        if places:
            place = rng.choice(places)
            after = apply(r, pipeline, place)
            assert isinstance(after, Pipeline), after
            pipeline = after
            trace.append(f"{r.name} at {place}")
    for stage in rng.sample(pipeline.stages, len(pipeline.stages)):
        after = inlined(pipeline, stage.name)
        if isinstance(after, Pipeline):
            return after, [*trace, f"inlined {stage.name}"]
    return pipeline, trace


@pytest.mark.parametrize("seed", range(6))
def test_code_before_and_after(seed: int) -> None:
    before = load(random_pipeline(seed))
    after, trace = rewritten(before, random.Random(seed))
    regions, params = random_regions(before, seed), random_params(before, seed)
    images = random_inputs(before, seed, regions, params)
    expected = interpret(before, images, params, regions)
    for p in (before, after):
        source = compile_pipeline(p, here(), Options()).source
        inputs = {i.name: images[i.name] for i in p.inputs}
        status, got = call(build(source), source, p, inputs, params, regions)
        assert status == 0, trace
        for name, arrays in expected.items():
            for a, b in zip(arrays, got[name], strict=True):
                assert disagreement(b, a) is None, "\n".join((name, *trace, disagreement(b, a) or ""))
