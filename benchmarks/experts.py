"""Schedules by hand, of the kind that Halide's own apps carry for the pipelines of the same names.

Strips of rows run in parallel; inside a strip the producers slide along, one row at a time, vectorised.
"""

from __future__ import annotations

from collections.abc import Callable

import halide as hl

from benchmarks.to_halide import HalidePipeline

STRIP = 32


def blur(p: HalidePipeline, lanes: int) -> None:
    _rows(p, "blur_y", ["blur_x"], 2 * lanes)


def unsharp(p: HalidePipeline, lanes: int) -> None:
    x, y, c = p.stages["output"].args()
    yo, yi = hl.Var("yo"), hl.Var("yi")
    p.stages["kernel"].compute_root()
    p.stages["output"].split(y, yo, yi, STRIP).vectorize(x, lanes).parallel(yo).reorder(x, c, yi, yo)
    for name in ("gray", "blur_y", "ratio"):
        _slide(p, name, "output", yo, yi, lanes)


def harris(p: HalidePipeline, lanes: int) -> None:
    _rows(p, "output", ["gray", "Ix", "Iy"], lanes)
    p.stages["Ix"].compute_with(p.stages["Iy"], p.stages["Iy"].args()[0])


def interpolate(p: HalidePipeline, lanes: int) -> None:
    stages, levels = p.stages, 10
    yo, yi, xo, xi = (hl.Var(n) for n in ("yo", "yi", "xo", "xi"))
    for k in range(1, levels - 1):
        level = stages[f"downsampled_{k}"]
        x, y, c = level.args()
        level.compute_root().never_partition([x]).reorder(x, c, y).split(y, yo, yi, 8).parallel(yo).vectorize(x, lanes)
    # The finest level is computed again on the way up instead of being kept: a clone of it serves the way down.
    finest = stages["downsampled_0"].clone_in(stages["downx_1"])
    x, y, c = stages["downsampled_0"].args()
    finest.store_at(stages["downsampled_1"], yo).compute_at(stages["downsampled_1"], yi)
    finest.reorder(c, x, y).unroll(c).vectorize(x, lanes).never_partition([y])
    output = stages["output"]
    x, y, c = output.args()
    output.bound(c, 0, 3).never_partition([y]).split(x, xo, xi, lanes).split(y, yo, yi, STRIP)
    output.reorder(xi, c, xo, yi, yo).unroll(c).vectorize(xi).parallel(yo)
    for k in range(1, levels):
        _slide(p, f"interpolated_{k}", "output", yo, yi, lanes)
        stages[f"interpolated_{k}"].never_partition_all()


EXPERTS: dict[str, Callable[[HalidePipeline, int], None]] = {
    "blur": blur,
    "unsharp": unsharp,
    "harris": harris,
    "interpolate": interpolate,
}


def _rows(p: HalidePipeline, output: str, producers: list[str], lanes: int) -> None:
    x, y = p.stages[output].args()
    yo, yi = hl.Var("yo"), hl.Var("yi")
    p.stages[output].split(y, yo, yi, STRIP).parallel(yo).vectorize(x, lanes)
    for name in producers:
        _slide(p, name, output, yo, yi, lanes)


def _slide(p: HalidePipeline, name: str, output: str, yo: hl.Var, yi: hl.Var, lanes: int) -> None:
    """Rows of `name` kept for a strip, each computed when the output comes to need it."""
    stage = p.stages[name]
    stage.store_at(p.stages[output], yo).compute_at(p.stages[output], yi).vectorize(stage.args()[0], lanes)
