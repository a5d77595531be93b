"""`new`: a document to start from, which fits a photograph and runs as it is."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

import typer

from tilesmith.app.cli.report import UsageError
from tilesmith.app.cli.sources import suggestion
from tilesmith.app.runtime import images

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
TAKEN = ("image", "strength", "along_x", "along_y", "blurred", "sharp", "gray", "slope_x", "slope_y", "x", "y", "c")
"""Names that templates have for themselves."""
_FOLDER = files("tilesmith.app.cli") / "templates"


@dataclass(frozen=True, slots=True)
class Kind:
    """The images that a document is for; `channels` None: without a dim of channels."""

    type: str
    width: int
    height: int
    channels: int | None


PHOTOGRAPH = Kind("uint8", 1920, 1080, 3)


def templates() -> tuple[str, ...]:
    """The names of the templates."""
    return tuple(sorted(f.name.removesuffix(".yaml") for f in _FOLDER.iterdir() if f.name.endswith(".yaml")))


def new(name: str, template: str, photo: Path | None, output: Path | None) -> None:
    """Writes the document and prints what to do with it. Raises UsageError; nothing is overwritten."""
    if not NAME.fullmatch(name) or name in TAKEN:
        hint = "letters, digits and _, not beginning with a digit, and none of " + ", ".join(TAKEN)
        raise UsageError((f"new {name}: this cannot be the name of the pipeline", hint))
    if template not in templates():
        message = f"--template {template}: there is no such template"
        raise UsageError((message, suggestion(template, templates(), "templates")))
    path = output if output is not None else Path(f"{name}.yaml")
    kind = _kind(photo) if photo is not None else PHOTOGRAPH
    shown = str(photo) if photo is not None else "photo.jpg"
    text = document(name, template, kind, str(path), shown)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError((f"{path} is there already", "name another file with --output")) from None
    except OSError as error:
        raise UsageError((f"{path} cannot be written: {error.strerror or error}", None)) from None
    typer.echo(f"wrote {path}: {template}, for {kind.type} images of {_sizes(kind)}")
    typer.echo("try it:")
    files_ = f"--input image={shlex.quote(shown)} --output {name}={name}.png"
    typer.echo(f"  tilesmith run {shlex.quote(str(path))} {files_}")
    typer.echo(f"  tilesmith schedule {shlex.quote(str(path))}")


def document(name: str, template: str, kind: Kind, file: str, photo: str) -> str:
    """The text of a template for images of a kind. `file` and `photo` are for its comments."""
    dims = ("x", "y") if kind.channels is None else ("x", "y", "c")
    extents = (kind.width, kind.height, kind.channels)
    spans = [f"[0, {extent}]" for _, extent in zip(dims, extents, strict=False)]
    floats = kind.type == "float32"
    return Template((_FOLDER / f"{template}.yaml").read_text(encoding="utf-8")).substitute(
        name=name,
        file=_comment(file),
        photo=_comment(photo),
        type=kind.type,
        dims=", ".join(dims),
        rest="" if kind.channels is None else ", c",
        sizes=_sizes(kind),
        spans=", ".join(spans),
        plane=", ".join(spans[:2]),
        round="" if floats else "round(",
        close="" if floats else ")",
        white={"uint8": "255.0", "uint16": "65535.0"}.get(kind.type, "1.0"),
        gray=_gray(kind.channels),
    )


def _kind(photo: Path) -> Kind:
    """Images as a file is one. Raises UsageError."""
    try:
        raster = images.raster(photo)
    except images.ImageError as error:
        raise UsageError((f"--from {error}", error.hint)) from None
    samples = raster.samples
    type_ = "float32" if samples.dtype.kind == "f" else "uint16" if samples.dtype.itemsize == 2 else "uint8"
    return Kind(type_, samples.shape[1], samples.shape[0], raster.channels if raster.channels > 1 else None)


def _gray(channels: int | None) -> str:
    """The brightness of a pixel: Rec. 601 of colours, the first channel of others."""
    if channels is None:
        return "float32(image(x, y))"
    if channels < 3:
        return "float32(image(x, y, 0))"
    weights = (0.299, 0.587, 0.114)
    return " + ".join(f"{w} * float32(image(x, y, {c}))" for c, w in enumerate(weights))


def _sizes(kind: Kind) -> str:
    plane = f"x {kind.width}, y {kind.height}"
    return plane if kind.channels is None else f"{plane}, c {kind.channels} (its channels)"


def _comment(text: str) -> str:
    """A path as it may stand in a comment and in a shell."""
    return shlex.quote("".join(c if c.isprintable() else "?" for c in text))
