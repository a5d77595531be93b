"""`bench`: a pipeline's code against what else computes the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import typer

from tilesmith.app.bench import contest
from tilesmith.app.bench.agreement import ContenderError
from tilesmith.app.cli import schedules
from tilesmith.app.cli.arguments import parse
from tilesmith.app.cli.report import UsageError, print_json, progress
from tilesmith.app.cli.sources import load_pipeline, load_platform

if TYPE_CHECKING:
    from tilesmith.app.bench.contest import Contender, Result


@dataclass(frozen=True, slots=True)
class Peers:
    """The options that say who takes part, and how often."""

    against: list[str]
    halide: list[str]
    threads: int | None
    rounds: int


def bench(request: schedules.Request, params: list[str], peers: Peers, as_json: bool) -> None:
    """Times every contender in turns on images of the estimated size, and prints medians, ratios and who is missing."""
    from tilesmith.app.bench import peers as contenders
    from tilesmith.app.bench.problem import at_estimates
    from tilesmith.app.runtime.run import cpus

    unknown = [m for m in peers.halide if m not in contenders.HALIDE_METHODS]
    if unknown:
        raise UsageError((f"--halide {unknown[0]}: one of {', '.join(contenders.HALIDE_METHODS)}", None))
    threads = peers.threads or cpus()
    # Waiting threads go to sleep soon, as in `run`: who has the next turn is to have the processors.
    os.environ |= {"HL_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads), "GOMP_SPINCOUNT": "20000"}
    schedules.check(request)
    pipeline = load_pipeline(request.doc)
    given = parse(pipeline, [], [], params, [], estimates=True).params
    platform = load_platform(request.platform, request.calibrate)
    problem = at_estimates(pipeline, given)
    options = schedules.options_of(replace(request, params=given), pipeline, platform)
    with progress(f"compiling {pipeline.name}"):
        taking = [contenders.tilesmith(problem, platform, options, threads)]
    absent: dict[str, str] = {}

    def add(name: str, make: Callable[[], Contender]) -> None:
        try:
            with progress(f"preparing {name}"):
                taking.append(make())
        except (contest.Absent, ContenderError) as error:
            absent[name] = str(error)

    add("naive C", lambda: contenders.naive(problem, platform, threads))
    add("NumPy", lambda: contenders.numpy(problem))
    add("OpenCV", lambda: contenders.opencv(problem, threads))
    for method in peers.halide:
        add(f"Halide {method}", lambda method=method: contenders.halide(problem, method, threads))  # type: ignore[misc]
    for spec in peers.against:
        add(spec, lambda spec=spec: contenders.own(problem, spec))  # type: ignore[misc]
    with progress("timing"):
        results = contest.hold(taking, peers.rounds, problem.cut)
    absent |= {r.name: r.error for r in results if r.error is not None}
    _tell(pipeline.name, platform.name, threads, results, absent, as_json)


def _tell(
    pipeline: str, platform: str, threads: int, results: tuple[Result, ...], absent: dict[str, str], as_json: bool
) -> None:
    mine = results[0]
    took = [r for r in results if r.error is None]
    if as_json:
        rows = [{**asdict(r), "median_ms": r.median_ms, "ratio": asdict(contest.ratio(r, mine))} for r in took]
        print_json(
            {"pipeline": pipeline, "platform": platform, "threads": threads, "contenders": rows, "absent": absent}
        )
        return
    typer.echo(f"{pipeline} on {platform}, {threads} threads, {len(mine.rounds_ms)} rounds in turns")
    width = max(len(r.name) for r in took)
    typer.echo(f"  {'':{width}}  {'median':>11}  {'ratio':>8}  {'95 % interval':>17}")
    for result in took:
        ratio = contest.ratio(result, mine)
        interval = "" if result is mine else f"{ratio.low:.3g} .. {ratio.high:.3g}"
        figures = f"{result.median_ms:8.3f} ms  {ratio.median:8.3g}  {interval:>17}"
        typer.echo(f"  {result.name:{width}}  {figures}  {result.about}")
    for name, reason in absent.items():
        typer.echo(f"  not compared: {name}: {reason}")
