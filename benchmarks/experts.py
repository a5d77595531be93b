"""Schedules by hand, of the kind that Halide's own apps carry for the pipelines of the same names.

Strips of rows run in parallel; inside a strip the producers slide along, one row at a time, vectorised.
"""

from __future__ import annotations

from collections.abc import Callable

import halide as hl

from benchmarks import pyramid_experts
from tilesmith.app.bench.to_halide import HalidePipeline

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


def bilateral_grid(p: HalidePipeline, lanes: int) -> None:
    output, histogram, blurz, blurx, blury = (p.stages[n] for n in ("output", "histogram", "blurz", "blurx", "blury"))
    x, y, z, c = histogram.args()
    rx, ry = histogram.rvars(0)
    # A row of the grid at a time, down to the blur in x; the image's strips then blur in y what they sample.
    blurx.compute_root().reorder(c, x, z, y).parallel(y).vectorize(x, lanes).unroll(c)
    blurz.compute_at(blurx, y).reorder(c, z, x, y).vectorize(x, lanes).unroll(c)
    histogram.compute_at(blurz, y).update().reorder(c, rx, ry, x, y).unroll(c)
    output.parallel(y, 8).vectorize(x, lanes)
    blury.compute_at(output, y).store_in(hl.MemoryType.Stack).reorder(c, x, y, z).reorder_storage(c, z, x, y)
    blury.vectorize(x, lanes).unroll(c)


def camera_pipe(p: HalidePipeline, lanes: int) -> None:
    stages, round_up = p.stages, hl.TailStrategy.RoundUp
    processed, curved = stages["processed"], stages["curved"]
    x, y, c = processed.args()
    yo, yi, yii, xi = (hl.Var(n) for n in ("yo", "yi", "yii", "xi"))
    wide = 4 * lanes  # two vectors of 16 bits
    for table in ("matrix", "curve", "sharpen_strength_x32"):
        stages[table].compute_root()
    # Pairs of rows, so that it is known which colour a site has.
    processed.reorder(c, x, y).split(y, yi, yii, 2, round_up).split(yi, yo, yi, STRIP // 2)
    processed.vectorize(x, wide, round_up).unroll(c).parallel(yo)
    for name in ("denoised", "deinterleaved", "g_r", "g_b", "curved"):
        stages[name].store_at(processed, yo).compute_at(processed, yi)
    stages["denoised"].prefetch(p.inputs["input"], y, y, 2).fold_storage(y, 4)
    stages["denoised"].tile(x, y, x, y, xi, yi, wide, 2).vectorize(xi).unroll(yi)
    stages["deinterleaved"].fold_storage(y, 4).reorder(c, x, y).vectorize(x, wide, round_up).unroll(c)
    for name in ("g_r", "g_b"):
        stages[name].fold_storage(y, 4).vectorize(x, wide, round_up)
    aligned = hl.LoopAlignStrategy.AlignStart
    stages["g_b"].compute_with(stages["g_r"], x, [(x, aligned), (y, aligned)])
    curved.reorder(c, x, y).tile(x, y, x, y, xi, yi, wide, 2, round_up).vectorize(xi).unroll(yi).unroll(c)
    stages["corrected"].compute_at(curved, x).reorder(c, x, y).vectorize(x).unroll(c)
    stages["demosaiced"].compute_at(curved, x).vectorize(x).unroll(y).reorder(c, x, y).unroll(c)
    processed.bound(c, 0, 3)
    processed.bound(x, 0, processed.output_buffer().width() // wide * wide)
    processed.bound(y, 0, processed.output_buffer().height() // STRIP * STRIP)


def max_filter(p: HalidePipeline, lanes: int) -> None:
    output, vert_log, vert = (p.stages[n] for n in ("output", "vert_log", "vert"))
    x, y, c = output.args()
    xo, part = hl.Var("xo"), hl.Var("part")
    p.stages["slice_for_radius"].compute_root()
    p.stages["filter_height"].compute_root()
    # Strips of columns: what is maximised down a column is kept for a strip.
    output.split(x, xo, x, 256).reorder(x, y, c, xo).fuse(c, xo, part).parallel(part).vectorize(x, lanes)
    vert_log.compute_at(output, part).vectorize(x, lanes)
    row, level = vert_log.rvars(0)
    vert_log.update().reorder(x, row, level, c).vectorize(x, lanes)
    vert.compute_at(output, y).vectorize(x, lanes)


def nl_means(p: HalidePipeline, lanes: int) -> None:
    stages, output = p.stages, p.stages["output"]
    total = stages["non_local_means_sum"]
    x, y, c = output.args()
    tx, ty = hl.Var("tx"), hl.Var("ty")
    output.bound(c, 0, 3).reorder(c, x, y).tile(x, y, tx, ty, x, y, 16, 8).parallel(ty).vectorize(x, lanes)
    stages["blur_d_y"].compute_at(output, tx).hoist_storage(output, ty).reorder(y, x).vectorize(x, lanes)
    stages["d"].compute_at(output, tx).hoist_storage(output, ty).vectorize(x, lanes)
    total.compute_at(output, x).reorder(c, x, y).bound(c, 0, 4).unroll(c).vectorize(x, lanes)
    sx, sy = total.rvars(0)
    total.update().reorder(c, x, y, sx, sy).unroll(c).vectorize(x, lanes)
    stages["blur_d"].compute_at(total, x).vectorize(x, lanes)


EXPERTS: dict[str, Callable[[HalidePipeline, int], None]] = {
    "lens_blur": pyramid_experts.lens_blur,
    "local_laplacian": pyramid_experts.local_laplacian,
    "pyramid_blend": pyramid_experts.pyramid_blend,
    "bilateral_grid": bilateral_grid,
    "blur": blur,
    "camera_pipe": camera_pipe,
    "harris": harris,
    "interpolate": interpolate,
    "max_filter": max_filter,
    "nl_means": nl_means,
    "unsharp": unsharp,
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
