"""The option `strict`: the order of floating-point operations as written, the same bits under every schedule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.calls import call
from support.machines import here
from support.native import build, source_of
from support.random_schedules import random_schedule
from support.random_stencils import sliding_schedule
from support.shipped import loaded, problem

from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.search import root_schedule

FLAGS = ("-O1",)


def bits(name: str, schedule: Schedule, flags: tuple[str, ...] = FLAGS) -> list[bytes]:
    p = problem(name, "shifted")
    source = source_of(p.pipeline, replace(schedule, strict=True), here())
    status, got = call(build(source, flags), source, p.pipeline, p.inputs, {}, p.regions)
    assert status == 0
    return [a.tobytes() for o in p.pipeline.outputs for a in got[o]]


@pytest.mark.parametrize("name", ["harris", "unsharp", "sobel"])
def test_every_schedule_has_the_same_bits(name: str) -> None:
    """Also those of the interpreter, which does one operation after the other."""
    pipeline = loaded(name)
    p = problem(name, "shifted")
    expected = [a.tobytes() for o in pipeline.outputs for a in p.expected[o]]
    schedules = [
        root_schedule(pipeline, here()),
        compile_pipeline(pipeline, here(), Options(strict=True)).schedule,
    ]
    schedules += [random_schedule(pipeline, seed, strict=True) for seed in range(2)]
    schedules += [sliding_schedule(pipeline, seed, strict=True) for seed in range(2)]
    found = [bits(name, s) for s in schedules]
    assert all(f == found[0] for f in found)
    if name != "unsharp":  # its exp is the C library's
        assert found[0] == expected


def test_optimisation_changes_no_bit() -> None:
    schedule = compile_pipeline(loaded("harris"), here(), Options(strict=True)).schedule
    flags = (("-O0",), ("-O1",), ("-O3", "-funroll-loops"))
    assert len({bits("harris", schedule, f)[0] for f in flags}) == 1


def test_the_option_reaches_the_compiler() -> None:
    strict = compile_pipeline(loaded("harris"), here(), Options(strict=True))
    relaxed = compile_pipeline(loaded("harris"), here())
    assert strict.schedule.strict
    assert "-ffp-contract=off" in strict.source.flags
    assert not any("associative" in f or "reciprocal" in f or f == "-ffp-contract=fast" for f in strict.source.flags)
    assert "-ffp-contract=fast" in relaxed.source.flags
    assert strict.key != relaxed.key


def test_sums_are_added_in_the_order_written() -> None:
    """1e8 + 1 - 1e8 is 0 in float32, and 1 in any other order."""
    document = {
        "format": 1,
        "name": "order",
        "inputs": [{"name": "input", "type": "float32", "dims": ["x"]}],
        "stages": [{"name": "out", "dims": ["x"], "value": "input(x) * 1e8 + input(x) - input(x) * 1e8"}],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64]]},
    }
    pipeline = load(document)
    source = compile_pipeline(pipeline, here(), Options(strict=True)).source
    inputs = {"input": Image(np.ones(64, np.float32), (0,))}
    status, got = call(build(source, FLAGS), source, pipeline, inputs, {}, {"out": ((0, 64),)})
    assert status == 0
    assert (got["out"][0] == 0).all()
