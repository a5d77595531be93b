"""The engine of schedules: processes with a time and a memory limit, that may die without taking the service along."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import forkserver
from types import SimpleNamespace

import psutil
import pytest

from tilesmith.app.service.bodies import SMALL_BYTES
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.schedules import engine as engines
from tilesmith.app.service.schedules.engine import Engine, asker
from tilesmith.app.service.schedules.schemas import ScheduleRequest
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
    one = engine(time.sleep, read_timeout_s=0.05)
    assert code_of(one, 600) == "timeout"
    one.functions.key = abs
    assert asyncio.run(one.key(-3)) == 3


def test_work_that_needs_too_much_memory_is_refused(engine):
    one = engine(bytes, schedule_memory_bytes=2 << 30)
    assert code_of(one, 3 << 30) == "out_of_memory"
    assert asyncio.run(one.key(3)) == b"\0\0\0"


def niceness_of(_document):
    return os.nice(0)


def test_processes_of_long_work_are_nice_to_the_one_of_short_work(tmp_path):
    """The first takes whatever comes, the second only what is short."""
    one = Engine(Settings(data_dir=tmp_path, schedule_workers=2), SimpleNamespace(warm_up=os.getpid))
    try:
        one.warm_up()
        long = one.submit(niceness_of, {"stages": [{}] * 1000})
        assert long.result() == os.nice(0) + engines.LONG_NICE
        one.submit(time.sleep, 0.5)  # the first process has it
        assert one.submit(niceness_of, {"stages": []}).result() == os.nice(0)
    finally:
        one.close()


def process_of(_body):
    return os.getpid()


def test_large_bodies_are_read_in_another_process_and_no_longer_than_their_time(engine):
    one = engine(time.sleep, read_timeout_s=0.05)
    assert asyncio.run(one.read(process_of, b" " * SMALL_BYTES)) == os.getpid()
    assert asyncio.run(one.read(process_of, b" " * (SMALL_BYTES + 1))) != os.getpid()
    deep = b'{"pipeline":' * 80 + b'"' + b" " * SMALL_BYTES + b'"' + b"}" * 80
    for content, code in ((b'{"x":' + deep + b"}", "bad_json"), (b" " * SMALL_BYTES + b"[]", "bad_request")):
        with pytest.raises(ApiError) as caught:
            asyncio.run(one.model(content, ScheduleRequest))
        assert caught.value.code == code
    assert code_of(one, 600) == "timeout"


def test_a_process_that_dies_is_replaced(engine):
    one = engine(os._exit)
    assert code_of(one, 1) == "worker_lost"
    one.functions.key = abs
    assert asyncio.run(one.key(-3)) == 3


def test_what_waits_has_a_limit(engine):
    one = engine(time.sleep, schedule_queue=2)

    async def three():
        asker.set("127.0.0.1")
        return await asyncio.gather(*(one.key(0.2) for _ in range(3)), return_exceptions=True)

    found = asyncio.run(three())
    assert [getattr(f, "code", None) for f in found] == [None, None, "busy"]
    assert asyncio.run(one.key(0)) is None


def test_a_process_that_its_alarm_cannot_end_is_killed_and_replaced(engine, monkeypatch):
    monkeypatch.setattr(engines, "GRACE_S", 0.1)
    one = engine(deaf, read_timeout_s=0.2)
    assert code_of(one, 600) == "timeout"
    one.functions.key = abs
    assert asyncio.run(one.key(-3)) == 3


def deaf(seconds):
    """Work that no signal interrupts."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    time.sleep(seconds)


def test_the_work_of_a_process_that_was_killed_is_done_in_another(engine, tmp_path):
    one = engine(killed_once)
    assert asyncio.run(one.key(str(tmp_path / "mark"))) == "done"


def killed_once(mark):
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return "done"
    os.kill(os.getpid(), signal.SIGKILL)
    return "not killed"


def test_the_fork_server_may_be_killed(engine):
    one = engine(abs)
    assert asyncio.run(one.key(-1)) == 1
    os.kill(forkserver._forkserver._forkserver_pid, signal.SIGKILL)
    one.functions.key = os._exit
    assert code_of(one, 1) == "worker_lost"
    one.functions.key = abs
    assert asyncio.run(one.key(-3)) == 3


def stop(*pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)


def test_a_stopped_fork_server_is_replaced(engine, monkeypatch):
    """It does not see that a process has ended; nor would it when the engine is closed."""
    monkeypatch.setattr(engines, "GRACE_S", 0.1)
    monkeypatch.setattr(engines, "STUCK_S", 0.3)
    one = engine(os.getpgid, read_timeout_s=0.2)
    asyncio.run(one.key(0))
    stop(forkserver._forkserver._forkserver_pid, *one._slots[0].executor._processes)
    assert code_of(one, 0) == "timeout"
    one.functions.key = abs
    assert asyncio.run(one.key(-3)) == 3
    stop(forkserver._forkserver._forkserver_pid)
    one.close()


def test_a_fork_server_that_forks_nothing_is_replaced(engine, monkeypatch):
    kill, longest = engines._kill_fork_server, engines.START_S

    def killed_once():
        monkeypatch.setattr(engines, "START_S", longest)
        kill()

    one = engine(abs)
    one.warm_up()
    one._replace(one._slots[0])
    stop(forkserver._forkserver._forkserver_pid)
    monkeypatch.setattr(engines, "_kill_fork_server", killed_once)
    monkeypatch.setattr(engines, "START_S", 0.3)
    assert asyncio.run(one.key(-3)) == 3


class Held:
    """Work in threads that goes on until it is let go; what has begun, in its order."""

    def __init__(self, tmp_path, **changed):
        self.begun, self.go = [], threading.Event()
        settings = Settings(data_dir=tmp_path, schedule_workers=0, **changed)
        self.engine = Engine(settings, SimpleNamespace())
        self.made = []

    def ask(self, client, name, stages=1):
        asker.set(client)
        self.made.append(self.engine.submit(self.work, name, {"stages": [{}] * stages}))

    def work(self, name, _document):
        self.begun.append(name)
        assert self.go.wait(60)

    def end(self):
        self.go.set()
        for made in self.made:
            made.result(60)
        self.engine.close()


def test_short_work_does_not_wait_for_long_work(tmp_path):
    held = Held(tmp_path)
    for n in range(4):
        held.ask("a", f"long {n}", 500)
    held.ask("b", "short")
    while len(held.begun) < 2:
        time.sleep(0.001)
    assert set(held.begun) == {"long 0", "short"}
    held.end()


def test_clients_take_turns(tmp_path):
    held = Held(tmp_path)
    for n in range(6):
        held.ask("a", f"a{n}", 500)
    held.ask("b", "b0", 500)
    held.ask("b", "b1", 500)
    held.end()
    assert held.begun[0] == "a0"
    assert {"b0", "b1"} <= set(held.begun[:4])


@pytest.fixture
def two_threads(tmp_path):
    """An Engine of two threads, of which the second has worked about "known"; and what ends the work of each."""
    one, go = (
        Engine(Settings(data_dir=tmp_path, schedule_workers=0), SimpleNamespace()),
        [threading.Event(), threading.Event()],
    )
    one.warm_up()
    held = one.submit(go[0].wait, 60)
    one.submit(threading.get_ident, about=("known",)).result(60)
    go[0].set()
    held.result(60)
    go[0].clear()
    yield one, go
    for event in go:
        event.set()
    one.close()


def test_work_goes_to_who_has_worked_about_the_same(two_threads):
    one, _ = two_threads
    first = one.submit(threading.get_ident).result(60)
    found = {one.submit(threading.get_ident, about=("known", n)).result(60) for n in range(3)}
    assert len(found) == 1
    assert first not in found


def test_work_is_left_to_who_knows_it_for_a_while(two_threads):
    one, go = two_threads
    held = [one.submit(event.wait, 60) for event in go]
    begun = []
    waiting = [one.submit(begun.append, "known", about=("known",))]
    waiting += [one.submit(begun.append, n) for n in range(engines.MOST_PASSED + 2)]
    go[0].set()
    for made in (held[0], *waiting):
        made.result(60)
    assert begun.index("known") == engines.MOST_PASSED


def test_a_token_has_a_limit_of_its_own(tmp_path):
    held = Held(tmp_path, schedule_queue_per_token=2, schedule_queue=4)
    held.ask("token a", "1")
    held.ask("token a", "2")
    with pytest.raises(ApiError) as caught:
        held.ask("token a", "3")
    assert (caught.value.code, caught.value.status_code) == ("token_limit", 429)
    assert caught.value.extra == {"setting": "TILESMITH_SCHEDULE_QUEUE_PER_TOKEN", "limit": 2}
    assert int(caught.value.headers["Retry-After"]) > 0
    held.ask("token b", "4")
    held.ask("an address", "5")
    with pytest.raises(ApiError) as caught:
        held.ask("another address", "6")
    assert caught.value.code == "busy"
    held.end()


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
    _, alive = psutil.wait_procs(processes, timeout=60)
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
    engine.submit(len, "")
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
