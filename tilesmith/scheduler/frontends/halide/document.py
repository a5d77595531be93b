"""A Halide pipeline as a document: which of its Funcs are stages, what they are called, and what they say."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilesmith.scheduler.frontends.document.fresh_names import fresh
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.halide import templates
from tilesmith.scheduler.frontends.halide.buffers import array_of
from tilesmith.scheduler.frontends.halide.expressions import Inexpressible, Translator, scalar_type
from tilesmith.scheduler.frontends.halide.facts import ImageFacts, ParamFacts
from tilesmith.scheduler.frontends.halide.requirements import as_ranges
from tilesmith.scheduler.frontends.halide.serialized import (
    HALIDE_BOOL,
    HALIDE_INT32,
    Definition,
    HalideFunc,
    HalideProgram,
    Loop,
    Node,
)
from tilesmith.scheduler.frontends.halide.shared_parts import MakeStage, size, taken_out
from tilesmith.scheduler.frontends.halide.structure import Structure, nodes_of
from tilesmith.scheduler.frontends.halide.templates import Wrapped
from tilesmith.scheduler.frontends.halide.text import plain, shown
from tilesmith.scheduler.ir.pipeline.expressions import Access, Const, Expr, Reduce, RVar, Var
from tilesmith.scheduler.ir.pipeline.printer import to_text, values_to_text
from tilesmith.scheduler.ir.pipeline.semantics import identity
from tilesmith.scheduler.ir.pipeline.types import ScalarType

_DIMS = ("x", "y", "c", "n", "m")


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that cannot be expressed: in which Func, in which of its definitions, which expression, and why; `also`
    are the definitions that have the same cause."""

    func: str
    place: str
    reason: str
    expression: str | None = None
    hint: str | None = None
    also: tuple[str, ...] = ()

    @property
    def without_hint(self) -> str:
        what = f" in {self.expression}" if self.expression else ""
        others = f", and for the same reason {_listed(self.also)}" if self.also else ""
        return f"{self.func}{self.place}: {self.reason}{what}{others}"

    def __str__(self) -> str:
        return f"{self.without_hint} ({self.hint})" if self.hint else self.without_hint


_FEW = 3
"""Places that a message names, of those with the same cause."""
_CAUSE = re.compile(r"depends on (.+), and no bounds")


def by_cause(obstacles: Iterable[Obstacle]) -> list[Obstacle]:
    """One obstacle for each cause: the first of those with the same reason, or with an index that depends on the same,
    with the places of the others."""
    found: dict[str, list[Obstacle]] = {}
    for o in obstacles:
        cause = _CAUSE.search(o.reason)
        found.setdefault(cause[1] if cause else f"{o.reason} {o.hint or ''}", []).append(o)
    return [
        replace(first, also=tuple(dict.fromkeys(o.func + o.place for o in others))) for first, *others in found.values()
    ]


def _listed(places: Sequence[str]) -> str:
    shown_ = ", ".join(places[:_FEW])
    return f"{shown_} and {len(places) - _FEW} more" if len(places) > _FEW else shown_


@dataclass(slots=True)
class Draft:
    """The document, and how it came to be.

    `funcs` are the Funcs of the stages, `dims` Halide's names of their dims, `loops` those of the domains of their
    updates, `updates` the numbers that these have in Halide; `reductions` are the Funcs that stand inside of a stage's
    values, in the order in which they are met; `buffers` those inside of the pipeline that are no tables of the
    document, `weights` the values of these; `scheduled` Funcs that have schedules already.
    """

    document: dict[str, Any] = field(default_factory=dict)
    funcs: dict[str, str] = field(default_factory=dict)
    dims: dict[str, dict[str, str]] = field(default_factory=dict)
    loops: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    updates: dict[str, list[int]] = field(default_factory=dict)
    reductions: dict[str, list[str]] = field(default_factory=dict)
    buffers: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, None] = field(default_factory=dict)
    scheduled: list[str] = field(default_factory=list)
    obstacles: list[Obstacle] = field(default_factory=list)
    weights: dict[str, np.ndarray[Any, np.dtype[Any]]] = field(default_factory=dict)


Spans = Mapping[str, Sequence[Sequence[int]]]


def draft(
    program: HalideProgram,
    images: Mapping[str, ImageFacts],
    params: Mapping[str, ParamFacts],
    estimates: Spans,
    name: str | None,
) -> Draft:
    """The document of `program`; `estimates` (by names of Funcs and images) come before those of the Funcs."""
    return _Drafting(program, images, params, estimates, name).run()


class _Drafting:
    def __init__(
        self,
        program: HalideProgram,
        images: Mapping[str, ImageFacts],
        params: Mapping[str, ParamFacts],
        estimates: Spans,
        name: str | None,
    ) -> None:
        self.program, self.estimates, self.title = program, estimates, name
        self.result = Draft()
        self.structure = Structure(program)
        self.funcs, self.stages = self.structure.funcs, self.structure.stages
        nodes = [n for f in self.funcs.values() for n in nodes_of(f)]
        read = {n.name for n in nodes if n.kind == "image"} | {n.param or n.buffer for n in nodes}
        self.images = {k: v for k, v in images.items() if k in read}
        required = [n.args[0] for n in nodes if n.name == "require"]
        params, self.unchecked = as_ranges([*program.requirements, *required], params)
        self.scalars = {k: v for k, v in params.items() if k in read}
        self.parts: list[dict[str, Any]] = []
        self.tables = 0
        self._names()

    # Names

    def _names(self) -> None:
        self.taken: set[str] = set()
        self.names: dict[str, str] = {}
        for name in (*self.program.outputs, *self.images, *self.scalars, *self.stages):
            if name not in self.names:
                self.names[name] = fresh(name, self.taken, callable_=name not in self.scalars)
        self.input_dims = {k: self._dims_of(len(v.estimates)) for k, v in self.images.items()}
        self.result.scheduled = [f.name for f in self.funcs.values() if any(d.scheduled for d in f.definitions)]
        self.result.funcs = {self.names[k]: k for k in self.stages}
        self.result.buffers = {self.names[k]: k for k in self.images if k in self.program.buffers}

    def _dims_of(self, count: int) -> tuple[str, ...]:
        taken = set(self.taken)
        return tuple(fresh(d, taken) for d in (*_DIMS, *(f"d{k}" for k in range(5, count)))[:count])

    # The document

    def run(self) -> Draft:
        """Everything is looked at, also after something that cannot be expressed."""
        for condition in self.unchecked:
            self.result.remarks[f"the requirement {shown(condition, {})} is not checked"] = None
        inputs = [i for name in self.images if (i := self._input(name)) is not None]
        scalars = [p for name in self.scalars if (p := self._param(name)) is not None]
        stages = [s for name in self.stages if (s := self._stage(self.funcs[name])) is not None]
        outputs = [self.names[name] for name in self.program.outputs]
        self.result.document = {
            "format": 1,
            "name": fresh(self.title or outputs[0], set()),
            **({"params": scalars} if scalars else {}),
            "inputs": inputs,
            "stages": [*stages, *self.parts],
            "outputs": outputs,
            "estimates": self._estimates(),
        }
        return self.result

    def _fail(self, func: str, place: str, error: Inexpressible) -> None:
        copies = {k: node.name for k, node in self.structure.transparent.items()}
        expression = None if error.node is None else shown(error.node, copies)
        self.result.obstacles.append(Obstacle(plain(func), place, error.what, expression, error.hint))

    def _input(self, name: str) -> dict[str, Any] | None:
        facts, dims = self.images[name], self.input_dims[name]
        entry: dict[str, Any] = {"name": self.names[name], "dims": list(dims)}
        try:
            entry["type"] = scalar_type(facts.type).name
            if name in self.structure.boundaries:
                w = self.structure.boundaries[name]
                entry["boundary"] = {"kind": w.kind, **self._outside(w, name)}
        except Inexpressible as error:
            self._fail(name, "", error)
            return None
        entry |= _storage(dims, facts.strides)
        if name in self.program.buffers and (array := array_of(self.program.buffers[name])) is not None:
            entry |= self._table(name, array)
        return entry

    def _table(self, name: str, array: np.ndarray[Any, np.dtype[Any]]) -> dict[str, Any]:
        """The values of a Buffer: of one that is too large for a document beside it, as weights."""
        whole = self.tables + array.size
        if whole > Limits().table_values or not np.isfinite(array).all():
            self.result.weights[self.names[name]] = array
            return {}
        self.tables = whole
        del self.result.buffers[self.names[name]]
        region = [list(span) for span in self.images[name].estimates]
        return {"region": region, "values": array.reshape(-1).tolist()}

    def _param(self, name: str) -> dict[str, Any] | None:
        facts = self.scalars[name]
        try:
            type = scalar_type(facts.type).name
        except Inexpressible as error:
            self._fail(name, "", error)
            return None
        ends = (("default", facts.default), ("min", facts.least), ("max", facts.most))
        return {"name": self.names[name], "type": type, **{k: v for k, v in ends if v is not None}}

    def _stage(self, func: HalideFunc) -> dict[str, Any] | None:
        name = self.names[func.name]
        self.result.reductions[name] = []
        if func.extern or not func.definitions:
            what = f"the extern stage {func.extern!r}" if func.extern else "a Func without a definition"
            self.result.obstacles.append(Obstacle(plain(func.name), "", what, hint="write it as a Func"))
            return None
        taken = set(self.taken)
        dims = {a: fresh(f"d{a}" if a.startswith("_") else a, taken) for a in func.args}
        self.result.dims[name] = {ours: theirs for theirs, ours in dims.items()}
        self.result.loops[name] = []
        entry: dict[str, Any] = {"name": name, "dims": list(dims.values())}
        if func.name in self.structure.copies:
            return entry | self._copy(func, self.structure.copies[func.name], dims)
        init, *updates = func.definitions
        translator = self._translator(func.name, "", _as_vars(dims), taken)
        values = self._values(func, init, translator, "")
        types = tuple(v.type for v in values)
        entry["value"] = values_to_text(values, (), self._tuples)
        numbers = [k for k, u in enumerate(updates) if not _over_nothing(u.domain)]
        self.result.updates[name] = numbers
        if numbers:
            entry["updates"] = [self._update(func, updates[k], dims, k, taken, types) for k in numbers]
        if func.name in self.structure.boundaries:
            w = self.structure.boundaries[func.name]
            entry["boundary"] = {"kind": w.kind, **self._outside(w, func.name), "domain": self._domain(func.name, w)}
        if func.storage != func.args:
            entry["storage"] = [dims[s] for s in func.storage]
        elif func.name in self.program.outputs and func.output_params:
            entry |= _storage(tuple(dims.values()), self.program.strides.get(func.output_params[0], ()))
        return entry

    def _copy(self, func: HalideFunc, w: Wrapped, dims: Mapping[str, str]) -> dict[str, Any]:
        """A boundary condition beside other readers of its source: a copy of the source, with the condition."""
        translator = self._translator(func.name, "", _as_vars(dims))
        place = tuple(Node("variable", HALIDE_INT32, name=a) for a in func.args)
        reads = [Node("call", v.type, place, w.source.name, w.source.kind, component=k)
                 for k, v in enumerate(func.definitions[0].values)]  # fmt: skip
        boundary = {"kind": w.kind, **self._outside(w, func.name), "domain": self._domain(func.name, w)}
        return {"value": values_to_text([translator.expr(r) for r in reads], (), self._tuples), "boundary": boundary}

    def _outside(self, w: Wrapped, func: str) -> dict[str, str]:
        if w.value is None:
            return {}
        value = self._translator(func, " boundary", {}).expr(w.value)
        return {"value": to_text(value, value.type)}

    def _domain(self, func: str, w: Wrapped) -> list[list[str]]:
        translator = self._translator(func, " boundary", {})
        return [[to_text(translator.expr(end)) for end in pair] for pair in w.domain if pair is not None]

    def _values(self, func: HalideFunc, d: Definition, translator: Translator, place: str) -> list[Expr]:
        values = []
        for translator.component, value in enumerate(d.values):
            values.append(translator.expr(value))
        values = taken_out(values, self.names[func.name], self._part_of(func))
        if max(size(v) for v in values) > Limits().expression_nodes:
            self._fail(func.name, place, Inexpressible("an expression of too many parts", None, "make Funcs of them"))
            return [Const(0, v.type) for v in values]
        return values

    def _part_of(self, func: HalideFunc) -> MakeStage:
        """Makes stages of parts of the values of `func`."""

        def make(e: Expr, variables: tuple[str, ...]) -> Access:
            name = fresh(f"{self.names[func.name]}_part", self.taken)
            self.parts.append({"name": name, "dims": list(variables), "value": to_text(e, tuples=self._tuples)})
            return Access(name, tuple(Var(v) for v in variables), 0, e.type)

        return make

    def _update(
        self,
        func: HalideFunc,
        d: Definition,
        dims: Mapping[str, str],
        k: int,
        taken: set[str],
        types: Sequence[ScalarType],
    ) -> dict[str, Any]:
        place = f".update({k})"
        domain, loops = self._loops(d.domain, taken)
        self.result.loops[self.names[func.name]].append({ours: loop.name for ours, loop in domain})
        translator = self._translator(func.name, place, {**_as_vars(dims), **loops}, taken)
        at = tuple(translator.expr(a) for a in d.args)
        translator.own = tuple(Access(self.names[func.name], at, n, t) for n, t in enumerate(types))
        d = _where_defined(d)
        values = self._values(func, d, translator, place)
        entry: dict[str, Any] = {"domain": {ours: self._ends(translator, loop) for ours, loop in domain}}
        if d.predicate is not None:
            entry["where"] = to_text(translator.expr(_without_promises(d.predicate)), tuples=self._tuples)
        entry["at"] = [to_text(a, tuples=self._tuples) for a in at]
        return {**entry, "value": values_to_text(values, types, self._tuples)}

    def _loops(self, domain: Iterable[Loop], taken: set[str]) -> tuple[list[tuple[str, Loop]], dict[str, Expr]]:
        named = [(fresh(loop.name.replace("$", ""), taken), loop) for loop in domain]
        return named, {loop.name: Var(ours) for ours, loop in named}

    def _ends(self, translator: Translator, loop: Loop) -> list[str]:
        return [to_text(translator.expr(loop.lo)), to_text(translator.expr(loop.extent))]

    # Expressions

    def _translator(
        self, func: str, place: str, variables: Mapping[str, Expr], taken: set[str] | None = None
    ) -> Translator:
        """`taken` are the names that the loops of inline reductions must not have; without it there are none."""
        inputs = {k: (self.names[k], self.input_dims[k]) for k in self.images}
        params = {k: self.names[k] for k in self.scalars}

        def read(node: Node, indices: tuple[Expr, ...], type: ScalarType) -> Expr:
            name = node.name
            while name not in self.names:
                if name in self.structure.inline and taken is not None:
                    return self._reduction(name, func, place, indices, type, taken)
                name = self.structure.source(name)
            return Access(self.names[name], indices, node.component, type)

        def fail(error: Inexpressible) -> None:
            self._fail(func, place, error)

        return Translator(variables, params, inputs, read, fail, self.result.remarks, templates.fast_function)

    def _reduction(
        self, name: str, reader: str, place: str, indices: tuple[Expr, ...], type: ScalarType, taken: set[str]
    ) -> Expr:
        """An inline reduction where it is read: its own dims are what it is read at."""
        found, func = self.structure.inline[name], self.funcs[name]
        nothing = identity(found.op, type).item()
        if _over_nothing(found.domain) and math.isfinite(nothing):
            return Const(nothing, type)
        domain, loops = self._loops(found.domain, taken)
        self.result.reductions[self.names[reader]].append(name)
        inner = self._translator(reader, place, {**dict(zip(func.args, indices, strict=True)), **loops}, taken)
        rvars = tuple(RVar(ours, inner.expr(loop.lo), inner.expr(loop.extent)) for ours, loop in reversed(domain))
        where = None if found.predicate is None else inner.expr(found.predicate)
        return Reduce(found.op, inner.expr(found.body), rvars, where, 0, type)

    @property
    def _tuples(self) -> frozenset[str]:
        return frozenset(
            self.names[f.name] for f in self.funcs.values()
            if f.name in self.names and f.definitions and len(f.definitions[0].values) > 1
        )  # fmt: skip

    # Estimates

    def _estimates(self) -> dict[str, list[list[int]]]:
        found: dict[str, list[list[int]]] = {}
        for name, func in self.funcs.items():
            if name in self.names and name in self.stages:
                spans = [func.estimates.get(a, (None, None)) for a in func.args]
                _put(found, self.names[name], spans)
        for name, facts in self.images.items():
            _put(found, self.names[name], facts.estimates)
        for given, asked in self.estimates.items():
            if given not in self.names:
                self.result.obstacles.append(Obstacle(given, "", "an estimate of what is no output, Func or image"))
                continue
            found[self.names[given]] = [[int(lo), int(extent)] for lo, extent in asked]
        for name in self.program.outputs:
            if self.names[name] not in found:
                dims = ", ".join(self.funcs[name].args)
                hint = f"call set_estimates on it, a (min, extent) for each of {dims}, or say how large it is (--size)"
                told = Obstacle(plain(name), "", "an output without estimates of its size", hint=hint)
                self.result.obstacles.append(told)
        return found


def _over_nothing(domain: Iterable[Loop]) -> bool:
    """True where a domain never has points: an update over it changes nothing, and so is none of ours."""
    return any(loop.extent.op == "int" and loop.extent.value is not None and loop.extent.value < 1 for loop in domain)


def _where_defined(d: Definition) -> Definition:
    """An update whose value is undefined where a condition does not hold, as one where it holds."""
    while len(d.values) == 1 and d.values[0].op == "select":
        condition, yes, no = d.values[0].args
        if no.name == "undef":
            value = yes
        elif yes.name == "undef":
            condition, value = Node("not", HALIDE_BOOL, (condition,)), no
        else:
            break
        both = condition if d.predicate is None else Node("and", HALIDE_BOOL, (d.predicate, condition))
        d = replace(d, values=(value,), predicate=both)
    return d


def _without_promises(condition: Node) -> Node:
    """The condition of an update without promises of Halide that its variables lie in their domain: it is the condition
    that keeps the promise, as that of an `rfactor` of parts that do not divide the domain."""
    while condition.name == "promise_clamped":
        condition = condition.args[0]
    args = tuple(_without_promises(a) for a in condition.args)
    return condition if all(map(operator.is_, args, condition.args)) else replace(condition, args=args)


def _put(found: dict[str, list[list[int]]], name: str, spans: Iterable[tuple[int | None, int | None]]) -> None:
    pairs = [[lo, extent] for lo, extent in spans if lo is not None and extent is not None]
    if len(pairs) == len(list(spans)):
        found[name] = pairs


def _storage(dims: tuple[str, ...], strides: Sequence[int | None]) -> dict[str, list[str]]:
    """The dim of stride 1 is the fastest; the others follow in their order."""
    if len(strides) != len(dims) or 1 not in strides or strides[0] == 1:
        return {}
    first = dims[strides.index(1)]
    return {"storage": [first, *(d for d in dims if d != first)]}


def _as_vars(names: Mapping[str, str]) -> dict[str, Expr]:
    return {theirs: Var(ours) for theirs, ours in names.items()}
