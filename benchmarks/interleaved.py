"""Libraries of one pipeline called in turns in one process, on the same images: whether they agree, and their times.

It reads a question as one line of JSON and prints the answer as another:

    {"pipeline": NAME, "layout": "dense", "rounds": 8, "libraries": {NAME: [FILE, ENTRY], ...}}
    {"rounds": [{NAME: milliseconds, ...}, ...], "disturbed": 0}        or {"error": "..."}

There are two sets of images, and rounds alternate between them: what a call takes depends on where its images lie in
memory, and one set may suit a library by chance. In a round each library gets a burst of calls, who begins rotating;
its figure is the fastest call. A library that takes much longer than the first is left out after a round on each set.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.arguments import LAYOUTS, Arguments
from benchmarks.contender import private_stdout
from benchmarks.contest import ATTEMPTS, QUIET_SHARE, SETTLE_S, harness, others_cpu_s
from benchmarks.corpus.registry import differ_as_the_case_says
from benchmarks.documents import pipeline_of
from benchmarks.problem import Problem, at_estimates
from tilesmith.app.bench.agreement import ContenderError, agreement
from tilesmith.app.profiler.tuning import has_floats

SETS = 2
BURST_MS = 20.0
MAX_CALLS = 500
LONG_MS = 50.0
"""A call that takes longer finds nothing of its own in the caches anyhow: a burst of them needs no call before it."""
SLOW_MS = 1000.0
"""Milliseconds of first calls above which there is one round a set."""
FAR = 1.6
"""Times the first one's least: who takes longer is not timed any more."""
UNWRITTEN = 85
"""The byte that outputs are filled with before a call whose values count."""

Round = dict[str, float]


@dataclass(frozen=True)
class Library:
    """A compiled schedule, in this process."""

    name: str
    function: ctypes.c_void_p

    @classmethod
    def load(cls, name: str, path: str, entry: str) -> Library:
        return cls(name, ctypes.cast(getattr(ctypes.CDLL(path), entry + "_argv"), ctypes.c_void_p))


class Loop:
    """The timing loop in C that all contests have. Of `one_thread` the processor time counts."""

    def __init__(self, one_thread: bool = False) -> None:
        library = ctypes.CDLL(str(harness()))
        library.count_processor_time(ctypes.c_int32(one_thread))
        self.one_thread = one_thread
        self._loop = library.time_calls
        self._loop.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_double)]
        self._loop.restype = ctypes.c_int32

    def __call__(self, library: Library, arguments: Arguments, calls: int) -> float:
        """Milliseconds of the fastest of that many calls. Raises ContenderError."""
        taken = (ctypes.c_double * calls)()
        status = self._loop(library.function, ctypes.addressof(arguments.pointers), calls, taken)
        if status != 0:
            raise ContenderError(f"{library.name} returned {status}")
        return float(min(taken))


def one_thread() -> bool:
    """True if libraries are called with one thread."""
    return os.environ.get("OMP_NUM_THREADS") == "1"


def agree(problem: Problem, libraries: Sequence[Library], arguments: Arguments, loop: Loop) -> Round:
    """The time of a first call of each. Raises ContenderError where a library's values differ from the first one's."""
    first: list[np.ndarray] = []
    taken: Round = {}
    cut = [has_floats(problem.pipeline)] * len(arguments.outputs)
    for library in libraries:
        for array in arguments.outputs:
            array.fill(UNWRITTEN)
        taken[library.name] = loop(library, arguments, 1)
        if not first:
            first = [array.copy() for array in arguments.outputs]
            continue
        try:
            agreement(first, arguments.outputs, cut=cut)
        except ContenderError as e:
            if not differ_as_the_case_says(problem.pipeline.name, first, arguments.outputs):
                raise ContenderError(f"{library.name}: {e}") from None
    return taken


def in_turns(
    libraries: Sequence[Library], sets: Sequence[Arguments], rounds: int, loop: Loop, first: Round
) -> tuple[list[Round], int]:
    """The rounds, alternating between the sets, and how many of them other programs disturbed: a disturbed one is
    repeated, up to ATTEMPTS times as many in all, if not only processor time counts. `first` is what first calls
    took."""
    if min(first.values()) > SLOW_MS:
        usual, rounds = first, len(sets)
    else:
        usual = {lib.name: min(loop(lib, images, 1) for images in sets) for lib in libraries}
    calls = {name: min(math.ceil(BURST_MS / max(ms, 1e-3)), MAX_CALLS) for name, ms in usual.items()}
    kept: list[Round] = []
    disturbed = attempts = 0
    while len(kept) < rounds:
        images = sets[len(kept) % len(sets)]
        near = _near(libraries, kept) if len(kept) >= len(sets) else list(libraries)
        turn = attempts // len(sets) % len(near)
        start, busy, found = time.monotonic(), others_cpu_s({}), {}
        for library in near[turn:] + near[:turn]:
            time.sleep(SETTLE_S)
            if usual[library.name] < LONG_MS:
                loop(library, images, 1)
            found[library.name] = loop(library, images, calls[library.name])
        attempts += 1
        quiet = loop.one_thread or others_cpu_s({}) - busy < QUIET_SHARE * (time.monotonic() - start)
        if quiet or attempts > rounds * (ATTEMPTS - 1):
            kept.append(found)
            disturbed += not quiet
    return kept, disturbed


def _near(libraries: Sequence[Library], rounds: Sequence[Round]) -> list[Library]:
    """The first, and those whose times are not far from its."""
    least = {lib.name: min(r.get(lib.name, math.inf) for r in rounds) for lib in libraries}
    return [lib for lib in libraries if least[lib.name] <= FAR * least[libraries[0].name]]


def answer(question: Mapping[str, object]) -> dict[str, object]:
    """The answer to a question. Raises ContenderError where a library fails or disagrees."""
    problem, images = at_estimates(pipeline_of(str(question["pipeline"]))), LAYOUTS[str(question["layout"])]
    named, rounds = question["libraries"], question["rounds"]
    assert isinstance(named, dict)
    assert isinstance(rounds, int)
    libraries = [Library.load(name, *where) for name, where in named.items()]
    sets, loop = [Arguments(problem, images) for _ in range(SETS)], Loop(one_thread())
    first = agree(problem, libraries, sets[0], loop)
    found, disturbed = in_turns(libraries, sets, rounds, loop, first)
    return {"rounds": found, "disturbed": disturbed}


def main() -> None:
    reply = private_stdout()
    question = json.loads(sys.stdin.readline())
    try:
        reply(answer(question))
    except ContenderError as e:
        reply({"error": str(e)})


if __name__ == "__main__":
    main()
