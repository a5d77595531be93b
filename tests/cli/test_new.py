"""`new`: documents to start from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image
from typer.testing import CliRunner

from tilesmith.app.cli import app
from tilesmith.app.cli.starter import PHOTOGRAPH, TAKEN, Kind, document, templates
from tilesmith.app.runtime import images
from tilesmith.scheduler.frontends.document.document import load_text
from tilesmith.scheduler.interpreter.interpreter import interpret
from tilesmith.scheduler.ir.pipeline.arguments import Image as Argument

KINDS = (PHOTOGRAPH, Kind("uint8", 30, 20, None), Kind("uint16", 30, 20, 4), Kind("float32", 30, 20, None))


def tilesmith(*arguments: object, status: int = 0) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == status, result.output
    return result.output


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("template", templates())
def test_every_template_is_a_pipeline_of_every_kind(template: str, kind: Kind) -> None:
    pipeline = load_text(document("mine", template, kind, "mine.yaml", "a photo.jpg"), yaml=True)
    assert pipeline.name == "mine"
    assert pipeline.outputs == ("mine",)
    assert pipeline.input("image").type.name == kind.type
    assert pipeline.stage("mine").types[0].name == kind.type
    assert {s.name for s in pipeline.stages} | {p.name for p in pipeline.params} <= {*TAKEN, "mine"}
    estimate = pipeline.estimate("mine")
    assert estimate is not None
    assert [extent for _, extent in estimate[:2]] == [kind.width, kind.height]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("channels", [None, 3])
def test_a_document_fits_its_picture(tmp_path: Path, dtype: type, channels: int | None) -> None:
    shape = (20, 30) if channels is None else (20, 30, channels)
    photo = tmp_path / "photo.tif"
    tifffile.imwrite(photo, np.full(shape, 1, dtype), photometric="minisblack" if channels is None else "rgb")
    said = tilesmith("new", "mine", "--from", photo, "--output", tmp_path / "mine.yaml", "--template", "blur")
    pipeline = load_text((tmp_path / "mine.yaml").read_text(encoding="utf-8"), yaml=True)
    array = images.read(photo, pipeline.input("image"), channels)
    region = {"mine": pipeline.estimate("mine")}
    (made,) = interpret(pipeline, {"image": Argument(array, (0,) * array.ndim)}, {}, region)["mine"]  # type: ignore[arg-type]
    assert np.array_equal(made, array)
    assert f"tilesmith run {tmp_path / 'mine.yaml'} --input image={photo} --output mine=mine.png" in said


def test_what_it_prints_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ramp = np.add.outer(np.arange(20), np.arange(30)).astype(np.uint8)
    Image.fromarray(np.stack([ramp, ramp, ramp], 2)).save("my photo.png")
    said = tilesmith("new", "crisp", "--from", "my photo.png")
    (line,) = [line for line in said.splitlines() if "tilesmith run" in line]
    assert "--input image='my photo.png'" in line
    tilesmith("interpret", "crisp.yaml", "--input", "image=my photo.png", "--output", "crisp=crisp.png")
    inner = np.asarray(Image.open("crisp.png"))[2:-2, 2:-2, 0]
    assert np.array_equal(inner, ramp[2:-2, 2:-2])  # a ramp has nothing that a blur takes away


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("mine")
    assert "is there already" in tilesmith("new", "a", "--output", tmp_path / "a.yaml", status=2)
    assert (tmp_path / "a.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("image",), "cannot be the name"),
        (("2nd",), "cannot be the name"),
        (("a", "--template", "sharpn"), "did you mean 'sharpen'?"),
        (("a", "--from", "nothing.jpg"), "no such file"),
        (("a", "--output", "no/such/folder/a.yaml"), "cannot be written"),
    ],
)
def test_bad_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in tilesmith("new", *arguments, status=2)
    assert not list(tmp_path.iterdir())


def test_an_array_is_no_picture(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    assert "no picture" in tilesmith("new", "a", "--from", tmp_path / "a.npy", status=2)
