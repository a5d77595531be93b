"""Pictures of pipelines and their schedules in notebooks: well-formed, with every stage, and text of users escaped."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

import tilesmith as ts
from tilesmith.language import Stage, Var

SVG = "{http://www.w3.org/2000/svg}"


def boxes(html: str) -> list[str]:
    """The names in the boxes of the picture, in the order of their layers."""
    root = ElementTree.fromstring(html)
    picture = root.find(f".//{SVG}svg")
    assert picture is not None
    texts = [(float(t.get("y", "0")), t.text or "") for t in picture.iter(f"{SVG}text") if t.get("font-size") is None]
    drawn = [rect for rect in picture.iter(f"{SVG}rect") if rect.get("stroke") is not None]
    assert len(drawn) == len(texts)
    mask = picture.find(f"{SVG}mask")
    assert mask is not None
    shape = ("x", "y", "width", "height")
    hidden = [[rect.get(key) for key in shape] for rect in mask.iter(f"{SVG}rect") if rect.get("rx") is not None]
    assert hidden == [[rect.get(key) for key in shape] for rect in drawn]
    assert [g.get("mask") for g in picture.iter(f"{SVG}g") if g.get("mask")] == [f"url(#{mask.get('id')})"]
    return [text for _, text in sorted(texts)]


def test_a_pipeline_is_drawn_from_its_inputs_to_its_outputs() -> None:
    blur = ts.shipped_pipeline("blur")
    assert boxes(blur._repr_html_()) == ["input", "blur_x", "blur_y"]
    assert len(boxes(ts.shipped_pipeline("local_laplacian")._repr_html_())) > 50


def test_pictures_on_one_page_have_masks_of_their_own() -> None:
    pages = [ts.shipped_pipeline(name)._repr_html_() for name in ("blur", "harris", "blur")]
    ids = [ElementTree.fromstring(page).find(f".//{SVG}mask").get("id") for page in pages]
    assert ids[0] == ids[2] != ids[1]


def test_a_schedule_is_drawn_with_where_stages_are_computed(harris: ts.CompiledPipeline) -> None:
    html = harris._repr_html_()
    assert set(boxes(html)) == {"input", *(s.name for s in harris.plan.pipeline.stages)}
    assert ">root</text>" in html
    assert "<pre># harris" in html


def test_a_traced_function_shows_what_it_was_traced_to() -> None:
    x, y = Var("x"), Var("y")

    @ts.pipeline
    def twice(photo):
        """<b>Twice</b> & more."""
        result = Stage("result")
        result[x, y] = photo[x, y] * 2
        return result

    assert "traced for 0 types" in twice._repr_html_()
    compiled = twice.compiled(np.ones((4, 5), np.uint8))
    assert boxes(twice._repr_html_()) == ["photo", "result"]
    assert "&lt;b&gt;Twice&lt;/b&gt; &amp; more." in compiled.pipeline._repr_html_()
