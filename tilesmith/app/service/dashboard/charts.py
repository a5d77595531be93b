"""Small charts as SVG: no scripts, no styles but the page's classes, readable by what reads pages aloud."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

from markupsafe import Markup, escape

WIDTH, HEIGHT = 560, 260
LEFT, RIGHT, TOP, BOTTOM = 76, 24, 16, 44
RADIUS = 5


@dataclass(frozen=True, slots=True)
class Point:
    """A mark at (x, y) in the axes' units, with what it is called. `kind` is its class: "best", "good" or "plain"."""

    name: str
    x: float
    y: float
    kind: str = "plain"


def scatter(title: str, points: Sequence[Point], x_label: str, y_label: str) -> Markup:
    """Points in a plane, both axes from 0; empty where there are no two."""
    if len(points) < 2:
        return Markup("")
    x_most, y_most = (_round_up(max(values)) for values in ([p.x for p in points], [p.y for p in points]))
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
        f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>',
        _text(LEFT, bottom + 16, "0", "middle"),
        _text(right, bottom + 16, _number(x_most), "end"),
        _text((LEFT + right) / 2, HEIGHT - 8, x_label, "middle"),
        _text(LEFT - 6, TOP + 8, _number(y_most), "end"),
        _text(LEFT - 6, bottom, "0", "end"),
        _text(LEFT + 8, TOP + 8, y_label, "start"),
    ]
    for p in sorted(points, key=lambda p: p.kind == "best"):
        x = LEFT + (right - LEFT) * p.x / x_most
        y = bottom - (bottom - TOP) * p.y / y_most
        told = f"{p.name}: {_number(p.x)} {x_label}, {_number(p.y)} {y_label}"
        parts.append(
            f'<g class="{escape(p.kind)}"><title>{escape(told)}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}"/>'
            f"{_text(x + RADIUS + 2, y + 4, p.name, 'start')}</g>"
        )
    return Markup("".join([*parts, "</svg>"]))


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _round_up(most: float) -> float:
    """The end of an axis: the next of 1, 1.5, 2, 3, 5, 7, 10 times a power of ten."""
    if most <= 0:
        return 1.0
    unit = 10.0 ** floor(log10(most))
    return next((f * unit for f in (1, 1.5, 2, 3, 5, 7) if f * unit >= most), 10 * unit)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.3g}"
