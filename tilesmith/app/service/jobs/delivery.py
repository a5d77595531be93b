"""Artifacts of a job, by content hash: what it reads comes from the object store, what it makes goes there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilesmith.app.runtime import held_folders
from tilesmith.app.runtime.object_store import ObjectStore
from tilesmith.app.service.jobs.files import INPUT, LIBRARY, OBJECTS, Artifacts, JobFiles
from tilesmith.app.service.jobs.work import Built, Task

FOLDER = "TILESMITH_DATA_DIR"
"""Names the worker's own folder in its environment."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """The result of a step of a job, and what it made."""

    value: Any
    artifacts: Artifacts


def deliver(
    url: str, remote: bool, inputs: Mapping[str, str], function: Callable[..., Any], task: Task, *arguments: Any
) -> Delivered:
    """`function(task, *arguments)` with its artifacts fetched and kept in the store at `url`. In the data folder, which
    a `remote` worker has of its own, it leaves nothing of the job but its library."""
    own = Path(os.environ[FOLDER]) if remote else task.data_dir
    store = ObjectStore(url, own / OBJECTS)
    with _step_folder(own) as step:
        task = replace(task, data_dir=step)
        arguments = tuple(replace(a, data_dir=step) if isinstance(a, Task) else a for a in arguments)
        files = JobFiles(step)
        for name, digest in inputs.items():
            _lay(store.fetch(digest), files.make(task.job_id) / name)
        value = function(task, *arguments)
        return Delivered(value, _put(store, files, task.job_id, value))


@contextmanager
def _step_folder(own: Path) -> Iterator[Path]:
    """A data folder for one step: a job that was taken from this worker and given back may still run here. Libraries
    are kept from one to the next."""
    steps, libraries = JobFiles(own).steps, JobFiles(own).cache
    for folder in (steps, libraries):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with held_folders.new_folder(steps, "") as step:
        JobFiles(step).cache.symlink_to(libraries.absolute())
        yield step


def _lay(source: Path, place: Path) -> None:
    """The file at another place, without a copy where that can be."""
    try:
        os.link(source, place)
    except OSError:
        shutil.copyfile(source, place)


def _put(store: ObjectStore, files: JobFiles, job_id: str, value: Any) -> Artifacts:
    made = {p.name: p for p in sorted(files.folder(job_id).glob("*")) if not p.name.startswith(INPUT)}
    if isinstance(value, Built):
        made[LIBRARY] = Path(value.path)
    return {name: store.put(path) for name, path in made.items()}
