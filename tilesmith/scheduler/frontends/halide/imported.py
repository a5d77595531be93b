"""Pipelines of Halide as pipelines of ours: the document of a program, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilesmith.scheduler.errors import DocumentError, Problem, TilesmithError
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.frontends.halide.document import Draft, Obstacle, Spans, by_cause, draft
from tilesmith.scheduler.frontends.halide.facts import ImageFacts, ParamFacts
from tilesmith.scheduler.frontends.halide.serialized import HalideProgram
from tilesmith.scheduler.frontends.halide.text import plain
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline


class NotExpressible(TilesmithError):
    """The pipeline has what no document can say. `obstacles` has everything that was found, by
    cause."""

    code = "not_expressible"

    def __init__(self, obstacles: Sequence[Obstacle]) -> None:
        self.obstacles = tuple(by_cause(obstacles))
        super().__init__("\n".join(str(o) for o in self.obstacles))


@dataclass(frozen=True, slots=True)
class Imported:
    """A pipeline that was read from Halide.

    `document` is as written, `pipeline` what it means. `remarks` say what is not quite the same. `funcs` has the name
    of every stage's Func; `buffers` the Buffers inside of the pipeline by the names of the inputs that they became.
    """

    pipeline: Pipeline
    document: Mapping[str, Any]
    remarks: tuple[str, ...]
    funcs: Mapping[str, str]
    buffers: Mapping[str, str]
    draft: Draft


def imported(
    program: HalideProgram,
    images: Mapping[str, ImageFacts],
    params: Mapping[str, ParamFacts],
    estimates: Spans,
    name: str | None,
) -> Imported:
    """The pipeline of `program`, whose ImageParams are `images`: the Buffers inside of it are known by themselves. See
    `draft`. Raises NotExpressible."""
    buffers = {
        b.name: ImageFacts(b.type, tuple((lo, n) for lo, n, _ in b.dims), tuple(s for _, _, s in b.dims))
        for b in program.buffers.values()
    }
    result = draft(program, {**images, **buffers}, params, estimates, name)
    if result.obstacles:
        raise NotExpressible(result.obstacles)
    try:
        pipeline = load(result.document)
    except DocumentError as error:
        raise NotExpressible([_obstacle(p, result) for p in error.problems]) from None
    return Imported(pipeline, result.document, tuple(result.remarks), dict(result.funcs), dict(result.buffers), result)


def sizes_of(program: HalideProgram) -> dict[str, tuple[int, bool]]:
    """The outputs by name: each with its number of dims, and whether it has estimates of them all."""
    found = {}
    for name in program.outputs:
        func = program.funcs[name]
        spans = [func.estimates.get(a, (None, None)) for a in func.args]
        found[name] = len(func.args), all(None not in span for span in spans)
    return found


def _obstacle(problem: Problem, result: Draft) -> Obstacle:
    """The first error of the document, said of the Func that it comes from."""
    parts = problem.pointer.split("/")[1:]
    func, place = "pipeline", ""
    expression = None
    if len(parts) > 1 and parts[0] in ("stages", "inputs") and parts[1].isdigit():
        entry = result.document[parts[0]][int(parts[1])]
        func = plain(result.funcs.get(entry["name"], entry["name"]))
        place = f".update({parts[3]})" if parts[2:3] == ["updates"] and len(parts) > 3 else ""
        expression = _at(entry, parts[2:])
    return Obstacle(func, place, problem.message.rstrip("."), expression, problem.hint)


def _at(entry: Any, path: Iterable[str]) -> str | None:
    for part in path:
        try:
            entry = entry[int(part)] if isinstance(entry, list) else entry[part]
        except (KeyError, IndexError, ValueError, TypeError):
            return None
    text = str(entry)
    return None if not isinstance(entry, str) else text if len(text) <= 120 else f"{text[:120]}..."
