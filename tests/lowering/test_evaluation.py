"""Evaluation: the type, the lanes and the mask of an operation's value, by what it is made of."""

from __future__ import annotations

import pytest
from support.lowered import LANES, Lowered, pipeline

from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.builder import literal
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.expressions import Binary, Call, Compare, Expr, Logical
from tilesmith.scheduler.ir.pipeline.types import BOOL, FLOAT32, INT32, UINT8, ScalarType
from tilesmith.scheduler.lowering.evaluation import Evaluation


def evaluation() -> Evaluation:
    return Lowered(pipeline("f(x)")).evaluator


def given(ev: Evaluation, type: ScalarType, lanes: int, name: str, mask_bits: int = 0) -> Value:
    """A value that stands before everything else."""
    ev.builder.declare(name)
    return Value(type, lanes, name, None, mask_bits)


def node(e: type, op: str, type: ScalarType) -> Expr:
    """The node that types an operation; what it is made of does not matter."""
    return e(op, None, None, type) if e is Binary else e(op, (), type)


def test_an_operation_on_scalars_is_a_scalar() -> None:
    ev = evaluation()
    found = ev.op(ops.Binary("+", given(ev, FLOAT32, 1, "a"), given(ev, FLOAT32, 1, "b")), node(Binary, "+", FLOAT32))
    assert (found.type, found.lanes, found.mask_bits) == (FLOAT32, 1, 0)


@pytest.mark.parametrize("vector_first", [True, False])
def test_one_vector_makes_a_vector_of_it(vector_first: bool) -> None:
    ev = evaluation()
    both = [given(ev, INT32, LANES, "a"), literal(3, INT32)]
    found = ev.op(ops.Binary("-", *(both if vector_first else both[::-1])), node(Binary, "-", INT32))
    assert (found.type, found.lanes) == (INT32, LANES)


@pytest.mark.parametrize(("type_", "bits"), [(UINT8, 8), (FLOAT32, 32)])
def test_a_comparison_is_a_mask_as_wide_as_what_is_compared(type_: ScalarType, bits: int) -> None:
    ev = evaluation()
    found = ev.op(ops.Compare("<", given(ev, type_, LANES, "a"), literal(3, type_)), Compare("<", None, None))
    assert (found.type, found.lanes, found.mask_bits) == (BOOL, LANES, bits)


def test_masks_are_joined_as_the_wider_of_them() -> None:
    ev = evaluation()
    masks = given(ev, BOOL, LANES, "a", 8), given(ev, BOOL, LANES, "b", 32)
    found = ev.op(ops.Logical("and", *masks), Logical("and", None, None))
    assert found.mask_bits == 32


def test_a_scalar_condition_has_no_part_in_a_mask() -> None:
    ev = evaluation()
    op = ops.Logical("or", given(ev, BOOL, 1, "a"), given(ev, BOOL, LANES, "b", 16))
    assert ev.op(op, Logical("or", None, None)).mask_bits == 16


def test_the_same_operation_is_one_value() -> None:
    ev = evaluation()
    a = given(ev, FLOAT32, LANES, "a")
    found = [ev.op(ops.Call("max", (a, literal(0.0, FLOAT32))), node(Call, "max", FLOAT32)) for _ in range(2)]
    assert found[0] == found[1]
    assert (found[0].type, found[0].lanes) == (FLOAT32, LANES)
