"""Values of lowered parts: what the interpreter of the loop IR computes of an expression, a stage or a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from support.calls import Region
from support.loop_programs import run_program
from support.lowered import LANES, Lowered, buffer
from support.machines import machine
from support.random_pipelines import disagreement, random_inputs

from tilesmith.scheduler.interpreter.interpreter import Image as InputImage
from tilesmith.scheduler.interpreter.interpreter import interpret
from tilesmith.scheduler.ir.index import const, sym
from tilesmith.scheduler.ir.loop.interpreter import Image, execute
from tilesmith.scheduler.ir.loop.parser import parse_program
from tilesmith.scheduler.ir.loop.program import Body, Let, Loop, Program, RowPointer, Statement
from tilesmith.scheduler.ir.loop.signature import Argument
from tilesmith.scheduler.ir.loop.values import Buffer, Pointer
from tilesmith.scheduler.ir.loop.verifier import verify
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.lowering import lower
from tilesmith.scheduler.lowering.memory import store
from tilesmith.scheduler.rewrites.passes import rewrite

EMPTY = """
program "p" { doc "" method "hand" machine "x86_64" line_bytes 64 register_bytes 32 carried_vectors 12 permuted_bytes 4
  crowded_bytes 2048
derivation {} bounds {} body {} }
"""


def program_of(p: Pipeline, groups: Iterable[Group], vector_bytes: int = 32) -> Program:
    """The loop program of a legal schedule of these groups."""
    plan = rewrite(p, Schedule(p.name, "by hand", tuple(groups)))
    check(plan)
    program = lower(plan, machine(vector_bytes=vector_bytes))
    verify(program)
    return program


def assert_computes(
    p: Pipeline,
    program: Program,
    regions: Iterable[Region],
    sizes: Mapping[str, Region] | None = None,
    params: Mapping[str, int] | None = None,
) -> None:
    """The program computes what the pipeline says, on each of the regions of its outputs; of inputs it is given no more
    than it asks for, or those of `sizes`."""
    for region in regions:
        asked = dict.fromkeys(p.outputs, region)
        inputs = random_inputs(p, 1, asked, dict(params or {}), dict(sizes or {}))
        expected = interpret(p, inputs, params or {}, asked)
        found = run_program(program, p, inputs, params or {}, asked)
        for name, arrays in expected.items():
            for a, b in zip(found[name], arrays, strict=True):
                assert disagreement(a, b) is None, (name, region, disagreement(a, b))


def assert_lowered_right(
    p: Pipeline, groups: Iterable[Group], *regions: Region, sizes: Mapping[str, Region] | None = None
) -> Program:
    """The program of these groups, which computes what the pipeline says on each of the regions of its outputs."""
    program = program_of(p, groups)
    assert_computes(p, program, regions, sizes)
    return program


def computed(
    p: Pipeline, image: np.ndarray, at: int = 0, lanes: int = LANES, exact: bool = False, safe: bool = False
) -> np.ndarray:
    """The output at the points from `at` on, a vector of them, as lowered by itself; `image`, from 0 on, is the
    input `f`."""
    lowered = Lowered(p, lanes, exact, safe)
    value = lowered.evaluator.value(lowered.stages[p.outputs[0]].values[0], lowered.frame)
    out = buffer("out", value.type)
    store(lowered.builder, out, (lowered.frame.env["x"],), value)
    result = np.zeros(at + lanes, value.type.numpy)
    row = Loop("x", const(at), const(at), const(1), tuple(lowered.inside))
    execute_body(
        (*lowered.builder.scopes[0].statements, row),
        [(lowered.evaluator.sources.buffers["f", 0], image), (out, result)],
    )
    return result[at:]


def execute_body(body: Body, memory: Iterable[tuple[Buffer, np.ndarray]], **known: int) -> None:
    """Executes statements on buffers of `support.lowered`, whose elements are these (axes reversed) and are written
    in place; symbols are `known`."""
    memory = list(memory)
    begun: list[Statement] = [Let(name, const(n)) for name, n in known.items()]
    for m, _ in memory:
        data = replace(m, pointer=Pointer(f"{m.stage}_data"))
        begun.append(RowPointer(m.pointer, data, const(0)))
        for d in m.dims:
            begun.append(Let(f"{m.stage}_{d}", sym(f"{m.stage}.extent.{d}")))
            begun.append(Let(f"{m.stage}_stride_{d}", sym(f"{m.stage}.stride.{d}")))
    program = replace(
        parse_program(EMPTY),
        arguments=tuple(Argument(m.stage, m.stage, m.type, m.dims, m.dims, True) for m, _ in memory),
        body=(*begun, *body),
    )
    execute(program, {m.stage: Image(a.transpose(), (0,) * a.ndim) for m, a in memory}, {})


def assert_evaluated_right(p: Pipeline, image: np.ndarray, at: int = 0, **how: Any) -> None:
    """A vector of the output at `at`, lowered by itself, is what the pipeline says. `how` is that of `computed`."""
    region = ((at, how.get("lanes", LANES)),)
    with np.errstate(all="ignore"):
        (expected,) = interpret(p, {"f": InputImage(image, (0,))}, {}, {"out": region})["out"]
    found = computed(p, image, at, **how)
    assert disagreement(found, expected) is None, disagreement(found, expected)
