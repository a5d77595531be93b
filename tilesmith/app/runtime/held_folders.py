"""Folders that are somebody's as long as their process lives: those of killed ones are found by it and deleted.

A folder is held by a lock on it, which ends with the process, however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path


@contextlib.contextmanager
def new_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder in `parent`, for this process alone; deleted at the end, unless it is elsewhere then."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        with held(folder) as ours:
            if ours:
                try:
                    yield folder
                finally:
                    shutil.rmtree(folder, ignore_errors=True)
                return


@contextlib.contextmanager
def held(folder: Path) -> Iterator[bool]:
    """Holds a folder; False where somebody has deleted it meanwhile. A file system without locks has it unheld."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield _is_there(folder, handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def left(folder: Path) -> Iterator[bool]:
    """True if nobody holds the folder, and nobody will for now."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        free = True
    except OSError:
        free = False
    try:
        yield free
    finally:
        os.close(handle)


def sweep(folders: Iterable[Path]) -> list[Path]:
    """Deletes those of the folders that nobody holds; these."""
    swept = []
    for folder in folders:
        with left(folder) as free:
            if free:
                shutil.rmtree(folder, ignore_errors=True)
                swept.append(folder)
    return swept


def _is_there(folder: Path, handle: int) -> bool:
    try:
        there, opened = os.stat(folder), os.fstat(handle)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino)
