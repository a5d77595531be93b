"""The importer `halide`: pipelines written in Halide's Python, by FILE.py:function, which is run; and those that Halide
has written down, .hlpipe, of which nothing is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tilesmith.scheduler.frontends.importer import ImportedPipeline, ImportFailed
from tilesmith.scheduler.frontends.python.files import PythonFileError, function_of, guarded

if TYPE_CHECKING:
    from tilesmith.scheduler.frontends.halide.live import Imported, NotExpressible


@dataclass(frozen=True, slots=True)
class HalideImporter:
    """An importer (see `scheduler.frontends.importer`) of what a function returns: a Func, several, a Pipeline."""

    name: str = "halide"
    suffixes: tuple[str, ...] = (".hlpipe",)

    def load(self, source: str) -> ImportedPipeline:
        """The pipeline that FILE.py:function returns, or that a file .hlpipe has. Raises ImportFailed, OSError."""
        if source.endswith(self.suffixes):
            return self._read(Path(source).read_bytes(), Path(source).stem)
        from tilesmith.scheduler.frontends.halide.live import HalideMissing, NotExpressible, from_halide, import_halide

        try:
            import_halide()
            function = function_of(source)
            imported = from_halide(guarded(function, source), name=source.rpartition(":")[2])
        except HalideMissing as error:
            raise ImportFailed((str(error), None)) from None
        except PythonFileError as error:
            raise ImportFailed((str(error), error.hint)) from None
        except TypeError as error:
            hint = "return the output Func, or a list"
            raise ImportFailed((f"{source} returned something else: {error}", hint)) from None
        except NotExpressible as error:
            raise _inexpressible(error) from None
        return _with_notes(imported)

    def read(self, content: bytes) -> ImportedPipeline:
        """The pipeline that Halide has written down. Raises ImportFailed."""
        return self._read(content, None)

    def _read(self, content: bytes, name: str | None) -> ImportedPipeline:
        from tilesmith.scheduler.frontends.halide.file import BadBuffer, from_serialized
        from tilesmith.scheduler.frontends.halide.live import NotExpressible

        try:
            return _with_notes(from_serialized(content, name))
        except BadBuffer as error:
            raise ImportFailed((str(error), "write it with `serialize_pipeline` of Halide 21")) from None
        except NotExpressible as error:
            raise _inexpressible(error) from None


def _inexpressible(error: NotExpressible) -> ImportFailed:
    return ImportFailed(*((f"cannot be expressed: {o.without_hint}", o.hint) for o in error.obstacles))


def _with_notes(imported: Imported) -> ImportedPipeline:
    became = (f"the Buffer {buffer!r} became the input {name!r}" for name, buffer in imported.buffers.items())
    return ImportedPipeline(imported.pipeline, (*became, *imported.remarks))
