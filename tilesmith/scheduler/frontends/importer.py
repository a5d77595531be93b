"""Importers: what makes pipelines of files that are not documents of ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tilesmith.scheduler.errors import TilesmithError
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class ImportedPipeline:
    """A pipeline that was imported; `notes` say what a reader of the source might not expect."""

    pipeline: Pipeline
    notes: tuple[str, ...] = ()


class Importer(Protocol):
    """A reader of one format: its name, and the `suffixes` of files that commands take as a pipeline by themselves
    (with the dot; none: only `tilesmith import NAME` reads it)."""

    @property
    def name(self) -> str: ...
    @property
    def suffixes(self) -> tuple[str, ...]: ...

    def load(self, source: str) -> ImportedPipeline:
        """The pipeline of a source: the path of a file, or what else the format names one by. Raises ImportFailed, and
        DocumentError where the source means a pipeline that cannot be."""
        ...


class ImportFailed(TilesmithError):
    """A source that no pipeline can be made of. `problems` are (message, hint or None), all that were found."""

    code = "bad_source"

    def __init__(self, *problems: tuple[str, str | None]) -> None:
        super().__init__("\n".join(message for message, _ in problems))
        self.problems = problems
