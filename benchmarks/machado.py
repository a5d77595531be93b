"""The schedules that Machado (2019), Profiling Halide DSL with Performance Events for Schedule Optimization, measures
(appendices A.2 and B.2): those of blur vectorised and parallel, its columns "4tv", the others as they are printed.
"""

from __future__ import annotations

from collections.abc import Callable

import halide as hl

from tilesmith.app.bench.to_halide import HalidePipeline

LANES = 4
"""Lanes of vectors on the author's machine, an i5-7500, half of the eight that it has; the schedules say so
themselves."""
LEVELS = 5

Schedule = Callable[[HalidePipeline], None]


def breadth_first(p: HalidePipeline) -> None:
    """Everything in full, one stage after the other."""
    for name in ("blur_x", "blur_y"):
        stage = p.stages[name]
        x, y, _ = stage.args()
        stage.compute_root().vectorize(x, LANES).parallel(y)


def full_fusion(p: HalidePipeline) -> None:
    """blur_x is computed where it is read, three times for each point."""
    x, y, _ = p.stages["blur_y"].args()
    p.stages["blur_y"].vectorize(x, LANES).parallel(y)


def sliding_window(p: HalidePipeline) -> None:
    """blur_x is kept for each plane, computed for a vector at a time. Halide now refuses it together with threads over
    rows, which would share what is kept; so this one runs on one thread, the author's column "1tv"."""
    blur_x, blur_y = p.stages["blur_x"], p.stages["blur_y"]
    x, _, c = blur_y.args()
    blur_x.store_at(blur_y, c).compute_at(blur_y, x).vectorize(blur_x.args()[0], LANES)
    blur_y.vectorize(x, LANES)


def tiles(p: HalidePipeline) -> None:
    """Tiles of 32 x 32 points."""
    blur_x, blur_y = p.stages["blur_x"], p.stages["blur_y"]
    x, y, _ = blur_y.args()
    xi, yi = hl.Var("xi"), hl.Var("yi")
    blur_y.tile(x, y, xi, yi, 32, 32).vectorize(xi, LANES).parallel(y)
    blur_x.compute_at(blur_y, x).vectorize(blur_x.args()[0], LANES)


def flat(p: HalidePipeline) -> None:
    """Every level in full, on one thread."""
    _levels(p, vectors=0)


def flat_vectors(p: HalidePipeline) -> None:
    """Every level in full, in vectors, on one thread."""
    _levels(p, vectors=LEVELS)


def flat_threads_vectors(p: HalidePipeline) -> None:
    """The inner levels in full, in vectors and by threads; the outer ones where they are read."""
    for level in range(1, LEVELS - 1):
        down, up = p.stages[f"downsampled_{level}"], p.stages[f"interpolated_{level}"]
        x, y, _ = down.args()
        down.compute_root().parallel(y, 8).vectorize(x, LANES)
        x, y, _ = up.args()
        up.compute_root().parallel(y, 8).unroll(x, 2).unroll(y, 2).vectorize(x, 8)
    output = p.stages["normalize"]
    x, y, c = output.args()
    xi, yi = hl.Var("xi"), hl.Var("yi")
    output.reorder(c, x, y).bound(c, 0, 3).unroll(c).tile(x, y, xi, yi, 2, 2).unroll(xi).unroll(yi)
    output.parallel(y, 8).vectorize(x, 8)
    image = p.inputs["input"]
    output.bound(x, 0, image.width()).bound(y, 0, image.height())


def flat_vectors_sometimes(p: HalidePipeline) -> None:
    """Every level in full, the finest in vectors, on one thread."""
    _levels(p, vectors=LEVELS - 4)


def _levels(p: HalidePipeline, vectors: int) -> None:
    """All levels in full, as many of the finest in vectors."""
    for level in range(LEVELS):
        for name in ("downsampled", "interpolated"):
            stage = p.stages[f"{name}_{level}"].compute_root()
            if level < vectors:
                stage.vectorize(stage.args()[0], LANES)


SCHEDULES: dict[str, tuple[Schedule, Schedule, Schedule, Schedule]] = {
    "machado_blur": (breadth_first, full_fusion, sliding_window, tiles),
    "machado_interpolation": (flat, flat_vectors, flat_threads_vectors, flat_vectors_sometimes),
}
"""Schedules by pipeline, in the author's order."""
