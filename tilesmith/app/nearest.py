"""Names and files that somebody may have meant who wrote another one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

SUFFIXES = (".yaml", ".yml", ".json")
MOST_FILES = 1000
"""Files of a folder that are looked at."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is nearest to another, if one is near."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)), None)


def nearest_document(name: str, known: Iterable[str]) -> str | None:
    """The known name, or the document beside a file of that name, that is nearest to it, if one is near."""
    return nearest(name, (*known, *_documents_beside(name)))


def _documents_beside(name: str) -> Iterable[str]:
    folder = Path(name).parent
    try:
        files = [f.name for f in islice(folder.iterdir(), MOST_FILES) if f.suffix.lower() in SUFFIXES]
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return ()
    return [str(folder / f) for f in files]
