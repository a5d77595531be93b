"""Thumbnails: the stage graph of a schedule in the size of a stamp, from left to right, coloured by group."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import networkx as nx
from fastapi import APIRouter, Request, Response

from tilesmith.app.service.caching import immutable
from tilesmith.app.service.context import Services
from tilesmith.app.service.dashboard.pages import Page
from tilesmith.app.service.schedules.repository import Content
from tilesmith.scheduler.analysis.stage_graph import stage_graph
from tilesmith.scheduler.frontends.document import document as documents

router = APIRouter()

WIDTH, HEIGHT, MARGIN = 96.0, 36.0, 5.0
LINE = "#818b98"
COLOURS = ("#3b82f6", "#d97706", "#0d9488", "#8b5cf6", "#db2777", "#718096", "#a38a00", "#c2553d")
"""Seen on light and dark: a picture of its own does not know the page's theme by heart."""


@router.get("/schedules/{schedule_id}/thumbnail.svg", dependencies=[Page])
def thumbnail(schedule_id: str, request: Request, services: Services) -> Response:
    """The picture of a schedule in lists. As immutable as the schedule."""
    schedule = json.loads(services.schedules.get(schedule_id).content)
    form = services.schedules.kept(schedule_id, "pipeline.json")
    pipeline = documents.load_text(form.content, services.settings.limits)
    graph = stage_graph(pipeline)
    edges = [(producer, stage) for stage in graph.stages for producer in graph.producers[stage]]
    svg = drawing(graph.stages, edges, groups_of(schedule)).encode()
    return immutable(request, Content("image/svg+xml", svg))


def groups_of(schedule: Mapping[str, Any]) -> dict[str, int]:
    """The number of the group that each stage is computed in."""
    return {
        stage: number
        for number, group in enumerate(schedule["groups"])
        for stage in (group["output"], *(place["stage"] for place in group.get("placements", ())))
    }


def drawing(stages: Iterable[str], edges: Iterable[tuple[str, str]], groups: Mapping[str, int]) -> str:
    """The SVG: a dot a stage, behind all that it reads."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(stages)
    graph.add_edges_from(edges)
    layers = list(nx.topological_generations(graph))
    tallest = max(map(len, layers), default=1)
    radius = max(1.2, min(4.0, (HEIGHT - 2 * MARGIN) / (2.6 * tallest), (WIDTH - 2 * MARGIN) / (2.6 * len(layers))))
    at = {
        name: (_place(column, len(layers), WIDTH), _place(row, len(layer), HEIGHT))
        for column, layer in enumerate(layers)
        for row, name in enumerate(layer)
    }
    lines = "".join(f"M{at[a][0]:.1f} {at[a][1]:.1f}L{at[b][0]:.1f} {at[b][1]:.1f}" for a, b in graph.edges)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{_colour(groups.get(name))}"/>'
        for name, (x, y) in at.items()
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}">'
        f'<path d="{lines}" stroke="{LINE}" fill="none"/>{dots}</svg>'
    )


def _place(number: int, count: int, size: float) -> float:
    """The middle of a picture for one, else evenly from edge to edge."""
    return size / 2 if count == 1 else MARGIN + (size - 2 * MARGIN) * number / (count - 1)


def _colour(group: int | None) -> str:
    return LINE if group is None else COLOURS[group % len(COLOURS)]
