"""The filters of Halide's apps against direct computations with NumPy, in float64."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.frontends.document.document import load_text
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.rewrites.passes import normalise

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = [(1, 1), (7, 3), (20, 33)]
sizes = pytest.mark.parametrize(("w", "h"), SIZES)


def run(name: str, image: np.ndarray, **params: float) -> np.ndarray:
    """The output for the whole image, which has a boundary."""
    pipeline = pipelines.load(name)
    (output,) = pipeline.outputs
    region = tuple((0, n) for n in reversed(image.shape))
    images = {pipeline.inputs[0].name: Image(image, (0,) * image.ndim)}
    return interpret(pipeline, images, params, {output: region})[output][0]


def padded(image: np.ndarray, by: int) -> np.ndarray:
    """repeat_edge in x and y, the last two axes."""
    return np.pad(image, [(0, 0)] * (image.ndim - 2) + [(by, by)] * 2, mode="edge").astype(float)


@sizes
def test_max_filter(w: int, h: int) -> None:
    image = np.random.default_rng(1).uniform(0, 1, (3, h, w)).astype(np.float32)
    wide = padded(image, 27)
    expected = np.full(image.shape, -1.0)
    for i in range(-26, 27):
        height = sum(i * i + j * j < 26.25**2 for j in range(27))  # rows above, and rows below
        for j in range(-height, height + 1):
            expected = np.maximum(expected, wide[:, 27 + j : 27 + j + h, 27 + i : 27 + i + w])
    assert np.array_equal(run("max_filter", image), expected)


@sizes
@pytest.mark.parametrize("sigma", [0.05, 2.0])
def test_nl_means(w: int, h: int, sigma: float) -> None:
    rng = np.random.default_rng(2)
    image = (0.2 + 0.6 * (np.mgrid[:h, :w].sum(0) % 8 < 4) + rng.normal(0, sigma / 8, (3, h, w))).astype(np.float32)
    wide = padded(image, 9)
    total, weights = np.zeros(image.shape), np.zeros((h, w))
    for v in range(-3, 4):
        for u in range(-3, 4):
            apart = np.zeros((h, w))
            for j in range(6, 13):
                for i in range(6, 13):
                    here, there = wide[:, j : j + h, i : i + w], wide[:, j + v : j + v + h, i + u : i + u + w]
                    apart += ((here - there) ** 2).sum(0)
            weight = np.exp(-apart / (sigma**2 * 49))
            total += weight * wide[:, 9 + v : 9 + v + h, 9 + u : 9 + u + w]
            weights += weight
    assert np.allclose(run("nl_means", image, sigma=sigma), np.clip(total / weights, 0, 1), rtol=0, atol=2e-6)


@sizes
@pytest.mark.parametrize("r_sigma", [0.1, 0.3])
def test_bilateral_grid(w: int, h: int, r_sigma: float) -> None:
    image = np.random.default_rng(3).uniform(-0.1, 1.1, (h, w)).astype(np.float32)
    scale = float(np.float32(1) / np.float32(r_sigma))
    light = np.clip(image, 0, 1).astype(float)
    # Cells from -2, for the blur reaches that far beyond the ones that are sampled.
    across, down, deep = w // 8 + 6, h // 8 + 6, int(scale + 0.5) + 6
    grid = np.zeros((2, deep, down, across))
    for q in range(down):
        for p in range(across):
            for j in range(8):
                for i in range(8):
                    x, y = 8 * (p - 2) + i - 4, 8 * (q - 2) + j - 4
                    v = light[min(max(y, 0), h - 1), min(max(x, 0), w - 1)]
                    grid[:, int(v * scale + 0.5) + 2, q, p] += (v, 1)
    for axis in (1, 2, 3):
        grid = sum(n * np.roll(grid, k - 2, axis) for k, n in enumerate((1, 4, 6, 4, 1)))
    expected = np.zeros((h, w))
    for y in range(h):
        for x in range(w):
            total = np.zeros(2)
            for k in (0, 1):
                for j in (0, 1):
                    for i in (0, 1):
                        places = (light[y, x] * scale, y / 8, x / 8)
                        weight = math.prod(
                            f if n else 1 - f for f, n in zip((p % 1 for p in places), (k, j, i), strict=True)
                        )
                        cell = (int(p) + n + 2 for p, n in zip(places, (k, j, i), strict=True))
                        total += weight * grid[(slice(None), *cell)]
            expected[y, x] = total[0] / total[1]
    assert np.allclose(run("bilateral_grid", image, r_sigma=r_sigma), expected, rtol=0, atol=1e-5)


def developed(raw: np.ndarray, matrix: np.ndarray, size: tuple[int, int], **params: float) -> np.ndarray:
    """camera_pipe of a raw image that begins where it is read first; the same matrix for every light."""
    pipeline = pipelines.load("camera_pipe")
    region = {"processed": ((0, size[0]), (0, size[1]), (0, 3))}
    values = {p.name: p.default for p in pipeline.params} | params
    (left, w), (top, h) = required_regions(normalise(pipeline), region, values, {})["input"]
    images = {
        "input": Image(np.ascontiguousarray(raw[:h, :w]), (left, top)),
        "matrix_3200": Image(matrix, (0, 0)),
        "matrix_7000": Image(matrix, (0, 0)),
    }
    return interpret(pipeline, images, params, region)["processed"][0]


UNTOUCHED = np.eye(3, 4, dtype=np.float32)  # no colour is changed


def toned(v: int, gamma: float = 2.0, contrast: float = 50.0, black: int = 25, white: int = 1023) -> int:
    g = min(max((v - black) / (white - black), 0), 1) ** (1 / gamma)
    b = 2 - 2 ** (contrast / 100)
    a = 2 - 2 * b
    z = 1 - (a * (1 - g) ** 2 + b * (1 - g)) if g > 0.5 else a * g**2 + b * g
    return 0 if v <= black else 255 if v > white else int(z * 255 + 0.5)


class TestCameraPipe:
    @pytest.mark.parametrize("level", [0, 25, 26, 300, 700, 1023, 4000])
    def test_a_gray_wall_stays_one(self, level: int) -> None:
        raw = np.full((64, 64), level, np.uint16)
        assert (developed(raw, UNTOUCHED, (12, 10)) == toned(min(level, 1023))).all()

    def test_colours_go_through_the_matrix(self) -> None:
        raw = np.zeros((64, 64), np.uint16)
        raw[...], raw[::2, 1::2], raw[1::2, ::2] = 400, 200, 600  # the raw image begins at an even place
        matrix = np.array([[0.5, 0.25, 0, 10], [0, 1, 0.5, -20], [1, 0, 0.5, 0]], np.float32)
        red, green, blue = (int(m @ (200, 400, 600, 1)) for m in matrix.astype(float))
        result = developed(raw, matrix, (8, 8))
        for plane, v in zip(result, (red, green, blue), strict=True):
            assert (plane == toned(v)).all()

    def test_hot_pixels_are_gone(self) -> None:
        raw = np.full((64, 64), 300, np.uint16)
        raw[20, 21] = raw[31, 30] = 1023
        assert (developed(raw, UNTOUCHED, (24, 24)) == toned(300)).all()

    def test_sharpening_makes_edges_overshoot(self) -> None:
        raw = np.full((64, 64), 300, np.uint16)
        raw[:, 32:] = 500
        soft, sharp = (developed(raw, UNTOUCHED, (40, 8), sharpen_strength=s).astype(int) for s in (0, 2))
        assert soft.min() >= toned(300)
        assert soft.max() <= toned(500)
        assert sharp.min() < toned(300)
        assert sharp.max() > toned(500)

    def test_it_develops_what_the_example_sensor_saw(self) -> None:
        """examples/sensor.yaml undoes tones and colours, so that the photograph comes back, but for its details."""
        v, u = np.mgrid[:60, :80]
        photo = np.stack([90 + u, 200 - u - v, 60 + 2 * v]).astype(np.uint8)
        sensor = load_text((EXAMPLES / "sensor.yaml").read_text(), yaml=True)
        regions = {"raw": ((0, 80), (0, 60)), "matrix_3200": ((0, 4), (0, 3)), "matrix_7000": ((0, 4), (0, 3))}
        seen = interpret(sensor, {"photo": Image(photo, (0, 0, 0))}, {}, regions)
        images = {"input" if n == "raw" else n: Image(a, (0, 0)) for n, (a,) in seen.items()}
        region = {"processed": ((0, 56), (0, 40), (0, 3))}
        (picture,) = interpret(pipelines.load("camera_pipe"), images, {"sharpen_strength": 0.0}, region)["processed"]
        assert np.abs(picture.astype(int) - photo[:, 12:52, 16:72]).max() <= 4
