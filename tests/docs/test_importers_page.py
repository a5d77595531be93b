"""docs/importers.md is held to the code: its commands and blocks work, and it has every operator."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_models import by_onnxruntime, close
from PIL import Image
from typer.testing import CliRunner

from tilesmith.app.cli import app
from tilesmith.scheduler.frontends.onnx import reader  # noqa: F401  # fills the table
from tilesmith.scheduler.frontends.onnx.node import OPERATORS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "importers.md").read_text(encoding="utf-8")
ONNX, PYTORCH = PAGE.split("\n## ONNX\n")[1].split("\n## PyTorch\n")


def test_every_operator_is_on_the_page() -> None:
    rows = re.findall(r"^\| (?:\w[\w ]*) \| (.*) \|$", ONNX, re.MULTILINE)
    told = [name for row in rows for name in re.findall(r"[A-Z]\w+", row)]
    assert sorted(told) == sorted(OPERATORS)


@pytest.mark.slow
def test_the_commands_and_the_block_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnx

    samples = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
    Image.fromarray(samples).save(tmp_path / "photo.jpg")
    lines = [line.strip() for line in ONNX.splitlines() if line.startswith(("    tilesmith ", "    python "))]
    assert len(lines) == 5
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for line in lines:
        program, *arguments = shlex.split(line.replace("examples/", f"{ROOT}/examples/"))
        if program == "tilesmith":
            told = CliRunner().invoke(app, arguments)
            assert told.exit_code == 0, f"{line}\n{told.output}"
        else:
            done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{line}\n{done.stderr}"
    names: dict[str, Any] = {}
    exec(compile(re.findall(r"```python\n(.*?)```", ONNX, re.DOTALL)[0], "docs/importers.md", "exec"), names)
    (wanted,) = by_onnxruntime(onnx.load("sharpen.onnx"), {"image": names["photo"]})
    assert close(names["sharp"], wanted)
    with Image.open("sharp.png") as picture:
        written = np.asarray(picture).transpose(2, 0, 1)
    assert np.abs(written / 255 - wanted).max() < 0.01


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of PyTorch's own
def test_the_blocks_of_pytorch_work() -> None:
    pytest.importorskip("torch")
    import torch

    from tilesmith.app.inprocess.dynamo import backend

    first, second = re.findall(r"```python\n(.*?)```", PYTORCH, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(first, "docs/importers.md", "exec"), names)
    assert "t_0_weight" in names["imported"].weights
    torch._dynamo.reset()
    names["backend"] = backend  # by name where the package is installed
    exec(compile(second.replace('"tilesmith"', "backend"), "docs/importers.md", "exec"), names)
    with torch.no_grad():
        wanted = names["module"](names["image"]).numpy()
    assert close(names["result"], wanted)
    assert close(names["same"].numpy(), wanted)
