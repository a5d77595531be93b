"""--tune: the best candidates of a search timed on this machine, and the fastest kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tilesmith.app.cli.report import progress
from tilesmith.app.profiler.tuning import Arguments, Contender, tune
from tilesmith.app.runtime import estimates
from tilesmith.app.runtime.build import build
from tilesmith.app.runtime.build_cache import CACHE_BYTES, COMPILE_TIMEOUT_S, cache_dir
from tilesmith.app.runtime.run import cpus
from tilesmith.scheduler.compiler import generate
from tilesmith.scheduler.ir.pipeline.arguments import Scalar

if TYPE_CHECKING:
    from tilesmith.app.cli.result import Result


def refined(result: Result, count: int, params: Mapping[str, Scalar]) -> Result:
    """The result with the fastest of its first `count` candidates, timed on random inputs of the estimated sizes."""
    pipeline, platform = result.pipeline, result.platform
    inputs, regions = estimates.images(pipeline, params), estimates.output_regions(pipeline)
    contenders = [
        Contender(n, float(c.predicted.total), partial(generate, pipeline, c.schedule, platform))
        for n, c in enumerate(result.candidates[:count], start=1)
    ]
    with progress(f"timing {len(contenders)} candidates of {pipeline.name}"):
        tuned = tune(
            contenders,
            Arguments(pipeline, inputs, params, regions, min(platform.threads, cpus())),
            lambda source: build(source, platform, cache_dir(), COMPILE_TIMEOUT_S, CACHE_BYTES),
        )
    chosen = result.candidates[tuned.chosen - 1]
    return replace(
        result,
        plan=chosen.plan,
        predicted=chosen.predicted,
        source=result.source if tuned.chosen == 1 else generate(pipeline, chosen.schedule, platform),
        timings_ms={**result.timings_ms, "tune": 1e3 * tuned.seconds},
        tuned=tuned,
    )
