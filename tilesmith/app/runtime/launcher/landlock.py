"""Landlock: the files and the network that this process and what it starts may use from now on."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_VERSION = 1
_PATH_BENEATH = 1
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_READ = 1 << 0 | 1 << 2 | 1 << 3  # execute, read files, list folders
_OF_FILES = 1 << 0 | 1 << 1 | 1 << 2 | _TRUNCATE | _IOCTL
_ACCESS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""Accesses to files that are known from a version of the interface on."""
_TCP = 0b11
_SCOPES = 0b11  # abstract sockets and signals


def version(libc: ctypes.CDLL) -> int:
    """The version of the kernel's interface, 0 where it has none."""
    return max(0, int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)))


def restrict(libc: ctypes.CDLL, readable: Iterable[str], writable: Iterable[str]) -> bool:
    """True if nothing but `readable` and `writable` can be opened from now on. Paths of nothing are left out."""
    found = version(libc)
    if found == 0:
        return False
    handled = next(mask for since, mask in sorted(_ACCESS.items(), reverse=True) if since <= found)
    attributes = struct.pack("<QQQ", handled, _TCP if found >= 4 else 0, _SCOPES if found >= 6 else 0)
    size = 24 if found >= 6 else 16 if found >= 4 else 8
    ruleset = libc.syscall(_CREATE_RULESET, attributes[:size], ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return False
    try:
        added = all(
            _add(libc, ruleset, path, access & handled)
            for access, paths in ((_READ, readable), (handled, writable))
            for path in paths
        )
        return added and libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def _add(libc: ctypes.CDLL, ruleset: int, path: str, access: int) -> bool:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        if not stat.S_ISDIR(os.fstat(opened).st_mode):
            access &= _OF_FILES
        return bool(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("<Qi", access, opened), 0) == 0)
    finally:
        os.close(opened)
