"""Running what was compiled: results, times, memory, and programs that do not behave."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from support.hand_written_c import TUPLES, body, pairs, source, tuples
from support.tools import require_tool

import tilesmith.app.runtime.run as running
from tilesmith.app.runtime import sandbox
from tilesmith.app.runtime.build import BuiltLibrary, build
from tilesmith.app.runtime.confinement import MECHANISMS, Mechanism, found_escapes
from tilesmith.app.runtime.errors import RunError
from tilesmith.app.runtime.run import RUN_LIMITS, RunResult, run
from tilesmith.app.runtime.sandbox import Limits
from tilesmith.platforms import Compiler, get
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.ir.pipeline.arguments import ArgumentError, Image, RegionError
from tilesmith.scheduler.ir.pipeline.expressions import Const
from tilesmith.scheduler.ir.pipeline.pipeline import Param, Pipeline, Stage
from tilesmith.scheduler.ir.pipeline.types import BOOL, FLOAT64, INT8, UINT64

pytestmark = pytest.mark.slow

PLATFORM = host().model_copy(update={"compiler": Compiler(command="gcc", flags=("-O1",))})
MIB = 1 << 20


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(params=MECHANISMS)
def confined(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways in which programs are confined."""
    mechanism: Mechanism = request.param
    assert found_escapes(mechanism) == ()
    monkeypatch.setattr(sandbox, "in_force", lambda: mechanism)
    return mechanism


def image(height: int = 20, width: int = 30) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(1).random((height, width), dtype=np.float32)


def run_tiny(cache: Path, code: CSource | None = None, **changes: Any) -> RunResult:
    library = build(code or source(), PLATFORM, cache, 60)
    pipeline = changes.pop("pipeline", pairs())
    inputs = {"image": Image(changes.pop("array", image()), changes.pop("min", (0, 0)))}
    arguments = {"inputs": inputs, "params": {}, "threads": 2} | changes
    return run(library, pipeline, **arguments)


def failure(cache: Path, statements: str, limits: Limits = RUN_LIMITS, prelude: str = "") -> RunError:
    with pytest.raises(RunError) as caught:
        run_tiny(cache, body(statements, prelude), limits=limits)
    return caught.value


def test_a_run(cache: Path, confined: str) -> None:
    result = run_tiny(cache, params={"gain": 2.5}, repeat=3)
    expected = np.float32(2.5) * (image()[:, :-1] + image()[:, 1:])
    np.testing.assert_array_equal(result.outputs["twice"][0], expected)
    assert result.regions == {"twice": ((0, 29), (0, 20))}
    assert len(result.times_ms) == 3
    assert all(t > 0 for t in result.times_ms)
    assert result.threads == 2


def test_a_region_and_an_image_that_begin_elsewhere(cache: Path) -> None:
    result = run_tiny(cache, min=(-7, 100), regions={"twice": ((-5, 4), (103, 2))})
    expected = image()[3:5, 2:6] + image()[3:5, 3:7]
    np.testing.assert_array_equal(result.outputs["twice"][0], expected)


def test_one_pixel(cache: Path) -> None:
    result = run_tiny(cache, array=image(1, 2))
    assert result.outputs["twice"][0].shape == (1, 1)


def test_an_image_of_another_order_in_memory(cache: Path) -> None:
    by_columns = np.asfortranarray(image())
    result = run_tiny(cache, array=by_columns, pipeline=pairs(storage=("y", "x")))
    np.testing.assert_array_equal(result.outputs["twice"][0], image()[:, :-1] + image()[:, 1:])
    np.testing.assert_array_equal(
        run_tiny(cache, array=image()[::-1, ::2]).outputs["twice"][0][0, 0], image()[-1, 0] + image()[-1, 2]
    )


def test_regions_beyond_the_grid(cache: Path) -> None:
    """The compiled code refuses places that 32 bits cannot name."""
    with pytest.raises(ArgumentError, match="beyond 32-bit coordinates"):
        run_tiny(cache, body("return 2;"))


def test_tuples_several_outputs_and_interleaved_images(cache: Path) -> None:
    library = build(source(TUPLES), PLATFORM, cache, 60)
    planes = np.arange(3 * 5 * 7, dtype=np.uint16).reshape(3, 5, 7)
    result = run(library, tuples(), {"planes": Image(planes, (0, 0, 0))}, {})
    np.testing.assert_array_equal(result.outputs["a"][0], planes[0].astype(np.uint8))
    np.testing.assert_array_equal(result.outputs["b"][0], planes + 1)
    np.testing.assert_array_equal(result.outputs["b"][1], planes * 2)


def test_scalars_of_every_kind(cache: Path) -> None:
    params = (Param("a", INT8), Param("b", BOOL), Param("c", UINT64), Param("d", FLOAT64))
    stage = Stage("sum", (), (Const(0, FLOAT64),), (), None, ())
    pipeline = Pipeline("scalars", "", params, (), (stage,), ("sum",), (("sum", ()),))
    code = source(
        '#include "tiny.h"\nint32_t tilesmith_tiny_argv(void **a) { *(double *)((tilesmith_buffer *)a[4])->data = '
        "*(int8_t *)a[0] + *(uint8_t *)a[1] + (double)*(uint64_t *)a[2] + *(double *)a[3]; return 0; }\n"
    )
    values = {"a": -3, "b": True, "c": 2**63, "d": 0.5}
    result = run(build(code, PLATFORM, cache, 60), pipeline, {}, values)
    assert result.outputs["sum"][0].shape == ()
    assert result.outputs["sum"][0] == -3 + 1 + 2.0**63 + 0.5


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("nonsense 1", "protocol"),
        ("arguments 0", "protocol"),
        ("arguments 1\nbuffer 1 0 4", "protocol"),
        ("arguments 1\nbuffer 0 6 4", "protocol"),
        ("arguments 1\nbuffer 0 1 4 0 x 1", "protocol"),
        ("arguments 1\nscalar 0 f", "protocol"),
        ("arguments 1\nrun 1", "protocol"),
        ("arguments 1\nbuffer 0 0 4\nload 0 missing.raw", "file"),
        ("arguments 1\nbuffer 0 0 4\nstore 0 x.raw", "file"),
        ("arguments 1\nbuffer 0 3 8 0 0 0 2147483647 2147483647 2147483647 1 1 1\nallocate 0", "memory"),
    ],
)
def test_the_runner_refuses_what_it_does_not_understand(cache: Path, tmp_path: Path, script: str, kind: str) -> None:
    library = build(source(), PLATFORM, cache, 60)
    argv = [str(library.runner), str(library.path), "tilesmith_tiny_argv"]
    done = subprocess.run(argv, input=script, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"] == kind


def test_the_runner_wants_a_library_with_the_function(cache: Path, tmp_path: Path) -> None:
    library = build(source(), PLATFORM, cache, 60)
    for argv in ([str(library.path), "no_such_function"], [str(tmp_path / "none.so"), "f"]):
        done = subprocess.run([str(library.runner), *argv], input="", capture_output=True, text=True, check=False)
        assert json.loads(done.stdout)["error"] == "library"


def test_results_outlive_the_run(cache: Path) -> None:
    output = run_tiny(cache).outputs["twice"][0]
    expected = image()[:, :-1] + image()[:, 1:]
    output += 1
    np.testing.assert_array_equal(output, expected + 1)


def test_a_region_outside_the_image(cache: Path) -> None:
    with pytest.raises(RegionError, match=r"input image, dim x: 0\.\.30 is required, the image has 0\.\.29"):
        run_tiny(cache, regions={"twice": ((0, 30), (0, 20))})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"array": image().astype(np.float64)}, "input image is float32, the image is float64"),
        ({"array": image().astype(">f4")}, "input image is float32"),
        ({"array": image()[0]}, "has 2 dims"),
        ({"array": image()[:0]}, "is empty"),
        ({"params": {"gain": 101.0}}, "outside of"),
        ({"params": {"gian": 1.0}}, "no param gian"),
        ({"regions": {"twice": ((0, 0), (0, 1))}}, "empty"),
        ({"regions": {"image": ((0, 1), (0, 1))}}, "not an output"),
        ({"threads": 0}, "threads must be"),
        ({"threads": 5000}, "threads must be"),
        ({"repeat": 0}, "repeat must be"),
        ({"min": (2**31 - 5, 0)}, "32-bit"),
        ({"inputs": {}}, "input image is missing"),
    ],
)
def test_arguments_that_do_not_fit(cache: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        run_tiny(cache, **changes)


@pytest.mark.parametrize(
    ("statements", "code", "message"),
    [
        ("*(volatile int *)8 = 1; return 0;", "run_failure", "SIGSEGV"),
        ("__builtin_trap();", "run_failure", "instructions|SIGTRAP|SIGABRT"),
        ("((volatile float *)out->data)[1LL << 40] = 1; return 0;", "run_failure", "SIGSEGV"),
        ("return 9;", "run_failure", "code 9"),
        ("return 3;", "out_of_memory", "no memory"),
        ("return 1;", "run_failure", "asked for a region"),
        ("exit(7);", "run_failure", "status 7"),
        ("exit(0);", "run_failure", "status 0"),
        ("raise(SIGKILL); return 0;", "worker_lost", "killed from outside"),
        ('printf("{\\"code\\": 0}\\n"); fflush(stdout); exit(0);', "run_failure", "status 0"),
    ],
)
def test_programs_that_fail(cache: Path, confined: str, statements: str, code: str, message: str) -> None:
    error = failure(cache, statements, prelude="#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>")
    assert error.code == code
    assert re.search(message, str(error))


def test_a_program_that_never_ends_is_stopped(cache: Path, confined: str) -> None:
    error = failure(cache, "for (;;) pause();", replace(RUN_LIMITS, wall_s=0.7), "#include <unistd.h>")
    assert error.code == "run_timeout"


def test_processor_time_is_limited(cache: Path, confined: str) -> None:
    error = failure(cache, "for (volatile int i = 0;; i++) ;", replace(RUN_LIMITS, cpu_s=1))
    assert error.code == "run_timeout"


def test_children_of_a_program_are_stopped_too(cache: Path, confined: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = sandbox.confined_command
    monkeypatch.setattr(
        sandbox, "confined_command", lambda how, seen, *rest: command(how, replace(seen, processes=True), *rest)
    )
    statements = 'if (fork() == 0) { prctl(PR_SET_NAME, "stray-child"); for (;;) pause(); } return 0;'
    prelude = "#include <sys/prctl.h>\n#include <unistd.h>"
    run_tiny(cache, body(statements, prelude), repeat=2)
    strays = [p for p in psutil.process_iter(["name", "status"]) if p.info["name"] == "stray-child"]
    psutil.wait_procs([p for p in strays if p.info["status"] != psutil.STATUS_ZOMBIE], timeout=10)
    assert [p for p in strays if p.is_running() and p.status() != psutil.STATUS_ZOMBIE] == []


def test_memory_is_limited(cache: Path, confined: str) -> None:
    statements = "char *p = malloc(512u << 20); if (!p) return 3; memset(p, 1, 512u << 20); return 0;"
    prelude = "#include <stdlib.h>\n#include <string.h>"
    limits = replace(RUN_LIMITS, memory_bytes=128 * MIB)
    assert failure(cache, statements, limits, prelude).code == "out_of_memory"


def test_images_count_against_the_memory(cache: Path) -> None:
    with pytest.raises(RunError) as caught:
        run_tiny(cache, array=np.zeros((4096, 8192), np.float32), limits=replace(RUN_LIMITS, memory_bytes=64 * MIB))
    assert caught.value.code == "out_of_memory"


def test_peak_memory_is_inputs_and_outputs_once(cache: Path) -> None:
    array = np.ones((2048, 4096), np.float32)
    result = run_tiny(cache, array=array, repeat=2)
    needed = 2 * array.nbytes
    assert needed * 0.95 < result.peak_rss_bytes < needed * 1.1


def test_scratch_memory_is_in_the_peak(cache: Path) -> None:
    statements = (
        "volatile char *p = malloc(64u << 20); if (!p) return 3; "
        "for (int i = 0; i < 64 << 20; i += 4096) p[i] = 1; free((void *)p); return 0;"
    )
    result = run_tiny(cache, body(statements, "#include <stdlib.h>\n#include <string.h>"))
    assert 64 * MIB < result.peak_rss_bytes < 72 * MIB


def test_files_are_limited_to_the_outputs(cache: Path, confined: str) -> None:
    statements = (
        'int f = open("large", O_CREAT | O_WRONLY, 0600); char block[4096] = {0}; '
        'for (int i = 0; i < 1024; i++) if (write(f, block, sizeof block) < 0) { unlink("large"); return 7; } return 0;'
    )
    error = failure(cache, statements, prelude="#include <fcntl.h>\n#include <unistd.h>")
    assert "code 7" in str(error)


def test_output_of_a_program_is_capped_and_kept_apart(cache: Path, confined: str) -> None:
    statements = 'for (int i = 0; i < 100000; i++) puts("noise noise noise noise"); fflush(stdout); exit(3);'
    limits = replace(RUN_LIMITS, output_bytes=10_000)
    error = failure(cache, statements, limits, "#include <stdio.h>\n#include <stdlib.h>")
    assert error.code == "run_failure"
    assert len(error.output) == 10_000


def test_files_of_others_are_out_of_sight(cache: Path, tmp_path: Path, confined: str) -> None:
    (tmp_path / "secret").write_text("x")
    statements = f'return open("{tmp_path}/secret", O_RDONLY) >= 0 || open("/etc/passwd", O_RDONLY) >= 0 ? 9 : 0;'
    run_tiny(cache, body(statements, "#include <fcntl.h>"))


def test_the_environment_is_empty_but_for_threads(cache: Path, confined: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "password")
    statements = 'return getenv("SECRET") ? 9 : strcmp(getenv("OMP_NUM_THREADS"), "2") ? 8 : 0;'
    run_tiny(cache, body(statements, "#include <stdlib.h>\n#include <string.h>"))


def test_temporary_folders_are_private_and_removed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running.tempfile, "tempdir", str(tmp_path))
    statements = 'struct stat s; return stat(".", &s) || (s.st_mode & 077) ? 9 : 0;'
    run_tiny(cache, body(statements, "#include <sys/stat.h>"))
    assert list(tmp_path.iterdir()) == []


def test_no_space_for_the_images(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, array: object) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(running, "_write", full)
    with pytest.raises(RunError) as caught:
        run_tiny(cache)
    assert caught.value.code == "store_full"


def test_a_full_disk_of_temporary_files(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(source(), PLATFORM, cache, 60)
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting needs privileges that this user has not")
    try:
        monkeypatch.setattr(running.tempfile, "tempdir", str(tmp_path))
        with pytest.raises(RunError) as caught:
            run_tiny(cache, array=image(500, 500))
        assert caught.value.code == "store_full"
        assert list(tmp_path.iterdir()) == []
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_an_output_that_cannot_be_stored(cache: Path) -> None:
    with pytest.raises(RunError) as caught:
        run_tiny(cache, array=np.ones((1024, 2048), np.float32), limits=replace(RUN_LIMITS, file_bytes=1 * MIB))
    assert caught.value.code == "store_full"


def test_threads(cache: Path) -> None:
    statements = "return omp_get_max_threads() == 5 ? 0 : 9;"
    assert run_tiny(cache, body(statements, "#include <omp.h>"), threads=5).threads == 5


@pytest.mark.parametrize("name", ["cortex-a53", "graviton4"])
def test_another_architecture(cache: Path, name: str) -> None:
    require_tool("aarch64-linux-gnu-gcc")
    require_tool("qemu-aarch64")
    library = build(source(), get(name), cache, 60)
    images = {"image": Image(image(), (0, 0))}
    result = run(library, pairs(), images, {"gain": 2.0}, None, 2, 2)
    np.testing.assert_array_equal(result.outputs["twice"][0], 2 * (image()[:, :-1] + image()[:, 1:]))
    with pytest.raises(RunError) as caught:
        run(
            build(body("*(volatile int *)8 = 1; return 0;"), get(name), cache, 60),
            pairs(),
            {"image": Image(image(), (0, 0))},
            {},
        )
    assert "SIGSEGV" in str(caught.value)


def test_an_emulator_that_is_missing(cache: Path) -> None:
    library: BuiltLibrary = replace(build(source(), PLATFORM, cache, 60), run_prefix=("qemu-none",))
    with pytest.raises(RunError, match="qemu-none"):
        run(library, pairs(), {"image": Image(image(), (0, 0))}, {})
