"""Registers that a point's expressions need while they are evaluated: each operation after its operands, that of the
largest need first (R. Sethi and J. D. Ullman, The generation of optimal code for arithmetic expressions, JACM 17(4),
1970)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from tilesmith.scheduler.analysis.stage_graph import reads
from tilesmith.scheduler.features.operations.dependence_chains import FUNCTIONS, terms_of_sum
from tilesmith.scheduler.features.operations.operation_counts import outside_indices
from tilesmith.scheduler.ir.memo import once, once_a_form
from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, Call, Const, Expr, Reduce, Var, children
from tilesmith.scheduler.ir.pipeline.pipeline import Stage

IMMEDIATE = ("<<", ">>", "*", "/", "//", "%")
"""Operations on integers whose literals are parts of instructions, or few numbers that a product is made with."""


def register_need(stage: Stage, inlined: Mapping[str, float], most: float) -> float:
    """Registers that the values of a stage need, `most` at most. What is used again takes one of its own; a function,
    whose polynomial has many numbers, takes all; numbers come from memory. `inlined` are the needs of the stages that
    are inlined into it."""
    own = {name: need for name, need in inlined.items() if name in reads(stage)}
    if not own:
        known = _known_needs(stage)
        if most not in known:
            known[most] = _need(stage, own, most)
        return known[most]
    known_of, key = _known_needs_of(stage), (most, *own.items())
    if key not in known_of:
        known_of[key] = _need(stage, own, most)
    return known_of[key]


@once_a_form
def _known_needs(stage: Stage) -> dict[float, float]:
    """Needs of a stage into which nothing is inlined, by the most."""
    return {}


@once
def _known_needs_of(stage: Stage) -> dict[Hashable, float]:
    """Needs of a stage by the most and by those of what is inlined into it."""
    return {}


def _need(stage: Stage, inlined: Mapping[str, float], most: float) -> float:
    needs = _Needs(inlined, most)
    found = needs.in_turn(map(needs.of, stage.values))
    return min(most, found + sum(times > 1 for times in needs.uses.values()))


@once_a_form
def literals(stage: Stage) -> Counter[tuple[str, float]]:
    """The literals of a point of a stage, by type and value, and how many of its operations take each from a register:
    places are scalars, and shifts, quotients and products of integers have most of theirs in the instruction."""
    found = Counter[tuple[str, float]]()
    for e in {id(e): e for value in stage.values for e in outside_indices(value)}.values():
        parts = () if isinstance(e, Access) else children(e)
        immediate = isinstance(e, Binary) and e.type.is_integer and e.op in IMMEDIATE
        if not immediate and not all(isinstance(c, Const) for c in parts):
            found.update((str(c.type), float(c.value)) for c in parts if isinstance(c, Const))
    return found


@dataclass(slots=True)
class _Needs:
    """The needs of the expressions of one stage, and how often each that is computed is used."""

    inlined: Mapping[str, float]
    most: float
    known: dict[int, float] = field(default_factory=dict)
    uses: Counter[object] = field(default_factory=Counter)

    def of(self, e: Expr) -> float:
        match e:
            case Var() | Const():
                return 0.0
            case Access():
                if e.name in self.inlined:
                    self.uses[e] += 1
                return self.inlined.get(e.name, 1.0)
        self.uses[id(e)] += 1
        found = self.known.get(id(e))
        if found is None:
            found = self.known[id(e)] = self._of_operation(e)
        return found

    def _of_operation(self, e: Expr) -> float:
        match e:
            case Reduce():
                return self.of(e.body) + 1.0
            case Call(function=function) if function in FUNCTIONS:
                return self.most
            case Binary(op="+" | "-"):
                first, *others = sorted(map(self.of, terms_of_sum(e)), reverse=True)
                return max(first, others[0] + 1.0)  # beside the sum so far
        return max(1.0, self.in_turn(map(self.of, children(e))))

    @staticmethod
    def in_turn(needs: Iterable[float]) -> float:
        """The need of values one after the other, each of which stays in a register."""
        return max((n + before for before, n in enumerate(sorted(needs, reverse=True))), default=0.0)
