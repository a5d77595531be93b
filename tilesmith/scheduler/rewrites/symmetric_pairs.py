"""Symmetric-pair elimination: of functions of a pair of points that are the same from either end, half of the pairs is
all there is to compute.

How alike two patches are, `w(x, y, dx, dy)` of the one around (x, y) and the one around (x + dx, y + dy), does not
depend on which comes first: w(x, y, dx, dy) = w(x + dx, y + dy, -dx, -dy). A sum over all offsets needs but half of
them, each of which it reads from both ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import prod

from tilesmith.scheduler.analysis.stage_graph import expressions, is_plain, reductions
from tilesmith.scheduler.ir.index import Index, const, sym
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    ParamRef,
    Reduce,
    RVar,
    Unary,
    Var,
    children,
    map_children,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.ir.pipeline.substitution import substituted
from tilesmith.scheduler.ir.pipeline.types import INT32
from tilesmith.scheduler.rewrites.fold_updates import REDUCTIONS, joined

MOST_COMPARED = 2000
"""Parts of two definitions that are compared before they count as different."""

_JOINS = {reduction: op for op, reduction in REDUCTIONS.items()}
_Env = Mapping[str, Index | None]


@dataclass(frozen=True, slots=True)
class Symmetry:
    """`ends`: for the position of a dim that is an offset, that of the dim which it is added to."""

    ends: Mapping[int, int]

    def other(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The pair from its other end."""
        found = list(indices)
        for offset, end in self.ends.items():
            found[end] = Binary("+", indices[end], indices[offset], INT32)
            found[offset] = Unary("-", indices[offset], INT32)
        return tuple(found)


def halved(pipeline: Pipeline, strict: bool = False) -> Pipeline:
    """`pipeline`, whose boundaries are arithmetic, with reductions over all offsets of a symmetric stage over half of
    them, both ends at a time; the pipeline itself where there is none. Computes the same values, but that floats are
    joined in another order, and so none of these if `strict`.

    Only of stages that have reductions to compute: others cost no more than to keep them. And of those that read
    inputs within their edges anyway: which offsets belong to which points is lost on regions, which are boxes.
    """
    stages = {s.name: s for s in pipeline.stages}
    for name in dict.fromkeys(name for s in pipeline.stages for name in _read_at_offsets(s)):
        if name not in stages or name in pipeline.outputs:
            continue
        readers = [s for s in stages.values() if s.name != name and any(_reads(name, s))]
        offsets = _offsets(readers, stages[name], strict)
        if offsets and _has_reductions(name, stages):
            symmetry = _symmetry(stages[name], offsets, stages)
            if symmetry is not None:
                stages.update((s.name, _rewritten(s, stages[name], symmetry)) for s in readers)
    same = all(stages[s.name] is s for s in pipeline.stages)
    return pipeline if same else replace(pipeline, stages=tuple(stages.values()))


@once
def _read_at_offsets(reader: Stage) -> tuple[str, ...]:
    """Accesses at variables of reductions from -n to n."""
    return tuple(
        a.name
        for e in reductions(reader)
        for balanced in [{r.name for r in e.domain if _is_balanced(r)}]
        for a in (walk(e.body) if balanced else ())
        if isinstance(a, Access) and any(isinstance(i, Var) and i.name in balanced for i in a.indices)
    )


def _reads(name: str, reader: Stage) -> Iterator[Access]:
    for e in expressions(reader):
        yield from (n for n in walk(e) if isinstance(n, Access) and n.name == name)


def _offsets(readers: list[Stage], stage: Stage, strict: bool) -> tuple[int, ...]:
    """The dims of `stage` that, whoever reads it, are variables of a reduction from -n to n: each of one of its own."""
    if not readers or not is_plain(stage) or any(s.updates for s in readers):
        return ()
    found: set[tuple[int, ...]] = set()
    for reader in readers:
        inside = 0
        for e in (n for v in reader.values for n in walk(v) if isinstance(n, Reduce)):
            balanced = {r.name for r in e.domain if _is_balanced(r)}
            for a in (n for n in walk(e.body) if isinstance(n, Access) and n.name == stage.name):
                if e.op not in _JOINS or e.where is not None or (strict and e.type.is_float):
                    return ()
                at = tuple(n for n, i in enumerate(a.indices) if isinstance(i, Var) and i.name in balanced)
                used = [v.name for i in a.indices for v in walk(i) if isinstance(v, Var) and v.name in balanced]
                found.add(at if len(used) == len(set(used)) == len(at) else ())
                inside += 1
        if inside != sum(1 for _ in _reads(stage.name, reader)):
            return ()  # outside of reductions, or inside of two
    return found.pop() if len(found) == 1 else ()


def _is_balanced(r: RVar) -> bool:
    if not (isinstance(r.lo, Const) and isinstance(r.extent, Const)):
        return False
    return r.lo.value < 0 and r.extent.value == 1 - 2 * r.lo.value


def _has_reductions(name: str, stages: Mapping[str, Stage]) -> bool:
    """True if there is a reduction in a stage, or in what it is made of."""
    pending, seen = [name], {name}
    while pending:
        for e in (n for v in stages[pending.pop()].values for n in walk(v)):
            if isinstance(e, Reduce):
                return True
            if isinstance(e, Access) and e.name in stages and e.name not in seen:
                seen.add(e.name)
                pending.append(e.name)
    return False


def _symmetry(stage: Stage, offsets: tuple[int, ...], stages: Mapping[str, Stage]) -> Symmetry | None:
    others = [n for n in range(len(stage.dims)) if n not in offsets]
    here = {d: sym(d) for d in stage.dims}
    for ends in permutations(others, len(offsets)):
        there = dict(here)
        for offset, end in zip(offsets, ends, strict=True):
            there[stage.dims[end]] = sym(stage.dims[end]) + sym(stage.dims[offset])
            there[stage.dims[offset]] = sym(stage.dims[offset]).scaled(-1)
        if _Comparison(stages).sign(stage.values[0], here, stage.values[0], there) == 1:
            return Symmetry(dict(zip(offsets, ends, strict=True)))
    return None


class _Comparison:
    """True if two expressions are the same at any place, each in an environment of its own."""

    def __init__(self, stages: Mapping[str, Stage]) -> None:
        self.stages = stages
        self.compared = 0

    def sign(self, a: Expr, at: _Env, b: Expr, bt: _Env) -> int:
        """1 if `a` is `b`, bit for bit, -1 if it is -`b` but for the sign of a zero; 0 if neither is known."""
        self.compared += 1
        if self.compared > MOST_COMPARED or a.type != b.type:
            return 0
        if a.type == INT32:
            place, other = _index(a, at), _index(b, bt)
            if place is not None and other is not None:
                return int(place == other)
        if isinstance(a, Access) and isinstance(b, Access):
            return self._reads(a, at, b, bt)
        if isinstance(a, Reduce) and isinstance(b, Reduce):
            return self._reductions(a, at, b, bt)
        parts, others = children(a), children(b)
        if not parts or _without_parts(a) != _without_parts(b):
            return int(not parts and a == b)

        def signs(others: Sequence[Expr]) -> list[int]:
            found: list[int] = []
            for x, y in zip(parts, others, strict=True):
                found.append(self.sign(x, at, y, bt))
                if not found[-1]:
                    break
            return found

        straight = signs(others)
        match a:
            case Unary(op="-"):
                return straight[0]
            case Binary(op="*"):
                return prod(straight) or prod(signs(others[::-1]))
            case Binary(op=("+" | "-") as op):
                if straight in ([1, 1], [-1, -1]):
                    return straight[0]
                turned = signs(others[::-1])
                if turned in ([1, 1], [-1, -1]):
                    return turned[0] if op == "+" else -turned[0]
                return 0
            case Binary(op="**", right=Const(value=2)):
                return abs(straight[0])
            case Call(function="abs") if a.type.is_float:
                return abs(straight[0])
            case Call(function="absd"):
                return int(straight == [1, 1] or signs(others[::-1]) == [1, 1])
        return int(all(s == 1 for s in straight))

    def _reads(self, a: Access, at: _Env, b: Access, bt: _Env) -> int:
        if a.name != b.name or a.component != b.component:
            return 0
        places = [(_index(i, at), _index(j, bt)) for i, j in zip(a.indices, b.indices, strict=True)]
        stage = self.stages.get(a.name)
        if stage is None:
            within = (_is_within(i, place) for i, (place, _) in zip(a.indices, places, strict=True))
            return int(
                all(within) and all(self.sign(i, at, j, bt) == 1 for i, j in zip(a.indices, b.indices, strict=True))
            )
        if all(i is not None and i == j for i, j in places):
            return 1
        if not is_plain(stage) or any(i is None or j is None for i, j in places):
            return 0
        inside, other = ({d: p[n] for d, p in zip(stage.dims, places, strict=True)} for n in (0, 1))
        return self.sign(stage.values[0], inside, stage.values[0], other)

    def _reductions(self, a: Reduce, at: _Env, b: Reduce, bt: _Env) -> int:
        """The comparison of reductions of the same terms in the same order. Numbers make the variables different from
        any around them."""
        if (a.op, a.component, len(a.domain)) != (b.op, b.component, len(b.domain)):
            return 0
        inside, other = dict(at), dict(bt)
        for r, s in zip(a.domain, b.domain, strict=True):
            if not (isinstance(r.lo, Const) and isinstance(r.extent, Const) and (r.lo, r.extent) == (s.lo, s.extent)):
                return 0
            inside[r.name] = other[s.name] = sym(f"{r.name}.{self.compared}")
        if a.where is not None or b.where is not None:
            return 0
        found = self.sign(a.body, inside, b.body, other)
        return found if found == 1 or a.op == "sum" else 0


def _without_parts(e: Expr) -> Expr:
    nothing = Const(0, INT32)
    return map_children(e, lambda _: nothing)


def _index(e: Expr, env: _Env) -> Index | None:
    """`e` as a linear form; None where it is none."""
    match e:
        case Var(name=name):
            return env.get(name)
        case Const(value=value):
            return const(int(value))
        case Unary(op="-", operand=operand):
            inside = _index(operand, env)
            return None if inside is None else inside.scaled(-1)
        case Binary(op=("+" | "-" | "*") as op, left=left, right=right):
            a, b = _index(left, env), _index(right, env)
            if a is None or b is None:
                return None
            if op == "*":
                return b.scaled(a.const) if a.is_const else a.scaled(b.const) if b.is_const else None
            return a + b if op == "+" else a - b
    return None


def _is_within(index: Expr, place: Index | None) -> bool:
    """True if an input is read within its own edges, or where that has nothing to do with the point: then no more of
    it is ever required."""

    def is_edge(end: Expr) -> bool:
        return not isinstance(end, Access | Var | ParamRef) and all(map(is_edge, children(end)))

    if place is not None and all("." in symbol for symbol in place.symbols()):
        return True  # variables of reductions
    return isinstance(index, Call) and index.function == "clamp" and all(map(is_edge, index.args[1:]))


def _rewritten(reader: Stage, stage: Stage, symmetry: Symmetry) -> Stage:
    """`reader` with the reductions that read `stage` over half of the offsets."""

    def rewrite(e: Expr) -> Expr:
        if isinstance(e, Reduce):
            read = next((n for n in walk(e.body) if isinstance(n, Access) and n.name == stage.name), None)
            if read is not None:
                return _half(e, read, stage, symmetry)
        return map_children(e, rewrite)

    return replace(reader, values=tuple(map(rewrite, reader.values)))


def _half(e: Reduce, read: Access, stage: Stage, symmetry: Symmetry) -> Expr:
    """Offsets on one side along the dim that is the slowest in memory, each with its opposite, so that the fewest rows
    are kept; and those on neither, of which half again."""
    slowest = max(symmetry.ends, key=lambda o: stage.storage.index(stage.dims[symmetry.ends[o]]))
    variables = {o: i.name for o in symmetry.ends if isinstance(i := read.indices[o], Var)}
    opposite: dict[str, Expr] = {v: Unary("-", Var(v), INT32) for v in variables.values()}

    def from_the_other_end(part: Expr) -> Expr:
        part = map_children(part, from_the_other_end)
        if isinstance(part, Access) and part.name == stage.name:
            return replace(part, indices=tuple(map(_tidy, symmetry.other(part.indices))))
        return part

    across = next(r for r in e.domain if r.name == variables[slowest])
    assert isinstance(across.lo, Const)
    one_side = replace(across, extent=Const(-int(across.lo.value), INT32))
    turned = from_the_other_end(_tidy(substituted(e.body, opposite)))
    op = _JOINS[e.op]
    both = replace(e, body=joined(op, e.body, turned), domain=tuple(one_side if r is across else r for r in e.domain))
    level = _tidy(substituted(e.body, {across.name: Const(0, INT32)}))
    left = tuple(r for r in e.domain if r is not across)
    if not left:
        return joined(op, both, level)
    rest = replace(e, body=level, domain=left)
    others = {o: end for o, end in symmetry.ends.items() if o != slowest}
    if others:
        read = next(n for n in walk(level) if isinstance(n, Access) and n.name == stage.name)
        return joined(op, both, _half(rest, read, stage, Symmetry(others)))
    return joined(op, both, rest)


def _tidy(e: Expr) -> Expr:
    """`e` with plain indices: a - b for a + -b, a for a + 0."""
    e = map_children(e, _tidy)
    match e:
        case Unary(op="-", operand=Unary(op="-", operand=inside)) if e.type == INT32:
            return inside
        case Binary(op=("+" | "-") as op, left=left, right=Unary(op="-", operand=inside)) if e.type == INT32:
            return Binary("-" if op == "+" else "+", left, inside, INT32)
        case Binary(op=("+" | "-"), left=left, right=Const(value=0)) if e.type == INT32:
            return left
        case Binary(op="+", left=Const(value=0), right=right) if e.type == INT32:
            return right
    return e
