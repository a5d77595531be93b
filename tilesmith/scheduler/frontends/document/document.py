"""Documents: text -> document -> Pipeline, and a Pipeline's document in canonical form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tilesmith.scheduler.frontends.document.checker import check
from tilesmith.scheduler.frontends.document.diagnostics import Report
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.document.safe_loader import read_json, read_yaml, sniff_yaml
from tilesmith.scheduler.frontends.document.schema_errors import shape
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import Const, Expr, RVar
from tilesmith.scheduler.ir.pipeline.pipeline import Boundary, Input, Param, Pipeline, Stage, Update
from tilesmith.scheduler.ir.pipeline.printer import to_text, values_to_text
from tilesmith.scheduler.ir.pipeline.types import ScalarType

_DEFAULT = Limits()


def load(document: object, limits: Limits = _DEFAULT) -> Pipeline:
    """The checked pipeline of `document` (JSON values: dicts, lists, strings, numbers).

    Raises DocumentError with every problem found, in document order (the first `limits.problems` of them).
    """
    report = Report(limits.problems)
    pipeline, near_limits = check(shape(document, limits, report), limits, report)
    if near_limits:  # what is accepted has to be accepted again in its canonical form, which is longer
        again = Report(limits.problems)
        check(shape(to_document(pipeline), limits, again), limits, again)
    return pipeline


def load_text(text: str | bytes, limits: Limits = _DEFAULT, yaml: bool | None = None) -> Pipeline:
    """The checked pipeline of JSON or YAML text; `yaml` None: JSON if it begins like a JSON object.

    Raises DocumentError, for text that is neither, too.
    """
    as_yaml = sniff_yaml(text) if yaml is None else yaml
    return load(read_yaml(text, limits) if as_yaml else read_json(text, limits), limits)


def to_document(pipeline: Pipeline) -> dict[str, Any]:
    """The canonical document: stages in topological order, expressions in canonical text, nothing that is default.

    `load(to_document(p)) == p`, and what it returns is a fixed point of load and to_document.
    """
    tuples = frozenset(s.name for s in pipeline.stages if len(s.values) > 1)
    document: dict[str, Any] = {"format": 1, "name": pipeline.name}
    if pipeline.doc:
        document["doc"] = pipeline.doc
    if pipeline.params:
        document["params"] = [_param(p) for p in pipeline.params]
    document["inputs"] = [_input(i, tuples) for i in pipeline.inputs]
    document["stages"] = [_stage(s, tuples) for s in pipeline.stages]
    document["outputs"] = list(pipeline.outputs)
    tables = {i.name for i in pipeline.inputs if i.table is not None}
    document["estimates"] = {
        name: [list(span) for span in spans] for name, spans in pipeline.estimates if name not in tables
    }
    return document


def canonical_json(pipeline: Pipeline) -> str:
    """The canonical document as compact ASCII JSON: equal pipelines give equal text.

    Keys have a fixed order and are not sorted: the order of an update's domain has a meaning.
    """
    return canonical_text(to_document(pipeline))


def canonical_text(document: dict[str, Any]) -> str:
    """A canonical document as compact ASCII JSON."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _param(p: Param) -> dict[str, Any]:
    ends = (("default", p.default), ("min", p.min), ("max", p.max))
    return {"name": p.name, "type": p.type.name, **{k: v for k, v in ends if v is not None}}


def _input(i: Input, tuples: frozenset[str]) -> dict[str, Any]:
    document: dict[str, Any] = {"name": i.name, "type": i.type.name, "dims": list(i.dims)}
    if i.boundary is not None:
        document["boundary"] = _boundary(i.boundary, i.type)
    if i.storage != i.dims:
        document["storage"] = list(i.storage)
    if i.table is not None:
        document |= {"region": [list(span) for span in i.table.region], "values": list(i.table.values)}
    return document


def _stage(s: Stage, tuples: frozenset[str]) -> dict[str, Any]:
    document: dict[str, Any] = {"name": s.name, "dims": list(s.dims), "value": _values(s, tuples)}
    if s.typed:
        names = [t.name for t in s.types]
        document["type"] = names[0] if len(set(names)) == 1 else names
    if s.updates:
        document["updates"] = [_update(u, s.types, tuples) for u in s.updates]
    if s.boundary is not None:
        document["boundary"] = _boundary(s.boundary, s.types[0])
    if s.storage != s.dims:
        document["storage"] = list(s.storage)
    return document


def _values(s: Stage, tuples: frozenset[str]) -> str | list[str]:
    """The text of a stage's values: found once, as keys and answers ask for it."""
    known = _known_values(s)
    if tuples not in known:
        known[tuples] = values_to_text(s.values, (), tuples)
    found = known[tuples]
    return found if isinstance(found, str) else list(found)


@once
def _known_values(_stage: Stage) -> dict[frozenset[str], str | list[str]]:
    return {}


def _update(u: Update, types: Sequence[ScalarType], tuples: frozenset[str]) -> dict[str, Any]:
    document: dict[str, Any] = {"domain": {r.name: _pair(r) for r in u.domain}}
    if u.where is not None:
        document["where"] = to_text(u.where, tuples=tuples)
    document["at"] = [to_text(i, tuples=tuples) for i in u.at]
    document["value"] = values_to_text(u.values, types, tuples)
    return document


def _boundary(b: Boundary, type: ScalarType) -> dict[str, Any]:
    document: dict[str, Any] = {"kind": b.kind}
    if b.value is not None:
        document["value"] = to_text(b.value, type)
    if b.domain is not None:
        document["domain"] = [[_bound(lo), _bound(extent)] for lo, extent in b.domain]
    return document


def _pair(r: RVar) -> list[str | int]:
    return [_bound(r.lo), _bound(r.extent)]


def _bound(e: Expr) -> str | int:
    return int(e.value) if isinstance(e, Const) else to_text(e)
