"""Pipelines as users of Halide's Python write them, each with its images, params and the regions to compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import halide as hl
import numpy as np

x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")

TABLE = np.arange(256, dtype=np.float32) / 8  # Halide does not hold on to it


@dataclass
class Case:
    """`images` are the arrays of the ImageParams, `params` the values of the Params; `regions` are (min, extent) in
    the order of the dims, which are the outputs' estimates, too."""

    outputs: list[hl.Func]
    images: dict[hl.ImageParam, np.ndarray]
    regions: list[list[tuple[int, int]]]
    params: list[tuple[hl.Param, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for f, region in zip(self.outputs, self.regions, strict=True):
            if region:
                f.set_estimates([hl.Range(lo, n) for lo, n in region])

    def realised(self) -> list[tuple[np.ndarray, ...]]:
        """Halide's values, a tuple of components an output."""
        for image, array in self.images.items():
            image.set(hl.Buffer(array))
        for param, value in self.params:
            param.set(value)
        results = []
        for f, region in zip(self.outputs, self.regions, strict=True):
            buffers = [hl.Buffer(t, [n for _, n in region]) for t in f.types()]
            for b in buffers:
                b.set_min([lo for lo, _ in region])
            f.realize(buffers if len(buffers) > 1 else buffers[0])
            results.append(tuple(np.array(b) for b in buffers))
        return results


def alike(ours: list[tuple[np.ndarray, ...]], theirs: list[tuple[np.ndarray, ...]], near: float = 1e-5) -> None:
    """Integers equal, floats near, types the same."""
    for a, b in zip(ours, theirs, strict=True):
        for p, q in zip(a, b, strict=True):
            assert p.dtype == q.dtype
            if p.dtype.kind == "f":
                np.testing.assert_allclose(p, q, rtol=near, atol=near)
            else:
                np.testing.assert_array_equal(p, q)


def picture(type_: type, *shape: int) -> np.ndarray:
    values = np.random.default_rng(7).integers(0, 256, shape)
    return (values / 256).astype(type_) if np.dtype(type_).kind == "f" else values.astype(type_)


def blur() -> Case:
    image = hl.ImageParam(hl.UInt(16), 2, "input")
    blur_x, blur_y = hl.Func("blur_x"), hl.Func("blur_y")
    blur_x[x, y] = (image[x, y] + image[x + 1, y] + image[x + 2, y]) // 3
    blur_y[x, y] = (blur_x[x, y] + blur_x[x, y + 1] + blur_x[x, y + 2]) // 3
    return Case([blur_y], {image: picture(np.uint16, 40, 60)}, [[(0, 50), (0, 30)]])


def unsharp() -> Case:
    """Boundary conditions on two of three dims, weights in Python, clamping to the type."""
    image = hl.ImageParam(hl.UInt(8), 3, "photo")
    strength = hl.Param(hl.Float(32), "strength", 1.5)
    padded = hl.BoundaryConditions.repeat_edge(image, [(0, image.width()), (0, image.height())])
    wide, down, smooth, sharp = (hl.Func(n) for n in ("wide", "down", "smooth", "sharp"))
    wide[x, y, c] = hl.cast(hl.Float(32), padded[x, y, c])
    kernel = [0.25, 0.5, 0.25]
    down[x, y, c] = sum(hl.f32(k) * wide[x, y + d, c] for k, d in zip(kernel, (-1, 0, 1), strict=True))
    smooth[x, y, c] = sum(hl.f32(k) * down[x + d, y, c] for k, d in zip(kernel, (-1, 0, 1), strict=True))
    value = wide[x, y, c] + strength * (wide[x, y, c] - smooth[x, y, c])
    sharp[x, y, c] = hl.u8_sat(hl.round(value))
    return Case([sharp], {image: picture(np.uint8, 3, 31, 43)}, [[(0, 43), (0, 31), (0, 3)]], [(strength, 0.75)])


def equalise() -> Case:
    """A histogram over the image, its running sum, and a look-up."""
    image = hl.ImageParam(hl.UInt(8), 2, "input")
    hist, total, equal = hl.Func("hist"), hl.Func("cdf"), hl.Func("equal")
    i = hl.Var("i")
    r = hl.RDom([(0, image.width()), (0, image.height())], "r")
    hist[i] = hl.u32(0)
    hist[hl.cast(hl.Int(32), image[r.x, r.y])] += hl.u32(1)
    total[i] = hist[i]
    b = hl.RDom([(1, 255)], "b")
    total[b.x] = total[b.x - 1] + hist[b.x]
    scale = hl.f32(255.0) / hl.cast(hl.Float(32), image.width() * image.height())
    equal[x, y] = hl.u8_sat(hl.cast(hl.Float(32), total[hl.cast(hl.Int(32), image[x, y])]) * scale)
    return Case([equal], {image: picture(np.uint8, 33, 47) // 2}, [[(0, 47), (0, 33)]])


def bilateral_grid() -> Case:
    """The app of Halide: a scatter into a grid, three blurs, a trilinear slice. Constant sigmas."""
    s = 8
    image = hl.ImageParam(hl.Float(32), 2, "input")
    r_sigma = hl.Param(hl.Float(32), "r_sigma", 0.1)
    r_sigma.set_range(hl.f32(0.05), hl.f32(1.0))
    z = hl.Var("z")
    clamped = hl.BoundaryConditions.repeat_edge(image)
    r = hl.RDom([(0, s), (0, s)], "r")
    value = hl.clamp(clamped[x * s + r.x - s // 2, y * s + r.y - s // 2], 0.0, 1.0)
    bin_ = hl.cast(hl.Int(32), value * (hl.f32(1.0) / r_sigma) + hl.f32(0.5))
    histogram = hl.Func("histogram")
    histogram[x, y, z, c] = hl.f32(0.0)
    histogram[x, y, bin_, c] += hl.mux(c, [value, hl.f32(1.0)])
    blurs = [histogram]
    for name, step in (("blurz", (0, 0, 1)), ("blurx", (1, 0, 0)), ("blury", (0, 1, 0))):
        f, g = hl.Func(name), blurs[-1]
        weights = [1, 4, 6, 4, 1]
        f[x, y, z, c] = sum(
            g[x + k * step[0], y + k * step[1], z + k * step[2], c] * hl.f32(w)
            for k, w in zip(range(-2, 3), weights, strict=True)
        )
        blurs.append(f)
    blury = blurs[-1]
    place = hl.clamp(image[x, y], 0.0, 1.0) * (hl.f32(1.0) / r_sigma)
    zi = hl.cast(hl.Int(32), place)
    zf = place - zi
    xf, yf = hl.cast(hl.Float(32), x % s) / s, hl.cast(hl.Float(32), y % s) / s
    xi, yi = x // s, y // s
    interpolated, output = hl.Func("interpolated"), hl.Func("bilateral_grid")

    def mixed(dz: int) -> hl.Expr:
        top = hl.lerp(blury[xi, yi, zi + dz, c], blury[xi + 1, yi, zi + dz, c], xf)
        bottom = hl.lerp(blury[xi, yi + 1, zi + dz, c], blury[xi + 1, yi + 1, zi + dz, c], xf)
        return hl.lerp(top, bottom, yf)

    interpolated[x, y, c] = hl.lerp(mixed(0), mixed(1), zf)
    output[x, y] = interpolated[x, y, 0] / interpolated[x, y, 1]
    return Case([output], {image: picture(np.float32, 40, 50)}, [[(0, 50), (0, 40)]], [(r_sigma, 0.1)])


def best_match() -> Case:
    """argmin over a window, a tuple of place and score."""
    left, right = hl.ImageParam(hl.UInt(8), 2, "left"), hl.ImageParam(hl.UInt(8), 2, "right")
    edge = hl.BoundaryConditions.constant_exterior(right, 0)
    r = hl.RDom([(0, 12)], "r")
    found, score = hl.Func("found"), hl.Func("score")
    best = hl.argmin(r, hl.cast(hl.Int(16), hl.absd(left[x, y], edge[x - r.x, y])), "best")
    found[x, y] = hl.Tuple([hl.u8_sat(best[0]), best[1]])
    score[x, y] = hl.select(found[x, y][0] == 0, hl.i16(-1), found[x, y][1])
    return Case(
        [found, score],
        {left: picture(np.uint8, 20, 30), right: picture(np.uint8, 20, 30)[::-1].copy()},
        [[(0, 30), (0, 20)], [(0, 30), (0, 20)]],
    )


def recursive_filter() -> Case:
    """An IIR filter down and up the columns: updates that read what they wrote."""
    image = hl.ImageParam(hl.Float(32), 2, "input")
    alpha = hl.f32(0.3)
    f = hl.Func("iir")
    rows = image.dim(1).extent()
    f[x, y] = image[x, y]
    down = hl.RDom([(1, rows - 1)], "down")
    f[x, down.x] = alpha * f[x, down.x] + (1 - alpha) * f[x, down.x - 1]
    up = hl.RDom([(0, rows - 1)], "up")
    back = rows - 2 - up.x
    f[x, back] = alpha * f[x, back] + (1 - alpha) * f[x, back + 1]
    out = hl.Func("out")
    out[x, y] = f[x, y]
    return Case([out], {image: picture(np.float32, 24, 37)}, [[(0, 37), (0, 24)]])


def matmul() -> Case:
    a, b = hl.ImageParam(hl.Float(32), 2, "a"), hl.ImageParam(hl.Float(32), 2, "b")
    k = hl.RDom([(0, a.width())], "k")
    product, out = hl.Func("prod"), hl.Func("out")
    product[x, y] = hl.f32(0)
    product[x, y] += a[k.x, y] * b[x, k.x]
    out[x, y] = hl.max(product[x, y], 0.0)
    return Case([out], {a: picture(np.float32, 18, 33), b: picture(np.float32, 33, 21)}, [[(0, 21), (0, 18)]])


def fading_matmul() -> Case:
    """A product of matrices whose earlier terms count for less: an update that is no sum."""
    a, b = hl.ImageParam(hl.Float(32), 2, "a"), hl.ImageParam(hl.Float(32), 2, "b")
    k = hl.RDom([(0, a.width())], "k")
    product, out = hl.Func("prod"), hl.Func("out")
    product[x, y] = hl.f32(0)
    product[x, y] = product[x, y] * 0.5 + a[k.x, y] * b[x, k.x]
    out[x, y] = hl.max(product[x, y], 0.0)
    return Case([out], {a: picture(np.float32, 18, 33), b: picture(np.float32, 33, 21)}, [[(0, 21), (0, 18)]])


def inline_reductions() -> Case:
    """hl.sum and its like inside of expressions, with a predicate, one in another."""
    image = hl.ImageParam(hl.UInt(8), 2, "input")
    near = hl.BoundaryConditions.mirror_interior(image)
    wide, out = hl.Func("wide"), hl.Func("out")
    wide[x, y] = hl.cast(hl.Int(32), near[x, y])
    r = hl.RDom([(-2, 5), (-2, 5)], "r")
    r.where(r.x * r.x + r.y * r.y < 6)
    s, t = hl.RDom([(0, 3)], "s"), hl.RDom([(0, 4)], "t")
    nested = hl.maximum(s, hl.sum(t, wide[x + t.x, y + s.x]))
    out[x, y] = hl.sum(wide[x + r.x, y + r.y]) // 21 + nested - hl.minimum(t, wide[x - t.x, y])
    return Case([out], {image: picture(np.uint8, 16, 23)}, [[(0, 23), (0, 16)]])


def approximations() -> Case:
    """fast_ functions, strict_float, likely, a promise, a table in a Buffer, random numbers."""
    image = hl.ImageParam(hl.UInt(8), 2, "input")
    v = hl.cast(hl.Float(32), image[x, y]) / 256
    table = hl.Buffer(TABLE)
    f = hl.Func("f")
    f[x, y] = (
        hl.fast_exp(-v) + hl.strict_float(v * 3 + 1) + hl.likely(table[hl.cast(hl.Int(32), image[x, y])])
        + hl.fast_pow(v + 1, 2.5) + hl.fast_inverse(v + 1)
    )  # fmt: skip
    return Case([f], {image: picture(np.uint8, 9, 14)}, [[(0, 14), (0, 9)]])


def noise() -> Case:
    f = hl.Func("f")
    f[x, y] = hl.random_float(17) + hl.cast(hl.Float(32), hl.random_uint(3) % 10)
    return Case([f], {}, [[(-3, 14), (2, 9)]])


def over_nothing() -> Case:
    """Updates and reductions over no points, beside an update over some."""
    image = hl.ImageParam(hl.Int(32), 2, "input")
    none, some = hl.RDom([(0, 0), (0, 3)], "none"), hl.RDom([(1, 8)], "some")
    f, out = hl.Func("f"), hl.Func("out")
    f[x, y] = image[x, y]
    f[x, none.y] += 100
    f[x, some.x] += f[x, some.x - 1]
    out[x, y] = f[x, y] + hl.sum(none, image[x, none.y]) + hl.product(none, image[x, none.y]) // 2
    return Case([out], {image: picture(np.int32, 9, 14)}, [[(0, 14), (0, 9)]])


def wrapped_places() -> Case:
    """Remainders of floats as indices, which the divisor bounds."""
    image = hl.ImageParam(hl.Float(32), 2, "input")
    f = hl.Func("f")
    at = hl.cast(hl.Int(32), hl.floor(hl.cast(hl.Float(32), x) * hl.f32(1.75) % hl.f32(11.5)))
    f[x, y] = image[at + 1, y] + image[at, y + 1]
    return Case([f], {image: picture(np.float32, 12, 14)}, [[(0, 30), (0, 9)]])


CASES: dict[str, Callable[[], Case]] = {
    f.__name__: f
    for f in (
        blur, unsharp, equalise, bilateral_grid, best_match, recursive_filter, matmul, fading_matmul,
        inline_reductions, approximations, noise, over_nothing, wrapped_places,
    )
}  # fmt: skip
