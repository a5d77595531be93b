"""Every operation of the loop IR, alone: what C and OpenCL C compute of it is what the interpreter of the IR does."""

from __future__ import annotations

from typing import get_args

import pytest
from support.native import build
from support.opencl import device, loaded
from support.operations import REGISTER_BYTES, Case, cases, computed, wrong

from tilesmith.scheduler.codegen.c.emitter import emit_c
from tilesmith.scheduler.codegen.opencl.emitter import emit
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.program import Define
from tilesmith.scheduler.ir.loop.verifier import verify
from tilesmith.scheduler.loop_passes.passes import PASSES

CASES = cases()
(LEGALIZE,) = (p for p in PASSES.passes if p.name == "legalize-vectors")
ELSEWHERE = (ops.CarriedElements, ops.VectorsIntoLine, ops.Misalignment, ops.Lookup, ops.ToIndex, ops.GatherFours)
"""Operations that other tests are of: of the alignment of memory, of tables, of indices that data tells, and of four
neighbours at a time, which takes registers of 64 bytes."""


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_programs_of_cases_are_well_formed(case: Case) -> None:
    verify(case.program())


def test_every_operation_is_in_a_case() -> None:
    used = {type(s.op) for case in CASES for s in case.program().body if isinstance(s, Define)}
    assert set(get_args(ops.Operation)) - used == set(ELSEWHERE)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_c_computes_what_the_interpreter_does(case: Case) -> None:
    source = emit_c(LEGALIZE.run(case.program()))
    assert wrong(case, computed(case, build(source, ("-O1",), vector_bytes=REGISTER_BYTES), source.entry)) == []


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_opencl_computes_what_the_interpreter_does(case: Case) -> None:
    source = emit(case.program(), device(vector_bytes=REGISTER_BYTES))
    assert wrong(case, computed(case, loaded(source), source.entry)) == []
