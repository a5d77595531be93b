"""`tilesmith import halide`: the user's file, what it returns, and what is wrong with either."""

import json
import sys

import pytest
from support.modules import require_module
from typer.testing import CliRunner

from tilesmith.app.cli import app
from tilesmith.scheduler.frontends.document.document import load, load_text

FILE = """
import halide as hl

x, y = hl.Var("x"), hl.Var("y")


def blur():
    image = hl.ImageParam(hl.UInt(16), 2, "input")
    near = hl.BoundaryConditions.repeat_edge(image)
    rows, soft = hl.Func("rows"), hl.Func("soft")
    rows[x, y] = (near[x - 1, y] + near[x, y] + near[x + 1, y]) // 3
    soft[x, y] = (rows[x, y - 1] + rows[x, y] + rows[x, y + 1]) // 3
    soft.set_estimates([(0, 640), (0, 480)])
    return soft


def table():
    image = hl.ImageParam(hl.UInt(8), 1, "image")
    numbers = hl.Buffer(hl.UInt(8), [256], "numbers")
    f = hl.Func("f")
    f[x] = hl.strict_float(hl.cast(hl.Float(32), numbers[hl.cast(hl.Int(32), image[x])]) + 1)
    f.set_estimates([(0, 640)])
    return [f]


def hopeless():
    image = hl.ImageParam(hl.Float(16), 1, "image")
    f = hl.Func("f")
    f[x] = hl.cast(hl.Float(32), image[x])
    return hl.Pipeline(f)


def nothing():
    return None


def sized(width):
    return None


def failing():
    raise ValueError("no idea")


def empty():
    return hl.Func("empty")
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    require_module("halide")
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / "theirs.py"
    path.write_text(FILE)
    yield path
    sys.modules.pop("theirs", None)


def imported(*arguments, status=0):
    result = CliRunner().invoke(app, ["import", "halide", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result


def test_the_document_is_printed_and_written(file, tmp_path):
    printed = imported(f"{file}:blur")
    pipeline = load_text(printed.stdout)
    assert pipeline.name == "blur"
    assert [s.name for s in pipeline.stages] == ["rows", "soft"]
    assert printed.stderr == ""
    for name in ("blur.yaml", "blur.json"):
        assert imported(f"{file}:blur", "--output", tmp_path / name).stdout == ""
        assert load_text((tmp_path / name).read_text()) == pipeline
    assert load(json.loads((tmp_path / "blur.json").read_text())) == pipeline


def test_what_is_not_quite_the_same_is_noted(file):
    result = imported(f"{file}:table")
    assert "--strict" in result.stderr
    table = load_text(result.stdout).input("numbers").table
    assert table is not None
    assert table.region[0][0] == 0


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("hopeless", "image: the type float16"),
        ("hopeless", "call set_estimates"),
        ("nothing", "returned something else: expected a Func, several, or a Pipeline of Halide, not NoneType"),
        ("sized", "needs arguments"),
        ("failing", "failed: ValueError: no idea"),
        ("failing", "theirs.py:42"),
        ("empty", "empty: an output that nothing defines"),
        ("blurr", "did you mean 'blur'?"),
    ],
)  # fmt: skip
def test_errors_name_what_is_wrong(file, source, message):
    assert message in imported(f"{file}:{source}", status=2).stderr


def test_files_that_are_not_there(tmp_path):
    require_module("halide")
    assert "there is no file" in imported(tmp_path / "none.py:f", status=2).stderr
    assert "there is no file" in imported(tmp_path / "none.py", status=2).stderr
    (tmp_path / "broken.py").write_text("def f(:\n")
    assert "SyntaxError" in imported(f"{tmp_path / 'broken.py'}:f", status=2).stderr


def test_without_halide_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "halide", None)
    assert "pip install 'halide>=21,<22'" in imported(f"{tmp_path}/a.py:f", status=2).stderr
