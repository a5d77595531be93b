"""A job that compares: the codes of two schedules run in turns, so that what else the machine does falls on both."""

from __future__ import annotations

import json
import math
import os
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace

from tilesmith import platforms
from tilesmith.app.comparison.noise import CALLS, ROUNDS
from tilesmith.app.runtime import estimates
from tilesmith.app.runtime.build import BuiltLibrary
from tilesmith.app.runtime.run import RUN_LIMITS, Loaded, cpus, loaded
from tilesmith.app.runtime.sandbox import Limits
from tilesmith.app.service.jobs.schemas import CompareResult, RunRequest
from tilesmith.app.service.jobs.work import Task, check_memory, compile_library, describe_machine
from tilesmith.scheduler.frontends.document import document as documents

BUDGET_S = 120.0
"""Time for all rounds: codes that take long have fewer."""
ROUND_MS = 40.0
"""A code runs about so long in a round, but CALLS times at least."""
MOST_CALLS = 100


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: its library, its arguments, and how often it is called in a round."""

    library: BuiltLibrary
    arguments: Loaded
    threads: int
    limits: Limits
    calls: int = CALLS

    def round_ms(self) -> float:
        """The median time of a round's calls."""
        done = self.arguments.call(self.library, self.threads, self.calls, self.limits, keep=False)
        return statistics.median(done.times_ms)

    def paced(self) -> Side:
        """The side with as many calls as fill a round."""
        calls = math.ceil(ROUND_MS / max(self.round_ms(), 1e-6))
        return replace(self, calls=min(max(calls, CALLS), MOST_CALLS))


def run_in_turns(
    task: Task,
    other: Task,
    clock: Callable[[], float] = time.monotonic,
) -> CompareResult:
    """The result of the job: `now_ms` and `baseline_ms`, a number a round, of random inputs of the estimated sizes.
    Who begins a round changes from one to the next."""
    with ExitStack() as stack:
        now = _side(task, compile_library(task), stack).paced()
        baseline = _side(other, compile_library(other), stack).paced()
        times = _rounds(now, baseline, clock)
    return CompareResult(
        now_ms=[round(ms, 6) for ms, _ in times],
        baseline_ms=[round(ms, 6) for _, ms in times],
        rounds=len(times),
        calls={"now": now.calls, "baseline": baseline.calls},
        threads={"now": now.threads, "baseline": baseline.threads},
        machine=describe_machine(),
        load_after=[round(v, 2) for v in os.getloadavg()],
    )


def _rounds(now: Side, baseline: Side, clock: Callable[[], float]) -> list[tuple[float, float]]:
    """Pairs of times, of `now` and the baseline, until there are ROUNDS of them or time is up."""
    until, found = clock() + BUDGET_S, []
    for number in range(ROUNDS):
        if clock() > until:
            break
        if number % 2:
            before = baseline.round_ms()
            found.append((now.round_ms(), before))
        else:
            after = now.round_ms()
            found.append((after, baseline.round_ms()))
    return found


def _side(task: Task, library: BuiltLibrary, stack: ExitStack) -> Side:
    pipeline = documents.load(json.loads(task.pipeline), task.limits)
    platform = platforms.parse(json.loads(task.platform))
    regions = estimates.output_regions(pipeline)
    check_memory(task, pipeline, RunRequest(estimates=True), regions)
    limits = replace(RUN_LIMITS, wall_s=task.run_timeout_s, memory_bytes=task.run_memory_bytes)
    arguments = stack.enter_context(loaded(pipeline, estimates.images(pipeline, {}), {}, regions))
    return Side(library, arguments, min(platform.threads, cpus()), limits)
