"""examples/inputs.py makes what the shipped pipelines take, and something comes of it."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from tilesmith.app.cli import app

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "examples" / "inputs.py"


@pytest.fixture(scope="module")
def inputs():
    spec = importlib.util.spec_from_file_location("example_inputs", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def photo(tmp_path):
    """Shades and a texture, 80 x 30."""
    y, x = np.mgrid[:30, :80]
    texture = np.random.default_rng(0).integers(0, 60, (30, 80))
    path = tmp_path / "photo.png"
    Image.fromarray(np.dstack([60 + x + texture, 100 + y + texture, 40 + x + y + texture]).astype(np.uint8)).save(path)
    return path


def make(inputs, monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["inputs.py", *map(str, arguments)])
    return inputs.main()


def interpreted(folder, pipeline, given, *options):
    """The output, as it is, of files in `folder`."""
    (output,) = {"machado_interpolation": ("normalize",)}.get(pipeline, ("output",))
    arguments = ["interpret", pipeline, *options, "--output", f"{output}={folder / 'out.npy'}"]
    for name, file in given.items():
        arguments += ["--input", f"{name}={folder / file}"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return np.load(folder / "out.npy")


def read(path):
    return np.asarray(Image.open(path), dtype=np.float32).transpose(2, 0, 1) / 255


def test_stereo(inputs, photo, tmp_path, monkeypatch):
    assert make(inputs, monkeypatch, "stereo", photo, tmp_path) == 0
    out = interpreted(tmp_path, "lens_blur", {"left": "left.png", "right": "right.png"}, "--param", "slices=16")
    before = read(photo)
    assert out.shape == before.shape
    error = np.abs(out - before)
    assert error[:, 14:22, 36:44].mean() < 0.5 * error[:, 4:26, 4:12].mean()


def test_joint(inputs, photo, tmp_path, monkeypatch):
    dark = tmp_path / "dark.png"
    Image.fromarray(np.full((34, 44, 3), 20, np.uint8)).save(dark)
    assert make(inputs, monkeypatch, "joint", photo, dark, tmp_path) == 0
    out = interpreted(tmp_path, "pyramid_blend", {"image1": "image1.png", "image2": "image2.png", "mask": "mask.png"})
    one, two = read(tmp_path / "image1.png"), read(tmp_path / "image2.png")
    assert out.shape == one.shape == two.shape == (3, 30, 44)
    assert np.abs(out - one)[:, 13:17, 20:24].max() < 0.2
    assert np.abs(out - two)[:, :2, :2].max() < 0.1


def test_sparse(inputs, photo, tmp_path, monkeypatch):
    assert make(inputs, monkeypatch, "sparse", photo, tmp_path) == 0
    for pipeline in ("interpolate", "machado_interpolation"):
        out = interpreted(tmp_path, pipeline, {"input": "sparse.png"})
        assert np.abs(out[:3] - read(photo)).mean() < 0.15


def test_network(inputs, photo, tmp_path, monkeypatch):
    assert make(inputs, monkeypatch, "network", tmp_path) == 0
    names = ("first_weights", "weights", "last_weights", "biases")
    Image.open(photo).crop((0, 0, 34, 30)).save(photo)
    given = {"image": photo.name} | {name: f"{name}.npy" for name in names}
    out = interpreted(tmp_path, "vdsr", given, "--convert")
    gray = np.tensordot([0.299, 0.587, 0.114], read(photo), 1)
    assert out.shape == gray.shape
    inside = (slice(10, -10), slice(10, -10))
    assert out[inside].std() > 1.2 * gray[inside].std()


def test_a_missing_photograph_is_told(inputs, tmp_path, monkeypatch, capsys):
    assert make(inputs, monkeypatch, "stereo", tmp_path / "none.png", tmp_path) == 1
    assert "none.png" in capsys.readouterr().err
