"""The page of one schedule: with real schedules, every link leads somewhere, from stages to loops and code and back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from service.conftest import Service, service_with, settings_for
from service.test_dashboard import Page, page

from tilesmith.app.service.dashboard.listings import code_listing, nest_listing
from tilesmith.app.service.dashboard.stages import Part, Sources, drawn, sources_of, stage_views
from tilesmith.app.service.schedules import work

NAMES = ("harris", "bilateral_grid", "camera_pipe")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with real scheduling, in threads."""
    with service_with(settings_for(tmp_path_factory.mktemp("real")), scheduling=work) as service:
        yield service


@pytest.fixture(scope="module")
def ids(real: Service) -> dict[str, str]:
    """Schedules of NAMES, and one of harris by the method of the paper."""
    asked = {name: {"pipeline_id": name} for name in NAMES}
    asked["paper"] = {"pipeline_id": "harris", "options": {"method": "taco2019"}}
    body = {"platform_name": "i7-6700"}
    return {name: real.client.post("/v1/schedules", json=body | of).json()["id"] for name, of in asked.items()}


def anchors(found: Page) -> list[str]:
    return [a["id"] for _, a in found.tags if "id" in a]


@pytest.mark.parametrize("name", [*NAMES, "paper"])
def test_every_link_of_a_page_leads_somewhere(real: Service, ids: dict[str, str], name: str) -> None:
    found = page(real, f"/schedules/{ids[name]}")
    there = anchors(found)
    assert len(set(there)) == len(there)
    assert {link[1:] for link in found.links if link.startswith("#")} <= set(there)
    images = [a["src"] for tag, a in found.tags if tag == "img"]
    assert images
    for link in {link for link in found.links if link.startswith("/")} | set(images):
        assert real.client.get(link).status_code == 200, link


@pytest.mark.parametrize("name", [*NAMES, "paper"])
def test_every_stage_leads_to_its_loop_and_its_code_and_back(real: Service, ids: dict[str, str], name: str) -> None:
    base = f"/v1/schedules/{ids[name]}"
    figures = real.client.get(f"{base}/figures.json").json()
    sources = sources_of(
        real.client.get(f"{base}/loopnest.txt").text,
        real.client.get(f"{base}/code.c").text,
        [s["name"] for s in figures["stages"]],
    )
    found = page(real, f"/schedules/{ids[name]}")
    there, links = anchors(found), set(found.links)
    for stage in stage_views(figures, sources):
        assert f"node-{stage.name}" in there
        assert f"stage-{stage.name}" in there
        if stage.role != "input":
            assert stage.loop is not None
            assert {f"#nest-{stage.loop}", f"#L{stage.parts[0].first}", f"#node-{stage.name}"} <= links


def test_a_page_tells_what_is_predicted_and_of_what_figures(real: Service, ids: dict[str, str]) -> None:
    text = page(real, f"/schedules/{ids['harris']}").text
    assert re.search(r"Predicted [\d.]+ ms not calibrated", text)
    assert "Measured not yet" in text
    assert "not calibrated" not in page(real, f"/schedules/{ids['paper']}").text.split("Stages")[0]


def test_every_rejected_choice_is_told_with_its_reason(real: Service, ids: dict[str, str]) -> None:
    decisions = real.client.get(f"/v1/schedules/{ids['harris']}/explain").json()["decisions"]
    text = page(real, f"/schedules/{ids['harris']}").text
    for decision in decisions:
        assert " ".join(decision["reason"].split()) in text
        for rejected in decision["rejected"]:
            assert f"not {rejected['choice']}" in text
            assert " ".join(rejected["reason"].split()) in text


@pytest.mark.parametrize("name", ["cost", "buffers", "roofline", "candidates", "tiles-1"])
def test_charts_are_pictures_of_their_own_in_both_themes(real: Service, ids: dict[str, str], name: str) -> None:
    url = f"/schedules/{ids['harris']}/charts/{name}.svg"
    answer = real.client.get(url)
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.text.startswith("<svg ")
    assert "prefers-color-scheme: dark" in answer.text
    assert "<script" not in answer.text
    again = real.client.get(url, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("name", ["none", "tiles-0", "tiles-99", "measured"])
def test_a_chart_that_is_none(real: Service, ids: dict[str, str], name: str) -> None:
    assert real.client.get(f"/schedules/{ids['harris']}/charts/{name}.svg").json()["code"] == "not_found"
    assert real.client.get(f"/schedules/none/charts/{name}.svg").json()["code"] == "schedule_not_found"


def test_a_page_without_figures_says_so_and_shows_the_rest(service: Service) -> None:
    service.scheduling.underivable = True
    found = page(service, f"/schedules/{service.schedule()}")
    assert "cannot be made: the document is of another time" in found.text
    assert "Loop nest" in found.text
    assert not any(tag == "svg" for tag, _ in found.tags)


def figures(**places: Any) -> dict[str, Any]:
    """Two stages, `a` read by `b`."""
    stages = [
        {"name": name, "role": "stage", "extents": {"x": 8, "y": 4}, "operations": 1.0, "bytes": 32, "places": [place]}
        for name, place in places.items()
    ]
    edges = [{"producer": "a", "consumer": "b", "elements": 3.0, "overlap": {"x": 2, "y": None}}]
    return {"stages": stages, "edges": edges, "groups": [{"output": "b"}]}


def place(compute: str, store: str, storage: str = "memory", recompute: float = 1.0) -> dict[str, Any]:
    return {"group": "b", "compute": compute, "store": store, "storage": storage, "recompute": recompute, "bytes": 64}


def test_views_tell_levels_and_what_is_computed_again() -> None:
    found = figures(a=place("y.inner", "x.outer", recompute=1.25), b=place("root", "root"))
    sources = Sources(((2, "b"), (3, "a")), (Part("b", 3, 7),))
    a, b = stage_views(found, sources)
    assert (a.level, a.again, a.loop, a.parts) == ("1 · y.inner / x.outer", 1.25, 3, (Part("b", 3, 7),))
    assert (b.level, b.again, b.loop, b.extents) == ("1 · root", None, 2, "8 × 4")
    (inline, _) = stage_views(figures(a=place("inline", "inline"), b=place("root", "root")), sources)
    assert inline.inline
    (registers, _) = stage_views(figures(a=place("x.inner", "y.inner", "registers"), b=place("root", "root")), sources)
    assert registers.level == "1 · x.inner / registers"


def test_an_edge_tells_its_overlap() -> None:
    found = figures(a=place("root", "root"), b=place("root", "root"))
    drawing = drawn(stage_views(found, Sources((), ())), found["edges"])
    (line,) = drawing.lines
    assert (line.label, line.inline) == ("x 2", False)
    assert line.title == (
        "b reads 3 elements of a for a point; along x the next point reads 2 of these again; "
        "along y the next point reads all of these again"
    )
    assert line.at is not None
    for box in drawing.boxes:  # no label covers a box
        assert not box.y <= line.at[1] <= box.y + drawing.box_height


def test_parts_are_lines_of_one_stage_after_the_other() -> None:
    code = "/* a: y.outer */\n  a_1[x] = t;\n  b_1[x] = t;\n  a_2[x] = t;\n"
    assert sources_of("", code, ["a", "b"]).parts == (Part("a", 1, 2), Part("b", 3, 3), Part("a", 4, 4))


def test_listings_have_a_place_for_each_line_and_escape() -> None:
    code = '#define A "<b>"\n/* one\n   two */\nif (a < b) return 1;\n'
    html = code_listing(code, (Part("s", 4, 4),))
    assert html.count('<span id="L') == 4
    assert '<span class="c1">/* one</span></span>\n' in html
    assert '<span id="L3"><span class="c1">   two */</span>' in html
    assert 'id="L4"><span class="k">if</span> (a &lt; b)' in html
    assert 'href="#node-s"' in html
    assert "<b>" not in html
    views = {v.name: v for v in stage_views(figures(a=place("root", "root"), b=place("root", "root")), Sources((), ()))}
    text = "group b\n  allocate a\n  produce a:\n    a(x) = <...>\n  b(x) = a(x)"
    nest = nest_listing(text, sources_of(text, "", []), views)
    assert nest.count("<a href") == 1
    assert '<span id="nest-3">  produce a: <a href="#node-a"' in nest
    assert "&lt;...&gt;" in nest


def test_the_twin_of_a_page_is_the_schedule(real: Service, ids: dict[str, str]) -> None:
    found = page(real, f"/schedules/{ids['harris']}")
    assert f"/v1/schedules/{ids['harris']}" in found.links
    assert json.loads(real.client.get(f"/v1/schedules/{ids['harris']}").content)["id"] == ids["harris"]
