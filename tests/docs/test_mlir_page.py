"""docs/mlir.md is held to the code: its commands run, and what it lists is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.modules import require_module
from typer.testing import CliRunner

require_module("xdsl")

from tilesmith.app.cli import app  # noqa: E402
from tilesmith.scheduler.frontends.mlir.text import _context  # noqa: E402

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "mlir.md").read_text(encoding="utf-8")
NOT_READ = {"linalg.quantized_matmul", "linalg.yield", "linalg.index"} | {
    f"linalg.conv_2d_{layouts}" for layouts in ("ngchw_fgchw", "ngchw_gfchw", "nhwgc_gfhwc")
}


@pytest.mark.parametrize(
    "command", [c for c in re.findall(r"^    tilesmith (.*)$", PAGE, re.MULTILINE) if "run" not in c]
)
def test_the_commands_of_the_page_work(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 0, result.output


def test_the_operations_that_are_known_are_listed() -> None:
    told = set(re.findall(r"`(?:linalg\.)?(\w+)`", PAGE))
    told |= {f"pooling_{layout}_{kind}" for layout in ("nhwc", "nchw") for kind in ("sum", "max")} | {
        "pooling_nhwc_min"
    }
    known = {op.name.removeprefix("linalg.") for op in _context().loaded_ops if op.name.startswith("linalg.")}
    assert known - told == {name.removeprefix("linalg.") for name in NOT_READ if "index" not in name}
