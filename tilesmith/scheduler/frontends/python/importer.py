"""The importer `python`: pipelines written with `scheduler.frontends.python`, by FILE.py:function. The file is run."""

from __future__ import annotations

from dataclasses import dataclass

from tilesmith.scheduler.frontends.importer import ImportedPipeline, ImportFailed
from tilesmith.scheduler.frontends.python.files import PythonFileError, function_of, guarded
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class PythonImporter:
    """An importer (`tilesmith.scheduler.frontends.importer.Importer`) of what a function returns: a pipeline."""

    name: str = "python"
    suffixes: tuple[str, ...] = ()

    def load(self, source: str) -> ImportedPipeline:
        """The pipeline that FILE.py:function returns. Raises ImportFailed."""
        try:
            made = guarded(function_of(source), source)
        except PythonFileError as error:
            raise ImportFailed((str(error), error.hint)) from None
        if not isinstance(made, Pipeline):
            hint = "return what `pipeline(name, outputs=...)` makes"
            raise ImportFailed((f"{source} returned no pipeline, but {type(made).__name__}", hint))
        return ImportedPipeline(made)
