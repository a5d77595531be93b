"""docs/python.md is held to the code: its blocks run one after the other, what it shows is what one sees."""

from __future__ import annotations

import re
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tilesmith as ts
from tilesmith.app.inprocess.signature import OPTIONS
from tilesmith.app.inprocess.tracing import TracedPipeline

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
WIDTH, HEIGHT = 640, 427


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The names that the blocks of the page define, in a folder with a photograph."""
    folder = tmp_path_factory.mktemp("python")
    samples = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    Image.fromarray(samples).save(folder / "photo.jpg")
    found: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
            exec(compile(block, "docs/python.md", "exec"), found)
        with Image.open(folder / "sharp.png") as picture:
            found["saved"] = picture.size
    return found


def test_results_are_what_the_page_says(names: dict[str, Any]) -> None:
    assert names["saved"] == (WIDTH, HEIGHT)
    assert names["softer"].shape == names["result"].shape == (3, HEIGHT, WIDTH)
    assert names["corners"].shape == (HEIGHT - 4, WIDTH - 4)
    shown = re.search(r"where = .*# ({.*}), \(min", PAGE)[1]
    assert names["where"] == eval(shown, {"W": WIDTH, "H": HEIGHT})
    np.testing.assert_array_equal(names["memory"], names["part"])
    assert names["needed"] == eval(re.search(r"needed = .*# ({.*})", PAGE)[1])
    assert repr(names["sharpen"]).startswith(re.search(r"print\(sharpen\)  # (.*)\.\.\.>", PAGE)[1])


def test_the_error_is_the_one_that_one_sees(names: dict[str, Any]) -> None:
    (line,) = re.findall(r"^    (input 'input' .*)$", PAGE, re.MULTILINE)
    with pytest.raises(ts.ArgumentError) as caught:
        names["sharpen"](names["planes"].transpose(1, 2, 0))
    assert str(caught.value) == line


def test_every_attribute_option_and_setting_is_on_the_page(names: dict[str, Any]) -> None:
    public = {n for n in dir(ts.CompiledPipeline) if not n.startswith("_")}
    told = set(re.findall(r"`(?:sharpen\.|harris\.)?(\w+)(?:\(.*?\))?`", PAGE)) | set(re.findall(r"\w+\.(\w+)\(", PAGE))
    assert public <= told
    settings = {p.name for p in signature(TracedPipeline.__init__).parameters.values() if p.kind is p.KEYWORD_ONLY}
    assert settings <= told
    assert set(OPTIONS) <= told
