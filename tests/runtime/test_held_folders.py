"""Folders that are held by a process, and those that nobody holds any more."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tilesmith.app.runtime.held_folders import held, new_folder, sweep

HOLDS = """
import sys
from pathlib import Path
from tilesmith.app.runtime.held_folders import new_folder
with new_folder(Path(sys.argv[1]), "x-"):
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_process_held_is_swept_and_what_others_hold_is_not(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    environment = {"PYTHONPATH": ":".join(sys.path)}
    with (
        new_folder(tmp_path, "x-") as ours,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as other,
    ):
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        (theirs,) = set(tmp_path.iterdir()) - {ours}
        assert sweep(tmp_path.iterdir()) == []
        other.kill()
        other.wait()
        assert sweep(tmp_path.iterdir()) == [theirs]
        assert list(tmp_path.iterdir()) == [ours]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_gone_is_not_held(tmp_path: Path) -> None:
    with held(tmp_path / "none") as ours:
        assert not ours
    (tmp_path / "swept").mkdir()
    with held(tmp_path / "swept") as ours:
        assert ours


def test_a_folder_that_is_swept_before_it_is_held_is_made_anew(tmp_path: Path, monkeypatch) -> None:
    made = []

    def swept_once(prefix: str, dir: Path) -> str:  # the name of tempfile's
        folder = dir / f"{prefix}{len(made)}"
        made.append(folder)
        folder.mkdir()
        if len(made) == 1:
            shutil.rmtree(folder)
        return str(folder)

    monkeypatch.setattr("tempfile.mkdtemp", swept_once)
    with new_folder(tmp_path, "x-") as folder:
        assert folder == made[1]
