"""Compiling: what the cache keeps and does not keep, whatever the compiler does."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from support.hand_written_c import PAIRS, body, source
from support.tools import require_tool

import tilesmith.app.runtime.build as compilation
from tilesmith.app.runtime.build import build, find_toolchain, sweep
from tilesmith.app.runtime.errors import CompileError
from tilesmith.app.runtime.held_folders import held
from tilesmith.app.runtime.sandbox import Finished
from tilesmith.platforms import Compiler, CpuPlatform, get
from tilesmith.platforms.cpu.detect import host

pytestmark = pytest.mark.slow

PLATFORM = host().model_copy(update={"compiler": Compiler(command="gcc", flags=("-O1",))})


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def entries(cache: Path) -> list[str]:
    return sorted(p.name for p in (cache / "libraries").glob("*")) if cache.exists() else []


def failure(cache: Path, **changes: object) -> CompileError:
    arguments = {"source": source(), "platform": PLATFORM, "cache_dir": cache, "timeout_s": 60.0} | changes
    with pytest.raises(CompileError) as caught:
        build(**arguments)  # type: ignore[arg-type]
    return caught.value


def fake_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A `gcc` that does `script`, first on the search path; real for the questions asked before compiling."""
    real = require_tool("gcc")
    program = folder / "bin" / "gcc"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\ncase " $* " in *" -shared "*tiny*|*pipeline.c*-lm*) ;; *) exec {real} "$@";; esac\n{script}\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


def test_the_second_build_is_from_the_cache(cache: Path) -> None:
    first = build(source(), PLATFORM, cache, 60)
    second = build(source(), PLATFORM, cache, 60)
    assert not first.cached
    assert second == replace(first, cached=True)
    assert first.path.read_bytes()[:4] == b"\x7fELF"
    assert first.compiler.startswith("gcc ")
    assert "-fopenmp" in first.flags
    assert entries(cache) == [first.key]


def test_flags_are_without_the_files_of_the_cache(cache: Path) -> None:
    flags = build(source(), PLATFORM, cache, 60).flags
    assert {"-O1", "-shared", "-lm"} <= set(flags)
    assert not {"-o", "library.so", "pipeline.c"} & set(flags)


def test_a_relative_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir()
    monkeypatch.chdir(cache.parent)
    assert build(source(), PLATFORM, Path("cache"), 60).path.is_absolute()


@pytest.mark.parametrize(
    ("other_source", "other_platform"),
    [
        (source(PAIRS + "/* */"), PLATFORM),
        (replace(source(), header=source().header + "/* */"), PLATFORM),
        (source(flags=("-std=gnu11", "-ffp-contract=off")), PLATFORM),
        (source(), PLATFORM.model_copy(update={"compiler": Compiler(command="gcc", flags=("-O2",))})),
    ],
)
def test_what_the_result_depends_on_is_in_the_key(
    cache: Path, other_source: object, other_platform: CpuPlatform
) -> None:
    one = build(source(), PLATFORM, cache, 60)
    assert build(other_source, other_platform, cache, 60).key != one.key  # type: ignore[arg-type]


def test_scalars_stay_in_general_registers_where_gcc_knows_how() -> None:
    assert Compiler(command="gcc-12").scalar_flags("x86_64") == ("-mno-stv",)
    assert Compiler(command="clang").scalar_flags("x86_64") == ()
    assert Compiler(command="aarch64-linux-gnu-gcc").scalar_flags("aarch64") == ()


def test_native_flags_mean_what_they_mean_here() -> None:
    plain = find_toolchain(Compiler(command="gcc", flags=("-O3",)))
    assert find_toolchain(Compiler(command="gcc", flags=("-O3", "-march=native"))).identity != plain.identity


def test_the_runner_is_compiled_once_for_all_pipelines(cache: Path) -> None:
    one, other = build(source(), PLATFORM, cache, 60), build(source(PAIRS + "\n"), PLATFORM, cache, 60)
    assert one.runner == other.runner
    assert one.key != other.key


def test_clang(cache: Path) -> None:
    require_tool("clang")
    clang = PLATFORM.model_copy(update={"compiler": Compiler(command="clang", flags=("-O1",))})
    assert build(source(), clang, cache, 60).key != build(source(), PLATFORM, cache, 60).key


def test_a_cross_compiler(cache: Path) -> None:
    require_tool("aarch64-linux-gnu-gcc")
    library = build(source(), get("cortex-a53"), cache, 60)
    assert library.path.read_bytes()[18:20] == b"\xb7\x00"  # EM_AARCH64
    assert library.run_prefix[:1] == ("qemu-aarch64",) or os.uname().machine == "aarch64"


def test_errors_of_the_compiler_are_shown_without_paths(cache: Path) -> None:
    error = failure(cache, source=body("return undeclared;"))
    assert error.code == "compile_failure"
    assert "pipeline.c:" in error.output
    assert "undeclared" in error.output
    assert str(cache) not in error.output
    assert "building" not in error.output
    assert entries(cache) == []


def test_output_is_capped(cache: Path) -> None:
    error = failure(cache, source=body("\n".join(f"no_such_thing_{i};" for i in range(5000))))
    assert error.code == "compile_failure"
    assert 1000 < len(error.output) <= 64 << 10


def test_warnings_are_kept(cache: Path) -> None:
    noisy = body("#warning hello\nreturn 0;")
    assert "hello" in build(noisy, PLATFORM, cache, 60).log
    assert "hello" in build(noisy, PLATFORM, cache, 60).log


def test_an_unknown_processor(cache: Path) -> None:
    strange = PLATFORM.model_copy(update={"compiler": Compiler(command="gcc", flags=("-march=z80",))})
    assert failure(cache, platform=strange).code == "compile_failure"


def test_a_missing_compiler(cache: Path) -> None:
    missing = PLATFORM.model_copy(update={"compiler": Compiler(command="gcc-99")})
    error = failure(cache, platform=missing)
    assert (error.code, str(error)) == ("compile_failure", "the compiler gcc-99 is not installed here")


def test_a_header_is_no_path(cache: Path) -> None:
    assert failure(cache, source=replace(source(), header_name="../../x.h")).code == "compile_failure"


def test_a_compiler_that_hangs_costs_its_time_and_nothing_else(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(source(PAIRS + "\n"), PLATFORM, cache, 60)
    with monkeypatch.context() as patch:
        fake_compiler(tmp_path, patch, "echo stuck >&2; sleep 1000 & sleep 1000")
        error = failure(cache, timeout_s=1.5)
    assert (error.code, error.output) == ("compile_timeout", "stuck\n")
    assert len(entries(cache)) == 1
    assert not build(source(), PLATFORM, cache, 60).cached
    assert processes_of(tmp_path / "bin" / "gcc") == []


def test_a_compiler_that_crashes(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_compiler(tmp_path, monkeypatch, "kill -SEGV $$")
    error = failure(cache)
    assert (error.code, str(error)) == ("compile_failure", "the compiler was killed by signal 11")


@pytest.mark.parametrize(
    "script",
    [
        "kill -KILL $$",
        "echo 'gcc: fatal error: Killed signal terminated program cc1' >&2; exit 1",
        "echo 'collect2: fatal error: ld terminated with signal 9 [Killed]' >&2; exit 1",
    ],
)
def test_a_compiler_that_is_killed_is_no_fault_of_the_code(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    fake_compiler(tmp_path, monkeypatch, script)
    error = failure(cache)
    assert (error.code, str(error)) == (
        "worker_lost",
        "the compiler was killed from outside, not for want of memory or time",
    )


def test_a_compiler_that_is_killed_while_it_is_asked_for_openmp_may_have_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(source(), PLATFORM, cache, 60)
    compilation._knows_openmp.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(compilation, "_run_compiler", lambda *_, **__: Finished(-signal.SIGKILL, b"", b"", False, 0.0))
        assert failure(cache, source=source(PAIRS + "\n")).code == "worker_lost"
    assert "-fopenmp" in build(source(PAIRS + "\n"), PLATFORM, cache, 60).flags


def test_a_compiler_that_makes_nothing(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_compiler(tmp_path, monkeypatch, "exit 0")
    assert failure(cache).code == "compile_failure"
    assert entries(cache) == []


def test_a_compiler_sees_an_empty_environment(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "password")
    fake_compiler(tmp_path, monkeypatch, "env >&2; exit 1")
    output = failure(cache).output
    assert "PATH=" in output
    assert "SECRET" not in output


def test_a_compiler_with_no_space_left(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(source(PAIRS + "\n"), PLATFORM, cache, 60)
    before = entries(cache)
    monkeypatch.setattr(compilation, "_OBJECT_BYTES", 2048)
    error = failure(cache)
    assert error.code == "store_full"
    assert entries(cache) == before


def test_a_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)], capture_output=True, check=False
    )
    if mount.returncode != 0:
        pytest.skip("mounting needs privileges that this user has not")
    try:
        assert failure(disk / "cache").code == "store_full"
        assert entries(disk / "cache") == []
        assert [p for p in disk.rglob("*") if p.is_file()] == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert failure(tmp_path / "file").code == "compile_failure"


@pytest.mark.parametrize("damage", ["library.so", "build.json"])
def test_a_damaged_entry_is_built_anew(cache: Path, damage: str) -> None:
    library = build(source(), PLATFORM, cache, 60)
    damaged = library.path.parent / damage
    damaged.write_bytes(damaged.read_bytes()[:100])
    again = build(source(), PLATFORM, cache, 60)
    assert not again.cached
    assert again.path.read_bytes()[:4] == b"\x7fELF"
    assert build(source(), PLATFORM, cache, 60).cached
    assert entries(cache) == [library.key]


def test_many_builds_of_the_same_at_once(cache: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        built = list(pool.map(lambda _: build(source(), PLATFORM, cache, 60), range(4)))
    assert len({b.key for b in built}) == 1
    recorded = json.loads((built[0].path.parent / "build.json").read_text())["digest"]
    assert hashlib.sha256(built[0].path.read_bytes()).hexdigest() == recorded
    assert [p.name for p in (cache / "libraries").iterdir()] == [built[0].key]


def test_processes_share_a_cache(cache: Path) -> None:
    tests = Path(__file__).parents[1]
    script = (
        "import sys; sys.path[:0] = sys.argv[2:]\nfrom pathlib import Path\n"
        "from support.hand_written_c import source\nfrom tilesmith.app.runtime.build import build\n"
        "from tilesmith.platforms import get\nprint(build(source(), get('i7-6700'), Path(sys.argv[1]), 60).key)"
    )
    argv = [sys.executable, "-c", script, str(cache), str(tests), str(tests.parent)]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    keys = {p.communicate()[0].strip() for p in running}
    assert [p.returncode for p in running] == [0, 0]
    assert entries(cache) == sorted(keys)
    assert len(keys) == 1


def test_what_a_killed_build_left_is_swept_away(cache: Path) -> None:
    host = re.sub("[^A-Za-z0-9]", "", platform.node())
    names = ("old", "young", f"{host}-x", f"{host}-y", f"other{host}-x")
    folders = [cache / "libraries" / f".building-{name}" for name in names]
    for folder in folders:
        folder.mkdir(parents=True)
    os.utime(folders[0], (0, 0))
    with held(folders[3]):
        sweep(cache)
    assert [folder.exists() for folder in folders] == [False, True, False, True, True]


def processes_of(program: Path) -> list[str]:
    """Command lines of running processes that mention `program`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().decode("utf-8", "replace")
            except OSError:
                continue
            if str(program) in command:
                found.append(command)
    return found


def test_libraries_that_nobody_asks_for_leave_a_full_cache(cache: Path) -> None:
    """The least recently used first; what was asked for just now stays whatever its size."""
    codes = [source(PAIRS + f"/* {n} */") for n in range(3)]
    oldest, asked = (build(code, PLATFORM, cache, 60).path.parent for code in codes[:2])
    for folder, age_s in ((oldest, 7200), (asked, 9000)):
        then = time.time() - age_s
        os.utime(folder / compilation.RECORD_NAME, (then, then))
    build(codes[1], PLATFORM, cache, 60)  # used again
    room = sum(f.stat().st_size for f in oldest.iterdir()) * 5 // 2
    newest = build(codes[2], PLATFORM, cache, 60, room).path.parent
    assert entries(cache) == sorted([asked.name, newest.name])
    assert build(codes[2], PLATFORM, cache, 60, 1).cached
    assert build(codes[0], PLATFORM, cache, 60, 1).path.exists()
    assert len(entries(cache)) == 3
