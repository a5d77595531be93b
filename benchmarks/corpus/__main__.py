"""The corpus in the builds of this machine: values, and times against the method of the paper, all stages at root, the
libraries' own functions, Halide's autoschedulers, and the best candidates.

    python -m benchmarks.corpus [--pipelines NAME ...] [--drawn 83] [--half developing|reporting] [--isa avx2 ...]
                                [--threads 1 2] [--rounds 8] [--halide [METHOD ...]] [--seconds S] [--report]
                                [--tune] [--output DIR]

Each result is appended to a file in the folder as soon as it is there: what ends early goes on where it was. Then the
page is written there (`corpus.md`). Where the scheduler has changed, pipelines are scheduled again, and those that got
other C are checked and timed again. Exit status 3 where something is left to do.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks import contest, halide_peers
from benchmarks.builds import COMPILERS, LIMITS, NATIVE, instruction_sets
from benchmarks.contest import Entry
from benchmarks.corpus import page
from benchmarks.corpus.registry import SMALL_SUFFIX, cases, for_reports
from benchmarks.documents import drawn_name, pipeline_of
from benchmarks.everywhere import (
    COMPILE_S,
    ROUNDS,
    TIMEOUT_S,
    UNFINISHED,
    Contenders,
    Job,
    Records,
    Timings,
    finish,
)
from benchmarks.findings import DEFAULT, PAPER, ROOT
from benchmarks.problem import at_estimates
from benchmarks.regret import regret
from tilesmith.app.runtime.build import build
from tilesmith.platforms import CpuPlatform
from tilesmith.scheduler.compiler import compile_pipeline

OUTPUT = Path("build/corpus")
DRAWN = 83
"""Random pipelines that belong to the corpus: a third of it."""
FIRST_SEED = 1000
"""The seed of the first of them; those below are for tests."""
HALIDE_ROUNDS = 5
HALIDE_S = 120.0
"""Seconds in which Halide has to schedule a pipeline."""
HALVES = ("developing", "reporting")


class Judgements:
    """Records of values and of the libraries' times, by the library of the method `default`."""

    def __init__(self, folder: Path) -> None:
        self._records = Records(folder / "values.jsonl")

    def known(self, job: Job, mine: Mapping[str, Any]) -> dict[str, Any] | None:
        return self._records.get(self._key(job, mine))

    def judge(self, job: Job, mine: Mapping[str, Any], machine: CpuPlatform) -> dict[str, Any]:
        """Holds the library to the interpreter and to a library's function (`judge.py`), which takes no wider
        instructions than the build where variables can say so. A random pipeline may have its size in its stages: what
        is held to the interpreter is then compiled for the small one."""
        question = {"pipeline": job.pipeline, "library": mine["library"], "entry": mine["entry"]}
        small = pipeline_of(job.pipeline + SMALL_SUFFIX)
        if small.stages != pipeline_of(job.pipeline).stages:
            source = compile_pipeline(small, machine).source
            question["small"] = str(build(source, machine, contest.BUILD / "everywhere", COMPILE_S).path)
        threads = {"OMP_NUM_THREADS": str(job.threads), "OPENBLAS_NUM_THREADS": str(job.threads)}
        environment = os.environ | threads | LIMITS.get(job.isa, {})
        try:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.corpus.judge"], input=json.dumps(question) + "\n", text=True,
                capture_output=True, env=environment, timeout=TIMEOUT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return self._records.add(self._key(job, mine), {"error": f"nothing in {TIMEOUT_S:.0f} s"})
        if done.returncode != 0:
            said = " / ".join(done.stderr.splitlines()[-2:])[-300:]
            return self._records.add(self._key(job, mine), {"error": f"exit status {done.returncode}: {said}"})
        return self._records.add(self._key(job, mine), json.loads(done.stdout))

    @staticmethod
    def _key(job: Job, mine: Mapping[str, Any]) -> str:
        limits = LIMITS.get(job.isa)
        return json.dumps([job.pipeline, job.threads, mine.get("library"), *([limits] if limits else [])])


class Peers:
    """Records of Halide's schedules of the same pipelines, called in turns with ours."""

    def __init__(self, folder: Path, methods: Sequence[str]) -> None:
        self._records, self._methods = Records(folder / "halide.jsonl"), methods

    def known(self, job: Job, mine: Mapping[str, Any]) -> dict[str, Any] | None:
        found = [self._records.get(self._key(job, mine, method)) for method in self._methods]
        return None if None in found else {m: f for m, f in zip(self._methods, found, strict=True) if f is not None}

    def time(self, job: Job, mine: Mapping[str, Any]) -> None:
        problem = replace(at_estimates(pipeline_of(job.pipeline)), document=job.pipeline)
        for method in self._methods:
            key = self._key(job, mine, method)
            if self._records.get(key) is not None:
                continue
            try:
                peer = halide_peers.build(job.pipeline, method, job.threads, HALIDE_S, isa=job.isa)
            except halide_peers.PeerError as e:
                self._records.add(key, {"error": str(e)})
                continue
            entries = [
                Entry(DEFAULT, "tilesmith", mine["library"], mine["entry"]),
                Entry(method, "halide", peer.library, peer.symbol),
            ]
            ours, its = contest.run(problem, entries, job.threads, HALIDE_ROUNDS)
            found = {"error": ours.error or its.error, "ours_ms": ours.best_ms, "its_ms": its.best_ms}
            self._records.add(key, {**found, "schedule_ms": peer.schedule_ms})

    @staticmethod
    def _key(job: Job, mine: Mapping[str, Any], method: str) -> str:
        return json.dumps([job.pipeline, job.threads, mine.get("library"), method])


class Regrets:
    """Records of what the fastest of the best candidates would gain (`benchmarks.regret`)."""

    def __init__(self, folder: Path, asked: bool, rounds: int) -> None:
        self._records, self._asked, self._rounds = Records(folder / "regrets.jsonl"), asked, rounds

    def known(self, job: Job, mine: Mapping[str, Any]) -> dict[str, Any] | None:
        return self._records.get(self._key(job, mine)) if self._asked else {}

    def time(self, job: Job, mine: Mapping[str, Any], machine: CpuPlatform) -> None:
        try:
            found: dict[str, Any] = {"regret": regret(job.pipeline, machine, self._rounds)}
        except Exception as e:  # a finding, as everywhere
            found = {"error": f"{type(e).__name__}: {str(e)[:300]}"}
        self._records.add(self._key(job, mine), found)

    @staticmethod
    def _key(job: Job, mine: Mapping[str, Any]) -> str:
        return json.dumps([job.pipeline, job.threads, mine.get("library")])


def jobs(arguments: argparse.Namespace) -> list[Job]:
    """All jobs asked for, in an order that a run cut short has some of everything in."""
    random_ones = [drawn_name(FIRST_SEED + n) for n in range(arguments.drawn)]
    names = arguments.pipelines or [*cases(), *random_ones]
    halves = [name for name in names if arguments.half in (None, HALVES[for_reports(name)])]
    found = [Job(*v) for v in product(halves, arguments.isa, arguments.compilers, arguments.threads)]
    random.Random(0).shuffle(found)
    return found


def work(
    asked: Sequence[Job], contenders: Contenders, judgements: Judgements, timings: Timings, peers: Peers,
    regrets: Regrets,
) -> Iterator[str]:  # fmt: skip
    """Does what is left of the jobs, one step at a time: yields what it is about to do."""
    for job in asked:
        told = f"{job.pipeline}, {job.isa}, {job.compiler}, threads: {job.threads}"
        if contenders.missing(job):
            yield f"making {told}"
            contenders.prepare(job)
        known = contenders.known(job)
        mine = known.get(DEFAULT, {})
        if "library" not in mine:
            continue
        if judgements.known(job, mine) is None:
            yield f"checking {told}"
            judgements.judge(job, mine, contenders.machine(job))
        if timings.known(job, known) is None:
            yield f"timing {told}"
            timings.time(job, known)
        if peers.known(job, mine) is None:
            yield f"against Halide: {told}"
            peers.time(job, mine)
        if regrets.known(job, mine) is None:
            yield f"timing candidates of {told}"
            regrets.time(job, mine, contenders.machine(job))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus", description="The corpus.")
    parser.add_argument("--pipelines", nargs="+", metavar="NAME")
    parser.add_argument("--drawn", type=int, default=DRAWN, metavar="N", help="so many random ones besides")
    parser.add_argument("--half", choices=HALVES, help="only those")
    parser.add_argument("--isa", nargs="+", default=[NATIVE], choices=[NATIVE, *instruction_sets()])
    parser.add_argument("--compilers", nargs="+", default=["gcc"], choices=COMPILERS)
    parser.add_argument("--threads", nargs="+", type=int, default=[1])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument(
        "--halide", nargs="*", default=[], choices=list(halide_peers.METHODS), metavar="METHOD",
        help="its autoschedulers that take part",
    )  # fmt: skip
    parser.add_argument("--tune", action="store_true", help="time the best candidates, too")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="S", help="begin nothing after that")
    parser.add_argument("--report", action="store_true", help="write the page of what is known, and do nothing")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR")
    arguments = parser.parse_args()
    folder: Path = arguments.output
    contenders = Contenders(folder, names=(DEFAULT, PAPER, ROOT))
    judgements, timings = Judgements(folder), Timings(folder, arguments.rounds)
    peers, asked = Peers(folder, arguments.halide), jobs(arguments)
    regrets = Regrets(folder, arguments.tune, arguments.rounds)
    if not arguments.report:
        finish(work(asked, contenders, judgements, timings, peers, regrets), arguments.seconds)
    rows = []
    for job in asked:
        known = contenders.known(job)
        mine = known.get(DEFAULT, {})
        found = (judgements.known(job, mine), timings.known(job, known), peers.known(job, mine))
        rows.append(page.Row.of(job, known, *found, regrets.known(job, mine)))
    text = page.written(rows)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "corpus.md").write_text(text)
    print(text)
    sys.exit(UNFINISHED if any(row.left for row in rows) else 0)


if __name__ == "__main__":
    main()
