"""`import`: a pipeline that is written for something else, as a document; its weights as an archive of arrays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from tilesmith.app.cli.report import UsageError
from tilesmith.app.cli.sources import imported, suggestion
from tilesmith.scheduler.frontends.importer import ConfigurableImporter, ImportedPipeline
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline


def import_pipeline(
    name: str, source: str, output: Path | None, params: Sequence[str] = (), sizes: Sequence[str] = ()
) -> None:
    """Prints or writes the document of the pipeline that the importer of that name makes of the source; beside what is
    written, its weights. Raises UsageError, BadDocument."""
    from tilesmith.scheduler.frontends.registry import importers

    known = importers()
    if name not in known:
        raise UsageError((f"import {name}: there is no such importer", suggestion(name, known, "importers")))
    importer = known[name]
    if params or sizes:
        if not isinstance(importer, ConfigurableImporter):
            raise UsageError((f"the importer {name} takes no --param and no --size", None))
        importer = importer.configured(_values(params), _sizes(sizes))
    found = imported(importer, source)
    _write(found.pipeline, output)
    if found.weights:
        _write_weights(found, output)


def _values(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not name or not sign or not value:
            raise UsageError((f"--param {text}: expected NAME=VALUE or NAME=MIN:MAX", None))
        found[name] = value
    return found


def _sizes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    found = {}
    for text in texts:
        name, _, extents = text.rpartition("=")
        if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", extents):
            raise UsageError((f"--size {text}: expected extents, fastest dim first, as in 1536,2560", None))
        found[name] = tuple(map(int, extents.split(",")))
    return found


def _write(pipeline: Pipeline, output: Path | None) -> None:
    import yaml

    from tilesmith.scheduler.frontends.document.document import to_document

    document = to_document(pipeline)
    if output is not None and output.suffix.lower() == ".json":
        text = json.dumps(document, indent=2) + "\n"
    else:
        text = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=120)
    if output is None:
        typer.echo(text, nl=False)
        return
    with _writing(output):
        output.write_text(text, encoding="utf-8")


def _write_weights(found: ImportedPipeline, output: Path | None) -> None:
    """The weights beside the document, with the command that runs both; a word of them where there is no file."""
    import numpy as np

    if output is None:
        named = ", ".join(found.weights)
        typer.echo(f"note: the source has the values of the inputs {named}: --output FILE writes them, too", err=True)
        return
    beside = output.with_suffix(".npz")
    with _writing(beside), beside.open("wb") as file:
        np.savez(file, allow_pickle=False, **found.weights)
    asked = [f"--input {i.name}=FILE" for i in found.pipeline.inputs if i.name not in found.weights and i.table is None]
    typer.echo(f"wrote {output}, and its weights to {beside}", err=True)
    typer.echo(f"to run it: tilesmith run {output} {' '.join(asked)} --input {beside}", err=True)


@contextmanager
def _writing(output: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError((f"{output} cannot be written: {error.strerror or error}", None)) from None
