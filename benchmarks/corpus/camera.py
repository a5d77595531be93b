"""Stages of a camera's processing."""

from __future__ import annotations

from benchmarks.corpus.registry import Made, Sized, case
from benchmarks.corpus.words import (
    SOBEL_X,
    SOBEL_Y,
    c,
    colour,
    gray,
    i,
    luma,
    separable,
    shifted,
    stage,
    total,
    window,
    x,
    y,
)
from tilesmith.language import (
    Image,
    Range,
    Stage,
    Term,
    clamp,
    float32,
    floor,
    int32,
    lerp,
    maximum,
    minimum,
    mirror_interior,
    mux,
    power,
    repeat_edge,
    rsum,
    sat_add,
    sat_sub,
    sat_uint8,
    sat_uint16,
    select,
    sqrt,
    uint8,
    uint16,
    uint32,
)


def _raw() -> Image:
    return Image("a", uint16, x, y, boundary=mirror_interior)


@case()
def black_and_white_level() -> Made:
    """12 bits from black to white stretched to 16."""
    a = _raw()
    above = int32(a[x, y] & 4095) - 256
    return stage("stretched", sat_uint16((above * 4371 + 128) >> 8))


@case()
def bilinear_demosaic() -> Made:
    """Colours of a Bayer pattern from the means of neighbours."""
    a = _raw()

    def at(p: int, q: int) -> Term:
        return uint32(shifted(a, p, q))

    cross = (at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1)) // 4
    diagonal = (at(-1, -1) + at(1, -1) + at(-1, 1) + at(1, 1)) // 4
    across, down = (at(-1, 0) + at(1, 0)) // 2, (at(0, -1) + at(0, 1)) // 2
    even_x, even_y = x % 2 == 0, y % 2 == 0
    red = select(even_y, select(even_x, at(0, 0), across), select(even_x, down, diagonal))
    green = select(even_x == even_y, cross, at(0, 0))
    blue = select(even_y, select(even_x, diagonal, down), select(even_x, across, at(0, 0)))
    return stage("rgb", uint16(mux(c, red, green, blue)), x, y, c)


@case()
def gradient_corrected_demosaic() -> Made:
    """Malvar, He and Cutler's demosaicing with kernels of 5 x 5."""
    a = stage("wide", float32(_raw()[x, y]))
    g = window(a, [[0, 0, -1, 0, 0], [0, 0, 2, 0, 0], [-1, 2, 4, 2, -1], [0, 0, 2, 0, 0], [0, 0, -1, 0, 0]]) / 8
    h = window(a, [[0, 0, 0.5, 0, 0], [0, -1, 0, -1, 0], [-1, 4, 5, 4, -1], [0, -1, 0, -1, 0], [0, 0, 0.5, 0, 0]]) / 8
    v = window(a, [[0, 0, -1, 0, 0], [0, -1, 4, -1, 0], [0.5, 0, 5, 0, 0.5], [0, -1, 4, -1, 0], [0, 0, -1, 0, 0]]) / 8
    d = window(a, [[0, 0, -1.5, 0, 0], [0, 2, 0, 2, 0], [-1.5, 0, 6, 0, -1.5], [0, 2, 0, 2, 0], [0, 0, -1.5, 0, 0]]) / 8
    gg, hh, vv, dd = stage("g", g), stage("h", h), stage("v", v), stage("d", d)
    even_x, even_y, at = x % 2 == 0, y % 2 == 0, a[x, y]
    red = select(even_y, select(even_x, at, hh[x, y]), select(even_x, vv[x, y], dd[x, y]))
    green = select(even_x == even_y, gg[x, y], at)
    blue = select(even_y, select(even_x, dd[x, y], vv[x, y]), select(even_x, hh[x, y], at))
    return stage("rgb", sat_uint16(mux(c, red, green, blue)), x, y, c)


@case()
def lens_shading() -> Made:
    """A gain that grows from the middle, from a grid of 17 x 13, linear between its points."""
    a, gain = _raw(), Image("gain", float32, x, y, boundary=repeat_edge)
    u, v = float32(x) * (16 / 2560), float32(y) * (12 / 1536)
    px, py = floor(u), floor(v)
    ix, iy = clamp(int32(px), 0, 15), clamp(int32(py), 0, 11)
    wx, wy = clamp(u - px, 0.0, 1.0), clamp(v - py, 0.0, 1.0)
    between = lerp(lerp(gain[ix, iy], gain[ix + 1, iy], wx), lerp(gain[ix, iy + 1], gain[ix + 1, iy + 1], wx), wy)
    factor = stage("factor", 1.0 + between)
    return stage("shaded", sat_uint16(float32(a[x, y]) * factor[x, y] + 0.5)), Sized(gain, own={"x": 17, "y": 13})


@case()
def defective_pixels() -> Made:
    """Raw pixels far above or below the eight of their colour are replaced."""
    a = _raw()
    near = [shifted(a, p, q) for q in (-2, 0, 2) for p in (-2, 0, 2) if (p, q) != (0, 0)]
    low, high = stage("low", minimum(*near)), stage("high", maximum(*near))
    return stage("mended", clamp(a[x, y], sat_sub(low[x, y], uint16(200)), sat_add(high[x, y], uint16(200))))


_CCM = ((1.62, -0.44, -0.18), (-0.23, 1.55, -0.32), (0.02, -0.58, 1.56))


@case()
def colour_matrix_and_curve() -> Made:
    """A matrix of colours, and a tone curve by a table of 1024 entries with lines between them."""
    a = colour(type=uint16)
    table = stage("table", 65535.0 * power(float32(i) / 1023.0, 1 / 2.2), i)
    mixed = [total(float32(a[x, y, d]) * w for d, w in enumerate(line)) for line in _CCM]
    toned = stage("toned", clamp(mux(c, *mixed), 0.0, 65535.0) * (1023 / 65535), x, y, c)
    whole = floor(toned[x, y, c])
    at = clamp(int32(whole), 0, 1022)
    curve = lerp(table[at], table[at + 1], clamp(toned[x, y, c] - whole, 0.0, 1.0))
    return stage("curved", sat_uint8(curve * (1 / 257) + 0.5), x, y, c, storage=(c, x, y))


@case(x=1280, y=768)
def half_size_preview() -> Made:
    """A colour for each square of a Bayer pattern, white balance, a curve, bytes."""
    a = _raw()
    red, blue = float32(a[2 * x, 2 * y]) * 1.9, float32(a[2 * x + 1, 2 * y + 1]) * 1.6
    green = (float32(a[2 * x + 1, 2 * y]) + float32(a[2 * x, 2 * y + 1])) * 0.5
    light = stage("light", minimum(mux(c, red, green, blue) * (1 / 65535), 1.0), x, y, c)
    return stage("preview", sat_uint8(255.0 * sqrt(light[x, y, c]) + 0.5), x, y, c, storage=(c, x, y)), Sized(a, 2)


@case()
def chroma_denoising() -> Made:
    """Luma and chroma, chroma smoothed by 13 x 13 where luma is alike, and back."""
    a = colour()
    bright = stage("bright", luma(a))
    cb, cr = stage("cb", a[x, y, 2] - bright[x, y]), stage("cr", a[x, y, 0] - bright[x, y])
    sb, sr = separable("sb", cb, [1 / 13] * 13), separable("sr", cr, [1 / 13] * 13)
    edge = stage("edge", minimum(abs(window(bright, SOBEL_X)) + abs(window(bright, SOBEL_Y)), 1.0))
    blue = bright[x, y] + lerp(sb[x, y], cb[x, y], edge[x, y])
    red = bright[x, y] + lerp(sr[x, y], cr[x, y], edge[x, y])
    green = (bright[x, y] - 0.299 * red - 0.114 * blue) / 0.587
    return stage("rgb", clamp(mux(c, red, green, blue), 0.0, 1.0), x, y, c)


@case()
def exposures_merged() -> Made:
    """Three exposures of bytes merged to linear light with weights of their brightness (Debevec)."""
    frames = [colour(f"a{d}", uint8, interleaved=True) for d in range(3)]
    weighted, weights = [], []
    for d, f in enumerate(frames):
        value = float32(f[x, y, c]) * (1 / 255)
        weight = stage(f"w{d}", minimum(value, 1.0 - value) + 0.01, x, y, c)
        weights.append(weight[x, y, c])
        weighted.append(weight[x, y, c] * (value * value * 4.0**-d))
    return stage("light", total(weighted) / total(weights), x, y, c)


@case()
def unpacked_12_bits() -> Made:
    """Two pixels of 12 bits from every three bytes."""
    a = Image("a", uint8, x, y, boundary=repeat_edge)
    first = x // 2 * 3
    even = (uint16(a[first, y]) << 4) | (uint16(a[first + 1, y]) >> 4)
    odd = (uint16(a[first + 1, y] & 15) << 8) | uint16(a[first + 2, y])
    return stage("pixels", select(x % 2 == 0, even, odd)), Sized(a, own={"x": 3840, "y": 1536})


@case()
def auto_exposure() -> Made:
    """The gain that brings the 90th percentile of bytes to 200, and the image with it."""
    a = gray(type=uint8)
    p, q, r, s = Range("p", 0, a.extent.x), Range("q", 0, a.extent.y), Range("r", 1, 256), Range("s", 0, 256)
    counts = stage("counts", uint32(0), i)
    counts[a[p, q]] += 1
    below = stage("below", counts[i], i)
    below[r] = below[r - 1] + below[r]
    level = Stage("level")
    level[()] = rsum(select(float32(below[s]) < 0.9 * float32(below[255]), 1.0, 0.0), s)
    return stage("exposed", sat_uint8(float32(a[x, y]) * (200.0 / maximum(level[()], 1.0)) + 0.5)), a
