"""docs/pipelines.md: every shipped pipeline is there, with a command that fits it."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.frontends.document.document import load_text

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8")
COMMANDS = [line.strip() for line in PAGE.splitlines() if line.startswith("    tilesmith run ")]


def test_every_pipeline_has_its_place() -> None:
    headings = re.findall(r"^### (\w+)$", PAGE, re.M)
    assert sorted(headings) == sorted(pipelines.names())
    run = {shlex.split(c)[2] for c in COMMANDS}
    assert run - {"examples/sensor.yaml", "examples/gradients.yaml"} == set(pipelines.names())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: shlex.split(c)[2])
def test_commands_fit_their_pipeline(command: str) -> None:
    words = shlex.split(command)[2:]
    name, options = words[0], words[1:]
    pipeline = (
        load_text((ROOT / name).read_text(encoding="utf-8"), yaml=True)
        if name.endswith(".yaml")
        else pipelines.load(name)
    )
    named = {
        option: {w.partition("=")[0] for o, w in pairwise(options) if o == option}
        for option in ("--input", "--param", "--output")
    }
    assert named["--input"] == {i.name for i in pipeline.inputs}
    assert named["--output"] == set(pipeline.outputs)
    assert named["--param"] <= {p.name for p in pipeline.params}


def test_examples_that_are_used_are_there() -> None:
    script = (ROOT / "examples" / "inputs.py").read_text(encoding="utf-8")
    used = re.findall(r"examples/inputs.py (\w+)", PAGE)
    assert used
    assert all(f'"{word}"' in script for word in used)
