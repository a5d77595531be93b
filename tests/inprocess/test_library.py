"""Libraries in this process: kept on disk, loaded once, for this machine alone; threads and forks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from platform import machine

import numpy as np
import pytest

import tilesmith as ts
from tilesmith import platforms
from tilesmith.app.inprocess import library
from tilesmith.app.runtime import build, build_cache
from tilesmith.app.runtime.build_cache import CacheWarning, cache_dir
from tilesmith.app.runtime.errors import RunError, StoreError

PHOTO = np.arange(3 * 9 * 20, dtype=np.uint8).reshape(3, 9, 20)


def test_the_library_is_compiled_once_for_all_processes(shift: ts.CompiledPipeline, monkeypatch) -> None:
    shift.build()

    def never(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(build, "_compile", never)
    again = ts.compile(shift.pipeline)
    np.testing.assert_array_equal(again(PHOTO), shift(PHOTO))
    assert again._loaded().path == shift._loaded().path
    assert cache_dir() in shift._loaded().path.parents


def test_a_cache_that_cannot_be_written_is_a_warning(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "tilesmith").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    blur = ts.compile("blur", threads=1)
    with pytest.warns(CacheWarning, match="cannot be kept in .*XDG_CACHE_HOME names|have XDG_CACHE_HOME name"):
        blur.build()
    assert blur(np.ones((9, 20), np.uint16)).min() == 1
    assert tmp_path not in blur._loaded().path.parents


def test_a_full_disk_is_a_warning(monkeypatch) -> None:
    real, asked = build_cache.build, []

    def full(source, platform, folder, *rest):
        asked.append(folder)
        if folder == cache_dir():
            raise StoreError("store_full", "there is no space left to compile in")
        return real(source, platform, folder, *rest)

    monkeypatch.setattr(build_cache, "build", full)
    with pytest.warns(CacheWarning, match="there is no space left"):
        ts.compile("blur").build()
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("platform", "reason"), [("cortex-a53", "its architecture is aarch64"), ("nvidia-a100", "it is of kind opencl")]
)
def test_code_for_another_machine_is_made_and_not_called(platform: str, reason: str) -> None:
    blur = ts.compile("blur", platform=platform)
    assert "tilesmith_blur(" in blur.source.code
    with pytest.raises(RunError, match=f'{reason}.*platform="host"'):
        blur(np.ones((9, 20), np.uint16))


def test_instructions_that_this_processor_lacks_are_told(monkeypatch) -> None:
    host = ts.platform("host")
    assert build.cannot_run_here(host) is None
    real = build.find_toolchain

    def without(compiler, timeout_s=30.0):
        found = real(compiler, timeout_s)
        missing = set() if compiler.flags == host.compiler.flags else {"__AVX2__", "__SSE2__", "__ARM_FEATURE_FMA"}
        return build.Toolchain(found.program, found.version, found.identity, found.extensions - missing)

    monkeypatch.setattr(build, "find_toolchain", without)
    assert "this processor lacks" in (build.cannot_run_here(host) or "")


def _with(flags: tuple[str, ...], **changes: object) -> ts.Platform:
    document = platforms.to_document(platforms.load("i7-6700")) | {"name": "changed", **changes}
    document["compiler"] |= {"command": "gcc", "flags": list(flags)}
    return platforms.load(document)


@pytest.mark.skipif(machine() != "x86_64", reason="flags of x86")
@pytest.mark.parametrize(
    ("flags", "vector_bytes", "said"),
    [
        (("-O3", "-mavx2"), 32, None),
        (("-O2", "-msse4.2"), 16, None),
        (("-O3", "-mavx512f"), 32, None),
        (("-O3", "-mavx2"), 64, "allow vectors of 32 bytes, and the platform says vector_bytes: 64"),
        (("-O3", "-msse4.2"), 32, "allow vectors of 16 bytes"),
        (("-mavx2",), 32, "no optimisation: add -O3"),
        (("-O0", "-mavx2"), 32, "no optimisation"),
    ],
)
def test_flags_that_make_slow_code(flags: tuple[str, ...], vector_bytes: int, said: str | None) -> None:
    found = build.slow_flags(_with(flags, vector_bytes=vector_bytes))
    assert (found is None) if said is None else (said in str(found))


@pytest.mark.skipif(machine() != "x86_64", reason="flags of x86")
def test_slow_flags_are_told_once_when_the_code_is_built() -> None:
    blur = ts.compile("blur", platform=_with(("-O1", "-msse4.2"), vector_bytes=32))
    with pytest.warns(UserWarning, match="of 'changed' make slow code: they allow vectors of 16"):
        blur(np.ones((9, 20), np.uint16))
    blur(np.ones((9, 20), np.uint16))


FORKED = """
import os, warnings, sys
import numpy as np, tilesmith as ts
warnings.simplefilter("ignore")
blur = ts.compile("blur")
photo = np.arange(900 * 700, dtype=np.uint16).reshape(700, 900)
result = blur(photo, threads=2)
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(blur(photo, threads=2), result) else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_that_was_forked_computes() -> None:
    """Threads of GCC's OpenMP are not there after a fork: a parallel loop would wait for them."""
    done = subprocess.run([sys.executable, "-c", FORKED], timeout=60, check=False, env={**os.environ})
    assert done.returncode == 0


def test_threads_are_those_that_are_asked_for_and_as_before_afterwards(shift: ts.CompiledPipeline) -> None:
    loaded = library.Library(build_cache.kept_build(shift.source, shift.platform))
    if loaded._get_threads is None:
        pytest.skip("the compiler has no OpenMP")
    seen = []

    def entry(address: int) -> int:
        seen.append(loaded._get_threads())
        return 0

    before = loaded._get_threads()
    loaded._entry = entry
    loaded.call(0, 3)
    loaded.call(0, None)
    assert seen == [3, before]
