"""Charts: Vega-Lite on the server, in the page's colours, nothing of a document unescaped."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tilesmith.app.service.dashboard.charts import chart

SVG = "{http://www.w3.org/2000/svg}"
BARS = {
    "description": "Cost by stage",
    "data": {"values": [{"stage": "blur", "cost": 2}, {"stage": "sharp", "cost": 3}]},
    "mark": "bar",
    "encoding": {
        "x": {"field": "cost", "type": "quantitative"},
        "y": {"field": "stage", "type": "nominal"},
        "color": {"field": "stage", "type": "nominal"},
    },
}


def test_a_chart_is_one_picture_that_is_told() -> None:
    figure = ElementTree.fromstring(chart(BARS))
    assert (figure.tag, figure.attrib["aria-label"]) == ("figure", "Chart: Cost by stage")
    (picture,) = figure
    assert (picture.tag, picture.attrib["role"], picture.attrib["aria-label"]) == (f"{SVG}svg", "img", "Cost by stage")
    assert {"blur", "sharp"} <= {text.text for text in picture.iter(f"{SVG}text")}
    assert [title.text for title in picture.iter(f"{SVG}title")] == ["cost: 2; stage: blur", "cost: 3; stage: sharp"]
    assert [e.tag for e in picture.iter() if e is not picture and "aria-label" in e.attrib] == []


def test_colours_are_the_tokens_of_the_page() -> None:
    colours = set(re.findall(r'(?:fill|stroke)="([^"]*)"', chart(BARS)))
    assert {"var(--chart-1)", "var(--chart-2)", "var(--quiet)"} <= colours
    assert all(c in ("none", "transparent") or c.startswith("var(--") for c in colours)


def test_the_content_security_policy_lets_all_of_it_show() -> None:
    assert not re.search(r"<style|<script|style=| on[a-z]+=", chart(BARS))


def test_two_charts_of_a_page_share_no_ids() -> None:
    other = {**BARS, "description": "Another"}
    clipped = [{**spec, "mark": {"type": "bar", "clip": True}} for spec in (BARS, other)]
    ids = [set(re.findall(r'id="([^"]+)"', chart(spec))) for spec in clipped]
    assert ids[0]
    assert not ids[0] & ids[1]
    assert set(re.findall(r"url\(#([^)]+)\)", chart(clipped[0]))) <= ids[0]


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a & b"])
def test_nothing_of_a_document_is_markup(text: str) -> None:
    spec = {**BARS, "description": text, "data": {"values": [{"stage": text, "cost": 1}]}}
    figure = ElementTree.fromstring(chart(spec))
    assert {e.tag.removeprefix(SVG) for e in figure.iter()} <= {
        "figure",
        "svg",
        "g",
        "path",
        "line",
        "text",
        "rect",
        "title",
    }
    assert any(e.text == text for e in figure.iter(f"{SVG}text"))
