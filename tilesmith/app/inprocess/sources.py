"""Pipelines and platforms as callers name them: objects, documents, names, files."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

from tilesmith import platforms
from tilesmith.app.nearest import nearest_document
from tilesmith.app.profiler.first_use import asked
from tilesmith.app.profiler.host import document_in_environment
from tilesmith.app.profiler.host import host as host_platform
from tilesmith.platforms import Platform
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.errors import DocumentError, TilesmithError
from tilesmith.scheduler.frontends.document.document import load, load_text
from tilesmith.scheduler.frontends.document.excerpts import problem_lines
from tilesmith.scheduler.frontends.importer import ImportedPipeline
from tilesmith.scheduler.frontends.registry import importer_of
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

HOST = "host"
_LOG = logging.getLogger("tilesmith")


class UnknownSource(TilesmithError):
    """There is no pipeline or platform of that name, and no such file."""

    code = "bad_argument"


def pipeline_of(source: object) -> ImportedPipeline:
    """The pipeline that `source` is: itself, imported or not, a document (a mapping, or its text in JSON or YAML), the
    name of a shipped one, or a file: a document, or what an importer reads.

    Raises DocumentError where the document is wrong, ImportFailed, and UnknownSource.
    """
    match source:
        case ImportedPipeline():
            return source
        case Pipeline():
            return ImportedPipeline(source)
        case Mapping():
            return ImportedPipeline(load(dict(source)))
        case str() if source in pipelines.names():
            return ImportedPipeline(pipelines.load(source))
        case str() if "\n" in source or source.lstrip().startswith("{"):
            return ImportedPipeline(_parsed(source, "the document", None))
        case str() | os.PathLike():
            return _file(Path(source))
    raise UnknownSource(f"a pipeline, a document, a name or a file is needed, not a {type(source).__name__}")


def _file(path: Path) -> ImportedPipeline:
    text = _read(path, "pipeline", pipelines.names())
    if (importer := importer_of(str(path))) is not None:
        return importer.load(str(path))
    suffixes = {".yaml": True, ".yml": True, ".json": False}
    return ImportedPipeline(_parsed(text, str(path), suffixes.get(path.suffix.lower())))


def _parsed(text: str | bytes, source: str, yaml: bool | None) -> Pipeline:
    """The pipeline of a text. Raises DocumentError, whose message has the line and column of every problem."""
    try:
        return load_text(text, yaml=yaml)
    except DocumentError as error:
        told = "\n".join((f"{source} is wrong:", *problem_lines(error.problems, source, text)))
        raise DocumentError(error.problems, told) from None


def platform_of(source: object) -> Platform:
    """The platform that `source` is: itself, a document (a mapping), a name of the catalog, a file, or `host`, this
    machine: what the environment says of it, or else what is measured on first use.

    Raises PlatformError where the document is wrong, and UnknownSource.
    """
    if source == HOST:
        document = document_in_environment()
        if document is not None:
            return platforms.load_text(_read(document, "platform"))
        return host_platform(calibrate=asked(), tell=_LOG.info, warn=warnings.warn)
    if isinstance(source, str) and source in platforms.catalog_names():
        return platforms.load(source)
    if isinstance(source, str | os.PathLike):
        return platforms.load_text(_read(Path(source), "platform", (HOST, *platforms.catalog_names())))
    return platforms.load(source)


def _read(path: Path, what: str, known: Iterable[str] = ()) -> bytes:
    """The bytes of a document. Raises UnknownSource, which offers the known names."""
    try:
        return path.read_bytes()
    except OSError as error:
        names = sorted(known)
        near = nearest_document(str(path), names)
        hint = f"did you mean {near!r}?" if near is not None else f"known: {', '.join(names)}" if names else ""
        reason = "no file of that name, and none is shipped under it" if names else error.strerror
        raise UnknownSource(f"there is no {what} {str(path)!r}: {reason}" + (f"; {hint}" if hint else "")) from None
