"""The README and the other pages: their commands work, their links lead somewhere."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from tilesmith.app.cli import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")

RUN_ELSEWHERE = {
    "make run": "CI runs `make run ONCE=1`",
    "make test": "this is it",
    "tilesmith serve": "tests/service starts the service",
    "curl": "tests/service sends this request",
    "TILESMITH_ADMIN_TOKEN=choose-a-long-one docker": "needs a daemon",
}
NEEDS_A_COMPILER = ("tilesmith run",)


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def commands(text=README):
    """The commands of the README, in order: lines of indented blocks outside of fences."""
    without_fences = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    known = (*RUN_ELSEWHERE, "tilesmith")
    return [
        line.strip() for line in without_fences.splitlines() if line.startswith("    ") and line[4:].startswith(known)
    ]


def elsewhere(command):
    return any(command.startswith(prefix) for prefix in RUN_ELSEWHERE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A directory as the reader of the README has it: a photograph, and the document that the page shows."""
    made = tmp_path_factory.mktemp("readme")
    samples = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
    Image.fromarray(samples).save(made / "photo.jpg")
    (made / "soften.yaml").write_text(blocks(README, "yaml")[0])
    return made


def test_the_readme_has_commands():
    assert sum(not elsewhere(c) for c in commands()) >= 12
    for prefix in RUN_ELSEWHERE:
        assert any(c.startswith(prefix) for c in commands()), f"{prefix} is not in the README any more"


@pytest.mark.slow
def test_the_commands_of_the_readme_work_one_after_the_other(folder, monkeypatch):
    """In this process, where all that they import is loaded."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    for command in commands():
        if not elsewhere(command):
            run(command, folder)


def run(command, folder):
    """Later commands read what earlier ones write."""
    arguments = shlex.split(command)
    target = None
    if ">" in arguments:
        target = folder / arguments[arguments.index(">") + 1]
        arguments = arguments[: arguments.index(">")]
    done = CliRunner().invoke(app, arguments[1:])
    assert done.exit_code == 0, f"{command}\n{done.output}"
    if target is not None:
        target.write_text(done.stdout)
    for output in re.findall(r"--output \w+=(\S+)", command):
        with Image.open(folder / output) as picture:
            assert picture.size[0] > 50
    if "--out " in command:
        written = {p.name for p in (folder / arguments[arguments.index("--out") + 1]).iterdir()}
        assert written >= {"harris.c", "harris.h", "schedule.json", "loopnest.txt", "explain.txt"}


@pytest.mark.parametrize("code", blocks(README, "python"))
def test_the_python_of_the_readme_works(code, folder):
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_within_the_repository_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page if not path else (page.parent / path)
        assert target.exists(), f"{page.name} links to {link}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
            anchors = {re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in headings}
            assert anchor in anchors, f"{page.name} links to {link}"


def test_pages_have_no_machine_paths():
    for page in PAGES:
        assert not re.search(r"(?<![\w.])/(work|home|tmp|root)/", page.read_text(encoding="utf-8")), page.name
