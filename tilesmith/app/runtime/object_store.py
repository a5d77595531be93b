"""Objects by the SHA-256 of their content, in a folder or wherever fsspec reaches (`s3://bucket/path`, ...).

An object never changes and has no owner: who refers to it keeps its digest, and what nobody has referred to for a while
is pruned. Of the rest, and of copies of what is far away, the least recently used leaves where there is too much: it
can be made, or fetched, again. Needs the extra `dask`.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
import uuid
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import fsspec

from tilesmith.app.runtime.errors import WorkerError

FRESH_S = 1800.0
"""An object older than this is written again where it is put again, so that no pruning is about to take it."""
UNREFERENCED_S = 2 * FRESH_S
"""An object that nobody refers to is kept for this long at least: somebody may be about to."""
COPIES_BYTES = 4 << 30
"""The most that copies of objects which are far away take, bytes; those of the last IN_USE_S stay."""
IN_USE_S = 600.0
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LOCAL = ("file", "local")


class ObjectLost(WorkerError):
    """An object is not in the store, or is not what it was."""

    def __init__(self, code: str = "artefact_not_found", message: str = "", output: str = "") -> None:
        super().__init__(code, message, output)


class ObjectStore:
    """The objects at `url`; copies of those that are far away are kept in the folder `cache`."""

    def __init__(self, url: str, cache: Path, copies_bytes: int = COPIES_BYTES) -> None:
        self._files, self._root = fsspec.core.url_to_fs(url)
        protocol = self._files.protocol
        self._local = bool({protocol} & {*_LOCAL} if isinstance(protocol, str) else {*protocol} & {*_LOCAL})
        self._cache = cache
        self._copies_bytes = copies_bytes

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
            _use(Path(key))
            return Path(key)
        kept = self._cache / digest[:2] / digest
        if kept.is_file():
            _use(kept)
        else:
            kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = kept.with_name(f"{digest}.part-{uuid.uuid4().hex}")
            try:
                self._files.get_file(key, str(part))
                if digest_of(part) != digest:
                    raise ObjectLost(message=f"the object {digest} is damaged")
                part.replace(kept)
                self._trim_copies()
            except FileNotFoundError:
                raise ObjectLost(message=f"the object {digest} is not in the store") from None
            finally:
                part.unlink(missing_ok=True)
        return kept

    def prune(self, wanted: Collection[str], most_bytes: int | None = None, in_use: Collection[str] = ()) -> int:
        """Removes what nobody has referred to for a while: all but `wanted`, and what is new. Where what stays has more
        than so many bytes, the least recently used goes, too (of a store that is elsewhere the oldest), but for what is
        new or `in_use`. The number removed."""
        now, removed, kept = time.time(), 0, []
        for key, facts in self._files.find(self._root, detail=True).items():
            digest = key.rpartition("/")[2].partition(".part-")[0]
            if not _DIGEST.fullmatch(digest):
                continue
            written = self._written(key)
            if digest not in wanted and written < now - UNREFERENCED_S:
                self._files.rm_file(key)
                removed += 1
            else:
                kept.append((written, key, digest, int(facts["size"])))
        excess = 0 if most_bytes is None else sum(size for *_, size in kept) - most_bytes
        for written, key, digest, size in sorted(kept):
            if excess <= 0 or written > now - FRESH_S:
                break
            if digest not in in_use:
                self._files.rm_file(key)
                removed += 1
                excess -= size
        return removed

    def _trim_copies(self) -> None:
        """Removes copies, the least recently used first, until they have COPIES_BYTES."""
        copies = []
        for path in self._cache.glob("*/*"):
            with suppress(FileNotFoundError):  # somebody else has removed it
                facts = path.stat()
                copies.append((facts.st_mtime, path, facts.st_size))
        excess = sum(size for *_, size in copies) - self._copies_bytes
        for used, path, size in sorted(copies):
            if excess <= 0 or used > time.time() - IN_USE_S:
                break
            path.unlink(missing_ok=True)
            excess -= size

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


def _use(path: Path) -> None:
    """Marks a file as used now."""
    with suppress(OSError):  # its folder may be read-only here
        os.utime(path)


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
