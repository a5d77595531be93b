"""Compiled libraries of the user: where they are kept between calls, how many, and how long a compiler may take."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path

import platformdirs

from tilesmith.app.runtime.build import BuiltLibrary, build
from tilesmith.app.runtime.errors import StoreError
from tilesmith.platforms import Platform
from tilesmith.scheduler.codegen.artifact import CSource

COMPILE_TIMEOUT_S = 120.0
CACHE_BYTES = 4 << 30


class CacheWarning(UserWarning):
    """Compiled code that cannot be kept for the next process."""


def cache_dir() -> Path:
    """The folder of compiled libraries, which are kept between calls, by content."""
    return platformdirs.user_cache_path("tilesmith", appauthor=False) / "builds"


def kept_build(source: CSource, platform: Platform) -> BuiltLibrary:
    """The library of `source` from the user's cache, or compiled now. Where the cache cannot be written (a full disk, a
    home that is read-only) it is in a temporary folder for as long as this process lives, with a CacheWarning. Raises
    CompileError."""
    try:
        return build(source, platform, cache_dir(), COMPILE_TIMEOUT_S, CACHE_BYTES)
    except StoreError as error:
        folder = _temporary(os.getpid())
        warnings.warn(
            f"compiled code cannot be kept in {cache_dir()}: {error}. It is compiled into {folder}, which this process "
            "deletes when it ends; make room there, or have XDG_CACHE_HOME name a folder that can be written",
            CacheWarning,
            stacklevel=4,  # the call of a compiled pipeline
        )
        return build(source, platform, folder, COMPILE_TIMEOUT_S)


@cache
def _temporary(process: int) -> Path:
    """A folder of this process, which a child that was forked does not delete."""
    folder = Path(tempfile.mkdtemp(prefix="tilesmith-"))

    def delete() -> None:
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(delete)
    return folder
