"""Calls of compiled pipelines from Python: what one takes over the call of the C, and what importing takes.

    python -m benchmarks.python_calls [--repeats 200] [--json FILE]

The C is called by its address on arguments that are packed already, in turns with the call that is measured, on one
thread and an image so small that the C takes a microsecond or few.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import tilesmith as ts
from benchmarks.figures import Figure, main, median
from tilesmith.language import Stage, Var, float32, uint8

REPEATS = 200
CALLS = 50
LIMIT_US = 20.0
IMPORTS = 15
IMPORT_LIMIT_MS = 150.0


def blend() -> ts.TracedPipeline:
    """Two images and a param."""
    x, y = Var("x"), Var("y")

    @ts.pipeline(threads=1)
    def blend(a: Any, b: Any, share: float = 0.5) -> Stage:
        result = Stage("result")
        result[x, y] = uint8(share * float32(a[x, y]) + (1.0 - share) * float32(b[x, y]))
        return result

    return blend


def overheads(call: Callable[[], object], compiled: ts.CompiledPipeline, repeats: int) -> list[float]:
    """Microseconds that `call` takes over the call of the C with its arguments, a round each."""
    result = call()
    block, library = compiled._blocks.pop(), compiled._loaded()  # later calls take another

    def entry() -> object:
        return library.call(block.address, 1), result  # which the C writes into

    return [microseconds(call) - microseconds(entry) for _ in range(repeats)]


def microseconds(call: Callable[[], object]) -> float:
    """The processor's time of a call, the mean of some: other programs do not count."""
    start = time.thread_time()
    for _ in range(CALLS):
        call()
    return (time.thread_time() - start) / CALLS * 1e6


def cases() -> Iterable[tuple[str, Callable[[], object], ts.CompiledPipeline]]:
    """Calls by their names, with what they call."""
    one, photo = ts.compile("blur", threads=1), np.ones((32, 32), np.uint16)
    out = one(photo)
    yield "one image", lambda: one(photo), one
    yield "one image, out=", lambda: one(photo, out=out), one
    traced, a = blend(), np.ones((32, 32), np.uint8)
    two = traced.compiled(a, a)
    yield "two images and a param", lambda: two(a, a, share=0.25), two
    yield "two images and a param, traced", lambda: traced(a, a, share=0.25), two


def measure(repeats: int = REPEATS) -> list[Figure]:
    """A figure for each kind of call, and one for the import."""
    found = []
    for name, call, compiled in cases():
        samples = overheads(call, compiled, repeats)
        note = f"least {min(samples):.1f} us"
        found.append(median(f"a call over the C: {name}", samples, LIMIT_US, unit="us", note=note))
    return [*found, importing("import tilesmith", IMPORT_LIMIT_MS), importing("from tilesmith import compile", None)]


def importing(statement: str, limit_ms: float | None) -> Figure:
    """The statement in a new process: its time alone."""
    code = f"import time; start = time.perf_counter(); {statement}; print((time.perf_counter() - start) * 1e3)"
    command = [sys.executable, "-c", code]
    samples = [float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(IMPORTS)]
    return median(statement, samples, limit_ms, note=f"least {min(samples):.1f} ms")


if __name__ == "__main__":
    main("Calls of compiled pipelines from Python.", measure, REPEATS)
