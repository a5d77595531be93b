"""The grown pool: jobs on the workers of a Dask scheduler, as `concurrent.futures` has them.

A worker provides one unit of each of its resources a thread: of `machine@version`, the kind of machine that it has
found itself to be, and of `any@version`. A job asks for one of the first where it has to be done on such a machine, and
of the second elsewhere; workers of other versions have neither. A job of a worker that is lost is given to another by
the scheduler. Needs the extra `dask`.
"""

from __future__ import annotations

import contextvars
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, TypeVar

import distributed
import structlog
from distributed.scheduler import KilledWorker

from tilesmith.app.runtime.errors import Cancelled, WorkerError
from tilesmith.app.runtime.sandbox import cancel_event
from tilesmith.app.runtime.telling import telling
from tilesmith.scheduler.errors import InternalError

log = structlog.get_logger("tilesmith.pool")

P = ParamSpec("P")
T = TypeVar("T")

SCHEMES = {"dask": "tcp", "dask+tls": "tls"}
FACTS = "tilesmith"
"""The entry of a worker's startup information that says what it is."""
ANY = "any"
REFRESH_S = 1.0
CONNECT_S = 5.0
_TOPIC = "tilesmith-progress"

_running: dict[str, threading.Event] = {}  # in a worker: what cancels each job that it is at


class PoolLost(WorkerError):
    """The scheduler, or every worker that was tried, is gone: the job is to be done again."""

    def __init__(self, code: str = "worker_lost", message: str = "the pool was lost", output: str = "") -> None:
        super().__init__(code, message, output)


@dataclass(frozen=True, slots=True)
class Machines:
    """The workers at a moment: threads that take jobs by kind of machine, the kinds that are there, some of which may
    take none as they are about to end, and the description of each kind."""

    threads: Mapping[str, int]
    present: frozenset[str]
    documents: Mapping[str, Any]


def scheduler_address(url: str) -> str:
    """The address of the scheduler that a setting names, as Dask has it. ValueError where it is none."""
    scheme, _, place = url.partition("://")
    host, _, port = place.rpartition(":")
    if scheme not in SCHEMES or not host or not port.isdecimal():
        raise ValueError("is no address of a Dask scheduler: dask://host:8786, or dask+tls://host:8786")
    return f"{SCHEMES[scheme]}://{place}"


def resources(machine: str, version: str, threads: int) -> dict[str, float]:
    """The resources that a worker provides."""
    return {f"{machine}@{version}": threads, f"{ANY}@{version}": threads}


class DaskPool(Executor):
    """The workers of `version` at a scheduler. It connects when it is first needed, and again when it was lost."""

    def __init__(self, url: str, version: str) -> None:
        self._address = scheduler_address(url)
        self._version = version
        self._client: distributed.Client | None = None
        self._lock = threading.Lock()
        self._found: Machines | None = None
        self._looked = -REFRESH_S
        self._futures: dict[Future[Any], tuple[str, distributed.Future]] = {}
        self._cancelled: set[Future[Any]] = set()
        self._known: set[str] = set()
        self._listeners: dict[str, Callable[[str], None]] = {}

    def machines(self) -> Machines | None:
        """The workers of a second ago at most; None where the scheduler does not answer."""
        with self._lock:
            if self._looked < 0 or time.monotonic() - self._looked > REFRESH_S:
                self._found = self._look()
                self._looked = time.monotonic()
            return self._found

    remote = True

    def documents(self) -> Mapping[str, Any]:
        """The platforms of the machines that are there, by name."""
        found = self.machines()
        return {} if found is None else found.documents

    def remember(self, machines: Collection[str]) -> None:
        """There are machines of these kinds, though they may be away: what is for them is not done elsewhere."""
        self._known |= set(machines)

    def lane(self, machine: str) -> str:
        """The machine where there are, or have been, workers of its kind, or `any`."""
        found = self.machines()
        return machine if found is not None and machine in found.threads else ANY

    def room(self, running: Counter[str]) -> tuple[bool, frozenset[str]]:
        """Room for another job: if any worker is free, and the machines none of whose workers is, where `running` are
        at work for us by lane."""
        found = self.machines()
        if found is None or running.total() >= sum(found.threads.values()):
            return False, frozenset()
        return True, frozenset(name for name, threads in found.threads.items() if running[name] >= threads)

    def threads(self) -> Mapping[str, int]:
        """Threads of workers that take jobs, by kind of machine."""
        found = self.machines()
        return {} if found is None else found.threads

    def away(self, lane: str) -> bool:
        """True if there is no worker for that lane: a job that was given to it does not run, and will not for long."""
        found = self.machines()
        return found is not None and (not found.present if lane == ANY else lane not in found.present)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """A future of the function's result on any worker; it ends with Cancelled, PoolLost or the function's error."""
        return self.submit_to(ANY, fn, *args, **kwargs)

    def submit_to(self, lane: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """A future of its result on a worker of that lane."""
        key = f"tilesmith-{uuid.uuid4().hex}"
        waited: Future[T] = Future()
        listener = telling.get()
        with self._lock:
            client = self._connected()
            if listener is not None:
                self._listeners[key] = listener
            future = client.submit(
                partial(_perform, key, fn, *args, **kwargs),
                key=key,
                pure=False,
                resources={f"{lane}@{self._version}": 1},
            )
            self._futures[waited] = (key, future)
        future.add_done_callback(lambda done: self._settle(waited, key, done))
        return waited

    def cancel(self, future: Future[T]) -> bool:
        """Cancels a job: one that waits never starts; of one that runs the program is killed. False where it has
        ended."""
        with self._lock:
            found, client = self._futures.get(future), self._client
            if found is None or client is None:
                return False
            self._cancelled.add(future)
        key, remote = found
        try:
            client.run(_stop, key, wait=False, on_error="ignore")
            remote.cancel(reason="cancelled")
        except (OSError, RuntimeError):  # the scheduler is gone, and with it the job
            pass
        return True

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leaves the scheduler; with `cancel_futures` what was given to it is cancelled."""
        if cancel_futures:
            for future in list(self._futures):
                self.cancel(future)
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _look(self) -> Machines | None:
        try:
            workers = self._connected().scheduler_info(n_workers=-1)["workers"]
        except (OSError, RuntimeError, ValueError, KeyError, PoolLost) as error:  # KeyError: it says nothing yet
            if self._found is not None or self._looked < 0:
                log.warning("the pool does not answer; jobs wait", pool=self._address, error=str(error))
            self._forget_client()
            return None
        threads: dict[str, int] = dict.fromkeys(self._known, 0)
        documents: dict[str, Any] = {}
        for worker in workers.values():
            facts = worker.get(FACTS)
            if facts is not None and facts["version"] == self._version:
                taking = worker["nthreads"] if worker["status"] == "running" else 0
                threads[facts["machine"]] = threads.get(facts["machine"], 0) + taking
                documents.setdefault(facts["machine"], facts["platform"])
        return Machines(threads, frozenset(documents), documents)

    def _connected(self) -> distributed.Client:
        """The client, with the lock held. PoolLost where the scheduler does not answer."""
        if self._client is not None and self._client.status in ("closed", "closing", "newly-created"):
            self._forget_client()
        if self._client is None:
            try:
                client = distributed.Client(self._address, timeout=CONNECT_S, set_as_default=False, name="tilesmith")
                client.subscribe_topic(_TOPIC, self._said)
            except (OSError, RuntimeError) as error:
                raise PoolLost(message=f"the scheduler {self._address} does not answer: {error}") from None
            self._client = client
        return self._client

    def _forget_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            threading.Thread(target=partial(client.close, timeout=1), daemon=True).start()

    def _said(self, event: tuple[float, Any]) -> None:
        key, phase = event[1]
        listener = self._listeners.get(key)
        if listener is not None:
            threading.Thread(target=listener, args=(phase,), daemon=True).start()  # not in the client's event loop

    def _settle(self, waited: Future[Any], key: str, done: distributed.Future) -> None:
        """Passes the end of a remote future on."""
        with self._lock:
            cancelled = waited in self._cancelled
            self._cancelled.discard(waited)
            self._futures.pop(waited, None)
            self._listeners.pop(key, None)
        try:
            error = done.exception() if done.status == "error" else None
            if cancelled:
                waited.set_exception(Cancelled())
            elif isinstance(error, KilledWorker):
                waited.set_exception(PoolLost(message="every worker that was given the job died"))
            elif error is not None:
                waited.set_exception(error)
            elif done.status == "finished":
                result = done.result(timeout=60)
                if isinstance(result, _Failed):
                    waited.set_exception(result.error)
                else:
                    waited.set_result(result)
            else:
                waited.set_exception(PoolLost())
        except (OSError, CancelledError, RuntimeError) as lost:  # between the end of the job and its result
            waited.set_exception(PoolLost(message=f"the pool was lost: {lost}"))
        finally:
            done.release()


@dataclass(frozen=True, slots=True)
class _Failed:
    """The error that a job has come to. Dask takes an exception for a fault of its worker, which it logs with a
    traceback; that a program crashes, or a job is cancelled, is none."""

    error: Exception


def _perform(key: str, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> T | _Failed:
    """Runs the function in a worker; the programs that it starts are bound to what cancels the job."""
    event = _running.setdefault(key, threading.Event())
    context = contextvars.copy_context()
    context.run(cancel_event.set, event)
    context.run(telling.set, partial(_pass_on, key))
    try:
        if event.is_set():
            raise Cancelled
        return context.run(fn, *args, **kwargs)
    except Exception as error:  # told or passed on
        if getattr(error, "code", InternalError.code) == InternalError.code:
            raise
        return _Failed(error)
    finally:
        _running.pop(key, None)


def _pass_on(key: str, phase: str) -> None:
    distributed.get_worker().log_event(_TOPIC, (key, phase))


async def _stop(key: str) -> None:
    """Cancels the job in the worker that is at it; called in all of them. (Dask waits for functions that are no
    coroutines.)"""
    event = _running.get(key)
    if event is not None:
        event.set()
