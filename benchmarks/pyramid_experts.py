"""Schedules by hand of pyramids: those of Halide's apps local_laplacian and lens_blur, and one for pyramid_blend.

Coarse levels are computed in full, by threads; the finest, which are most of the work, in strips of the output.
"""

from __future__ import annotations

import halide as hl

from tilesmith.app.bench.to_halide import HalidePipeline


def local_laplacian(p: HalidePipeline, lanes: int) -> None:
    stages, output = p.stages, p.stages["output"]
    x, y, c = output.args()
    yo, yi = hl.Var("yo"), hl.Var("yi")
    stages["remap"].compute_root()
    output.reorder(c, x, y).split(y, yo, yi, 64).parallel(yo).vectorize(x, lanes)
    _rows(stages["gray"], 32, lanes)
    for level in range(1, 8):
        gray, curved = stages[f"gray_{level}"], stages[f"gaussian_{level}"]
        # The coarsest Laplacian is the Gaussian itself.
        collapsed = stages[f"out_gaussian_{level}" if level < 7 else "out_laplacian_7"]
        _, row, k = curved.args()
        if level < 5:
            _rows(gray, 32, lanes)
            curved.compute_root().reorder_storage(curved.args()[0], k, row).reorder(k, row)
            curved.parallel(row, 8).vectorize(curved.args()[0], lanes)
            collapsed.store_at(output, yo).compute_at(output, yi).fold_storage(collapsed.args()[1], 8)
            collapsed.vectorize(collapsed.args()[0], lanes)
        else:
            gray.compute_root()
            curved.compute_root().parallel(k)
            collapsed.compute_root()
    stages["out_gaussian_0"].compute_at(output, yi).vectorize(stages["out_gaussian_0"].args()[0], lanes)


def lens_blur(p: HalidePipeline, lanes: int) -> None:
    stages, output = p.stages, p.stages["output"]
    costs = stages["push_0"]
    x, y, z, c = costs.args()
    xi, yi, part = (hl.Var(n) for n in ("xi", "yi", "part"))
    costs.compute_root().reorder(c, z, x, y).bound(c, 0, 2).unroll(c).vectorize(x, 2 * lanes).parallel(y, 4)
    for name in ("cost", "cost_confidence"):
        stages[name].compute_at(costs, x).vectorize(stages[name].args()[0])

    # A thread takes the pyramid of one slice, down and up again.
    finest = stages["pull_1"]
    x, y, z, c = finest.args()
    finest.compute_root().fuse(z, c, part).parallel(part).tile(x, y, xi, yi, lanes, 2).vectorize(xi).unroll(yi)
    for level in range(1, 8):
        down = stages[f"push_{level}"]
        down.compute_at(finest, part).vectorize(down.args()[0], lanes)
        if 1 < level < 7:
            up = stages[f"pull_{level}"]
            x, y = up.args()[:2]
            up.compute_at(finest, part).tile(x, y, xi, yi, lanes, 2).vectorize(xi).unroll(yi)

    depth, colours = stages["depth"], stages["input_with_alpha"]
    x, y = depth.args()
    depth.compute_root().tile(x, y, xi, yi, lanes, 2).vectorize(xi).unroll(yi).parallel(y, 8)
    x, y, c = colours.args()
    colours.compute_root().reorder(c, x, y).unroll(c).vectorize(x, lanes).parallel(y, 8)

    x, y, c = output.args()
    output.compute_root().reorder(c, x, y).bound(c, 0, 3).unroll(c).vectorize(x, lanes).parallel(y)
    for name in ("worst_radius_y", "worst_radius"):
        stages[name].compute_at(output, y).vectorize(stages[name].args()[0], lanes)
    rendered, weight, places = stages["rendered"], stages["sample_weight"], stages["sample_locations"]
    rx, _, rc = rendered.args()
    rendered.compute_at(output, x).vectorize(rx)
    rendered.update().reorder(rc, rx, rendered.rvars(0)[0]).vectorize(rx).unroll(rc)
    weight.compute_at(rendered, rx).unroll(weight.args()[0])
    places.compute_at(rendered, rx).vectorize(places.args()[0])


def pyramid_blend(p: HalidePipeline, lanes: int) -> None:
    stages, output = p.stages, p.stages["output"]
    yo, yi = hl.Var("yo"), hl.Var("yi")
    for level in range(1, 4):
        for name in ("gauss1", "gauss2", "mask"):
            _strips(stages[f"{name}_{level}"], [stages[f"{name}_x_{level}"]], 16, lanes)
    for level in (2, 1):
        above = [stages[f"{name}_x_{level}"] for name in ("fine1", "fine2", "coarse")]
        _strips(stages[f"collapsed_{level}"], above, 16, lanes)
    stages["blend_3"].compute_root().parallel(stages["blend_3"].args()[1], 16)
    x, y, c = output.args()
    output.split(y, yo, yi, 32).reorder(x, c, yi, yo).parallel(yo).vectorize(x, lanes)
    for name in ("fine1_x_0", "fine2_x_0", "coarse_x_0"):
        stages[name].store_at(output, yo).compute_at(output, yi).vectorize(stages[name].args()[0], lanes)


def _rows(stage: hl.Func, rows: int, lanes: int) -> None:
    """In full, by threads of as many rows."""
    x, y = stage.args()[:2]
    stage.compute_root().parallel(y, rows).vectorize(x, lanes)


def _strips(stage: hl.Func, producers: list[hl.Func], rows: int, lanes: int) -> None:
    """In full, in strips of rows; the producers slide down each strip."""
    yo, yi = hl.Var("yo"), hl.Var("yi")
    x, y, *rest = stage.args()
    stage.compute_root().split(y, yo, yi, rows).reorder(x, *rest, yi, yo).parallel(yo).vectorize(x, lanes)
    for producer in producers:
        producer.store_at(stage, yo).compute_at(stage, yi).vectorize(producer.args()[0], lanes)
