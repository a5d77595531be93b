"""Compile time of the C of every shipped pipeline, at the host's flags (-O3), and how long the C is.

python -m benchmarks.compile_time [--repeats 1] [--json FILE]
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.figures import Figure, main, median
from tilesmith.app.runtime.build import build, find_toolchain
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import compile_pipeline

REPEATS = 1
LIMIT_S = 20.0
PATIENCE_S = 600.0


def measure(repeats: int = REPEATS) -> list[Figure]:
    """One figure per pipeline: seconds from C to shared object, nothing of it kept."""
    platform = host()
    find_toolchain(platform.compiler)  # its first answer takes a moment
    found = []
    for name in pipelines.names():
        source = compile_pipeline(pipelines.load(name), platform).source
        seconds = []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as folder:
                seconds.append(build(source, platform, Path(folder), PATIENCE_S).seconds)
        note = f"{len(source.code):,} characters in {source.code.count(chr(10)):,} lines"
        found.append(median(f"C compiled, {name}", seconds, LIMIT_S, "s", note))
    return found


if __name__ == "__main__":
    main("Time to compile the C that is generated.", measure, REPEATS)
