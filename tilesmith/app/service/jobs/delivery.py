"""Artifacts of a job, by content hash: what it reads comes from the object store, what it makes goes there."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilesmith.app.runtime.object_store import ObjectStore
from tilesmith.app.service.jobs.files import INPUT, LIBRARY, OBJECTS, Artifacts, JobFiles
from tilesmith.app.service.jobs.work import Built, Task

STEPS = "steps"
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
    """`function(task, *arguments)` with its artifacts fetched and kept in the store at `url`. A `remote` worker has a
    data folder of its own, in which it leaves nothing of the job but its library."""
    cache = task.data_dir / OBJECTS
    if remote:
        own = Path(os.environ[FOLDER])
        step, cache = _step_folder(own), own / OBJECTS
        task = replace(task, data_dir=step)
        arguments = tuple(replace(a, data_dir=step) if isinstance(a, Task) else a for a in arguments)
    store = ObjectStore(url, cache)
    files = JobFiles(task.data_dir)
    try:
        for name, digest in inputs.items():
            place = files.make(task.job_id) / name
            if not place.exists():
                _lay(store.fetch(digest), place)
        value = function(task, *arguments)
        return Delivered(value, _put(store, files, task.job_id, value))
    finally:
        if remote:
            shutil.rmtree(task.data_dir, ignore_errors=True)


def sweep(own: Path) -> None:
    """Removes what steps of a worker before this one have left in its folder."""
    shutil.rmtree(own / STEPS, ignore_errors=True)


def _step_folder(own: Path) -> Path:
    """A data folder for one step: a job that was taken from this worker and given back may still run here. Libraries
    are kept from one to the next."""
    step = own / STEPS / uuid.uuid4().hex
    step.mkdir(mode=0o700, parents=True)
    libraries = JobFiles(own).cache
    libraries.mkdir(mode=0o700, parents=True, exist_ok=True)
    JobFiles(step).cache.symlink_to(libraries.absolute())
    return step


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
