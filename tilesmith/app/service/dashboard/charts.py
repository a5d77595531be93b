"""Charts: Vega-Lite specifications rendered as SVG on the server. No scripts; the colours are the page's own tokens, so
that one picture serves both themes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from markupsafe import Markup, escape

WIDTH, HEIGHT = 520, 240
KEPT = 256  # renderings, of some 20 KB each
IDS = re.compile(r"""((?:\bid="|url\(#))""")
MARK = re.compile(r'<(path|rect|line) aria-label="([^"]*)"([^>]*)/>')
SPOKEN = re.compile(r' (?:role="graphics-[a-z]+"|aria-(?:roledescription|hidden|label)="[^"]*")')
TOKENS = re.compile(r".*?(?=\n/\* The page \*/)", re.DOTALL)
OPENING = re.compile(r"^<svg [^>]*>")

CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "sans-serif",
    "padding": {"left": 20, "right": 20, "top": 5, "bottom": 5},
    "view": {"stroke": "var(--line)", "continuousWidth": WIDTH, "continuousHeight": HEIGHT},
    "axis": {
        "labelColor": "var(--quiet)",
        "titleColor": "var(--text)",
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 220,
        "gridColor": "var(--line)",
        "domainColor": "var(--edge)",
        "tickColor": "var(--edge)",
    },
    "legend": {
        "labelColor": "var(--text)",
        "titleColor": "var(--text)",
        "labelFontSize": 12,
        "labelLimit": 220,
        "columnPadding": 24,
    },
    "header": {"labelColor": "var(--text)", "titleColor": "var(--text)"},
    "title": {"color": "var(--text)", "fontWeight": "normal", "fontSize": 13, "anchor": "start"},
    "mark": {"color": "var(--chart-1)", "tooltip": None},
    "rule": {"color": "var(--quiet)"},
    "text": {"color": "var(--text)", "fontSize": 12},
    "point": {"filled": True, "size": 60},
    "range": {"category": [f"var(--chart-{n})" for n in range(1, 9)]},
}


def chart(spec: Mapping[str, Any]) -> Markup:
    """The picture of a Vega-Lite specification with its data inside; its `description` is read aloud in its place, so
    that figures are told in a table or in the text as well. Renderings are kept by content."""
    label = escape(spec["description"])
    shown = _rendered(_whole(spec))
    return Markup(f'<figure class="chart" tabindex="0" role="group" aria-label="Chart: {label}">{shown}</figure>')


def picture(spec: Mapping[str, Any]) -> bytes:
    """The picture as a file of its own, with the tokens of the style sheet in it: for charts that are loaded when they
    are looked at."""
    style = TOKENS.match(
        (files("tilesmith.app.service.dashboard") / "static" / "style.css").read_text(encoding="utf-8")
    )
    assert style is not None
    return OPENING.sub(lambda found: f"{found[0]}<style>{style[0]}</style>", _rendered(_whole(spec)), count=1).encode()


def _whole(spec: Mapping[str, Any]) -> str:
    return json.dumps({"width": WIDTH, "height": HEIGHT, **spec}, sort_keys=True)


@lru_cache(KEPT)
def _rendered(spec: str) -> str:
    import vl_convert  # the first call starts a JavaScript engine of some 60 MB: only who looks at charts pays for it

    svg = vl_convert.vegalite_to_svg(spec, config=CONFIG, allowed_base_urls=[])
    own = hashlib.sha256(spec.encode()).hexdigest()[:8]
    svg = IDS.sub(rf"\g<1>c{own}-", svg)  # several charts of a page have clip paths of the same names
    label = escape(json.loads(spec)["description"])
    return OPENING.sub(lambda found: found[0][:-1] + f' role="img" aria-label="{label}">', _unspoken(svg), count=1)


def _unspoken(svg: str) -> str:
    """The picture without the roles and labels of its marks, which are not read one by one: what they are called shows
    under the pointer."""
    svg = MARK.sub(r"<\1\3><title>\2</title></\1>", svg)
    return SPOKEN.sub("", svg)


@dataclass(frozen=True, slots=True)
class Point:
    """A mark at (x, y) in the axes' units, with what it is called. `kind` is its class: "best", "good" or "plain"."""

    name: str
    x: float
    y: float
    kind: str = "plain"


KINDS = {"best": "var(--chart-1)", "good": "var(--chart-2)", "plain": "var(--chart-6)"}


def scatter(title: str, points: Sequence[Point], x_label: str, y_label: str) -> Markup:
    """Points in a plane; empty where there are no two."""
    if len(points) < 2:
        return Markup("")
    data = [{"name": p.name, "x": p.x, "y": p.y, "kind": p.kind} for p in points]
    place = {
        "x": {"field": "x", "type": "quantitative", "title": x_label},
        "y": {"field": "y", "type": "quantitative", "title": y_label},
    }
    kinds = [kind for kind in KINDS if any(p.kind == kind for p in points)]
    colour = {
        "field": "kind",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": kinds, "range": [KINDS[kind] for kind in kinds]},
    }
    return chart(
        {
            "description": title,
            "data": {"values": data},
            "encoding": place,
            "layer": [
                {"mark": "point", "encoding": {"color": colour}},
                {"mark": {"type": "text", "dx": 9, "align": "left"}, "encoding": {"text": {"field": "name"}}},
            ],
        }
    )
