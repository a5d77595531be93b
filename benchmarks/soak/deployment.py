"""The processes of a deployment, each in a folder of its own, started again when they end, as a supervisor would."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import httpx
import psutil

Store = Literal["sqlite", "postgres"]
Pool = Literal["embedded", "dask"]

READY_S = 120.0
STOP_S = 60.0
LEFT_S = 10.0
"""A process that is there for so long after those that it belongs to is left over."""
RESTART_S = 0.5
LOOK_S = 1.0
LEASE_S = 5
"""Seconds that a job is leased for: few, so that jobs of killed services are soon done by others."""
ATTEMPTS = 100
"""Attempts at a job: so many that none is given up, however often what does it is killed."""
DATABASE = "database"
NOBODY = ("nobody", "nogroup")


@dataclass(frozen=True)
class Shape:
    """The parts that a deployment consists of."""

    store: Store
    services: int
    pool: Pool
    workers: int


@dataclass
class Role:
    """A process that is to run: what starts it, and the process that does now. `address` is a service's, which was
    `ready` since its process was started, or not yet. `ended_alone` counts the times that it ended though nobody had
    killed it."""

    name: str
    command: Sequence[str]
    environment: dict[str, str] = field(default_factory=dict)
    user: str | None = None
    group: str | None = None
    process: subprocess.Popen[bytes] | None = None
    address: str | None = None
    ready: bool = False
    killed: bool = False
    ended_alone: int = 0
    due: float = 0.0


class Deployment:
    """Services with their database and their pool, in `folder`. Used as a context, it leaves no process behind."""

    def __init__(self, folder: Path, shape: Shape) -> None:
        self.folder, self.shape = folder, shape
        self.temporary = folder / "tmp"
        self.objects = folder / "objects"
        self.seen_shared: set[str] = set()
        self._looked = 0.0
        for place in (folder / "logs", self.temporary):
            place.mkdir(parents=True, exist_ok=True)
        scheduler, *ports = free_ports(1 + shape.services)
        self.addresses = [f"http://127.0.0.1:{port}" for port in ports]
        self.database_url = f"sqlite:///{folder / 'store.db'}"
        self.roles: dict[str, Role] = {}
        if shape.store == "postgres":
            self._add_database()
        common = {
            "TILESMITH_CALIBRATE": "false",
            "TILESMITH_LOG_LEVEL": "warning",
            "TILESMITH_LOG_FORMAT": "json",
            "TMPDIR": str(self.temporary),
        }
        program = str(Path(sys.executable).with_name("tilesmith"))
        if shape.pool == "dask":
            dask = str(Path(sys.executable).with_name("dask"))
            listen = ["--host", "127.0.0.1", "--port", str(scheduler), "--no-dashboard"]
            self._add(Role("scheduler", [dask, "scheduler", *listen], common))
            for n in range(shape.workers):
                command = [program, "worker", "--scheduler", f"tcp://127.0.0.1:{scheduler}"]
                own = {"TILESMITH_DATA_DIR": str(folder / f"worker-{n}")}
                self._add(Role(f"worker-{n}", command, common | own))
            common |= {"TILESMITH_POOL": f"dask://127.0.0.1:{scheduler}"}
        for n, port in enumerate(ports):
            own = {
                "TILESMITH_DATA_DIR": str(folder / f"service-{n}"),
                "TILESMITH_DATABASE_URL": self.database_url,
                "TILESMITH_DATABASE_BUSY_MS": "20000",
                "TILESMITH_JOB_LEASE_S": str(LEASE_S),
                "TILESMITH_JOB_ATTEMPTS": str(ATTEMPTS),
                "TILESMITH_SCHEDULE_WORKERS": "2",
            }
            if shape.services > 1 or shape.pool == "dask":
                own["TILESMITH_ARTIFACTS"] = str(self.objects)
            command = [program, "serve", "--port", str(port)]
            self._add(Role(f"service-{n}", command, common | own, address=f"http://127.0.0.1:{port}"))

    def _add(self, role: Role) -> None:
        self.roles[role.name] = role

    def _add_database(self) -> None:
        """A server of PostgreSQL, which refuses to run as root, on a socket in the folder, which has a short name:
        sockets need that."""
        programs = postgres_programs()
        place = self.folder / "pg"
        place.mkdir()
        user, group = NOBODY if os.geteuid() == 0 else (None, None)
        if user is not None:
            shutil.chown(place, user, group)
        made = [str(programs / "initdb"), "-D", str(place / "data"), "-U", "tilesmith", "-A", "trust", "-E", "UTF8"]
        subprocess.run(made, check=True, capture_output=True, env=_locale(), cwd=place, user=user, group=group)
        command = [str(programs / "postgres"), "-D", str(place / "data"), "-k", str(place), "-c", "listen_addresses="]
        self.database_url = f"postgresql+psycopg://tilesmith@/postgres?host={place}"
        self._add(Role(DATABASE, command, _locale(), user, group))

    def __enter__(self) -> Deployment:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes():
            with suppress(psutil.Error):
                process.kill()
        for role in self.roles.values():
            if role.process is not None:
                role.process.wait()

    def start(self) -> None:
        """Starts what does not run, and waits until all services are ready."""
        for role in self.roles.values():
            self._start(role)
        self.until(self.ready, READY_S, "the services did not become ready")

    def _start(self, role: Role) -> None:
        if role.process is not None and role.process.poll() is None:
            return
        with (self.folder / "logs" / f"{role.name}.log").open("ab") as log:
            role.process = subprocess.Popen(
                role.command,
                env={**os.environ, **role.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=role.user,
                group=role.group,
            )
        role.killed, role.ready, role.due = False, False, 0.0

    def supervise(self) -> None:
        """Starts again what has ended a little while ago, and waits for orphans that have come to an end."""
        now = time.monotonic()
        for role in self.roles.values():
            if role.process is None or role.process.poll() is None:
                continue
            if not role.due:
                role.due = now + RESTART_S
                role.ended_alone += not role.killed
            elif now >= role.due:
                self._start(role)
        if now > self._looked + LOOK_S:
            self._looked = now
            for role in self.roles.values():
                role.ready = role.ready or (role.address is not None and is_ready(role.address))
        self._note_shared()
        reap_orphans({r.process.pid for r in self.roles.values() if r.process is not None})

    def until(self, done: Callable[[], bool], seconds: float, otherwise: str) -> None:
        """Returns when it is so; RuntimeError with the ends of the logs where that takes too long."""
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                raise RuntimeError(f"{otherwise}\n{self.logs()}")
            self.supervise()
            time.sleep(0.1)

    def ready(self) -> bool:
        """True if every service is, with its pool."""
        return all(map(is_ready, self.addresses))

    def stop(self) -> list[str]:
        """Stops all but the database gracefully; what did not end by itself, which is killed then."""
        late = []
        others = [role for role in self.roles.values() if role.name != DATABASE]
        order = sorted(others, key=lambda role: ("service", "worker", "scheduler").index(role.name.partition("-")[0]))
        for role in order:
            if role.process is not None and role.process.poll() is None:
                role.process.send_signal(signal.SIGTERM)
                if role.name.startswith("service"):
                    continue
            late += self._ended(role)
        return late + [name for role in order for name in self._ended(role)]

    def stop_database(self) -> list[str]:
        """Stops the server of the database, where there is one."""
        role = self.roles.get(DATABASE)
        if role is None or role.process is None:
            return []
        role.process.send_signal(signal.SIGINT)
        return self._ended(role)

    def check_database(self) -> list[str]:
        """Problems that `pg_amcheck` finds with the files of the database."""
        checked = [str(postgres_programs() / "pg_amcheck"), "-h", str(self.folder / "pg"), "-U", "tilesmith"]
        done = subprocess.run(
            [*checked, "--install-missing", "postgres"], capture_output=True, text=True, env=_locale(), check=False
        )
        return [] if done.returncode == 0 else [f"pg_amcheck: {(done.stdout + done.stderr)[:500]}"]

    def _ended(self, role: Role) -> list[str]:
        if role.process is None:
            return []
        try:
            role.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            role.process.kill()
            role.process.wait()
            return [f"{role.name} did not end within {STOP_S:g} s of SIGTERM"]
        return []

    def processes(self) -> list[psutil.Process]:
        """Every process of the deployment: what was started, and all below it, orphans too."""
        found = []
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def others(self) -> list[str]:
        """Command lines of processes that are there still, a while after all but the database were stopped."""
        server = self.roles[DATABASE].process if DATABASE in self.roles else None
        mine = set() if server is None else {server.pid}
        until = time.monotonic() + LEFT_S
        while True:
            found = []
            for process in self.processes():
                with suppress(psutil.Error):
                    if not mine & {process.pid, process.ppid()}:
                        found.append(" ".join(process.cmdline())[:200])
            if not found or time.monotonic() > until:
                return found
            time.sleep(0.2)

    def _note_shared(self) -> None:
        """Keeps the names of shared memory that processes of the deployment have."""
        for process in self.processes():
            with suppress(OSError, UnicodeError):
                text = Path("/proc", str(process.pid), "maps").read_text(encoding="utf-8")
                self.seen_shared |= {line.split()[5] for line in text.splitlines() if " /dev/shm/" in line}

    def logs(self) -> str:
        """The end of each log."""
        files = sorted((self.folder / "logs").glob("*.log"))
        return "\n".join(f"{p.name}:\n{p.read_text(errors='replace')[-1500:]}" for p in files)


def is_ready(address: str) -> bool:
    """True if the service is, with its pool."""
    try:
        said = httpx.get(f"{address}/readyz", timeout=5)
    except httpx.HTTPError:
        return False
    return said.status_code == 200 and said.json()["checks"].get("pool", "ok") == "ok"


def postgres_programs() -> Path:
    """The folder of PostgreSQL's programs, where Debian has them; RuntimeError."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        raise RuntimeError("PostgreSQL is not installed: apt-get install postgresql")
    return found[-1].parent


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(s.getsockname()[1]) for s in held]


def reap_orphans(ours: set[int]) -> None:
    """Waits for children that have ended and are not `ours`: orphans that have become this process's."""
    for child in psutil.Process().children():
        with suppress(psutil.Error, ChildProcessError):
            if child.pid not in ours and child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)


def _locale() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "LC_ALL": "C"}
