"""docs/tutorial.md is typed: every command and block, in its order, in a folder with a photograph."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from tilesmith.app.cli import app

pytestmark = pytest.mark.slow
PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
ERROR = re.search(r"((?:^    error:.*\n)(?:^ {4}.*\n|\n)+)", PAGE, re.M)
SERVED = ("serve",)
"""Verbs that do not end."""


def _steps() -> Iterator[tuple[str, str]]:
    """The commands of the page, as ("command", line), and its blocks, as ("python" or "yaml", text), in their order."""
    pattern = r"^    (tilesmith [^\n]*)$|^```(python|yaml)\n(.*?)^```"
    for match in re.finditer(pattern, PAGE, re.M | re.S):
        yield ("command", match[1].strip()) if match[1] else (match[2], match[3])


def _edited(document: Path, value: str) -> None:
    """The document with another value of `along_x`."""
    text, count = re.subn(r"(name: along_x\n.*\n)    value:.*\n", lambda m: m[1] + value, document.read_text())
    assert count == 1
    document.write_text(text)


def test_every_step_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    samples = np.random.default_rng(0).integers(0, 256, (90, 120, 3), np.uint8)
    Image.fromarray(samples).save("photo.jpg")
    document, told = Path("crisp.yaml"), ""
    for kind, text in _steps():
        if kind == "yaml":
            _edited(document, text)
            document.write_text(document.read_text().replace("image(x - 2", "imgae(x - 2"))
        elif kind == "python":
            exec(compile(text, "docs/tutorial.md", "exec"), {})
        else:
            command, _, comment = text.partition("  # exit status ")
            words = shlex.split(command)[1:]
            if words[0] in SERVED:
                continue
            done = CliRunner().invoke(app, words, catch_exceptions=False)
            assert done.exit_code == int(comment or 0), done.output
            if comment:
                told = done.stderr
                document.write_text(document.read_text().replace("imgae", "image"))
    assert ERROR is not None
    assert told.strip() == re.sub(r"^    ", "", ERROR[1], flags=re.M).strip()
    assert np.asarray(Image.open("crisp2.png")).shape == samples.shape
    assert (tmp_path / "library" / "crisp.h").exists()
    first, second = (np.asarray(Image.open(name)).astype(int) for name in ("photo.jpg", "crisp.png"))
    assert np.abs(first - second).max() > 0
