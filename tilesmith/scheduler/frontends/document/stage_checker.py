"""Stages: their expressions parsed, then, producers first, their values, updates and boundaries checked."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tilesmith.scheduler.errors import Problem
from tilesmith.scheduler.frontends.document.diagnostics import Report, pointer
from tilesmith.scheduler.frontends.document.functions import FUNCTIONS
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.document.names import Names, Readable
from tilesmith.scheduler.frontends.document.parser import REDUCTIONS, Syntax, parse
from tilesmith.scheduler.frontends.document.schema import BoundaryDocument, StageDocument, UpdateDocument
from tilesmith.scheduler.frontends.document.type_checker import Builder
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Const,
    Expr,
    InputBound,
    Reduce,
    RVar,
    Var,
    children,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Boundary, Stage, Update
from tilesmith.scheduler.ir.pipeline.types import TYPES, ScalarType
from tilesmith.scheduler.ir.pipeline.value_bounds import Interval

_CALLABLE = frozenset(FUNCTIONS) | REDUCTIONS | {"range"}
_Text = str | int | float
_Types = tuple[ScalarType | None, ...]  # None: not known because of an error


@dataclass(slots=True)
class Context:
    """State that the checks of one document share: its names, its report, and what is left of its limits."""

    names: Names
    limits: Limits
    report: Report
    nodes_left: int
    chars_left: int
    near_limits: bool = False  # the canonical document may be beyond them

    def problem(self, code: str, where: str, message: str, hint: str | None = None, column: int | None = None) -> None:
        self.report.append(Problem(code, where, message, hint, column))

    def reserved(self, where: str, name: str, *, callable_: bool = False) -> None:
        """Names that expressions could not use: Python's keywords, and for what is called, the functions."""
        if keyword.iskeyword(name) or (callable_ and name in _CALLABLE):
            what = "a function" if callable_ and name in _CALLABLE else "a keyword"
            self.problem("reserved_name", where, f"{name!r} is {what} of the expression language.", f"e.g. {name}_")

    def parse(self, where: str, text: _Text) -> Syntax | None:
        """The syntax of one expression, counted against the limits of the document."""
        if self.nodes_left < 0 or self.chars_left < 0:
            return None  # said below, once
        if not isinstance(text, str):  # a number stands for itself; a huge one for any that fits nothing
            text = repr(text) if isinstance(text, float) or abs(text) < 1 << 70 else "1" + "0" * 30
        self.chars_left -= len(text)
        syntax = parse(text, where, self.limits, self.report) if self.chars_left >= 0 else None
        if syntax is not None:
            self.nodes_left -= len(syntax.order)
            near = (
                2 * self.nodes_left < self.limits.document_nodes or 4 * self.chars_left < 3 * self.limits.document_bytes
            )
            self.near_limits |= syntax.near_limits or near
        if self.nodes_left < 0 or self.chars_left < 0:
            limits = f"{self.limits.document_nodes} parts or {self.limits.document_bytes} characters"
            self.problem("limit_exceeded", "/stages", f"All expressions together have more than {limits}.")
        return syntax

    def parse_list(self, where: str, texts: _Text | Sequence[_Text]) -> list[Syntax | None]:
        """The syntaxes of one expression or a list of them."""
        if isinstance(texts, str | int | float):
            return [self.parse(where, texts)]
        return [self.parse(f"{where}/{i}", text) for i, text in enumerate(texts)]

    def builder(self, syntax: Syntax, variables: Mapping[str, Var], domain: Sequence[RVar] = ()) -> Builder:
        known = [(r.name, r.lo, r.extent) for r in domain]
        ranges = {
            name: Interval(lo.value, lo.value + extent.value - 1)
            for name, lo, extent in known
            if isinstance(lo, Const) and isinstance(extent, Const)
        }
        return Builder(syntax, self.names, variables, self.limits, self.report, ranges)

    def dims(self, where: str, dims: Sequence[str], storage: Sequence[str] | None) -> None:
        """The dims of an input or stage, and their order in memory."""
        for k, dim in enumerate(dims):
            here = f"{where}/dims/{k}"
            self.reserved(here, dim)
            if dim in dims[:k]:
                self.problem("duplicate_name", here, f"The dim {dim!r} is there twice.")
            if dim in self.names.params:
                self.problem("shadowed_name", here, f"The dim {dim!r} has the name of a param.")
        if storage is not None and sorted(storage) != sorted(dims):
            message = f"The storage order has to name each dim once: {', '.join(dims) or 'none'}."
            self.problem("bad_storage", where + "/storage", message)

    def within(self, where: str, what: str, count: int, most: int) -> bool:
        """True if `count` is allowed; a problem otherwise."""
        if count > most:
            self.problem("limit_exceeded", where, f"There are {count} {what}, {most} are allowed.")
        return count <= most


@dataclass(slots=True)
class UpdateSyntax:
    """An update's document with its syntax."""

    where: str
    document: UpdateDocument
    domain: list[tuple[str, Syntax | None, Syntax | None]]
    predicate: Syntax | None
    at: list[Syntax | None]
    values: list[Syntax | None]


@dataclass(slots=True)
class BoundarySyntax:
    """A boundary's document with its syntax."""

    where: str
    document: BoundaryDocument
    value: Syntax | None
    domain: list[tuple[Syntax | None, Syntax | None]] | None


@dataclass(slots=True)
class StageSyntax:
    """A stage's document with its syntax. `known` is False for the second of two stages of one name."""

    where: str
    document: StageDocument
    known: bool
    values: list[Syntax | None] = field(default_factory=list)
    updates: list[UpdateSyntax] = field(default_factory=list)
    boundary: BoundarySyntax | None = None

    def reads(self) -> set[str]:
        """The names that any of the stage's expressions calls."""
        return {name for syntax in self._all() if syntax is not None for name in syntax.reads}

    def _all(self) -> Iterable[Syntax | None]:
        yield from self.values
        for u in self.updates:
            yield u.predicate
            yield from u.at
            yield from u.values
            for _, lo, extent in u.domain:
                yield from (lo, extent)
        if self.boundary is not None:
            yield self.boundary.value
            for pair in self.boundary.domain or ():
                yield from pair


def parse_stage(context: Context, where: str, s: StageDocument, known: bool) -> StageSyntax | None:
    """The syntax of all of a stage's expressions, and the stage as its readers see it until it is checked."""
    limits, values = context.limits, s.value if isinstance(s.value, list) else [s.value]
    small = context.within(where + "/dims", "dims", len(s.dims), limits.dims)
    small &= context.within(where + "/value", "components", len(values), limits.components)
    small &= context.within(where + "/updates", "updates", len(s.updates or ()), limits.updates)
    if not values:
        context.problem("bad_value", where + "/value", "A stage has at least one value.")
    if not small or not values:
        context.names.broken.add(s.name)
        context.names.readables.pop(s.name, None)
        return None
    stage = StageSyntax(where, s, known, context.parse_list(where + "/value", s.value))
    if known:
        context.names.readables[s.name] = Readable(False, tuple(s.dims), _expected_types(stage))
    for i, u in enumerate(s.updates or ()):
        if (update := _parse_update(context, f"{where}/updates/{i}", u)) is not None:
            stage.updates.append(update)
    if s.boundary is not None:
        stage.boundary = parse_boundary(context, where + "/boundary", s.boundary)
    return stage


def _parse_update(context: Context, where: str, u: UpdateDocument) -> UpdateSyntax | None:
    values, limits = u.value if isinstance(u.value, list) else [u.value], context.limits
    small = context.within(where + "/domain", "domain variables", len(u.domain), limits.domain_variables)
    small &= context.within(where + "/at", "indices", len(u.at), limits.dims)
    small &= context.within(where + "/value", "components", len(values), limits.components)
    if not small:
        return None
    domain: list[tuple[str, Syntax | None, Syntax | None]] = []
    for name, (lo, extent) in u.domain.items():
        here = where + pointer("domain", name)
        domain.append((name, context.parse(here + "/0", lo), context.parse(here + "/1", extent)))
    predicate = None if u.where is None else context.parse(where + "/where", u.where)
    at = context.parse_list(where + "/at", u.at)
    return UpdateSyntax(where, u, domain, predicate, at, context.parse_list(where + "/value", u.value))


def parse_boundary(context: Context, where: str, b: BoundaryDocument) -> BoundarySyntax:
    """The syntax of a boundary's value and domain."""
    value = None if b.value is None else context.parse(where + "/value", b.value)
    domain = None
    if b.domain is not None and context.within(where + "/domain", "dims", len(b.domain), context.limits.dims):
        domain = [
            (context.parse(f"{where}/domain/{i}/0", lo), context.parse(f"{where}/domain/{i}/1", extent))
            for i, (lo, extent) in enumerate(b.domain)
        ]
    return BoundarySyntax(where, b, value, domain)


def _expected_types(stage: StageSyntax) -> _Types:
    """The types that are declared; where none is, their number, which an argmin's syntax tells."""
    declared, count = stage.document.type, len(stage.values)
    first = stage.values[0]
    match None if first is None or count > 1 else first.root:
        case ast.Call(func=ast.Name(id="argmin" | "argmax"), args=[ast.GeneratorExp(generators=loops)]):
            count = len(loops) + 1
    if isinstance(declared, list) and len(declared) == count:
        return tuple(TYPES[t] for t in declared)
    return (TYPES[declared] if isinstance(declared, str) else None,) * count


def check_stage(context: Context, stage: StageSyntax) -> Stage | None:
    """The checked stage; None where it has problems. Its readers know its types afterwards."""
    s, where = stage.document, stage.where
    before = len(context.report)
    context.dims(where, s.dims, s.storage)
    variables = {d: Var(d) for d in s.dims}
    values = _values(context, stage, variables)
    types = _settle_types(context, stage, values)
    updates = [_update(context, stage, u, variables, types) for u in stage.updates]
    boundary = None
    if stage.boundary is not None:
        boundary = check_boundary(context, stage.boundary, s.dims, types, is_input=False)
    good_values = tuple(v for v in values if v is not None)
    good_updates = tuple(u for u in updates if u is not None)
    complete = len(good_values) == len(values) and len(good_updates) == len(s.updates or ())
    if len(context.report) > before or not complete:
        return None
    dims = tuple(s.dims)
    storage = tuple(s.storage) if s.storage is not None else dims
    made = Stage(s.name, dims, good_values, good_updates, boundary, storage, s.type is not None)
    context.names.ends.add(made)
    if boundary is not None:  # not before: updates read the stage as it is
        context.names.readables[s.name] = Readable(False, dims, types, endless=True)
    return made


def _values(context: Context, stage: StageSyntax, variables: Mapping[str, Var]) -> list[Expr | None]:
    s, values = stage.document, list[Expr | None]()
    for syntax in stage.values:
        if syntax is None:
            values.append(None)
            continue
        if s.name in syntax.reads and stage.known:
            hint = "write it as an update, or give the two different names"
            message = f"The value of {s.name!r} reads {s.name!r} itself."
            context.problem("self_read", syntax.pointer, message, hint, syntax.reads[s.name])
        built = context.builder(syntax, variables).values()
        _finite(context, syntax, built)
        if len(built) > 1 and len(stage.values) > 1:
            message = "An argmin is a tuple, and this is already one component of a tuple."
            context.problem("tuple_needs_component", syntax.pointer, message, "pick one of its components", 1)
            built = built[:1]
        values += built
    return values


def _finite(context: Context, syntax: Syntax, values: Sequence[Expr | None], domain: Sequence[RVar] = ()) -> None:
    """Checks that nested reductions, and the domain around them, are bounded."""
    if not domain and not any(name in REDUCTIONS for name in syntax.reads):
        return
    stack = [(value, _points(domain, 1)) for value in values if value is not None]
    while stack:
        node, points = stack.pop()
        if isinstance(node, Reduce):
            points = _points(node.domain, points)
        if points > context.limits.reduction_points:
            message = f"The reductions here have more than {context.limits.reduction_points} points."
            context.problem("limit_exceeded", syntax.pointer, message, None, 1)
            return
        stack.extend((child, points) for child in children(node))


def _points(domain: Sequence[RVar], points: int) -> int:
    for r in domain:
        points *= max(int(r.extent.value), 1) if isinstance(r.extent, Const) else 1
    return points


def _settle_types(context: Context, stage: StageSyntax, values: Sequence[Expr | None]) -> _Types:
    """The types of the stage's components: as declared, or as found; checked against each other."""
    s = stage.document
    found = tuple(None if v is None else v.type for v in values)
    if s.type is not None:
        stated = [TYPES[s.type]] * len(found) if isinstance(s.type, str) else [TYPES[t] for t in s.type]
        if len(stated) != len(found):
            message = f"There are {len(stated)} types for {len(found)} values."
            context.problem("type_mismatch", stage.where + "/type", message)
        for k, (want, have) in enumerate(zip(stated, found, strict=False)):
            if have is not None and have != want:
                place = stage.where + "/value" + (f"/{k}" if isinstance(s.value, list) else "")
                message = f"The value of {s.name!r} is {have}, and its type is said to be {want}."
                context.problem("type_mismatch", place, message, f"convert with {want}(...)", 1)
        found = tuple(stated) if len(stated) == len(found) else found
    if stage.known:
        context.names.readables[s.name] = Readable(False, tuple(s.dims), found)
    return found


def _update(
    context: Context, stage: StageSyntax, u: UpdateSyntax, dims: Mapping[str, Var], types: _Types
) -> Update | None:
    before = len(context.report)
    domain = _update_domain(context, u, dims)
    variables = {**dims, **{name: Var(name) for name, _, _ in u.domain}}
    where = None if u.predicate is None else context.builder(u.predicate, variables, domain or ()).predicate()
    at = [None if x is None else context.builder(x, variables, domain or ()).index() for x in u.at]
    rank = len(stage.document.dims)
    if len(at) != rank:
        message = f"{stage.document.name!r} has {rank} dims, and the update has {len(at)} indices."
        context.problem("bad_update", u.where + "/at", message)
    values: list[Expr | None] = []
    for k, x in enumerate(u.values):
        wanted = types[k : k + 1] if len(u.values) == len(types) else ()
        if x is None:
            values.append(None)
            continue
        values += context.builder(x, variables, domain or ()).values(wanted)
        _finite(context, x, values[-1:], domain or ())
    _update_types(context, stage, u, values, types)
    good_at, good_values = [i for i in at if i is not None], [v for v in values if v is not None]
    broken = u.document.where is not None and where is None
    if domain is None or broken or len(good_at) < len(at) or len(good_values) < len(values):
        return None
    update = Update(domain, where, tuple(good_at), tuple(good_values))
    if len(at) == rank and dims.keys().isdisjoint(r.name for r in domain):
        _free_dims(context, stage, u, update)
    return update if len(context.report) == before else None


def _update_domain(context: Context, u: UpdateSyntax, dims: Mapping[str, Var]) -> tuple[RVar, ...] | None:
    domain: list[RVar] = []
    if taken := [name for name, _, _ in u.domain if name in dims]:
        message = f"Domain variables have the names of dims: {', '.join(map(repr, taken))}."
        hint = "give domain variables names of their own, and write these in 'at' and 'value'"
        context.problem("shadowed_name", u.where + pointer("domain", taken[0]), message, hint)
    for name, lo_syntax, extent_syntax in u.domain:
        here = u.where + pointer("domain", name)
        context.reserved(here, name)
        if name in context.names.params:
            context.problem("shadowed_name", here, f"The domain variable {name!r} has the name of a param.")
        lo = None if lo_syntax is None else context.builder(lo_syntax, dims).bound()
        extent = None if extent_syntax is None else context.builder(extent_syntax, dims).bound()
        if isinstance(extent, Const) and extent.value < 1:
            context.problem("empty_range", here + "/1", f"The domain variable {name!r} runs over nothing.")
        if lo is not None and extent is not None:
            domain.append(RVar(name, lo, extent))
    return tuple(domain) if len(domain) == len(u.domain) else None


def _update_types(
    context: Context, stage: StageSyntax, u: UpdateSyntax, values: Sequence[Expr | None], types: _Types
) -> None:
    name = stage.document.name
    if len(values) != len(types):
        message = f"{name!r} has {len(types)} components, and the update has {len(values)} values."
        context.problem("bad_update", u.where + "/value", message)
        return
    for k, (value, type_) in enumerate(zip(values, types, strict=True)):
        if value is not None and type_ is not None and value.type != type_:
            place = u.where + "/value" + (f"/{k}" if isinstance(u.document.value, list) else "")
            message = f"The update's value is {value.type}, and {name!r} is {type_}."
            context.problem("type_mismatch", place, message, f"convert with {type_}(...)", 1)


def _free_dims(context: Context, stage: StageSyntax, u: UpdateSyntax, update: Update) -> None:
    """A dim that an update uses is a loop whose order is free: it has to stay in its own place everywhere."""
    parts = [*update.at, *update.values, *([] if update.where is None else [update.where])]
    nodes = [n for part in parts for n in walk(part)]
    used = {n.name for n in nodes if isinstance(n, Var)}
    own = [n for n in nodes if isinstance(n, Access) and n.name == stage.document.name]
    for k, dim in enumerate(stage.document.dims):
        if dim not in used:
            continue
        if update.at[k] != Var(dim):
            message = f"The update uses the dim {dim!r}, so its index {k + 1} has to be {dim!r}."
            context.problem("bad_update", f"{u.where}/at/{k}", message, "use a domain variable instead of the dim")
        if any(type(n.indices[k]) is not Var or n.indices[k] != Var(dim) for n in own):
            message = f"The update uses the dim {dim!r}, and reads {stage.document.name!r} at other points of it."
            hint = "an order is needed there: use a domain variable instead of the dim"
            context.problem("bad_update", u.where + "/value", message, hint)


def check_boundary(
    context: Context, b: BoundarySyntax, dims: Sequence[str], types: _Types, *, is_input: bool
) -> Boundary | None:
    """The checked boundary of an input or stage of `dims` and `types`; None where it has problems."""
    before, kind, where = len(context.report), b.document.kind, b.where
    if is_input and b.document.domain is not None:
        message = "The domain of an input is the image itself."
        context.problem("bad_boundary", where + "/domain", message, "leave 'domain' out")
    if not is_input and b.document.domain is None:
        message = "The boundary of a stage needs a domain."
        context.problem("bad_boundary", where, message, 'add "domain": [[min, extent], ...]')
    if not dims:
        context.problem("bad_boundary", where, "Without dims there is no boundary.")
    if (kind == "constant") != (b.document.value is not None):
        message = "Kind constant needs a value." if kind == "constant" else f"Kind {kind} has no value."
        context.problem("bad_boundary", where, message)
    value = _boundary_value(context, b, types)
    domain = None if is_input else _boundary_domain(context, b, dims)
    complete = (value is not None) == (b.document.value is not None) and (domain is None) == is_input
    return Boundary(kind, value, domain) if len(context.report) == before and complete else None


def _boundary_value(context: Context, b: BoundarySyntax, types: _Types) -> Expr | None:
    if b.value is None:
        return None
    where, known = b.where + "/value", {t for t in types if t is not None}
    if len(known) > 1:
        message = "One constant cannot extend a tuple of different types."
        context.problem("bad_boundary", where, message, "split the tuple into stages")
        return None
    only = next(iter(known), None)
    values = context.builder(b.value, {}).values((only,))
    value = values[0]
    if value is None or only is None:
        return None
    if len(values) > 1 or any(isinstance(n, Access | Reduce | InputBound | Var) for n in walk(value)):
        context.problem("bad_constant", where, "A boundary value is made of constants and params.", None, 1)
        return None
    if value.type != only:
        context.problem("type_mismatch", where, f"The value is {value.type}, and {only} is extended.", None, 1)
        return None
    return value


def _boundary_domain(context: Context, b: BoundarySyntax, dims: Sequence[str]) -> tuple[tuple[Expr, Expr], ...] | None:
    if b.domain is None:
        return None
    where, variables = b.where + "/domain", {d: Var(d) for d in dims}
    if len(b.domain) != len(dims):
        context.problem("bad_boundary", where, f"There are {len(dims)} dims, and the domain has {len(b.domain)}.")
    pairs: list[tuple[Expr, Expr]] = []
    for k, pair in enumerate(b.domain):
        lo, extent = (None if x is None else context.builder(x, variables).bound() for x in pair)
        if isinstance(extent, Const) and extent.value < 1:
            context.problem("empty_range", f"{where}/{k}/1", "The domain is empty.")
        if lo is not None and extent is not None:
            pairs.append((lo, extent))
    return tuple(pairs) if len(pairs) == len(b.domain) else None
