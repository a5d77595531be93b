"""Listings of what is shipped and known: `pipelines` and `platforms`."""

from __future__ import annotations

import json
import sys

import typer

from tilesmith.app.cli.report import UsageError, print_json
from tilesmith.app.cli.sources import detected, load_platform, suggestion


def pipelines(as_json: bool) -> None:
    """Prints name and doc of every shipped pipeline."""
    from tilesmith.scheduler import pipelines as shipped

    docs = {name: " ".join(str(shipped.document(name).get("doc", "")).split()) for name in shipped.names()}
    if as_json:
        print_json([{"name": name, "doc": doc} for name, doc in docs.items()])
    else:
        table(docs)


def show_pipeline(name: str) -> None:
    """Prints the document of a shipped pipeline as JSON, ready to be changed and passed as DOC."""
    from tilesmith.scheduler import pipelines as shipped

    if name not in shipped.names():
        hint = suggestion(name, shipped.names(), "shipped pipelines")
        raise UsageError((f"no pipeline {name!r} is shipped", hint))
    typer.echo(json.dumps(shipped.document(name), indent=2))


def platforms(as_json: bool) -> None:
    """Prints name and description of every machine of the catalog."""
    from tilesmith import platforms as known

    described = {name: known.get(name) for name in known.catalog_names()}
    if as_json:
        print_json([{"name": name, "kind": p.kind, "description": p.description} for name, p in described.items()])
    else:
        table({"host": "this machine, as detected", **{name: p.description for name, p in described.items()}})


def show_platform(name: str, calibrate: bool) -> None:
    """Prints the description of a machine as JSON, ready to be changed and passed to --platform."""
    from tilesmith import platforms as known

    typer.echo(json.dumps(known.to_document(load_platform(name, calibrate)), indent=2))


def detect_platform() -> None:
    """Prints what the operating system says of this machine, as JSON."""
    from tilesmith import platforms as known

    typer.echo(json.dumps(known.to_document(detected()), indent=2))


def detect_opencl(wanted: str | None) -> None:
    """Prints an OpenCL device of this machine as JSON, the first, or the `wanted` one; names the others on the standard
    error. UsageError where there is none."""
    from tilesmith.platforms import PlatformError, to_document
    from tilesmith.platforms.opencl.detect import choose, detect, devices

    try:
        found = devices()
        chosen = choose(found, wanted)
        typer.echo(json.dumps(to_document(detect(chosen)), indent=2))
    except PlatformError as error:
        raise UsageError(*((p.message, p.hint) for p in error.problems)) from None
    for number, device in enumerate(found):
        if device is not chosen and wanted is None:
            typer.echo(f"--device {number} is {device.name}, by {device.driver}", err=True)


def table(rows: dict[str, str]) -> None:
    """Names and texts in two columns; texts are cut to the terminal's width, never in a pipe."""
    left = max((len(name) for name in rows), default=0)
    width = _terminal_width()
    for name, text in rows.items():
        line = f"{name:<{left}}  {text}".rstrip()
        typer.echo(line if width is None or len(line) <= width else line[: width - 3] + "...")


def _terminal_width() -> int | None:
    import shutil

    return max(40, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None
