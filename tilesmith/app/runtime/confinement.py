"""Confinement of foreign programs: compilers, and what they made. bubblewrap where it works, Landlock and namespaces
elsewhere, and a filter of system calls in both; each is believed only after it has withstood a test.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from tilesmith.app.runtime.errors import RunError
from tilesmith.app.runtime.launcher import escapes
from tilesmith.app.runtime.launcher.launch import command

Mechanism = Literal["bubblewrap", "landlock", "none"]
MECHANISMS: tuple[Mechanism, ...] = ("bubblewrap", "landlock")
VARIABLE = "TILESMITH_CONFINEMENT"
"""Set to `none`, programs run unconfined where nothing can confine them."""

_SYSTEM = (
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/bin",
    "/sbin",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/sys/devices/system/cpu",
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_TEST_S = 20.0
_ATTEMPTS = 3
_HEARTBEAT_S = 0.05


@dataclass(frozen=True, slots=True)
class Confinement:
    """The part of the file system that a program sees beside the system's libraries and programs: `writable` and
    `readable` paths, and files of `devices`. Under Landlock it sees the names of others, and not their contents.
    Compilers, and drivers that compile, start `processes`; compiled pipelines have threads alone."""

    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    devices: tuple[Path, ...] = ()
    processes: bool = False


def confined_command(
    mechanism: Mechanism, confined: Confinement, cwd: Path, limits: dict[str, int], argv: list[str]
) -> list[str]:
    """The command line that runs `argv` in `cwd`, confined by `mechanism`, or by `limits` alone where it is `none`."""
    request: dict[str, Any] = {
        "limits": limits, "bubblewrap": None, "walls": None, "processes": confined.processes,
    }  # fmt: skip
    if mechanism == "bubblewrap":
        request["bubblewrap"] = _bubblewrap(confined, cwd)
    elif mechanism == "landlock":
        request["walls"] = _walls(confined)
    return command(request, argv)


def in_force() -> Mechanism:
    """The mechanism that confines programs here. RunError `not_confined` where there is none, and the operator has not
    allowed that."""
    if not allowed():
        raise RunError("not_confined", f"programs cannot be confined here: {why_not()}; {REMEDY}")
    return mechanism()


def allowed() -> bool:
    """True if programs may run here: they are confined, or the operator allows that they are not."""
    return mechanism() != "none" or os.environ.get(VARIABLE) == "none"


REMEDY = (
    "install bubblewrap and let it make user namespaces, or use a kernel with Landlock (Linux 5.13 and later); "
    f"{VARIABLE}=none runs programs unconfined"
)


def mechanism() -> Mechanism:
    """The first mechanism that withstands the test of itself, whatever the operator allows."""
    return next((name for name in MECHANISMS if not found_escapes(name)), "none")


def why_not() -> str:
    """Reasons why each mechanism is not used, in words."""
    return ", ".join(f"{name} ({', '.join(found_escapes(name))})" for name in MECHANISMS)


@cache
def found_escapes(mechanism: Mechanism) -> tuple[str, ...]:
    """The escapes that succeed under `mechanism`, or why it does not start; tried once a process, and again where the
    attempt was killed or took too long, which says nothing of it."""
    for _ in range(_ATTEMPTS):
        with suppress(_Inconclusive):
            return _tried(mechanism)
    return ("killed, or too slow",)


class _Inconclusive(Exception):
    """The attempt was killed from outside, or did not end in time: on a busy machine that says as little."""


def _tried(mechanism: Mechanism) -> tuple[str, ...]:
    if not sys.platform.startswith("linux"):
        return ("not on this system",)
    if mechanism == "bubblewrap" and shutil.which("bwrap") is None:
        return ("not installed",)
    with _outside() as outside, tempfile.TemporaryDirectory(prefix="tilesmith-") as name:
        folder = Path(name).resolve()
        script = Path(escapes.__file__)
        confined = Confinement((folder,), (script, Path(sys.base_prefix)), processes=True)
        argv = [os.path.realpath(sys.executable), "-I", "-S", str(script), json.dumps(outside.request)]
        try:
            done = subprocess.run(
                confined_command(mechanism, confined, folder, {"CORE": 0}, argv),
                cwd=folder,
                env={},
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_TEST_S,
                check=False,
                start_new_session=True,
            )
            if done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL):
                raise _Inconclusive
            succeeded = [str(name) for name in json.loads(done.stdout)]
        except subprocess.TimeoutExpired:
            raise _Inconclusive from None
        except (OSError, ValueError):
            return ("does not work",)
        if not _answers(outside.victim):
            succeeded.append("signals")
        if _still_writes(folder / "heartbeat"):
            succeeded.append("children")
    return tuple(succeeded)


@dataclass(frozen=True, slots=True)
class _Outside:
    """Things that a test of confinement must not reach: a `victim`, and what `request` tells of others."""

    victim: subprocess.Popen[bytes]
    request: dict[str, Any]


@contextmanager
def _outside() -> Iterator[_Outside]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        tempfile.TemporaryDirectory(prefix="tilesmith-") as name,
        subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE) as victim,
    ):
        secret = Path(name).resolve() / "secret"
        secret.write_text("secret", encoding="utf-8")
        port = server.getsockname()[1]
        try:
            yield _Outside(
                victim, {"pid": victim.pid, "port": port, "secret": str(secret), "folder": str(secret.parent)}
            )
        finally:
            victim.kill()


def _answers(victim: subprocess.Popen[bytes]) -> bool:
    """True if the process ends by itself when it is asked to. A signal that was sent is acted on before that, however
    late; a look at the process could come too early."""
    try:
        victim.communicate(b"\n", _TEST_S)
    except subprocess.TimeoutExpired:
        raise _Inconclusive from None
    return victim.returncode == 0


def _still_writes(path: Path) -> bool:
    """True if somebody goes on writing the file."""
    if not path.exists():
        return False
    before = path.stat().st_size
    time.sleep(_HEARTBEAT_S)
    return path.stat().st_size != before


def _walls(confined: Confinement) -> dict[str, list[str]]:
    devices = [*_DEVICES, *map(str, confined.devices)]
    return {
        "readable": [*_SYSTEM, "/proc", *map(str, confined.readable)],
        "writable": [*devices, *map(str, confined.writable)],
    }


def _bubblewrap(confined: Confinement, cwd: Path) -> list[str]:
    """bubblewrap's command line: namespaces for everything, no capabilities, a file system of its own that is read-only
    but for `writable`."""
    argv = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():
            argv += ["--symlink", os.readlink(path), name]
        elif path.exists():
            argv += ["--ro-bind", name, name]
    argv += ["--dev", "/dev", "--proc", "/proc", "--dir", "/tmp"]
    if cwd in confined.writable:  # a page of shared memory, without which Clang's OpenMP does not start
        argv += ["--bind", str(cwd), "/dev/shm"]
    for path in confined.devices:
        argv += ["--dev-bind", str(path), str(path)]
    for path in confined.readable:
        argv += ["--ro-bind", str(path), str(path)]
    for path in confined.writable:
        argv += ["--bind", str(path), str(path)]
    return [*argv, "--remount-ro", "/dev", "--remount-ro", "/proc", "--remount-ro", "/", "--chdir", str(cwd)]
