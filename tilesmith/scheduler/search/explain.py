"""The trace of a search for people: every decision, what else there was, and why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilesmith.cost_models.interface import Breakdown
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.search.trace import Applied, Decision, Rejected, Trace

TITLES = {
    "rewriting": "Rewriting",
    "fixed": "Fixed decisions",
    "factor": "Partial results",
    "separation": "Separation",
    "joining": "Outputs",
    "packing": "Operands",
    "group": "Group",
    "level": "Level",
    "inline": "Inline",
    "tiling": "Tiling",
    "split": "Split",
    "final": "Final choices",
}
SHOWN = 8


def to_text(schedule: Schedule, trace: Trace, predicted: Breakdown | None = None) -> str:
    """Every decision in the order it was made, rejected candidates with their cost and reason, then what each stage
    is predicted to cost. Plain text, a line at most 120 characters where names allow."""
    return text_of(to_document(schedule, trace, predicted))


def text_of(document: dict[str, Any]) -> str:
    """The text of `to_text`, from a document of `to_document`."""
    predicted = document["predicted"]
    breakdown = None if predicted is None else Breakdown.from_document(predicted)
    return _to_text(document["pipeline"], document["degraded"], Trace.from_document(document), breakdown)


def _to_text(pipeline: str, degraded: str | None, trace: Trace, predicted: Breakdown | None) -> str:
    lines = [f"{pipeline}, by method {trace.method}; costs in {trace.unit}"]
    if degraded is not None:
        lines.append(f"DEGRADED: {degraded}")
    if trace.steps:
        lines += ["", *steps_in_lines(trace.steps)]
    for decision in trace.decisions:
        lines += ["", *_decision(decision)]
    if predicted is not None:
        lines += ["", *_cost(predicted)]
    return "\n".join(lines) + "\n"


def to_document(schedule: Schedule, trace: Trace, predicted: Breakdown | None = None) -> dict[str, Any]:
    """The decisions and predictions of `to_text` as plain data, for JSON."""
    return {
        "pipeline": schedule.pipeline,
        "degraded": schedule.degraded,
        **trace.to_document(),
        "predicted": None if predicted is None else predicted.to_document(),
    }


def steps_in_lines(steps: Sequence[Applied]) -> Iterator[str]:
    """The steps of a strategy in their order, each with what it changed."""
    for number, step in enumerate(steps, start=1):
        yield f"{number}. {step.rule} at {step.where}" + (f" ({step.arguments})" if step.arguments else "")
        yield from (f"   - {line}" for line in step.before)
        yield from (f"   + {line}" for line in step.after)


def _decision(d: Decision) -> list[str]:
    cost = "" if d.cost is None else f"  (cost {_number(d.cost)})"
    lines = [f"{TITLES[d.kind]} of {d.subject}: {d.chosen}{cost}", f"    because {d.reason} [{d.source}]"]
    lines += [f"    not {_rejected(r)}" for r in d.rejected[:SHOWN]]
    if len(d.rejected) > SHOWN:
        lines.append(f"    nor {len(d.rejected) - SHOWN} others")
    return lines


def _rejected(r: Rejected) -> str:
    cost = "" if r.cost is None else f" (cost {_number(r.cost)})"
    return f"{r.choice}{cost}: {r.reason}"


def _cost(predicted: Breakdown) -> list[str]:
    width = max((len(s.stage) for s in predicted.stages), default=0)
    lines = [f"Predicted cost by {predicted.model}, {predicted.unit}: {_number(float(predicted.total))}"]
    for s in predicted.stages:
        terms = ", ".join(f"{t.name} {_number(float(t.value))}" for t in s.terms)
        lines.append(f"    {s.stage:<{width}}  {_number(float(s.total)):>15}  {terms}")
    lines += [f"    unsure: {text}" for text in predicted.unsure]
    return lines


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
