"""Importers: what makes pipelines of files that are not documents of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tilesmith.scheduler.errors import TilesmithError
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class ImportedPipeline:
    """A pipeline that was imported; `notes` say what a reader of the source might not expect. `weights` are the values
    that the source itself has of inputs, by name: axes are the dims reversed, as everywhere."""

    pipeline: Pipeline
    notes: tuple[str, ...] = ()
    weights: Mapping[str, np.ndarray[Any, np.dtype[Any]]] = field(default_factory=dict)


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


@runtime_checkable
class ConfigurableImporter(Importer, Protocol):
    """An importer that takes values of params and sizes of outputs from the command line."""

    def configured(self, params: Mapping[str, str], sizes: Mapping[str, Sequence[int]]) -> Importer:
        """The importer with values by the names of params, as texts, and extents by the names of outputs, fastest dim
        first; under the empty name are those of every output of which the source says none."""
        ...


@runtime_checkable
class ContentImporter(Importer, Protocol):
    """An importer that reads the content of a file by itself: it runs nothing of it and opens no other file, so that
    the service offers it to whoever may ask for schedules."""

    def read(self, content: bytes) -> ImportedPipeline:
        """The pipeline of a file's content. Raises as `load` does."""
        ...


class ImportFailed(TilesmithError):
    """A source that no pipeline can be made of. `problems` are (message, hint or None), all that were found."""

    code = "bad_source"

    def __init__(self, *problems: tuple[str, str | None]) -> None:
        super().__init__("\n".join(message for message, _ in problems))
        self.problems = problems
