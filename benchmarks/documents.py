"""Pipelines by the name of a shipped one or by the path of a document."""

from __future__ import annotations

from pathlib import Path

from scheduler import pipelines
from scheduler.lang.document import load_text
from scheduler.lang.pipeline import Pipeline


def pipeline_of(name_or_path: str) -> Pipeline:
    """The shipped pipeline of that name, or the document in that file. Raises DocumentError, OSError."""
    if name_or_path in pipelines.names():
        return pipelines.load(name_or_path)
    path = Path(name_or_path)
    return load_text(path.read_bytes(), yaml=path.suffix != ".json")
