"""`import`: a pipeline that is written for something else, as a document."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from tilesmith.app.cli.report import UsageError
from tilesmith.app.cli.sources import imported, suggestion
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline


def import_pipeline(name: str, source: str, output: Path | None) -> None:
    """Prints or writes the document of the pipeline that the importer of that name makes of the source. Raises
    UsageError, BadDocument."""
    from tilesmith.scheduler.frontends.registry import importers

    known = importers()
    if name not in known:
        raise UsageError((f"import {name}: there is no such importer", suggestion(name, known, "importers")))
    _write(imported(known[name], source), output)


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
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError((f"{output} cannot be written: {error.strerror or error}", None)) from None
