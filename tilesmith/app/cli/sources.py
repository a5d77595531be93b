"""DOC, --platform and --schedule: a name, a file, or the standard input, to what it means."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tilesmith.app.cli.report import STANDARD_INPUT, BadDocument, UsageError, print_warning
from tilesmith.app.nearest import nearest, nearest_document
from tilesmith.scheduler.errors import DocumentError

if TYPE_CHECKING:
    from tilesmith.platforms import CpuPlatform, Platform
    from tilesmith.scheduler.frontends.importer import ImportedPipeline, Importer
    from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
    from tilesmith.scheduler.ir.schedule.schedule import Schedule

STDIN = "-"
HOST = "host"


def suggestion(name: str, names: Iterable[str], what: str) -> str:
    """The hint of an unknown name: the nearest known one, or the list of them."""
    known = sorted(names)
    near = nearest(name, known)
    if near is not None:
        return f"did you mean {near!r}?"
    return f"{what}: {', '.join(known)}" if known else f"there are no {what}"


def load_pipeline(doc: str) -> Pipeline:
    """The pipeline of DOC; see `load_imported`."""
    return load_imported(doc).pipeline


def load_imported(doc: str) -> ImportedPipeline:
    """The pipeline of DOC, with its weights: `-`, the name of a shipped pipeline, a JSON or YAML file, or one that an
    importer reads.

    Raises UsageError where there is no such thing, BadDocument where it is wrong.
    """
    from tilesmith.scheduler import pipelines
    from tilesmith.scheduler.frontends.document.document import load_text
    from tilesmith.scheduler.frontends.importer import ImportedPipeline
    from tilesmith.scheduler.frontends.registry import importer_of

    if doc in pipelines.names():
        return ImportedPipeline(pipelines.load(doc))
    if (importer := importer_of(doc)) is not None:
        return imported(importer, doc)
    text = _read(doc, "pipeline", pipelines.names(), "shipped pipelines")
    try:
        return ImportedPipeline(load_text(text, yaml=_is_yaml(doc)))
    except DocumentError as error:
        raise BadDocument(error.problems, _called(doc), text) from None


def imported(importer: Importer, source: str) -> ImportedPipeline:
    """The pipeline that an importer makes of a source; its notes go to the standard error. Raises UsageError,
    BadDocument."""
    from tilesmith.scheduler.frontends.importer import ImportFailed

    try:
        found = importer.load(source)
    except ImportFailed as error:
        raise UsageError(*error.problems) from None
    except DocumentError as error:
        raise BadDocument(error.problems, source) from None
    except OSError as error:
        raise UsageError((f"{source!r} cannot be read: {error.strerror or error}", None)) from None
    for note in found.notes:
        typer.echo(f"note: {note}", err=True)
    return found


def load_platform(name: str, calibrate: bool = True) -> Platform:
    """The platform of --platform: `host` (which the environment may give a document; else measured on first use, to
    `calibrate`), a name of the catalog, or a JSON or YAML file."""
    from tilesmith import platforms
    from tilesmith.app.profiler.first_use import asked
    from tilesmith.app.profiler.host import VARIABLE, document_in_environment

    if name == HOST and (document := document_in_environment()) is not None:
        if not document.is_file():
            raise UsageError((f"{VARIABLE}: there is no file {str(document)!r}", None))
        name = str(document)
    elif name == HOST:
        return measured(detected()) if calibrate and asked() else detected()
    elif name in platforms.catalog_names():
        return platforms.load(name)
    text = _read(name, "platform", (HOST, *platforms.catalog_names()), "platforms")
    try:
        return platforms.load_text(text)
    except platforms.PlatformError as error:
        raise BadDocument(error.problems, _called(name), text) from None


def detected() -> CpuPlatform:
    """The host as the operating system describes it; UsageError where the environment asks for what it has not."""
    from tilesmith.platforms import PlatformError
    from tilesmith.platforms.cpu.detect import host

    try:
        return host()
    except PlatformError as error:
        raise UsageError(*((p.message, p.hint) for p in error.problems)) from None


def measured(host: CpuPlatform, again: bool = False) -> CpuPlatform:
    """The host with the figures of its first use, which are measured now where there are none, or `again`."""
    from tilesmith.app.profiler.first_use import measured_once

    return measured_once(host, lambda text: typer.echo(text, err=True), print_warning, again)


def load_schedule(path: str) -> Schedule:
    """The hand-written schedule of --schedule: a JSON or YAML file. Whether it is legal is not looked at here."""
    from tilesmith.scheduler.ir.schedule.document import from_document

    text = _read(path, "schedule", (), "named schedules")
    try:
        return from_document(parsed(path, text))
    except DocumentError as error:
        raise BadDocument(error.problems, _called(path), text) from None


def load_text(name: str, what: str, known: Iterable[str], known_as: str) -> bytes:
    """The text of a document that is no shipped one; UsageError, which offers the known names, where there is none."""
    return _read(name, what, known, known_as)


def load_document(path: str) -> Any:
    """A JSON or YAML file as data; UsageError where there is none."""
    return parsed(path, _read(path, "file", (), "files"))


def _read(name: str, what: str, known: Iterable[str], known_as: str) -> bytes:
    """The bytes of a document; UsageError where there is none, or more than a document may have."""
    from tilesmith.scheduler.frontends.document.limits import Limits

    limit = Limits().document_bytes
    path = Path(name)
    if name == STDIN:
        return _within(sys.stdin.buffer.read(limit + 1), name, limit)
    if path.is_dir():
        raise UsageError((f"{name} is a directory, not a {what} document", None))
    if path.suffix == ".py" and path.is_file():
        hint = f"'tilesmith import python {name}:function' prints the document of a pipeline that a function makes"
        raise UsageError((f"{name} is Python, not a {what} document", hint if what == "pipeline" else None))
    try:
        with path.open("rb") as file:
            return _within(file.read(limit + 1), name, limit)
    except FileNotFoundError:
        message = f"there is no {what} {name!r}: no file of that name, and none is shipped under it"
        near = nearest_document(name, known)
        hint = suggestion(name, known, known_as) if near is None else f"did you mean {near!r}?"
        raise UsageError((message, hint)) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UsageError((f"{name!r} cannot be read: {getattr(error, 'strerror', None) or error}", None)) from None


def _within(text: bytes, name: str, limit: int) -> bytes:
    if len(text) > limit:
        raise UsageError((f"{_called(name)} is longer than {limit:,} bytes", None))
    return text


def _is_yaml(name: str) -> bool | None:
    """True if the suffix says YAML, False if JSON; None where it says neither."""
    suffix = Path(name).suffix.lower()
    return True if suffix in (".yaml", ".yml") else False if suffix == ".json" else None


def parsed(name: str, text: bytes) -> Any:
    """JSON or YAML as data. Raises UsageError where it is neither."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if _is_yaml(name) is False:
            raise UsageError((f"{name} is not JSON: {error}", None)) from None
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        detail = " ".join(str(error).split())
        raise UsageError((f"{name} is neither JSON nor YAML: {detail}", None)) from None


def _called(name: str) -> str:
    return STANDARD_INPUT if name == STDIN else name
