"""The launcher, which becomes another program inside limits: run as `python -I -S launch.py LIMITS [--no-network] --
ARGV...`.

LIMITS is JSON, {"CPU": 10, ...}, names of `resource.RLIMIT_*`. A script of its own, not a function run
between fork and exec: those may deadlock in a service with threads. Imports nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWNET = 0x40000000
_CLONE_NEWUSER = 0x10000000


def main(arguments: list[str]) -> None:
    """Set the limits and become the program; exit status 127 where there is no such program."""
    split = arguments.index("--")
    limits, options, argv = json.loads(arguments[0]), arguments[1:split], arguments[split + 1 :]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if "--no-network" in options and libc.unshare(_CLONE_NEWNET) != 0:
        libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)  # where even this is refused, the limits remain
    for name, value in limits.items():
        which = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(which)[1]
        # The soft limit of CPU time warns with a signal that says what it is; the hard one only kills.
        grace = 5 if name == "CPU" else 0
        highest = value + grace if hard == resource.RLIM_INFINITY else min(value + grace, hard)
        resource.setrlimit(which, (min(value, highest), highest))
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"cannot start {os.path.basename(argv[0])}: {error.strerror}\n")
        sys.exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
