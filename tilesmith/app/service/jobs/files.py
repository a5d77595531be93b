"""The files of jobs, in the data folder: one folder a job, names that we choose, nothing of a document in a path."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy.exc import OperationalError

from tilesmith.app.runtime.held_folders import held

_JOB_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

INPUT = "input-"
"""The beginning of names of uploads."""
LIBRARY = "library.so"
"""The artifact of a job that compiled one."""
OBJECTS = "objects"
"""The folder, in the data folder, of copies of objects of a store that is elsewhere."""

Artifacts = dict[str, str]
"""Digests in the object store by the names of files in a job's folder."""


def read_artifacts(content: bytes | None) -> Artifacts:
    """Artifacts that a row has."""
    return {} if content is None else {str(name): str(digest) for name, digest in json.loads(content).items()}


class JobFiles:
    """The files of jobs: uploads and results; libraries; folders for steps of jobs whose results go elsewhere."""

    def __init__(self, data_dir: Path) -> None:
        self.root = data_dir / "jobs"
        self.cache = data_dir / "builds"
        self.steps = data_dir / "steps"

    def folder(self, job_id: str) -> Path:
        """The folder of a job; ValueError where that is no id of ours."""
        if not _JOB_ID.fullmatch(job_id):
            raise ValueError("not the id of a job")
        return self.root / job_id

    @contextmanager
    def filling(self, job_id: str) -> Iterator[None]:
        """The folder of a job that is about to be queued, which nobody sweeps meanwhile; removed where it is not."""
        while True:
            with held(self.make(job_id)) as ours:
                if ours:
                    try:
                        yield
                    except OperationalError:  # the store may have the job all the same: a sweep will know
                        raise
                    except BaseException:
                        self.remove(job_id)
                        raise
                    return

    def ids(self) -> list[str]:
        """The jobs that have folders."""
        return sorted(path.name for path in self.root.glob("*") if _JOB_ID.fullmatch(path.name))

    def touch(self, job_id: str) -> None:
        """Marks the files of a job as used now."""
        with suppress(OSError):
            os.utime(self.folder(job_id))

    def make(self, job_id: str) -> Path:
        """The folder, made, readable by us only."""
        folder = self.folder(job_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def upload(self, job_id: str, number: int) -> Path:
        """An uploaded image, by the position of its input in the pipeline."""
        return self.folder(job_id) / f"{INPUT}{number}"

    def uploads(self, job_id: str) -> list[Path]:
        """The uploaded images that are there."""
        return sorted(self.folder(job_id).glob(f"{INPUT}*"))

    def preview(self, job_id: str, number: int) -> Path:
        """A small picture of an uploaded image, by the position of its input in the pipeline."""
        return self.folder(job_id) / f"before-{number}.png"

    def output(self, job_id: str, number: int, component: int) -> Path:
        """A result, by the position of its output in the pipeline."""
        return self.folder(job_id) / f"output-{number}-{component}.npy"

    def copy_uploads(self, job_id: str, to: str) -> dict[int, Path]:
        """The uploads of a job as those of another, by the position of their inputs; those that are kept."""
        found = self.uploads(job_id)
        copies = {int(path.name.removeprefix(INPUT)): self.make(to) / path.name for path in found}
        for path, copy in zip(found, copies.values(), strict=True):
            shutil.copyfile(path, copy)
        return copies

    def remove(self, job_id: str) -> None:
        shutil.rmtree(self.folder(job_id), ignore_errors=True)

    def remove_results(self, job_id: str) -> None:
        for path in self.folder(job_id).glob("output-*"):
            path.unlink(missing_ok=True)

    def remove_uploads(self, job_id: str) -> None:
        for path in self.uploads(job_id):
            path.unlink(missing_ok=True)
