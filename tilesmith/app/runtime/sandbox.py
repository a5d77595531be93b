"""Programs run apart: confined, own process group, limits, empty environment, capped output, killed on time.

Limits of one process are the system's (`setrlimit`). Those of a program as a whole, all its processes and files, are
looked after while it runs.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import IO, Literal

import psutil

from tilesmith.app.runtime.confinement import Confinement, confined_command, in_force
from tilesmith.app.runtime.errors import Cancelled

_POLL_S = 0.02
_WATCH_S = 0.1
_BLOCK_BYTES = 512  # of `st_blocks`, whatever the file system's own are
_LAUNCHERS = 4
"""Processes of the launcher and of bubblewrap, which are not the program's."""

Exceeded = Literal["processes", "memory", "files"]

# Set by the pool around a job: when the event is set, the program that the job runs is killed.
cancel_event: ContextVar[Event | None] = ContextVar("cancel_event", default=None)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one program, all its processes together. Seconds and bytes; `files_bytes` are of all files that it
    writes, `file_bytes` of each."""

    wall_s: float = 60.0
    cpu_s: int = 120
    memory_bytes: int = 4 << 30
    file_bytes: int = 1 << 30
    files_bytes: int = 4 << 30
    files: int = 4096
    processes: int = 256
    output_bytes: int = 64 << 10


@dataclass(slots=True)
class Finished:
    """The end of a program. `signal` is set where one killed it, `exceeded` names the limit of the whole program that
    it was stopped at; output beyond the cap is cut off."""

    returncode: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    seconds: float
    exceeded: Exceeded | None = None

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

    `argv` and paths are absolute. Raises Cancelled when the job that runs it is cancelled, RunError `not_confined`
    where nothing confines it.
    """
    confined = confinement or Confinement(writable=(cwd,))
    mechanism = in_force()
    started = time.monotonic()
    with subprocess.Popen(
        confined_command(mechanism, confined, cwd, _rlimits(limits), list(argv)),
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
        watch = _Watch(process.pid, confined.writable, limits)
        kills = _kills_for_memory()
        try:
            while not talk.step() and time.monotonic() < deadline and not (cancel and cancel.is_set()):
                if watch.exceeded():
                    break
            timed_out = not _ended(process.pid) and watch.found is None
        finally:
            kill_group(process.pid)
        talk.drain()
        returncode, cpu_s = _reaped(process)
    if cancel is not None and cancel.is_set():
        raise Cancelled
    done = Finished(
        returncode, bytes(talk.stdout), bytes(talk.stderr), timed_out, time.monotonic() - started, watch.found
    )
    if done.signal == signal.SIGKILL and watch.found is None and not timed_out:
        done.timed_out = cpu_s >= limits.cpu_s  # a program may ignore the signal that comes first
        done.exceeded = "memory" if _kills_for_memory() > kills else None
    return done


def _reaped(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """The return code of a process that has ended, as `Popen.wait` has it, and the CPU time of it and its own, s."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime


def _kills_for_memory() -> int:
    """Processes that the system has killed for want of memory, so far."""
    with contextlib.suppress(OSError), open("/proc/vmstat", encoding="ascii") as file:
        for line in file:
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


class _Watch:
    """The limits of a program as a whole: looked at every `_WATCH_S`."""

    def __init__(self, pid: int, folders: Sequence[Path], limits: Limits) -> None:
        self.found: Exceeded | None = None
        self._pid, self._folders, self._limits = pid, folders, limits
        self._due = 0.0
        bytes_there, files_there = _contents(folders, sys.maxsize)
        self._most_bytes, self._most_files = bytes_there + limits.files_bytes, files_there + limits.files

    def exceeded(self) -> bool:
        """True if the program is beyond a limit; `found` says which."""
        now = time.monotonic()
        if now < self._due:
            return False
        self._due = now + _WATCH_S
        threads = _threads(self._pid, self._limits.processes + _LAUNCHERS)
        if sum(threads.values()) > self._limits.processes + _LAUNCHERS:
            self.found = "processes"
        elif sum(map(_memory_bytes, threads)) > self._limits.memory_bytes:
            self.found = "memory"
        else:
            written, files = _contents(self._folders, self._most_files)
            if written > self._most_bytes or files > self._most_files:
                self.found = "files"
        return self.found is not None


def _contents(folders: Sequence[Path], most: int) -> tuple[int, int]:
    """(bytes on disk, number) of the files in the folders; counting ends beyond `most` files."""
    total, count = 0, 0
    waiting = [str(folder) for folder in folders]
    while waiting and count <= most:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                count += 1
                if count > most:
                    break
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
    return total, count


def _threads(pid: int, most: int) -> dict[int, int]:
    """The number of threads of the process and of each below it; counting ends beyond `most` of them."""
    found: dict[int, int] = {}
    waiting, total = [pid], 0
    while waiting and total <= most:
        one = waiting.pop()
        with contextlib.suppress(OSError):
            tasks = os.listdir(f"/proc/{one}/task")
            found[one] = len(tasks)
            total += len(tasks)
            for task in tasks:
                with contextlib.suppress(OSError), open(f"/proc/{one}/task/{task}/children", encoding="ascii") as file:
                    waiting += map(int, file.read().split())
    return found


def _memory_bytes(pid: int) -> int:
    """Memory that a process has written, of its own or shared, bytes; 0 when it has ended."""
    kib = 0
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith(("RssAnon:", "RssShmem:")):
                kib += int(line.split()[1])
    return kib << 10


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
    """Kill the process group that `pid` leads, and descendants that have left it. `pid` must not be reaped yet.

    The group is stopped before its descendants are looked for: that takes long where there are thousands, and of a fork
    bomb there would be thousands more.
    """
    strays: list[psutil.Process] = []
    if not _ended(pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGSTOP)
        with contextlib.suppress(psutil.Error):
            strays = psutil.Process(pid).children(recursive=True)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for stray in strays:
        with contextlib.suppress(psutil.Error):
            stray.kill()


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
