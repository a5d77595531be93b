"""The list of passes over loop programs."""

from __future__ import annotations

from support.machines import machine

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.loop_passes.passes import PASSES, optimize
from tilesmith.scheduler.lowering import lower
from tilesmith.scheduler.lowering.passes import LOWERING
from tilesmith.scheduler.rewrites.passes import REWRITES, rewrite
from tilesmith.scheduler.search import root_schedule


def test_every_pass_says_what_it_expects_and_leaves() -> None:
    assert all(p.before and p.after for p in PASSES.passes)


def test_a_second_run_of_the_clean_up_finds_nothing() -> None:
    pipeline = pipelines.load("harris")
    program = optimize(lower(rewrite(pipeline, root_schedule(pipeline, machine())), machine()))
    (clean_up,) = (p for p in PASSES.passes if p.name == "eliminate-dead-code")
    assert clean_up.run(program) == program


def test_a_compilation_tells_the_time_of_every_pass() -> None:
    ticks = iter(range(10_000))
    found = compile_pipeline(pipelines.load("blur"), machine(), Options(), now=lambda: float(next(ticks)))
    assert list(found.passes_ms) == [*REWRITES.names, *LOWERING.names, *PASSES.names]
    assert sum(found.passes_ms[p.name] for p in PASSES.passes) <= found.timings_ms["passes"]
