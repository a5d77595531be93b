"""Document of the right shape -> Pipeline: every name, type, order, estimate; every problem, not only the first."""

from __future__ import annotations

import heapq
import keyword
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from scheduler.errors import InternalError, Problem
from scheduler.lang.build import Builder
from scheduler.lang.expr import Access, Const, Expr, InputBound, Reduce, RVar, Var, walk
from scheduler.lang.functions import FUNCTIONS
from scheduler.lang.limits import Limits
from scheduler.lang.models import BoundaryDocument, InputDocument, ParamDocument, StageDocument, UpdateDocument
from scheduler.lang.names import Names, Readable, close_to
from scheduler.lang.parse import REDUCTIONS, Syntax, parse
from scheduler.lang.pipeline import Boundary, Input, Param, Pipeline, Stage, Update
from scheduler.lang.shape import Shape, pointer
from scheduler.lang.types import INT32, TYPES, ScalarType

_CALLABLE = frozenset(FUNCTIONS) | REDUCTIONS | {"range"}
_Text = str | int | float


@dataclass(slots=True)
class _Update:
    """An update's document with its syntax."""

    where: str
    document: UpdateDocument
    domain: list[tuple[str, Syntax | None, Syntax | None]]
    predicate: Syntax | None
    at: list[Syntax | None]
    values: list[Syntax | None]


@dataclass(slots=True)
class _Boundary:
    document: BoundaryDocument
    value: Syntax | None
    domain: list[tuple[Syntax | None, Syntax | None]] | None


@dataclass(slots=True)
class _Stage:
    """A stage's document with its syntax. `known` is False for the second of two stages of one name."""

    where: str
    document: StageDocument
    known: bool
    values: list[Syntax | None] = field(default_factory=list)
    updates: list[_Update] = field(default_factory=list)
    boundary: _Boundary | None = None

    def syntaxes(self) -> Iterable[Syntax]:
        """All of the stage's expressions but its value."""
        parts: list[Syntax | None] = []
        for u in self.updates:
            parts += [u.predicate, *u.at, *u.values]
            for _, lo, extent in u.domain:
                parts += [lo, extent]
        if self.boundary is not None:
            parts.append(self.boundary.value)
            for pair in self.boundary.domain or ():
                parts += pair
        return (p for p in parts if p is not None)


def check(shape: Shape, limits: Limits, problems: list[Problem]) -> Pipeline | None:
    """The pipeline that `shape` describes; None where `problems` (those from before, too) has anything."""
    return _Checker(shape, limits, problems).run()


class _Checker:
    def __init__(self, shape: Shape, limits: Limits, problems: list[Problem]) -> None:
        self.shape, self.limits, self.problems = shape, limits, problems
        self.params: dict[str, Param] = {}
        self.names = Names(self.params, {}, set(shape.broken))
        self.nodes_left = limits.document_nodes
        self.chars_left = limits.document_bytes

    def problem(self, code: str, where: str, message: str, hint: str | None = None, column: int | None = None) -> None:
        self.problems.append(Problem(code, where, message, hint, column))

    def run(self) -> Pipeline | None:
        for where, param in self.shape.params:
            self._param(where, param)
        for where, image in self.shape.inputs:
            if self._declare(where, image.name, callable_=True):
                self.names.readables[image.name] = Readable(True, tuple(image.dims), (TYPES[image.type],))
        parsed = [self._parse_stage(where, s) for where, s in self.shape.stages]
        inputs = [self._input(where, image) for where, image in self.shape.inputs]
        built: dict[str, Stage | None] = {}
        for stage in self._in_order(parsed):
            built[stage.document.name] = self._stage(stage)
        self._outputs()
        estimates = self._estimates()
        if self.problems:
            return None
        stages = [s for s in built.values() if s is not None]
        good = [i for i in inputs if i is not None]
        if len(stages) != len(parsed) or len(good) != len(inputs):
            raise InternalError("a document without problems has a stage that could not be built")
        return Pipeline(
            self.shape.name, self.shape.doc, tuple(self.params.values()), tuple(good), tuple(stages),
            tuple(name for _, name in self.shape.outputs), tuple(sorted(estimates)),
        )  # fmt: skip

    # Declarations

    def _declare(self, where: str, name: str, *, callable_: bool) -> bool:
        """Whether `name` may be declared: inputs, stages and params share one space of names."""
        self._reserved(where + "/name", name, callable_=callable_)
        if name in self.names.readables or name in self.params:
            self.problem("duplicate_name", where + "/name", f"{name!r} is declared twice.")
            return False
        return True

    def _reserved(self, where: str, name: str, *, callable_: bool = False) -> None:
        if keyword.iskeyword(name) or (callable_ and name in _CALLABLE):
            what = "a function" if callable_ and name in _CALLABLE else "a keyword"
            self.problem("reserved_name", where, f"{name!r} is {what} of the expression language.", f"e.g. {name}_")

    def _param(self, where: str, p: ParamDocument) -> None:
        type = TYPES[p.type]
        settled: dict[str, int | float | bool | None] = {"default": None, "min": None, "max": None}
        for key, value in (("default", p.default), ("min", p.min), ("max", p.max)):
            if value is None:
                continue
            if key != "default" and type.kind == "bool":
                self.problem("bad_param", f"{where}/{key}", f"A bool has no {key}.")
            elif not _is_of(value, type):
                self.problem("bad_param", f"{where}/{key}", f"The {key} of {p.name!r} is not a value of {type}.")
            else:
                settled[key] = float(value) if type.is_float else value
        lo, default, hi = settled["min"], settled["default"], settled["max"]
        if lo is not None and hi is not None and lo > hi:
            self.problem("bad_param", f"{where}/min", f"The min of {p.name!r} is above its max.")
        elif default is not None and ((lo is not None and default < lo) or (hi is not None and default > hi)):
            self.problem("bad_param", f"{where}/default", f"The default of {p.name!r} is not between its min and max.")
        if self._declare(where, p.name, callable_=False):
            self.params[p.name] = Param(p.name, type, default, lo, hi)

    def _dims(self, where: str, dims: Sequence[str], storage: Sequence[str] | None) -> None:
        if len(dims) > self.limits.dims:
            message = f"There are {len(dims)} dims, {self.limits.dims} are allowed."
            self.problem("limit_exceeded", where + "/dims", message)
        for k, dim in enumerate(dims):
            here = f"{where}/dims/{k}"
            self._reserved(here, dim)
            if dim in dims[:k]:
                self.problem("duplicate_name", here, f"The dim {dim!r} is there twice.")
            if dim in self.params:
                self.problem("shadowed_name", here, f"The dim {dim!r} has the name of a param.")
        if storage is not None and sorted(storage) != sorted(dims):
            message = f"The storage order has to name each dim once: {', '.join(dims) or 'none'}."
            self.problem("bad_storage", where + "/storage", message)

    def _input(self, where: str, image: InputDocument) -> Input | None:
        self._dims(where, image.dims, image.storage)
        type, boundary = TYPES[image.type], None
        if image.boundary is not None:
            parsed = self._parse_boundary(where + "/boundary", image.boundary, None)
            boundary = self._boundary(where + "/boundary", parsed, image.dims, None, (type,))
            if boundary is None:
                return None
        dims = tuple(image.dims)
        return Input(image.name, type, dims, boundary, tuple(image.storage) if image.storage is not None else dims)

    # Syntax

    def _parse(self, where: str, text: _Text) -> Syntax | None:
        if not isinstance(text, str):
            text = repr(text) if not isinstance(text, int) or abs(text) < 1 << 70 else "1" * 40
        self.chars_left -= len(text)
        if self.nodes_left < 0 or self.chars_left < 0:
            return None  # said once, in run
        syntax = parse(text, where, self.limits, self.problems)
        self.nodes_left -= len(syntax.order) if syntax is not None else 0
        if self.nodes_left < 0 or self.chars_left < 0:
            message = "All expressions together are larger than the limit."
            self.problem("limit_exceeded", "/stages", message, f"at most {self.limits.document_nodes} parts")
            return None
        return syntax

    def _parse_list(self, where: str, texts: _Text | Sequence[_Text]) -> list[Syntax | None]:
        if isinstance(texts, str | int | float):
            return [self._parse(where, texts)]
        return [self._parse(f"{where}/{i}", text) for i, text in enumerate(texts)]

    def _parse_boundary(self, where: str, b: BoundaryDocument, owner: str | None) -> _Boundary:
        value = None if b.value is None else self._parse(where + "/value", b.value)
        domain = None
        if b.domain is not None:
            domain = [
                (self._parse(f"{where}/domain/{i}/0", lo), self._parse(f"{where}/domain/{i}/1", extent))
                for i, (lo, extent) in enumerate(b.domain)
            ]
        return _Boundary(b, value, domain)

    def _parse_stage(self, where: str, s: StageDocument) -> _Stage:
        stage = _Stage(where, s, self._declare(where, s.name, callable_=True))
        stage.values = self._parse_list(where + "/value", s.value)
        if stage.known:
            self.names.readables[s.name] = Readable(False, tuple(s.dims), self._declared_types(stage))
        for i, u in enumerate(s.updates or ()):
            here = f"{where}/updates/{i}"
            domain = [
                (name, *(self._parse(f"{here}{pointer('domain', name)}/{k}", pair[k]) for k in (0, 1)))
                for name, pair in u.domain.items()
            ]
            predicate = None if u.where is None else self._parse(here + "/where", u.where)
            at = self._parse_list(here + "/at", u.at)
            stage.updates.append(_Update(here, u, domain, predicate, at, self._parse_list(here + "/value", u.value)))  # type: ignore[arg-type]
        if s.boundary is not None:
            stage.boundary = self._parse_boundary(where + "/boundary", s.boundary, s.name)
        return stage

    @staticmethod
    def _declared_types(stage: _Stage) -> tuple[ScalarType | None, ...]:
        declared, count = stage.document.type, max(len(stage.values), 1)
        if isinstance(declared, str):
            return (TYPES[declared],) * count
        if declared is not None:
            return tuple(TYPES[t] for t in declared)
        root = stage.values[0].root if len(stage.values) == 1 and stage.values[0] is not None else None
        return (None,) * (_argmin_components(root) or count)

    # Order

    def _in_order(self, stages: Sequence[_Stage]) -> list[_Stage]:
        """The stages, producers first, ties by name; those on cycles last, after their cycles are reported."""
        known = {s.document.name: s for s in stages if s.known}
        needs: dict[str, set[str]] = {}
        for s in stages:
            name = s.document.name
            reads = {r for v in s.values if v is not None for r in v.reads} | {r for x in s.syntaxes() for r in x.reads}
            if s.known:
                needs[name] = {r for r in reads if r in known and r != name}
        sorter = TopologicalSorter(needs)
        cyclic = False
        try:
            sorter.prepare()
        except CycleError:
            cyclic = True
        order: list[str] = []
        ready = list(sorter.get_ready())
        heapq.heapify(ready)
        while ready:
            order.append(heapq.heappop(ready))
            sorter.done(order[-1])
            for name in sorter.get_ready():
                heapq.heappush(ready, name)
        if cyclic:
            self._cycles(known, needs, set(order))
            order += sorted(set(known) - set(order))
        return [known[name] for name in order] + [s for s in stages if not s.known]

    def _cycles(self, known: Mapping[str, _Stage], needs: Mapping[str, set[str]], fine: set[str]) -> None:
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_edges_from((n, r) for n in sorted(needs) if n not in fine for r in sorted(needs[n]) if r not in fine)
        for component in nx.strongly_connected_components(graph):
            if len(component) == 1:
                continue
            members = sorted(component)
            first = min(component, key=lambda n: int(known[n].where.rpartition("/")[2]))
            shown = ", ".join(members[:8]) + (", ..." if len(members) > 8 else "")
            message = f"These stages need each other: {shown}."
            self.problem("cycle", known[first].where, message, "a stage may read itself in its updates only")

    # Stages

    def _builder(self, syntax: Syntax, variables: Mapping[str, Var]) -> Builder:
        return Builder(syntax, self.names, variables, self.limits, self.problems)

    def _stage(self, stage: _Stage) -> Stage | None:
        s, where = stage.document, stage.where
        before = len(self.problems)
        self._dims(where, s.dims, s.storage)
        variables = {d: Var(d) for d in s.dims}
        values = self._values(stage, variables)
        types = self._settle_types(stage, values)
        if len(s.updates or ()) > self.limits.updates:
            message = f"There are {len(s.updates or ())} updates, {self.limits.updates} are allowed."
            self.problem("limit_exceeded", where + "/updates", message)
        updates = [self._update(stage, u, variables, types) for u in stage.updates]
        boundary = None
        if stage.boundary is not None:
            boundary = self._boundary(where + "/boundary", stage.boundary, s.dims, s.name, types)
        good_values = tuple(v for v in values if v is not None)
        good_updates = tuple(u for u in updates if u is not None)
        if len(self.problems) > before or len(good_values) < len(values) or len(good_updates) < len(updates):
            return None
        dims = tuple(s.dims)
        storage = tuple(s.storage) if s.storage is not None else dims
        return Stage(s.name, dims, good_values, good_updates, boundary, storage, s.type is not None)

    def _values(self, stage: _Stage, variables: Mapping[str, Var]) -> list[Expr | None]:
        s, values = stage.document, list[Expr | None]()
        if not stage.values or len(stage.values) > self.limits.components:
            message = f"A stage has 1 to {self.limits.components} values, not {len(stage.values)}."
            self.problem("limit_exceeded", stage.where + "/value", message)
        for syntax in stage.values:
            if syntax is None:
                values.append(None)
                continue
            if s.name in syntax.reads and stage.known:
                hint = "write it as an update, or give the two different names"
                message = f"The value of {s.name!r} reads {s.name!r} itself."
                self.problem("self_read", syntax.pointer, message, hint, syntax.reads[s.name])
            built = self._builder(syntax, variables).values()
            if len(built) > 1 and len(stage.values) > 1:
                message = "An argmin is a tuple, and this is already one component of a tuple."
                self.problem("tuple_needs_component", syntax.pointer, message, "pick one of its components", 1)
                built = built[:1]
            values += built
        return values

    def _settle_types(self, stage: _Stage, values: Sequence[Expr | None]) -> tuple[ScalarType | None, ...]:
        """The types of the stage's components: as declared, or as found; checked against each other."""
        found = tuple(None if v is None else v.type for v in values)
        declared = stage.document.type
        if declared is not None:
            stated = [TYPES[declared]] * len(found) if isinstance(declared, str) else [TYPES[t] for t in declared]
            if len(stated) != len(found):
                message = f"There are {len(stated)} types for {len(found)} values."
                self.problem("type_mismatch", stage.where + "/type", message)
            for k, (want, have) in enumerate(zip(stated, found, strict=False)):
                if have is not None and have != want:
                    place = stage.where + "/value" + (f"/{k}" if isinstance(stage.document.value, list) else "")
                    message = f"The value of {stage.document.name!r} is {have}, and its type is said to be {want}."
                    self.problem("type_mismatch", place, message, f"convert with {want}(...)", 1)
            found = tuple(stated) if len(stated) == len(found) else found
        if stage.known:
            name = stage.document.name
            self.names.readables[name] = Readable(False, tuple(stage.document.dims), found)
        return found

    # Updates

    def _update(
        self, stage: _Stage, u: _Update, dims: Mapping[str, Var], types: Sequence[ScalarType | None]
    ) -> Update | None:
        domain = self._update_domain(u, dims)
        variables = {**dims, **{name: Var(name) for name, _, _ in u.domain}}
        where = None if u.predicate is None else self._builder(u.predicate, variables).predicate()
        at = [None if x is None else self._builder(x, variables).index() for x in u.at]
        if len(at) != len(dims):
            message = f"{stage.document.name!r} has {len(dims)} dims, and the update has {len(at)} indices."
            self.problem("bad_update", u.where + "/at", message)
        values: list[Expr | None] = []
        for k, x in enumerate(u.values):
            wanted = (types[k],) if len(u.values) == len(types) else ()
            values += (None,) if x is None else self._builder(x, variables).values(wanted)
        self._update_types(stage, u, values, types)
        good_at, good_values = [i for i in at if i is not None], [v for v in values if v is not None]
        broken = u.document.where is not None and where is None
        if domain is None or broken or len(good_at) < len(at) or len(good_values) < len(values):
            return None
        update = Update(domain, where, tuple(good_at), tuple(good_values))
        if len(at) == len(dims):
            self._free_dims(stage, u, update)
        return update

    def _update_domain(self, u: _Update, dims: Mapping[str, Var]) -> tuple[RVar, ...] | None:
        if len(u.domain) > self.limits.domain_variables:
            message = f"A domain has at most {self.limits.domain_variables} variables."
            self.problem("limit_exceeded", u.where + "/domain", message)
        domain: list[RVar] = []
        for name, lo, extent in u.domain:
            here = u.where + pointer("domain", name)
            self._reserved(here, name)
            if name in dims or name in self.params:
                self.problem("shadowed_name", here, f"The domain variable {name!r} has a name that is taken.")
            ends = [None if x is None else self._builder(x, dims).bound() for x in (lo, extent)]
            if isinstance(ends[1], Const) and ends[1].value < 1:
                self.problem("empty_range", here + "/1", f"The domain variable {name!r} runs over nothing.")
            if ends[0] is not None and ends[1] is not None:
                domain.append(RVar(name, ends[0], ends[1]))
        return tuple(domain) if len(domain) == len(u.domain) else None

    def _update_types(
        self, stage: _Stage, u: _Update, values: Sequence[Expr | None], types: Sequence[ScalarType | None]
    ) -> None:
        name = stage.document.name
        if len(values) != len(types):
            message = f"{name!r} has {len(types)} components, and the update has {len(values)} values."
            self.problem("bad_update", u.where + "/value", message)
            return
        for k, (value, type) in enumerate(zip(values, types, strict=True)):
            if value is not None and type is not None and value.type != type:
                place = u.where + "/value" + (f"/{k}" if isinstance(u.document.value, list) else "")
                message = f"The update's value is {value.type}, and {name!r} is {type}."
                self.problem("type_mismatch", place, message, f"convert with {type}(...)", 1)

    def _free_dims(self, stage: _Stage, u: _Update, update: Update) -> None:
        """A dim that an update uses is a loop whose order is free: it has to stay in its own place everywhere."""
        parts = [*update.at, *update.values, *([] if update.where is None else [update.where])]
        nodes = [n for part in parts for n in walk(part)]
        used = {n.name for n in nodes if isinstance(n, Var)}
        for k, dim in enumerate(stage.document.dims):
            if dim not in used:
                continue
            if update.at[k] != Var(dim):
                message = f"The update uses the dim {dim!r}, so its index {k + 1} has to be {dim!r}."
                self.problem("bad_update", f"{u.where}/at/{k}", message, "use a domain variable instead of the dim")
            reads = (n for n in nodes if isinstance(n, Access) and n.name == stage.document.name)
            if any(n.indices[k] != Var(dim) for n in reads):
                message = f"The update uses the dim {dim!r}, and reads {stage.document.name!r} at other points of it."
                hint = "an order is needed there: use a domain variable instead of the dim"
                self.problem("bad_update", u.where + "/value", message, hint)

    # Boundaries

    def _boundary(
        self, where: str, b: _Boundary, dims: Sequence[str], stage: str | None, types: Sequence[ScalarType | None]
    ) -> Boundary | None:
        before, kind = len(self.problems), b.document.kind
        if stage is None and b.document.domain is not None:
            message = "The domain of an input is the image itself."
            self.problem("bad_boundary", where + "/domain", message, "leave 'domain' out")
        if stage is not None and b.document.domain is None:
            self.problem(
                "bad_boundary", where, "The boundary of a stage needs a domain.", 'add "domain": [[min, extent]]'
            )
        if not dims:
            self.problem("bad_boundary", where, "Without dims there is no boundary.")
        if (kind == "constant") != (b.document.value is not None):
            message = "Kind constant needs a value." if kind == "constant" else f"Kind {kind} has no value."
            self.problem("bad_boundary", where, message)
        value = self._boundary_value(where + "/value", b, types)
        domain = self._boundary_domain(where + "/domain", b, dims) if stage is not None else None
        complete = (value is not None) == (b.document.value is not None) and (domain is not None) == (stage is not None)
        return Boundary(kind, value, domain) if len(self.problems) == before and complete else None

    def _boundary_value(self, where: str, b: _Boundary, types: Sequence[ScalarType | None]) -> Expr | None:
        if b.value is None:
            return None
        known = {t for t in types if t is not None}
        if len(known) > 1:
            message = "One constant cannot extend a tuple of different types."
            self.problem("bad_boundary", where, message, "split the tuple into stages")
            return None
        only = next(iter(known), None)
        values = self._builder(b.value, {}).values((only,))
        value = values[0] if len(values) == 1 else None
        if value is None or only is None:
            return None
        if any(isinstance(n, Access | Reduce | InputBound | Var) for n in walk(value)):
            self.problem("bad_constant", where, "A boundary value is made of constants and params.")
            return None
        if value.type != only:
            self.problem("type_mismatch", where, f"The value is {value.type}, and {only} is extended.", None, 1)
            return None
        return value

    def _boundary_domain(self, where: str, b: _Boundary, dims: Sequence[str]) -> tuple[tuple[Expr, Expr], ...] | None:
        if b.domain is None:
            return None
        if len(b.domain) != len(dims):
            message = f"There are {len(dims)} dims, and the domain has {len(b.domain)}."
            self.problem("bad_boundary", where, message)
        pairs: list[tuple[Expr, Expr]] = []
        for k, pair in enumerate(b.domain):
            lo, extent = (None if x is None else self._builder(x, {d: Var(d) for d in dims}).bound() for x in pair)
            if isinstance(extent, Const) and extent.value < 1:
                self.problem("empty_range", f"{where}/{k}/1", "The domain is empty.")
            if lo is not None and extent is not None:
                pairs.append((lo, extent))
        return tuple(pairs) if len(pairs) == len(b.domain) else None

    # Outputs and estimates

    def _outputs(self) -> None:
        estimated = {name for _, name, _ in self.shape.estimates}
        seen: set[str] = set()
        if not self.shape.outputs and not self.shape.guessed:
            self.problem("bad_value", "/outputs", "A pipeline has at least one output.")
        for where, name in self.shape.outputs:
            owner = self.names.readables.get(name)
            if name in seen:
                self.problem("duplicate_name", where, f"The output {name!r} is there twice.")
            elif owner is None and name not in self.names.broken:
                stages = [n for n, r in self.names.readables.items() if not r.is_input]
                self.problem("unknown_output", where, f"No stage is called {name!r}.", close_to(name, stages))
            elif owner is not None and owner.is_input:
                self.problem("unknown_output", where, f"{name!r} is an input, and outputs are stages.")
            elif name not in estimated and not self.shape.guessed:
                hint = f'add "{name}": [[min, extent], ...]'
                self.problem("missing_estimate", "/estimates", f"The output {name!r} has no estimate.", hint)
            seen.add(name)

    def _estimates(self) -> list[tuple[str, tuple[tuple[int, int], ...]]]:
        result = []
        for where, name, spans in self.shape.estimates:
            owner = self.names.readables.get(name)
            if owner is None:
                if name not in self.names.broken:
                    hint = close_to(name, self.names.readables)
                    self.problem("unknown_estimate", where, f"Nothing is called {name!r}.", hint)
                continue
            if len(spans) != len(owner.dims):
                message = f"{name!r} has {len(owner.dims)} dims, and its estimate has {len(spans)}."
                self.problem("bad_estimate", where, message)
            for k, (lo, extent) in enumerate(spans):
                if not 1 <= extent <= self.limits.extent:
                    message = f"An extent is from 1 to {self.limits.extent}."
                    self.problem("bad_estimate", f"{where}/{k}/1", message)
                if abs(lo) > self.limits.coordinate:
                    message = f"A min is from -{self.limits.coordinate} to {self.limits.coordinate}."
                    self.problem("bad_estimate", f"{where}/{k}/0", message)
            result.append((name, tuple((lo, extent) for lo, extent in spans)))
        return result


def _is_of(value: int | float | bool, type: ScalarType) -> bool:
    if type.kind == "bool" or isinstance(value, bool):
        return type.kind == "bool" and isinstance(value, bool)
    if type.is_float:
        largest = 3.4028234663852886e38 if type.bits == 32 else 1.7976931348623157e308
        return -largest <= value <= largest
    return isinstance(value, int) and type.min <= value <= type.max


def _argmin_components(root: object) -> int | None:
    """The number of components of an argmin that is a stage's whole value, from its syntax alone."""
    import ast

    match root:
        case ast.Call(func=ast.Name(id="argmin" | "argmax"), args=[ast.GeneratorExp(generators=loops)]):
            return len(loops) + 1
    return None


__all__ = ["INT32", "check"]
