"""The importer `halide`: pipelines written in Halide's Python, by FILE.py:function. The file is run."""

from __future__ import annotations

from dataclasses import dataclass

from tilesmith.scheduler.frontends.importer import ImportedPipeline, ImportFailed
from tilesmith.scheduler.frontends.python.files import PythonFileError, function_of, guarded


@dataclass(frozen=True, slots=True)
class HalideImporter:
    """An importer (see `scheduler.frontends.importer`) of what a function returns: a Func, several, a Pipeline."""

    name: str = "halide"
    suffixes: tuple[str, ...] = ()

    def load(self, source: str) -> ImportedPipeline:
        """The pipeline that FILE.py:function returns. Raises ImportFailed."""
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
            told = ((f"cannot be expressed: {o.without_hint}", o.hint) for o in error.obstacles)
            raise ImportFailed(*told) from None
        became = (f"the Buffer {buffer!r} became the input {name!r}" for name, buffer in imported.buffers.items())
        return ImportedPipeline(imported.pipeline, (*became, *imported.remarks))
