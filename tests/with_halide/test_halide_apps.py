"""Shipped pipelines that carry the name of a Halide app, against the app's algorithm written once more in Halide.

Nothing here is made from our documents: the pyramids are loops over functions, as an author of Halide code has them.
"""

from __future__ import annotations

from functools import cache, reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from support.modules import require_module

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.semantics import random_float

require_module("halide")

import halide as hl  # noqa: E402

pytestmark = pytest.mark.halide

x, y, c, k, z = (hl.Var(n) for n in "xyckz")


def down(f, *rest):
    """1-3-3-1 in both directions, every second point."""
    downx, downy = hl.Func(), hl.Func()
    downx[x, y, *rest] = (
        f[2 * x - 1, y, *rest] + 3.0 * (f[2 * x, y, *rest] + f[2 * x + 1, y, *rest]) + f[2 * x + 2, y, *rest]
    ) / 8.0
    downy[x, y, *rest] = (
        downx[x, 2 * y - 1, *rest]
        + 3.0 * (downx[x, 2 * y, *rest] + downx[x, 2 * y + 1, *rest])
        + downx[x, 2 * y + 2, *rest]
    ) / 8.0
    downx.compute_root()
    return downy


def up(f, *rest):
    """Bilinear, between the centres of twice as many points."""
    upx, upy = hl.Func(), hl.Func()
    upx[x, y, *rest] = 0.25 * f[x // 2 - 1 + 2 * (x % 2), y, *rest] + 0.75 * f[x // 2, y, *rest]
    upy[x, y, *rest] = 0.25 * upx[x, y // 2 - 1 + 2 * (y % 2), *rest] + 0.75 * upx[x, y // 2, *rest]
    upx.compute_root()
    return upy


def defined(dims, value):
    """A function of its own, computed before its readers."""
    f = hl.Func()
    f[dims] = value
    f.compute_root()
    return f


def sum_of(terms):
    return reduce(add, terms)


@cache
def local_laplacian():
    """The app's algorithm, 8 levels; the function, then its image and params."""
    image = hl.ImageParam(hl.UInt(16), 3)
    levels, alpha, beta = hl.Param(hl.Int(32)), hl.Param(hl.Float(32)), hl.Param(hl.Float(32))
    top = hl.cast(hl.Float(32), levels - 1)
    depth = 8
    remap = hl.Func()
    fx = hl.cast(hl.Float(32), x) / 256.0
    remap[x] = alpha * fx * hl.exp(-fx * fx / 2.0)
    remap.compute_root()
    clamped = hl.BoundaryConditions.repeat_edge(image)
    floating = defined((x, y, c), clamped[x, y, c] / hl.f32(65535.0))
    gray = defined((x, y), sum_of(hl.f32(w) * floating[x, y, n] for n, w in enumerate((0.299, 0.587, 0.114))))

    level = k * (hl.f32(1.0) / top)
    place = hl.clamp(hl.cast(hl.Int(32), gray[x, y] * top * hl.f32(256.0)), 0, (levels - 1) * 256)
    processed = [defined((x, y, k), beta * (gray[x, y] - level) + level + remap[place - 256 * k])]
    gaussian = [gray]
    for _ in range(1, depth):
        processed.append(defined((x, y, k), down(processed[-1], k)[x, y, k]))
        gaussian.append(defined((x, y), down(gaussian[-1])[x, y]))
    laplacian = [defined((x, y, k), fine[x, y, k] - up(coarse, k)[x, y, k]) for fine, coarse in pairwise(processed)] + [
        processed[-1]
    ]

    chosen = []
    for g, detail in zip(gaussian, laplacian, strict=True):
        v = g[x, y] * top
        low = hl.clamp(hl.cast(hl.Int(32), v), 0, levels - 2)
        rest = v - hl.cast(hl.Float(32), low)
        chosen.append(defined((x, y), (1.0 - rest) * detail[x, y, low] + rest * detail[x, y, low + 1]))
    collapsed = chosen[-1]
    for out in reversed(chosen[:-1]):
        collapsed = defined((x, y), up(collapsed)[x, y] + out[x, y])

    colour = collapsed[x, y] * (floating[x, y, c] + hl.f32(0.01)) / (gray[x, y] + hl.f32(0.01))
    app = defined((x, y, c), hl.cast(hl.UInt(16), hl.clamp(colour, 0.0, 1.0) * 65535.0))
    return app, image, levels, alpha, beta


@cache
def lens_blur():
    """The app's algorithm; the function, then its images, the random numbers of u and v (dims x, y, sample, 2), and
    the params."""
    left_image, right_image = hl.ImageParam(hl.UInt(8), 3), hl.ImageParam(hl.UInt(8), 3)
    noise = hl.ImageParam(hl.Float(32), 4)
    slices, focus, samples = (hl.Param(hl.Int(32)) for _ in range(3))
    scale = hl.Param(hl.Float(32))
    count = hl.cast(hl.Float(32), slices)
    reach = hl.cast(hl.Int(32), hl.max(slices - focus, focus) * scale)
    width, height = left_image.dim(0).extent(), left_image.dim(1).extent()
    left = hl.BoundaryConditions.repeat_edge(left_image)
    right = hl.BoundaryConditions.repeat_edge(right_image)
    diff = defined(
        (x, y, z, c),
        hl.min(hl.absd(left[x, y, c], right[x + 2 * z, y, c]), hl.absd(left[x, y, c], right[x + 2 * z + 1, y, c])),
    )
    channels = [hl.cast(hl.Float(32), diff[x, y, z, n]) for n in range(3)]
    cost = defined((x, y, z), sum_of(v * v for v in channels))
    r = hl.RDom([hl.Range(0, slices)])
    mean = hl.sum(cost[x, y, r.x] / count)
    confidence = defined((x, y), hl.sum(cost[x, y, r.x] * cost[x, y, r.x]) / count - mean * mean)

    push = [defined((x, y, z, c), hl.select(c == 0, cost[x, y, z] * confidence[x, y], confidence[x, y]))]
    for level in range(1, 8):
        here = defined((x, y, z, c), down(push[-1], z, c)[x, y, z, c])
        ends = [hl.Range(0, width >> level), hl.Range(0, height >> level), hl.Range(0, slices), hl.Range(0, 2)]
        push.append(hl.BoundaryConditions.repeat_edge(here, ends))
    pull = push[7]
    for here in reversed(push[:7]):
        pull = defined((x, y, z, c), hl.lerp(up(pull, z, c)[x, y, z, c], here[x, y, z, c], hl.f32(0.5)))
    filtered = defined((x, y, z), pull[x, y, z, 0] / pull[x, y, z, 1])
    depth = defined((x, y), hl.argmin(filtered[x, y, r.x])[0])

    radius = defined((x, y), hl.cast(hl.Float(32), hl.abs(depth[x, y] - focus)) * scale)
    squared = defined((x, y), radius[x, y] * radius[x, y])
    w = hl.RDom([hl.Range(-reach, 2 * reach + 1)])
    worst_y = defined((x, y), hl.maximum(radius[x, y + w.x]))
    worst = defined((x, y), hl.maximum(worst_y[x + w.x, y]))
    with_alpha = defined((x, y, c), hl.select(c < 3, hl.cast(hl.Float(32), left[x, y, hl.min(c, 2)]), hl.f32(255.0)))

    def offset(n):
        return hl.clamp(hl.cast(hl.Int(32), (noise[x, y, z, n] - 0.5) * 2.0 * worst[x, y]), -reach, reach)

    u, v = defined((x, y, z), offset(0)), defined((x, y, z), offset(1))
    su, sv = (hl.clamp(f[x, y, z], -reach, reach) for f in (u, v))
    away = su * su + sv * sv
    counts = ((away < squared[x, y]) | (depth[x + su, y + sv] < depth[x, y])) & (away < squared[x + su, y + sv])
    weight = defined((x, y, z), hl.select(counts, hl.f32(1.0), hl.f32(0.0)))
    s = hl.RDom([hl.Range(0, samples)])
    du, dv = (hl.clamp(f[x, y, s.x], -reach, reach) for f in (u, v))
    total = hl.Func()
    total[x, y, c] = with_alpha[x, y, c]
    total[x, y, c] += weight[x, y, s.x] * with_alpha[x + du, y + dv, c]
    total.compute_root()
    app = defined((x, y, c), total[x, y, c] / total[x, y, 3])
    return app, left_image, right_image, noise, slices, focus, scale, samples


def realized(app, values, width, height):
    """The output of the app for the values, which are in the order in which it names what it is given."""
    function, *parameters = app
    for parameter, value in zip(parameters, values, strict=True):
        parameter.set(value)
    return np.array(function.realize([width, height, 3]))


def photo_like(rng, width, height, top):
    """Smooth shades with edges and some noise, of shape (3, H, W), from 0 to `top`."""
    yy, xx = np.mgrid[:height, :width] / max(width, height)
    waves = [sum(np.sin(rng.uniform(2, 25) * (xx * np.cos(a) + yy * np.sin(a)) + a) for a in rng.uniform(0, 6, 4))]
    waves = waves[0] / 8 + 0.5 + 0.25 * ((xx - 0.4) ** 2 + (yy - 0.5) ** 2 < 0.06)
    shades = [np.clip(waves * s + 0.02 * rng.standard_normal(waves.shape), 0, 1) for s in rng.uniform(0.6, 1.1, 3)]
    return np.stack(shades) * top


def images(kind, seed, width, height, dtype):
    rng, top = np.random.default_rng(seed), np.iinfo(dtype).max
    if kind == "random":
        return rng.integers(0, top, (3, height, width), dtype=dtype, endpoint=True)
    return photo_like(rng, width, height, top).astype(dtype)


CASES = [("random", 1, 1), ("random", 7, 3), ("random", 131, 67), ("photo", 3, 5), ("photo", 80, 48)]


@pytest.mark.parametrize(("kind", "width", "height"), CASES)
def test_local_laplacian(kind, width, height):
    data = images(kind, 3, width, height, np.uint16)
    params = {"levels": 8, "alpha": 1 / 7, "beta": 1.0}
    if kind == "photo":
        params = {"levels": 5, "alpha": 0.4, "beta": 0.7}
    pipeline = pipelines.load("local_laplacian")
    regions = {"output": ((0, width), (0, height), (0, 3))}
    (ours,) = interpret(pipeline, {"input": Image(data, (0, 0, 0))}, params, regions)["output"]
    theirs = realized(local_laplacian(), [hl.Buffer(data), *params.values()], width, height)
    # What is cut to 16 bits may fall on either side of an integer; a look-up, on the next of 256 entries a level.
    difference = np.abs(ours.astype(int) - theirs.astype(int))
    assert np.mean(difference > 1) < 1e-3
    assert difference.max() <= 2 * 65535 / (params["levels"] - 1) / 256 + 1


@pytest.mark.parametrize(("kind", "width", "height"), CASES)
def test_lens_blur(kind, width, height):
    left = images(kind, 4, width, height, np.uint8)
    # As the language has it, the point of the left image at x lies at x + 2 z in the right one.
    right = np.stack([np.roll(row, 2 * (n * 9 // height), -1) for n, row in enumerate(np.moveaxis(left, 1, 0))], 1)
    right = np.ascontiguousarray(right)
    slices, focus, scale, samples = (32, 13, 0.5, 32) if kind == "photo" else (12, 4, 0.7, 9)
    params = {"slices": slices, "focus_depth": focus, "blur_radius_scale": scale, "aperture_samples": samples}
    pipeline = pipelines.load("lens_blur")
    given = {name: Image(a, (0, 0, 0)) for name, a in (("left", left), ("right", right))}
    (ours,) = interpret(pipeline, given, params, {"output": ((0, width), (0, height), (0, 3))})["output"]
    grid = np.meshgrid(np.arange(2), np.arange(samples), np.arange(height), np.arange(width), indexing="ij")
    noise = random_float(tuple(reversed(grid)))
    given = [hl.Buffer(left), hl.Buffer(right), hl.Buffer(noise), slices, focus, scale, samples]
    theirs = realized(lens_blur(), given, width, height)
    # Costs that are nearly equal may change places with the order of a sum: then a point has another depth.
    assert np.mean(np.abs(ours - theirs) > 1e-5) < 2e-3
    assert np.isfinite(ours).all()
