"""Ours against the peers: the same pipeline, the same data, the same timing loop, in one run.

    python -m benchmarks.compare [--pipelines blur harris ...] [--peers Mullapudi2016 ...] [--threads 2 1]
                                 [--isa avx512 avx2 ...] [--compilers gcc clang] [--rounds 15] [--method default]
                                 [--platform FILE] [--limit 120] [--json FILE]

Each build (an instruction set, a compiler of our C, a number of threads) is a run of its own. Halide compiles for the
same instruction set.

`ratio` is our time over the peer's, the median over the rounds: below 1 we are faster.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks import contest, halide_peers, machine, report
from benchmarks.bound import bound, rates
from benchmarks.builds import COMPILERS, NATIVE, instruction_sets, isa_of, machine_of
from benchmarks.contest import Entry, Result
from benchmarks.documents import pipeline_of
from benchmarks.problem import Problem, at_estimates
from benchmarks.python_peers import PEERS as PYTHON_PEERS
from benchmarks.python_peers import supports
from benchmarks.summary import AT_ROOT, OURS, PAPER, TUNED, against_schedulers, build_name, summary
from benchmarks.summary import table as summary_table
from tilesmith.app.profiler import tuning
from tilesmith.app.runtime.build import BuiltLibrary, build
from tilesmith.platforms import CpuPlatform, load_text, to_document
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.loopnest import to_text
from tilesmith.scheduler.compiler import Options, compile_pipeline, generate
from tilesmith.scheduler.ir.pipeline.arguments import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import methods, root_schedule

PIPELINES = (
    "blur", "unsharp", "harris", "interpolate", "bilateral_grid", "camera_pipe", "nl_means", "max_filter",
    "local_laplacian", "lens_blur", "lens_blur@768x1280", "pyramid_blend", "machado_blur", "machado_blur@10240x4320",
    "machado_interpolation", "gaussian3x3", "sobel", "laplacian_sharpen", "harris@4256x2832", "blur@10240x4320",
)  # fmt: skip
PAPER_METHOD = "taco2019"
METHOD = methods()[0]
"""The method that is compared: the best there is. The method of the paper takes part beside it."""
LIMIT_S = 120.0
"""Seconds that a peer has to be scheduled and compiled in. One that was made before, by `halide_peers`, takes part
whatever it took."""
PEERS = (PAPER, AT_ROOT, *halide_peers.METHODS, *halide_peers.HAND_WRITTEN, *PYTHON_PEERS)
SHIPPED = ":shipped"
"""After the name of a peer of Halide's: it allocates as Halide's runtime does, not as our libraries do."""
KNOWN = (*PEERS, TUNED, *(f"{name}{SHIPPED}" for name in (*halide_peers.METHODS, *halide_peers.HAND_WRITTEN)))
"""All who can take part. To tune takes most of a minute, and is done only where it is asked for."""
TRIED = 8
"""Candidates that are timed to tune."""


def ours(problem: Problem, method: str, platform: CpuPlatform, name: str = OURS) -> Entry:
    """Our library for `platform`, scheduled and compiled now (the objects are cached by content)."""
    compiled = compile_pipeline(problem.pipeline, platform, Options(method=method), time.perf_counter)
    return _entry(
        name, problem.pipeline, compiled.source, platform, compiled.schedule, sum(compiled.timings_ms.values())
    )


def tuned(problem: Problem, method: str, platform: CpuPlatform) -> Entry:
    """The fastest of the best candidates, timed on the data of the contest before it."""
    pipeline, started = problem.pipeline, time.perf_counter()
    found = compile_pipeline(pipeline, platform, Options(method=method), time.perf_counter, TRIED).candidates
    contenders = [
        tuning.Contender(n, float(c.predicted.total), partial(generate, pipeline, c.schedule, platform))
        for n, c in enumerate(found, start=1)
    ]
    inputs = {n: Image(a, tuple(low for low, _ in problem.input_regions[n])) for n, a in problem.inputs.items()}
    called = tuning.Arguments(pipeline, inputs, problem.params, problem.output_regions, platform.threads)
    best = tuning.tune(contenders, called, lambda source: _built(source, platform)).chosen
    schedule, ms = found[best - 1].schedule, 1e3 * (time.perf_counter() - started)
    entry = _entry(TUNED, pipeline, generate(pipeline, schedule, platform), platform, schedule, ms)
    return replace(entry, about={**entry.about, "candidate": best})


def at_root(problem: Problem, platform: CpuPlatform) -> Entry:
    """Our library with every stage computed alone, in memory: what scheduling is worth."""
    schedule = root_schedule(problem.pipeline, platform)
    source = generate(problem.pipeline, schedule, platform)
    return _entry(AT_ROOT, problem.pipeline, source, platform, schedule, None)


def _entry(
    name: str, pipeline: Pipeline, source: CSource, platform: CpuPlatform, schedule: Schedule, schedule_ms: float | None
) -> Entry:
    library = _built(source, platform)
    about = {
        "schedule_ms": schedule_ms,
        "compile_ms": library.seconds * 1e3,
        "schedule": to_text(rewrite(pipeline, schedule)),
        "degraded": schedule.degraded,
    }
    return Entry(name, "tilesmith", str(library.path), source.entry, about)


def _built(source: CSource, platform: CpuPlatform) -> BuiltLibrary:
    return build(source, platform, contest.BUILD / "ours", timeout_s=300)


def entries(
    problem: Problem, peers: Sequence[str], method: str, platform: CpuPlatform, limit_s: float = LIMIT_S
) -> tuple[list[Entry], list[Result]]:
    """The contenders that can take part, ours first, and those that cannot, with the reason."""
    able: list[Entry] = []
    unable: list[Result] = []
    own: dict[str, Callable[[], Entry]] = {
        OURS: lambda: ours(problem, method, platform),
        PAPER: lambda: ours(problem, PAPER_METHOD, platform, PAPER),
        AT_ROOT: lambda: at_root(problem, platform),
        TUNED: lambda: tuned(problem, method, platform),
    }
    for name in (OURS, *peers):
        if name in own:
            if name != PAPER or method != PAPER_METHOD:
                try:
                    able.append(own[name]())
                except Exception as e:  # a defect of ours must not take the figures of all others with it
                    report.progress(traceback.format_exc())
                    unable.append(Result(name, error=f"{type(e).__name__}: {e}"))
            continue
        if name in PYTHON_PEERS:
            if supports(name, problem.pipeline.name):
                able.append(Entry(name, name))
            continue
        scheduler = name.removesuffix(SHIPPED)
        if problem.pipeline.name not in halide_peers.HAND_WRITTEN.get(scheduler, (problem.pipeline.name,)):
            continue
        try:
            peer = halide_peers.build(problem.document, scheduler, platform.threads, limit_s, isa=isa_of(platform))
        except halide_peers.PeerError as e:
            unable.append(Result(name, error=str(e)))
            continue
        searched = None if scheduler in halide_peers.HAND_WRITTEN else peer.schedule_ms
        about = {"schedule_ms": searched, "compile_ms": peer.compile_ms, "schedule": peer.source}
        able.append(Entry(name, "halide", peer.library, peer.symbol, about, keeps=not name.endswith(SHIPPED)))
    return able, unable


def compare(
    name: str, peers: Sequence[str], method: str, platform: CpuPlatform, rounds: int, limit_s: float = LIMIT_S
) -> dict[str, Any]:
    """One pipeline's contest as data: what was measured, in milliseconds, and the ratios."""
    problem = replace(at_estimates(pipeline_of(name)), document=name)
    able, unable = entries(problem, peers, method, platform, limit_s)
    results = contest.run(problem, able, platform.threads, rounds) + unable
    results.sort(key=lambda r: r.name != OURS)  # first also where it failed
    least = bound(problem, platform.threads)
    return {
        "pipeline": name if "@" in name else problem.pipeline.name,
        "moved_bytes": problem.moved_bytes,
        "operations": least.operations,
        "bound_ms": least.ms,
        "bound_by": least.by,
        "bound_bytes_ms": least.bytes_ms,
        "bound_operations_ms": least.operations_ms,
        "contenders": [contender(r, results[0], least.ms) for r in results],
    }


def contender(result: Result, first: Result, bound_ms: float) -> dict[str, Any]:
    pairs = zip(first.figures, result.figures, strict=bool(first.figures and result.figures))
    ratios = [a / b for a, b in pairs if a is not None and b is not None]
    return {
        "name": result.name,
        "error": result.error,
        "best_ms": result.best_ms,
        "median_ms": result.median_ms,
        "ratio": statistics.median(ratios) if ratios else None,
        "ratios": ratios,
        "share_of_bound": bound_ms / result.best_ms if result.best_ms else None,
        "largest_relative_difference": result.largest_error,
        "rounds_ms": result.figures,
        "disturbed_rounds": result.disturbed,
        "calls_in_a_round": result.calls,
        **result.about,
    }


def table(contests: Sequence[dict[str, Any]]) -> str:
    rows = []
    for c in contests:
        for k, r in enumerate(c["contenders"]):
            rows.append(
                [
                    c["pipeline"] if k == 0 else "",
                    r["name"],
                    report.number(r["best_ms"]),
                    report.number(r["median_ms"]),
                    "" if k == 0 else report.number(r["ratio"]),
                    report.number(r["share_of_bound"]),
                    report.number(r.get("schedule_ms")),
                    r["error"] or ("DEGRADED" if r.get("degraded") else ""),
                ]
            )
    head = ["pipeline", "contender", "best ms", "median ms", "ours/its", "of bound", "scheduled in ms", ""]
    return report.table(head, rows)


def losses(contests: Sequence[dict[str, Any]], against: Collection[str] | None = None, least: float = 1.0) -> list[str]:
    """A line for every peer (of those named) to which our ratio is `least` or more, and for every failure of ours."""
    found = []
    for c in contests:
        mine, *others = c["contenders"]
        if mine["error"]:
            found.append(f"{c['pipeline']}: ours fails: {mine['error']}")
        for r in others:
            if against is not None and r["name"] not in against:
                continue
            if r["ratio"] is not None and r["ratio"] >= least:
                best = f"best {report.number(mine['best_ms'])} ms to its {report.number(r['best_ms'])}"
                found.append(f"{c['pipeline']}: {r['name']} is as fast or faster: ratio {r['ratio']:.2f}, {best}")
    return found


def run(
    pipelines: Sequence[str],
    peers: Sequence[str],
    method: str,
    platform: CpuPlatform,
    rounds: int = 15,
    limit_s: float = LIMIT_S,
) -> dict[str, Any]:
    """All contests of one build, with the machine they ran on and what it was taken for."""
    threads = platform.threads
    build = {"isa": isa_of(platform), "compiler": platform.compiler.command, "threads": threads}
    contests = []
    for name in pipelines:
        report.progress(f"compare: {name}, {build_name(build)}")
        contests.append(compare(name, peers, method, platform, rounds, limit_s))
    return {
        "machine": machine.describe(),
        **build,
        "platform": to_document(platform),
        "rounds": rounds,
        "method": method,
        "copy_gb_s": machine.copy_gb_s(threads),
        "peak_gop_s": {t: threads * rate for t, rate in rates().items()},
        "contests": contests,
        "summary": summary(contests, threads),
        "losses": losses(contests),
    }


def show(figures: dict[str, Any]) -> None:
    """The tables of one run, and what to know of them."""
    print(f"{build_name(figures)}, method: {figures['method']}\n")
    print(table(figures["contests"]), end="\n\n")
    print(summary_table(figures["summary"]))
    peak = ", ".join(f"{t} {rate:.0f}" for t, rate in figures["peak_gop_s"].items())
    copies = f"{figures['copy_gb_s']:.0f} GB/s"
    print(
        "\nof bound: the least time over the best time. The least time is that of a plain copy of as many bytes as"
        f" inputs and outputs have (this machine copies at {copies} beyond its caches), or that of"
        f" the document's operations at the highest rate measured (10^9 a second: {peak}), whichever is longer"
        "\ncarried by: our ratio to that autoscheduler in this run, times its time over the best of all in a table"
        " measured earlier on another machine"
    )
    disturbed = {c["pipeline"]: c["contenders"][0]["disturbed_rounds"] for c in figures["contests"]}
    if any(disturbed.values()):
        named = ", ".join(f"{name} {n}" for name, n in disturbed.items() if n)
        print(f"disturbed by other programs, of {figures['rounds']} rounds: {named}")
    for line in figures["losses"]:
        print(line)
    print(flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that a comparison has, here and in `python -m benchmarks`."""
    parser.add_argument("--pipelines", nargs="+", default=list(PIPELINES), metavar="NAME[@WxH]|FILE")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), metavar="PEER")
    parser.add_argument("--method", default=METHOD, choices=methods())
    parser.add_argument(
        "--isa", nargs="+", default=[NATIVE], choices=instruction_sets(), help="all that the machine has, if not given"
    )
    parser.add_argument("--compilers", nargs="+", default=[host().compiler.command], choices=COMPILERS)
    parser.add_argument("--threads", nargs="+", type=int, default=list(dict.fromkeys((host().threads, 1))))
    parser.add_argument(
        "--platform",
        type=Path,
        metavar="FILE",
        help="the host as a calibration describes it, for the builds with its vectors",
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--limit", type=float, default=LIMIT_S, metavar="SECONDS", help="to make a peer in")


def runs(arguments: argparse.Namespace, rounds: int, peers: Sequence[str]) -> list[dict[str, Any]]:
    """The comparison in every build asked for, its tables shown as they are made; last, a line for each."""
    given = None if arguments.platform is None else CpuPlatform.of(load_text(arguments.platform.read_bytes()))
    found = []
    for isa, compiler, threads in product(arguments.isa, arguments.compilers, arguments.threads):
        platform = machine_of(isa, compiler, threads, given)
        found.append(run(arguments.pipelines, peers, arguments.method, platform, rounds, arguments.limit))
        show(found[-1])
    print(against_schedulers(found), end="\n\n", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Ours against Halide's autoschedulers, OpenCV and NumPy.")
    add_arguments(parser)
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    unknown = set(arguments.peers) - set(KNOWN)
    if unknown:
        parser.error(f"no such peer: {', '.join(sorted(unknown))}")
    found = runs(arguments, arguments.rounds, arguments.peers)
    report.write(arguments.json, {"runs": found})
    sys.exit(1 if any(c["contenders"][0]["error"] for r in found for c in r["contests"]) else 0)


if __name__ == "__main__":
    main()
