"""Fixed decisions <-> document: an object of stages, unknown keys refused, every problem with its place.

{"blur_x": {"compute": "y.inner", "store": "x.outer", "vector": 32},
 "blur_y": {"tiles": {"x": 256, "y": null}, "parallel": "y.outer"}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from scheduler.analysis.stage_graph import StageGraph, stage_graph
from scheduler.errors import DocumentError, FixedContradiction, Problem
from scheduler.frontends.document.diagnostics import pointer
from scheduler.frontends.document.names import close_to
from scheduler.ir.pipeline.pipeline import Pipeline, Stage
from scheduler.ir.schedule.document import MAX_PREFETCH, Flag
from scheduler.ir.schedule.schedule import INLINE, ROOT, dim_of
from scheduler.rewrites.names import in_place_of
from scheduler.rewrites.passes import normalise
from scheduler.search.constraints.consistency import contradictions, readers
from scheduler.search.constraints.constraints import NONE, Fixed, FixedStage

MAX_STAGES = 10_000
NAME = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
LOOP = rf"{NAME}\.(inner|outer)"


def _absent(word: str | int) -> BeforeValidator:
    """null in a document says `word`."""
    return BeforeValidator(lambda value: word if value is None else value)


Identifier = Annotated[str, Field(strict=True, pattern=f"^{NAME}$")]
Loop = Annotated[str, Field(strict=True, pattern=f"^{LOOP}$")]
Compute = Annotated[str, Field(strict=True, pattern=f"^({LOOP}|{INLINE}|{ROOT})$")]
Threads = Annotated[str | None, Field(strict=True, pattern=f"^({LOOP}|{NONE})$"), _absent(NONE)]
Lanes = Annotated[Literal[1, 2, 4, 8, 16, 32, 64, 128, 256] | None, _absent(1)]
Size = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]
Dims = Annotated[tuple[Identifier, ...], Field(max_length=16)]


class _Stage(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    compute: Compute | None = None
    store: Loop | None = None
    storage: Literal["memory", "registers"] | None = None
    order: Dims = ()
    vector: Lanes = None
    tiles: Annotated[dict[Identifier, Size | None], Field(max_length=16)] = {}
    loops: Annotated[tuple[Loop, ...], Field(max_length=32)] = ()
    parallel: Threads = None
    unroll: Dims | None = None
    stream: Flag | None = None
    prefetch: Annotated[int, Field(strict=True, ge=0, le=MAX_PREFETCH)] | None = None


_DOCUMENT = TypeAdapter(Annotated[dict[str, _Stage], Field(max_length=MAX_STAGES)])


def from_document(document: object) -> Fixed:
    """The decisions that `document` (parsed JSON) fixes; raises DocumentError with every problem of its form."""
    if not isinstance(document, Mapping):
        raise DocumentError((Problem("not_an_object", "", "fixed decisions are an object of stages by name"),))
    try:
        parsed = _DOCUMENT.validate_python(document)
    except ValidationError as error:
        raise DocumentError(tuple(_problem(d) for d in error.errors(include_url=False, include_input=False))) from None
    found = []
    for name, stage in sorted(parsed.items()):
        values = {**stage.model_dump(), "tiles": tuple(sorted(stage.tiles.items()))}
        if stage.model_fields_set:
            found.append((name, FixedStage(**values)))
    return Fixed(tuple(found))


def to_document(fixed: Fixed) -> dict[str, Any]:
    """The decisions as plain data: from_document(to_document(f)) == f."""
    return {name: _stage_document(stage) for name, stage in fixed.stages}


def load(document: object, pipeline: Pipeline, strict: bool = False) -> Fixed:
    """The decisions that `document` fixes of `pipeline`. Raises DocumentError with every name that is not the
    pipeline's, and FixedContradiction with the decisions that no schedule can have together."""
    fixed = from_document(document)
    if fixed:
        check(fixed, normalise(pipeline, strict))
    return fixed


def check(fixed: Fixed, pipeline: Pipeline) -> None:
    """Raises as `load` does; `pipeline` is normal."""
    graph = stage_graph(pipeline)
    stages = {s.name: s for s in pipeline.stages}
    problems = [p for name, stage in fixed.stages for p in _Names(name, stage, graph, stages).problems()]
    if problems:
        raise DocumentError(tuple(problems))
    found = contradictions(fixed, graph, stages)
    if found:
        raise FixedContradiction(found)


class _Names:
    """Checker of names: the stages, dims and loops that are fixed have to be those of the pipeline."""

    def __init__(self, name: str, fixed: FixedStage, graph: StageGraph, stages: Mapping[str, Stage]) -> None:
        self.name, self.fixed, self.graph, self.stages = name, fixed, graph, stages
        self.found: list[Problem] = []

    def problems(self) -> list[Problem]:
        instead = in_place_of(self.name, self.stages.values())
        if instead is not None:
            message = f"the stage '{self.name}' is computed as others, a stage a level"
            self.found.append(Problem("unknown_name", pointer(self.name), message, f"fix these: {instead}"))
        elif self.name not in self.stages:
            self._unknown("stage", self.name, self.graph.stages, "the pipeline")
        elif self.name not in self.graph.consumers:
            message = f"no output of the pipeline needs the stage '{self.name}'"
            self.found.append(Problem("unknown_name", pointer(self.name), message))
        else:
            self._own()
            self._levels()
        return self.found

    def _own(self) -> None:
        """The stage's own dims and loops."""
        dims, fixed = self.stages[self.name].dims, self.fixed
        loops = tuple(f"{d}.{kind}" for d in dims for kind in ("inner", "outer"))
        whose = f"the stage '{self.name}'"
        named: list[tuple[tuple[str | int, ...], str]] = [(("order", n), d) for n, d in enumerate(fixed.order)]
        named += [(("tiles", d), d) for d, _ in fixed.tiles]
        named += [(("unroll", n), d) for n, d in enumerate(fixed.unroll or ())]
        for steps, dim in named:
            if dim not in dims:
                self._unknown("dim", dim, dims, whose, *steps)
        own: list[tuple[tuple[str | int, ...], str]] = [(("loops", n), loop) for n, loop in enumerate(fixed.loops)]
        if fixed.parallel not in (None, NONE):
            own.append((("parallel",), str(fixed.parallel)))
        for steps, loop in own:
            if loop not in loops:
                self._unknown("loop", loop, loops, whose, *steps)

    def _levels(self) -> None:
        """Levels are loops of a group that the stage may be in: over the dims of what is made of it."""
        dims = {d for name in readers(self.graph, self.name) for d in self.stages[name].dims}
        for key, loop in (("compute", self.fixed.compute), ("store", self.fixed.store)):
            if dims and loop not in (None, INLINE, ROOT) and dim_of(str(loop)) not in dims:
                loops = [f"{d}.{kind}" for d in sorted(dims) for kind in ("inner", "outer")]
                self._unknown("loop", str(loop), loops, f"any stage that '{self.name}' is read for", key)

    def _unknown(self, what: str, name: str, known: Any, whose: str, *steps: str | int) -> None:
        hint = close_to(name, known) or (f"there are: {', '.join(list(known)[:12])}" if known else None)
        self.found.append(
            Problem("unknown_name", pointer(self.name, *steps), f"{whose} has no {what} '{name[:64]}'", hint)
        )


def _stage_document(stage: FixedStage) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for key in ("compute", "store", "storage", "vector", "parallel", "stream", "prefetch"):
        if getattr(stage, key) is not None:
            document[key] = getattr(stage, key)
    for key in ("order", "loops"):
        if getattr(stage, key):
            document[key] = list(getattr(stage, key))
    if stage.unroll is not None:
        document["unroll"] = list(stage.unroll)
    if stage.tiles:
        document["tiles"] = dict(stage.tiles)
    return document


def _problem(detail: ErrorDetails) -> Problem:
    place = pointer(*(str(part)[:80] for part in detail["loc"]))
    match detail["type"]:
        case "extra_forbidden":
            hint = close_to(str(detail["loc"][-1]), _Stage.model_fields)
            return Problem(
                "unknown_key", place, "there is no such key", hint or f"keys: {', '.join(_Stage.model_fields)}"
            )
        case "string_pattern_mismatch":
            return Problem("bad_value", place, "expected " + _EXPECTED.get(str(detail["loc"][1]), "a name"))
    message = detail["msg"]
    return Problem("bad_value", place, message[:1].lower() + message[1:])


_EXPECTED = {
    "compute": "'inline', 'root', or a loop such as 'y.inner'",
    "store": "a loop such as 'y.outer'",
    "loops": "a loop such as 'y.inner'",
    "parallel": "'none' or a loop such as 'y.outer'",
}
