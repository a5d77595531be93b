"""Documents of a check: files, folders and globs to pipelines, and what is asked of each."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilesmith.app.cli.report import UsageError
from tilesmith.app.cli.sources import load_document, suggestion

SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Asked:
    """The documents and the ways in which each is scheduled."""

    docs: tuple[str, ...]
    platforms: tuple[str, ...]
    method: str = "default"
    cost_model: str | None = None
    strict: bool = False
    strategy: str | None = None

    def options(self) -> dict[str, Any]:
        """The options of scheduling that are not the default."""
        given = {"cost_model": self.cost_model, "strict": self.strict}
        return {"method": self.method} | {name: value for name, value in given.items() if value}


def sources(docs: Iterable[str]) -> tuple[str, ...]:
    """Every document that the arguments mean, once: names of shipped pipelines, files, what matches a glob, and the
    .yaml, .yml and .json files of folders. Raises UsageError where one means nothing."""
    found = list(dict.fromkeys(source for doc in docs for source in _meant(doc)))
    if not found:
        raise UsageError(("there is no document to check", "name files, folders, globs, or shipped pipelines"))
    return tuple(found)


def _meant(doc: str) -> Iterator[str]:
    from tilesmith.scheduler import pipelines

    if doc in pipelines.names() or Path(doc).is_file():
        yield doc
        return
    matches = [doc] if Path(doc).is_dir() else sorted(glob.glob(doc, recursive=True))
    if not matches:
        hint = suggestion(doc, pipelines.names(), "shipped pipelines")
        raise UsageError(
            (f"{doc!r} is no file, no folder, matches none, and no pipeline of that name is shipped", hint)
        )
    for match in matches:
        yield from _within(Path(match)) if Path(match).is_dir() else (match,)


def _within(folder: Path) -> list[str]:
    """The documents in a folder and below it, but for hidden ones."""
    files = (p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    return sorted(str(p) for p in files if not any(n.startswith(".") for n in p.relative_to(folder).parts))


def content(source: str) -> str | dict[str, Any]:
    """A document as the service takes it: the name of a shipped pipeline, or data. Raises UsageError where it is
    neither JSON nor YAML, or no object; and what importers raise."""
    from tilesmith.app.cli.sources import imported
    from tilesmith.scheduler import pipelines
    from tilesmith.scheduler.frontends.document.document import to_document
    from tilesmith.scheduler.frontends.registry import importer_of

    if source in pipelines.names():
        return source
    if (importer := importer_of(source)) is not None:
        return to_document(imported(importer, source).pipeline)
    document = load_document(source)
    if not isinstance(document, dict):
        raise UsageError((f"{source} is no pipeline document: it is no object", None))
    return document


def platform(name: str) -> str | dict[str, Any]:
    """A platform as the service takes it: the description in a file, else the name, which the service may know."""
    document = load_document(name) if Path(name).is_file() else name
    if not isinstance(document, (str, dict)):
        raise UsageError((f"{name} is no description of a platform: it is no object", None))
    return document


def strategy(name: str | None) -> str | dict[str, Any] | None:
    """A strategy as the service takes it."""
    from tilesmith.app.cli.strategy import load
    from tilesmith.scheduler.strategies import catalog

    if name is None or name in catalog.names():
        return name
    return load(name).to_document()
