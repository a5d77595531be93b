"""Random pipelines under random schedules, compiled, called and held to the interpreter, in processes of their own:
a crash is a finding, not the end of the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from support.machines import machine
from support.native import Region, build, call, source_of
from support.random_pipelines import disagreement, random_inputs, random_params, random_pipeline, random_regions
from support.random_schedules import random_schedule
from support.random_stencils import random_stencils, sliding_schedule

from scheduler.analysis.bounds import required_regions
from scheduler.errors import TilesmithError
from scheduler.lang.document import load
from scheduler.lang.interpret import Image, interpret
from scheduler.lang.pipeline import Pipeline
from scheduler.legality import check
from scheduler.schedule import Schedule

LARGEST_CODE = 500_000
"""Characters. Inlined into each other, stencils of stencils grow beyond what a compiler does in seconds."""

Values = Mapping[str, int | float | bool]


@dataclass(frozen=True)
class Case:
    """A pipeline, a schedule, and data for one call."""

    pipeline: Pipeline
    schedule: Schedule
    params: Values
    regions: Mapping[str, Region]
    inputs: Mapping[str, Image]


def random_case(seed: int) -> Case:
    """The same case for the same seed: of odd seeds stencils that slide, of even ones whatever the language has.
    Inputs without boundary have exactly the region that is required."""
    if seed % 2:
        pipeline = load(random_stencils(seed))
        schedule = sliding_schedule(pipeline, seed)
    else:
        pipeline = load(random_pipeline(seed))
        schedule = random_schedule(pipeline, seed, registers=seed % 4 == 0)
    params, regions = random_params(pipeline, seed), random_regions(pipeline, seed)
    some = random_inputs(pipeline, seed, regions, params)
    places = {n: tuple(zip(i.min, i.array.shape[::-1], strict=True)) for n, i in some.items()}
    required = required_regions(pipeline, regions, params, places)
    sizes = {i.name: required[i.name] for i in pipeline.inputs if i.boundary is None and i.name in required}
    inputs = random_inputs(pipeline, seed, regions, params, sizes)
    return Case(pipeline, schedule, params, regions, inputs)


def judge(case: Case, flags: Sequence[str], compiler: str = "gcc") -> str | None:
    """What the generated code does wrong."""
    check(case.pipeline, case.schedule)
    expected = interpret(case.pipeline, case.inputs, case.params, case.regions)
    source = source_of(case.pipeline, case.schedule, machine())
    if len(source.code) > LARGEST_CODE:
        return None
    library = build(source, tuple(flags), compiler)
    status, got = call(library, source, case.pipeline, case.inputs, case.params, case.regions)
    if status:
        return f"status {status}"
    for name, arrays in expected.items():
        for n, (a, b) in enumerate(zip(got[name], arrays, strict=True)):
            wrong = disagreement(a, b)
            if wrong:
                return f"{name}[{n}]: {wrong}"
    return None


def judged_in_children(
    seeds: range, flags: Sequence[str], compiler: str = "gcc", env: Mapping[str, str] | None = None
) -> dict[int, str]:
    """What is wrong, by seed: nothing, if all is well. Two children at a time, one where pytest itself runs several."""
    jobs = 1 if "PYTEST_XDIST_WORKER" in os.environ else 2
    with ThreadPoolExecutor(jobs) as pool:
        parts = [range(seeds.start + n, seeds.stop, jobs) for n in range(jobs)]
        found = pool.map(lambda part: _judged(part, flags, compiler, dict(env or {})), parts)
        return {seed: wrong for part in found for seed, wrong in part.items()}


def _judged(seeds: range, flags: Sequence[str], compiler: str, env: dict[str, str]) -> dict[int, str]:
    wrong: dict[int, str] = {}
    while seeds:
        command = [sys.executable, __file__, str(seeds.start), str(seeds.stop), str(seeds.step), compiler, *flags]
        # no address space of more than 8 GiB would be fair to AddressSanitizer, so time is the only limit
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=600, env={**os.environ, **env}
        )
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        wrong.update((line["seed"], line["wrong"]) for line in lines if line.get("wrong"))
        if done.returncode == 0:
            break
        last = lines[-1]["seed"] if lines else seeds.start
        wrong[last] = f"died with {done.returncode}: {done.stderr[-3000:]}"
        seeds = range(last + seeds.step, seeds.stop, seeds.step)
    return wrong


def main(arguments: Sequence[str]) -> None:
    """`start stop step compiler flags...`: a line of JSON before and after each seed."""
    start, stop, step = (int(a) for a in arguments[:3])
    warnings.simplefilter("ignore")
    for seed in range(start, stop, step):
        print(json.dumps({"seed": seed}), flush=True)
        try:
            with np.errstate(all="ignore"):
                wrong = judge(random_case(seed), arguments[4:], arguments[3])
        except (TilesmithError, AssertionError, LookupError, ValueError, TypeError, subprocess.SubprocessError) as e:
            wrong = f"{type(e).__name__}: {str(e)[-2000:]}"
        print(json.dumps({"seed": seed, "wrong": wrong}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
