"""Charts: Vega-Lite specifications rendered as SVG on the server. No scripts; the colours are the page's own tokens, so
that one picture serves both themes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from fastapi import Request, Response
from markupsafe import Markup, escape

from tilesmith.app.service.caching import has_it

WIDTH, HEIGHT = 520, 240
PICTURE_SECONDS = 3600
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
        "titlePadding": 12,
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
        "symbolBaseFillColor": "var(--text)",
        "symbolBaseStrokeColor": "var(--text)",
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


async def picture_response(request: Request, spec: Mapping[str, Any]) -> Response:
    """The picture over HTTP, or 304: it is known by the specification and by who draws it."""
    drawn_by = json.dumps([version("tilesmith"), spec], sort_keys=True)
    headers = {
        "ETag": f'"{hashlib.sha256(drawn_by.encode()).hexdigest()[:32]}"',
        "Cache-Control": f"private, max-age={PICTURE_SECONDS}",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    }
    if has_it(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(await asyncio.to_thread(picture, spec), media_type="image/svg+xml", headers=headers)


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
