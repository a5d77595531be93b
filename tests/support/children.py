"""Generated code called in a process of its own: a crash is a finding, not the end of the run, and sanitizers watch
that process from its start. All that is slow is done before, by who asks; the child does nothing but call."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from support import calls
from support.builds import Build, environment
from support.calls import Call, Outputs


def called(wanted: Sequence[Call], build: Build) -> list[Outputs | str]:
    """The outputs of each call, or what went wrong: its status, or how it died. One child makes them all, but for a new
    one after each crash."""
    found: list[Outputs | str] = []
    with tempfile.TemporaryDirectory() as folder:
        asked, answers = Path(folder) / "calls", Path(folder) / "answers"
        while len(found) < len(wanted):
            asked.write_bytes(pickle.dumps(wanted[len(found) :]))
            answers.unlink(missing_ok=True)
            done = subprocess.run(
                [sys.executable, "-W", "ignore", calls.__file__, asked, answers],
                capture_output=True, text=True, check=False, env={**os.environ, **environment(build)},
            )  # fmt: skip
            found += _answered(answers)
            if done.returncode:
                found = [*found[: len(wanted) - 1], f"died with {done.returncode}: {done.stderr[:3000]}"]
    return found


def _answered(answers: Path) -> list[Outputs | str]:
    found: list[Outputs | str] = []
    if answers.exists():
        with answers.open("rb") as file:
            while file.peek(1):
                status, outputs = pickle.load(file)
                found.append(f"status {status}" if status else outputs)
    return found
