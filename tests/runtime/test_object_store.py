"""The object store: content by its hash, here and far away, and nothing torn or lost."""

from __future__ import annotations

import hashlib
import os
import time

import fsspec
import pytest

from tilesmith.app.runtime import object_store
from tilesmith.app.runtime.object_store import ObjectLost, ObjectStore


@pytest.fixture(params=["folder", "memory"])
def store(request, tmp_path):
    """A store in a folder, and one that is elsewhere."""
    url = str(tmp_path / "objects") if request.param == "folder" else f"memory://{tmp_path.name}/objects"
    return ObjectStore(url, tmp_path / "cache")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    return path


DIGEST = hashlib.sha256(b"content").hexdigest()


def test_content_is_found_by_its_digest(store, file):
    assert store.put(file) == store.put(file) == DIGEST
    assert store.fetch(DIGEST).read_bytes() == store.fetch(DIGEST).read_bytes() == b"content"


def test_what_is_not_there_or_no_digest(store):
    with pytest.raises(ObjectLost):
        store.fetch("0" * 64)
    for name in ("../../etc/passwd", "", "0" * 63):
        with pytest.raises(ValueError, match="digest"):
            store.fetch(name)


def test_what_is_damaged_elsewhere_is_not_taken(tmp_path, file):
    store = ObjectStore("memory://damaged", tmp_path / "cache")
    store.put(file)
    fsspec.filesystem("memory").pipe_file(f"/damaged/{DIGEST[:2]}/{DIGEST}", b"other")
    with pytest.raises(ObjectLost, match="damaged"):
        store.fetch(DIGEST)
    assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]


def test_what_nobody_refers_to_goes_after_a_while(store, file, monkeypatch):
    digest = store.put(file)
    assert store.prune(()) == 0, "somebody may be about to refer to it"
    now = time.time() + 2 * object_store.UNREFERENCED_S
    monkeypatch.setattr(object_store.time, "time", lambda: now)
    assert store.prune({digest}) == 0
    assert store.prune(()) == 1
    with pytest.raises(ObjectLost):
        store.fetch(digest)


def test_what_is_old_is_written_again_so_that_it_is_not_pruned(tmp_path, file):
    store = ObjectStore(str(tmp_path / "objects"), tmp_path / "cache")
    path = store.fetch(store.put(file))
    os.utime(path, (0, 0))
    store.put(file)
    assert path.stat().st_mtime > time.time() - object_store.FRESH_S


def objects(store, tmp_path, *sizes):
    """Digests of objects of these sizes."""
    digests = []
    for number, size in enumerate(sizes):
        path = tmp_path / f"object-{number}"
        path.write_bytes(bytes([number]) * size)
        digests.append(store.put(path))
    return digests


def test_beyond_a_limit_the_oldest_go_but_for_those_in_use(store, tmp_path, monkeypatch):
    first, second, third = digests = objects(store, tmp_path, 100, 200, 300)
    assert store.prune(digests, 0) == 0, "they are new"
    now = time.time() + 2 * object_store.FRESH_S
    monkeypatch.setattr(object_store.time, "time", lambda: now)
    assert store.prune(digests, 600) == 0
    assert store.prune(digests, 450, {first}) == 1
    assert store.fetch(first).stat().st_size == 100
    with pytest.raises(ObjectLost):
        store.fetch(second)
    assert store.fetch(third).stat().st_size == 300


def test_copies_of_what_is_far_away_are_limited(tmp_path, monkeypatch):
    store = ObjectStore("memory://many/objects", tmp_path / "cache", 350)
    first, second, third = objects(store, tmp_path, 100, 200, 300)
    for age, digest in ((900, first), (800, second)):
        os.utime(store.fetch(digest), 2 * (time.time() - age,))
    store.fetch(first)  # used now
    store.fetch(third)
    assert {p.name for p in (tmp_path / "cache").glob("*/*")} == {first, third}
    assert store.fetch(second).stat().st_size == 200
