"""kill -9 of one process of a deployment after the other, of every kind in turn, at random times."""

from __future__ import annotations

import random
import time
from collections import Counter
from contextlib import suppress

import psutil

from benchmarks.soak.deployment import DATABASE, Deployment

COMPILER = ("gcc", "cc1", "as", "collect2", "ld", "clang")
STABLE = ("service", "worker", "scheduler", DATABASE, "backend", "search", "fork server", "tracker")
FLEETING = ("compiler", "program", "decoder", "launcher")
"""Processes that are there for moments only, and are waited for."""
WAIT_S = 4.0
LOOK_S = 0.02
WHILE_STARTING = 0.002
"""The chance, at each look, that a service is killed which is not ready yet."""


def kind_of(process: psutil.Process, roles: dict[int, str]) -> str | None:
    """The kind of a process; None where it is gone, or is of no kind that is killed."""
    if process.pid in roles:
        return roles[process.pid].partition("-")[0]
    try:
        name, command, parent = process.name(), " ".join(process.cmdline()), process.ppid()
    except psutil.Error:
        return None
    if name == "postgres":
        return "backend"
    if name in COMPILER:
        return "compiler"
    if name == "runner":
        return "program"
    if "decoder" in command and "launch" not in command and name != "bwrap":
        return "decoder"
    if name == "bwrap" or "launcher.launch" in command:
        return "launcher"
    if "resource_tracker" in command:
        return "tracker"
    if "forkserver" in command:
        return "fork server" if parent in roles else "search"
    return None


class Killer:
    """Kills processes of a deployment; `killed` counts them by kind."""

    def __init__(self, deployment: Deployment, rng: random.Random) -> None:
        self._deployment, self._rng = deployment, rng
        self.killed: Counter[str] = Counter()

    def by_kind(self) -> dict[str, list[psutil.Process]]:
        """The processes that may be killed."""
        roles = {r.process.pid: r.name for r in self._deployment.roles.values() if r.process is not None}
        found: dict[str, list[psutil.Process]] = {}
        for process in self._deployment.processes():
            kind = kind_of(process, roles)
            if kind is not None:
                found.setdefault(kind, []).append(process)
        return found

    def kill_one(self) -> None:
        """Kills a process: of a kind that is drawn first, where such a one is there or comes soon."""
        there = [kind for kind in STABLE if kind in self.by_kind()]
        kind = self._rng.choice([*there, *FLEETING])
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            self._deployment.supervise()
            if found := self._worth(kind):
                time.sleep(self._rng.random() * LOOK_S if kind in FLEETING else 0.0)
                self._kill(kind, self._rng.choice(found))
                return
            time.sleep(LOOK_S)

    def _worth(self, kind: str) -> list[psutil.Process]:
        """The processes of a kind; of services those that have been ready, but now and then: else nothing would ever
        be answered on a slow machine."""
        found = self.by_kind().get(kind, [])
        if kind != "service" or self._rng.random() < WHILE_STARTING:
            return found
        up = {r.process.pid for r in self._deployment.roles.values() if r.ready and r.process is not None}
        return [process for process in found if process.pid in up]

    def _kill(self, kind: str, process: psutil.Process) -> None:
        with suppress(psutil.Error):
            for role in self._deployment.roles.values():
                if role.process is not None and role.process.pid == process.pid:
                    role.killed = True
            process.kill()
            self.killed[kind] += 1
