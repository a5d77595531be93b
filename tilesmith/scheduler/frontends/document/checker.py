"""Document of the right shape -> Pipeline: every name, type, order, estimate; every problem, not only the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tilesmith.scheduler.errors import InternalError
from tilesmith.scheduler.frontends.document.diagnostics import Report
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.document.names import Names, Readable, close_to
from tilesmith.scheduler.frontends.document.schema import InputDocument, ParamDocument
from tilesmith.scheduler.frontends.document.schema_errors import Shape, estimate_of
from tilesmith.scheduler.frontends.document.stage_checker import (
    Context,
    StageSyntax,
    check_boundary,
    check_stage,
    parse_boundary,
    parse_stage,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Param, Pipeline, Stage, Table
from tilesmith.scheduler.ir.pipeline.topological_order import in_order
from tilesmith.scheduler.ir.pipeline.types import TYPES, ScalarType


def check(shape: Shape, limits: Limits, report: Report) -> tuple[Pipeline, bool]:
    """The pipeline that `shape` describes, and whether its canonical document may be beyond the limits.

    Raises DocumentError where `report` has anything, from before or now.
    """
    checker = _Checker(shape, limits, report)
    return checker.run(), checker.context.near_limits


class _Checker:
    def __init__(self, shape: Shape, limits: Limits, report: Report) -> None:
        self.shape, self.limits, self.report = shape, limits, report
        self.params: dict[str, Param] = {}
        self.tables = 0
        self.names = Names(self.params, {}, set(shape.broken))
        self.context = Context(self.names, limits, report, limits.document_nodes, limits.document_bytes)
        self.problem = self.context.problem

    def run(self) -> Pipeline:
        for where, param in self.shape.params:
            self._param(where, param)
        for where, image in self.shape.inputs:
            if not self.context.within(where + "/dims", "dims", len(image.dims), self.limits.dims):
                self.names.broken.add(image.name)
            elif self._declare(where, image.name, callable_=True):
                types, endless = (TYPES[image.type],), image.boundary is not None
                self.names.readables[image.name] = Readable(True, tuple(image.dims), types, endless)
        known = [self._declare(where, s.name, callable_=True, stage=True) for where, s in self.shape.stages]
        parsed = [
            stage
            for (where, s), new in zip(self.shape.stages, known, strict=True)
            if (stage := parse_stage(self.context, where, s, new)) is not None
        ]
        inputs = [self._input(where, image) for where, image in self.shape.inputs]
        stages = [check_stage(self.context, stage) for stage in self._in_order(parsed)]
        self._outputs()
        estimates = self._estimates()
        if self.report:
            raise self.report.error()
        return self._pipeline([i for i in inputs if i is not None], [s for s in stages if s is not None], estimates)

    def _pipeline(self, inputs: Sequence[Input], stages: Sequence[Stage], estimates: _Estimates) -> Pipeline:
        if len(stages) != len(self.shape.stages) or len(inputs) != len(self.shape.inputs):
            raise InternalError("a document without problems has a part that could not be built")
        outputs = tuple(name for _, name in self.shape.outputs)
        tables = [(i.name, i.table.region) for i in inputs if i.table is not None]
        params = tuple(self.params.values())
        sizes = tuple(sorted((dict(estimates) | dict(tables)).items()))
        return Pipeline(self.shape.name, self.shape.doc, params, tuple(inputs), tuple(stages), outputs, sizes)

    # Declarations

    def _declare(self, where: str, name: str, *, callable_: bool, stage: bool = False) -> bool:
        """True if `name` is new: inputs, stages and params share one space of names."""
        self.context.reserved(where + "/name", name, callable_=callable_)
        if name in self.names.readables or name in self.params:
            self.problem("duplicate_name", where + "/name", f"{name!r} is declared twice.")
            return False
        if stage:
            self.names.readables[name] = Readable(False, (), ())  # until it is parsed
        return True

    def _param(self, where: str, p: ParamDocument) -> None:
        type_ = TYPES[p.type]
        settled: dict[str, int | float | bool | None] = {"default": None, "min": None, "max": None}
        for key, value in (("default", p.default), ("min", p.min), ("max", p.max)):
            if value is None:
                continue
            if key != "default" and type_.kind == "bool":
                self.problem("bad_param", f"{where}/{key}", f"A bool has no {key}.")
            elif not _is_of(value, type_):
                self.problem("bad_param", f"{where}/{key}", f"The {key} of {p.name!r} is not a value of {type_}.")
            else:
                settled[key] = float(value) if type_.is_float else value
        lo, default, hi = settled["min"], settled["default"], settled["max"]
        if lo is not None and hi is not None and lo > hi:
            self.problem("bad_param", f"{where}/min", f"The min of {p.name!r} is above its max.")
            lo = hi = None
        elif default is not None and ((lo is not None and default < lo) or (hi is not None and default > hi)):
            self.problem("bad_param", f"{where}/default", f"The default of {p.name!r} is not between its min and max.")
        if self._declare(where, p.name, callable_=False):
            self.params[p.name] = Param(p.name, type_, default, lo, hi)

    def _input(self, where: str, image: InputDocument) -> Input | None:
        if len(image.dims) > self.limits.dims:
            return None  # reported with its declaration
        self.context.dims(where, image.dims, image.storage)
        type_, boundary = TYPES[image.type], None
        if image.boundary is not None:
            parsed = parse_boundary(self.context, where + "/boundary", image.boundary)
            boundary = check_boundary(self.context, parsed, image.dims, (type_,), is_input=True)
        dims = tuple(image.dims)
        storage = tuple(image.storage) if image.storage is not None else dims
        return Input(image.name, type_, dims, boundary, storage, self._table(where, image, type_))

    def _table(self, where: str, image: InputDocument, type_: ScalarType) -> Table | None:
        """The values of an input, where the document has them."""
        if image.values is None and image.region is None:
            return None
        if image.values is None or image.region is None:
            missing, other = ("values", "region") if image.values is None else ("region", "values")
            self.problem("bad_table", where, f"{image.name!r} has {other} and no {missing}: a table has both.")
            return None
        values, region, count = image.values, image.region, len(image.values)
        self.tables += count
        if not self.context.within(f"{where}/values", "table_values", self.tables, self.limits.table_values):
            return None
        if len(region) != len(image.dims):
            message = f"{image.name!r} has {len(image.dims)} dims, and its region has {len(region)}."
            self.problem("bad_table", f"{where}/region", message)
            return None
        self._spans(f"{where}/region", region)
        points = prod(max(0, extent) for _, extent in region)
        if points != count:
            self.problem(
                "bad_table", f"{where}/values", f"The region has {points} points, and there are {count} values."
            )
            return None
        wrong = next((n for n, v in enumerate(values) if not _is_of(v, type_)), None)
        if wrong is not None:
            self.problem("bad_table", f"{where}/values/{wrong}", f"{values[wrong]} is not a value of {type_}.")
            return None
        kept = tuple(float(type_.numpy.type(v)) for v in values) if type_.is_float else tuple(values)
        return Table(tuple((lo, extent) for lo, extent in region), kept)

    # Order

    def _in_order(self, stages: Sequence[StageSyntax]) -> list[StageSyntax]:
        """The stages, producers first, ties by name; those on cycles last, after their cycles are reported."""
        known = {s.document.name: s for s in stages if s.known}
        needs = {name: {r for r in s.reads() if r in known and r != name} for name, s in known.items()}
        order = in_order(needs)
        if len(order) < len(known):
            self._cycles(known, needs, set(order))
            order += sorted(set(known) - set(order))
        return [known[name] for name in order] + [s for s in stages if not s.known]

    def _cycles(self, known: Mapping[str, StageSyntax], needs: Mapping[str, set[str]], fine: set[str]) -> None:
        import networkx as nx  # slow to import, and only needed here

        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_edges_from((n, r) for n in sorted(needs) if n not in fine for r in sorted(needs[n]) if r not in fine)
        for component in nx.strongly_connected_components(graph):
            if len(component) == 1:
                continue
            members = sorted(component)
            first = min(component, key=lambda n: int(known[n].where.rpartition("/")[2]))
            shown = ", ".join(members[:8]) + (", ..." if len(members) > 8 else "")
            message = f"These stages need each other: {shown}."
            self.problem("cycle", known[first].where, message, "a stage may read itself, in its updates only")

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
            elif owner is None:
                if name not in self.names.broken:
                    stages = [n for n, r in self.names.readables.items() if not r.is_input]
                    self.problem("unknown_output", where, f"No stage is called {name!r}.", close_to(name, stages))
            elif owner.is_input:
                self.problem("unknown_output", where, f"{name!r} is an input, and outputs are stages.")
            elif name not in estimated and not self.shape.guessed:
                hint = f"add {estimate_of(name, owner.dims)}, the size that you expect"
                self.problem("missing_estimate", "/estimates", f"The output {name!r} has no estimate.", hint)
            seen.add(name)

    def _estimates(self) -> _Estimates:
        result = []
        for where, name, spans in self.shape.estimates:
            owner = self.names.readables.get(name)
            if owner is None or name in self.names.broken:
                if name not in self.names.broken:
                    hint = close_to(name, self.names.readables)
                    self.problem("unknown_estimate", where, f"Nothing is called {name!r}.", hint)
                continue
            if len(spans) != len(owner.dims):
                message = f"{name!r} has {len(owner.dims)} dims, and its estimate has {len(spans)}."
                self.problem("bad_estimate", where, message)
                continue
            self._spans(where, spans)
            result.append((name, tuple((lo, extent) for lo, extent in spans)))
        return result

    def _spans(self, where: str, spans: Sequence[Sequence[int]]) -> None:
        for k, (lo, extent) in enumerate(spans):
            if not 1 <= extent <= self.limits.extent:
                message = f"An extent is from 1 to {self.limits.extent}."
                self.problem("bad_estimate", f"{where}/{k}/1", message)
            if abs(lo) > self.limits.coordinate:
                message = f"A min is from -{self.limits.coordinate} to {self.limits.coordinate}."
                self.problem("bad_estimate", f"{where}/{k}/0", message)


_Estimates = list[tuple[str, tuple[tuple[int, int], ...]]]


def _is_of(value: int | float | bool, type_: ScalarType) -> bool:
    if type_.kind == "bool" or isinstance(value, bool):
        return type_.kind == "bool" and isinstance(value, bool)
    if type_.is_float:
        return -type_.largest <= value <= type_.largest
    return isinstance(value, int) and type_.min <= value <= type_.max
