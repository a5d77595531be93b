"""Attempts to escape, made from inside: run as `python -I -S escapes.py REQUEST`, by the self-test of confinement.

REQUEST is JSON: the `pid` of a process outside, the `port` that another listens on, the path of a `secret` file, and
the `folder` where it lies. Prints a JSON list of what succeeded, which is to be empty. Stands alone: it is read from
inside, where the package is not.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PTRACE_ATTACH = 16
_NEW_USERS = 0x1000_0000


def main() -> None:
    """Try each, and print the names of those that succeeded."""
    request = json.loads(sys.argv[1])
    _leave_a_child_behind()
    sys.stdout.write(json.dumps([name for name, attempt in ATTEMPTS.items() if _succeeds(attempt, request)]) + "\n")


def _succeeds(attempt: Callable[[dict[str, Any]], bool], request: dict[str, Any]) -> bool:
    try:
        return attempt(request)
    except OSError:
        return False


def _network(request: dict[str, Any]) -> bool:
    with socket.create_connection(("127.0.0.1", request["port"]), 1):
        return True


def _sockets(_request: dict[str, Any]) -> bool:
    socket.socket(socket.AF_UNIX).close()
    return True


def _files(request: dict[str, Any]) -> bool:
    return bool(Path(request["secret"]).read_text(encoding="utf-8"))


def _writing(request: dict[str, Any]) -> bool:
    Path(request["folder"], "written").write_text("x", encoding="utf-8")
    return True


def _attributes(request: dict[str, Any]) -> bool:
    os.chmod(request["secret"], 0o644)
    return True


def _environment(request: dict[str, Any]) -> bool:
    return bool(Path("/proc", str(request["pid"]), "environ").read_bytes())


def _signals(request: dict[str, Any]) -> bool:
    os.kill(request["pid"], signal.SIGKILL)
    return False  # the number may be that of nobody or another in here: the other side sees whether its process lives


def _tracing(request: dict[str, Any]) -> bool:
    return bool(ctypes.CDLL(None).ptrace(_PTRACE_ATTACH, request["pid"], None, None) == 0)


def _namespaces(_request: dict[str, Any]) -> bool:
    return bool(ctypes.CDLL(None).unshare(_NEW_USERS) == 0)


def _descriptors(_request: dict[str, Any]) -> bool:
    for number in range(3, 256):
        try:
            os.fstat(number)
        except OSError:
            continue
        return True
    return False


def _leave_a_child_behind() -> None:
    """A grandchild, in a session of its own where it may have one, which writes on as long as it lives."""
    if os.fork() == 0:
        with contextlib.suppress(OSError):
            os.setsid()
        if os.fork() == 0:
            os.closerange(0, 3)
            with open("heartbeat", "wb", buffering=0) as file:
                for _ in range(300):
                    file.write(b".")
                    _wait()
        os._exit(0)
    os.wait()


def _wait() -> None:
    ctypes.CDLL(None).usleep(10_000)


ATTEMPTS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "network": _network,
    "sockets": _sockets,
    "files": _files,
    "writing": _writing,
    "attributes": _attributes,
    "environment": _environment,
    "tracing": _tracing,
    "namespaces": _namespaces,
    "descriptors": _descriptors,
    "signals": _signals,
}

if __name__ == "__main__":
    main()
