"""The importer `mlir`: functions of tensors in MLIR's linalg, as text. Nothing of it is run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.frontends.importer import ImportedPipeline, ImportFailed


@dataclass(frozen=True, slots=True)
class MlirImporter:
    """An importer (`tilesmith.scheduler.frontends.importer.ContentImporter`) of FILE.mlir, or FILE.mlir:FUNCTION."""

    name: str = "mlir"
    suffixes: tuple[str, ...] = (".mlir",)

    def load(self, source: str) -> ImportedPipeline:
        """The pipeline of a file's function. Raises ImportFailed, DocumentError, OSError."""
        path, _, function = source.rpartition(":") if not source.endswith(self.suffixes) else (source, "", "")
        return self._made(Path(path or source).read_bytes(), function or None)

    def read(self, content: bytes) -> ImportedPipeline:
        """The pipeline of the one function in the text of a file. Raises as `load` does."""
        return self._made(content, None)

    def _made(self, content: bytes, function: str | None) -> ImportedPipeline:
        try:
            from tilesmith.scheduler.frontends.mlir.text import parsed
            from tilesmith.scheduler.frontends.mlir.translation import translated
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("xdsl"):
                raise
            raise ImportFailed(("the package xdsl is not installed", "pip install 'tilesmith[mlir]'")) from None
        draft = translated(parsed(content, function))
        return ImportedPipeline(load(draft.document), tuple(draft.notes), draft.weights)
