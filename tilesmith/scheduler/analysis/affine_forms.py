"""Affine forms of indices: a constant and multiples of variables, and of whatever else is not affine."""

from __future__ import annotations

from dataclasses import dataclass

from tilesmith.scheduler.ir.pipeline.expressions import Binary, Cast, Const, Expr, Unary
from tilesmith.scheduler.ir.pipeline.types import INT32, INT64


@dataclass(frozen=True, slots=True)
class AffineForm:
    """`const` and the coefficients of variables (as Var) and of what is not affine, none of which is 0."""

    const: int
    terms: dict[Expr, int]

    def scaled(self, k: int) -> AffineForm:
        """It times `k`."""
        return AffineForm(self.const * k, {e: c * k for e, c in self.terms.items()} if k else {})

    def plus(self, other: AffineForm) -> AffineForm:
        """The sum of both."""
        terms = dict(self.terms)
        for e, c in other.terms.items():
            terms[e] = terms.get(e, 0) + c
        return AffineForm(self.const + other.const, {e: c for e, c in terms.items() if c})


def affine_form(e: Expr) -> AffineForm:
    """The affine form of an integer of 32 or 64 bits; of anything else it is one term of its own. Taken not to wrap."""
    if e.type in (INT32, INT64):
        match e:
            case Const():
                return AffineForm(int(e.value), {})
            case Unary(op="-"):
                return affine_form(e.operand).scaled(-1)
            case Binary(op="+"):
                return affine_form(e.left).plus(affine_form(e.right))
            case Binary(op="-"):
                return affine_form(e.left).plus(affine_form(e.right).scaled(-1))
            case Binary(op="*", left=Const(value=k), right=other) | Binary(op="*", left=other, right=Const(value=k)):
                return affine_form(other).scaled(int(k))
            case Cast() if e.operand.type == INT32:
                return affine_form(e.operand)
    return AffineForm(0, {e: 1})
