"""Generators of Halide's Python, params and sizes from the command line, and errors by their causes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.modules import require_module
from typer.testing import CliRunner

from tilesmith.app.cli import app
from tilesmith.scheduler.frontends.document.document import load_text
from tilesmith.scheduler.frontends.halide.importer import HalideImporter
from tilesmith.scheduler.frontends.importer import ImportFailed

require_module("halide")

import halide as hl  # noqa: E402

from tilesmith.scheduler.frontends.halide import NotExpressible, from_halide  # noqa: E402

pytestmark = pytest.mark.halide

FILE = """
import halide as hl

x, y = hl.Var("x"), hl.Var("y")


@hl.generator(name="box")
class Box:
    radius = hl.GeneratorParam(1)
    photo = hl.InputBuffer(hl.UInt(8), 2)
    gain = hl.InputScalar(hl.Float(32))
    out = hl.OutputBuffer(hl.UInt(8), 2)

    def generate(g):
        r = hl.RDom([(-g.radius, 2 * g.radius + 1)])
        near = hl.BoundaryConditions.repeat_edge(g.photo)
        total = hl.Func("total")
        total[x, y] = hl.sum(hl.cast(hl.Float(32), near[x + r.x, y]))
        g.out[x, y] = hl.u8_sat(total[x, y] * g.gain)
        if not g.using_autoscheduler():
            g.out.vectorize(x, 8)
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / "box.py"
    path.write_text(FILE)
    return path


def imported(*arguments: object, status: int = 0) -> Any:
    result = CliRunner().invoke(app, ["import", "halide", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result


@pytest.mark.parametrize("name", ["", ":box", ":Box"])
def test_generators_with_their_params(file: Path, name: str) -> None:
    options = ["--param", "radius=3", "--param", "gain=0.25", "--size", "640,480"]
    pipeline = load_text(imported(f"{file}{name}", *options).stdout)
    assert (pipeline.name, pipeline.outputs, [i.name for i in pipeline.inputs]) == ("box", ("out",), ["photo"])
    assert pipeline.params[0].default == 0.25
    assert pipeline.estimate("out") == ((0, 640), (0, 480))
    assert "range(-3, 4)" in str(imported(f"{file}{name}", *options).stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "(--size)"),
        (["--size", "640"], "the output 'out' has 2 dims, its size has 1"),
        (["--size", "other=3,4"], "the outputs are out"),
        (["--size", "wide"], "expected extents"),
        (["--size", "6,4", "--param", "radious=3"], "the params are gain"),
        (["--size", "6,4", "--param", "gain=loud"], "'loud' is none"),
        (["--size", "6,4", "--param", "radius=wide"], "radius"),
        (["--param", "radius"], "expected NAME=VALUE"),
    ],
)
def test_what_is_wrong_with_options(file: Path, arguments: list[str], message: str) -> None:
    assert message in imported(file, *arguments, status=2).stderr


def test_files_of_compiled_generators_take_values_and_ranges(tmp_path: Path) -> None:
    image, shift = hl.ImageParam(hl.UInt(8), 1, "image"), hl.Param(hl.Int(32), "shift")
    f, x = hl.Func("moved"), hl.Var("x")
    f[x] = image[x + shift]
    path = tmp_path / "moved.hlpipe"
    hl.serialize_pipeline(hl.Pipeline(f), str(path))
    found = HalideImporter().configured({"shift": "-2:5"}, {"moved": (100,)}).load(str(path)).pipeline
    assert (found.params[0].min, found.params[0].max, found.estimate("moved")) == (-2, 5, ((0, 100),))
    found = HalideImporter().configured({"shift": "3"}, {"": (100,)}).load(str(path)).pipeline
    assert (found.params[0].default, found.params[0].min, found.estimate("moved")) == (3, None, ((0, 100),))
    with pytest.raises(ImportFailed, match="there is no param 'shaft'"):
        HalideImporter().configured({"shaft": "3"}, {"": (100,)}).load(str(path))


def test_one_cause_is_told_once() -> None:
    """In the user's names: not those of Halide's copies, and without its numbers."""
    image, half = hl.ImageParam(hl.UInt(8), 1, "in8"), hl.ImageParam(hl.Float(16), 1, "in16")
    step, x, r = hl.ImageParam(hl.Int(32), 1, "step"), hl.Var("x"), hl.RDom([(0, 3)])
    funcs = [hl.Func(f"f{n}") for n in range(9)]
    for n, f in enumerate(funcs):
        f[x] = hl.u16(0) if n == 0 else funcs[n - 1][x]
        f[x] += hl.cast(hl.UInt(16), image[x + step[0] * (n + 1) + r.x])
    out = hl.Func("out")
    out[x] = funcs[-1][x] + hl.cast(hl.UInt(16), image[x + step[0]]) + hl.u16(7)
    out.set_estimates([hl.Range(0, 64)])
    with pytest.raises(NotExpressible) as caught:
        from_halide(out)
    (told,) = map(str, caught.value.obstacles)
    assert told.startswith("f0.update(0): Index 1 ('x') of 'in8' depends on the values of 'step', and no bounds")
    assert "for the same reason f1.update(0), f2.update(0), f3.update(0) and 6 more" in told
    out = hl.Func("out")
    out[x] = hl.cast(hl.Float(32), half[x]) * half[x + 1] + hl.cast(hl.Float(32), hl.print(image[x], "seen"))
    out.set_estimates([hl.Range(0, 64)])
    with pytest.raises(NotExpressible) as caught:
        from_halide(out)
    half_too, printed = map(str, caught.value.obstacles)
    remedy = "(use float32, and convert where the pipeline is called)"
    assert half_too == f"in16: the type float16, and for the same reason out {remedy}"
    assert "out: hl.print in halide_print(stringify(in8(x), ' seen" in printed
