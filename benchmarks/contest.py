"""Contests: contenders in processes of their own, verified against each other, then timed in turns.

In every round each contender gets a burst of calls while the others are idle, the order rotating, so
that whatever else the machine does falls on all of them. A round's figure is the fastest call of the burst; of contests
on one thread the processor time counts, which other programs disturb less.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.corpus.registry import differ_as_the_case_says
from benchmarks.problem import Problem, cut_from_floats
from tilesmith.app.bench.agreement import ContenderError, agreement
from tilesmith.app.bench.memory import storage_order
from tilesmith.scheduler.analysis.stage_graph import expressions
from tilesmith.scheduler.ir.pipeline.expressions import InputBound, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

BUILD = Path(__file__).resolve().parent.parent / "build" / "benchmarks"
BURST_MS = 60.0
"""Roughly how long a burst lasts."""
MAX_CALLS = 200
SLOW_MS = 500.0
"""A contender whose call takes longer is not warmed up at each burst, and has `SLOW_ROUNDS` rounds only."""
SLOW_ROUNDS = 3
QUIET_SHARE = 0.1
"""Share of one core that other programs may use in a round that counts as undisturbed."""
ATTEMPTS = 4
SETTLE_S = 0.01
"""The pause between bursts, in which the threads that the last contender left spinning go to sleep."""
ANSWER_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Entry:
    """A contender: `abi` is "tilesmith", "halide", or the name of a Python peer. `keeps`: a peer of Halide's has an
    allocator that keeps large blocks, as our libraries do."""

    name: str
    abi: str
    library: str = ""
    symbol: str = ""
    about: Mapping[str, object] = field(default_factory=dict)
    keeps: bool = True


@dataclass
class Result:
    """The result of one contender: `figures` has one a round in ms (None where a slow one did not take part), and is
    empty where `error` says what went wrong. `disturbed` of the rounds were."""

    name: str
    figures: list[float | None] = field(default_factory=list)
    error: str | None = None
    largest_error: float | None = None
    calls: int = 0
    slow: bool = False
    disturbed: int = 0
    about: Mapping[str, object] = field(default_factory=dict)

    @property
    def rounds_ms(self) -> list[float]:
        return [f for f in self.figures if f is not None]

    @property
    def best_ms(self) -> float | None:
        return min(self.rounds_ms, default=None)

    @property
    def median_ms(self) -> float | None:
        return statistics.median(self.rounds_ms) if self.rounds_ms else None


class Process:
    """A contender's process, until it is closed. Starting and asking raise ContenderError."""

    def __init__(self, entry: Entry, spec: dict[str, object], threads: int, log: Path) -> None:
        self.name = entry.name
        self.log = log
        environment = os.environ | {
            "HL_NUM_THREADS": str(threads),
            "OMP_NUM_THREADS": str(threads),
            "OMP_DYNAMIC": "false",
            # As our runner has it: waiting threads go to sleep soon, which Halide's do by themselves.
            "GOMP_SPINCOUNT": "20000",
            "KMP_BLOCKTIME": "1",
            "OPENBLAS_NUM_THREADS": str(threads),
        }
        self.errors = log.open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.contender"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=environment,
            text=True,
            bufsize=1,
        )
        try:
            self.ask(spec)
        except ContenderError:
            self.close()
            raise

    def ask(self, message: dict[str, object]) -> dict[str, Any]:
        """Sends one command and waits for the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            print(json.dumps(message), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            raise ContenderError(self.last_words()) from None
        ready, _, _ = select.select([self.process.stdout], [], [], ANSWER_TIMEOUT_S)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            self.process.kill()
            raise ContenderError(self.last_words() if ready else f"no answer in {ANSWER_TIMEOUT_S:.0f} s")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def last_words(self) -> str:
        status = self.process.wait()
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return f"exit status {status}: {' / '.join(lines[-2:])[-300:]}"

    def time(self, calls: int) -> list[float]:
        """Milliseconds of each of that many calls."""
        return list(self.ask({"do": "time", "calls": calls})["milliseconds"])

    def close(self) -> None:
        """Ends the process, if it has not ended by itself."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()


def harness() -> Path:
    """The compiled timing loop."""
    source = Path(__file__).with_name("harness.c")
    library = BUILD / "harness.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        BUILD.mkdir(parents=True, exist_ok=True)
        made = library.with_suffix(f".{os.getpid()}")
        flags = ("-O2", "-std=gnu11", "-Wall", "-Wextra", "-fopenmp", "-shared", "-fPIC")
        subprocess.run(["gcc", *flags, "-o", str(made), str(source)], check=True)
        os.replace(made, library)
    return library


def run(problem: Problem, entries: Sequence[Entry], threads: int, rounds: int) -> list[Result]:
    """The results in the order of `entries`. The first that works is whom the others have to agree with."""
    results = {e.name: Result(e.name, about=dict(e.about)) for e in entries}
    alive: dict[str, Process] = {}
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        files = {}
        for name, array in problem.inputs.items():
            files[name] = work / f"input-{name}.npy"
            np.save(files[name], array)
        try:
            judge: list[np.ndarray] | None = None
            pipeline = problem.pipeline
            cut = [cut_from_floats(pipeline, name) for name in pipeline.outputs for _ in pipeline.stage(name).types]
            for k, e in enumerate(entries):
                directory = work / str(k)
                directory.mkdir()
                try:
                    alive[e.name] = Process(
                        e, specification(problem, e, files, threads == 1), threads, directory / "log"
                    )
                    alive[e.name].ask({"do": "call", "directory": str(directory)})
                    outputs = load_outputs(directory)
                    judge = judge or outputs
                    try:
                        results[e.name].largest_error = agreement(judge, outputs, cut=cut)
                    except ContenderError:
                        if not differ_as_the_case_says(pipeline.name, judge, outputs):
                            raise
                except ContenderError as problem_found:
                    results[e.name].error = str(problem_found)
                    if e.name in alive:
                        alive.pop(e.name).close()
            take_turns(alive, results, rounds, one_thread=threads == 1)
        finally:
            for process in alive.values():
                process.close()
    return [results[e.name] for e in entries]


def take_turns(alive: dict[str, Process], results: dict[str, Result], rounds: int, one_thread: bool = False) -> None:
    """Fills the rounds of every contender that is alive: undisturbed ones as long as they are to be had.

    A round in which programs other than the contenders used much of the processor is repeated, up to
    ATTEMPTS times as many rounds as wanted in all; then the disturbed ones have to do. Of `one_thread`, whose processor
    time counts, every round is undisturbed.
    """
    for name, process in alive.items():
        fastest = min(process.time(1) + process.time(1))
        fewest = 1 if fastest > SLOW_MS else 3
        results[name].slow = fastest > SLOW_MS
        results[name].calls = int(min(max(BURST_MS / max(fastest, 1e-3), fewest), MAX_CALLS))
    quiet: list[dict[str, float]] = []
    disturbed: list[dict[str, float]] = []
    for attempt in range(rounds * ATTEMPTS if alive else 0):
        if len(quiet) == rounds:
            break
        tired = {n for n in alive if results[n].slow and sum(n in r for r in quiet + disturbed) >= SLOW_ROUNDS}
        if len(tired) == len(alive):
            break
        start, busy = time.monotonic(), others_cpu_s(alive)
        figures = one_round([alive[n] for n in alive if n not in tired], results, attempt)
        share = (others_cpu_s(alive) - busy) / (time.monotonic() - start)
        (quiet if one_thread or share < QUIET_SHARE else disturbed).append(figures)
    taken = quiet + disturbed[: rounds - len(quiet)]
    for name in alive:
        results[name].figures = [r.get(name) for r in taken]
        results[name].disturbed = max(rounds - len(quiet), 0)


def one_round(contenders: list[Process], results: dict[str, Result], attempt: int) -> dict[str, float]:
    """A burst of everyone, who begins rotating."""
    figures = {}
    turn = attempt % max(len(contenders), 1)
    for process in contenders[turn:] + contenders[:turn]:
        result = results[process.name]
        time.sleep(SETTLE_S)
        if not result.slow:
            process.time(1)  # the caches have another contender's data
        figures[process.name] = min(process.time(result.calls))
    return figures


def others_cpu_s(alive: dict[str, Process]) -> float:
    """Seconds of processor time that everything but the contenders and ourselves has used since the machine started."""
    machine = psutil.cpu_times()
    total = sum(machine) - machine.idle - getattr(machine, "iowait", 0.0)
    total -= getattr(machine, "guest", 0.0) + getattr(machine, "guest_nice", 0.0)  # counted in user time already
    for pid in (os.getpid(), *(p.process.pid for p in alive.values())):
        own = psutil.Process(pid).cpu_times()
        total -= own.user + own.system
    return total


def specification(
    problem: Problem, entry: Entry, files: dict[str, Path], one_thread: bool = False
) -> dict[str, object]:
    """The specification that the contender's process reads."""
    arguments: list[dict[str, object]] = []
    bounded = inputs_with_bounds_in_use(problem.pipeline)
    for i in problem.pipeline.inputs:
        arguments.append(
            {
                "kind": "buffer",
                "name": i.name,
                "dtype": i.type.numpy.str,
                "region": problem.input_regions[i.name],
                "storage": storage_order(i.dims, i.storage),
                "file": str(files[i.name]),
                "fixed": i.boundary is not None or i.name in bounded,
            }
        )
    for p in problem.pipeline.params:
        dtype = "uint8" if p.type.kind == "bool" else p.type.name
        arguments.append({"kind": "scalar", "name": p.name, "dtype": dtype, "value": problem.params[p.name]})
    for name in problem.pipeline.outputs:
        stage = problem.pipeline.stage(name)
        for t in stage.types:
            arguments.append(
                {
                    "kind": "buffer",
                    "name": name,
                    "dtype": t.numpy.str,
                    "region": problem.output_regions[name],
                    "storage": storage_order(stage.dims, stage.storage),
                    "file": None,
                }
            )
    return {
        "document": problem.document,
        "pipeline": problem.pipeline.name,
        "abi": entry.abi,
        "library": entry.library,
        "symbol": entry.symbol,
        "harness": str(harness()),
        "keeps": entry.keeps,
        "one_thread": one_thread,
        "arguments": arguments,
    }


def inputs_with_bounds_in_use(pipeline: Pipeline) -> set[str]:
    """The inputs whose min or extent the pipeline computes with."""
    found = set()
    for s in pipeline.stages:
        domain = (s.boundary.domain or ()) if s.boundary else ()
        for e in (*expressions(s), *(bound for pair in domain for bound in pair)):
            found |= {node.input for node in walk(e) if isinstance(node, InputBound)}
    return found


def load_outputs(directory: Path) -> list[np.ndarray]:
    return [np.load(p) for p in sorted(directory.glob("*.npy"), key=lambda p: int(p.stem))]
