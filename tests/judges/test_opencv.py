"""Small documents of our language against OpenCV, as generated code at root and under the method's schedule.

Integers agree exactly, floats to a few units in the sixth digit of the largest.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.judged import METHODS, Array, Judged, image, noise, stage, whole
from support.modules import require_module

require_module("cv2")

import cv2  # noqa: E402

EDGE, MIRROR = cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT_101
SIZES = ((131, 67), (24, 9))
ALL = [(method, size) for method in METHODS for size in SIZES]
every = pytest.mark.parametrize(("method", "size"), ALL, ids=lambda v: v if isinstance(v, str) else f"{v[0]}x{v[1]}")

X_EXTENT, Y_EXTENT = "image.extent.x", "image.extent.y"
WHOLE = [["image.min.x", X_EXTENT], ["image.min.y", Y_EXTENT]]


def close(a: Array, b: Array) -> None:
    assert a.dtype == b.dtype
    np.testing.assert_allclose(a, b, rtol=0, atol=3e-6 * float(np.abs(b).max()))


def taps(weights: list[int], read: str) -> str:
    """A weighted sum of neighbours: `read` has the place of the offset in braces."""
    middle = len(weights) // 2
    return " + ".join(f"{w} * {read.format(k - middle)}" for k, w in enumerate(weights) if w)


# ---- stencils -------------------------------------------------------------------------------------------------------

BOX = Judged(
    [image(boundary="repeat_edge")],
    [
        stage("rows", "sum(uint16(image(x + k, y)) for k in range(-2, 3))"),
        stage("box", "uint8((sum(rows(x, y + k) for k in range(-2, 3)) + 12) // 25)"),
    ],
)


@every
def test_box(method: str, size: tuple[int, int]) -> None:
    a = noise(*size)
    np.testing.assert_array_equal(BOX(method, {"image": a}, whole(a)), cv2.blur(a, (5, 5), borderType=EDGE))


GAUSSIAN = Judged(
    [image()],
    [
        stage("rows", taps([1, 4, 6, 4, 1], "uint16(image(x + {}, y))")),
        stage("smooth", "uint8((" + taps([1, 4, 6, 4, 1], "uint32(rows(x, y + {}))") + " + 128) >> 8)"),
    ],
)


@every
def test_gaussian(method: str, size: tuple[int, int]) -> None:
    a = noise(*size)
    np.testing.assert_array_equal(GAUSSIAN(method, {"image": a}, whole(a)), cv2.GaussianBlur(a, (5, 5), 0))


UNSHARP = Judged(
    [image(type="float32"), image("kernel", "float32", "k", None)],
    [
        stage("rows", "sum(image(x + k, y) * kernel(k + 4) for k in range(-4, 5))"),
        stage("smooth", "sum(rows(x, y + k) * kernel(k + 4) for k in range(-4, 5))"),
        stage("sharp", "clamp(image(x, y) * 1.5 - smooth(x, y) * 0.5, 0.0, 1.0)"),
    ],
    sizes={"k": 9},
)


@every
def test_unsharp_mask(method: str, size: tuple[int, int]) -> None:
    a, kernel = noise(*size, "float32"), cv2.getGaussianKernel(9, 1.7, cv2.CV_32F).ravel()
    smooth = cv2.GaussianBlur(a, (9, 9), 1.7)
    expected = np.clip(cv2.addWeighted(a, 1.5, smooth, -0.5, 0), 0, 1)
    close(UNSHARP(method, {"image": a, "kernel": kernel}, whole(a)), expected)


SOBEL = Judged(
    [image()],
    [
        stage("smooth", "int16(image(x, y - 1)) + 2 * int16(image(x, y)) + int16(image(x, y + 1))"),
        stage("gx", "smooth(x + 1, y) - smooth(x - 1, y)"),
        stage("fine", "int16(image(x - 1, y)) + 2 * int16(image(x, y)) + int16(image(x + 1, y))"),
        stage("gy", "fine(x, y + 1) - fine(x, y - 1)"),
        stage("both", ["gx(x, y)", "gy(x, y)"]),
    ],
)


@every
def test_sobel(method: str, size: tuple[int, int]) -> None:
    a = noise(*size)
    gx, gy = SOBEL.all(method, {"image": a}, whole(a))["both"]
    np.testing.assert_array_equal(gx, cv2.Sobel(a, cv2.CV_16S, 1, 0))
    np.testing.assert_array_equal(gy, cv2.Sobel(a, cv2.CV_16S, 0, 1))


LAPLACIAN = Judged(
    [image()],
    [
        stage("wide", "int16(image(x, y))"),
        stage("edges", "2 * (wide(x - 1, y - 1) + wide(x + 1, y - 1) + wide(x - 1, y + 1) + wide(x + 1, y + 1))"
              " - 8 * wide(x, y)"),
    ],
)  # fmt: skip


@every
def test_laplacian(method: str, size: tuple[int, int]) -> None:
    a = noise(*size)
    expected = cv2.Laplacian(a, cv2.CV_16S, ksize=3)
    np.testing.assert_array_equal(LAPLACIAN(method, {"image": a}, whole(a)), expected)


MIRRORED = {"boundary": {"kind": "mirror_interior", "domain": WHOLE}}
HARRIS = Judged(
    [image(type="float32")],
    [
        stage("gx", "(image(x + 1, y - 1) + 2 * image(x + 1, y) + image(x + 1, y + 1) - image(x - 1, y - 1)"
              " - 2 * image(x - 1, y) - image(x - 1, y + 1)) / 12"),
        stage("gy", "(image(x - 1, y + 1) + 2 * image(x, y + 1) + image(x + 1, y + 1) - image(x - 1, y - 1)"
              " - 2 * image(x, y - 1) - image(x + 1, y - 1)) / 12"),
        stage("products", ["gx(x, y) * gx(x, y)", "gx(x, y) * gy(x, y)", "gy(x, y) * gy(x, y)"], **MIRRORED),
        stage("sums", [f"sum(products(x + i, y + j)[{k}] for i in range(-1, 2) for j in range(-1, 2))"
                       for k in range(3)]),
        stage("trace", "sums(x, y)[0] + sums(x, y)[2]"),
        stage("response", "sums(x, y)[0] * sums(x, y)[2] - sums(x, y)[1] * sums(x, y)[1]"
              " - 0.04 * trace(x, y) * trace(x, y)"),
    ],
)  # fmt: skip


@every
def test_harris(method: str, size: tuple[int, int]) -> None:
    """Tuples in the middle, mirrored at the edges as the image is."""
    a = noise(*size, "float32")
    close(HARRIS(method, {"image": a}, whole(a)), cv2.cornerHarris(a, 3, 3, 0.04))


MEDIAN = Judged(
    [image(boundary="repeat_edge")],
    [
        stage("column", [
            "min(image(x, y - 1), image(x, y), image(x, y + 1))",
            "max(min(image(x, y - 1), image(x, y)), min(max(image(x, y - 1), image(x, y)), image(x, y + 1)))",
            "max(image(x, y - 1), image(x, y), image(x, y + 1))",
        ]),
        stage("least", "max(column(x - 1, y)[0], column(x, y)[0], column(x + 1, y)[0])"),
        stage("middle", "max(min(column(x - 1, y)[1], column(x, y)[1]),"
              " min(max(column(x - 1, y)[1], column(x, y)[1]), column(x + 1, y)[1]))"),
        stage("most", "min(column(x - 1, y)[2], column(x, y)[2], column(x + 1, y)[2])"),
        stage("median", "max(min(least(x, y), middle(x, y)), min(max(least(x, y), middle(x, y)), most(x, y)))"),
    ],
)  # fmt: skip


@every
def test_median(method: str, size: tuple[int, int]) -> None:
    a = noise(*size)
    np.testing.assert_array_equal(MEDIAN(method, {"image": a}, whole(a)), cv2.medianBlur(a, 3))


DILATION = Judged(
    [image(boundary="0"), image("shape", dims="ij", boundary=None)],
    [stage("largest", "max(image(x + i, y + j) for i in range(-3, 4) for j in range(-3, 4)"
           " if shape(i + 3, j + 3) > 0)")],
    sizes={"i": 7, "j": 7},
)  # fmt: skip


@every
def test_dilation_by_a_disc(method: str, size: tuple[int, int]) -> None:
    a, disc = noise(*size), cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (7, 7))
    np.testing.assert_array_equal(DILATION(method, {"image": a, "shape": disc}, whole(a)), cv2.dilate(a, disc))


WEIGHT = "near(abs(i) * abs(i) + abs(j) * abs(j)) * exp((image(x, y) - image(x + i, y + j)) ** 2 * -12.5)"
AROUND = "for i in range(-2, 3) for j in range(-2, 3) if i * i + j * j <= 4"
BILATERAL = Judged(
    [image(type="float32"), image("near", "float32", "r", None)],
    [
        stage("weighed", [f"sum(image(x + i, y + j) * {WEIGHT} {AROUND})", f"sum({WEIGHT} {AROUND})"]),
        stage("smooth", "weighed(x, y)[0] / weighed(x, y)[1]"),
    ],
    sizes={"r": 9},
)


@every
def test_bilateral_filter(method: str, size: tuple[int, int]) -> None:
    """OpenCV takes its exponential from a table."""
    a, near = noise(*size, "float32"), np.exp(-np.arange(9) / (2 * 1.5**2)).astype(np.float32)
    expected = cv2.bilateralFilter(a, 5, 0.2, 1.5)
    np.testing.assert_allclose(BILATERAL(method, {"image": a, "near": near}, whole(a)), expected, rtol=0, atol=2e-5)


# ---- sampling -------------------------------------------------------------------------------------------------------

DOWN = Judged(
    [image()],
    [
        stage("rows", taps([1, 4, 6, 4, 1], "uint16(image(2 * x + {}, y))")),
        stage("half", "uint8((" + taps([1, 4, 6, 4, 1], "uint32(rows(x, 2 * y + {}))") + " + 128) >> 8)"),
    ],
)


@every
def test_pyramid_down(method: str, size: tuple[int, int]) -> None:
    a = noise(*size)
    expected = cv2.pyrDown(a)
    np.testing.assert_array_equal(DOWN(method, {"image": a}, whole(expected)), expected)


UP = Judged(
    [image()],
    [
        stage("rows", "select(x % 2 == 0, uint16(image(x // 2 - 1, y)) + 6 * uint16(image(x // 2, y)) +"
              " uint16(image(x // 2 + 1, y)), 4 * (uint16(image(x // 2, y)) + uint16(image(x // 2 + 1, y))))"),
        stage("twice", "uint8((mux(y % 2, rows(x, y // 2 - 1) + 6 * rows(x, y // 2) + rows(x, y // 2 + 1),"
              " 4 * (rows(x, y // 2) + rows(x, y // 2 + 1))) + 32) >> 6)"),
    ],
)  # fmt: skip


@every
def test_pyramid_up(method: str, size: tuple[int, int]) -> None:
    """Away from the right and the lower edge, which OpenCV treats otherwise."""
    a = noise(*size)
    width, height = 2 * size[0] - 2, 2 * size[1] - 2
    expected = cv2.pyrUp(a)[:height, :width]
    np.testing.assert_array_equal(UP(method, {"image": a}, ((0, width), (0, height))), expected)


NEAREST = Judged([image(boundary=None)], [stage("sampled", "image(3 * x // 2, 5 * y // 4)")])


@pytest.mark.parametrize("method", METHODS)
def test_nearest_neighbours(method: str) -> None:
    a = noise(126, 65)
    expected = cv2.resize(a, (84, 52), interpolation=cv2.INTER_NEAREST)
    np.testing.assert_array_equal(NEAREST(method, {"image": a}, whole(expected)), expected)


LINEAR = Judged(
    [image(type="float32", boundary="repeat_edge")],
    [
        stage("rows", "0.75 * image(x // 2, y) + 0.25 * mux(x % 2, image(x // 2 - 1, y), image(x // 2 + 1, y))"),
        stage("twice", "0.75 * rows(x, y // 2) + 0.25 * mux(y % 2, rows(x, y // 2 - 1), rows(x, y // 2 + 1))"),
    ],
)


@every
def test_twice_as_large_by_interpolation(method: str, size: tuple[int, int]) -> None:
    a = noise(*size, "float32")
    expected = cv2.resize(a, (2 * size[0], 2 * size[1]), interpolation=cv2.INTER_LINEAR)
    close(LINEAR(method, {"image": a}, whole(expected)), expected)


AREA = Judged(
    [image(boundary=None)],
    [stage("mean", "uint8((sum(uint16(image(2 * x + i, 2 * y + j)) for i in range(2) for j in range(2)) + 2) >> 2)")],
)


@pytest.mark.parametrize("method", METHODS)
def test_half_as_large_by_means(method: str) -> None:
    a = noise(126, 66)
    expected = cv2.resize(a, (63, 33), interpolation=cv2.INTER_AREA)
    np.testing.assert_array_equal(AREA(method, {"image": a}, whole(expected)), expected)


def average(*offsets: tuple[int, int]) -> str:
    terms = " + ".join(f"uint16(image(x + {i}, y + {j}))".replace("+ -", "- ") for i, j in offsets)
    return f"uint8(({terms} + {len(offsets) // 2}) >> {len(offsets).bit_length() - 1})"


CROSS = average((-1, 0), (1, 0), (0, -1), (0, 1))
CORNERS = average((-1, -1), (1, -1), (-1, 1), (1, 1))
BESIDE, ABOVE = average((-1, 0), (1, 0)), average((0, -1), (0, 1))
DEMOSAIC = Judged(
    [image()],
    [
        stage("cross", CROSS), stage("corners", CORNERS), stage("beside", BESIDE), stage("above", ABOVE),
        stage("rgb", "mux(c, mux(x % 2 + 2 * (y % 2), image(x, y), beside(x, y), above(x, y), corners(x, y)),"
              " mux((x + y) % 2, cross(x, y), image(x, y)),"
              " mux(x % 2 + 2 * (y % 2), corners(x, y), above(x, y), beside(x, y), image(x, y)))",
              "xyc", storage=["c", "x", "y"]),
    ],
)  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_demosaicing(method: str) -> None:
    """Red at even places of even rows; the frame of one pixel is OpenCV's own affair."""
    a = noise(132, 66)
    expected = cv2.cvtColor(a, cv2.COLOR_BayerBG2RGB)[1:-1, 1:-1]
    got = DEMOSAIC(method, {"image": a}, ((1, 130), (1, 64), (0, 3)))
    np.testing.assert_array_equal(np.moveaxis(got, 0, -1), expected)


GRAY = Judged(
    [{**image(dims="xyc", boundary=None), "storage": ["c", "x", "y"]}],
    [stage("gray", "uint8((9798 * int32(image(x, y, 0)) + 19235 * int32(image(x, y, 1)) +"
           " 3735 * int32(image(x, y, 2)) + 16384) >> 15)")],
)  # fmt: skip


@every
def test_gray(method: str, size: tuple[int, int]) -> None:
    """Channels side by side in memory."""
    a = noise(*size, channels=3)
    expected = cv2.cvtColor(np.ascontiguousarray(np.moveaxis(a, 0, -1)), cv2.COLOR_RGB2GRAY)
    np.testing.assert_array_equal(GRAY(method, {"image": a}, whole(expected)), expected)


# ---- updates and gathers --------------------------------------------------------------------------------------------

HISTOGRAM = stage(
    "histogram", "0", "i",
    updates=[{"domain": {"rx": WHOLE[0], "ry": WHOLE[1]}, "at": ["image(rx, ry)"],
              "value": "histogram(image(rx, ry)) + 1"}],
)  # fmt: skip
COUNTED = Judged([image(boundary="repeat_edge")], [HISTOGRAM], sizes={"i": 256})


@every
def test_histogram(method: str, size: tuple[int, int]) -> None:
    a = noise(*size)
    expected = cv2.calcHist([a], [0], None, [256], [0, 256]).ravel().astype(np.int32)
    np.testing.assert_array_equal(COUNTED(method, {"image": a}, ((0, 256),)), expected)


EQUALISED = Judged(
    [image(boundary="repeat_edge")],
    [
        HISTOGRAM,
        stage("sums", "histogram(i)", "i",
              updates=[{"domain": {"r": [1, 255]}, "at": ["r"], "value": "sums(r - 1) + sums(r)"}]),
        stage("least", "min(sums(k) for k in range(0, 256) if sums(k) > 0)", ""),
        stage("scale", "255.0 / float32(sums(255) - least())", ""),
        stage("table", "uint8(round(float32(max(sums(i) - least(), 0)) * scale()))", "i"),
        stage("equalised", "table(image(x, y))"),
    ],
)  # fmt: skip


@every
def test_equalised_histogram(method: str, size: tuple[int, int]) -> None:
    a = noise(*size)
    np.testing.assert_array_equal(EQUALISED(method, {"image": a}, whole(a)), cv2.equalizeHist(a))


INTEGRAL = Judged(
    [image(boundary="0")],
    [stage("sums", "int32(image(x - 1, y - 1))", updates=[
        {"domain": {"r": [1, X_EXTENT]}, "at": ["r", "y"], "value": "sums(r, y) + sums(r - 1, y)"},
        {"domain": {"r": [1, Y_EXTENT]}, "at": ["x", "r"], "value": "sums(x, r) + sums(x, r - 1)"},
    ])],
)  # fmt: skip


@every
def test_integral_image(method: str, size: tuple[int, int]) -> None:
    a = noise(*size)
    expected = cv2.integral(a)
    np.testing.assert_array_equal(INTEGRAL(method, {"image": a}, whole(expected)), expected)


def steps(image_step: str, row_step: str, x: str, y: str) -> dict:
    here = f"away({x}, {y})"
    return {
        "domain": {"rx": [1, f"{X_EXTENT} - 1"], "ry": [1, f"{Y_EXTENT} - 1"]}, "at": [x, y],
        "value": f"min({here}, away({image_step}, {y}) + 1.0, away({x}, {row_step}) + 1.0)",
    }  # fmt: skip


LAST_X, LAST_Y = f"({X_EXTENT} - 1)", f"({Y_EXTENT} - 1)"
DISTANCE = Judged(
    [image(boundary="repeat_edge")],
    [stage("away", "select(image(x, y) == 0, 0.0, 1000.0)", updates=[
        # the first row and column have one neighbour only: runs along them before and after the others
        {"domain": {"r": [1, LAST_X]}, "at": ["r", "0"], "value": "min(away(r, 0), away(r - 1, 0) + 1.0)"},
        {"domain": {"r": [1, LAST_Y]}, "at": ["0", "r"], "value": "min(away(0, r), away(0, r - 1) + 1.0)"},
        steps("rx - 1", "ry - 1", "rx", "ry"),
        {"domain": {"r": [1, LAST_X]}, "at": [f"{LAST_X} - r", LAST_Y],
         "value": f"min(away({LAST_X} - r, {LAST_Y}), away({X_EXTENT} - r, {LAST_Y}) + 1.0)"},
        {"domain": {"r": [1, LAST_Y]}, "at": [LAST_X, f"{LAST_Y} - r"],
         "value": f"min(away({LAST_X}, {LAST_Y} - r), away({LAST_X}, {Y_EXTENT} - r) + 1.0)"},
        steps(f"{X_EXTENT} - rx", f"{Y_EXTENT} - ry", f"{LAST_X} - rx", f"{LAST_Y} - ry"),
    ])],
)  # fmt: skip


@every
def test_distances(method: str, size: tuple[int, int]) -> None:
    """Scans forwards and backwards, in place."""
    a = np.where(noise(*size) < 3, 0, 255).astype(np.uint8)
    a[size[1] // 2, size[0] // 3] = 0
    expected = cv2.distanceTransform(a, cv2.DIST_L1, 3, dstType=cv2.CV_32F)
    got = DISTANCE(method, {"image": a}, whole(a))
    np.testing.assert_array_equal(got, expected)


REMAPPED = Judged(
    [image(boundary="repeat_edge"), image("map_x", "int16", boundary=None), image("map_y", "int16", boundary=None)],
    [stage("moved", "image(int32(map_x(x, y)), int32(map_y(x, y)))")],
)


@every
def test_remapping(method: str, size: tuple[int, int]) -> None:
    a, random = noise(*size), np.random.default_rng(5)
    xs = random.integers(-5, size[0] + 5, a.shape).astype(np.int16)
    ys = random.integers(-5, size[1] + 5, a.shape).astype(np.int16)
    expected = cv2.remap(a, np.dstack((xs, ys)), None, cv2.INTER_NEAREST, borderMode=EDGE)
    got = REMAPPED(method, {"image": a, "map_x": xs, "map_y": ys}, whole(a))
    np.testing.assert_array_equal(got, expected)


PIXELS = f"image(i, j) for j in range(0, {Y_EXTENT}) for i in range(0, {X_EXTENT})"
EXTREMES = Judged(
    [image(boundary="repeat_edge")],
    [
        stage("lowest", f"argmin({PIXELS})", ""),
        stage("highest", f"argmax({PIXELS})", ""),
    ],
    outputs=["lowest", "highest"],
)


@every
def test_where_the_extremes_are(method: str, size: tuple[int, int]) -> None:
    a = noise(*size)
    lowest, highest, low, high = cv2.minMaxLoc(a)
    found = EXTREMES.all(method, {"image": a}, {"lowest": (), "highest": ()})
    assert [int(v) for v in found["lowest"]] == [*reversed(low), lowest]
    assert [int(v) for v in found["highest"]] == [*reversed(high), highest]
