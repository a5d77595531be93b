"""Generated code called in a process of its own: a crash is a finding, not the end of the run, and sanitizers watch
that process from its start. All that is slow is done before, by who asks; the child does nothing but call."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from support.builds import Build, environment
from support.native import Region, call

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

SECONDS = 300
"""The most that one call may take before it counts as one that does not end."""

Outputs = dict[str, tuple[np.ndarray, ...]]


@dataclass(frozen=True)
class Call:
    """A compiled pipeline with what it is called with."""

    library: Path
    source: CSource
    pipeline: Pipeline
    inputs: Mapping[str, Image]
    params: Mapping[str, int | float | bool]
    regions: Mapping[str, Region]

    def made(self) -> tuple[int, Outputs]:
        """The status and the outputs, of a call in this process."""
        library = ctypes.CDLL(str(self.library))
        return call(library, self.source, self.pipeline, self.inputs, self.params, self.regions)


def called(calls: Sequence[Call], build: Build) -> list[Outputs | str]:
    """The outputs of each call, or what went wrong: its status, or how it died. One child makes them all, but for a new
    one after each crash."""
    found: list[Outputs | str] = []
    with tempfile.TemporaryDirectory() as folder:
        asked, answers = Path(folder) / "calls", Path(folder) / "answers"
        while len(found) < len(calls):
            asked.write_bytes(pickle.dumps(calls[len(found) :]))
            answers.unlink(missing_ok=True)
            done = subprocess.run(
                [sys.executable, "-W", "ignore", __file__, asked, answers],
                capture_output=True, text=True, check=False, env={**os.environ, **environment(build)},
            )  # fmt: skip
            found += _answered(answers)
            if done.returncode:
                found.append(f"died with {done.returncode}: {done.stderr[:3000]}")
    return found


def _answered(answers: Path) -> list[Outputs | str]:
    found: list[Outputs | str] = []
    if answers.exists():
        with answers.open("rb") as file:
            while file.peek(1):
                status, outputs = pickle.load(file)
                found.append(f"status {status}" if status else outputs)
    return found


def main(asked: str, answers: str) -> None:
    """Answers one after the other, each as soon as it is there."""
    with open(answers, "wb", buffering=0) as file:
        for each in pickle.loads(Path(asked).read_bytes()):
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            file.write(pickle.dumps(each.made()))
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main(*sys.argv[1:])
