"""Temporary files of a service are gone with it, and those of a killed one with the next."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tilesmith.app.service.temporary import SHARED, private_folder

SERVICE = """
import multiprocessing, multiprocessing.resource_tracker, os, signal, sys, tempfile
from pathlib import Path
from tilesmith.app.service.temporary import private_folder
with private_folder(Path(sys.argv[1])) as folder:
    made = [tempfile.mkdtemp(prefix=p) for p in ("tilesmith-", "pymp-")]
    assert all(Path(m).parent == folder for m in made)
    semaphore = multiprocessing.get_context("forkserver").Lock()
    os.kill(multiprocessing.resource_tracker._resource_tracker._pid, signal.SIGKILL)
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_service_left_is_deleted_and_what_a_living_one_has_is_not(tmp_path):
    before = tempfile.gettempdir(), os.environ.get("TMPDIR")
    command = [sys.executable, "-c", SERVICE, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    started = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment}
    with subprocess.Popen(command, **started) as killed, subprocess.Popen(command, **started) as living:
        assert (killed.stdout.readline(), living.stdout.readline()) == (b"ready\n", b"ready\n")
        killed.kill()
        killed.wait()
        names = [folder.name for folder in tmp_path.iterdir()]
        assert [len(list(SHARED.glob(f"sem.{name}-*"))) for name in names] == [1, 1]
        with private_folder(tmp_path) as ours:
            assert tempfile.gettempdir() == str(ours)
            assert len(list(tmp_path.iterdir())) == 2
        theirs = list(tmp_path.iterdir())
        assert len(theirs) == 1
        assert len(list(theirs[0].iterdir())) == 2
        left = [semaphore.name for name in names for semaphore in SHARED.glob(f"sem.{name}-*")]
        assert [name.startswith(f"sem.{theirs[0].name}-") for name in left] == [True]
        living.stdin.close()
    assert list(tmp_path.iterdir()) == []
    assert (tempfile.gettempdir(), os.environ.get("TMPDIR")) == before
    assert Path(before[0]).is_dir()
