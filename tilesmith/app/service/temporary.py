"""Temporary files of one service: in a folder of its own, which is gone when it ends, however it ends.

A service that is killed cannot delete its folder, nor its semaphores, which have the folder's name. The next one on the
machine does.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tilesmith.app.runtime import held_folders

PREFIX = "tilesmith-service-"
SHARED = Path("/dev/shm")


@contextlib.contextmanager
def private_folder(parent: Path | None = None) -> Iterator[Path]:
    """A folder for the temporary files of this process and its children, below `parent` (the system's). Folders of
    services that are gone are deleted first."""
    parent = parent or Path(tempfile.gettempdir())
    sweep(parent)
    with held_folders.new_folder(parent, PREFIX) as folder, _semaphores(folder.name):
        before = tempfile.tempdir, os.environ.get("TMPDIR")
        tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
        try:
            yield folder
        finally:
            tempfile.tempdir = before[0]
            os.environ.pop("TMPDIR") if before[1] is None else os.environ.update(TMPDIR=before[1])


def sweep(parent: Path) -> None:
    """Deletes the folders of services that are gone, and their semaphores."""
    for folder in held_folders.sweep(parent.glob(f"{PREFIX}*")):
        for semaphore in SHARED.glob(f"sem.{folder.name}-*"):
            semaphore.unlink(missing_ok=True)


@contextlib.contextmanager
def _semaphores(name: str) -> Iterator[None]:
    """Semaphores of this process have names that begin so: Python deletes those of a process that was killed only
    where its resource tracker lives on."""
    names = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    before = names["semprefix"]
    names["semprefix"] = f"/{name}"
    try:
        yield
    finally:
        names["semprefix"] = before
