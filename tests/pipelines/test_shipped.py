"""Every shipped pipeline against a direct computation with NumPy."""

import math

import numpy as np
import pytest
import yaml

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.frontends.document.document import load, load_text, to_document
from tilesmith.scheduler.interpreter.interpreter import Image, interpret

SIZES = [(1, 1), (7, 3), (13, 20), (64, 41)]
PLANES = {
    "harris": ((3, 1530), (3, 2554)),
    "camera_pipe": ((0, 2560), (0, 1920)),
    "lens_blur": ((0, 192), (0, 320)),
    "machado_blur": ((1, 3838), (1, 2158)),
    "machado_interpolation": ((0, 3840), (0, 2160)),
    "pyramid_blend": ((0, 2048), (0, 2048)),
    "vdsr": ((0, 256), (0, 256)),
}
"""The planes of outputs that are not 1536 x 2560."""


def run(name, array, region, low=None):
    pipeline = pipelines.load(name)
    (i,) = pipeline.inputs
    (output,) = pipeline.outputs
    image = Image(array, low or (0,) * array.ndim)
    (result,) = interpret(pipeline, {i.name: image}, {}, {output: region})[output]
    return result


def pad(array, by):
    """repeat_edge in x and y, the last two axes."""
    return np.pad(array, [(0, 0)] * (array.ndim - 2) + [(by, by)] * 2, mode="edge")


def test_names():
    assert list(pipelines.names()) == sorted(pipelines.names())
    assert set(pipelines.names()) >= {
        "bilateral_grid", "blur", "camera_pipe", "gaussian3x3", "harris", "interpolate", "laplacian_sharpen",
        "lens_blur", "local_laplacian", "machado_blur", "machado_interpolation", "max_filter", "nl_means",
        "pyramid_blend", "sobel", "unsharp", "vdsr",
    }  # fmt: skip
    with pytest.raises(KeyError):
        pipelines.load("../blur")


@pytest.mark.parametrize("name", pipelines.names())
class TestDocuments:
    def test_it_loads_and_round_trips(self, name):
        pipeline = pipelines.load(name)
        assert pipeline.name == name
        assert load(to_document(pipeline)) == pipeline
        assert load_text(yaml.safe_dump(pipelines.document(name)), yaml=True) == pipeline

    def test_it_says_what_it_is(self, name):
        assert len(pipelines.document(name)["doc"]) > 40

    def test_it_has_the_sizes_of_the_benchmarks(self, name):
        pipeline = pipelines.load(name)
        region = pipeline.estimate(pipeline.outputs[0])
        assert region[:2] == PLANES.get(name, ((0, 1536), (0, 2560)))


@pytest.mark.parametrize(("w", "h"), SIZES)
class TestValues:
    def test_blur(self, w, h):
        data = np.random.default_rng(1).integers(0, 65536, (h + 2, w + 2)).astype(np.uint16)
        rows = (data[:, :-2] + data[:, 1:-1] + data[:, 2:]) // 3
        expected = (rows[:-2] + rows[1:-1] + rows[2:]) // 3
        assert np.array_equal(run("blur", data, ((5, w), (-2, h)), (5, -2)), expected)

    def test_gaussian3x3(self, w, h):
        data = np.random.default_rng(2).integers(0, 256, (3, h, w)).astype(np.uint8)
        wide = pad(data, 1).astype(int)
        weights = [(1, 2, 1), (2, 4, 2), (1, 2, 1)]
        total = sum(weights[j][i] * wide[:, j : j + h, i : i + w] for j in range(3) for i in range(3))
        result = run("gaussian3x3", data, ((0, w), (0, h), (0, 3)))
        assert result.dtype == np.uint8
        assert np.array_equal(result, (total + 8) // 16)

    def test_sobel(self, w, h):
        data = np.random.default_rng(3).integers(0, 256, (h, w)).astype(np.uint8)
        data[: h // 2] //= 8  # not everything saturates
        result = run("sobel", data, ((0, w), (0, h)))
        assert result.dtype == np.uint8
        wide = pad(data, 1).tolist()
        for y in range(h):
            for x in range(w):
                a, b, c = (wide[y + j][x : x + 3] for j in range(3))
                gx = (a[2] + 2 * b[2] + c[2]) - (a[0] + 2 * b[0] + c[0])
                gy = (c[0] + 2 * c[1] + c[2]) - (a[0] + 2 * a[1] + a[2])
                assert result[y, x] == min(255, round(math.sqrt(gx * gx + gy * gy)))

    def test_laplacian_sharpen(self, w, h):
        data = np.random.default_rng(4).integers(0, 256, (3, h, w)).astype(np.uint8)
        wide = pad(data, 1).astype(int)
        middle = wide[:, 1:-1, 1:-1]
        cross = wide[:, :-2, 1:-1] + wide[:, 2:, 1:-1] + wide[:, 1:-1, :-2] + wide[:, 1:-1, 2:]
        result = run("laplacian_sharpen", data, ((0, w), (0, h), (0, 3)))
        assert np.array_equal(result, np.clip(5 * middle - cross, 0, 255))

    def test_unsharp(self, w, h):
        data = np.random.default_rng(5).uniform(0.1, 1, (3, h, w)).astype(np.float32)
        gray = np.tensordot([0.299, 0.587, 0.114], pad(data, 3).astype(float), 1)
        taps = [math.exp(-i * i / (2 * 1.5**2)) / (math.sqrt(2 * math.pi) * 1.5) for i in range(-3, 4)]
        columns = sum(t * gray[j : j + h, :] for j, t in enumerate(taps))
        blurred = sum(t * columns[:, i : i + w] for i, t in enumerate(taps))
        middle = gray[3:-3, 3:-3]
        expected = data * (2 * middle - blurred) / middle
        assert np.allclose(run("unsharp", data, ((0, w), (0, h), (0, 3))), expected, rtol=0, atol=3e-6)

    def test_harris(self, w, h):
        data = np.random.default_rng(6).uniform(0, 1, (3, h + 4, w + 4)).astype(np.float32)
        gray = np.tensordot([0.299, 0.587, 0.114], data.astype(float), 1)

        def window(a, weights):
            n, m = a.shape[0] - 2, a.shape[1] - 2
            return sum(weights[j][i] * a[j : j + n, i : i + m] for j in range(3) for i in range(3))

        sobel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 12
        gx, gy = window(gray, sobel), window(gray, sobel.T)
        xx, yy, xy = (window(a, np.ones((3, 3))) for a in (gx * gx, gy * gy, gx * gy))
        expected = xx * yy - xy * xy - 0.04 * (xx + yy) ** 2
        result = run("harris", data, ((2, w), (2, h)))
        assert np.allclose(result, expected, rtol=0, atol=1e-6)

    def test_interpolate(self, w, h):
        data = np.random.default_rng(7).uniform(0, 1, (4, h, w)).astype(np.float32)
        data[3] = np.where(data[3] < 0.7, 0.02, data[3])
        result = run("interpolate", data, ((0, w), (0, h), (0, 3)))
        assert np.allclose(result, pull_push(data, 10), rtol=0, atol=1e-5)


def pull_push(data, levels):
    """Downsample and come up again, point by point on an unbounded grid, in float64."""
    _, h, w = data.shape
    memory = {}

    def at(kind, level, x, y):
        key = (kind, level, x, y)
        if key not in memory:
            memory[key] = down(level, x, y) if kind == "down" else up(level, x, y)
        return memory[key]

    def down(level, x, y):
        if level == 0:
            *colour, alpha = data[:, min(max(y, 0), h - 1), min(max(x, 0), w - 1)].astype(float)
            return np.array([*(c * alpha for c in colour), alpha])
        total = np.zeros(4)
        for j, v in ((-1, 1), (0, 2), (1, 1)):
            for i, u in ((-1, 1), (0, 2), (1, 1)):
                p, q = 2 * x + i, 2 * y + j
                if level == 4:
                    p, q = min(max(p, 0), w // 8), min(max(q, 0), h // 8)
                total += u * v * at("down", level - 1, p, q)
        return total / 16

    def up(level, x, y):
        here = at("down", level, x, y)
        if level == levels - 1:
            return here
        above = sum(at("up", level + 1, p // 2, q // 2) for p in (x, x + 1) for q in (y, y + 1)) / 4
        return here + (1 - here[3]) * above

    result = np.zeros((3, h, w))
    for y in range(h):
        for x in range(w):
            value = at("up", 0, x, y)
            result[:, y, x] = value[:3] / value[3]
    return result
