"""A compiled pipeline of the corpus held to the reference interpreter and to a library's function, in a process of its
own: it may crash.

It reads a question as one line of JSON and prints the answer as another:

    {"pipeline": NAME, "library": FILE, "entry": ENTRY, "small": FILE}
    {"interpreter": DIFFERENCE, "reference": DIFFERENCE, "reference_ms": ..., "ours_ms": ...}

`small` is the library for the interpreter's size, where it is another one. A difference is a sentence, empty where
values agree; who has no reference has only the first.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.arguments import Arguments
from benchmarks.contender import private_stdout
from benchmarks.corpus.differences import difference
from benchmarks.corpus.registry import SMALL_SUFFIX, cases
from benchmarks.documents import pipeline_of
from benchmarks.interleaved import Library, Loop, one_thread
from benchmarks.problem import Problem, at_estimates
from tilesmith.app.bench.agreement import ContenderError, agreement
from tilesmith.app.bench.memory import storage_order
from tilesmith.app.profiler.tuning import has_floats
from tilesmith.scheduler.interpreter.interpreter import interpret
from tilesmith.scheduler.ir.pipeline.arguments import Image

ROUNDS = 5
"""Turns of the library and of ours; the least times count."""
BURST_S = 0.03
LONG_S = 20.0
"""Seconds after which no further turn begins."""


def interpreter(problem: Problem, library: Library, loop: Loop) -> str:
    """The difference from the reference interpreter."""
    images = {n: Image(a, tuple(low for low, _ in problem.input_regions[n])) for n, a in problem.inputs.items()}
    with np.errstate(all="ignore"):
        found = interpret(problem.pipeline, images, problem.params, problem.output_regions)
    expected = [a for name in problem.pipeline.outputs for a in found[name]]
    arguments = Arguments(problem)
    loop(library, arguments, 1)
    try:
        agreement(expected, arguments.outputs, cut=[has_floats(problem.pipeline)] * len(expected))
    except ContenderError as e:
        return str(e)
    return ""


def reference(problem: Problem, library: Library, loop: Loop) -> dict[str, Any]:
    """The difference from the library's function, and the times of both, in turns."""
    case, pipeline = cases()[problem.pipeline.name], problem.pipeline
    assert case.reference is not None
    inputs = {
        i.name: np.ascontiguousarray(problem.inputs[i.name].transpose(_axes(i.dims, i.storage)))
        for i in pipeline.inputs
    }
    function: Callable[..., Any] = case.reference
    arguments, end = Arguments(problem), time.monotonic() + LONG_S
    its, ours = [], []
    found = function(**inputs)
    for _ in range(ROUNDS):
        its.append(_burst(lambda: function(**inputs)))
        first = loop(library, arguments, 1)
        ours.append(min(first, loop(library, arguments, max(1, int(1e3 * BURST_S / max(first, 1e-3))))))
        if time.monotonic() > end:
            break
    expected = found if isinstance(found, tuple) else (found,)
    got: list[tuple[np.ndarray, Sequence[int]]] = []
    for name in pipeline.outputs:
        stage = pipeline.stage(name)
        got += [(arguments.outputs[len(got)], _axes(stage.dims, stage.storage)) for _ in stage.types]
    wrong = [
        difference(a, b.transpose(axes), case.within, case.apart) for a, (b, axes) in zip(expected, got, strict=True)
    ]
    return {"reference": "; ".join(filter(None, wrong)), "reference_ms": min(its), "ours_ms": min(ours)}


def _axes(dims: tuple[str, ...], storage: tuple[str, ...]) -> Sequence[int]:
    """The axes of an array whose dims are reversed, slowest in memory first."""
    return [len(dims) - 1 - d for d in reversed(storage_order(dims, storage))]


def _burst(call: Callable[[], object]) -> float:
    """Milliseconds of the fastest of some calls."""
    clock = time.process_time if one_thread() else time.perf_counter
    end, taken = time.perf_counter() + BURST_S, list[float]()
    while not taken or time.perf_counter() < end:
        start = clock()
        call()
        taken.append(1e3 * (clock() - start))
    return min(taken)


def answer(question: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a question."""
    name = question["pipeline"]
    library, loop = Library.load(name, question["library"], question["entry"]), Loop(one_thread())
    small = Library.load(name, question.get("small", question["library"]), question["entry"])
    found: dict[str, Any] = {"interpreter": interpreter(at_estimates(pipeline_of(name + SMALL_SUFFIX)), small, loop)}
    if name in cases() and cases()[name].reference is not None:
        _limit_opencv()
        found |= reference(at_estimates(pipeline_of(name)), library, loop)
    return found


def _limit_opencv() -> None:
    import cv2

    cv2.setNumThreads(int(os.environ["OMP_NUM_THREADS"]))


def main() -> None:
    reply = private_stdout()
    question = json.loads(sys.stdin.readline())
    try:
        reply(answer(question))
    except Exception as e:  # a finding of a run of hours
        reply({"error": f"{type(e).__name__}: {str(e)[:300]}"})


if __name__ == "__main__":
    main()
