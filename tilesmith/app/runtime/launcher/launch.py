"""The launcher, which runs another program inside limits and walls: run by `command`, with a JSON of

    {"parent": 1234, "limits": {"CPU": 10, ...}, "bubblewrap": [...] or null,
     "walls": {"readable": [...], "writable": [...]} or null, "processes": true}

and the program's own arguments. `parent` is the process that starts it, as the leader of a process group: that group
ends with it. `limits` are names of `resource.RLIMIT_*`. `bubblewrap` is its command line without the program; `walls`
are Landlock's, and those of the namespaces that the system allows. Both have the filter of system calls, which lets the
program start processes of its own where `processes` says so. A program of its own, not a function run between fork and
exec: those may deadlock in a service with threads. Each run of a compiler or of generated code begins with it, so that
it loads as little as it can: neither `typing` nor `pathlib`, which take it longer than all the rest.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys

from tilesmith.app.runtime.launcher import landlock, namespaces
from tilesmith.app.runtime.launcher.system_calls import INSTRUCTION_BYTES, filter_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PACKAGES = os.path.abspath(__file__).removesuffix("/tilesmith/app/runtime/launcher/launch.py")
_START = "import sys; sys.path.append(sys.argv.pop(1)); from tilesmith.app.runtime.launcher.launch import main; main()"
_SET_NO_NEW_PRIVS, _SET_SECCOMP, _SECCOMP_FILTER = 38, 22, 2
_CPU_GRACE_S = 5
_NOT_STARTED, _NOT_CONFINED = 127, 126


def command(request: dict[str, Any], argv: list[str]) -> list[str]:
    """The command line of the launcher for the program `argv` and `request`, as the module's docstring has it. The
    `parent` is this process."""
    told = json.dumps({"parent": os.getpid(), **request})
    return [sys.executable, "-I", "-S", "-c", _START, _PACKAGES, told, *argv]


def main() -> None:
    """Run the program and end as it does: exit status 128 + signal where one killed it, 127 where there is no program,
    126 where it cannot be confined."""
    request, argv = json.loads(sys.argv[1]), sys.argv[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    namespaces.end_group_with_parent(libc, request["parent"])
    libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    box, walls = request["bubblewrap"], request["walls"]

    def program() -> int:
        _limit(request["limits"])
        if box:
            _become(_in_bubblewrap(request, argv))
        if walls:
            if not landlock.restrict(libc, walls["readable"], walls["writable"]):
                return _refuse("Landlock refuses the walls")
            namespaces.drop_capabilities(libc)
            if not _filter(libc, None if apart else os.getpid(), request["processes"]):
                return _refuse("the filter of system calls is refused")
        _become(argv)
        return _NOT_STARTED

    def first_process() -> int:
        namespaces.own_processes_only(libc)
        namespaces.own_shared_memory(libc)
        return namespaces.in_child(libc, program)

    # bubblewrap makes all other namespaces itself. Killed while it does, it would leave a process that waits for ever,
    # were it not the first of a namespace.
    apart = bool(box or walls) and namespaces.enter(libc, processes_only=bool(box))
    status = namespaces.in_child(libc, first_process if apart and walls else program)
    namespaces.kill_children()
    os._exit(status)


def _refuse(why: str) -> int:
    sys.stderr.write(f"cannot confine the program: {why}\n")
    sys.stderr.flush()
    return _NOT_CONFINED


def _limit(limits: dict[str, int]) -> None:
    for name, value in limits.items():
        which = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(which)[1]
        # The soft limit of CPU time warns with a signal that says what it is; the hard one only kills.
        most = value + (_CPU_GRACE_S if name == "CPU" else 0)
        highest = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (min(value, highest), highest))


def _in_bubblewrap(request: dict[str, Any], argv: list[str]) -> list[str]:
    box, program = request["bubblewrap"], filter_program(processes=request["processes"])
    if program is None:
        return [*box, "--", *argv]
    handle = os.memfd_create("filter", 0)
    os.write(handle, program)
    os.lseek(handle, 0, os.SEEK_SET)
    return [*box, "--seccomp", str(handle), "--", *argv]


def _filter(libc: ctypes.CDLL, own_pid: int | None, processes: bool) -> bool:
    program = filter_program(own_pid=own_pid, processes=processes)
    if program is None:
        return False
    held = ctypes.create_string_buffer(program, len(program))

    class Fprog(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))

    given = Fprog(len(program) // INSTRUCTION_BYTES, ctypes.addressof(held))
    return bool(libc.prctl(_SET_SECCOMP, _SECCOMP_FILTER, ctypes.byref(given), 0, 0) == 0)


def _become(argv: list[str]) -> None:
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"cannot start {os.path.basename(argv[0])}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(_NOT_STARTED)
