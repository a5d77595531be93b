"""Objects by the SHA-256 of their content, in a folder or wherever fsspec reaches (`s3://bucket/path`, ...).

An object never changes and has no owner: who refers to it keeps its digest, and what nobody has referred to for a while
is pruned. Needs the extra `dask`.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
import uuid
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

import fsspec

from tilesmith.app.runtime.errors import WorkerError

FRESH_S = 1800.0
"""An object older than this is written again where it is put again, so that no pruning is about to take it."""
UNREFERENCED_S = 2 * FRESH_S
"""An object that nobody refers to is kept for this long at least: somebody may be about to."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LOCAL = ("file", "local")


class ObjectLost(WorkerError):
    """An object is not in the store, or is not what it was."""

    def __init__(self, code: str = "artefact_not_found", message: str = "", output: str = "") -> None:
        super().__init__(code, message, output)


class ObjectStore:
    """The objects at `url`; copies of those that are far away are kept in the folder `cache`."""

    def __init__(self, url: str, cache: Path) -> None:
        self._files, self._root = fsspec.core.url_to_fs(url)
        protocol = self._files.protocol
        self._local = bool({protocol} & {*_LOCAL} if isinstance(protocol, str) else {*protocol} & {*_LOCAL})
        self._cache = cache

    def put(self, path: Path) -> str:
        """The digest of the file, which is in the store then. OSError."""
        digest = digest_of(path)
        key = self._key(digest)
        if not self._fresh(key):
            self._files.makedirs(self._files._parent(key), exist_ok=True)
            if self._local:
                part = f"{key}.part-{uuid.uuid4().hex}"
                self._files.put_file(str(path), part)
                os.replace(part, key)
            else:
                self._files.put_file(str(path), key)
        return digest

    def fetch(self, digest: str) -> Path:
        """A file with the content of that digest, not to be written to. ObjectLost, OSError."""
        key = self._key(digest)
        if self._local:
            if not Path(key).is_file():
                raise ObjectLost(message=f"the object {digest} is not in the store")
            return Path(key)
        kept = self._cache / digest[:2] / digest
        if not kept.is_file():
            kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = kept.with_name(f"{digest}.part-{uuid.uuid4().hex}")
            try:
                self._files.get_file(key, str(part))
                if digest_of(part) != digest:
                    raise ObjectLost(message=f"the object {digest} is damaged")
                part.replace(kept)
            except FileNotFoundError:
                raise ObjectLost(message=f"the object {digest} is not in the store") from None
            finally:
                part.unlink(missing_ok=True)
        return kept

    def prune(self, wanted: Collection[str]) -> int:
        """Removes what nobody has referred to for a while: all but `wanted`, and what is new. The number removed."""
        before, removed = time.time() - UNREFERENCED_S, 0
        for key in self._files.find(self._root):
            digest = key.rpartition("/")[2].partition(".part-")[0]
            if _DIGEST.fullmatch(digest) and digest not in wanted and self._written(key) < before:
                self._files.rm_file(key)
                removed += 1
        return removed

    def _key(self, digest: str) -> str:
        if not _DIGEST.fullmatch(digest):
            raise ValueError("not a digest")
        return f"{self._root.rstrip('/')}/{digest[:2]}/{digest}"

    def _fresh(self, key: str) -> bool:
        try:
            return self._written(key) > time.time() - FRESH_S
        except FileNotFoundError:
            return False

    def _written(self, key: str) -> float:
        """The time at which an object was written, seconds since 1970."""
        written: datetime = self._files.modified(key)
        return (written if written.tzinfo else written.replace(tzinfo=UTC)).timestamp()


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
