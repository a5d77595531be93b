"""Namespaces of this process and what it starts: of users, processes, network, messages between processes, mounts."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Callable

_NEW_MOUNTS, _NEW_NAMES, _NEW_MESSAGES = 0x0002_0000, 0x0400_0000, 0x0800_0000
_NEW_USERS, _NEW_PROCESSES, _NEW_NETWORK = 0x1000_0000, 0x2000_0000, 0x4000_0000
_ALL = _NEW_MOUNTS | _NEW_NAMES | _NEW_MESSAGES | _NEW_PROCESSES | _NEW_NETWORK
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 8, 1 << 12, 1 << 14, 1 << 18
_CAPBSET_DROP, _CAPABILITIES = 24, 64
_CAPABILITY_VERSION = 0x2008_0522
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36


def enter(libc: ctypes.CDLL, *, processes_only: bool = False) -> bool:
    """True if children of this process are in namespaces of their own from now on, in which nobody has a privilege over
    what is outside; False where the system refuses, and nothing has changed. `processes_only` makes no others than that
    of processes: they all end with the first of them."""
    user, group, kinds = os.geteuid(), os.getegid(), _NEW_PROCESSES if processes_only else _ALL
    if libc.unshare(_NEW_USERS | kinds) != 0:
        return user == 0 and libc.unshare(kinds) == 0
    for name, line in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(line)
    return True


def own_processes_only(libc: ctypes.CDLL) -> bool:
    """True if `/proc` shows the processes of this namespace and no others from now on. Called by its first process."""
    libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
    return bool(libc.mount(b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None) == 0)


def own_shared_memory(libc: ctypes.CDLL) -> None:
    """Shared memory by name lies in the working folder from now on, where the namespace has mounts of its own: without
    any Clang's OpenMP does not start."""
    libc.mount(os.fsencode(os.getcwd()), b"/dev/shm", None, _MS_BIND, None)


def drop_capabilities(libc: ctypes.CDLL) -> None:
    """No capability from now on, whatever is executed."""
    for capability in range(_CAPABILITIES):
        libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0)
    libc.capset((ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)())


def in_child(libc: ctypes.CDLL, child: Callable[[], int]) -> int:
    """Status that `child`, called in a process of its own, ends with; 128 + signal where a signal killed it.

    What it leaves behind becomes this process's: in a namespace of processes it ends with this one, the first.
    """
    libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    alive, held = os.pipe()
    started = os.fork()
    if started == 0:
        os.close(held)
        _end_with_parent(libc, alive)
        os._exit(child())
    os.close(alive)
    while True:
        pid, ended = os.wait()
        if pid == started:
            status = os.waitstatus_to_exitcode(ended)
            return 128 - status if status < 0 else status


def end_group_with_parent(libc: ctypes.CDLL, parent: int) -> None:
    """The process group that this process leads is killed when `parent`, which has started it, ends, and this process
    now if that has ended before. Nothing that is confined can leave the group."""
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
    libc.prctl(_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(127)


def _end_with_parent(libc: ctypes.CDLL, alive: int) -> None:
    """This process is killed when its parent ends, and now if that has ended before: `alive` is a pipe whose other end
    the parent alone has. (A number says nothing: seen from a namespace of processes, all parents outside are 0. The
    pipe is closed before signals are sent, so that an end between the two calls is not missed.)"""
    libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.set_blocking(alive, False)
    try:
        if os.read(alive, 1) == b"":
            os._exit(127)
    except BlockingIOError:
        os.close(alive)


def kill_children() -> None:
    """Kills what is left of this process's descendants, which have become its children."""
    while True:
        found = _children()
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def _children() -> list[int]:
    me, found = str(os.getpid()).encode(), []
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{entry.name}/stat", "rb") as file,
            ):
                if file.read().rpartition(b")")[2].split()[1] == me:
                    found.append(int(entry.name))
    return found
