"""The part of a schedule's page that never changes: all but what is said of the schedule by now, and its jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from tilesmith.app.service.dashboard import schedule_charts as charts
from tilesmith.app.service.dashboard.decisions import by_subject
from tilesmith.app.service.dashboard.listings import code_listing, nest_listing
from tilesmith.app.service.dashboard.pages import templates
from tilesmith.app.service.dashboard.stages import StageView, drawn, sources_of, stage_views
from tilesmith.app.service.schedules.service import FORMS

KEPT = 16  # pages, of up to 1 MB each
SECTIONS = (
    ("stages", "Stages"),
    ("cost", "Cost"),
    ("buffers", "Buffers"),
    ("tiles", "Tile sizes"),
    ("candidates", "Candidates"),
    ("groups", "Groups"),
    ("explain", "Decisions"),
    ("nest", "Loop nest"),
    ("code", "C"),
    ("forms", "Documents"),
    ("jobs", "Jobs"),
)


@dataclass(frozen=True, slots=True)
class Stored:
    """A schedule as the store has it: its document, the figures, or why there are none, and the table of candidates,
    which may be empty. It is known by its id and the validator of the document."""

    id: str
    etag: str
    schedule: dict[str, Any] = field(compare=False, repr=False)
    figures: dict[str, Any] | None = field(compare=False, repr=False)
    candidates: dict[str, Any] = field(compare=False, repr=False)
    texts: dict[str, str] = field(compare=False, repr=False)
    lacking: str = ""

    @property
    def groups(self) -> list[dict[str, Any]]:
        return list(self.schedule["groups"])

    @property
    def calibrated(self) -> bool:
        """True if figures of the platform that the cost model reads were measured: others are derived."""
        return bool(json.loads(self.texts["platform.json"]).get("ecm"))


TEXTS = ("code.c", "loopnest.txt", "explain", "pipeline.json", "platform.json")
"""Forms that the page shows."""


@dataclass(frozen=True, slots=True)
class Body:
    """The rendered part, the sections that the whole page has, by anchor and title, and the number of stages."""

    content: Markup
    sections: tuple[tuple[str, str], ...]
    stages: int


@lru_cache(KEPT)
def body_of(found: Stored) -> Body:
    """The part of the page of that schedule."""
    schedule, text = found.schedule, found.texts
    names = [s["name"] for s in found.figures["stages"]] if found.figures else []
    sources = sources_of(text["loopnest.txt"], text["code.c"], names)
    views = stage_views(found.figures, sources) if found.figures else ()
    explain = json.loads(text["explain"])
    specs, maps = specs_of(found), _maps(found)
    fixed = schedule["options"].get("fixed")
    content = templates.get_template("schedule/body.html").render(
        schedule=schedule,
        base=f"/v1/schedules/{found.id}",
        calibrated=found.calibrated,
        stages=views,
        graph=drawn(views, found.figures["edges"]) if found.figures else None,
        lacking=found.lacking,
        groups=found.groups,
        costs=_costs(schedule["predicted"]),
        charts={name: spec and spec["description"] for name, spec in specs.items()},
        maps=maps,
        candidates=found.candidates,
        subjects=by_subject(explain.get("decisions", ())),
        decisions=len(explain.get("decisions", ())),
        cost_unit=explain.get("unit", ""),
        nest=nest_listing(text["loopnest.txt"], sources, {v.name: v for v in views}),
        code=code_listing(text["code.c"], sources.parts),
        fixed=json.dumps(fixed, indent=2) if fixed else "",
        forms=FORMS,
        pipeline=_readable(text["pipeline.json"]),
        platform=_readable(text["platform.json"]),
    )
    lacking = _lacking(specs, schedule, maps)
    sections = tuple(s for s in SECTIONS if s[0] not in lacking)
    return Body(Markup(content), sections, _stages(views))


def _stages(views: tuple[StageView, ...]) -> int:
    return sum(view.role != "input" for view in views)


def _costs(predicted: Mapping[str, Any]) -> dict[str, float]:
    """The predicted cost of every stage that has one, in all groups together."""
    costs: dict[str, float] = {}
    for stage in predicted.get("stages", ()):
        if stage["total"] > 0:
            costs[stage["stage"]] = costs.get(stage["stage"], 0.0) + stage["total"]
    return costs


def _lacking(specs: Mapping[str, Any], schedule: Mapping[str, Any], maps: list[dict[str, Any]]) -> set[str]:
    """The sections that the page has nothing for."""
    has = {
        "cost": specs["cost"] or specs["roofline"],
        "buffers": specs["buffers"] or schedule["buffers"],
        "tiles": maps,
    }
    return {name for name, found in has.items() if not found}


def specs_of(found: Stored) -> dict[str, charts.Spec | None]:
    """The charts by name, but for those of tile sizes; None for those that there is nothing for."""
    figures = found.figures
    return {
        "cost": charts.cost_by_stage(found.schedule["predicted"]),
        "buffers": figures and charts.buffers_against_caches(figures),
        "roofline": figures and charts.roofline(figures),
        "candidates": charts.memory_of_candidates(found.candidates),
        "measured": charts.measured_candidates(found.candidates),
    }


def _maps(found: Stored) -> list[dict[str, Any]]:
    """The groups whose tile sizes have a map, those that take longest first: of dims with more than one point."""
    if not found.figures:
        return []
    extents = {s["name"]: s["extents"] for s in found.figures["stages"]}
    times = [g["microseconds"] for g in found.figures["groups"]]
    maps = []
    for number, group in enumerate(found.groups, start=1):
        output, unrolled, tiles = group["output"], group.get("unroll", ()), group.get("tiles", ())
        if any(t["dim"] not in unrolled and extents[output][t["dim"]] > 1 for t in tiles):
            chosen = ", ".join(f"{t['dim']} {t['size'] or 'whole'}" for t in tiles)
            told = f"Predicted time of group {output} over its tile sizes; chosen are {chosen}"
            maps.append({"number": number, "output": output, "chosen": chosen, "told": told})
    return sorted(maps, key=lambda m: -times[m["number"] - 1])


def _readable(text: str) -> str:
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
