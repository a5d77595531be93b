"""Calls in QEMU's user mode: what they execute, and what a model of caches moves."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.tools import require_tool

from benchmarks.contest import BUILD
from benchmarks.documents import pipeline_of
from benchmarks.emulation import PROCESSORS, Counts, EmulationError, emulated, plugin, without_sve
from benchmarks.problem import at_estimates
from tilesmith import platforms
from tilesmith.app.runtime.build import build
from tilesmith.platforms import CpuPlatform
from tilesmith.scheduler.compiler import compile_pipeline

COMPILER, EMULATOR, LIBRARIES = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"
LINE, WAYS, SETS, OUTER = 64, 4, 8, 64
"""A small first cache; the second has as many ways and `OUTER` times as many bytes."""
FILLED = LINE * WAYS * SETS

PROGRAM = """\
#include <time.h>
static _Alignas(4096) volatile unsigned char memory[1 << 20];
int main(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    %s
    clock_gettime(CLOCK_MONOTONIC, &t);
    for (int n = 0; n < 1 << 20; n++) /* not counted */
        memory[n]++;
    return 0;
}
"""
SWEEP = "for (int n = 0; n < {bytes}; n += {step}) {touch};"


@pytest.fixture
def counted(tmp_path: Path) -> Callable[[str], Counts]:
    """Counts of the statements between the two readings of the clock."""
    compiler, emulator = require_tool(COMPILER), require_tool(EMULATOR)
    require_tool("gcc")

    def run(statements: str) -> Counts:
        (tmp_path / "main.c").write_text(PROGRAM % statements)
        subprocess.run([compiler, "-O1", tmp_path / "main.c", "-o", tmp_path / "main"], check=True)
        caches = f"{FILLED}:{LINE}:{WAYS}+{FILLED * OUTER}:{LINE}:{WAYS}"
        out = tmp_path / "counts.json"
        what = f"{plugin()},out={out},caches={caches}"
        subprocess.run(
            [emulator, "-L", LIBRARIES, "-cpu", PROCESSORS["aarch64"], "-plugin", what, tmp_path / "main"], check=True
        )  # fmt: skip
        return Counts.of(json.loads(out.read_text()))

    return run


def beyond(found: Counts, empty: Counts) -> list[tuple[int, int]]:
    """The lines of a program without those of the calls of the clock alone."""
    return [(a - c, b - d) for (a, b), (c, d) in zip(found.lines, empty.lines, strict=True)]


def test_lines_are_fetched_once_and_found_again(counted: Callable[[str], Counts]) -> None:
    empty = counted("")
    bytes_ = FILLED // 2
    once = beyond(counted(SWEEP.format(bytes=bytes_, step=1, touch="memory[n]")), empty)
    assert once[0] == (bytes_, 0)
    assert once[1] == once[2] == (bytes_ // LINE, 0)


def test_what_was_used_the_longest_ago_leaves(counted: Callable[[str], Counts]) -> None:
    """One line more than the ways, again and again: none is ever found in the first level, each is in the second."""
    empty = counted("")
    lines, rounds = WAYS + 1, 10
    sweep = SWEEP.format(bytes=lines * SETS * LINE, step=SETS * LINE, touch="memory[n]")
    found = beyond(counted(f"for (int again = 0; again < {rounds}; again++) {sweep}"), empty)
    assert found[1] == (lines * rounds, 0)
    assert found[2] == (lines, 0)


def test_what_was_stored_to_is_fetched_and_written_back(counted: Callable[[str], Counts]) -> None:
    empty = counted("")
    lines = 2 * FILLED * OUTER // LINE
    found = beyond(counted(SWEEP.format(bytes=lines * LINE, step=LINE, touch="memory[n] = 1")), empty)
    assert found[0] == (0, lines)
    assert [loads for loads, _ in found[1:]] == [lines, lines]
    # What the caches hold at the end was not written back; a few of their lines are the program's own.
    for (_, stores), held in zip(found[1:], (FILLED // LINE, FILLED * OUTER // LINE), strict=True):
        assert lines - held - 8 <= stores <= lines - held + 8


def test_kinds_of_instructions(counted: Callable[[str], Counts]) -> None:
    empty = counted("")
    kinds = {
        "integer": "add x1, x1, x2; mov x3, 5; umulh x4, x1, x2; madd w5, w6, w7, w8",
        "vector": "fadd v0.4s, v1.4s, v2.4s; fmla v0.4s, v1.4s, v2.4s; movi v1.16b, 3; fcvtzs w1, s2",
        "load": "ldr q0, [sp]; ldp x1, x2, [sp]; ldrsw x1, [sp]; ld1 {v0.16b}, [sp]",
        "store": "str q0, [sp, -64]; stp x1, x2, [sp, -64]; strb w1, [sp, -64]; st1 {v0.16b}, [%0]",
        "branch": "b 1f; 1: b 2f; 2: b 3f; 3: b 4f; 4:",
        "unseen": "dc zva, %0; dc zva, %0; dc zva, %0; dc zva, %0",
    }
    clobbered = ", ".join(f'"{r}"' for r in ("x1", "x2", "x3", "x4", "x5", "v0", "v1", "memory"))
    for kind, code in kinds.items():
        found = counted(f'__asm__ volatile("{code}" :: "r"(memory + 4096) : {clobbered});')
        gained = {k: getattr(found, k) - getattr(empty, k) for k in kinds}
        assert gained.pop(kind) >= 4, kind
        assert gained.pop("integer", 0) <= 4, kind  # the address
        assert not any(gained.values()), kind


def platform_with(**figures: Any) -> CpuPlatform:
    return platforms.get("cortex-a53").model_copy(update={"threads": 1, **figures})


def counts_of(lines: tuple[tuple[int, int], ...] = ((0, 0),) * 3, **kinds: int) -> Counts:
    return Counts(
        **{**dict.fromkeys(("integer", "vector", "load", "store", "branch", "unseen"), 0), **kinds}, lines=lines
    )


def test_cycles_are_by_the_figures_of_the_platform() -> None:
    machine = platform_with()
    p = machine.ecm_parameters
    assert counts_of(vector=100).core_cycles(machine) == pytest.approx(100 * p.f32.add)
    assert counts_of(integer=60, branch=40).core_cycles(machine) == pytest.approx(100 * p.scalar_cycles)
    second = counts_of(((0, 0), (100, 0), (0, 0)))
    assert second.moved_cycles(machine) == pytest.approx(6400 / machine.caches[1].bandwidth_bytes_per_cycle)
    memory = counts_of(((0, 0), (0, 0), (100, 100)))
    read = 6400 / p.memory_gb_s_one_thread * machine.clock_ghz
    assert memory.moved_cycles(machine) == pytest.approx(read * p.write_allocate_factor)  # fetched, and written back


def test_sve_is_left_out() -> None:
    assert "-march=armv9-a+nosve" in without_sve(platforms.get("graviton4")).compiler.flags


def test_only_what_the_plugin_knows_is_emulated() -> None:
    problem = at_estimates(pipeline_of("blur@64x64"))
    with pytest.raises(EmulationError, match="no machine of aarch64 or arm"):
        emulated(Path("x"), Path("x"), "x", problem, platforms.get("i7-6700"))


def test_instructions_of_32_bit_arm_are_counted() -> None:
    require_tool("arm-linux-gnueabihf-gcc")
    require_tool("qemu-arm")
    require_tool("gcc")
    machine = without_sve(CpuPlatform.of(platforms.get("cortex-a7")))
    found = []
    for name in ("gaussian3x3@64x64", "gaussian3x3@64x128"):
        problem = at_estimates(pipeline_of(name))
        source = compile_pipeline(problem.pipeline, machine).source
        library = build(source, machine, BUILD / "ours", timeout_s=300)
        found.append(emulated(library.path, library.runner, source.entry, problem, machine)[0].instructions)
    assert 1.5 * found[0] < found[1] < 2.5 * found[0]
