"""Ours against the peers: the same pipeline, the same data, the same timing loop, in one run.

    python -m benchmarks.compare [--pipelines blur harris ...] [--peers Mullapudi2016 ...] [--threads 2] [--rounds 15]
                                 [--method taco2019] [--limit 120] [--json FILE]

`ratio` is our time over the peer's, the median over the rounds: below 1 we are faster.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from app.workers.compile import build
from benchmarks import contest, halide_peers, machine, report
from benchmarks.contest import Entry, Result
from benchmarks.documents import pipeline_of
from benchmarks.problem import Problem, at_estimates
from benchmarks.python_peers import PEERS as PYTHON_PEERS
from benchmarks.python_peers import supports
from platforms.detect import host
from platforms.model import CpuPlatform
from scheduler.compile import Options, compile_pipeline, generate
from scheduler.emit.csource import CSource
from scheduler.emit.loopnest import to_text
from scheduler.lang.pipeline import Pipeline
from scheduler.schedule import Schedule
from scheduler.search import root_schedule

PIPELINES = (
    "blur", "unsharp", "harris", "interpolate", "bilateral_grid", "camera_pipe", "nl_means", "max_filter",
    "local_laplacian", "lens_blur", "lens_blur@768x1280", "pyramid_blend", "machado_blur", "machado_blur@10240x4320",
    "machado_interpolation", "gaussian3x3", "sobel", "laplacian_sharpen",
)  # fmt: skip
OURS = "tilesmith"
AT_ROOT = "tilesmith at root"
"""The same code generator with every stage computed alone, in memory: what scheduling is worth."""
LIMIT_S = 120.0
"""What a peer has to be scheduled and compiled in. One that was made before, by `halide_peers`, takes part whatever
it took."""
PEERS = (AT_ROOT, *halide_peers.METHODS, *halide_peers.HAND_WRITTEN, *PYTHON_PEERS)


def ours(problem: Problem, method: str, threads: int) -> Entry:
    """Our library for the host, scheduled and compiled now (the objects are cached by content)."""
    platform = _host(threads)
    compiled = compile_pipeline(problem.pipeline, platform, Options(method=method), time.perf_counter)
    return _entry(
        OURS, problem.pipeline, compiled.source, platform, compiled.schedule, sum(compiled.timings_ms.values())
    )


def at_root(problem: Problem, threads: int) -> Entry:
    """Our library with every stage at root."""
    platform = _host(threads)
    schedule = root_schedule(problem.pipeline, platform)
    source = generate(problem.pipeline, schedule, platform)
    return _entry(AT_ROOT, problem.pipeline, source, platform, schedule, None)


def _host(threads: int) -> CpuPlatform:
    return host().model_copy(update={"threads": threads})


def _entry(
    name: str, pipeline: Pipeline, source: CSource, platform: CpuPlatform, schedule: Schedule, schedule_ms: float | None
) -> Entry:
    library = build(source, platform, contest.BUILD / "ours", timeout_s=300)
    about = {
        "schedule_ms": schedule_ms,
        "compile_ms": library.seconds * 1e3,
        "schedule": to_text(pipeline, schedule),
        "degraded": schedule.degraded,
    }
    return Entry(name, "tilesmith", str(library.path), source.entry, about)


def entries(
    problem: Problem, peers: Sequence[str], method: str, threads: int, limit_s: float = LIMIT_S
) -> tuple[list[Entry], list[Result]]:
    """Those who can take part, ours first, and those who cannot, with the reason."""
    able, unable = [ours(problem, method, threads)], []
    for name in peers:
        if name == AT_ROOT:
            able.append(at_root(problem, threads))
            continue
        if name in PYTHON_PEERS:
            if supports(name, problem.pipeline.name):
                able.append(Entry(name, name))
            continue
        if problem.pipeline.name not in halide_peers.HAND_WRITTEN.get(name, (problem.pipeline.name,)):
            continue
        try:
            peer = halide_peers.build(problem.document, name, threads, limit_s)
        except halide_peers.PeerError as e:
            unable.append(Result(name, error=str(e)))
            continue
        about = {"schedule_ms": peer.schedule_ms, "compile_ms": peer.compile_ms, "schedule": peer.source}
        able.append(Entry(name, "halide", peer.library, peer.symbol, about))
    return able, unable


def compare(name: str, peers: Sequence[str], method: str, threads: int, rounds: int, limit_s: float = LIMIT_S) -> dict:
    """One pipeline's contest as data: what was measured, in milliseconds, and the ratios."""
    problem = replace(at_estimates(pipeline_of(name)), document=name)
    able, unable = entries(problem, peers, method, threads, limit_s)
    results = contest.run(problem, able, threads, rounds) + unable
    bound_ms = machine.copy_ms(threads, problem.moved_bytes)
    return {
        "pipeline": name if "@" in name else problem.pipeline.name,
        "moved_bytes": problem.moved_bytes,
        "bound_ms": bound_ms,
        "contenders": [contender(r, results[0], bound_ms) for r in results],
    }


def contender(result: Result, first: Result, bound_ms: float) -> dict:
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


def table(contests: Sequence[dict]) -> str:
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


def losses(contests: Sequence[dict], against: Collection[str] | None = None) -> list[str]:
    """A line for every peer (of those named) that is as fast as we are or faster, and for every failure of ours."""
    found = []
    for c in contests:
        mine, *others = c["contenders"]
        if mine["error"]:
            found.append(f"{c['pipeline']}: ours fails: {mine['error']}")
        for r in others:
            if against is not None and r["name"] not in against:
                continue
            if r["ratio"] is not None and r["ratio"] >= 1:
                best = f"best {report.number(mine['best_ms'])} ms to its {report.number(r['best_ms'])}"
                found.append(f"{c['pipeline']}: {r['name']} is as fast or faster: ratio {r['ratio']:.2f}, {best}")
    return found


def run(
    pipelines: Sequence[str],
    peers: Sequence[str],
    method: str = "taco2019",
    threads: int = 2,
    rounds: int = 15,
    limit_s: float = LIMIT_S,
) -> dict:
    """All contests, with the machine they ran on."""
    contests = []
    for name in pipelines:
        report.progress(f"compare: {name}")
        contests.append(compare(name, peers, method, threads, rounds, limit_s))
    return {
        "machine": machine.describe(),
        "threads": threads,
        "rounds": rounds,
        "method": method,
        "copy_gb_s": machine.copy_gb_s(threads),
        "contests": contests,
        "losses": losses(contests),
    }


def show(figures: dict) -> None:
    print(table(figures["contests"]))
    print(
        "\nof bound: the time of a plain copy that moves as many bytes as inputs and outputs have, over the best time;"
        f" this machine copies at {figures['copy_gb_s']:.0f} GB/s beyond its caches"
    )
    disturbed = {c["pipeline"]: c["contenders"][0]["disturbed_rounds"] for c in figures["contests"]}
    if any(disturbed.values()):
        named = ", ".join(f"{name} {n}" for name, n in disturbed.items() if n)
        print(f"disturbed by other programs, of {figures['rounds']} rounds: {named}")
    for line in figures["losses"]:
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description="Ours against Halide's autoschedulers, OpenCV and NumPy.")
    parser.add_argument("--pipelines", nargs="+", default=list(PIPELINES), metavar="NAME[@WxH]|FILE")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), metavar="PEER")
    parser.add_argument("--method", default="taco2019")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--limit", type=float, default=LIMIT_S, metavar="SECONDS", help="to make a peer in")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    unknown = set(arguments.peers) - set(PEERS)
    if unknown:
        parser.error(f"no such peer: {', '.join(sorted(unknown))}")
    figures = run(
        arguments.pipelines, arguments.peers, arguments.method, arguments.threads, arguments.rounds, arguments.limit
    )
    show(figures)
    report.write(arguments.json, figures)
    sys.exit(1 if any(c["contenders"][0]["error"] for c in figures["contests"]) else 0)


if __name__ == "__main__":
    main()
