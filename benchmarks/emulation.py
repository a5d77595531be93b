"""One call of a compiled pipeline in QEMU's user mode: its values, the instructions that it executes by kind, and the
lines that it moves between the platform's caches, by the model of `caches.c`.

Cycles are bounds by the platform's own figures, one thread's: what the core takes for the instructions, and what the
levels take for the lines. They know nothing of what waits for what, of mispredicted branches, or of prefetchers.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest import BUILD
from benchmarks.problem import Problem
from tilesmith.app.runtime.run import environment, loaded
from tilesmith.cost_models.ecm.machine import machine_of
from tilesmith.platforms import CpuPlatform
from tilesmith.scheduler.ir.pipeline.arguments import Image

PLUGIN = Path(__file__).with_name("caches.c")
PLUGIN_FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden")
PROCESSORS = {"aarch64": "max,sve=off", "arm": "max"}
"""The processor that is emulated, by the architecture of a platform."""
TIMEOUT_S = 400.0
ARCHITECTURE = "aarch64"
"""The architecture whose instructions `caches.c` tells apart."""


def without_sve(platform: CpuPlatform) -> CpuPlatform:
    """The platform compiled for without SVE: QEMU does not tell plugins what its loads and stores touch."""
    if not platform.triple.startswith(f"{ARCHITECTURE}-"):
        return platform
    flags = [f"{f}+nosve" if f.startswith(("-march=", "-mcpu=")) else f for f in platform.compiler.flags]
    compiler = platform.compiler.model_copy(update={"flags": tuple(flags)})
    return platform.model_copy(update={"compiler": compiler})


class EmulationError(Exception):
    """An emulated call did not come to its end, or there is nothing to emulate it with; the message says why."""


@dataclass(frozen=True)
class Counts:
    """Counts of a call: instructions by kind, `unseen` those that touch memory unknown to the model; and `lines` of
    every level from the first, and of memory: those that it is asked for, and those that are written back to it; of the
    first, touches by loads and by stores."""

    integer: int
    vector: int
    load: int
    store: int
    branch: int
    unseen: int
    lines: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Counts:
        return cls(**{**document, "lines": tuple((a, b) for a, b in document["lines"])})

    @property
    def instructions(self) -> int:
        return self.integer + self.vector + self.load + self.store + self.branch + self.unseen

    def core_cycles(self, platform: CpuPlatform) -> float:
        """The core's, one kind of instruction after the other."""
        p = platform.ecm_parameters
        scalar = p.scalar_cycles * (self.integer + self.branch)
        return (
            scalar + p.f32.add * self.vector + p.load_cycles * self.load + p.store_cycles * (self.store + self.unseen)
        )

    def moved_cycles(self, platform: CpuPlatform) -> float:
        """The levels', one after the other. The figures for stores are of a line that is fetched and written back; here
        fetching is counted by itself."""
        p = platform.ecm_parameters
        read = 1.0 / (p.memory_gb_s_one_thread / platform.clock_ghz)
        costs = [(1 / v.load_bytes_per_cycle, 1 / v.store_bytes_per_cycle) for v in p.levels]
        costs.append((read, read * p.write_allocate_factor))
        moved = zip(self.lines[1:], costs, strict=True)
        return platform.line_bytes * sum(n * load + back * (store - load) for (n, back), (load, store) in moved)

    def cycles(self, platform: CpuPlatform) -> float:
        """Cycles of instructions and of transfers together, none hidden behind the other."""
        return self.core_cycles(platform) + self.moved_cycles(platform)


def emulated(
    library: Path, runner: Path, entry: str, problem: Problem, platform: CpuPlatform
) -> tuple[Counts, list[np.ndarray]]:
    """The counts of a call on one thread, after one that is not counted, and the outputs in the order of the document.
    Raises EmulationError."""
    images = {
        name: Image(array, tuple(low for low, _ in problem.input_regions[name]))
        for name, array in problem.inputs.items()
    }
    with loaded(problem.pipeline, images, problem.params, problem.output_regions) as prepared:
        job = prepared.job
        lines = (*job.declare(), *prepared.lines, "run 1", *job.store(), "")
        out = job.folder / "counts.json"
        command = (*_emulator(platform, out), str(runner), str(library), f"{entry}_argv")
        try:
            done = subprocess.run(
                command, input="\n".join(lines), text=True, capture_output=True, cwd=job.folder, timeout=TIMEOUT_S,
                env=environment(threads=1), check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise EmulationError(f"nothing in {TIMEOUT_S:.0f} s") from None
        if done.returncode != 0 or '"code": 0' not in done.stdout or not out.exists():
            said = " / ".join((done.stdout + done.stderr).splitlines()[-2:])
            raise EmulationError(f"exit status {done.returncode}: {said[-300:]}")
        counts = Counts.of(json.loads(out.read_text()))
        outputs = job.outputs()
    return counts, [array for name in problem.pipeline.outputs for array in outputs[name]]


def _emulator(platform: CpuPlatform, out: Path) -> tuple[str, ...]:
    """The platform's emulator with the plugin."""
    processor = PROCESSORS.get(platform.triple.partition("-")[0])
    if processor is None or not platform.compiler.run_prefix:
        raise EmulationError(f"{platform.name} is no machine of {' or '.join(PROCESSORS)} with an emulator")
    name, *options = platform.compiler.run_prefix
    program = shutil.which(name)
    if program is None:
        raise EmulationError(f"{name} is not installed")
    sizes = zip(machine_of(platform).inside, platform.caches, strict=True)
    caches = "+".join(f"{int(size)}:{c.line_bytes}:{c.ways}" for size, c in sizes)
    return (program, *options, "-cpu", processor, "-plugin", f"{plugin()},out={out},caches={caches}")


def plugin() -> Path:
    """The compiled plugin; EmulationError where it cannot be compiled."""
    library = BUILD / "caches.so"
    if library.exists() and library.stat().st_mtime >= PLUGIN.stat().st_mtime:
        return library
    BUILD.mkdir(parents=True, exist_ok=True)
    made = library.with_suffix(f".{os.getpid()}")
    command = ("gcc", *PLUGIN_FLAGS, "-o", str(made), str(PLUGIN))
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise EmulationError("gcc is not installed") from None
    except subprocess.CalledProcessError as e:
        raise EmulationError(f"the plugin does not compile: {e.stderr[-300:]}") from None
    os.replace(made, library)
    return library
