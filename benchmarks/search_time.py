"""Analysis and search of every shipped pipeline in a warm process.

    python -m benchmarks.search_time [--repeats 15] [--json FILE]

Each repetition schedules a pipeline of another name, so that nothing is remembered from the one before.
"""

from __future__ import annotations

import gc
import time
from dataclasses import replace

from benchmarks.figures import Figure, main, median
from platforms.detect import host
from scheduler import pipelines
from scheduler.compile import Options, compile_pipeline

REPEATS = 15
LIMITS_MS = {"blur": 5.0, "unsharp": 15.0, "harris": 15.0, "interpolate": 150.0}


def measure(repeats: int = REPEATS) -> list[Figure]:
    """Two figures per pipeline: analysis and search, and all the way to C."""
    platform, options = host(), Options()
    found = []
    for name in sorted(pipelines.names(), key=lambda n: (n not in LIMITS_MS, n)):
        pipeline = pipelines.load(name)
        searches, totals = [], []
        for k in range(repeats + 1):
            renamed = replace(pipeline, name=f"{pipeline.name}_{k}")
            gc.collect()
            start = time.perf_counter()
            compiled = compile_pipeline(renamed, platform, options, time.perf_counter)
            totals.append((time.perf_counter() - start) * 1e3)
            searches.append(compiled.timings_ms["analysis"] + compiled.timings_ms["search"])
        found.append(median(f"analysis + search, {name}", searches[1:], LIMITS_MS.get(name)))
        found.append(median(f"document to C, {name}", totals[1:]))
    return found


if __name__ == "__main__":
    main("Time to analyse and search, warm.", measure, REPEATS)
