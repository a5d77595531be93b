"""bilateral_grid, camera_pipe, max_filter and nl_means against Halide's apps, written once more in Halide.

Nothing here is made from our documents. What a stage is in the app is a function here, computed before its readers.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from functools import reduce as fold

import numpy as np
import pytest
from support.modules import require_module

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.rewrites.passes import normalise

require_module("halide")

import halide as hl  # noqa: E402

pytestmark = pytest.mark.halide

x, y, z, c, t, dx, dy = (hl.Var(n) for n in ("x", "y", "z", "c", "t", "dx", "dy"))

MATRIX_3200 = [[1.6697, -0.2693, -0.4004, -42.4346], [-0.3576, 1.0615, 1.5949, -37.1158],
               [-0.2175, -1.8751, 6.9640, -26.6970]]  # fmt: skip
MATRIX_7000 = [[2.2997, -0.4478, 0.1706, -39.0923], [-0.3826, 1.5906, -0.2080, -25.4311],
               [-0.0888, -0.7344, 2.2832, -20.0826]]  # fmt: skip
"""The colour matrices of the Nokia N900's sensor, which the app has from FCam."""


def root(dims: tuple[hl.Var, ...], value: object, name: str = "f") -> hl.Func:
    """A function of its own, computed before its readers."""
    f = hl.Func(name)
    f[dims] = value
    return f.compute_root()


def edged(array: np.ndarray) -> hl.Func:
    return hl.BoundaryConditions.repeat_edge(hl.Buffer(np.ascontiguousarray(array)))


def i32(e: object) -> hl.Expr:
    return hl.cast(hl.Int(32), e)


def f32(e: object) -> hl.Expr:
    return hl.cast(hl.Float(32), e)


def realize(f: hl.Func, *extents: int, low: tuple[int, ...] | None = None) -> np.ndarray:
    kinds = {"f": np.float32, "u": np.uint8}
    out = np.zeros(extents[::-1], kinds["f" if f.type().is_float() else "u"])
    buffer = hl.Buffer(out)
    buffer.set_min(list(low or (0,) * len(extents)))
    f.realize(buffer)
    return out


def bilateral_grid(image: np.ndarray, r_sigma: float) -> np.ndarray:
    s_sigma = 8
    scale = hl.f32(1.0) / hl.f32(r_sigma)
    clamped = edged(image)
    r = hl.RDom([(0, s_sigma), (0, s_sigma)])
    val = hl.clamp(clamped[x * s_sigma + r.x - s_sigma // 2, y * s_sigma + r.y - s_sigma // 2], 0.0, 1.0)
    zi = i32(val * scale + 0.5)
    histogram = root((x, y, z, c), 0.0, "histogram")
    histogram[x, y, zi, c] += hl.mux(c, [val, 1.0])

    def tapped(at: Callable[[int], object]) -> hl.Expr:
        return at(-2) + at(-1) * 4 + at(0) * 6 + at(1) * 4 + at(2)

    blurz = root((x, y, z, c), tapped(lambda i: histogram[x, y, z + i, c]))
    blurx = root((x, y, z, c), tapped(lambda i: blurz[x + i, y, z, c]))
    blury = root((x, y, z, c), tapped(lambda i: blurx[x, y + i, z, c]))
    zv = hl.clamp(hl.Buffer(image)[x, y], 0.0, 1.0) * scale
    zi = i32(zv)
    xi, yi = x // s_sigma, y // s_sigma
    xf, yf = f32(x % s_sigma) / s_sigma, f32(y % s_sigma) / s_sigma

    def plane(k: hl.Expr) -> hl.Expr:
        rows = [hl.lerp(blury[xi, yi + j, k, c], blury[xi + 1, yi + j, k, c], xf) for j in (0, 1)]
        return hl.lerp(rows[0], rows[1], yf)

    interpolated = root((x, y, c), hl.lerp(plane(zi), plane(zi + 1), zv - zi))
    return realize(root((x, y), interpolated[x, y, 0] / interpolated[x, y, 1]), *image.shape[::-1])


def nl_means(image: np.ndarray, sigma: float, patch: int = 7, search: int = 7) -> np.ndarray:
    scale = hl.f32(-1.0) / (hl.f32(sigma) * hl.f32(sigma) * patch * patch)
    clamped = edged(image)
    apart = hl.pow(clamped[x, y, c] - clamped[x + dx, y + dy, c], 2)
    dc = root((x, y, dx, dy, c), apart)
    channels = hl.RDom([(0, 3)])
    d = root((x, y, dx, dy), hl.sum(channels, dc[x, y, dx, dy, channels.x]))
    column, row = (hl.RDom([(-(patch // 2), patch)]) for _ in range(2))
    blur_d_y = root((x, y, dx, dy), hl.sum(column, d[x, y + column.x, dx, dy]))
    blur_d = root((x, y, dx, dy), hl.sum(row, blur_d_y[x + row.x, y, dx, dy]))
    w = root((x, y, dx, dy), hl.fast_exp(blur_d[x, y, dx, dy] * scale))
    alpha = root((x, y, c), hl.mux(c, [clamped[x, y, 0], clamped[x, y, 1], clamped[x, y, 2], 1.0]))
    s = hl.RDom([(-(search // 2), search), (-(search // 2), search)])
    total = root((x, y, c), 0.0)
    total[x, y, c] += w[x, y, s.x, s.y] * alpha[x + s.x, y + s.y, c]
    mean = root((x, y, c), hl.clamp(total[x, y, c] / total[x, y, 3], 0.0, 1.0))
    return realize(mean, *image.shape[::-1])


def max_filter(image: np.ndarray, radius: int = 26) -> np.ndarray:
    _, height, _ = image.shape
    clamped = edged(image)
    slices = math.ceil(math.log2(radius)) + 1
    vert_log = root((x, y, c, t), clamped[x, y, c])
    r = hl.RDom([(-radius, height + radius), (1, slices - 1)])
    step = hl.clamp(hl.i32(1) << (r.y - 1), 0, radius * 2)
    vert_log[x, r.x, c, r.y] = hl.max(vert_log[x, r.x, c, r.y - 1], vert_log[x, r.x + step, c, r.y - 1])
    slice_for_radius = root((t,), i32(hl.floor(hl.log(f32(2 * t + 1)) / hl.f32(math.log(2)))))
    k = hl.clamp(slice_for_radius[t], 0, slices)
    second = y + t + 1 - hl.clamp(hl.i32(1) << k, 0, 2 * radius)
    vert = hl.Func("vert")  # inlined, as an array of all heights it would be large
    vert[x, y, c, t] = hl.max(vert_log[x, y - t, c, k], vert_log[x, second, c, k])
    across, down = hl.RDom([(-radius, 2 * radius + 1)]), hl.RDom([(0, radius + 1)])
    inside = x * x + down.x * down.x < hl.f32((radius + 0.25) ** 2)
    filter_height = root((x,), hl.sum(down, hl.select(inside, 1, 0)))
    height_here = hl.clamp(filter_height[across.x], 0, radius + 1)
    output = root((x, y, c), hl.maximum(across, vert[x + across.x, y, c, height_here]))
    return realize(output, *image.shape[::-1])


def camera_pipe(
    raw: hl.Buffer, width: int, height: int, matrices: list[np.ndarray], low: tuple[int, int] = (0, 0),
    color_temp: float = 3700.0, gamma: float = 2.0, contrast: float = 50.0, sharpen_strength: float = 1.0,
    black: int = 25, white: int = 1023,
) -> np.ndarray:  # fmt: skip
    def avg(a: hl.Expr, b: hl.Expr) -> hl.Expr:
        bits = a.type().bits()
        return hl.cast(a.type(), (hl.cast(hl.UInt(2 * bits), a) + b + 1) // 2)

    def at(f: hl.Func, i: int = 0, j: int = 0) -> hl.Expr:
        return hl.Expr(f[x + i, y + j])

    shifted = root((x, y), raw[x + 16, y + 12])
    most = hl.max(hl.max(at(shifted, -2), at(shifted, 2)), hl.max(at(shifted, 0, -2), at(shifted, 0, 2)))
    denoised = root((x, y), hl.clamp(shifted[x, y], hl.u16(0), most))
    g_gr, r_r, b_b, g_gb = (root((x, y), denoised[2 * x + i, 2 * y + j]) for j in (0, 1) for i in (0, 1))

    def straight(a: hl.Func, i: int, b: hl.Func, j: int) -> hl.Func:
        """`a` and its neighbour across, or `b` and its neighbour down, whichever differ less."""
        less = hl.absd(at(a, i), at(a)) < hl.absd(at(b, 0, j), at(b))
        return root((x, y), hl.select(less, avg(at(a, i), at(a)), avg(at(b, 0, j), at(b))))

    g_r, g_b = straight(g_gr, 1, g_gb, -1), straight(g_gb, -1, g_gr, 1)

    def corrected(
        here: hl.Func, green: hl.Func, colour: hl.Func, p: tuple[int, int], q: tuple[int, int] = (0, 0)
    ) -> hl.Expr:
        return at(here) - avg(at(green, *p), at(green, *q)) + avg(at(colour, *p), at(colour, *q))

    r_gr = root((x, y), corrected(g_gr, g_r, r_r, (-1, 0)))
    b_gr = root((x, y), corrected(g_gr, g_b, b_b, (0, -1)))
    r_gb = root((x, y), corrected(g_gb, g_r, r_r, (0, 1)))
    b_gb = root((x, y), corrected(g_gb, g_b, b_b, (1, 0)))

    def diagonal(here: hl.Func, green: hl.Func, colour: hl.Func, i: int, j: int) -> hl.Func:
        falls = hl.absd(at(colour), at(colour, i, j)) < hl.absd(at(colour, i), at(colour, 0, j))
        one, other = corrected(here, green, colour, (i, j)), corrected(here, green, colour, (i, 0), (0, j))
        return root((x, y), hl.select(falls, one, other))

    r_b, b_r = diagonal(g_b, g_r, r_r, -1, 1), diagonal(g_r, g_b, b_b, 1, -1)

    def interleaved(gr: hl.Func, red: hl.Func, blue: hl.Func, gb: hl.Func) -> hl.Func:
        i, j = x // 2, y // 2
        above = hl.select(x % 2 == 0, gr[i, j], red[i, j])
        below = hl.select(x % 2 == 0, blue[i, j], gb[i, j])
        return root((x, y), hl.select(y % 2 == 0, above, below))

    planes = [interleaved(*sites) for sites in ((r_gr, r_r, r_b, r_gb), (g_gr, g_r, g_b, g_gb), (b_gr, b_r, b_b, b_gb))]
    signed = [i32(hl.cast(hl.Int(16), plane[x, y])) for plane in planes]

    m3200, m7000 = (hl.Buffer(m) for m in matrices)
    share = (1.0 / hl.f32(color_temp) - hl.f32(1 / 3200)) / (hl.f32(np.float32(1 / 7000) - np.float32(1 / 3200)))
    matrix = root((x, y), hl.cast(hl.Int(16), (m3200[x, y] * share + m7000[x, y] * (1.0 - share)) * 256.0))
    rows = [
        hl.cast(hl.Int(16), fold(operator.add, (matrix[i, k] * signed[i] for i in range(3)), matrix[3, k]) // 256)
        for k in range(3)
    ]
    colour = root((x, y, c), hl.mux(c, rows))

    b = 2.0 - hl.pow(hl.f32(2.0), hl.f32(contrast) / 100.0)
    a = 2.0 - 2.0 * b
    light = hl.clamp(f32(x - black) * (1.0 / f32(hl.i32(white - black))), 0.0, 1.0)
    g = hl.pow(light, 1.0 / hl.f32(gamma))
    curved_light = hl.select(g > 0.5, 1.0 - (a * (1.0 - g) * (1.0 - g) + b * (1.0 - g)), a * g * g + b * g)
    value = hl.cast(hl.UInt(8), hl.clamp(curved_light * 255.0 + 0.5, 0.0, 255.0))
    curve = root((x,), hl.select(x <= black, hl.u8(0), x > white, hl.u8(255), value))
    curved = root((x, y, c), curve[hl.clamp(i32(colour[x, y, c]), 0, 1023)])

    def blur121(p: hl.Expr, q: hl.Expr, r: hl.Expr) -> hl.Expr:
        return avg(avg(hl.Expr(p), hl.Expr(r)), hl.Expr(q))

    unsharp_y = root((x, y, c), blur121(curved[x, y - 1, c], curved[x, y, c], curved[x, y + 1, c]))
    unsharp = root((x, y, c), blur121(unsharp_y[x - 1, y, c], unsharp_y[x, y, c], unsharp_y[x + 1, y, c]))
    mask = hl.cast(hl.Int(16), curved[x, y, c]) - hl.cast(hl.Int(16), unsharp[x, y, c])
    strength = hl.saturating_cast(hl.UInt(8), hl.f32(sharpen_strength) * 32)
    sharpened = hl.saturating_cast(hl.UInt(8), hl.Expr(curved[x, y, c]) + mask * strength // 32)
    return realize(root((x, y, c), sharpened), width, height, 3, low=(*low, 0))


# ---- images ---------------------------------------------------------------------------------------------------------


def picture(width: int, height: int, seed: int = 0) -> np.ndarray:
    """Slopes, an edge, a texture and some noise, as a photograph has: (3, height, width), in 0..1."""
    rng = np.random.default_rng(seed)
    v, u = np.mgrid[:height, :width]
    light = 0.5 + 0.3 * np.sin(u / 17) * np.cos(v / 11) + np.where(u + v > width, 0.2, -0.2)
    colours = np.stack([light, light * 0.8 + 0.1 * np.sin(u / 3), light[::-1]])
    return np.clip(colours + rng.normal(0, 0.02, colours.shape), 0, 1).astype(np.float32)


def noise(width: int, height: int) -> np.ndarray:
    """Beyond 0..1 as well."""
    return np.random.default_rng(1).uniform(-0.2, 1.2, (3, height, width)).astype(np.float32)


def interpreted(name: str, image: np.ndarray, **params: float) -> np.ndarray:
    pipeline = pipelines.load(name)
    (output,) = pipeline.outputs
    region = tuple((0, n) for n in reversed(image.shape))
    inputs = {pipeline.inputs[0].name: Image(image, (0,) * image.ndim)}
    return interpret(pipeline, inputs, params, {output: region})[output][0]


SIZES = [(7, 3), (83, 57)]
IMAGES = [make(*size) for make, size in itertools.product((picture, noise), SIZES)]


def assert_close(ours: np.ndarray, theirs: np.ndarray, within: float) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=within)


@pytest.mark.parametrize("r_sigma", [0.1, 0.37])
def test_bilateral_grid(r_sigma: float) -> None:
    for image in IMAGES:
        ours, theirs = interpreted("bilateral_grid", image[0], r_sigma=r_sigma), bilateral_grid(image[0], r_sigma)
        assert_close(ours, theirs, 1e-5)


@pytest.mark.parametrize("sigma", [0.12, 1.5])
def test_nl_means(sigma: float) -> None:
    """The app's exponential is an approximation, and nonsense below the least float: there, noise has to be weak."""
    for image in IMAGES:
        weak = 0.5 + (image - 0.5) * np.float32(min(1, 4 * sigma))
        assert_close(interpreted("nl_means", weak, sigma=sigma), nl_means(weak, sigma), 1e-5)


def test_max_filter() -> None:
    for image in [*IMAGES, picture(9, 120)]:
        np.testing.assert_array_equal(interpreted("max_filter", image), max_filter(image))


def mosaic(colours: np.ndarray, bits: int = 10) -> np.ndarray:
    """The mosaic of a picture behind filters G R / B G."""
    red, green, blue = np.rint(np.clip(colours, 0, 1) * ((1 << bits) - 1)).astype(np.uint16)
    raw = green.copy()
    raw[::2, 1::2], raw[1::2, ::2] = red[::2, 1::2], blue[1::2, ::2]
    return raw


SETTINGS: list[dict[str, float]] = [
    {},
    {"color_temp": 6500.0, "gamma": 1.7, "contrast": 80.0, "sharpen_strength": 2.5},
    {
        "color_temp": 2000.0,
        "gamma": 2.4,
        "contrast": -30.0,
        "sharpen_strength": 4.0,
        "blackLevel": 0,
        "whiteLevel": 900,
    },
    {"contrast": 0.0, "sharpen_strength": 0.0, "blackLevel": 200, "whiteLevel": 200},
]


@pytest.mark.parametrize(("kind", "params"), [*(("picture", s) for s in SETTINGS), ("noise", {})])
def test_camera_pipe(kind: str, params: dict[str, float]) -> None:
    pipeline = pipelines.load("camera_pipe")
    matrices = [np.array(m, np.float32) for m in (MATRIX_3200, MATRIX_7000)]
    names = {"blackLevel": "black", "whiteLevel": "white"}
    for low, width, height in [((0, 0), 1, 1), ((3, -5), 64, 47)]:
        region = ((low[0], width), (low[1], height), (0, 3))
        defaults = {p.name: p.default for p in pipeline.params}
        needed = required_regions(normalise(pipeline), {"processed": region}, defaults | params, {})
        (left, w), (top, h) = needed["input"]
        rng = np.random.default_rng(3)
        raw = mosaic(picture(w, h)) if kind == "picture" else rng.integers(0, 1024, (h, w)).astype(np.uint16)
        raw[rng.random(raw.shape) < 0.01] = 1023  # hot pixels
        inputs = {n: Image(m, (0, 0)) for n, m in zip(("matrix_3200", "matrix_7000"), matrices, strict=True)}
        inputs["input"] = Image(raw, (left, top))
        ours = interpret(pipeline, inputs, params, {"processed": region})["processed"][0]
        buffer = hl.Buffer(raw)
        buffer.set_min([left, top])
        theirs = camera_pipe(buffer, width, height, matrices, low, **{names.get(k, k): v for k, v in params.items()})
        np.testing.assert_array_equal(ours, theirs)
