"""The engine of schedules: processes with a time and a memory limit, that may die without taking the service along."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import psutil
import pytest

from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.schedules.engine import Engine
from tilesmith.app.service.settings import Settings

pytestmark = pytest.mark.slow


@pytest.fixture
def engine(tmp_path):
    """engine(key, setting=...): an Engine that runs that function for `key`, in one process."""
    made = []

    def make(key, **changed):
        settings = Settings(data_dir=tmp_path, schedule_workers=1, **changed)
        made.append(Engine(settings, SimpleNamespace(key=key, warm_up=os.getpid)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def code_of(engine, argument):
    with pytest.raises(ApiError) as caught:
        asyncio.run(engine.key(argument))
    return caught.value.code


def test_work_is_done_in_another_process(engine):
    one = engine(os.getpgid)
    assert asyncio.run(one.key(0)) == os.getpgid(0)
    one.functions.key = os.getppid
    one.functions.key = divmod
    with pytest.raises(TypeError):
        asyncio.run(one.key(1))


def test_work_that_takes_too_long_is_ended_and_the_process_goes_on(engine):
    one = engine(time.sleep, schedule_timeout_s=0.05)
    assert code_of(one, 600) == "timeout"
    one.functions.key = abs
    assert asyncio.run(one.key(-3)) == 3


def test_work_that_needs_too_much_memory_is_refused(engine):
    one = engine(bytes, schedule_memory_bytes=2 << 30)
    assert code_of(one, 3 << 30) == "out_of_memory"
    assert asyncio.run(one.key(3)) == b"\0\0\0"


def test_a_process_that_dies_is_replaced(engine):
    one = engine(os._exit)
    assert code_of(one, 1) == "worker_lost"
    one.functions.key = abs
    assert asyncio.run(one.key(-3)) == 3


def test_what_waits_has_a_limit(engine):
    one = engine(time.sleep, schedule_queue=2)

    async def three():
        return await asyncio.gather(*(one.key(0.2) for _ in range(3)), return_exceptions=True)

    found = asyncio.run(three())
    assert [getattr(f, "code", None) for f in found] == [None, None, "busy"]
    assert asyncio.run(one.key(0)) is None


def test_without_processes_threads_do_it(tmp_path):
    one = Engine(Settings(data_dir=tmp_path, schedule_workers=0), SimpleNamespace(key=lambda question: os.getpid()))
    assert asyncio.run(one.key(None)) == os.getpid()
    one.close()


SERVICE = """
import asyncio, os, sys
from types import SimpleNamespace
from tilesmith.app.service.schedules.engine import Engine
from tilesmith.app.service.settings import Settings

if __name__ == "__main__":
    engine = Engine(Settings(schedule_workers=2), SimpleNamespace(key=abs, warm_up=os.getpid))
    engine.warm_up()
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_processes_end_with_a_service_that_is_killed(tmp_path):
    script = tmp_path / "service.py"
    script.write_text(SERVICE)
    command = [sys.executable, str(script)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TILESMITH_DATA_DIR": str(tmp_path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as service:
        assert service.stdout.readline() == b"ready\n"
        processes = psutil.Process(service.pid).children(recursive=True)
        assert len(processes) >= 3
        service.kill()
    _, alive = psutil.wait_procs(processes, timeout=20)
    assert alive == []


@pytest.mark.slow
def test_an_engine_that_is_closed_at_work_leaves_no_semaphores(tmp_path):
    """Python warns of them when a process is ended by a signal, as a service is."""
    program = f"""
import os, signal, threading
from pathlib import Path
from tilesmith.app.service.schedules import work
from tilesmith.app.service.schedules.engine import Engine
from tilesmith.app.service.settings import Settings

if __name__ == "__main__":
    engine = Engine(Settings(data_dir=Path({str(tmp_path)!r}), schedule_workers=2), work)
    warming = threading.Thread(target=engine.warm_up)
    engine.pool().submit(len, "")
    warming.start()
    engine.close()
    warming.join()
    os.kill(os.getpid(), signal.SIGTERM)
"""
    (tmp_path / "closing.py").write_text(program)
    ended = subprocess.run(
        [sys.executable, tmp_path / "closing.py"], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stderr) == (-signal.SIGTERM, "")
