"""The pool: its interface, cancellation of what waits and of what runs, and jobs that misbehave."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import CancelledError, wait
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from support.hand_written_c import body, pairs, source

from tilesmith.app.runtime.build import build
from tilesmith.app.runtime.errors import Cancelled, CompileError, RunError
from tilesmith.app.runtime.pool import WorkerPool
from tilesmith.app.runtime.run import RUN_LIMITS, RunResult, run
from tilesmith.platforms import Compiler
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.ir.pipeline.arguments import Image

pytestmark = pytest.mark.slow

PLATFORM = host().model_copy(update={"compiler": Compiler(command="gcc", flags=("-O1",))})


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def job(cache: Path, code: CSource, wall_s: float = 60.0) -> RunResult:
    library = build(code, PLATFORM, cache, 60)
    inputs = {"image": Image(np.ones((4, 5), np.float32), (0, 0))}
    return run(library, pairs(), inputs, {}, limits=replace(RUN_LIMITS, wall_s=wall_s))


def hang(marker: Path) -> CSource:
    """A program that says that it runs, then does nothing."""
    statements = 'prctl(PR_SET_NAME, "hanging-job"); for (;;) pause();'
    return body(statements, f"#include <sys/prctl.h>\n#include <unistd.h>\n/* {marker.name} */")


def hanging() -> list[psutil.Process]:
    return [
        p
        for p in psutil.process_iter(["name", "status"])
        if p.info["name"] == "hanging-job" and p.info["status"] != psutil.STATUS_ZOMBIE
    ]


def until_one_hangs() -> None:
    ticks = threading.Event()
    for _ in range(1000):
        if hanging():
            return
        ticks.wait(0.01)
    pytest.fail("the program has not started")


def test_jobs_and_their_results(cache: Path) -> None:
    with WorkerPool(2) as pool:
        futures = [pool.submit(job, cache, source()) for _ in range(5)]
        assert all(f.result().outputs["twice"][0].shape == (4, 4) for f in futures)
        assert list(pool.map(str, [1, 2])) == ["1", "2"]


def test_a_job_that_fails_costs_itself_alone(cache: Path) -> None:
    with WorkerPool(1) as pool:
        crash = pool.submit(job, cache, body("*(volatile int *)8 = 1; return 0;"))
        wrong = pool.submit(job, cache, body("return undeclared;"))
        stuck = pool.submit(job, cache, body("for (;;) pause();", "#include <unistd.h>"), wall_s=0.3)
        good = pool.submit(job, cache, source())
        assert isinstance(crash.exception(), RunError)
        assert isinstance(wrong.exception(), CompileError)
        assert getattr(stuck.exception(), "code", None) == "run_timeout"
        assert good.result().threads == 1


def test_cancelling_what_runs_kills_the_program(cache: Path, tmp_path: Path) -> None:
    with WorkerPool(1) as pool:
        running = pool.submit(job, cache, hang(tmp_path))
        waiting = pool.submit(job, cache, source())
        until_one_hangs()
        programs = hanging()
        assert pool.cancel(waiting)
        assert pool.cancel(running)
        assert isinstance(running.exception(), Cancelled)
        assert waiting.cancelled()
        with pytest.raises(CancelledError):
            waiting.result()
        assert psutil.wait_procs(programs, timeout=60)[1] == []
        assert pool.submit(job, cache, source()).result().threads == 1


def test_what_has_ended_cannot_be_cancelled(cache: Path) -> None:
    with WorkerPool(1) as pool:
        done = pool.submit(str, 1)
        wait([done])
        assert not pool.cancel(done)


def test_shutdown_stops_everything(cache: Path, tmp_path: Path) -> None:
    pool = WorkerPool(1)
    running, waiting = pool.submit(job, cache, hang(tmp_path)), pool.submit(job, cache, source())
    until_one_hangs()
    pool.shutdown(cancel_futures=True)
    assert isinstance(running.exception(), Cancelled)
    assert waiting.cancelled()
    with pytest.raises(RuntimeError):
        pool.submit(str, 1)


@pytest.mark.parametrize(
    "error", [CompileError("compile_failure", "m", "out"), RunError("run_failure", "m"), Cancelled()]
)
def test_errors_cross_processes(error: CompileError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.code, str(copy), copy.output) == (type(error), error.code, str(error), error.output)
