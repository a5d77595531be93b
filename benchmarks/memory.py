"""Peak memory of a run against inputs, outputs and the buffers that the schedule declares, at the estimates.

The program that runs the pipeline and its libraries take some memory before the first image; that is told apart.

python -m benchmarks.memory [--json FILE]
"""

from __future__ import annotations

from benchmarks import contest
from benchmarks.figures import Figure, main
from benchmarks.problem import at_estimates
from tilesmith.scheduler import pipelines

REPEATS = 3
LIMIT = 1.2


def measure(repeats: int = REPEATS) -> list[Figure]:
    """One figure per shipped pipeline: the ratio."""
    from tilesmith.app.runtime.build import build
    from tilesmith.app.runtime.run import run
    from tilesmith.platforms.cpu.detect import host
    from tilesmith.scheduler.compiler import Options, compile_pipeline
    from tilesmith.scheduler.interpreter.interpreter import Image

    platform = host()
    found = []
    for name in pipelines.names():
        problem = at_estimates(pipelines.load(name))
        compiled = compile_pipeline(problem.pipeline, platform, Options())
        library = build(compiled.source, platform, contest.BUILD / "ours", timeout_s=300)
        images = {n: Image(a, tuple(lo for lo, _ in problem.input_regions[n])) for n, a in problem.inputs.items()}
        result = run(
            library,
            problem.pipeline,
            images,
            problem.params,
            problem.output_regions,
            threads=platform.threads,
            repeat=repeats,
        )
        declared = problem.moved_bytes + sum(size for _, size in compiled.source.buffers)
        used, start = result.peak_rss_bytes - result.start_rss_bytes, result.start_rss_bytes
        note = f"{used / 2**20:.1f} MiB of {declared / 2**20:.1f} declared, and {start / 2**20:.1f} at the start"
        found.append(Figure(f"peak memory, {name}", used / declared, "x", LIMIT, note=note))
    return found


if __name__ == "__main__":
    main("Peak memory of runs.", measure, REPEATS)
