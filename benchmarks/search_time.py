"""Analysis and search of every shipped pipeline in a warm process, and of long chains.

    python -m benchmarks.search_time [--repeats 15] [--json FILE]

Each repetition reads the document anew, as every request does, so that nothing is remembered from the one before: facts
are remembered of stages, and those are others then. Times are the processor's, so that what else the machine does
counts little. Garbage is collected as rarely as in the processes of the service.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

from benchmarks.figures import Figure, main, median
from tilesmith.app.garbage import collect_rarely
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import Options, compile_pipeline, decide
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

REPEATS = 15
LIMITS_MS = {
    "blur": 5.0,
    "unsharp": 15.0,
    "harris": 15.0,
    "bilateral_grid": 20.0,
    "nl_means": 20.0,
    "max_filter": 20.0,
    "camera_pipe": 60.0,
    "pyramid_blend": 116.0,
    "interpolate": 150.0,
    "lens_blur": 617.0,
    "local_laplacian": 912.0,
}
CHAINS_MS = {100: 500.0, 500: 10_000.0}
"""Limits of chains of so many stencils."""
FEWER = 5
"""Chains are repeated so many times less."""


def measure(repeats: int = REPEATS) -> list[Figure]:
    """Two figures per pipeline: analysis and search, and all the way to C; of chains the first."""
    platform, options, clock = host(), Options(), time.process_time
    gc.collect()
    collect_rarely()
    found = []
    for name in sorted(pipelines.names(), key=lambda n: (n not in LIMITS_MS, n)):
        searches, totals = [], []
        for pipeline in _anew(partial(pipelines.load, name), repeats):
            start = clock()
            compiled = compile_pipeline(pipeline, platform, options, clock)
            totals.append((clock() - start) * 1e3)
            searches.append(compiled.timings_ms["analysis"] + compiled.timings_ms["search"])
        found.append(median(f"analysis + search, {name}", searches[1:], LIMITS_MS.get(name)))
        found.append(median(f"document to C, {name}", totals[1:]))
    for stages, limit in CHAINS_MS.items():
        each = [
            sum(decide(pipeline, platform, options, clock).timings_ms.values())
            for pipeline in _anew(partial(chain, stages), max(1, repeats // FEWER))
        ]
        found.append(median(f"analysis + search, chain of {stages}", each[1:], limit))
    return found


def chain(stages: int) -> Pipeline:
    """A chain of weighted 3 x 3 stencils."""
    names = ["image", *(f"s{n}" for n in range(stages))]
    around = [(a, b) for b in range(3) for a in range(3)]
    return load(
        {
            "format": 1,
            "name": "chain",
            "inputs": [{"name": "image", "type": "float32", "dims": ["x", "y"]}],
            "stages": [
                {
                    "name": name,
                    "dims": ["x", "y"],
                    "value": " + ".join(f"{f}(x + {a}, y + {b}) * {a + b + 1}.0" for a, b in around),
                }
                for f, name in pairwise(names)
            ],
            "outputs": [names[-1]],
            "estimates": {names[-1]: [[0, 1536], [0, 2560]]},
        }
    )


def _anew(read: Callable[[], Pipeline], repeats: int) -> Iterator[Pipeline]:
    """The pipeline read so many times, once more to warm up; garbage is collected each time."""
    for _ in range(repeats + 1):
        pipeline = read()
        gc.collect()
        yield pipeline


if __name__ == "__main__":
    main("Time to analyse and search, warm.", measure, REPEATS)
