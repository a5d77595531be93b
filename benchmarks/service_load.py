"""`POST /v1/schedules` by many clients at once: what the service answers a second, and what an answer costs.

    python -m benchmarks.service_load [--only stored|new|with_c|shared] [--seconds 20] [--connections 64]
                                      [--database URL] [--json FILE]

`stored`: documents that were asked for before, by 64 connections. `new`: small documents under names that nobody has
used, by 16. `with_c`: the same, and then the C of each, which is made when it is asked for; both count as one answer.
`shared`: ten clients, each with a token and a pause between its requests, half of them for new schedules,
half for stored ones; alone, and then beside one that sends documents of 500 stages and bodies of 200,000 keys as fast
as it can. Each is a service of its own with its defaults, in a process of its own, on an empty store.

The clients are one process on the same machine, which takes as little of it as it can: uvloop and httptools, what the
service itself stands on; requests are made beforehand. CPU time is that of all processes of the service, of which its
own is told apart, and of the clients. On a machine that does other work it says more than the rate does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count, cycle, islice
from pathlib import Path
from typing import Any, cast

import httptools
import httpx
import psutil
import uvloop

from benchmarks import machine, report
from benchmarks.figures import Figure, as_data, table
from benchmarks.hostile import chain as long_chain
from benchmarks.hostile import keys, stages
from benchmarks.service_process import Service, service
from tilesmith.scheduler import pipelines

ADMIN = "benchmark-token-of-the-administrator"
SMALL = ("blur", "sobel", "unsharp", "harris")
STORED = 40
"""Documents that are stored and asked for in turn."""
CONNECTIONS = 64
NEW_CONNECTIONS = 16
ORDINARY = 10
HOSTILE_CONNECTIONS = 8
PAUSE_S = 0.5
SECONDS = 20.0
SAMPLES = 20
SETTLED = 2
"""The sample after which memory is expected to stay as it is."""
LEAST_RATE = {"stored": 1000.0, "new": 30.0, "with_c": 30.0}
MOST_MS = {"stored": 100.0, "new": 1000.0, "with_c": 1000.0}
MOST_GROWN = 1.1
MOST_SLOWED = 2.0


# --- requests ----------------------------------------------------------------------------------------


def document(number: int, name: str) -> dict[str, Any]:
    """A small document under another name: the content differs, the work does not."""
    return pipelines.document(SMALL[number % len(SMALL)]) | {"name": name}


def request(token: str, body: bytes) -> bytes:
    """A POST of a schedule request."""
    head = f"POST /v1/schedules HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def asking(token: str, pipeline: dict[str, Any]) -> bytes:
    return request(token, json.dumps({"pipeline": pipeline}).encode())


def code(token: str, schedule: bytes) -> bytes:
    """A request for the C of the schedule at that address."""
    return b"GET %s/code.c HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n" % (schedule, token.encode())


def stored(token: str) -> list[bytes]:
    return [asking(token, document(n, f"stored_{n}")) for n in range(STORED)]


def new(token: str, prefix: str) -> Iterator[bytes]:
    return (asking(token, document(n, f"{prefix}_{n}")) for n in count())


def hostile(token: str) -> Iterator[bytes]:
    """Documents of 500 stages, each another, and bodies that are refused, in turn."""
    wrong = request(token, b"{" + keys(200_000) + b"}")
    long = (asking(token, stages(500, long_chain) | {"name": f"long_{n}"}) for n in count())
    return (next(long) if n % 2 else wrong for n in count())


def mixed(token: str, prefix: str) -> Iterator[bytes]:
    """Requests for new schedules and for stored ones, in turn."""
    return chain.from_iterable(zip(new(token, prefix), cycle(stored(token)), strict=False))


# --- clients -----------------------------------------------------------------------------------------


@dataclass
class Answers:
    """Answers as they came: how long each took, ms, and its status; `broken` requests had none."""

    times_ms: array[float] = field(default_factory=lambda: array("d"))
    statuses: Counter[int] = field(default_factory=Counter)
    broken: int = 0

    @property
    def errors(self) -> int:
        return self.broken + sum(n for status, n in self.statuses.items() if status not in (200, 201))

    def percentile_ms(self, share: float) -> float:
        ordered = sorted(self.times_ms)
        return ordered[int(share * (len(ordered) - 1))] if ordered else float("nan")

    def told(self) -> str:
        closed = [f"{self.broken} connections closed"] if self.broken else []
        return ", ".join([*(f"{n} x {status}" for status, n in sorted(self.statuses.items())), *closed])


@dataclass(frozen=True)
class Load:
    """The requests of so many clients, each of which pauses after an answer. `then` gives what is asked for next of
    the address of what an answer has made; both are one answer, with the status of the second."""

    requests: Iterator[bytes]
    answers: Answers
    clients: int = 1
    pause_s: float = 0.0
    then: Callable[[bytes], bytes] | None = None


class Connection(asyncio.Protocol):
    """A connection to the service, for one request at a time."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[int] = self._loop.create_future()
        self.closed = False
        self.location = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by their class

    async def ask(self, request: bytes) -> int:
        """The status of the answer, all of which has arrived. ConnectionError where none comes."""
        self._answer = self._loop.create_future()
        self._transport.write(request)
        return await self._answer

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"location":
            self.location = value

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self.closed = not self._parser.should_keep_alive()
        if not self._answer.done():
            self._answer.set_result(self._parser.get_status_code())

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if not self._answer.done():
            self._answer.set_exception(ConnectionError("the connection was closed"))

    def close(self) -> None:
        self._transport.close()


async def client(load: Load, at: Service) -> None:
    """One request after the other until it is cancelled, over a connection that is kept where the service keeps it."""
    connection: Connection | None = None
    try:
        while True:
            if connection is None or connection.closed:
                _, connection = await asyncio.get_running_loop().create_connection(Connection, at.host, at.port)
            began = time.perf_counter()
            try:
                status = await connection.ask(next(load.requests))
                if load.then is not None and status == 201:
                    status = await connection.ask(load.then(connection.location))
            except ConnectionError:
                load.answers.broken += 1
                continue
            load.answers.times_ms.append(1e3 * (time.perf_counter() - began))
            load.answers.statuses[status] += 1
            if load.pause_s:
                await asyncio.sleep(load.pause_s)
    finally:
        if connection is not None:
            connection.close()


# --- measuring ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Usage:
    """CPU time of the service's own process, of all of its processes, and of this one, s; resident memory of the two
    first, MB."""

    own_s: float
    all_s: float
    clients_s: float
    own_mb: float
    all_mb: float


def usage(pid: int) -> Usage:
    own = psutil.Process(pid)
    cpu, memory = [], []
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.Error):
            times = process.cpu_times()
            cpu.append(times.user + times.system)
            memory.append(process.memory_info().rss / 1e6)
    return Usage(cpu[0], sum(cpu), time.process_time(), memory[0], sum(memory))


def put_under(at: Service, loads: Sequence[Load], seconds: float) -> list[Usage]:
    """Usage at every twentieth of the time while the service was put under the loads."""

    async def ask() -> list[Usage]:
        used = [usage(at.pid)]
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(client(load, at)) for load in loads for _ in range(load.clients)]
            began = time.perf_counter()
            for n in range(1, SAMPLES + 1):
                await asyncio.sleep(began + n * seconds / SAMPLES - time.perf_counter())
                used.append(usage(at.pid))
            for task in asked:
                task.cancel()
        return used

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(ask())


def figures_of(name: str, answers: Answers, used: Sequence[Usage], seconds: float) -> list[Figure]:
    """Rate, latency, errors, CPU time of an answer and memory."""
    number = max(1, len(answers.times_ms))
    own, every, ours = (
        1e3 * (getattr(used[-1], part) - getattr(used[0], part)) / number for part in ("own_s", "all_s", "clients_s")
    )
    parts = f"{own:.2f} ms in the service's own process; the clients took {ours:.2f} ms"
    settled, last = used[SETTLED], used[-1]
    memory = f"{settled.own_mb:.0f} to {last.own_mb:.0f} MB; with all its processes to {last.all_mb:.0f} MB"
    return [
        Figure(f"{name}: answers", number / seconds, "1/s", least=LEAST_RATE[name]),
        Figure(f"{name}: median", answers.percentile_ms(0.5), "ms"),
        Figure(f"{name}: 99th percentile", answers.percentile_ms(0.99), "ms", MOST_MS[name]),
        Figure(f"{name}: errors", answers.errors, "", 1, note=answers.told()),
        Figure(f"{name}: CPU time of an answer", every, "ms", note=parts),
        Figure(f"{name}: memory at the end", last.own_mb / settled.own_mb, "x", MOST_GROWN, note=memory),
    ]


# --- the three figures -------------------------------------------------------------------------------


@contextmanager
def with_tokens(database: str | None, count: int) -> Iterator[tuple[Service, list[str]]]:
    """A service, and so many tokens that may submit."""
    settings = {"TILESMITH_ADMIN_TOKEN": ADMIN} | ({"TILESMITH_DATABASE_URL": database} if database else {})
    with service(**settings) as at:
        with httpx.Client(base_url=at.address, headers={"Authorization": f"Bearer {ADMIN}"}, timeout=60) as admin:
            made = [admin.post("/v1/tokens", json={"name": f"client {n}", "scopes": ["submit"]}) for n in range(count)]
        yield at, [answer.raise_for_status().json()["token"] for answer in made]


def store(at: Service, bodies: Sequence[bytes]) -> None:
    """Has each answered once."""

    async def each() -> None:
        _, connection = await asyncio.get_running_loop().create_connection(Connection, at.host, at.port)
        for body in bodies:
            status = await connection.ask(body)
            if status not in (200, 201):
                raise RuntimeError(f"a document was answered with {status}")
        connection.close()

    asyncio.run(each())


def measure_stored(seconds: float, connections: int, database: str | None) -> list[Figure]:
    with with_tokens(database, 1) as (at, (token,)):
        bodies = stored(token)
        store(at, bodies)
        answers = Answers()
        used = put_under(at, [Load(cycle(bodies), answers, connections)], seconds)
        return figures_of("stored", answers, used, seconds)


def measure_new(seconds: float, _connections: int, database: str | None) -> list[Figure]:
    with with_tokens(database, 1) as (at, (token,)):
        store(at, list(islice(new(token, "first"), len(SMALL))))
        answers = Answers()
        used = put_under(at, [Load(new(token, "new"), answers, NEW_CONNECTIONS)], seconds)
        return figures_of("new", answers, used, seconds)


def measure_with_c(seconds: float, _connections: int, database: str | None) -> list[Figure]:
    with with_tokens(database, 1) as (at, (token,)):
        store(at, list(islice(new(token, "first"), len(SMALL))))
        answers = Answers()
        load = Load(new(token, "new"), answers, NEW_CONNECTIONS, then=partial(code, token))
        return figures_of("with_c", answers, put_under(at, [load], seconds), seconds)


def measure_shared(seconds: float, _connections: int, database: str | None) -> list[Figure]:
    """The 99th percentile of ten ordinary clients beside a hostile one, over that of the ten alone."""
    alone, beside, hostiles = Answers(), Answers(), Answers()

    def ordinary(prefix: str, answers: Answers) -> list[Load]:
        return [Load(mixed(token, f"{prefix}_{n}"), answers, pause_s=PAUSE_S) for n, token in enumerate(tokens)]

    with with_tokens(database, ORDINARY + 1) as (at, (bad, *tokens)):
        store(at, stored(tokens[0]))
        put_under(at, ordinary("alone", alone), seconds)
        attack = Load(hostile(bad), hostiles, HOSTILE_CONNECTIONS)
        put_under(at, [*ordinary("beside", beside), attack], seconds)
    ratio = beside.percentile_ms(0.99) / alone.percentile_ms(0.99)
    return [
        Figure("ten clients: median", alone.percentile_ms(0.5), "ms"),
        Figure("ten clients: 99th percentile", alone.percentile_ms(0.99), "ms", note=alone.told()),
        Figure("beside a hostile one: median", beside.percentile_ms(0.5), "ms"),
        Figure("beside a hostile one: 99th percentile", beside.percentile_ms(0.99), "ms", note=beside.told()),
        Figure("beside a hostile one: errors", alone.errors + beside.errors, "", 1),
        Figure("beside a hostile one over alone", ratio, "x", MOST_SLOWED, note=f"it was told {hostiles.told()}"),
    ]


PARTS = {"stored": measure_stored, "new": measure_new, "with_c": measure_with_c, "shared": measure_shared}


def measure(
    seconds: float = SECONDS,
    connections: int = CONNECTIONS,
    database: str | None = None,
    only: Sequence[str] = tuple(PARTS),
) -> list[Figure]:
    return [figure for name in only for figure in PARTS[name](seconds, connections, database)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service_load", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=tuple(PARTS))
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="N", help="of each load")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, metavar="N", help="that ask for what is stored")
    parser.add_argument("--database", metavar="URL", help="an empty PostgreSQL")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    figures = measure(arguments.seconds, arguments.connections, arguments.database, arguments.only)
    print(table(figures))
    report.write(arguments.json, {"machine": machine.describe(), "figures": as_data(figures)})


if __name__ == "__main__":
    main()
