"""The importer `halide`: pipelines written in Halide's Python, by FILE.py:function, which is run; and those that Halide
has written down, .hlpipe, of which nothing is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tilesmith.scheduler.frontends.halide.options import HalideOptions
from tilesmith.scheduler.frontends.importer import ImportedPipeline, ImportFailed
from tilesmith.scheduler.frontends.python.files import PythonFileError, function_of, guarded

if TYPE_CHECKING:
    from tilesmith.scheduler.frontends.halide.imported import Imported, NotExpressible


@dataclass(frozen=True, slots=True)
class HalideImporter:
    """An importer (see `scheduler.frontends.importer`) of what a function returns: a Func, several, a Pipeline; and of
    what a generator builds."""

    name: str = "halide"
    suffixes: tuple[str, ...] = (".hlpipe",)
    options: HalideOptions = field(default_factory=HalideOptions)

    def configured(self, params: Mapping[str, str], sizes: Mapping[str, Sequence[int]]) -> HalideImporter:
        """The importer with values of params (GeneratorParams, and defaults or ranges of Params) and sizes of outputs
        that have no estimates."""
        return replace(self, options=HalideOptions(params, sizes))

    def load(self, source: str) -> ImportedPipeline:
        """The pipeline that FILE.py:function returns, that FILE.py:generator builds, or that a file .hlpipe has.
        Raises ImportFailed, OSError."""
        if source.endswith(self.suffixes):
            return self._read(Path(source).read_bytes(), Path(source).stem)
        from tilesmith.scheduler.frontends.halide.generators import built, generator_of
        from tilesmith.scheduler.frontends.halide.imported import NotExpressible
        from tilesmith.scheduler.frontends.halide.live import HalideMissing, from_halide, import_halide

        try:
            import_halide()
            options, name = self.options, source.rpartition(":")[2]
            generator = generator_of(source) if source.endswith(".py") or ":" in source else None
            if generator is not None:
                outputs, params = built(generator, options.params)
                options, name = replace(options, params=params), generator._halide_registered_name
            else:
                outputs = guarded(function_of(source), source)
            imported = from_halide(outputs, name=name, options=options)
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
        from tilesmith.scheduler.frontends.halide.imported import NotExpressible

        try:
            return _with_notes(from_serialized(content, name, self.options))
        except BadBuffer as error:
            raise ImportFailed((str(error), "write it with `serialize_pipeline` of Halide 21")) from None
        except NotExpressible as error:
            raise _inexpressible(error) from None


def _inexpressible(error: NotExpressible) -> ImportFailed:
    return ImportFailed(*((f"cannot be expressed: {o.without_hint}", o.hint) for o in error.obstacles))


def _with_notes(imported: Imported) -> ImportedPipeline:
    became = (f"the Buffer {buffer!r} became the input {name!r}" for name, buffer in imported.buffers.items())
    return ImportedPipeline(imported.pipeline, (*became, *imported.remarks), imported.draft.weights)
