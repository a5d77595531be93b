"""Small documents of our language against scikit-image, as generated code at root and under the method's schedule."""

from __future__ import annotations

import numpy as np
import pytest
from support.judged import METHODS, Array, Judged, image, noise, stage, whole
from support.modules import require_module

require_module("skimage")

from skimage import color, exposure, feature, filters, measure, morphology, transform  # noqa: E402

SIZES = ((131, 67), (24, 15))
ALL = [(method, size) for method in METHODS for size in SIZES]
every = pytest.mark.parametrize(("method", "size"), ALL, ids=lambda v: v if isinstance(v, str) else f"{v[0]}x{v[1]}")
WHOLE = [["image.min.x", "image.extent.x"], ["image.min.y", "image.extent.y"]]


def close(a: Array, b: Array, atol: float = 3e-6) -> None:
    np.testing.assert_allclose(a, b, rtol=0, atol=atol * max(1.0, float(np.abs(b).max())))


def floats(**more: str) -> dict:
    return {**image(type="float32", boundary="mirror_image"), **more}


SOBEL = Judged(
    [floats()],
    [
        stage("gy", "(image(x - 1, y + 1) + 2 * image(x, y + 1) + image(x + 1, y + 1)"
              " - image(x - 1, y - 1) - 2 * image(x, y - 1) - image(x + 1, y - 1)) / 4"),
        stage("gx", "(image(x + 1, y - 1) + 2 * image(x + 1, y) + image(x + 1, y + 1)"
              " - image(x - 1, y - 1) - 2 * image(x - 1, y) - image(x - 1, y + 1)) / 4"),
        stage("edges", "sqrt((gx(x, y) ** 2 + gy(x, y) ** 2) / 2)"),
    ],
)  # fmt: skip


@every
def test_sobel(method: str, size: tuple[int, int]) -> None:
    a = noise(*size, "float32")
    close(SOBEL(method, {"image": a}, whole(a)), filters.sobel(a))


RADIUS = 6  # of a Gaussian of sigma 1.5, cut at 4 sigma
GAUSSIAN = [
    stage("weight", "exp(float32(k * k) / -4.5)", "k"),
    stage("sum", "sum(weight(k) for k in range(-6, 7))", ""),
    stage("columns", "sum(image(x, y + k) * weight(k) for k in range(-6, 7)) / sum_of_weights()"),
    stage("smooth", "sum(columns(x + k, y) * weight(k) for k in range(-6, 7)) / sum_of_weights()"),
]
GAUSSIAN[1] = {**GAUSSIAN[1], "name": "sum_of_weights"}
NEAREST = [image(type="float32", boundary="repeat_edge")]
SMOOTH = Judged(NEAREST, GAUSSIAN)
SHARP = Judged([floats()], [
    *GAUSSIAN,
    stage("sharp", "clamp(image(x, y) + (image(x, y) - smooth(x, y)) * 0.8, 0.0, 1.0)"),
])  # fmt: skip


@every
def test_gaussian(method: str, size: tuple[int, int]) -> None:
    a = noise(*size, "float32")
    close(SMOOTH(method, {"image": a}, whole(a)), filters.gaussian(a, 1.5))


@every
def test_unsharp_mask(method: str, size: tuple[int, int]) -> None:
    a = noise(*size, "float32")
    close(SHARP(method, {"image": a}, whole(a)), filters.unsharp_mask(a, 1.5, 0.8))


LAPLACE = Judged(
    [floats()],
    [stage("edges", "4 * image(x, y) - image(x - 1, y) - image(x + 1, y) - image(x, y - 1) - image(x, y + 1)")],
)


@every
def test_laplace(method: str, size: tuple[int, int]) -> None:
    a = noise(*size, "float32")
    close(LAPLACE(method, {"image": a}, whole(a)), filters.laplace(a))


MORPHOLOGY = {
    "erosion": Judged(
        [image(boundary="255")],
        [stage("least", "min(image(x + i, y + j) for i in range(-3, 4) for j in range(-3, 4) if i * i + j * j <= 9)")],
    ),
    "dilation": Judged(
        [image(boundary="0")],
        [stage("most", "max(image(x + i, y + j) for i in range(-3, 4) for j in range(-3, 4) if i * i + j * j <= 9)")],
    ),
}


@pytest.mark.parametrize("name", sorted(MORPHOLOGY))
@every
def test_discs(method: str, size: tuple[int, int], name: str) -> None:
    a = noise(*size)
    expected = getattr(morphology, name)(a, morphology.disk(3))
    np.testing.assert_array_equal(MORPHOLOGY[name](method, {"image": a}, whole(a)), expected)


INTEGRAL = Judged(
    [image(type="uint8", boundary="repeat_edge")],
    [stage("sums", "uint64(image(x, y))", updates=[
        {"domain": {"rx": [1, "image.extent.x - 1"]}, "at": ["rx", "y"], "value": "sums(rx, y) + sums(rx - 1, y)"},
        {"domain": {"ry": [1, "image.extent.y - 1"]}, "at": ["x", "ry"], "value": "sums(x, ry) + sums(x, ry - 1)"},
    ])],
)  # fmt: skip


@every
def test_integral_image(method: str, size: tuple[int, int]) -> None:
    a = noise(*size)
    np.testing.assert_array_equal(INTEGRAL(method, {"image": a}, whole(a)), transform.integral_image(a))


MEANS = Judged(
    [image(type="float32", boundary="0")],
    [stage("mean", "sum(image(3 * x + i, 2 * y + j) for i in range(0, 3) for j in range(0, 2)) / 6")],
)
MOST = Judged(
    [image(type="uint16", boundary="0")],
    [stage("most", "max(image(4 * x + i, 3 * y + j) for i in range(0, 4) for j in range(0, 3))")],
)


@every
def test_means_of_blocks(method: str, size: tuple[int, int]) -> None:
    a = noise(*size, "float32")
    expected = transform.downscale_local_mean(a, (2, 3))
    close(MEANS(method, {"image": a}, whole(expected)), expected)


@every
def test_the_most_of_blocks(method: str, size: tuple[int, int]) -> None:
    a = noise(*size, "uint16")
    expected = measure.block_reduce(a, (3, 4), np.max)
    np.testing.assert_array_equal(MOST(method, {"image": a}, whole(expected)), expected)


HISTOGRAM = stage(
    "histogram", "0", "i",
    updates=[{"domain": {"rx": WHOLE[0], "ry": WHOLE[1]}, "at": ["image(rx, ry)"],
              "value": "histogram(image(rx, ry)) + 1"}],
)  # fmt: skip
RUNNING = stage("below", "histogram(i)", "i",
                updates=[{"domain": {"r": [1, 255]}, "at": ["r"], "value": "below(r - 1) + below(r)"}])  # fmt: skip
COUNTED = Judged([image(boundary="repeat_edge")], [HISTOGRAM, RUNNING], ["histogram", "below"], {"i": 256})


@every
def test_histogram(method: str, size: tuple[int, int]) -> None:
    a = noise(*size)
    got = COUNTED.all(method, {"image": a}, dict.fromkeys(("histogram", "below"), ((0, 256),)))
    counts, places = exposure.histogram(a, source_range="dtype")
    np.testing.assert_array_equal(got["histogram"][0][places], counts)
    fractions, places = exposure.cumulative_distribution(a)
    np.testing.assert_allclose(got["below"][0][places] / a.size, fractions, rtol=1e-12)


OTSU = Judged(
    [image(boundary="repeat_edge")],
    [
        HISTOGRAM,
        RUNNING,
        stage("weighed", "int64(histogram(i)) * int64(i)", "i",
              updates=[{"domain": {"r": [1, 255]}, "at": ["r"], "value": "weighed(r - 1) + weighed(r)"}]),
        stage("apart", "select(below(i) > 0 and below(i) < below(255), float64(below(i)) *"
              " float64(below(255) - below(i)) * (float64(weighed(i)) / float64(below(i)) - float64(weighed(255)"
              " - weighed(i)) / float64(below(255) - below(i))) ** 2, float64(0.0))", "i"),
        stage("best", "argmax(apart(k) for k in range(0, 255))", ""),
        stage("threshold", "best()[0]", ""),
    ],
)  # fmt: skip


@every
def test_otsu(method: str, size: tuple[int, int]) -> None:
    """Histogram, two scans, and the place of the largest."""
    a = noise(*size)
    assert OTSU(method, {"image": a}, ()).item() == filters.threshold_otsu(a)


GRAY = Judged(
    [image(type="float32", dims="xyc", boundary=None)],
    [stage("gray", "0.2125 * image(x, y, 0) + 0.7154 * image(x, y, 1) + 0.0721 * image(x, y, 2)")],
)
HSV = Judged(
    [image(type="float32", dims="xyc", boundary=None)],
    [
        stage("most", "max(image(x, y, 0), image(x, y, 1), image(x, y, 2))"),
        stage("spread", "most(x, y) - min(image(x, y, 0), image(x, y, 1), image(x, y, 2))"),
        stage("which", "argmax(image(x, y, k) for k in range(0, 3))"),
        stage("turn", "mux(which(x, y)[0], (image(x, y, 1) - image(x, y, 2)) / spread(x, y),"
              " 2.0 + (image(x, y, 2) - image(x, y, 0)) / spread(x, y),"
              " 4.0 + (image(x, y, 0) - image(x, y, 1)) / spread(x, y))"),
        stage("hsv", "mux(c, turn(x, y) / 6.0 % 1.0, spread(x, y) / most(x, y), most(x, y))", "xyc"),
    ],
)  # fmt: skip


@every
def test_gray(method: str, size: tuple[int, int]) -> None:
    a = noise(*size, "float32", channels=3)
    close(GRAY(method, {"image": a}, whole(a[0])), color.rgb2gray(np.moveaxis(a, 0, -1)))


@every
def test_hsv(method: str, size: tuple[int, int]) -> None:
    """Which channel is the largest decides how the hue is computed."""
    a = noise(*size, "float32", channels=3)
    expected = np.moveaxis(color.rgb2hsv(np.moveaxis(a, 0, -1)), -1, 0)
    close(HSV(method, {"image": a}, whole(a)), expected, atol=1e-5)


LOCAL = Judged(
    [image(boundary=None)],
    [
        stage("above", "uint8(image(x, y - 1) >= image(x, y)) << 1 | uint8(image(x + 1, y) >= image(x, y))"),
        stage("below", "uint8(image(x, y + 1) >= image(x, y)) << 1 | uint8(image(x - 1, y) >= image(x, y))"),
        stage("pattern", "below(x, y) << 2 | above(x, y)"),
    ],
)


@every
def test_local_binary_patterns(method: str, size: tuple[int, int]) -> None:
    a = noise(*size)
    expected = feature.local_binary_pattern(a, 4, 1).astype(np.uint8)[1:-1, 1:-1]
    got = LOCAL(method, {"image": a}, ((1, size[0] - 2), (1, size[1] - 2)))
    np.testing.assert_array_equal(got, expected)
