"""Temporary files of one service: in a folder of its own, which is gone when it ends, however it ends.

A service that is killed cannot delete its folder. The next one on the machine does: a folder is locked as long as its
service lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "tilesmith-service-"
LOCK = "lock"


@contextlib.contextmanager
def private_folder(parent: Path | None = None) -> Iterator[Path]:
    """A folder for the temporary files of this process and its children, below `parent` (the system's). Folders of
    services that are gone are deleted first."""
    parent = parent or Path(tempfile.gettempdir())
    sweep(parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    before = tempfile.tempdir, os.environ.get("TMPDIR")
    with (folder / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
        try:
            yield folder
        finally:
            tempfile.tempdir = before[0]
            os.environ.pop("TMPDIR") if before[1] is None else os.environ.update(TMPDIR=before[1])
            shutil.rmtree(folder, ignore_errors=True)


def sweep(parent: Path) -> None:
    """Deletes the folders of services that are gone. One that is being made has no lock yet: it stays."""
    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), (folder / LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
