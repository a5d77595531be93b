"""Fixed decisions <-> document: an object of stages, unknown keys refused, every problem with its place.

{"blur_x": {"compute": "y.inner", "store": "x.outer", "vector": 32},
 "blur_y": {"tiles": {"x": 256, "y": null}, "parallel": "y.outer"}}
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, create_model
from pydantic_core import ErrorDetails

from tilesmith.platforms import Platform
from tilesmith.scheduler.analysis.stage_graph import StageGraph, stage_graph
from tilesmith.scheduler.errors import MOST_PROBLEMS, DocumentError, FixedContradiction, Problem
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.frontends.document.diagnostics import pointer
from tilesmith.scheduler.frontends.document.names import close_to
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.primitives.forms import Form
from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive
from tilesmith.scheduler.ir.schedule.primitives.registry import fixable
from tilesmith.scheduler.ir.schedule.schedule import INLINE, ROOT, Schedule, dim_of
from tilesmith.scheduler.rewrites.names import in_place_of
from tilesmith.scheduler.rewrites.passes import rewrite, with_joinings
from tilesmith.scheduler.search.constraints.consistency import contradictions, readers
from tilesmith.scheduler.search.constraints.constraints import Fixed, FixedStage
from tilesmith.scheduler.search.output_fusion import ways
from tilesmith.scheduler.search.rfactor_choice import factor_reductions
from tilesmith.scheduler.search.separable_choice import separate

MAX_STAGES = 10_000


@lru_cache(maxsize=8)
def _form(primitives: tuple[Primitive[Any], ...]) -> tuple[TypeAdapter[Any], tuple[str, ...]]:
    """The form of documents in which these primitives are fixed, and the keys of a stage."""
    fields: dict[str, Any] = {p.key: (p.fixed_form, p.open) for p in primitives}
    stage = create_model("FixedStageForm", __base__=Form, **fields)
    stages: Any = Annotated[dict[str, stage], Field(max_length=MAX_STAGES)]  # type: ignore[valid-type]
    return TypeAdapter(stages), tuple(fields)


def from_document(document: object) -> Fixed:
    """The decisions that `document` (parsed JSON) fixes; raises DocumentError with every problem of its form."""
    if not isinstance(document, Mapping):
        raise DocumentError((Problem("bad_type", "", "fixed decisions are an object of stages by name"),))
    try:
        parsed = _form(fixable())[0].validate_python(document)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[:MOST_PROBLEMS]
        raise DocumentError(tuple(map(_problem, found))) from None
    return Fixed(tuple((name, _stage(form)) for name, form in sorted(parsed.items()) if form.model_fields_set))


def _stage(form: BaseModel) -> FixedStage:
    values = {p.key: p.read_fixed(getattr(form, p.key)) for p in fixable() if p.key in form.model_fields_set}
    own = {key: value for key, value in values.items() if key in FixedStage.__dataclass_fields__}
    others = ((key, value) for key, value in values.items() if key not in own)
    return FixedStage(**own, attributes=tuple(sorted(others)))


def to_document(fixed: Fixed) -> dict[str, Any]:
    """The decisions as plain data: from_document(to_document(f)) == f."""
    return {name: _stage_document(stage) for name, stage in fixed.stages}


def load(document: object, pipeline: Pipeline, strict: bool = False, platform: Platform | None = None) -> Fixed:
    """The decisions that `document` fixes of `pipeline`: of its stages, and of those that the search may make of its
    windows and outputs, and, for a platform, of its reductions. Raises DocumentError with every name that is not among
    these, and FixedContradiction with the decisions that no schedule can have together."""
    fixed = from_document(document)
    if fixed:
        plan = rewrite(pipeline, Schedule(pipeline.name, "", (), strict))
        try:
            check(fixed, plan.pipeline)
        except DocumentError:
            if not _of_another(fixed, plan, platform):
                raise
    return fixed


def _of_another(fixed: Fixed, plan: Plan, platform: Platform | None) -> bool:
    """True if a pipeline that the search makes of that of the plan has all names."""
    facts = gather(plan.pipeline)
    if platform is not None:
        factored = factor_reductions(plan, facts, platform)
        plan, facts = factored.plan, factored.facts
    separated = separate(plan, facts).plan
    for other in (plan, separated, *(with_joinings(p, j) for p in (plan, separated) for j in ways(p.pipeline))):
        try:
            check(fixed, other.pipeline)
        except DocumentError:
            continue
        return True
    return False


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
        dims = self.stages[self.name].dims
        loops = tuple(f"{d}.{kind}" for d in dims for kind in ("inner", "outer"))
        for primitive, fixed in self.fixed.given:
            for place, name in primitive.fixed_names(fixed):
                what, known = ("loop", loops) if "." in name else ("dim", dims)
                if name not in known:
                    self._unknown(what, name, known, f"the stage '{self.name}'", primitive.key, *place)

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
    return {p.key: p.write_fixed(value) for p, value in stage.given}


def _problem(detail: ErrorDetails) -> Problem:
    place = pointer(*(str(part)[:80] for part in detail["loc"]))
    match detail["type"]:
        case "extra_forbidden":
            keys = _form(fixable())[1]
            hint = close_to(str(detail["loc"][-1]), keys)
            return Problem("unknown_key", place, "there is no such key", hint or f"keys: {', '.join(keys)}")
        case "string_pattern_mismatch":
            expected = next((p.expected for p in fixable() if p.key == detail["loc"][1]), "a name")
            return Problem("bad_value", place, f"expected {expected}")
    message = detail["msg"]
    return Problem("bad_value", place, message[:1].lower() + message[1:])
