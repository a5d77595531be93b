"""Programs run apart: own process group, limits, empty environment, no network, capped output, killed on time.

bubblewrap gives them namespaces of their own where it is installed and works; the limits hold always.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Event
from typing import IO

import psutil

from tilesmith.app.runtime.errors import Cancelled

LAUNCHER = Path(__file__).with_name("launch.py")
_POLL_S = 0.02

# Set by the pool around a job: when the event is set, the program that the job runs is killed.
cancel_event: ContextVar[Event | None] = ContextVar("cancel_event", default=None)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one program. Seconds and bytes; `processes` are beside those the user has already."""

    wall_s: float = 60.0
    cpu_s: int = 120
    memory_bytes: int = 4 << 30
    file_bytes: int = 1 << 30
    processes: int = 256
    output_bytes: int = 64 << 10


@dataclass(frozen=True, slots=True)
class Confinement:
    """The part of the file system that a program sees under bubblewrap: `writable` and `readable` paths beside the
    system's libraries, or everything (read-only) where `whole_system`; and files of `devices`."""

    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    whole_system: bool = False
    devices: tuple[Path, ...] = ()


@dataclass(slots=True)
class Finished:
    """The end of a program. `signal` is set where one killed it; output beyond the cap is cut off."""

    returncode: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    seconds: float

    @property
    def signal(self) -> int | None:
        if self.returncode < 0:
            return -self.returncode
        # bubblewrap and emulators report the death of what they run as 128 + signal.
        return self.returncode - 128 if 128 < self.returncode < 160 else None


def execute(
    argv: Sequence[str],
    *,
    cwd: Path,
    limits: Limits,
    environment: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    confinement: Confinement | None = None,
) -> Finished:
    """Run `argv` in `cwd` to its end or its limits, and leave no process behind.

    `argv` and paths are absolute. Raises Cancelled when the job that runs it is cancelled.
    """
    confined = confinement or Confinement(writable=(cwd,))
    box = _bubblewrap(confined, cwd) if bubblewrap_works() else None
    options = [] if box else ["--no-network"]
    started = time.monotonic()
    with subprocess.Popen(
        [*_launcher(limits, options), *(box or []), *argv],
        cwd=cwd,
        env=dict(environment or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        talk = _Talk(process, stdin, limits.output_bytes)
        deadline = started + limits.wall_s
        cancel = cancel_event.get()
        try:
            while not talk.step() and time.monotonic() < deadline and not (cancel and cancel.is_set()):
                pass
            timed_out = not _ended(process.pid)
        finally:
            kill_group(process.pid)
        talk.drain()
        returncode = process.wait()
    if cancel is not None and cancel.is_set():
        raise Cancelled
    return Finished(returncode, bytes(talk.stdout), bytes(talk.stderr), timed_out, time.monotonic() - started)


@dataclass(slots=True)
class _Talk:
    """The pipes of a process: writes its input, keeps the first `cap` bytes of each output."""

    process: subprocess.Popen[bytes]
    stdin: bytes
    cap: int
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def __post_init__(self) -> None:
        for stream, events in self._streams():
            os.set_blocking(stream.fileno(), False)
            self.selector.register(stream, events)

    def _streams(self) -> Iterator[tuple[IO[bytes], int]]:
        for stream, events in (
            (self.process.stdin, selectors.EVENT_WRITE),
            (self.process.stdout, selectors.EVENT_READ),
            (self.process.stderr, selectors.EVENT_READ),
        ):
            if stream is not None:
                yield stream, events

    def step(self) -> bool:
        """Move what can be moved, wait a little; True when the process has ended."""
        if self.selector.get_map():
            for key, _ in self.selector.select(_POLL_S):
                self._move(key.fileobj)
        else:
            time.sleep(_POLL_S / 4)
        return _ended(self.process.pid)

    def drain(self) -> None:
        """Reads what is left in the pipes of a process that has ended, and closes them."""
        for key in list(self.selector.get_map().values()):
            stream = key.fileobj
            while stream is not self.process.stdin and self._move(stream):
                pass
        self.selector.close()

    def _move(self, stream: object) -> bool:
        """True if something was moved on `stream`; closes it at its end."""
        if stream is self.process.stdin and self.process.stdin is not None:
            return self._write(self.process.stdin)
        for output, kept in ((self.process.stdout, self.stdout), (self.process.stderr, self.stderr)):
            if stream is output and output is not None:
                return self._read(output, kept)
        return False

    def _read(self, stream: IO[bytes], kept: bytearray) -> bool:
        try:
            data = os.read(stream.fileno(), 1 << 16)
        except BlockingIOError:
            return False
        if not data:
            self.selector.unregister(stream)
            return False
        kept += data[: self.cap - len(kept)]
        return True

    def _write(self, stream: IO[bytes]) -> bool:
        try:
            written = os.write(stream.fileno(), self.stdin[: 1 << 16])
        except BlockingIOError:
            return False
        except BrokenPipeError:
            written = len(self.stdin)
        self.stdin = self.stdin[written:]
        if not self.stdin:
            self.selector.unregister(stream)
            stream.close()
        return True


def _ended(pid: int) -> bool:
    """True if the child has ended; it stays to be waited for, so that its number cannot be another's yet."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def kill_group(pid: int) -> None:
    """Kill the process group that `pid` leads, and descendants that have left it. `pid` must not be reaped yet."""
    strays: list[psutil.Process] = []
    if not _ended(pid):
        with contextlib.suppress(psutil.Error):
            strays = psutil.Process(pid).children(recursive=True)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for stray in strays:
        with contextlib.suppress(psutil.Error):
            stray.kill()


def _launcher(limits: Limits, options: list[str]) -> list[str]:
    return [sys.executable, "-I", "-S", str(LAUNCHER), json.dumps(_rlimits(limits)), *options, "--"]


def _rlimits(limits: Limits) -> dict[str, int]:
    # DATA, not AS: what is reserved but never written (emulators, allocators, stacks) costs nothing.
    return {
        "CPU": max(1, limits.cpu_s),
        "DATA": limits.memory_bytes,
        "FSIZE": limits.file_bytes,
        "NPROC": _own_threads() + limits.processes,
        "NOFILE": 1024,
        "CORE": 0,
    }


def _own_threads() -> int:
    """Threads of all processes of this user: what RLIMIT_NPROC counts. (The superuser's are not counted at all.)"""
    user, count = os.getuid(), 0
    if user == 0:
        return 0
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if entry.stat().st_uid == user:
                    count += len(os.listdir(f"/proc/{entry.name}/task"))
    return count


@cache
def bubblewrap_works() -> bool:
    """True if bubblewrap is installed and permitted here; tried once."""
    if shutil.which("bwrap") is None:
        return False
    command = [*_launcher(Limits(), []), *_bubblewrap(Confinement(), Path("/")), "true"]
    try:
        trial = subprocess.run(command, capture_output=True, timeout=10, check=False, env={})
    except (OSError, subprocess.TimeoutExpired):
        return False
    return trial.returncode == 0


_SYSTEM = (
    "usr",
    "lib",
    "lib32",
    "lib64",
    "bin",
    "sbin",
    "etc/ld.so.cache",
    "etc/alternatives",
    "sys/devices/system/cpu",
)


def _bubblewrap(confined: Confinement, cwd: Path) -> list[str]:
    """bubblewrap's command line: namespaces for everything, no capabilities, a small private file system."""
    argv = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
    if confined.whole_system:
        argv += ["--ro-bind", "/", "/"]
    else:
        for name in _SYSTEM:
            path = Path("/", name)
            if path.is_symlink():
                argv += ["--symlink", os.readlink(path), str(path)]
            elif path.exists():
                argv += ["--ro-bind", str(path), str(path)]
        argv += ["--tmpfs", "/tmp"]
    argv += ["--dev", "/dev", "--proc", "/proc"]
    for path in confined.devices:
        argv += ["--dev-bind", str(path), str(path)]
    for path in confined.readable:
        argv += ["--ro-bind", str(path), str(path)]
    for path in confined.writable:
        argv += ["--bind", str(path), str(path)]
    return [*argv, "--chdir", str(cwd), "--"]
