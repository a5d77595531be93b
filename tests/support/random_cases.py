"""Random pipelines under random schedules, compiled, called and held to the interpreter, in processes of their own:
a crash is a finding, not the end of the run."""

from __future__ import annotations

import faulthandler
import json
import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from random import Random

import numpy as np

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from support.builds import BUILDS, HOST_BYTES, Build, environment
from support.calls import SECONDS, Call, Outputs, Region
from support.children import called
from support.machines import machine
from support.native import compiled, source_of_plan
from support.random_pipelines import disagreement, random_inputs, random_params, random_pipeline, random_regions
from support.random_schedules import random_schedule
from support.random_stencils import random_stencils, sliding_schedule
from support.random_updates import random_updates

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.document import from_document
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search import SearchOptions, autoschedule

LARGEST_CODE = 600_000
"""Characters. Inlined into each other, stencils of stencils grow beyond what a compiler does in seconds."""

FAMILIES = (random_updates, random_pipeline, random_stencils, random_updates)
METHODS = ("random", "random", "planned")
Values = Mapping[str, int | float | bool]


WIDTHS = (64, 64, 64, 64, 32, 32, 32, 16, 16, 16, 8, 0)
"""Bytes of the vectors of the machine that a case is for, each as often as it is drawn."""


@dataclass(frozen=True)
class Case:
    """A pipeline, a schedule, and data for one call; the vectors of the machine that it is compiled for."""

    pipeline: Pipeline
    schedule: Schedule
    vector_bytes: int
    params: Values
    regions: Mapping[str, Region]
    inputs: Mapping[str, Image]


class TooLong(Exception):
    """The code is longer than LARGEST_CODE."""


@cache
def random_case(seed: int) -> Case:
    """A random case, the same for the same seed, made once in a process. Four seeds in a row are pipelines of updates,
    of whatever the language has, and stencils that slide; of every twelve, four have a schedule that one of the methods
    makes."""
    make = FAMILIES[seed % len(FAMILIES)]
    pipeline = load(make(seed))
    if METHODS[seed // len(FAMILIES) % len(METHODS)] == "planned":
        schedule = planned_schedule(pipeline, seed)
    elif make is random_stencils:
        schedule = sliding_schedule(pipeline, seed)
    else:
        schedule = random_schedule(pipeline, seed, registers=seed % 8 == 1)
    return case_of(pipeline, schedule, seed)


def planned_schedule(pipeline: Pipeline, seed: int) -> Schedule:
    """A method's, the best or one of the next: for the images as they are, or for large ones, on a machine as it is, or
    on one with tiny caches. So there are tiles and reductions cut into parts."""
    random = Random(seed)
    host = machine(threads=random.choice((1, 2, 8)), vector_bytes=random.choice((16, 32, 64)))
    if random.random() < 0.6:
        caches = tuple(c.model_copy(update={"size_bytes": max(c.size_bytes // 32, 512)}) for c in host.caches)
        host = host.model_copy(update={"caches": caches})
    planned = pipeline
    if random.random() < 0.6:
        sizes = tuple((name, tuple((lo, 50 * n if n > 4 else n) for lo, n in r)) for name, r in pipeline.estimates)
        planned = replace(pipeline, estimates=sizes)
    strict = random.random() < 0.3
    method = random.choice(("taco2019", "default", "default"))
    found = autoschedule(planned, host, SearchOptions(method, strict, top=4)).candidates
    return replace(random.choice(found).schedule, method="planned")


def case_of(pipeline: Pipeline, schedule: Schedule, seed: int) -> Case:
    """A call with random data, on a machine of any width. Inputs without boundary have exactly the region that is
    required."""
    params, regions = random_params(pipeline, seed), random_regions(pipeline, seed)
    regions |= {name: regions[j.stages[0]] for j in schedule.joinings for name in j.stages}
    some = random_inputs(pipeline, seed, regions, params)
    places = {n: tuple(zip(i.min, i.array.shape[::-1], strict=True)) for n, i in some.items()}
    required = required_regions(normalise(pipeline), regions, params, places)
    point = (0, 1)  # of what is not read at all
    sizes = {i.name: required.get(i.name, (point,) * len(i.dims)) for i in pipeline.inputs if i.boundary is None}
    inputs = random_inputs(pipeline, seed, regions, params, sizes)
    vector_bytes = Random(f"the machine of {seed}").choice(WIDTHS)
    return Case(pipeline, schedule, vector_bytes, params, regions, inputs)


def source_of_case(case: Case) -> CSource:
    """The C of a case, whose schedule is legal. Raises TooLong where there is too much of it."""
    plan = rewrite(case.pipeline, case.schedule)
    check(plan)
    source = source_of_plan(plan, machine(vector_bytes=case.vector_bytes))
    if len(source.code) > LARGEST_CODE:
        raise TooLong(f"{len(source.code)} characters of code")
    return source


def _call_of(case: Case, source: CSource, flags: Sequence[str], compiler: str) -> Call | None:
    """The call of a case's code, which is compiled; None where this machine has no such vectors."""
    path = compiled(source, tuple(flags), compiler, case.vector_bytes)
    if case.vector_bytes > HOST_BYTES:
        return None
    return Call(path, source, case.pipeline, case.inputs, case.params, case.regions)


def _interpreted(case: Case) -> Outputs:
    return interpret(case.pipeline, case.inputs, case.params, case.regions)


def _first_failure(got: Outputs, expected: Outputs) -> str | None:
    for name, arrays in expected.items():
        for n, (a, b) in enumerate(zip(got[name], arrays, strict=True)):
            wrong = disagreement(a, b)
            if wrong:
                return f"{name}[{n}]: {wrong}"
    return None


def judge(case: Case, flags: Sequence[str], compiler: str = "gcc") -> str | None:
    """The first failure of the generated code, called in this process; nothing where this machine has no such vectors:
    it is compiled. Raises TooLong as `source_of_case` does."""
    made = _call_of(case, source_of_case(case), flags, compiler)
    if made is None:
        return None
    expected = _interpreted(case)
    status, got = made.made()
    return f"status {status}" if status else _first_failure(got, expected)


@cache
def source_of_seed(seed: int) -> CSource | None:
    """The C of a random case, made once for all builds; None where there is too much of it."""
    try:
        return source_of_case(random_case(seed))
    except TooLong:
        return None


@cache
def _expected_of(seed: int) -> Outputs:
    return _interpreted(random_case(seed))


def judged_in_a_child(seeds: Sequence[int], how: str) -> dict[int, str]:
    """Failures by seed: none, if all is well. Cases, their C and what the interpreter says of them are made here, once
    for all builds; a child calls the code. Of a hundred seeds one may be skipped because its code is too long."""
    build = BUILDS[how]
    calls: dict[int, Call] = {}
    skipped = []
    for seed in seeds:
        try:
            source = source_of_seed(seed)
            if source is None:
                skipped.append(seed)
            elif (made := _call_of(random_case(seed), source, build.flags, build.compiler)) is not None:
                calls[seed] = made
        except Exception as e:
            e.add_note(f"the seed is {seed}")
            raise
    wrong: dict[int, str] = {}
    for seed, got in zip(calls, called(list(calls.values()), build), strict=True):
        with np.errstate(all="ignore"):
            failure = got if isinstance(got, str) else _first_failure(got, _expected_of(seed))
        if failure:
            wrong[seed] = failure
    if len(skipped) > max(1, len(seeds) // 100):
        wrong.update(dict.fromkeys(skipped, "skipped, with too many others: the code is too long"))
    return wrong


@dataclass(frozen=True)
class Verdict:
    """Failures by seed, and the seeds whose code is too long to be compiled."""

    wrong: dict[int, str]
    skipped: tuple[int, ...]


def judged(seeds: range, how: str | Build) -> Verdict:
    """Judges the cases of `seeds` in a process of its own, which makes them, and in another one after each crash."""
    wrong: dict[int, str] = {}
    skipped: list[int] = []
    build_ = BUILDS[how] if isinstance(how, str) else how
    env = {**os.environ, **environment(build_)}
    while seeds:
        numbers = [str(n) for n in (seeds.start, seeds.stop, seeds.step)]
        command = [sys.executable, __file__, *numbers, build_.compiler, *build_.flags]
        # no address space of more than 8 GiB would be fair to AddressSanitizer, so time is the only limit
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        wrong.update((line["seed"], line["wrong"]) for line in lines if line.get("wrong"))
        skipped += [line["seed"] for line in lines if line.get("skipped")]
        if done.returncode == 0:
            break
        last = lines[-1]["seed"] if lines else seeds.start
        wrong[last] = f"died with {done.returncode}: {done.stderr[:3000]}"
        seeds = range(last + seeds.step, seeds.stop, seeds.step)
    return Verdict(wrong, tuple(skipped))


def saved_case(folder: Path) -> Case:
    """The case whose pipeline.json, schedule.json and case.json `make fuzz` has left in `folder`."""
    pipeline = load(json.loads((folder / "pipeline.json").read_text()))
    schedule = from_document(json.loads((folder / "schedule.json").read_text()))
    return case_of(pipeline, schedule, json.loads((folder / "case.json").read_text())["seed"])


def told(case: Callable[[], Case], flags: Sequence[str], compiler: str) -> dict[str, object]:
    """The description of a case, for JSON."""
    try:
        with np.errstate(all="ignore"):
            return {"wrong": judge(case(), flags, compiler)}
    except TooLong:
        return {"skipped": True}
    except Exception as e:  # the end of a process: whatever happens to a case is what is told of it
        return {"wrong": "".join(traceback.format_exception(e))[-3000:]}


def main(arguments: Sequence[str]) -> None:
    """`start stop step compiler flags...`: a line of JSON before and after each seed; or `folder compiler flags...`."""
    warnings.simplefilter("ignore")
    if not arguments[0].isdigit():
        print(json.dumps(told(lambda: saved_case(Path(arguments[0])), arguments[2:], arguments[1]), indent=2))
        return
    for seed in range(*map(int, arguments[:3])):
        print(json.dumps({"seed": seed}), flush=True)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        print(json.dumps({"seed": seed, **told(partial(random_case, seed), arguments[4:], arguments[3])}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
