"""Stages of a stored schedule as its page shows them: figures, groups by number, the loop and the lines of code of
each, and the stage graph, drawn in layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tilesmith.app.service.dashboard.layers import Point, layered
from tilesmith.scheduler.codegen.loopnest import stages_of_lines
from tilesmith.scheduler.codegen.stage_lines import stage_lines

COLOURS = 8
"""Colours of groups, which are used in turn: groups are told apart by their numbers."""
SHOWN_PARTS = 4
"""Places in the code that a stage leads to."""
RECOMPUTED = 1.005
"""From how many evaluations a point on a stage is said to compute some again."""
NAME_LENGTH = 21

BOX_WIDTH, BOX_HEIGHT = 188, 50
COLUMN, ROW = 210, 100
MARGIN = 12
LETTER, LINE = 6.0, 13
"""Pixels of a letter of a label, and of a line, about."""

Rectangle = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of code in which one stage is computed, one after the other."""

    stage: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Sources:
    """Lines of the loop nest and of the code, numbered from 1: of `loops` each is where a stage is computed."""

    loops: tuple[tuple[int, str], ...]
    parts: tuple[Part, ...]

    def loop(self, stage: str) -> int | None:
        """The line of the loop nest that computes a stage."""
        return next((n for n, of in self.loops if of == stage), None)


def sources_of(loopnest: str, code: str, stages: Sequence[str]) -> Sources:
    """The lines of the stages."""
    parts: list[Part] = []
    for number, stage in sorted(stage_lines(code, frozenset(stages)).items()):
        if parts and parts[-1].stage == stage:
            parts[-1] = Part(stage, parts[-1].first, number)
        else:
            parts.append(Part(stage, number, number))
    return Sources(tuple(_loops(loopnest)), tuple(parts))


def _loops(loopnest: str) -> Iterator[tuple[int, str]]:
    """The lines in which stages begin to be computed; not those in which their buffers are allocated."""
    lines = zip(loopnest.splitlines(), stages_of_lines(loopnest), strict=True)
    for n, (line, stage) in enumerate(lines, start=1):
        if line.lstrip().removeprefix("allocate and ").startswith("produce "):
            yield n, stage


@dataclass(frozen=True, slots=True)
class Place:
    """A stage in one of the groups: `number` of the group from 1, `level` in words, points computed over points that
    there are, bytes of its buffer of one thread."""

    group: str
    number: int
    level: str
    recompute: float
    bytes: int


@dataclass(frozen=True, slots=True)
class StageView:
    """A stage or input. `microseconds` are those of all groups; `loop` is the line of the loop nest, `parts` are places
    in the code, of the stage itself or of those that it is inside of."""

    name: str
    role: str
    extents: str
    points: int
    operations: float
    places: tuple[Place, ...]
    loop: int | None
    parts: tuple[Part, ...]

    @property
    def number(self) -> int:
        """The group that it is in, the first of several; 0 of an input."""
        return self.places[0].number if self.places else 0

    @property
    def colour(self) -> int:
        return (self.number - 1) % COLOURS + 1 if self.number else 0

    @property
    def label(self) -> str:
        """The name, as far as a box holds it."""
        half = NAME_LENGTH // 2
        return self.name if len(self.name) <= NAME_LENGTH else f"{self.name[:half]}…{self.name[-half + 1 :]}"

    @property
    def level(self) -> str:
        if not self.places:
            return "input"
        first = self.places[0]
        several = len({p.number for p in self.places}) > 1
        return f"{first.number}{'+' if several else ''} · {first.level}"

    @property
    def again(self) -> float | None:
        """Evaluations a point, where some points are computed again."""
        most = max((p.recompute for p in self.places), default=1.0)
        return most if most > RECOMPUTED else None

    @property
    def inline(self) -> bool:
        return bool(self.places) and all(p.level == "inline" for p in self.places)


def stage_views(figures: Mapping[str, Any], sources: Sources) -> tuple[StageView, ...]:
    """The views of all stages of `figures.json`, in its order."""
    numbers = {g["output"]: n for n, g in enumerate(figures["groups"], start=1)}
    return tuple(_view(stage, numbers, sources) for stage in figures["stages"])


def _view(stage: Mapping[str, Any], numbers: Mapping[str, int], sources: Sources) -> StageView:
    name = stage["name"]
    places = tuple(
        Place(p["group"], numbers[p["group"]], _level(p), p["recompute"], p["bytes"]) for p in stage["places"]
    )
    own = tuple(part for part in sources.parts if part.stage == name)
    outside = {p.group for p in places}
    loop = sources.loop(name) or next((n for p in places if (n := sources.loop(p.group))), None)
    return StageView(
        name,
        stage["role"],
        " × ".join(f"{extent:,}" for extent in stage["extents"].values()) or "one value",
        prod(stage["extents"].values()),
        stage["operations"],
        places,
        loop,
        (own or tuple(part for part in sources.parts if part.stage in outside))[:SHOWN_PARTS],
    )


def _level(place: Mapping[str, Any]) -> str:
    """Compute level and, behind a stroke, store level."""
    compute, store = place["compute"], place["store"]
    if compute in ("inline", "root"):
        return str(compute)
    if place["storage"] == "registers":
        return f"{compute} / registers"
    return f"{compute} / {store}"


@dataclass(frozen=True, slots=True)
class Box:
    """The box of a stage: its upper left corner."""

    stage: StageView
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Line:
    """The line of an edge; `label` tells the overlap, at a place where it covers nothing, or nowhere."""

    path: str
    title: str
    label: str
    at: Point | None
    inline: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """The stage graph; sizes are pixels."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    box_width: int = BOX_WIDTH
    box_height: int = BOX_HEIGHT


def drawn(views: Sequence[StageView], edges: Sequence[Mapping[str, Any]]) -> Drawing:
    """The stage graph, in which what is read stands above its readers."""
    numbers = {view.name: n for n, view in enumerate(views)}
    layout = layered(len(views), [(numbers[e["producer"]], numbers[e["consumer"]]) for e in edges])
    boxes = tuple(Box(view, *_corner(at)) for view, at in zip(views, layout.boxes, strict=True))
    taken = [(b.x, b.y, b.x + BOX_WIDTH, b.y + BOX_HEIGHT) for b in boxes]
    lines = []
    for edge, points in zip(edges, layout.lines, strict=True):
        label = _overlap(edge["overlap"])
        through = _bent(points)
        at = _free(label, through, taken) if label else None
        lines.append(Line(_path(through), _title(edge), label, at, views[numbers[edge["producer"]]].inline))
    width = round(layout.columns * COLUMN + BOX_WIDTH + 2 * MARGIN)
    height = round(layout.rows * ROW + BOX_HEIGHT + 2 * MARGIN)
    return Drawing(width, height, boxes, tuple(lines))


def _corner(at: Point) -> Point:
    return round(at[0] * COLUMN + MARGIN, 1), round(at[1] * ROW + MARGIN, 1)


def _bent(points: Sequence[Point]) -> list[Point]:
    """The points of a line in pixels: from the lower edge of one box to the upper edge of another."""
    middle = [(x + BOX_WIDTH / 2, y) for x, y in map(_corner, points)]
    (x0, y0), *between, (x1, y1) = middle
    return [(x0, y0 + BOX_HEIGHT), *((x, y + BOX_HEIGHT / 2) for x, y in between), (x1, y1 - 2)]


def _path(points: Sequence[Point]) -> str:
    """A smooth line through the points, upright at each."""
    (x, y), *others = points
    parts = [f"M{x:g} {y:g}"]
    for to_x, to_y in others:
        half = (y + to_y) / 2
        parts.append(f"C{x:g} {half:g} {to_x:g} {half:g} {to_x:g} {to_y:g}")
        x, y = to_x, to_y
    return "".join(parts)


def _free(label: str, points: Sequence[Point], taken: list[Rectangle]) -> Point | None:
    """A place along the line where the label covers neither a box nor another label, which is taken then."""
    width = LETTER * len(label) + 6
    for n in range(len(points) - 1):
        (x0, y0), (x1, y1) = points[n : n + 2]
        for share in (0.5, 0.3, 0.7):
            bend = share * share * (3 - 2 * share)
            x, y = x0 + (x1 - x0) * bend, y0 + (y1 - y0) * share
            box = (x - width / 2, y - LINE / 2 - 1, x + width / 2, y + LINE / 2 + 1)
            if not any(_meet(box, other) for other in taken):
                taken.append(box)
                return round(x, 1), round(y, 1)
    return None


def _meet(a: Rectangle, b: Rectangle) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _overlap(overlap: Mapping[str, int | None]) -> str:
    """Loops of which neighbouring iterations read the same: how much of it; what does not move is left to the title."""
    return ", ".join(f"{loop} {amount}" for loop, amount in overlap.items() if amount)


def _title(edge: Mapping[str, Any]) -> str:
    elements = edge["elements"]
    amount = "elements" if elements is None else f"{elements:,.4g} element{'' if elements == 1 else 's'}"
    told = [f"{edge['consumer']} reads {amount} of {edge['producer']} for a point"]
    for loop, shared in edge["overlap"].items():
        told.append(f"along {loop} the next point reads {'all' if shared is None else shared} of these again")
    return "; ".join(told)
