"""The importers by name: those that are shipped, and those that users register."""

from __future__ import annotations

from tilesmith.scheduler.frontends.halide.importer import HalideImporter
from tilesmith.scheduler.frontends.importer import ContentImporter, Importer
from tilesmith.scheduler.frontends.mlir.importer import MlirImporter
from tilesmith.scheduler.frontends.onnx.importer import OnnxImporter
from tilesmith.scheduler.frontends.python.importer import PythonImporter

_IMPORTERS: dict[str, Importer] = {}


def register(importer: Importer) -> None:
    """Adds an importer. ValueError where its name or a suffix is taken."""
    taken = [i.name for i in _IMPORTERS.values() if i.name == importer.name or {*i.suffixes} & {*importer.suffixes}]
    if taken and _IMPORTERS.get(importer.name) != importer:
        raise ValueError(f"the name or a suffix of the importer {importer.name!r} is that of {taken[0]!r}")
    _IMPORTERS[importer.name] = importer


def importers() -> dict[str, Importer]:
    """All importers, by name."""
    return dict(_IMPORTERS)


def content_importers() -> dict[str, ContentImporter]:
    """The importers that read the content of files, by name."""
    return {name: i for name, i in _IMPORTERS.items() if isinstance(i, ContentImporter)}


def importer_of(source: str) -> Importer | None:
    """The importer that reads files with the suffix of `source`; None where none does."""
    return next((i for i in _IMPORTERS.values() if source.endswith(i.suffixes)), None)


register(HalideImporter())
register(MlirImporter())
register(OnnxImporter())
register(PythonImporter())
