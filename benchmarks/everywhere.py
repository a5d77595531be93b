"""Losses of the method `default`, for the machine as it was measured on first use: against the method of the paper,
every stage at root, and itself for a machine that is only estimated, in every build.

    python -m benchmarks.everywhere [--pipelines NAME ...] [--drawn N] [--seed S] [--isa avx2 ...] [--compilers gcc ...]
                                    [--threads 2 1] [--layouts dense ...] [--platform FILE] [--rounds 8]
                                    [--limit-seconds S] [--prepare | --report] [--output DIR]

Every pair of a pipeline and a build is scheduled and compiled, then timed, and each result is written at once: what
ends early goes on where it was. Exit status 1 where a ratio or a mean is too high or a contender fails, 3 where
something is left to do.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks import builds, findings, report
from benchmarks.arguments import LAYOUTS
from benchmarks.builds import COMPILERS, instruction_sets, platform_of
from benchmarks.contest import BUILD
from benchmarks.documents import drawn_name, pipeline_of
from benchmarks.findings import BOUNDS, DEFAULT, ESTIMATED, PAPER, ROOT, same_code, verdicts
from tilesmith import cost_models, platforms, scheduler
from tilesmith.app.runtime.build import build
from tilesmith.cost_models import Ecm
from tilesmith.platforms import CpuPlatform, to_document
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import generate
from tilesmith.scheduler.features.schedule_features import predict
from tilesmith.scheduler.frontends.document.document import canonical_json
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.document import to_document as schedule_document
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import SearchOptions, autoschedule, root_schedule

ROUNDS = 8
AGAIN = 3
"""Times the rounds in which a ratio near its bound or above is measured again, in another process: these count."""
COMPILE_S = 120.0
TIMEOUT_S = 400.0
CONTENDERS = (DEFAULT, PAPER, ROOT, ESTIMATED)
OUTPUT = Path("out/everywhere")
UNFINISHED = 3


@dataclass(frozen=True)
class Job:
    """A pipeline in a build, called with images of a layout."""

    pipeline: str
    isa: str
    compiler: str
    threads: int
    layout: str = "dense"

    def platform(self, machine: CpuPlatform | None = None) -> CpuPlatform:
        """`machine` as that build has it, the host by estimates where it is None."""
        return platform_of(self.isa, self.compiler, self.threads, machine)

    def measured(self) -> CpuPlatform:
        """The host as it was measured on first use by that build, where the environment does not forbid it."""
        return _measured(self.isa, self.compiler, self.threads)


@cache
def _measured(isa: str, compiler: str, threads: int) -> CpuPlatform:
    return builds.measured(platform_of(isa, compiler, threads))


class Records:
    """A file of one JSON object a line, each under a key; the last one of a key counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found: dict[str, dict[str, Any]] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            record = _parsed(line)
            if record is not None:
                self._found[record["key"]] = record

    def get(self, key: str) -> dict[str, Any] | None:
        return self._found.get(key)

    def add(self, key: str, record: Mapping[str, Any]) -> dict[str, Any]:
        """Writes it before it returns."""
        kept = {"key": key, **record}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(kept) + "\n")
        self._found[key] = kept
        return kept


def _parsed(line: str) -> dict[str, Any] | None:
    """A record; None for the line of a run that was killed while it wrote."""
    try:
        found = json.loads(line)
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) and "key" in found else None


class Contenders:
    """The schedules of pipelines in builds, compiled, of those that are named; remembered until the pipeline or the
    scheduler is another."""

    def __init__(self, folder: Path, given: CpuPlatform | None = None, names: Sequence[str] = CONTENDERS) -> None:
        self._records = Records(folder / "contenders.jsonl")
        self._given = given
        self._names = names
        self._versions: dict[tuple[str, str], str] = {}

    def machine(self, job: Job) -> CpuPlatform:
        """The platform that `default` is asked for: the given one, if it has the job's vectors, or the machine as it
        was measured."""
        given = self._given
        if given is not None and given.vector_bytes == job.platform().vector_bytes:
            return job.platform(given)
        return job.measured()

    def known(self, job: Job) -> dict[str, dict[str, Any]]:
        """The contenders that were compiled, as they last were."""
        found = {name: self._records.get(self._key(job, name)) for name in self._names}
        return {name: record for name, record in found.items() if record is not None}

    def missing(self, job: Job) -> list[str]:
        """The contenders that have to be scheduled and compiled, again where the scheduler has changed."""
        known, now = self.known(job), self._version(job)
        return [n for n in self._names if n not in known or known[n]["version"] != now]

    def prepare(self, job: Job) -> None:
        pipeline, now = pipeline_of(job.pipeline), self._version(job)
        for name in self.missing(job):
            self._records.add(self._key(job, name), {"version": now, **self._prepared(job, name, pipeline)})

    def _version(self, job: Job) -> str:
        """The version of the pipeline, the scheduler, and the platform."""
        machine = json.dumps(to_document(self.machine(job)), sort_keys=True)
        key = (job.pipeline, machine)
        if key not in self._versions:
            document = canonical_json(pipeline_of(job.pipeline))
            self._versions[key] = hashlib.sha256(f"{version()}{document}{machine}".encode()).hexdigest()[:16]
        return self._versions[key]

    def _prepared(self, job: Job, name: str, pipeline: Pipeline) -> dict[str, Any]:
        machine = self.machine(job)
        found: dict[str, Any] = {}
        try:
            started = time.process_time()
            schedule = self._schedule(job, name, pipeline)
            found["search_s"] = time.process_time() - started
            found["predicted_ms"] = float(predict(rewrite(pipeline, schedule), machine, Ecm()).total) / 1e3
            found["schedule"] = schedule_document(schedule)
            # a comment of the C tells the method: the same schedule of two is one library
            source = generate(pipeline, replace(schedule, method=DEFAULT), machine)
            found["to_c_s"], found["characters"] = time.process_time() - started, len(source.code)
            library = build(source, machine, BUILD / "everywhere", COMPILE_S)
        except Exception as e:  # a defect of ours is a finding, and must not end a run of hours
            return {**found, "error": f"{type(e).__name__}: {str(e)[:500]}"}
        made = {"library": str(library.path), "runner": str(library.runner), "entry": source.entry}
        return {**found, **made, "compile_s": library.seconds}

    def _schedule(self, job: Job, name: str, pipeline: Pipeline) -> Schedule:
        if name == ROOT:
            return root_schedule(pipeline, job.platform())
        method = PAPER if name == PAPER else DEFAULT
        machine = job.platform() if name == ESTIMATED else self.machine(job)
        return autoschedule(pipeline, machine, SearchOptions(method)).schedule

    def _key(self, job: Job, name: str) -> str:
        return json.dumps([job.pipeline, job.isa, job.compiler, job.threads, name])


@cache
def version() -> str:
    """A hash of the sources that a schedule and its C depend on."""
    found = hashlib.sha256()
    for package in (scheduler, cost_models, platforms):
        for path in sorted(Path(str(package.__file__)).parent.rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


class Timings:
    """Timings of calls of contenders. A library is known by its content, so what did not change is not timed again."""

    def __init__(self, folder: Path, rounds: int) -> None:
        self._records = Records(folder / "timings.jsonl")
        self._rounds = rounds

    def known(self, job: Job, contenders: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
        return self._records.get(self._key(job, contenders))

    def time(self, job: Job, contenders: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Times the contenders that could be made, and those again that are near a bound."""
        same = same_code(contenders)
        named = {n: (contenders[n]["library"], contenders[n]["entry"]) for n in dict.fromkeys(same.values())}
        found: dict[str, Any] = {"rounds": [], "disturbed": 0}
        if len(named) > 1:
            found = measured(job, named, self._rounds)
            if "error" not in found and any(v.near(BOUNDS[pair]) for pair, v in verdicts(found["rounds"], same)):
                found = {"first": found["rounds"], **measured(job, named, self._rounds * AGAIN)}
        return self._records.add(self._key(job, contenders), {**asdict(job), **found})

    def _key(self, job: Job, contenders: Mapping[str, Mapping[str, Any]]) -> str:
        libraries = sorted((name, c.get("library")) for name, c in contenders.items())
        return json.dumps([asdict(job), libraries])


def measured(job: Job, libraries: Mapping[str, tuple[str, str]], rounds: int) -> dict[str, Any]:
    """The answer of a process of its own that calls these libraries (`interleaved.py`)."""
    question = {"pipeline": job.pipeline, "layout": job.layout, "rounds": rounds, "libraries": libraries}
    threads = str(job.threads)
    # As our runner has it: waiting threads go to sleep soon.
    own = {"OMP_NUM_THREADS": threads, "OMP_DYNAMIC": "false", "GOMP_SPINCOUNT": "20000", "KMP_BLOCKTIME": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.interleaved"], input=json.dumps(question) + "\n",
            env=os.environ | own, capture_output=True, text=True, timeout=TIMEOUT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"error": f"nothing in {TIMEOUT_S:.0f} s"}
    if done.returncode != 0:
        return {"error": f"exit status {done.returncode}: {' / '.join(done.stderr.splitlines()[-2:])[-300:]}"}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def jobs(arguments: argparse.Namespace) -> list[Job]:
    """All jobs asked for, in an order that a run cut short has some of everything in."""
    names = [*arguments.pipelines, *(drawn_name(arguments.seed + n) for n in range(arguments.drawn))]
    axes = (names, arguments.isa, arguments.compilers, arguments.threads, arguments.layouts)
    found = [Job(*values) for values in product(*axes)]
    random.Random(arguments.seed).shuffle(found)
    return found


def work(asked: Sequence[Job], contenders: Contenders, timings: Timings, prepare_only: bool) -> Iterator[str]:
    """Does what is left of the jobs, one step at a time: yields what it is about to do."""
    for job in dict.fromkeys(replace(j, layout="dense") for j in asked):
        if contenders.missing(job):
            yield f"making {_told(job)}"
            contenders.prepare(job)
    for job in () if prepare_only else asked:
        known = contenders.known(job)
        if timings.known(job, known) is None:
            yield f"timing {_told(job)}, {job.layout}"
            timings.time(job, known)


def _told(job: Job) -> str:
    return f"{job.pipeline}, {job.isa}, {job.compiler}, threads: {job.threads}"


def finish(steps: Iterator[str], limit_s: float, clock: Callable[[], float] = time.monotonic) -> bool:
    """Takes the steps until the time is over; whether all were taken."""
    end = clock() + limit_s
    for step in steps:
        if clock() > end:
            return False
        report.progress(step)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.everywhere", description="Where `default` loses.")
    parser.add_argument("--pipelines", nargs="*", default=list(pipelines.names()), metavar="NAME[@WxH]|FILE")
    parser.add_argument("--drawn", type=int, default=0, metavar="N", help="so many random pipelines of real size")
    parser.add_argument("--seed", type=int, default=0, help="of the first of them, and of the order of all")
    parser.add_argument("--isa", nargs="+", default=list(instruction_sets()), choices=instruction_sets())
    parser.add_argument("--compilers", nargs="+", default=list(COMPILERS), choices=COMPILERS)
    parser.add_argument("--threads", nargs="+", type=int, default=[2, 1])
    parser.add_argument("--layouts", nargs="+", default=["dense"], choices=list(LAYOUTS))
    parser.add_argument(
        "--platform",
        type=Path,
        metavar="FILE",
        help="a description of this machine, for what was measured on first use",
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument(
        "--limit-seconds", type=float, default=float("inf"), metavar="S", help="begin nothing after that"
    )
    parser.add_argument("--prepare", action="store_true", help="schedule and compile, time nothing")
    parser.add_argument("--report", action="store_true", help="what is known so far, and do nothing")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR")
    arguments = parser.parse_args()
    given = None if arguments.platform is None else CpuPlatform.of(platforms.load_text(arguments.platform.read_bytes()))
    contenders, timings = Contenders(arguments.output, given), Timings(arguments.output, arguments.rounds)
    asked = jobs(arguments)
    done = arguments.report or finish(work(asked, contenders, timings, arguments.prepare), arguments.limit_seconds)
    if arguments.prepare:
        sys.exit(0 if done else UNFINISHED)
    found = [findings.finding(asdict(j), known := contenders.known(j), timings.known(j, known)) for j in asked]
    print(findings.tables(found))
    missed = any(f.missed for f in found) or findings.slow_builds(found)
    sys.exit(1 if missed else UNFINISHED if any(f.left for f in found) else 0)


if __name__ == "__main__":
    main()
