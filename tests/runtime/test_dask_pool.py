"""The grown pool: results, errors, cancelling, progress, and what happens when the scheduler is gone."""

from __future__ import annotations

import logging
import threading
from collections import Counter

import distributed
import pytest

from tilesmith.app.runtime import dask_pool
from tilesmith.app.runtime.dask_pool import FACTS, DaskPool, PoolLost, resources, scheduler_address
from tilesmith.app.runtime.errors import Cancelled, RunError
from tilesmith.app.runtime.sandbox import cancel_event
from tilesmith.app.runtime.telling import tell, telling

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of the cluster's own sockets, as it is taken down
]

VERSION, MACHINE = "1", "box-2x256"
started = threading.Event()


@pytest.fixture
def cluster():
    """A scheduler and a worker of this version, in this process."""
    facts = {"version": VERSION, "machine": MACHINE, "platform": {"name": MACHINE}}
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        dashboard_address="127.0.0.1:0",
        resources=resources(MACHINE, VERSION, 1),
        startup_information={FACTS: lambda _: facts},
    ) as made:
        yield made


@pytest.fixture
def pool(cluster):
    made = DaskPool(cluster.scheduler_address.replace("tcp://", "dask://"), VERSION)
    yield made
    made.shutdown(cancel_futures=True)


def until_cancelled():
    started.set()
    while not cancel_event.get().wait(0.01):
        pass
    raise Cancelled


def fail():
    raise RunError("run_failure", "it crashed", "its output")


def err():
    raise ZeroDivisionError


def test_errors_of_jobs_are_no_faults_of_a_worker(pool, caplog):
    """Their end is told to who asked; faults, which nobody expects, are logged with their traceback, too."""
    logging.getLogger("distributed.worker").addHandler(caplog.handler)
    try:
        with pytest.raises(RunError, match="crashed"):
            pool.submit(fail).result(30)
        assert "crashed" not in caplog.text
        with pytest.raises(ZeroDivisionError):
            pool.submit(err).result(30)
        assert "ZeroDivisionError" in caplog.text
    finally:
        logging.getLogger("distributed.worker").removeHandler(caplog.handler)


def test_results_errors_progress_and_lanes(pool):
    assert pool.submit(divmod, 7, 2).result(30) == (3, 1)
    assert pool.submit_to(MACHINE, divmod, 7, 2).result(30) == (3, 1)
    with pytest.raises(RunError) as caught:
        pool.submit(fail).result(30)
    assert (caught.value.code, caught.value.output) == ("run_failure", "its output")
    said, heard = [], threading.Event()

    def listen(phase):
        said.append(phase)
        heard.set()

    token = telling.set(listen)
    assert pool.submit(tell, "building").result(30) is None
    telling.reset(token)
    assert said == ["building"] or heard.wait(10)
    assert pool.documents() == {MACHINE: {"name": MACHINE}}
    pool.remember(["away-1x128"])
    assert (pool.lane(MACHINE), pool.lane("other")) == (MACHINE, "any")
    assert pool.room(Counter({MACHINE: 1})) == (False, frozenset())


def test_what_runs_is_cancelled_and_what_waits_never_starts(pool):
    started.clear()
    running, waiting = pool.submit(until_cancelled), pool.submit(divmod, 7, 2)
    assert started.wait(30)
    for future in (waiting, running):
        assert pool.cancel(future)
        with pytest.raises(Cancelled):
            future.result(30)
    assert not pool.cancel(running)
    assert pool.submit(divmod, 7, 2).result(30) == (3, 1), "the worker is free again"


def test_workers_of_another_version_are_none(cluster):
    other = DaskPool(cluster.scheduler_address.replace("tcp://", "dask://"), "2")
    assert other.documents() == {}
    assert other.room(Counter()) == (False, frozenset())
    assert other.away("any")
    other.shutdown()


def test_a_scheduler_that_is_not_there(monkeypatch):
    monkeypatch.setattr(dask_pool, "CONNECT_S", 0.3)
    pool = DaskPool("dask://127.0.0.1:1", VERSION)
    assert pool.machines() is None
    assert pool.room(Counter()) == (False, frozenset())
    with pytest.raises(PoolLost, match="does not answer"):
        pool.submit(divmod, 7, 2)


@pytest.mark.parametrize("url", ["tcp://x:1", "dask://x", "dask://:1", "dask://x:port", ""])
def test_addresses(url):
    with pytest.raises(ValueError, match="dask://host:8786"):
        scheduler_address(url)


def test_a_scheduler_that_says_nothing_yet_is_no_fault(pool, monkeypatch):
    assert pool.machines() is not None
    monkeypatch.setattr(distributed.Client, "scheduler_info", lambda *_, **__: {})
    pool._looked = -1.0
    assert pool.machines() is None
    assert pool.room(Counter()) == (False, frozenset())
