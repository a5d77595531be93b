"""Confinement: every escape is tried under every mechanism, and where nothing confines programs, none runs."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from support.hand_written_c import body, pairs
from support.tools import require_tool

from tilesmith.app.runtime import confinement, sandbox
from tilesmith.app.runtime.build import build
from tilesmith.app.runtime.confinement import MECHANISMS, Confinement, Mechanism, found_escapes, in_force, mechanism
from tilesmith.app.runtime.errors import RunError
from tilesmith.app.runtime.launcher import launch, system_calls
from tilesmith.app.runtime.launcher.escapes import ATTEMPTS
from tilesmith.app.runtime.run import RUN_LIMITS, run
from tilesmith.app.runtime.sandbox import Limits, execute
from tilesmith.platforms import Compiler
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler.ir.pipeline.arguments import Image

pytestmark = pytest.mark.slow

PLATFORM = host().model_copy(update={"compiler": Compiler(command="gcc", flags=("-O1",))})
MIB = 1 << 20
FIRST_CODE = 10
"""First of the codes that programs of several escapes return; generated code has lower ones of its own."""
NO_NAMESPACES = (
    "from tilesmith.app.runtime.launcher import namespaces; namespaces.enter = lambda *_, **__: False; main()"
)
FIRST_LANDLOCK = (
    "from tilesmith.app.runtime.launcher import landlock; landlock.version = lambda libc: 1; " + NO_NAMESPACES
)
STARTS = {
    "no namespaces": launch._START.replace("main()", NO_NAMESPACES),
    "no namespaces, Linux 5.13": launch._START.replace("main()", FIRST_LANDLOCK),
}
"""Starts of the launcher on systems that can do less: containers, and the first that had Landlock."""
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
TOO_NEW = {"fchmodat2", "setxattrat", "removexattrat", "open_tree_attr", "file_setattr"}
"""Calls that are younger than the headers of the oldest system that tests run on."""


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(params=[*MECHANISMS, *STARTS])
def confined(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every way in which programs are confined."""
    how: Mechanism = "landlock"
    if request.param in STARTS:
        monkeypatch.setattr(launch, "_START", STARTS[request.param])
    else:
        how = request.param
    monkeypatch.setattr(sandbox, "in_force", lambda: how)
    return str(request.param)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs may start processes, as compilers may."""
    command = sandbox.confined_command
    monkeypatch.setattr(
        sandbox, "confined_command", lambda how, confined, *rest: command(how, replace(confined, processes=True), *rest)
    )


def attempt(cache: Path, statements: str, prelude: str = "", **changes: Any) -> None:
    """Runs statements that return 0 where they have not escaped."""
    library = build(body(statements, prelude), PLATFORM, cache, 60)
    array = np.ones((20, 30), np.float32)
    run(library, pairs(), {"image": Image(array, (0, 0))}, {}, limits=replace(RUN_LIMITS, **changes))


def test_the_launcher_loads_little() -> None:
    """Every run of a compiler or of a pipeline begins with it."""
    start = launch._START.replace("main()", "print(*sys.modules)")
    command = [sys.executable, "-I", "-S", "-c", start, launch._PACKAGES]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert launch.__name__ in loaded
    assert {"typing", "pathlib", "platform"}.isdisjoint(loaded)


def test_a_test_that_was_killed_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def killed_once(mechanism: Mechanism) -> tuple[str, ...]:
        tried.append(mechanism)
        if len(tried) == 1:
            raise confinement._Inconclusive
        return ()

    monkeypatch.setattr(confinement, "_tried", killed_once)
    assert found_escapes.__wrapped__("bubblewrap") == ()
    assert tried == ["bubblewrap"] * 2


def test_a_test_that_is_slow_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that starts on a busy machine is confined by bubblewrap all the same."""

    def slow(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("bwrap", 20)

    with monkeypatch.context() as patched:
        patched.setattr(confinement.subprocess, "run", slow)
        with pytest.raises(confinement._Inconclusive):
            confinement._tried("bubblewrap")


@pytest.mark.parametrize("killed", [True, False])
def test_a_signal_is_seen_as_soon_as_it_is_sent(killed: bool) -> None:
    """The system may end a process long after the signal was sent, where others have the cores."""
    with confinement._outside() as outside:
        if killed:
            os.kill(outside.victim.pid, signal.SIGKILL)
        assert confinement._answers(outside.victim) != killed


def test_nothing_escapes(confined: str) -> None:
    assert found_escapes.__wrapped__(sandbox.in_force()) == ()


AS_NOBODY = """
import json, sys
root, starts = json.loads(sys.argv[1])
sys.path.append(root)
from tilesmith.app.runtime import confinement
from tilesmith.app.runtime.launcher import launch
found = [confinement.found_escapes(how) for how in ("bubblewrap", "landlock", "none")]
for launch._START in starts:
    found.append(confinement.found_escapes.__wrapped__("landlock"))
print(json.dumps(found))
"""
NOBODY = 65534


@pytest.mark.skipif(os.getuid() != 0, reason="the other tests are those of a user that is not root")
def test_nothing_escapes_from_who_is_not_root() -> None:
    """The launcher stands alone: any Python that this user may start runs it."""
    asked = json.dumps([str(Path(__file__).parents[2]), list(STARTS.values())])
    for python in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
        with suppress(OSError):
            done = subprocess.run(
                [os.path.realpath(python), "-I", "-S", "-c", AS_NOBODY, asked], cwd="/", user=NOBODY, group=NOBODY,
                extra_groups=[], env={"PATH": os.environ["PATH"], "TMPDIR": "/tmp"}, capture_output=True, check=False,
            )  # fmt: skip
            if b"ModuleNotFoundError: No module named 'tilesmith'" not in done.stderr:
                break
    else:
        pytest.skip("neither a Python nor this folder are open to other users")
    bubblewrap, landlock, none, *others = json.loads(done.stdout)
    assert [bubblewrap, landlock, *others] == [[]] * (2 + len(STARTS))
    assert {*none} == {*ATTEMPTS} - {"descriptors"}


def test_the_attempts_succeed_where_nothing_confines_them() -> None:
    found = found_escapes.__wrapped__("none")
    assert {*found} == {*ATTEMPTS} - {"descriptors"}  # what is left behind is ended by the launcher all the same


def succeeded(cache: Path, escapes: Sequence[str], headers: Sequence[str]) -> str | None:
    """The first of `escapes` that succeeds, all tried in one program: expressions of C, true of an escape."""
    tried = [f"if ({e}) return {FIRST_CODE + n};" for n, e in enumerate(escapes)]
    try:
        attempt(cache, "\n".join([*tried, "return 0;"]), "\n".join(f"#include <{h}>" for h in headers))
    except RunError as error:
        if code := re.search(r"with code (\d+)", str(error)):
            return escapes[int(code[1]) - FIRST_CODE]
        raise
    return None


def test_an_escape_is_told(cache: Path) -> None:
    assert succeeded(cache, ["getpid() < 0", "getpid() > 0"], ["unistd.h"]) == "getpid() > 0"


def test_nothing_is_written_elsewhere(cache: Path, confined: str) -> None:
    paths = ("/dev/x", "/tmp/x", "/var/tmp/x", "/usr/x", "/etc/x", "/x", "/proc/sys/kernel/core_pattern")
    assert not succeeded(cache, [f'open("{path}", O_CREAT | O_WRONLY, 0600) >= 0' for path in paths], ["fcntl.h"])
    assert not [path for path in paths if not path.startswith("/proc") and Path(path).exists()]


def test_shared_memory_by_name_is_the_program_s_own(cache: Path, confined: str) -> None:
    if confined in STARTS:  # without mounts of its own there is none
        assert not succeeded(cache, ['open("/dev/shm/x", O_CREAT | O_WRONLY, 0600) >= 0'], ["fcntl.h"])
    else:
        attempt(cache, """int made = open("/dev/shm/x", O_CREAT | O_WRONLY, 0600); if (made < 0) return 11;
                          if (open("x", O_RDONLY) < 0) return 12; return 0;""", "#include <fcntl.h>")  # fmt: skip
    assert not Path("/dev/shm/x").exists()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_threads_of_clang_run_confined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: Mechanism) -> None:
    """Its OpenMP wants a page of shared memory."""
    require_tool("clang")
    monkeypatch.setattr(sandbox, "in_force", lambda: mechanism)
    clang = PLATFORM.model_copy(update={"compiler": Compiler(command="clang", flags=("-O1",))})
    code = body("int n = 0;\n#pragma omp parallel reduction(+: n)\nn++;\nreturn n == 2 ? 0 : 11;")
    image = Image(np.ones((20, 30), np.float32), (0, 0))
    run(build(code, clang, tmp_path, 60), pairs(), {"image": image}, {}, threads=2)


def test_calls_that_are_refused(cache: Path, confined: str) -> None:
    escapes = [
        "mmap(0, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED",
        'memfd_create("x", 0) >= 0',
        "shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0",
        "syscall(SYS_unshare, 0x40000000) == 0",
        "syscall(SYS_clone3, 0, 0) >= 0 || errno != ENOSYS",
        "syscall(SYS_clone, 0x10000000 | SIGCHLD, 0, 0, 0, 0) >= 0",
        'mount("none", ".", "tmpfs", 0, 0) == 0',
        "syscall(SYS_io_uring_setup, 1, 0) >= 0 || errno != EPERM",
        "setpriority(PRIO_PROCESS, 0, -5) == 0",
        "prlimit(getppid(), RLIMIT_NOFILE, 0, &(struct rlimit){0}) == 0",
        "setuid(12345) == 0",
        'chmod(".", 0777) == 0',
        'truncate("0.raw", 0) == 0',
        # a fork bomb doubles in less time than any watch takes to look; of root's processes the system counts none
        *(f"{c} != -1 || errno != EAGAIN" for c in ("fork()", "vfork()", "syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)")),
    ]
    system = ("mman", "shm", "syscall", "mount", "resource", "stat")
    headers = ["errno.h", "sched.h", "signal.h", "unistd.h", *(f"sys/{name}.h" for name in system)]
    assert not succeeded(cache, escapes, headers)


def test_threads_are_started(cache: Path, confined: str) -> None:
    statements = "pthread_t t; return pthread_create(&t, 0, nothing, 0) || pthread_join(t, 0) ? 9 : 0;"
    attempt(cache, statements, "#include <pthread.h>\nstatic void *nothing(void *p) { return p; }")


def test_processes_are_limited_together(cache: Path, confined: str, processes: None) -> None:
    statements = "for (int i = 0; i < 400; i++) { int p = fork(); if (p < 0) return 9; if (!p) pause(); } pause();"
    with pytest.raises(RunError, match=r"too many processes|code 9") as caught:
        attempt(cache, statements + "return 0;", "#include <unistd.h>", processes=64, wall_s=20.0)
    assert caught.value.code == "run_failure"


def test_memory_of_all_processes_together_is_limited(cache: Path, confined: str, processes: None) -> None:
    statements = (
        "for (int i = 0; i < 8; i++) if (fork() == 0) "
        "{ char *p = malloc(100u << 20); memset(p, 1, 100u << 20); pause(); } pause(); return 0;"
    )
    prelude = "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>"
    with pytest.raises(RunError) as caught:
        attempt(cache, statements, prelude, memory_bytes=256 * MIB, wall_s=20.0)
    assert caught.value.code == "out_of_memory"


@pytest.mark.parametrize("length", [1 << 20, 1])
def test_files_are_limited_together(cache: Path, confined: str, length: int) -> None:
    statements = (
        f"static char block[{length}]; char name[32]; for (int i = 0; i < 20000; i++) "
        '{ sprintf(name, "f%d", i); int f = open(name, O_CREAT | O_WRONLY, 0600); '
        "if (f < 0 || write(f, block, sizeof block) < 0) return 9; close(f); } for (;;) pause();"
    )
    prelude = "#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>"
    with pytest.raises(RunError, match="wrote more than its outputs"):
        attempt(cache, statements, prelude, file_bytes=2 * MIB, wall_s=20.0)


def test_time_is_limited_whatever_is_ignored(cache: Path, confined: str) -> None:
    statements = "signal(SIGXCPU, SIG_IGN); signal(SIGTERM, SIG_IGN); for (volatile int i = 0;; i++) ;"
    with pytest.raises(RunError) as caught:
        attempt(cache, statements, "#include <signal.h>", wall_s=1.0)
    assert caught.value.code == "run_timeout"


def test_compilers_do_not_see_what_is_not_theirs(confined: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "own").write_text("own")
    (folder / "code.c").write_text(f'#include "own"\n#include "{tmp_path}/secret"\n')
    gcc = require_tool("gcc")
    done = execute((gcc, "-E", "code.c"), cwd=folder, limits=Limits(), environment={"PATH": "/usr/bin:/bin"},
                   confinement=Confinement(writable=(folder,), processes=True))  # fmt: skip
    assert done.returncode == 1
    assert b"/secret: " in done.stderr
    lines = done.stdout.splitlines()
    assert b"own" in lines
    assert b"secret" not in lines


WORKER = (
    "import json, subprocess, sys; from tilesmith.app.runtime.launcher import launch; "
    "launch._START, *arguments = json.loads(sys.argv[1]); "
    "subprocess.run(launch.command(*arguments), start_new_session=True)"
)
SLEEPING = "#!/bin/sh\nsleep 600 &\nwait\n"
"""A stand-in of bubblewrap that is killed at its beginning: its child asks for no signal when it ends, and waits."""


@pytest.mark.parametrize(
    ("how", "with_launcher"),
    [*((how, False) for how in (*MECHANISMS, *STARTS, "none")), *((how, True) for how in MECHANISMS)],
)
def test_a_worker_that_is_killed_leaves_nothing(tmp_path: Path, how: str, with_launcher: bool) -> None:
    """Launchers that can make namespaces of processes leave nothing, even if they are killed with the worker."""
    script = tmp_path / "sleeping"
    script.write_text(SLEEPING)
    script.chmod(0o700)
    walls = {"readable": ["/"], "writable": ["/"]} if how in ("landlock", *STARTS) else None
    box = [str(script)] if how == "bubblewrap" else None
    request = {"limits": {}, "walls": walls, "bubblewrap": box, "processes": True}
    asked = json.dumps([STARTS.get(how, launch._START), request, [str(script)]])
    with subprocess.Popen([sys.executable, "-c", WORKER, asked], cwd=tmp_path) as worker:
        try:
            _until(
                lambda: "sleep" in [process.name() for process in psutil.Process(worker.pid).children(recursive=True)]
            )
            (launcher,) = psutil.Process(worker.pid).children()
            started = launcher.children(recursive=True)
            if with_launcher:
                worker.send_signal(signal.SIGSTOP)
                launcher.kill()
        finally:
            worker.kill()
    _until(lambda: not any(process.is_running() for process in (launcher, *started)))


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_launcher_whose_worker_is_gone_starts_nothing(tmp_path: Path) -> None:
    request = {"limits": {}, "walls": None, "bubblewrap": None, "processes": True}
    command = launch.command({"parent": 1, **request}, ["/bin/touch", str(tmp_path / "started")])
    assert subprocess.run(command, start_new_session=True, check=False).returncode == 127
    assert not (tmp_path / "started").exists()


def test_nothing_runs_where_nothing_confines_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "found_escapes", lambda _name: ("not installed",))
    assert mechanism() == "none"
    with pytest.raises(RunError, match=r"bubblewrap \(not installed\), landlock \(not installed\)") as caught:
        execute(("/bin/true",), cwd=tmp_path, limits=Limits())
    assert caught.value.code == "not_confined"
    monkeypatch.setenv(confinement.VARIABLE, "none")
    assert in_force() == "none"
    assert execute(("/bin/true",), cwd=tmp_path, limits=Limits()).returncode == 0


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_numbers_of_the_refused_calls(machine: str) -> None:
    """The system's own headers have the same."""
    if not HEADERS[machine].exists():
        pytest.skip("these headers are another architecture's")
    of_headers = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text()))
    known = system_calls.numbers(machine)
    assert known is not None
    assert {name: of_headers.get(name) for name in known if name not in TOO_NEW} == {
        name: str(number) for name, number in known.items() if name not in TOO_NEW
    }
    column = int(machine != "x86_64")
    others = {"clone": system_calls._CLONE, "prlimit64": system_calls._PRLIMIT, **system_calls._SIGNALS}
    others |= {name: both for name, both in system_calls._FORKS.items() if both[column] is not None}
    assert {name: of_headers[name] for name in others} == {name: str(both[column]) for name, both in others.items()}
    assert of_headers["mmap"] == str(system_calls._MMAP[column])


def test_machines_whose_calls_are_unknown() -> None:
    assert system_calls.filter_program("m68k") is None


@pytest.mark.parametrize("processes", [False, True])
def test_jumps_of_the_filter_stay_inside(processes: bool) -> None:
    program = system_calls.filter_program("x86_64", own_pid=7, processes=processes)
    assert program is not None
    instructions = list(struct.iter_unpack("<HBBI", program))
    for place, (code, taken, not_taken, _) in enumerate(instructions):
        if code & 7 == 5:
            assert place + 1 + max(taken, not_taken) < len(instructions)
    assert instructions[-1][0] & 7 == 6
